package rail

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/store/ledger"
)

// placeholders are the names a path may hold in braces, beside JSON Pointers
// into the payload such as {/charge}.
var placeholders = []string{"order_id", "operation_id", "provider_key", "reference", "receipt_id", "first_sent_at"}

// halfEscape finds a % that is not the beginning of an escape.
var halfEscape = regexp.MustCompile(`%([^0-9A-Fa-f]|.[^0-9A-Fa-f]|.?$)`)

// errNothingToAsk says that the operation lacks what a path wants.
var errNothingToAsk = errors.New("is empty on this operation")

// template is a path with placeholders, such as /payments?reference={order_id}.
type template struct {
	text  string
	parts []part
}

type part struct {
	literal string
	name    string // a placeholder, or a JSON Pointer
	query   bool   // stands behind the question mark
	quoted  bool   // stands in a text of the provider's own query language
}

// parseTemplate reads a path. Everything that could change which place it
// leads to is refused here, so that a value can only fill its own place.
func parseTemplate(text string) (template, error) {
	t := template{text: text}
	path, _, _ := strings.Cut(text, "?")
	switch {
	case !strings.HasPrefix(text, "/"):
		return t, errors.New("must begin with /")
	case strings.HasPrefix(text, "//"):
		return t, errors.New("begins with //, which names another host")
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return t, errors.New("holds a space, a control character or a letter that is not ASCII; write it %-escaped")
	case strings.ContainsAny(text, `#\`):
		return t, errors.New(`holds # or \`)
	case hasDotSegment(path):
		return t, errors.New("holds a . or .. segment")
	case halfEscape.MatchString(text):
		return t, errors.New("holds a % without its two hexadecimal digits") // a value could complete it
	}
	query := false
	for rest := text; rest != ""; {
		open := strings.IndexAny(rest, "{}")
		if open < 0 {
			open = len(rest)
		}
		if open > 0 {
			query = query || strings.Contains(rest[:open], "?")
			t.parts = append(t.parts, part{literal: unsafeInURL.Replace(rest[:open])})
			rest = rest[open:]
			continue
		}
		end := strings.IndexByte(rest, '}')
		if rest[0] == '}' || end < 0 {
			return t, errors.New("has a brace without its partner")
		}
		name := rest[1:end]
		if !slices.Contains(placeholders, name) && (name == "" || checkPointer(name) != nil) {
			return t, fmt.Errorf("{%s} is not one of {%s} or a JSON Pointer into the payload", name, strings.Join(placeholders, "}, {"))
		}
		before := text[:len(text)-len(rest)]
		t.parts = append(t.parts, part{name: name, query: query, quoted: query && hasQuoteAtEnd(before)})
		rest = rest[end+1:]
	}
	return t, nil
}

// unsafeInURL escapes what people write into a path all the same, such as the
// brackets of created[gte].
var unsafeInURL = strings.NewReplacer("[", "%5B", "]", "%5D", `"`, "%22", "<", "%3C", ">", "%3E", "^", "%5E", "`", "%60", "|", "%7C")

func hasQuoteAtEnd(text string) bool {
	return slices.ContainsFunc([]string{"'", `"`, "%27", "%22"}, func(quote string) bool { return strings.HasSuffix(text, quote) })
}

func (t template) given() bool { return t.text != "" }

// asksOnly reports whether no other placeholder is used.
func (t template) asksOnly(name string) bool {
	return t.asks(name) && !slices.ContainsFunc(t.parts, func(p part) bool { return p.name != "" && p.name != name })
}

// asks reports whether the placeholder is used.
func (t template) asks(names ...string) bool {
	return slices.ContainsFunc(t.parts, func(p part) bool { return slices.Contains(names, p.name) })
}

// byID reports whether the path itself names one record, so that "not there"
// is an answer about that record.
func (t template) byID() bool {
	return slices.ContainsFunc(t.parts, func(p part) bool { return p.name != "" && !p.query })
}

// fill puts the operation's values in, each escaped for its position.
func (t template) fill(o ledger.Operation) (string, error) {
	var b strings.Builder
	for _, p := range t.parts {
		if p.name == "" {
			b.WriteString(p.literal)
			continue
		}
		value, err := valueFor(p.name, o)
		if err != nil {
			return "", fmt.Errorf("{%s} %w", p.name, err)
		}
		if p.quoted && strings.ContainsAny(value, `'"\`) {
			return "", fmt.Errorf("{%s} holds a quotation mark, which would end the text that is searched for", p.name)
		}
		if p.query {
			b.WriteString(url.QueryEscape(value))
		} else {
			b.WriteString(url.PathEscape(value))
		}
	}
	return b.String(), nil
}

func valueFor(name string, o ledger.Operation) (string, error) {
	var value string
	switch name {
	case "order_id":
		value = o.OrderID
	case "operation_id":
		value = o.OperationID
	case "provider_key":
		value = o.ProviderKey
	case "reference":
		value = o.Terms.Reference
	case "receipt_id":
		if o.Receipt != nil {
			value = o.Receipt.ID
		}
	case "first_sent_at":
		value = firstSentAt(o)
	default:
		var err error
		if value, err = payloadValue(o.Payload, name); err != nil {
			return "", err
		}
	}
	switch {
	case value == "":
		return "", errNothingToAsk // an empty value would ask about everything, or act on the whole list
	case hasControl(value):
		return "", errors.New("holds a control character")
	case hasDotSegment(strings.ReplaceAll(value, `\`, "/")):
		return "", errors.New("holds a . or .. segment") // also behind %2F, which some servers undo
	}
	return value, nil
}

// clocksApart is how far the provider's clock may be from ours.
const clocksApart = 5 * time.Minute

// firstSentAt is the moment, in Unix seconds, before which the provider cannot
// have made our record. What a restore put into quarantine may have been sent
// in the time that was lost, but not before it was registered; of anything else
// without a mark nothing is known, and empty asks nothing.
func firstSentAt(o ledger.Operation) string {
	at := o.FirstMarkAt
	if at == 0 && o.Quarantined {
		at = o.CreatedAt
	}
	if at == 0 {
		return ""
	}
	return strconv.FormatInt(time.UnixMilli(at).Add(-clocksApart).Unix(), 10)
}

func payloadValue(payload []byte, pointer string) (string, error) {
	v, err := ledger.ParseStrict(payload)
	if err != nil {
		return "", fmt.Errorf("cannot be read from the payload: %w", err)
	}
	found, ok := ledger.Get(v, pointer)
	if !ok {
		return "", errNothingToAsk
	}
	if text, ok := found.(string); ok {
		return text, nil
	}
	text, err := ledger.Canonical(found)
	if err != nil || !isNumber(text) {
		return "", errors.New("is neither a string nor a number")
	}
	return string(text), nil
}

func isNumber(json []byte) bool {
	return len(json) > 0 && (json[0] == '-' || '0' <= json[0] && json[0] <= '9')
}

func hasDotSegment(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "/"), func(segment string) bool {
		plain := strings.ReplaceAll(strings.ToLower(segment), "%2e", ".")
		return plain == "." || plain == ".."
	})
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || 0x7f <= r && r < 0xa0 })
}

// checkPointer checks a JSON Pointer (RFC 6901) that must lead somewhere.
func checkPointer(pointer string) error {
	if !strings.HasPrefix(pointer, "/") {
		return fmt.Errorf("%q is not a JSON Pointer; it begins with /", pointer)
	}
	if hasControl(pointer) {
		return errors.New("holds a control character")
	}
	for rest := pointer; ; {
		i := strings.IndexByte(rest, '~')
		if i < 0 {
			return nil
		}
		if i+1 >= len(rest) || rest[i+1] != '0' && rest[i+1] != '1' {
			return fmt.Errorf("%q is not a JSON Pointer; a ~ is written ~0", pointer)
		}
		rest = rest[i+2:]
	}
}
