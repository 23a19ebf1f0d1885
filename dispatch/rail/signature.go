package rail

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The schemes by which a provider may sign its events.
const (
	SchemeStandardWebhooks = "standard-webhooks"
	SchemeStripe           = "stripe"
	SchemeNone             = "none"
)

var schemes = []string{SchemeStandardWebhooks, SchemeStripe, SchemeNone}

// eventTolerance is how far the time that was signed may be from ours, both
// ways: long enough for a queue and two clocks, too short for a captured event
// to be of use. What is younger and comes twice is known by its id.
const eventTolerance = 5 * time.Minute

// Origin is who an event comes from, as far as that is proven.
type Origin struct {
	EventID string      // the provider's name for the event, by which each counts once
	Signed  bool        // false only where the rail's scheme is none
	Seal    [][2]string // the headers that prove it, as they came
}

// HearsEvents reports whether the rail takes in events at all.
func (r *Rail) HearsEvents() bool { return r.config.Events.Scheme != "" }

// Origin checks the signature over the bytes as they came. Its error says what
// is wrong, for the operator's log; whoever sent it learns nothing.
func (r *Rail) Origin(header http.Header, body []byte) (Origin, error) {
	switch r.config.Events.Scheme {
	case SchemeStandardWebhooks:
		return r.standardOrigin(header, body)
	case SchemeStripe:
		return r.stripeOrigin(header, body)
	case SchemeNone:
		return Origin{EventID: digest(body)}, nil
	}
	return Origin{}, errors.New("the rail takes in no events")
}

// standardOrigin follows the Standard Webhooks specification: the id, the time
// and the body, with a point between them, are signed, and the header holds one
// signature or several with blanks between them.
func (r *Rail) standardOrigin(header http.Header, body []byte) (Origin, error) {
	var o Origin
	values := map[string]string{}
	for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
		value, err := only(header, name)
		if err != nil {
			return o, err
		}
		values[name] = value
		o.Seal = append(o.Seal, [2]string{name, value})
	}
	id, at := values["webhook-id"], values["webhook-timestamp"]
	if !nameable(id) {
		return o, errors.New("webhook-id is no name")
	}
	if err := r.recent(at); err != nil {
		return o, err
	}
	var given [][]byte
	for word := range strings.FieldsSeq(values["webhook-signature"]) {
		text, ok := strings.CutPrefix(word, "v1,")
		if sum, err := base64.StdEncoding.Strict().DecodeString(text); ok && err == nil {
			given = append(given, sum)
		}
	}
	if !r.signs(given, id, ".", at, ".", string(body)) {
		return o, errors.New("no signature fits")
	}
	o.EventID, o.Signed = id, true
	return o, nil
}

// SignStandard signs a message of ours as the same specification says, and gives
// the value of its webhook-signature.
func SignStandard(secret Secret, id string, at time.Time, body []byte) (string, error) {
	key, err := eventKey(SchemeStandardWebhooks, secret)
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%d.%s", id, at.Unix(), body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)), nil
}

// stripeOrigin reads "t=TIME,v1=HEX", where v1 may stand there more than once,
// while a secret is being changed. The event's own id stands in its body.
func (r *Rail) stripeOrigin(header http.Header, body []byte) (Origin, error) {
	var o Origin
	value, err := only(header, "Stripe-Signature")
	if err != nil {
		return o, err
	}
	var times []string
	var given [][]byte
	for pair := range strings.SplitSeq(value, ",") {
		name, text, _ := strings.Cut(strings.TrimSpace(pair), "=")
		switch name {
		case "t":
			times = append(times, text)
		case "v1":
			if sum, err := hex.DecodeString(text); err == nil {
				given = append(given, sum)
			}
		}
	}
	if len(times) != 1 {
		return o, fmt.Errorf("Stripe-Signature has %d times", len(times))
	}
	if err := r.recent(times[0]); err != nil {
		return o, err
	}
	if !r.signs(given, times[0], ".", string(body)) {
		return o, errors.New("no signature fits")
	}
	o.Signed, o.Seal = true, [][2]string{{"Stripe-Signature", value}}
	event, _ := readJSON(body)
	if o.EventID = textAt(event, "/id"); !nameable(o.EventID) {
		o.EventID = digest(body)
	}
	return o, nil
}

// only is the value of a header that stands there once: of two, another reader
// might take the other one.
func only(header http.Header, name string) (string, error) {
	values := header.Values(name)
	if len(values) != 1 || values[0] == "" {
		return "", fmt.Errorf("%s is there %d times", name, len(values))
	}
	return values[0], nil
}

// recent checks the time that was signed against the rail's clock.
func (r *Rail) recent(text string) error {
	seconds, err := strconv.ParseUint(text, 10, 40) // digits only; the year 36812 is late enough
	if err != nil || text[0] == '+' {
		return errors.New("the time that was signed is none")
	}
	age := r.now().Sub(time.Unix(int64(seconds), 0))
	if age > eventTolerance || age < -eventTolerance {
		return fmt.Errorf("it was signed %s from now", age.Abs().Round(time.Second))
	}
	return nil
}

// mostSignatures bounds the work that one header can ask for. A provider sends
// one, or two while a secret is being changed.
const mostSignatures = 16

// signs reports whether one of the signatures is by one of the rail's secrets.
// Each comparison takes the same time wherever they differ.
func (r *Rail) signs(given [][]byte, parts ...string) bool {
	if len(given) > mostSignatures {
		return false
	}
	fits := false
	for _, secret := range r.config.Events.all() {
		key, err := eventKey(r.config.Events.Scheme, secret)
		if err != nil {
			return false // it was checked when the rail was made
		}
		mac := hmac.New(sha256.New, key)
		for _, p := range parts {
			mac.Write([]byte(p))
		}
		sum := mac.Sum(nil)
		fits = slices.ContainsFunc(given, func(g []byte) bool { return hmac.Equal(g, sum) }) || fits
	}
	return fits
}

// all are the secrets that may have signed: more than one while they change.
func (e Events) all() []Secret {
	if e.Secret.reveal() == "" {
		return e.Secrets
	}
	return append([]Secret{e.Secret}, e.Secrets...)
}

// shortestKey is what the Standard Webhooks specification asks for, in bytes.
const shortestKey = 24

// eventKey is the key that a secret stands for. No error shows any of it.
func eventKey(scheme string, secret Secret) ([]byte, error) {
	text := secret.reveal()
	if text == "" {
		return nil, errors.New("is empty")
	}
	if scheme == SchemeStripe {
		return []byte(text), nil
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, "whsec_"))
	switch {
	case err != nil:
		return nil, errors.New("is no secret of this scheme: write whsec_ and base64, as the provider shows it")
	case len(key) < shortestKey:
		return nil, fmt.Errorf("is shorter than %d bytes, which can be guessed", shortestKey)
	}
	return key, nil
}

// nameable reports whether a text may be the name of an event.
func nameable(id string) bool {
	return id != "" && len(id) <= 255 && !strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c > '~' })
}

func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha256:" + hex.EncodeToString(sum[:])
}
