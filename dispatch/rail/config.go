package rail

import (
	"maps"
	"strings"
)

// The adapters a configuration may name.
const (
	AdapterHTTP    = "http"
	AdapterSandbox = "sandbox"
	AdapterStripe  = "stripe"
	AdapterSMTP    = "smtp"
)

// Config is what stands under rails.NAME. What is left out is filled in by New.
type Config struct {
	Profile      string            `yaml:"profile"` // a ready-made one; what is written beside it stands in place of its part
	Adapter      string            `yaml:"adapter"`
	BaseURL      string            `yaml:"base_url"`
	Account      string            `yaml:"account"`
	AllowPrivate bool              `yaml:"allow_private"`
	Headers      map[string]Secret `yaml:"headers"`
	Auth         Auth              `yaml:"auth"`
	Mail         Mail              `yaml:"mail"`
	TLS          TLS               `yaml:"tls"`
	Timeout      Duration          `yaml:"timeout"`
	Dedupe       Dedupe            `yaml:"dedupe"`
	Send         Send              `yaml:"send"`
	Stamp        Stamp             `yaml:"stamp"`
	Answers      []AnswerRow       `yaml:"answers"`
	Receipt      Receipt           `yaml:"receipt"`
	Lookup       Lookup            `yaml:"lookup"`
	Limits       Limits            `yaml:"limits"`
	Breaker      BreakerConfig     `yaml:"breaker"`
	Quiet        Duration          `yaml:"quiet"`
	PendingFor   Duration          `yaml:"pending_for"`
	Statement    Statement         `yaml:"statement"`
	Events       Events            `yaml:"events"`

	// Digits tells how many minor-unit digits a currency has. It comes from
	// the program, not from the file, and is needed where amounts are decimal.
	Digits func(currency string) (digits int, known bool) `yaml:"-"`
}

// Dedupe says how the provider recognises a repeated request, and for how long.
type Dedupe struct {
	By        string   `yaml:"by"`     // key · natural · none
	Header    string   `yaml:"header"` // where the key goes: a header,
	Body      string   `yaml:"body"`   // or a JSON Pointer into the body
	Retention Duration `yaml:"retention"`
	// Scope is account (the default) where a key is remembered for the whole
	// account, and credential where another secret has keys of its own.
	Scope string `yaml:"scope"`
	// ReplayMarker is the header by which the provider says that an answer is
	// the kept one of an earlier request.
	ReplayMarker Marker `yaml:"replay_marker"`
}

// place is where the key stands in the request, as the ledger keeps it.
func (d Dedupe) place() string {
	switch {
	case d.Header != "":
		return "header " + strings.ToLower(d.Header)
	case d.Body != "":
		return "body " + d.Body
	}
	return ""
}

// Marker is a header of an answer that has a meaning.
type Marker struct {
	Header string `yaml:"header"`
	Value  string `yaml:"value"`
}

// Send is the request that acts.
type Send struct {
	Method   string `yaml:"method"`
	Path     string `yaml:"path"`
	Body     string `yaml:"body"`     // payload (the default: the approved payload and the stamp) · none
	Encoding string `yaml:"encoding"` // of the body: json (the default) · form
}

// Stamp is where the order_id goes, so that the record can be found by it.
type Stamp struct {
	Body   string `yaml:"body"`
	Header string `yaml:"header"`
}

// AnswerRow gives answers a meaning: the first row that fits wins.
type AnswerRow struct {
	Status []int             `yaml:"status"`
	Body   map[string]any    `yaml:"body"` // JSON Pointer: the scalar that must stand there, or a list of which one must
	Header map[string]string `yaml:"header"`
	Means  string            `yaml:"means"`
	// Receipt is where this answer holds the record, if elsewhere than the rail's
	// receipt says: a 409 with the object in it, or a record inside a wrapper.
	Receipt *Receipt `yaml:"receipt"`
}

// Receipt points at the members of the provider's record. What is named is
// compared with what was approved.
type Receipt struct {
	ID        string `yaml:"id"`
	Amount    string `yaml:"amount"`
	Currency  string `yaml:"currency"`
	Recipient string `yaml:"recipient"`
	Stamp     string `yaml:"stamp"`
	Reference string `yaml:"reference"`
	Amounts   string `yaml:"amounts"` // minor (the default) · decimal
}

// Lookup is how the provider is asked what happened.
type Lookup struct {
	Path               string         `yaml:"path"`
	Items              string         `yaml:"items"`          // where the list of records stands; empty: the answer is the record
	Next               *Next          `yaml:"next"`           // how a list goes on; without it, one that goes on proves nothing by silence
	ConfirmedWhen      map[string]any `yaml:"confirmed_when"` // JSON Pointer into a record: the scalar, or one of the scalars, that must stand there
	Lag                Duration       `yaml:"lag"`
	AbsenceProvesAfter Duration       `yaml:"absence_proves_after"`
}

// Next is how the pages of a list follow each other: by a value that the answer
// gives, or by the last record of the page.
type Next struct {
	Cursor string `yaml:"cursor"` // JSON Pointer into the answer
	Last   string `yaml:"last"`   // JSON Pointer into the last record, such as /id
	More   string `yaml:"more"`   // JSON Pointer to true or false: whether the list goes on; /has_more if left out
	Param  string `yaml:"param"`  // the query parameter that the value goes into
	Pages  *int   `yaml:"pages"`  // read at most; 20 if left out
}

// Limits bound what one operation, and all of them together, may cost the rail.
type Limits struct {
	Concurrency *int       `yaml:"concurrency"`
	MaxAttempts *int       `yaml:"max_attempts"`
	MaxElapsed  Duration   `yaml:"max_elapsed"`
	Backoff     []Duration `yaml:"backoff"` // shortest, longest
	Quota       *int       `yaml:"quota"`
	Recheck     *int       `yaml:"recheck"`    // operations that ended, looked at once more a day; 200 if left out
	PerSecond   int        `yaml:"per_second"` // requests begun in a second; zero: as many as there are
}

// BreakerConfig says when the rail is given a rest.
type BreakerConfig struct {
	Failures *int     `yaml:"failures"`
	OpenFor  Duration `yaml:"open_for"`
}

// Events says how this rail's webhooks are signed and read.
type Events struct {
	Scheme        string         `yaml:"scheme"`
	Secret        Secret         `yaml:"secret"`
	Secrets       []Secret       `yaml:"secrets"` // further ones, while the provider changes from one to another
	ID            string         `yaml:"id"`
	Object        string         `yaml:"object"` // where the record stands that the receipt's pointers read
	Stamp         string         `yaml:"stamp"`
	ConfirmedWhen map[string]any `yaml:"confirmed_when"`
}

// Override is what an action type may say in place of its rail. Each of the
// four is replaced whole or not at all: a mixture of two would be read wrong.
type Override struct {
	Send    *Send       `yaml:"send"`
	Answers []AnswerRow `yaml:"answers"`
	Receipt *Receipt    `yaml:"receipt"`
	Lookup  *Lookup     `yaml:"lookup"`
}

// With is the configuration with an action type's own ways put in.
func (c Config) With(o Override) Config {
	c.Headers = maps.Clone(c.Headers)
	if o.Send != nil {
		c.Send = *o.Send
	}
	if o.Answers != nil {
		c.Answers = o.Answers
	}
	if o.Receipt != nil {
		c.Receipt = *o.Receipt
	}
	if o.Lookup != nil {
		c.Lookup = *o.Lookup
	}
	return c
}
