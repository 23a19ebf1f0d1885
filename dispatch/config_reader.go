package dispatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"holdfast/dispatch/rail"
)

// configReader puts a YAML text into the types of the file. It is stricter than
// a YAML decoder and goes on after a mistake, so that one look shows them all.
type configReader struct {
	*findings
	around surroundings
}

// readsItself is a value that is written in more than one way.
type readsItself interface {
	readConfig(r *configReader, n ast.Node, key string)
}

// document reads the whole text; not ok if it is no YAML.
func (r *configReader) document(text []byte) (written configText, ok bool) {
	root, line, err := parseYAML(text)
	switch {
	case err != nil:
		r.at(line, "", "%v", err)
	case root != nil:
		r.lines[""] = lineOf(root)
		r.read(root, &written, "")
	}
	r.misread = len(r.list)
	return written, err == nil
}

// parseYAML reads the one document of a text; nil if it is empty.
func parseYAML(text []byte) (root ast.Node, line int, err error) {
	if len(text) > configLimit {
		return nil, 0, fmt.Errorf("is larger than %d KiB", configLimit>>10)
	}
	// As some editors save it. The parser would count lines otherwise.
	text = bytes.ReplaceAll(bytes.TrimPrefix(text, []byte("\uFEFF")), []byte("\r\n"), []byte("\n"))
	for i, l := range strings.Split(string(text), "\n") {
		if !utf8.ValidString(l) || strings.ContainsFunc(l, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
			return nil, i + 1, errors.New("holds bytes that are not text in UTF-8")
		}
	}
	defer func() { // the parser is not ours, and a broken file must not end a server that reloads
		if p := recover(); p != nil {
			root, line, err = nil, 0, errors.New("cannot be read as YAML")
		}
	}()
	file, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey()) // duplicates are reported with their key
	if e, ok := errors.AsType[*yaml.SyntaxError](err); ok {
		return nil, e.Token.Position.Line, fmt.Errorf("is not YAML: %s", strings.ReplaceAll(e.Message, "\t", `\t`))
	}
	if err != nil {
		return nil, 0, errors.New("cannot be read as YAML")
	}
	for _, d := range file.Docs {
		switch {
		case d.Body == nil:
		case root != nil:
			return nil, lineOf(d.Body), errors.New("holds a second document; write one")
		default:
			root = d.Body
		}
	}
	return root, 0, nil
}

func lineOf(n ast.Node) int {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 0
	}
	return n.GetToken().Position.Line
}

// read puts a node into what into points to.
func (r *configReader) read(n ast.Node, into any, key string) {
	if into, ok := into.(*any); ok { // where null is a value too
		*into = r.any(n, key)
		return
	}
	if r.refused(n, key) {
		return
	}
	switch into := into.(type) {
	case readsItself:
		into.readConfig(r, n, key)
		return
	case *rail.Secret:
		r.secret(n, into, key)
		return
	case *rail.PEM:
		r.pem(n, into, key)
		return
	case *rail.Duration:
		r.duration(n, into, key)
		return
	}
	v := reflect.ValueOf(into).Elem()
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		r.read(n, v.Interface(), key)
	case reflect.Struct:
		r.fields(n, v, key)
	case reflect.Map:
		r.mapping(n, v, key)
	case reflect.Slice:
		r.sequence(n, v, key)
	case reflect.String:
		if s, ok := r.text(n, key); ok {
			v.SetString(s)
		}
	case reflect.Bool:
		switch s, written := r.scalar(n, key); {
		case s == "true" || s == "false":
			v.SetBool(s == "true")
		case written != "":
			r.add(key, "%s is not true or false", written)
		}
	case reflect.Int, reflect.Int64:
		r.whole(n, v, key)
	default:
		panic(fmt.Sprintf("the configuration has no way to read %s", v.Type())) // a type of this program
	}
}

