package dispatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"holdfast/dispatch/rail"
)

// configText is the file as it is written, key for key. What is left out is nil
// or empty here; defaults are put in afterwards.
type configText struct {
	tenantText
	Tenants map[string]tenantText `yaml:"tenants"`
	Timing  struct {
		Lease      rail.Duration `yaml:"lease"`
		UnknownFor rail.Duration `yaml:"unknown_for"`
		TakeBack   rail.Duration `yaml:"take_back"`
	} `yaml:"timing"`
	Limits struct {
		RequestsPerSecond *int `yaml:"requests_per_second"`
	} `yaml:"limits"`
	Jobs map[string]string `yaml:"jobs"`
}

type tenantText struct {
	Rails       map[string]rail.Config `yaml:"rails"`
	ActionTypes map[string]actionText  `yaml:"action_types"`
	Policy      []rowText              `yaml:"policy"`
	Currencies  map[string]int         `yaml:"currencies"`
	Notify      *notifyText            `yaml:"notify"`
	Runs        struct {
		MaxAttempts *int          `yaml:"max_attempts"`
		MaxElapsed  rail.Duration `yaml:"max_elapsed"`
	} `yaml:"runs"`
}

type actionText struct {
	Rail    string     `yaml:"rail"`
	Effect  string     `yaml:"effect"`
	Schema  schemaText `yaml:"schema"`
	Overlap struct {
		Mode   string        `yaml:"mode"`
		Window rail.Duration `yaml:"window"`
	} `yaml:"overlap"`
	Repeatable bool          `yaml:"repeatable"`
	Cacheable  rail.Duration `yaml:"cacheable"`
	Refund     *struct {
		ActionType string         `yaml:"action_type"`
		Payload    map[string]any `yaml:"payload"`
	} `yaml:"refund"`
	Mode string `yaml:"mode"`
	rail.Override
}

type rowText struct {
	Name           string        `yaml:"name"`
	When           *whenText     `yaml:"when"`
	Then           string        `yaml:"then"`
	Of             oneOrMore     `yaml:"of"`
	Approvals      *int          `yaml:"approvals"`
	StepUp         bool          `yaml:"step_up"`
	ReasonRequired bool          `yaml:"reason_required"`
	Expires        rail.Duration `yaml:"expires"`
	Bulk           *struct {
		UpTo *int64 `yaml:"up_to"`
	} `yaml:"bulk"`
}

type whenText struct {
	ActionType   oneOrMore `yaml:"action_type"`
	Effect       oneOrMore `yaml:"effect"`
	Rail         oneOrMore `yaml:"rail"`
	Agent        oneOrMore `yaml:"agent"`
	RunID        oneOrMore `yaml:"run_id"`
	Recipient    oneOrMore `yaml:"recipient"`
	Currency     oneOrMore `yaml:"currency"`
	AmountOver   *int64    `yaml:"amount_over"`
	RecipientNew *bool     `yaml:"recipient_new"`
	SpentOver    *struct {
		Amount   *int64        `yaml:"amount"`
		Currency string        `yaml:"currency"`
		Window   rail.Duration `yaml:"window"`
		Per      string        `yaml:"per"`
	} `yaml:"spent_over"`
	Hours string `yaml:"hours"`
}

// oneOrMore is a list that may be written as its only member.
type oneOrMore []string

func (o *oneOrMore) readConfig(r *configReader, n ast.Node, key string) {
	if _, isList := n.(*ast.SequenceNode); isList {
		r.read(n, (*[]string)(o), key)
		return
	}
	var one string
	r.read(n, &one, key)
	*o = oneOrMore{one}
}

// schemaText is a JSON Schema: the text of a file, or an inline mapping as JSON.
// Nothing is put in for ${…} inside it: a schema is shown to agents.
type schemaText struct {
	json []byte
	file string // empty: inline
}

func (s *schemaText) readConfig(r *configReader, n ast.Node, key string) {
	if mapping, ok := n.(*ast.MappingNode); ok {
		var b bytes.Buffer
		r.writeJSON(&b, mapping, key)
		s.json = b.Bytes()
		return
	}
	r.read(n, &s.file, key)
	if s.file == "" {
		return
	}
	file := path.Clean(filepath.ToSlash(s.file))
	if !fs.ValidPath(file) {
		r.foreign(key, strconv.Quote(s.file)+" leads out of the configuration's directory; put the schema beside it")
		return
	}
	text, err := r.around.beside(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.foreign(key, strconv.Quote(s.file)+" is not there; put the schema beside the configuration")
	case err != nil:
		r.foreign(key, strconv.Quote(s.file)+" "+bare(err).Error())
	}
	s.json = text
}

// writeJSON writes YAML as JSON: names stay in their order, numbers as written.
func (r *configReader) writeJSON(b *bytes.Buffer, n ast.Node, key string) {
	switch n := n.(type) {
	case *ast.MappingNode:
		b.WriteByte('{')
		first := true
		for name, value := range r.members(n, key) {
			if !first {
				b.WriteByte(',')
			}
			first = false
			b.Write(quoteJSON(name))
			b.WriteByte(':')
			r.writeJSON(b, value, key+"."+name)
		}
		b.WriteByte('}')
	case *ast.SequenceNode:
		b.WriteByte('[')
		for i, value := range n.Values {
			if i > 0 {
				b.WriteByte(',')
			}
			member := key + "." + strconv.Itoa(i)
			r.lines[member] = lineOf(value)
			r.writeJSON(b, value, member)
		}
		b.WriteByte(']')
	default:
		switch v := r.natural(n, key).(type) {
		case json.Number:
			b.WriteString(v.String())
		case string:
			b.Write(quoteJSON(v))
		case bool:
			b.WriteString(strconv.FormatBool(v))
		default:
			b.WriteString("null")
		}
	}
}

func quoteJSON(s string) []byte {
	text, err := json.Marshal(strings.ToValidUTF8(s, "\uFFFD"))
	if err != nil {
		panic(err) // a string always has a JSON form
	}
	return text
}
