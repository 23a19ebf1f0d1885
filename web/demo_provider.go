package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// sandboxBook is one sandbox provider as the demo sees it from outside: where
// accidents are armed, and where one counts what really arrived.
type sandboxBook struct{ base string }

// armed is a fault for one purchase, known by its reference, and for one
// request of it.
type armed struct {
	Match struct {
		Reference string `json:"reference"`
	} `json:"match"`
	Fault string `json:"fault"`
	Times int    `json:"times"`
}

// arm lets the next request with the reference run into the faults.
func (b sandboxBook) arm(ctx context.Context, reference string, faults ...string) error {
	var all []armed
	for _, fault := range faults {
		a := armed{Fault: fault, Times: 1}
		a.Match.Reference = reference
		all = append(all, a)
	}
	body, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return b.ask(ctx, http.MethodPost, "/_faults", body, &struct{}{})
}

// arrived is one request that reached the provider.
type arrived struct {
	Key       string    `json:"key"`
	Operation string    `json:"operation"`
	Fault     string    `json:"fault"`
	At        time.Time `json:"at"`
}

// requests are those that asked for the purchase, first to last.
func (b sandboxBook) requests(ctx context.Context, reference string) ([]arrived, error) {
	var answer struct {
		Requests []arrived `json:"requests"`
	}
	err := b.ask(ctx, http.MethodGet, "/_requests?reference="+url.QueryEscape(reference), nil, &answer)
	return answer.Requests, err
}

// effects are how often the purchase was made.
func (b sandboxBook) effects(ctx context.Context, reference string) (int, error) {
	var answer struct {
		Effects []struct{} `json:"effects"`
	}
	err := b.ask(ctx, http.MethodGet, "/_effects?reference="+url.QueryEscape(reference), nil, &answer)
	return len(answer.Effects), err
}

func (b sandboxBook) ask(ctx context.Context, method, path string, body []byte, want any) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, method, b.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return fmt.Errorf("the sandbox provider does not answer: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 16<<20))
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the sandbox provider answered %s to %s: %s", answer.Status, path, text)
	}
	return json.Unmarshal(text, want)
}
