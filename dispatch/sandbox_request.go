package dispatch

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	sandboxBodyLimit = 1 << 20
	// sandboxAmountLimit is where numbers stop being exact in clients that
	// keep them as doubles.
	sandboxAmountLimit = 1<<53 - 2
)

// The kinds of effect, as the book names them.
const (
	kindPayment = "payment"
	kindRefund  = "refund"
	kindEmail   = "email"
	kindRecord  = "record"
)

var (
	sandboxKinds  = map[string]string{"/payments": kindPayment, "/refunds": kindRefund, "/emails": kindEmail, "/records": kindRecord}
	sandboxPrefix = map[string]string{kindPayment: "pay_", kindRefund: "ref_", kindEmail: "msg_", kindRecord: "rec_"}
)

// sandboxNames are the names by which a request and its effect are found.
type sandboxNames struct {
	Path      string `json:"path"`
	Key       string `json:"key"`
	Recipient string `json:"recipient"`
	Reference string `json:"reference"`
	Operation string `json:"operation"` // the stamp
}

// sandboxRequest is one request that wanted an effect, acted on or not.
type sandboxRequest struct {
	N      int    `json:"n"`
	Method string `json:"method"`
	sandboxNames
	At      time.Time `json:"at"`
	Fault   string    `json:"fault"`   // what was armed and struck it
	Refused string    `json:"refused"` // why it could not be acted on, as it came

	kind       string
	record     string
	amount     *int64
	currency   string
	body       jsontext.Value
	bodySHA256 string
}

// sandboxEffect is what changed at the provider.
type sandboxEffect struct {
	Seq    int            `json:"seq"`
	Kind   string         `json:"kind"`
	ID     string         `json:"id"`
	Record string         `json:"record,omitempty"`
	Body   jsontext.Value `json:"body"`
	Amount *int64         `json:"amount,omitempty"`
	Money  string         `json:"currency"`
	sandboxNames
	At time.Time `json:"at"`
}

// readSandboxRequest reads a request whole. One whose body did not arrive to
// its end is noted and never acted on.
func readSandboxRequest(w http.ResponseWriter, r *http.Request, now time.Time) (sandboxRequest, *sandboxAnswer) {
	q := sandboxRequest{Method: r.Method, At: now.UTC(), kind: kindRecord, record: r.PathValue("id")}
	q.Path, q.Key, q.Operation = r.URL.Path, r.Header.Get("Idempotency-Key"), r.Header.Get("Operation")
	if q.record == "" {
		q.kind = sandboxKinds[q.Path]
	}
	refused := func(status int, kind, message string) (sandboxRequest, *sandboxAnswer) {
		q.Refused = message
		return q, sandboxRefusal(status, kind, message)
	}

	// The deadline is for the body alone: a slow_ms may be longer.
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(time.Now().Add(sandboxPatience)) // not every ResponseWriter has one
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, sandboxBodyLimit))
	_ = conn.SetReadDeadline(time.Time{})
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return refused(http.StatusRequestEntityTooLarge, "request_too_large", fmt.Sprintf("the body is larger than %d bytes", sandboxBodyLimit))
	case err != nil:
		return refused(http.StatusBadRequest, "invalid_request", "the body did not arrive whole: "+err.Error())
	}
	sum := sha256.Sum256(body)
	q.bodySHA256 = hex.EncodeToString(sum[:])
	if err := q.parse(body); err != nil {
		return refused(http.StatusBadRequest, "invalid_request", err.Error())
	}
	return q, nil
}

// parse takes from the body what the provider cares for. What a kind must have
// is refused when it is missing; a record may hold anything.
func (q *sandboxRequest) parse(body []byte) error {
	var members map[string]jsontext.Value
	if err := json.Unmarshal(body, &members); err != nil {
		return fmt.Errorf("the body must be one JSON object: %w", err)
	}
	if members == nil {
		return errors.New("the body must be one JSON object, not null")
	}
	q.body = jsontext.Value(body).Clone()
	if err := q.body.Compact(); err != nil {
		return err
	}

	var failed error
	text := func(members map[string]jsontext.Value, name string, required bool) string {
		var s string
		err := json.Unmarshal(members[name], &s)
		switch {
		case q.kind == kindRecord || failed != nil:
		case members[name] == nil && !required:
		case members[name] == nil || err == nil && s == "" && required:
			failed = fmt.Errorf("%s is missing", name)
		case err != nil:
			failed = fmt.Errorf("%s must be a string", name)
		}
		return s
	}

	money := q.kind == kindPayment || q.kind == kindRefund
	if money {
		amount, err := parseSandboxAmount(members["amount"])
		if err != nil {
			return err
		}
		q.amount = &amount
	}
	q.currency = text(members, "currency", money)
	q.Reference = text(members, "reference", false)
	if q.kind == kindEmail {
		q.Recipient = text(members, "to", true)
	} else {
		q.Recipient = text(members, "recipient", q.kind == kindPayment)
	}
	stamp := text(members, "operation", false)
	var metadata map[string]jsontext.Value
	if json.Unmarshal(members["metadata"], &metadata) == nil {
		if inner := text(metadata, "operation", false); inner != "" {
			stamp = inner
		}
	}
	if stamp != "" {
		q.Operation = stamp
	}
	return failed
}

func parseSandboxAmount(v jsontext.Value) (int64, error) {
	if v == nil {
		return 0, errors.New("amount is missing")
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil || n < 1 || n > sandboxAmountLimit {
		return 0, fmt.Errorf("amount must be a whole number of minor units from 1 to %d", sandboxAmountLimit)
	}
	return n, nil
}

// effect is what the request asks for, not yet numbered.
func (q sandboxRequest) effect(now time.Time) sandboxEffect {
	return sandboxEffect{Kind: q.kind, Record: q.record, Body: q.body, Amount: q.amount, Money: q.currency, sandboxNames: q.sandboxNames, At: now.UTC()}
}
