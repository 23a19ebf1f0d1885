package rail

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"holdfast/store/ledger"
)

const userAgent = "holdfast"

func (r *Rail) render(o ledger.Operation) (req ledger.Request, err error) {
	if !r.sendPath.given() {
		return req, errors.New("send.path is missing; give it to the rail or to the action type")
	}
	path, err := r.sendPath.fill(o)
	if err != nil {
		return req, fmt.Errorf("send.path: %w", err)
	}
	req.Method, req.URL = r.config.Send.Method, r.origin+r.base.EscapedPath()+path
	if req.Body, err = r.body(o); err != nil {
		return req, err
	}
	add := func(name, value string) {
		if name != "" {
			req.Header = append(req.Header, [2]string{name, value})
		}
	}
	add("Host", r.base.Host)
	r.addUnlessConfigured(&req, "User-Agent", userAgent)
	r.addUnlessConfigured(&req, "Accept", "application/json")
	add("Accept-Encoding", "identity")
	add("Connection", "close")
	if req.Body != nil {
		r.addUnlessConfigured(&req, "Content-Type", contentTypes[r.config.Send.Encoding])
	}
	r.addPublic(&req)
	add("Content-Length", strconv.Itoa(len(req.Body)))
	add(r.config.Dedupe.Header, o.ProviderKey)
	add(r.config.Stamp.Header, o.OrderID)
	return r.finish(req)
}

// query is the request of a look-up: it has no body and nothing to recognise.
// after asks for the page behind it.
func (r *Rail) query(o ledger.Operation, after string) (req ledger.Request, err error) {
	path, err := r.lookupPath.fill(o)
	if err != nil {
		return req, err
	}
	if after != "" {
		path += queryJoin(path) + url.QueryEscape(r.config.Lookup.Next.Param) + "=" + url.QueryEscape(after)
	}
	req.Method, req.URL = http.MethodGet, r.origin+r.base.EscapedPath()+path
	req.Header = [][2]string{{"Host", r.base.Host}}
	r.addUnlessConfigured(&req, "User-Agent", userAgent)
	r.addUnlessConfigured(&req, "Accept", "application/json")
	r.addPublic(&req)
	req.Header = append(req.Header, [2]string{"Accept-Encoding", "identity"}, [2]string{"Connection", "close"})
	return r.finish(req)
}

func queryJoin(path string) string {
	if strings.Contains(path, "?") {
		return "&"
	}
	return "?"
}

// addPublic adds what the adapter says about itself in every request.
func (r *Rail) addPublic(req *ledger.Request) {
	for _, h := range r.public {
		r.addUnlessConfigured(req, h[0], h[1])
	}
}

func (r *Rail) addUnlessConfigured(req *ledger.Request, name, value string) {
	for _, h := range r.secret {
		if strings.EqualFold(h.name, name) {
			return
		}
	}
	req.Header = append(req.Header, [2]string{name, value})
}

// finish checks every header, and adds the hash and the form that people see.
func (r *Rail) finish(req ledger.Request) (ledger.Request, error) {
	for _, h := range req.Header {
		if err := checkHeaderValue(h[1]); err != nil {
			return req, fmt.Errorf("header %s %w", h[0], err)
		}
	}
	req.SHA256 = req.HashRequest()
	req.Display = r.display(req)
	return req, nil
}

// body is the stored payload as it is, or with the stamp and the key set where
// the rail wants them. A member that is already there is never overwritten: it
// was approved, and what is sent is what was approved.
func (r *Rail) body(o ledger.Operation) ([]byte, error) {
	if r.config.Send.Body == bodyNone {
		return nil, nil
	}
	own := [][2]string{{r.config.Stamp.Body, o.OrderID}, {r.config.Dedupe.Body, o.ProviderKey}}
	if own[0][0] == "" && own[1][0] == "" && r.config.Send.Encoding == encodingJSON && r.shape == nil {
		return o.Payload, nil
	}
	v, err := ledger.ParseStrict(o.Payload)
	if err != nil {
		return nil, fmt.Errorf("the stored payload: %w", err)
	}
	for _, member := range own {
		if member[0] == "" {
			continue
		}
		if _, taken := ledger.Get(v, member[0]); taken {
			return nil, fmt.Errorf("the payload has a member of its own at %s, where this rail puts its stamp or key", member[0])
		}
		if err := ledger.Set(v, member[0], member[1]); err != nil {
			return nil, err
		}
	}
	if r.shape != nil {
		if err := r.shape(v); err != nil {
			return nil, err
		}
	}
	if r.config.Send.Encoding == encodingForm {
		return encodeForm(v)
	}
	return ledger.Canonical(v)
}

// display is the request as a person reads it: host and path in full, a
// configured header with dots for its value.
func (r *Rail) display(req ledger.Request) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", req.Method, req.URL)
	for _, h := range req.Header {
		fmt.Fprintf(&b, "%s: %s\n", h[0], h[1])
	}
	for _, h := range r.secret {
		fmt.Fprintf(&b, "%s: %s\n", h.name, dots)
	}
	if len(req.Body) > 0 {
		fmt.Fprintf(&b, "\n%s\n", req.Body)
	}
	return b.String()
}

// isToken reports whether a text is a token of RFC 9110, such as a header name.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
	})
}

func checkHeaderValue(value string) error {
	switch {
	case strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c >= 0x7f }):
		return errors.New("has a value with a control character, a line break or a letter that is not ASCII")
	case value == "" || strings.TrimSpace(value) != value:
		return errors.New("has a value that is empty or has spaces at its ends")
	}
	return nil
}
