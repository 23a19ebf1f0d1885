package dispatch

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// list answers a look-up: what has been in the book for longer than the lag.
func (s *Sandbox) list(w http.ResponseWriter, r *http.Request, kind string) {
	fits, refusal := sandboxFilter(r)
	if refusal != nil {
		refusal.write(w)
		return
	}
	now := s.o.Now()
	items := []jsontext.Value{}
	for _, e := range s.book.effectsSoFar() {
		if e.Kind != kind || !fits(e.sandboxNames) {
			continue
		}
		lag := max(s.o.Lag, s.faults.listLag(e, now))
		if now.Sub(e.At) >= lag {
			items = append(items, e.receipt())
		}
	}
	sandboxShow(w, struct {
		Data    []jsontext.Value `json:"data"`
		HasMore bool             `json:"has_more"`
	}{Data: items})
}

// one answers by the provider's own id, without any lag. A record answers to
// its own name too, with its newest state.
func (s *Sandbox) one(w http.ResponseWriter, r *http.Request, kind string) {
	id := r.PathValue("id")
	var found *sandboxEffect
	for _, e := range s.book.effectsSoFar() {
		if e.Kind == kind && (e.ID == id || kind == kindRecord && e.Record == id) {
			found = &e
		}
	}
	if found == nil {
		sandboxRefusal(http.StatusNotFound, "not_found", fmt.Sprintf("there is no %s %q", kind, id)).write(w)
		return
	}
	sandboxAnswer{Status: http.StatusOK, Body: string(found.receipt())}.write(w)
}

// showEffects is the provider's book, without lag or mercy.
func (s *Sandbox) showEffects(w http.ResponseWriter, r *http.Request) {
	fits, refusal := sandboxFilter(r)
	if refusal != nil {
		refusal.write(w)
		return
	}
	effects := []sandboxEffect{}
	for _, e := range s.book.effectsSoFar() {
		if fits(e.sandboxNames) {
			effects = append(effects, e)
		}
	}
	sandboxShow(w, struct {
		Effects  []sandboxEffect `json:"effects"`
		Requests int             `json:"requests"`
	}{effects, len(s.requests(fits))})
}

// showRequests lists what came in, acted on or not.
func (s *Sandbox) showRequests(w http.ResponseWriter, r *http.Request) {
	fits, refusal := sandboxFilter(r)
	if refusal != nil {
		refusal.write(w)
		return
	}
	requests := s.requests(fits)
	sandboxShow(w, struct {
		Count    int              `json:"count"`
		Requests []sandboxRequest `json:"requests"`
	}{len(requests), requests})
}

func (s *Sandbox) requests(fits func(sandboxNames) bool) []sandboxRequest {
	requests := []sandboxRequest{}
	for _, q := range s.book.requestsSoFar() {
		if fits(q.sandboxNames) {
			requests = append(requests, q)
		}
	}
	return requests
}

// sandboxFilter reads the query of a look-up. A member it does not know is
// refused: answering with everything would prove what was never asked.
func sandboxFilter(r *http.Request) (func(sandboxNames) bool, *sandboxAnswer) {
	query := r.URL.Query()
	for name := range query {
		if !strings.Contains(" reference operation key recipient ", " "+name+" ") {
			return nil, sandboxRefusal(http.StatusBadRequest, "invalid_request", fmt.Sprintf("unknown filter %q: there are reference, operation, key and recipient", name))
		}
	}
	return func(n sandboxNames) bool {
		for name, value := range map[string]string{"reference": n.Reference, "operation": n.Operation, "key": n.Key, "recipient": n.Recipient} {
			if query.Has(name) && query.Get(name) != value {
				return false
			}
		}
		return true
	}, nil
}

func sandboxShow(w http.ResponseWriter, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // only types of this package come here
	}
	sandboxAnswer{Status: http.StatusOK, Body: string(b)}.write(w)
}
