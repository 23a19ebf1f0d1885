package dispatch

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

// The faults. "Before" means that nothing was done, "after" that it was.
const (
	faultDropBefore   = "drop_before"
	faultDropAfter    = "drop_after"
	faultErrorBefore  = "error_500_before"
	faultErrorAfter   = "error_500_after"
	faultSlow         = "slow_ms"
	faultSlowAfter    = "slow_after_ms"
	faultResetMidBody = "reset_mid_body"
	faultGarbage      = "garbage_body"
	faultWrongAmount  = "wrong_amount"
	faultDouble       = "double"
	faultListLag      = "list_lag_ms"
	faultDecline      = "decline_402"
	faultRateLimit    = "rate_limit_429"
	faultBadRequest   = "bad_request_400"
	faultConflict     = "conflict_409"
)

// sandboxFaultForms lists every fault as it is written when armed.
var sandboxFaultForms = []string{
	faultDropBefore, faultDropAfter, faultErrorBefore, faultErrorAfter,
	faultSlow + ":N", faultSlowAfter + ":N", faultResetMidBody, faultGarbage,
	faultWrongAmount, faultDouble, faultListLag + ":N", faultDecline,
	faultRateLimit, faultBadRequest, faultConflict,
}

// sandboxFault is one misbehaviour; the zero value is to behave.
type sandboxFault struct {
	name  string
	delay time.Duration
}

// sandboxFaultLongest keeps a typing error from stopping the provider for days.
const sandboxFaultLongest = time.Hour

func parseSandboxFault(text string) (sandboxFault, error) {
	name, number, timed := strings.Cut(text, ":")
	form := name
	if timed {
		form += ":N"
	}
	for _, known := range sandboxFaultForms {
		if known != form {
			continue
		}
		if !timed {
			return sandboxFault{name: name}, nil
		}
		n, err := strconv.ParseUint(number, 10, 32)
		delay := time.Duration(n) * time.Millisecond
		if err != nil || delay > sandboxFaultLongest {
			return sandboxFault{}, fmt.Errorf("fault %q: N must be whole milliseconds, at most %d", text, sandboxFaultLongest.Milliseconds())
		}
		return sandboxFault{name: name, delay: delay}, nil
	}
	return sandboxFault{}, fmt.Errorf("unknown fault %q: there are %s", text, strings.Join(sandboxFaultForms, ", "))
}

func (f sandboxFault) String() string {
	switch f.name {
	case faultSlow, faultSlowAfter, faultListLag:
		return f.name + ":" + strconv.FormatInt(f.delay.Milliseconds(), 10)
	}
	return f.name
}

// refusal is the answer of a fault that strikes before a request is even
// looked at; nothing of it is stored under the key.
func (f sandboxFault) refusal() *sandboxAnswer {
	switch f.name {
	case faultErrorBefore:
		return sandboxRefusal(http.StatusInternalServerError, "api_error", "something went wrong")
	case faultBadRequest:
		return sandboxRefusal(http.StatusBadRequest, "invalid_request", "the request is invalid")
	case faultConflict:
		return sandboxRefusal(http.StatusConflict, "conflict", "the request conflicts with another one")
	case faultRateLimit:
		a := sandboxRefusal(http.StatusTooManyRequests, "rate_limited", "too many requests; nothing was done")
		a.retryAfter = 1
		return a
	}
	return nil
}

// sandboxMatch says whom a fault is for. Every member given must fit.
type sandboxMatch struct {
	Reference string `json:"reference,omitempty"`
	Recipient string `json:"recipient,omitempty"`
	Key       string `json:"key,omitempty"`
	Operation string `json:"operation,omitempty"`
	Path      string `json:"path,omitempty"`
}

func (m sandboxMatch) fits(n sandboxNames) bool {
	return cmp.Or(m.Reference, n.Reference) == n.Reference &&
		cmp.Or(m.Recipient, n.Recipient) == n.Recipient &&
		cmp.Or(m.Key, n.Key) == n.Key &&
		cmp.Or(m.Operation, n.Operation) == n.Operation &&
		(cmp.Or(m.Path, n.Path) == n.Path || strings.HasPrefix(n.Path, m.Path+"/"))
}

