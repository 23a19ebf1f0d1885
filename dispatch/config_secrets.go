package dispatch

import (
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"holdfast/dispatch/rail"
)

// fill puts in what ${NAME} and ${file:NAME} stand for.
func (r *configReader) fill(text, key string) (string, bool) {
	if !strings.Contains(text, "${") {
		return text, true
	}
	var b strings.Builder
	whole := true
	for rest := text; rest != ""; {
		before, after, found := strings.Cut(rest, "${")
		b.WriteString(before)
		if !found {
			break
		}
		name, behind, closed := strings.Cut(after, "}")
		if !closed {
			r.add(key, "has ${ without }; write ${NAME} or ${file:NAME}")
			return "", false
		}
		value, err := r.lookUp(name)
		if err != nil {
			r.add(key, "${%s}: %v", name, err)
			whole = false
		} else if r.values[value] == "" {
			r.values[value] = "${" + name + "}"
		}
		b.WriteString(value)
		rest = behind
	}
	r.filled[key] = text
	return b.String(), whole
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (r *configReader) lookUp(name string) (string, error) {
	if file, ok := strings.CutPrefix(name, "file:"); ok {
		if file == "" {
			return "", errors.New("names no file")
		}
		text, err := r.around.secret(file)
		value := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
		switch {
		case err != nil:
			return "", err
		case value == "":
			return "", errors.New("the file is empty")
		}
		return value, nil
	}
	if !envName.MatchString(name) {
		return "", errors.New("is not a name; write ${NAME} or ${file:NAME}")
	}
	value, ok := r.around.env(name)
	switch {
	case !ok:
		return "", errors.New("the environment has no such variable")
	case value == "":
		return "", errors.New("the environment variable is empty")
	}
	return value, nil
}

// pem reads the file that is named, now: a certificate that is missing or broken
// is a mistake of the configuration, and not of the first send.
func (r *configReader) pem(n ast.Node, into *rail.PEM, key string) {
	file, ok := r.text(n, key)
	if !ok {
		return
	}
	text, err := r.around.secret(file)
	if err != nil {
		r.foreign(key, strconv.Quote(file)+" "+err.Error())
	}
	*into = rail.NewPEM(file, text)
}
