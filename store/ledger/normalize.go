package ledger

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/unicode/norm"
)

// Normal is a payload in the form in which it is compared, approved and sent.
type Normal struct {
	Canonical   []byte // RFC 8785 of {action_type, payload}, without volatile members
	Payload     []byte // RFC 8785 of the payload, with volatile members as first received
	Fingerprint string // of Canonical
	Terms       Terms
}

// A payload can be wrong in as many places as it is long; nobody reads more.
const maxFieldErrors = 100

// Normalize brings a payload, as ParseStrict read it, into its normal form, or
// says all that is wrong with it. What is judged by the schema is the normal
// form, so what is sent is always valid, and normalising it again changes
// nothing. The payload itself is left as it is.
//
// These are the rules that hf1 stands for, by x-normalize:
//
//   - currency: upper case, and a code that is known. x-role currency implies it.
//   - decimal: no zeros that say nothing; an amount has exactly the digits of
//     its currency.
//   - email: no space around, the domain in lower case.
//   - trim, lowercase, nfc: what they say.
//
// Without x-normalize, a format date-time becomes the same instant in UTC, and
// every other string becomes NFC. Recipients, accounts and references stay as
// they came: two that only look alike may be two.
func (t *ActionType) Normalize(payload any) (Normal, []FieldError) {
	n := normalizer{currencies: t.currencies}
	n.names(payload, t.root, "")
	normal, ok := n.value(payload, t.root, "").(map[string]any)
	if !ok {
		return Normal{}, []FieldError{{"", "must be an object"}}
	}
	terms := n.terms(normal, t.roles)
	if wrong := n.validate(t.validator, normal); len(wrong) > 0 {
		return Normal{}, wrong
	}
	covered := normal
	if t.volatile {
		covered, _ = withoutVolatile(normal, t.root).(map[string]any)
	}
	canonical, err := Canonical(map[string]any{"action_type": t.Name, "payload": covered})
	if err != nil {
		return Normal{}, []FieldError{{"", err.Error()}}
	}
	sent, err := Canonical(normal)
	if err != nil {
		return Normal{}, []FieldError{{"", err.Error()}}
	}
	return Normal{canonical, sent, Fingerprint(canonical), terms}, nil
}

// normalizer walks a payload along its shape and gathers what is wrong.
type normalizer struct {
	currencies Currencies
	wrong      []FieldError
}

func (n *normalizer) refuse(at, message string) {
	n.wrong = append(n.wrong, FieldError{at, message})
}

// names refuses what the schema does not know by name, in volatile members too.
// A schema that says nothing about other members has no others.
func (n *normalizer) names(v any, s *shape, at string) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			child, known := s.member(name)
			if !known {
				n.refuse(under(at, name), unknownName(name, s.names))
			} else if child != nil {
				n.names(member, child, under(at, name))
			}
		}
	case []any:
		for i, element := range v {
			if child := s.element(i); child != nil {
				n.names(element, child, under(at, strconv.Itoa(i)))
			}
		}
	}
}

// value gives the normal form; what it does not change it may share with v.
func (n *normalizer) value(v any, s *shape, at string) any {
	if s != nil && s.volatile {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, member := range v {
			child, _ := s.member(name)
			object[name] = n.value(member, child, under(at, name))
		}
		return object
	case []any:
		array := make([]any, len(v))
		for i, element := range v {
			array[i] = n.value(element, s.element(i), under(at, strconv.Itoa(i)))
		}
		return array
	case string:
		return n.text(v, s, at)
	case json.Number:
		text, ok := exactNumber(v.String())
		if !ok {
			n.refuse(at, "a double cannot hold this number exactly; send it as a string")
		}
		return json.Number(text)
	case nil, bool:
	default:
		n.refuse(at, "is not a JSON value")
	}
	return v
}

var exactText = []string{roleRecipient, roleAccount, roleReference}

func (n *normalizer) text(text string, s *shape, at string) string {
	if s == nil {
		return norm.NFC.String(text)
	}
	if s.instant {
		return n.instant(text, at)
	}
	free := s.normalize == "nfc" || !slices.Contains(exactText, s.role)
	if free {
		text = norm.NFC.String(text)
	}
	switch s.normalize {
	case "currency":
		return n.currency(text, at)
	case "decimal":
		if s.role != roleAmount { // an amount needs its currency first
			return n.decimal(text, at)
		}
	case "email":
		text = strings.TrimSpace(text)
		if i := strings.LastIndexByte(text, '@'); i >= 0 {
			text = text[:i] + lowerASCII(text[i:])
		}
	case "trim":
		text = strings.TrimSpace(text)
	case "lowercase":
		if text = strings.ToLower(text); free {
			text = norm.NFC.String(text)
		}
	}
	return text
}

// Read gives a text in the form in which a payload would hold it as the member
// of that role, so that a name compares equal before and after.
func (t *ActionType) Read(role, text string) string {
	s := t.root.find(t.roles[role])
	if s == nil {
		return text
	}
	n := &normalizer{currencies: t.currencies}
	return n.text(text, s, t.Pointer(role))
}

