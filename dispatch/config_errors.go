package dispatch

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ConfigError is one mistake in a configuration, and where it stands. It never
// holds a value that came from the environment or from a file.
type ConfigError struct {
	File    string
	Line    int    // 0: the file as a whole
	Key     string // such as rails.card.timeout
	Message string
}

func (e ConfigError) Error() string {
	place := e.File
	if e.Line > 0 {
		place += ":" + strconv.Itoa(e.Line)
	}
	if e.Key != "" {
		place += ": " + e.Key
	}
	return place + ": " + e.Message
}

// ConfigErrors are all mistakes of one configuration, one a line, in the order
// of the file.
type ConfigErrors []ConfigError

func (e ConfigErrors) Error() string {
	var lines []string
	for _, one := range e {
		lines = append(lines, one.Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives each mistake by itself.
func (e ConfigErrors) Unwrap() []error {
	var all []error
	for _, one := range e {
		all = append(all, one)
	}
	return all
}

// findings collects mistakes, and remembers on which line each key stands, so
// that what is found wrong later is blamed on its line as well.
type findings struct {
	file    string
	list    ConfigErrors
	misread int // so many of them were found while reading, before anything was judged
	lines   map[string]int
	filled  map[string]string // by key: the text as written, where ${…} stands in it
	values  map[string]string // by value that was put in: the ${…} that stands for it
}

func newFindings(file string) *findings {
	return &findings{file: file, lines: map[string]int{}, filled: map[string]string{}, values: map[string]string{}}
}

// at adds a mistake on a line.
func (f *findings) at(line int, key, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	f.list = append(f.list, ConfigError{f.file, line, key, strings.Join(strings.Fields(message), " ")})
}

// add adds a mistake on the line of its key. What could not be read is not
// judged as well: that it is missing, or empty, would be no news.
func (f *findings) add(key, format string, args ...any) {
	for _, e := range f.list[:f.misread] {
		if within(e.Key, key) || within(key, e.Key) {
			return
		}
	}
	f.at(f.line(key), key, format, args...)
}

// within reports whether a key is another one, or stands below it.
func within(key, outer string) bool {
	rest, ok := strings.CutPrefix(key, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// line is where the key stands, or the nearest key around it.
func (f *findings) line(key string) int {
	for {
		if line, ok := f.lines[key]; ok || key == "" {
			return line
		}
		key = key[:max(0, strings.LastIndexAny(key, ".["))]
	}
}

// foreign adds what another package found wrong. It saw the values that were
// put in, so its words are cleaned of them.
func (f *findings) foreign(key, message string) { f.add(key, "%s", f.masked(key, message)) }

var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

func (f *findings) masked(key, message string) string {
	if written, ok := f.filled[key]; ok {
		message = quoted.ReplaceAllLiteralString(message, strconv.Quote(written))
	}
	if len(f.values) == 0 {
		return message
	}
	// The longest first: a shorter secret may be a part of it.
	var values []string
	for value := range f.values {
		values = append(values, value)
	}
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, value := range values {
		pairs = append(pairs, value, f.values[value])
		if q := strconv.Quote(value); q[1:len(q)-1] != value {
			pairs = append(pairs, q[1:len(q)-1], f.values[value])
		}
	}
	return strings.NewReplacer(pairs...).Replace(message)
}

// keyed splits a message such as "then: is not known" below a key into the key
// that it is about and the rest, as far as its words are keys of the file.
func (f *findings) keyed(key, message string) (string, string) {
	for {
		head, rest, ok := strings.Cut(message, ": ")
		if !ok {
			return key, message
		}
		if _, known := f.lines[key+"."+head]; !known {
			return key, message
		}
		key, message = key+"."+head, rest
	}
}

// errors are all mistakes in the order of the file.
func (f *findings) errors() ConfigErrors {
	slices.SortStableFunc(f.list, func(a, b ConfigError) int { return a.Line - b.Line })
	return slices.Compact(f.list)
}

// each takes joined errors apart.
func each(err error) []error {
	if err == nil {
		return nil
	}
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, each(e)...)
	}
	return all
}
