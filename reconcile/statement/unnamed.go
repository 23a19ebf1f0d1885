package statement

import (
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"holdfast/dispatch/rail"
)

// Unnamed is a table whose columns nobody named. A person can: each becomes an
// answer under "columns." and the name, or they are written down once under
// statement.columns of the rail. To everybody else it is a Refusal.
type Unnamed struct {
	*Refusal
	Titles   []string   // of the widest of the first lines, which may be the header
	Rows     [][]string // the first ones below it
	Headless bool       // that line is a line already: it has a date in it, or a person said so
	Holds    []string   // what each column was said to hold so far
	Trouble  string     // with what was said; empty where nothing was
}

func (u *Unnamed) Unwrap() error { return u.Refusal }

// columnKey begins the key of an answer that names a column.
const columnKey = "columns."

// sampleRows is how many rows are shown, for a person to see what a column is.
const sampleRows = 3

// named reports whether a person named columns of this file.
func (o Options) named() bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(o.Answers)), func(key string) bool { return strings.HasPrefix(key, columnKey) })
}

// name puts a person's name of a column where the configuration names none.
func (o *Options) name(column, title string) {
	columns := maps.Clone(o.Mapping.Columns) // the configuration's own is shared
	if columns == nil {
		columns = map[string]string{}
	}
	columns[column] = title
	o.Mapping.Columns = columns
}

// unnamed asks for the names of the columns; key and trouble say what is wrong
// with those that were given.
func (o Options) unnamed(text []byte, key, trouble string) error {
	u := &Unnamed{}
	u.Titles, u.Rows = widest(text, o.Mapping.Delimiter)
	u.Headless = o.Mapping.Header == "none" || slices.ContainsFunc(u.Titles, func(cell string) bool { _, err := readWritten(cell); return err == nil })
	u.Holds = make([]string, len(u.Titles))
	for _, name := range rail.StatementColumns {
		for i := range u.Titles {
			if title := o.Answers[columnKey+name]; title != "" && strings.EqualFold(title, u.called(i, o.Mapping.Header == "none")) {
				u.Holds[i] = name
			}
		}
	}
	if trouble != "" {
		u.Refusal = refuse(0, "", "%s %s.", key, strings.TrimSuffix(trouble, "."))
		u.Trouble = u.Sentence
	} else {
		u.Refusal = refuse(0, "", "No reader knows this file. These columns were seen: %s. Name them under statement.columns of the rail %s.", (&noHeader{u.Titles}).columns(), o.Rail)
	}
	return u
}

// widest is the first of the widest lines near the top, and the rows below it.
// What stands above a table is filled up with empty cells by some spreadsheets, so
// a line of little else gives way to the next.
func widest(text []byte, delimiter string) (titles []string, rows [][]string) {
	try := []string{delimiter}
	if delimiter == "" {
		try = []string{",", ";", "tab", "|"}
	}
	for _, name := range try {
		all := firstRows(text, delimiters[name])
		for i, cells := range all {
			if len(cells) > len(titles) || len(cells) == len(titles) && !mostlyFilled(titles) && mostlyFilled(cells) {
				titles, rows = cells, all[i+1:min(i+1+sampleRows, len(all))]
			}
		}
	}
	return titles, rows
}

func mostlyFilled(cells []string) bool {
	empty := 0
	for _, c := range cells {
		if c == "" {
			empty++
		}
	}
	return 2*empty < len(cells)
}

// firstRows are the rows in which a header is looked for, and a few more.
func firstRows(text []byte, delimiter rune) (all [][]string) {
	r := newReader(lineEnds(text), delimiter)
	for range headerDepth + sampleRows {
		cells, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || len(cells) > widthLimit { // stray quotes above a table say nothing about it
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		all = append(all, cells)
	}
	return all
}

// Answers are those that name the columns of the file as a person did: by the
// place of each column, what it holds. Where the first line is no header, columns
// are called by their number.
func (u *Unnamed) Answers(holds []string, headless bool) (answers map[string]string, sentence string) {
	answers = map[string]string{}
	if headless {
		answers["header"] = "none"
	}
	for i, name := range holds[:min(len(holds), len(u.Titles))] {
		title := u.called(i, headless)
		switch {
		case name == "":
		case !slices.Contains(rail.StatementColumns, name):
			return nil, "There is no such column as " + strconv.Quote(short(name)) + "."
		case title == "":
			return nil, "A column without a title cannot be named. Give it one in the file."
		case answers[columnKey+name] != "":
			return nil, "Two columns hold the " + name + ". Choose one of them."
		default:
			answers[columnKey+name] = title
		}
	}
	if len(answers) == 0 || headless && len(answers) == 1 {
		return nil, "Say of each column that counts what it holds."
	}
	return answers, ""
}

// called is what an answer calls a column.
func (u *Unnamed) called(i int, headless bool) string {
	if headless {
		return strconv.Itoa(i + 1)
	}
	return u.Titles[i]
}

// NamesColumns reports whether answers name the columns of a file.
func NamesColumns(answers map[string]string) bool { return Options{Answers: answers}.named() }