// Only ASCII letters change case where a code or a domain is meant: to Unicode,
// the Kelvin sign is a capital k, and a long s is a small S.
func upperASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			r -= 'a' - 'A'
		}
		return r
	}, s)
}

func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, s)
}

func (n *normalizer) currency(text, at string) string {
	code := upperASCII(text)
	if _, ok := n.currencies.Digits(code); !ok {
		n.refuse(at, "unknown currency; send an ISO 4217 code like EUR, or have the code configured")
	}
	return code
}

func (n *normalizer) decimal(text, at string) string {
	unsigned, negative := strings.CutPrefix(text, "-")
	whole, fraction, point := strings.Cut(unsigned, ".")
	if !isDigits(whole) || point && !isDigits(fraction) {
		n.refuse(at, "must be a plain decimal such as 1250.00: digits and at most one point, nothing else")
		return text
	}
	whole = orElse(strings.TrimLeft(whole, "0"), "0")
	if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
		whole += "." + fraction
	}
	if negative && whole != "0" {
		return "-" + whole
	}
	return whole
}

// A fraction finer than a nanosecond would be cut off, and two instants would
// become one.
var dateTime = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

func (n *normalizer) instant(text, at string) string {
	upper := upperASCII(text)
	instant, err := time.Parse(time.RFC3339Nano, upper)
	instant = instant.UTC()
	if err != nil || !dateTime.MatchString(upper) || instant.Year() < 0 || instant.Year() > 9999 {
		n.refuse(at, "must be a date and time with its offset, like 2026-01-01T00:00:00Z or 2026-01-01T01:00:00+01:00")
		return text
	}
	return instant.Format(time.RFC3339Nano)
}

// terms reads the members that have a role, and gives a decimal amount the
// digits of its currency.
func (n *normalizer) terms(payload map[string]any, roles map[string][]string) (terms Terms) {
	for role, into := range map[string]*string{
		roleCurrency: &terms.Currency, roleRecipient: &terms.Recipient, roleReference: &terms.Reference,
		roleAccount: &terms.Account, roleCustomer: &terms.Customer, roleRefundOf: &terms.RefundOf,
	} {
		at := joinPointer(roles[role])
		if at == "" {
			continue // no property has the role
		}
		switch v, _ := Get(payload, at); v := v.(type) {
		case string:
			*into = v
			if strings.ContainsFunc(v, unicode.IsControl) {
				n.refuse(at, "contains a control character; leave it out")
			}
		case json.Number:
			*into = v.String()
		}
	}
	n.amount(payload, roles, &terms)
	return terms
}

func (n *normalizer) amount(payload map[string]any, roles map[string][]string, terms *Terms) {
	at := joinPointer(roles[roleAmount])
	v, _ := Get(payload, at)
	if at == "" || v == nil {
		return
	}
	digits, known := n.currencies.Digits(terms.Currency)
	if !known {
		if terms.Currency == "" {
			n.refuse(joinPointer(roles[roleCurrency]), "is missing; an amount says nothing without its currency")
		}
		return // an unknown one was refused already
	}
	amount, err := int64(0), error(nil)
	switch v := v.(type) {
	case json.Number:
		amount, err = wholeAmount(v)
	case string:
		amount, err = ParseDecimal(v, digits)
	default:
		return // the schema refuses it
	}
	if err == nil && amount < 0 {
		err = errors.New("must not be negative; a refund is an action type of its own")
	}
	if err != nil {
		n.refuse(at, err.Error())
		return
	}
	terms.Amount, terms.HasAmount = amount, true
	if _, isText := v.(string); isText {
		if err := Set(payload, at, decimalString(amount, digits)); err != nil {
			n.refuse(at, err.Error())
		}
	}
}

func wholeAmount(n json.Number) (int64, error) {
	text, ok := exactNumber(n.String())
	if !ok || strings.Contains(text, ".") || strings.Contains(text, "e-") {
		return 0, errors.New("must be a whole number of minor units, without a fraction")
	}
	amount, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, errors.New("too large an amount")
	}
	return amount, nil
}

// validate adds what the schema says, except about places that were refused
// already: their reason is the better one.
func (n *normalizer) validate(schema *jsonschema.Schema, payload any) []FieldError {
	refused := map[string]bool{}
	for _, e := range n.wrong {
		refused[e.Pointer] = true
	}
	if e, ok := errors.AsType[*jsonschema.ValidationError](schema.Validate(payload)); ok {
		for _, f := range fieldErrors(e) {
			if !refused[f.Pointer] {
				n.wrong = append(n.wrong, f)
			}
		}
	}
	wrong := sortErrors(n.wrong)
	if len(wrong) > maxFieldErrors {
		wrong = append(wrong[:maxFieldErrors:maxFieldErrors], FieldError{"", "and more; these are the first"})
	}
	return wrong
}

// withoutVolatile leaves out the members that the fingerprint does not cover.
func withoutVolatile(v any, s *shape) any {
	if s == nil {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, member := range v {
			child, _ := s.member(name)
			if child == nil || !child.volatile {
				object[name] = withoutVolatile(member, child)
			}
		}
		return object
	case []any:
		array := make([]any, len(v))
		for i, element := range v {
			array[i] = withoutVolatile(element, s.element(i))
		}
		return array
	}
	return v
}
