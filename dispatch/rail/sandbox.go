package rail

import "time"

// The sandbox provider's ready-made ways. A configuration that gives one of
// these blocks itself replaces that block.

// sandboxBase names the sandbox in requests while its address is not
// configured: the port of a child process differs at every start, and a
// request must be the same bytes each time.
const sandboxBase = "http://sandbox"

// sandboxLists are the places where the sandbox keeps the effects of each kind.
var sandboxLists = map[string]string{
	"charge": "/payments",
	"payout": "/payments",
	"refund": "/refunds",
	"email":  "/emails",
	"crm":    "/records",
}

// SandboxSend is how the sandbox is asked for an effect.
func SandboxSend(effect string) (Send, bool) {
	list, ok := sandboxLists[effect]
	switch {
	case !ok:
		return Send{}, false
	case list == "/records":
		return Send{Method: "PUT", Path: "/records/{/id}"}, true
	}
	return Send{Method: "POST", Path: list}, true
}

func sandboxLookup(effect string) Lookup {
	list, ok := sandboxLists[effect]
	if !ok {
		list = "/payments"
	}
	return Lookup{Path: list + "?operation={order_id}", Items: "/data", Lag: Lasting(0)}
}

// withSandboxWays fills in what the configuration leaves out.
func (c Config) withSandboxWays(effect string) Config {
	if c.BaseURL == "" {
		c.BaseURL = sandboxBase
	}
	if c.Dedupe == (Dedupe{}) {
		c.Dedupe = Dedupe{By: "key", Header: "Idempotency-Key", Retention: Lasting(24 * time.Hour)}
	}
	if c.Send == (Send{}) {
		c.Send, _ = SandboxSend(effect)
	}
	if c.Stamp == (Stamp{}) {
		c.Stamp = Stamp{Body: "/metadata/operation"}
	}
	if c.Answers == nil {
		c.Answers = []AnswerRow{
			{Status: []int{200, 201}, Means: meansConfirmed},
			{Status: []int{402}, Means: meansRejected},
			{Status: []int{400}, Body: map[string]any{"/error/type": "invalid_request"}, Means: meansRejected},
			{Status: []int{429}, Means: meansNotSent},
		}
	}
	if c.Receipt == (Receipt{}) {
		c.Receipt = Receipt{ID: "/id", Amount: "/amount", Currency: "/currency", Recipient: "/recipient", Stamp: "/operation"}
	}
	if !c.Lookup.given() {
		c.Lookup = sandboxLookup(effect)
	}
	if !c.Quiet.given {
		c.Quiet = Lasting(30 * time.Second)
	}
	return c
}