// refused reports what YAML has and this file has not.
func (r *configReader) refused(n ast.Node, key string) bool {
	switch n.(type) {
	case nil, *ast.NullNode:
		r.add(key, "is empty; give it a value or leave it out")
	case *ast.AnchorNode, *ast.AliasNode:
		r.add(key, "anchors and aliases are not read here; write the value out")
	case *ast.TagNode:
		r.add(key, "tags are not read here; write the value without one")
	case *ast.MappingNode, *ast.SequenceNode, *ast.StringNode, *ast.LiteralNode,
		*ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return false
	default:
		r.add(key, "cannot be read; write a value, a list or a mapping")
	}
	return true
}

// members walks a mapping. Each key must be text, and be there once.
func (r *configReader) members(n ast.Node, key string) iter.Seq2[string, ast.Node] {
	return func(yield func(string, ast.Node) bool) {
		mapping, ok := n.(*ast.MappingNode)
		if !ok {
			r.add(key, "must be a mapping of keys to values")
			return
		}
		seen := map[string]int{}
		for _, m := range mapping.Values {
			name, line := "", lineOf(m.Key)
			switch k := m.Key.(type) {
			case *ast.StringNode:
				name = k.Value
			case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
				name = k.GetToken().Value
			default:
				r.at(line, key, "holds a key that is not plain text")
				continue
			}
			here := below(key, name)
			switch first, double := seen[name]; {
			case double:
				r.at(line, here, "is given twice; line %d has it already", first)
				continue
			case strings.Contains(name, "${"):
				r.at(line, here, "${…} is filled in in values only, not in keys")
				continue
			}
			seen[name], r.lines[here] = line, line
			if !yield(name, m.Value) {
				return
			}
		}
	}
}

func below(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

func (r *configReader) fields(n ast.Node, v reflect.Value, key string) {
	fields := map[string]reflect.Value{}
	var names []string
	var collect func(v reflect.Value)
	collect = func(v reflect.Value) {
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name := f.Tag.Get("yaml")
			switch {
			case f.Anonymous:
				collect(v.Field(i))
			case name != "" && name != "-":
				fields[name] = v.Field(i)
				names = append(names, name)
			}
		}
	}
	collect(v)
	for name, value := range r.members(n, key) {
		here := below(key, name)
		field, ok := fields[name]
		if !ok {
			r.add(here, "%s", unknownKey(name, names))
			continue
		}
		r.read(value, field.Addr().Interface(), here)
	}
}

// unknownKey says which key may have been meant, or which there are.
func unknownKey(name string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		if d := editDistance(strings.ToLower(name), k); d < least {
			best, least = k, d
		}
	}
	if best != "" {
		return "unknown key; did you mean " + best + "?"
	}
	return "unknown key; there are " + strings.Join(known, ", ")
}

// editDistance counts the letters to change, add or remove between two words.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

func (r *configReader) mapping(n ast.Node, v reflect.Value, key string) {
	v.Set(reflect.MakeMap(v.Type()))
	for name, value := range r.members(n, key) {
		member := reflect.New(v.Type().Elem())
		r.read(value, member.Interface(), below(key, name))
		v.SetMapIndex(reflect.ValueOf(name), member.Elem())
	}
}

func (r *configReader) sequence(n ast.Node, v reflect.Value, key string) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		r.add(key, "must be a list, such as [a, b]")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(list.Values), len(list.Values)))
	for i, value := range list.Values {
		here := fmt.Sprintf("%s[%d]", key, i)
		r.lines[here] = lineOf(value)
		r.read(value, v.Index(i).Addr().Interface(), here)
	}
}

// scalar gives the text of a plain value with ${…} put in, and how it stands in
// the file, for errors. Both are empty if it is none, which is then reported.
func (r *configReader) scalar(n ast.Node, key string) (value, written string) {
	switch n := n.(type) {
	case *ast.MappingNode, *ast.SequenceNode:
		r.add(key, "must be a single value, not a list or a mapping")
		return "", ""
	case *ast.StringNode:
		value = n.Value
	case *ast.LiteralNode:
		value = n.Value.Value
	default:
		value = n.GetToken().Value
	}
	written = strconv.Quote(value)
	filled, ok := r.fill(value, key)
	if !ok {
		return "", ""
	}
	return filled, written
}