// sandboxArmed is a fault lying in wait.
type sandboxArmed struct {
	Match sandboxMatch `json:"match"`
	Fault string       `json:"fault"`
	Times int          `json:"times"` // left

	fault sandboxFault
}

const untilDisarmed = -1

// sandboxFaults are the armed faults. They live in memory only: a provider
// that was started anew behaves.
type sandboxFaults struct {
	mu    sync.Mutex
	armed []sandboxArmed
	lags  map[int]time.Duration // by effect: what a list_lag_ms took hold of
}

// take returns the first armed fault that fits a request, and uses it up by one.
func (f *sandboxFaults) take(q sandboxRequest) sandboxFault {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.spend(func(a sandboxArmed) bool { return a.fault.name != faultListLag && a.Match.fits(q.sandboxNames) })
}

// delayLists lets armed list lags take hold of new effects: one of them hides
// one effect for its whole time, however often somebody looks.
func (f *sandboxFaults) delayLists(effects []sandboxEffect, now time.Time) {
	for _, e := range effects {
		f.listLag(e, now)
	}
}

// listLag says how long an effect is hidden from lists. A lag that was armed
// after the effect takes hold when the effect is first looked for.
func (f *sandboxFaults) listLag(e sandboxEffect, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if lag, ok := f.lags[e.Seq]; ok {
		return lag
	}
	fault := f.spend(func(a sandboxArmed) bool {
		return a.fault.name == faultListLag && a.Match.fits(e.sandboxNames) && now.Sub(e.At) < a.fault.delay
	})
	if fault.name != "" {
		if f.lags == nil {
			f.lags = map[int]time.Duration{}
		}
		f.lags[e.Seq] = fault.delay
	}
	return fault.delay
}

func (f *sandboxFaults) spend(fits func(sandboxArmed) bool) sandboxFault {
	for i, a := range f.armed {
		if !fits(a) {
			continue
		}
		switch a.Times {
		case untilDisarmed:
		case 1:
			f.armed = append(f.armed[:i:i], f.armed[i+1:]...)
		default:
			f.armed[i].Times--
		}
		return a.fault
	}
	return sandboxFault{}
}

func (f *sandboxFaults) arm(more []sandboxArmed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = append(f.armed, more...)
}

// disarm also ends the lags that had taken hold.
func (f *sandboxFaults) disarm() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed, f.lags = nil, nil
}

func (f *sandboxFaults) left() []sandboxArmed {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]sandboxArmed{}, f.armed...)
}

// armFaults arms the whole list or, when one of it is wrong, nothing.
func (s *Sandbox) armFaults(w http.ResponseWriter, r *http.Request) {
	var wanted []struct {
		Match sandboxMatch `json:"match"`
		Fault string       `json:"fault"`
		Times *int         `json:"times"`
	}
	body := http.MaxBytesReader(w, r.Body, sandboxBodyLimit)
	if err := json.UnmarshalRead(body, &wanted, json.RejectUnknownMembers(true)); err != nil {
		sandboxRefusal(http.StatusBadRequest, "invalid_request", `faults are a JSON list of {"match":{},"fault":"","times":1}: `+err.Error()).write(w)
		return
	}
	var arm []sandboxArmed
	for i, one := range wanted {
		fault, err := parseSandboxFault(one.Fault)
		times := 1
		if one.Times != nil {
			times = *one.Times
		}
		switch {
		case err != nil:
		case times < untilDisarmed:
			err = fmt.Errorf("times is %d: give a count, or 0 or -1 for until disarmed", times)
		case times == 0:
			times = untilDisarmed
		}
		if err != nil {
			sandboxRefusal(http.StatusBadRequest, "invalid_request", fmt.Sprintf("/%d: %v", i, err)).write(w)
			return
		}
		arm = append(arm, sandboxArmed{Match: one.Match, Fault: one.Fault, Times: times, fault: fault})
	}
	s.faults.arm(arm)
	s.showFaults(w)
}

func (s *Sandbox) showFaults(w http.ResponseWriter) {
	sandboxShow(w, struct {
		Faults []sandboxArmed `json:"faults"`
	}{s.faults.left()})
}
