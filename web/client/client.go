// Package client writes to holdfast from Go, with the standard library alone.
//
// The caller names every operation, once, when the purchase is decided, and
// keeps the name. The client never makes one up and never changes one: whatever
// happens on the way, it repeats the same id with the same bytes, and so it is
// the same purchase every time.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Client speaks to one holdfast with one agent's token. It is safe for
// concurrent use; set its fields before the first call.
type Client struct {
	Tries   int           // how often one request goes out at most
	Pause   time.Duration // the first pause between two tries is at most this long; later ones double
	Longest time.Duration // no pause of ours is longer
	Timeout time.Duration // for one answer

	base, token string
	http        *http.Client
	chance      func(n int64) int64 // a number in [0, n]
}

// New makes a client for the server at base, such as http://127.0.0.1:8420.
func New(base, token string) *Client {
	return &Client{
		Tries: 8, Pause: 200 * time.Millisecond, Longest: 15 * time.Second, Timeout: 30 * time.Second,
		base: strings.TrimRight(base, "/"), token: token,
		http: &http.Client{
			// A redirect would carry the token elsewhere.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		chance: func(n int64) int64 { return rand.Int64N(n + 1) },
	}
}

// answerLimit is far above any answer of the API.
const answerLimit = 16 << 20

// call is one request as it goes out, every time with the same bytes.
type call struct {
	method, path string
	body         []byte        // JSON; nil: none
	wait         time.Duration // for Prefer: wait
	want         any           // where the answer goes
}

// do sends a call until it is answered, tries and context permitting.
func (c *Client) do(ctx context.Context, one call) (*http.Response, error) {
	for try := 1; ; try++ {
		answer, err := c.once(ctx, one)
		pause, again := c.pause(err, try)
		if err == nil || !again || try >= c.Tries {
			return answer, err
		}
		if sleep(ctx, pause) != nil {
			return answer, errors.Join(ctx.Err(), err)
		}
	}
}

// once is one request and its answer. What is no success is a [*Problem], or an
// error of the network.
func (c *Client) once(ctx context.Context, one call) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout+one.wait)
	defer cancel()
	var body io.Reader
	if one.body != nil {
		body = bytes.NewReader(one.body)
	}
	q, err := http.NewRequestWithContext(ctx, one.method, c.base+one.path, body)
	if err != nil {
		return nil, err
	}
	q.Header.Set("Authorization", "Bearer "+c.token)
	q.Header.Set("Accept", "application/json, application/problem+json")
	if one.body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	if one.wait > 0 {
		q.Header.Set("Prefer", "wait="+strconv.Itoa(int(one.wait/time.Second)))
	}
	answer, err := c.http.Do(q)
	if err != nil {
		return nil, lost{err}
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, answerLimit))
	if err != nil {
		return nil, lost{err}
	}
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return answer, readProblem(answer, text)
	}
	if err := json.Unmarshal(text, one.want); err != nil {
		return nil, lost{fmt.Errorf("%s %s answered %s without the JSON that belongs to it: %w", one.method, one.path, answer.Status, err)}
	}
	return answer, nil
}

// lost is an answer that did not arrive: nobody knows whether the request did.
type lost struct{ error }

func (l lost) Unwrap() error { return l.error }

// pause says how long to wait before the same request goes out again, if it may.
func (c *Client) pause(err error, try int) (time.Duration, bool) {
	var p *Problem
	var l lost
	var asked time.Duration
	switch {
	case errors.As(err, &p) && p.passing():
		asked = time.Duration(p.RetryAfter) * time.Second
	case errors.As(err, &l):
	default:
		return 0, false
	}
	most := c.Pause << min(try-1, 20)
	if most > c.Longest || most <= 0 {
		most = c.Longest
	}
	// Full jitter on top of what the server asked for: many agents that were cut
	// off together do not come back together.
	return asked + time.Duration(c.chance(int64(most))), true
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func operationPath(id string) string { return "/v1/operations/" + url.PathEscape(id) }