// isQuoted tells "5" from 5.
func isQuoted(n ast.Node) bool {
	t := n.GetToken()
	_, block := n.(*ast.LiteralNode)
	return block || t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType
}

func (r *configReader) text(n ast.Node, key string) (string, bool) {
	value, written := r.scalar(n, key)
	if written == "" {
		return "", false
	}
	if _, ok := plain(n).(string); !ok {
		r.add(key, "%s is not text; put it into quotes", n.GetToken().Value)
		return "", false
	}
	return value, true
}

// secret never shows what it read, also where no ${…} hides it.
func (r *configReader) secret(n ast.Node, into *rail.Secret, key string) {
	value, written := r.scalar(n, key)
	if written == "" {
		return
	}
	if _, ok := plain(n).(string); !ok {
		r.add(key, "is not text; put it into quotes")
		return
	}
	*into = rail.NewSecret(value)
	if _, substituted := r.filled[key]; !substituted {
		*into = into.AsWritten()
	}
}

func (r *configReader) duration(n ast.Node, into *rail.Duration, key string) {
	value, written := r.scalar(n, key)
	if written == "" {
		return
	}
	at := &token.Position{Line: lineOf(n)}
	if into.UnmarshalYAML(ast.String(token.String(value, value, at))) != nil {
		r.add(key, "%s is not a duration such as 10s", written)
	}
}

var (
	wholeNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	jsonNumber  = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
)

func (r *configReader) whole(n ast.Node, v reflect.Value, key string) {
	value, written := r.scalar(n, key)
	if written == "" {
		return
	}
	number, err := strconv.ParseInt(value, 10, v.Type().Bits())
	_, substituted := r.filled[key]
	switch {
	case !wholeNumber.MatchString(value) || isQuoted(n) && !substituted:
		r.add(key, "%s is not a whole number", written)
	case err != nil:
		r.add(key, "%s is too large a number", written)
	default:
		v.SetInt(number)
	}
}

// plain is a single value as its spelling says, before anything is put in. A
// number that JSON would not know is nil, as null is.
func plain(n ast.Node) any {
	if s, ok := n.(*ast.StringNode); ok {
		if !isQuoted(n) && jsonNumber.MatchString(s.Value) {
			return json.Number(s.Value) // 1e5, and what is too large for the parser
		}
		return s.Value
	}
	switch n := n.(type) {
	case *ast.LiteralNode:
		return n.Value.Value
	case *ast.BoolNode:
		return n.Value
	case *ast.IntegerNode, *ast.FloatNode:
		if jsonNumber.MatchString(n.GetToken().Value) {
			return json.Number(n.GetToken().Value)
		}
	}
	return nil
}

// natural is a single value without anything put in.
func (r *configReader) natural(n ast.Node, key string) any {
	if _, null := n.(*ast.NullNode); null || n == nil {
		return nil
	}
	if r.refused(n, key) {
		return nil
	}
	v := plain(n)
	if v == nil {
		r.add(key, "%q is not a number as JSON writes it; write plain decimal digits", n.GetToken().Value)
	}
	return v
}

// any reads a value of whatever kind, as [ledger.ParseStrict] would.
func (r *configReader) any(n ast.Node, key string) any {
	switch n := n.(type) {
	case *ast.MappingNode:
		object := map[string]any{}
		for name, value := range r.members(n, key) {
			object[name] = r.any(value, below(key, name))
		}
		return object
	case *ast.SequenceNode:
		array := []any{}
		for i, value := range n.Values {
			here := fmt.Sprintf("%s[%d]", key, i)
			r.lines[here] = lineOf(value)
			array = append(array, r.any(value, here))
		}
		return array
	}
	v := r.natural(n, key)
	if s, ok := v.(string); ok {
		v, _ = r.fill(s, key)
	}
	return v
}

// sortedKeys walks maps in one order, so that equal files give equal errors.
func sortedKeys[V any](m map[string]V) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
