package dispatch

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// receipt is the effect as the provider shows it to its customers.
func (e sandboxEffect) receipt() jsontext.Value {
	b, err := json.Marshal(struct {
		ID        string    `json:"id"`
		Record    string    `json:"record,omitempty"`
		Amount    *int64    `json:"amount,omitempty"`
		Currency  string    `json:"currency"`
		Recipient string    `json:"recipient"`
		Reference string    `json:"reference"`
		Operation string    `json:"operation"`
		CreatedAt time.Time `json:"created_at"`
	}{e.ID, e.Record, e.Amount, e.Money, e.Recipient, e.Reference, e.Operation, e.At})
	if err != nil {
		panic(err) // every part was JSON when it came in
	}
	return b
}

// sandboxAnswer is an answer as it is kept: a repeat gets these bytes again.
type sandboxAnswer struct {
	Key        string    `json:"key"`
	Method     string    `json:"method"`
	Path       string    `json:"path"`
	BodySHA256 string    `json:"body_sha256"` // of the request
	Status     int       `json:"status"`
	Body       string    `json:"body"`
	At         time.Time `json:"at"` // of the request: a key's life begins there

	retryAfter int
}

// sandboxRefusal is an answer in the provider's one form of error.
func sandboxRefusal(status int, kind, message string) *sandboxAnswer {
	var e struct {
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}
	e.Error.Type, e.Error.Message = kind, strings.ToValidUTF8(message, "?")
	b, err := json.Marshal(e)
	if err != nil {
		panic(err) // two valid strings
	}
	return &sandboxAnswer{Status: status, Body: string(b)}
}

func (a sandboxAnswer) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(a.Body)))
	if a.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(a.retryAfter))
	}
	w.WriteHeader(a.Status)
	io.WriteString(w, a.Body) // a client that has gone is no concern of the provider
}

// sandboxCut ends the connection with a reset and without a word.
func sandboxCut(w http.ResponseWriter) { sandboxCutAfter(w, "") }

// sandboxCutMidBody promises the whole body and sends half of it.
func sandboxCutMidBody(w http.ResponseWriter, a sandboxAnswer) {
	sandboxCutAfter(w, fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		a.Status, http.StatusText(a.Status), len(a.Body), a.Body[:len(a.Body)/2]))
}

func sandboxCutAfter(w http.ResponseWriter, bytes string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // not a plain connection: net/http cuts it
	}
	io.WriteString(conn, bytes)
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0) // a reset instead of a polite end
	}
	conn.Close()
}
