package rail

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"holdfast/store/ledger"
)

// Event is what a provider told us, as the rail's configuration reads it.
type Event struct {
	Stamp     string // the order id that it names
	ReceiptID string // the provider's record that it names

	body []byte
	read any // nil: it cannot be read
}

// ReadEvent reads the names out of an event. What cannot be read names nothing.
func (r *Rail) ReadEvent(body []byte) Event {
	e := Event{body: body}
	read, err := readJSON(body)
	if err != nil {
		return e
	}
	e.read = read
	e.Stamp, e.ReceiptID = textAt(read, r.config.Events.Stamp), textAt(read, r.config.Events.ID)
	return e
}

// Testimony is an event as evidence about one operation. It holds a record only
// if the event is signed and all of confirmed_when is so; whether the record is
// this operation's receipt is judged as after a look-up. Everything else that a
// provider says proves nothing, and least of all that nothing happened.
func (r *Rail) Testimony(o ledger.Operation, e Event, signed bool) ledger.Look {
	look := ledger.Look{Finding: ledger.LookInconclusive, Body: r.masked(e.body)}
	name := "The provider's event"
	if kind := textAt(e.read, "/type"); kind != "" && len(kind) <= 64 {
		name += " " + kind
	}
	switch {
	case !signed:
		look.Sentence = "An event that is not signed names it, which proves nothing."
		return look
	case !r.confirms(e):
		look.Sentence = name + " proves nothing by itself."
		return look
	}
	object, _ := r.config.eventObject()
	record, there := ledger.Get(e.read, object)
	receipt, err := r.extract(o, record, rawAt(e.body, object), r.config.Receipt)
	if !there || err != nil {
		look.Sentence = name + " says that it happened, but without a receipt that can be read, which proves nothing."
		return look
	}
	stamp, legible := r.stampOf(record)
	if receipt.Stamp = stamp; stamp == "" && legible {
		receipt.Stamp = e.Stamp
	}
	look.Finding, look.Records = ledger.LookFound, []ledger.Receipt{receipt}
	look.Sentence = fmt.Sprintf("%s shows %s.", name, receipt.ID)
	return look
}

// confirms reports whether the event is one that shows the effect.
func (r *Rail) confirms(e Event) bool {
	when := r.config.Events.ConfirmedWhen
	for pointer, want := range when {
		got, there := ledger.Get(e.read, pointer)
		if !there || !sameScalar(want, got) {
			return false
		}
	}
	return len(when) > 0 && e.read != nil
}

// eventObject is where the receipt stands in an event: where the configuration
// says, or what is left of events.id without the receipt's own id, or the place
// that the scheme documents.
func (c Config) eventObject() (pointer string, known bool) {
	e := c.Events
	switch rest, ends := strings.CutSuffix(e.ID, c.Receipt.ID); {
	case e.Object != "":
		return e.Object, true
	case e.ID != "" && c.Receipt.ID != "":
		return rest, ends
	case e.Scheme == SchemeStripe:
		return "/data/object", true
	}
	return "/data", true
}

// rawAt cuts the object at a pointer out of a text as it was written; of one that
// stands in a list, the whole text.
func rawAt(text []byte, pointer string) []byte {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	for string(d.StackPointer()) != pointer || d.PeekKind() != jsontext.KindBeginObject {
		if _, err := d.ReadToken(); err != nil {
			return text
		}
	}
	raw, err := d.ReadValue()
	if err != nil {
		return text
	}
	return raw.Clone()
}

// events checks the block of that name. A scheme that is not known, and a secret
// where none is used, are mistakes that would go unnoticed until the day an event
// is needed.
func (f *findings) events(c Config) {
	e := c.Events
	switch {
	case e.Scheme == "":
		if e.Secret.text != nil || e.Secrets != nil || e.ID != "" || e.Object != "" || e.Stamp != "" || e.ConfirmedWhen != nil {
			f.add("events.scheme", "is missing; write one of %s", strings.Join(schemes, ", "))
		}
		return
	case !slices.Contains(schemes, e.Scheme):
		f.add("events.scheme", "%q is not one of %s", e.Scheme, strings.Join(schemes, ", "))
		return
	}
	f.eventSecrets(e)
	for _, p := range [][2]string{{"id", e.ID}, {"object", e.Object}, {"stamp", e.Stamp}} {
		if p[1] != "" {
			f.check("events."+p[0], checkPointer(p[1]))
		}
	}
	for _, pointer := range slices.Sorted(maps.Keys(e.ConfirmedWhen)) {
		f.check("events.confirmed_when", checkPointer(pointer))
		f.check("events.confirmed_when."+pointer, checkScalar(e.ConfirmedWhen[pointer]))
	}
	if e.ID == "" && e.Stamp == "" {
		f.add("events.stamp", "is missing; without it, or id, no event finds its operation")
	}
	if e.ConfirmedWhen == nil {
		return
	}
	if e.Stamp == "" && c.Receipt.Stamp == "" && c.Stamp.Body == "" {
		f.add("events.stamp", "is missing; a record without our stamp proves nothing, so confirmed_when has no use")
	}
	if _, known := c.eventObject(); !known {
		f.add("events.object", "is missing; events.id does not end in receipt.id, so it does not show where in the event the record stands")
	}
}

func (f *findings) eventSecrets(e Events) {
	if e.Scheme == SchemeNone {
		if e.Secret.text != nil || e.Secrets != nil {
			f.add("events.secret", "has no use with scheme: none, which checks no signature")
		}
		if e.ConfirmedWhen != nil {
			f.add("events.confirmed_when", "has no use with scheme: none; an event that is not signed proves nothing and only makes a look-up due")
		}
		return
	}
	if len(e.all()) == 0 {
		f.add("events.secret", "is missing; an event that is not signed proves nothing")
	}
	for i, secret := range e.Secrets {
		_, err := eventKey(e.Scheme, secret)
		f.check(fmt.Sprintf("events.secrets[%d]", i), err)
	}
	if e.Secret.reveal() != "" {
		_, err := eventKey(e.Scheme, e.Secret)
		f.check("events.secret", err)
	}
}
