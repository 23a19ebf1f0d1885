package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// RefundWish is what a person wants to give back through the gateway: a part of
// an entry, or all that is open of it.
type RefundWish struct {
	Entry    RefundOwed
	Original Operation // where the money went out; the zero value for an entry that names none
	Amount   int64     // minor units
	Rail     string    // empty: the one that the money came in by
	Number   int       // of the settlement among the entry's: 1 is the first
}

// RefundPlan is the operation that carries out a wish, not registered yet.
type RefundPlan struct {
	OperationID string
	ActionType  *ActionType
	Normal      Normal
}

// Draft is the operation to register, which a person asked for.
func (p RefundPlan) Draft(tenant, owner string) Operation {
	return Operation{TenantID: tenant, OperationID: p.OperationID, ActionType: p.ActionType.Name, Owner: owner,
		Fingerprint: p.Normal.Fingerprint, Canonical: p.Normal.Canonical, Payload: p.Normal.Payload, Terms: p.Normal.Terms}
}

// Name is how the settlement is called where the refund can carry a reference.
// Equal references are the same refund, so each part of an entry has its own.
func (w RefundWish) Name() string { return fmt.Sprintf("%s-%d", w.Entry.ID, w.Number) }

// OperationID follows from the entry and the number alone: the same button
// pressed twice names one operation.
func (w RefundWish) OperationID() string { return "refund-" + w.Name() }

// ErrNoRefund means that no operation can be made of a wish; its text says why,
// to the person who wished.
var ErrNoRefund = errors.New("no refund can be made of this")

func noRefund(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrNoRefund, fmt.Sprintf(format, args...))
}

// PlanRefund makes the operation that gives money back. Which action type that
// is, the configuration says: the one named by the original's, or on another rail
// the only one there that gives money. Where none or several fit, it is nobody's
// to guess.
func (r Rulebook) PlanRefund(w RefundWish) (RefundPlan, error) {
	if err := r.checkWish(w); err != nil {
		return RefundPlan{}, err
	}
	action, payload, err := r.refundPayload(w)
	if err != nil {
		return RefundPlan{}, err
	}
	normal, wrong := action.Normalize(payload)
	if len(wrong) > 0 {
		return RefundPlan{}, noRefund("the payload that the configuration makes for %s breaks its schema: %s %s.", action.Name, wrong[0].Pointer, wrong[0].Message)
	}
	// A template that leaves the amount out would let the provider give it all back.
	if !normal.Terms.HasAmount || normal.Terms.Amount != w.Amount || normal.Terms.Currency != w.Entry.Currency {
		return RefundPlan{}, noRefund("the payload that the configuration makes for %s does not say %s.", action.Name, r.Currencies.Format(w.Amount, w.Entry.Currency))
	}
	return RefundPlan{w.OperationID(), action, normal}, nil
}

func (r Rulebook) checkWish(w RefundWish) error {
	switch {
	case w.Entry.Direction != WeOwe:
		return noRefund("it is owed to us; record the proof when it has come in.")
	case w.Amount <= 0:
		return noRefund("the amount must be more than nothing.")
	case w.Entry.Settling > 0:
		return noRefund("a refund of it is under way; what becomes of that one decides how much is owed.")
	case w.Amount > w.Entry.Open:
		return noRefund("%s is more than is owed; %s is.", r.Currencies.Format(w.Amount, w.Entry.Currency), r.Currencies.Format(w.Entry.Open, w.Entry.Currency))
	}
	return nil
}

// refundPayload is the template of the original's action type, filled in; on
// another rail, the members that have a role there.
func (r Rulebook) refundPayload(w RefundWish) (*ActionType, map[string]any, error) {
	original := r.Actions[w.Original.ActionType]
	if original != nil && original.Refund != nil {
		action := r.Actions[original.Refund.ActionType]
		switch {
		case action == nil:
			return nil, nil, noRefund("the action type %s, which should give it back, is not configured.", original.Refund.ActionType)
		case w.Rail == "" || w.Rail == w.Entry.Rail || w.Rail == action.Rail:
			payload, err := r.fillTemplate(w, action, original.Refund.Payload)
			return action, payload, err
		}
	}
	rail := orElse(w.Rail, w.Entry.Rail)
	var fit []string
	for _, name := range slices.Sorted(maps.Keys(r.Actions)) {
		if a := r.Actions[name]; a.Rail == rail && (a.Effect == "refund" || a.Effect == "payout") {
			fit = append(fit, name)
		}
	}
	switch len(fit) {
	case 0:
		return nil, nil, noRefund("no action type gives money back on the rail %s: configure one of effect refund or payout there.", rail)
	case 1:
		action := r.Actions[fit[0]]
		payload, err := r.fillRoles(w, action)
		return action, payload, err
	}
	return nil, nil, noRefund("several action types give money on the rail %s (%s), and the configuration does not say which one is meant.", rail, strings.Join(fit, ", "))
}

var placeholder = regexp.MustCompile(`\{[A-Za-z_]*\}`)

// refundPlaceholders are what a refund's template may name.
var refundPlaceholders = []string{"{receipt_id}", "{amount}", "{currency}", "{recipient}", "{reference}", "{customer}", "{order_id}"}

// strangers lists what a template names that nobody could fill in.
func (s RefundSpec) strangers() (unknown []string) {
	eachText(s.Payload, func(text string) {
		for _, p := range placeholder.FindAllString(text, -1) {
			if !slices.Contains(refundPlaceholders, p) && !slices.Contains(unknown, p) {
				unknown = append(unknown, p)
			}
		}
	})
	slices.Sort(unknown)
	return unknown
}

func eachText(v any, f func(string)) {
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			eachText(member, f)
		}
	case []any:
		for _, element := range v {
			eachText(element, f)
		}
	case string:
		f(v)
	}
}

// filler knows what stands for each placeholder; an empty text is one that
// nothing is known for.
type filler struct {
	values  map[string]any
	missing string // the first that a text needed and nobody knows
}

func (r Rulebook) fillTemplate(w RefundWish, action *ActionType, template map[string]any) (map[string]any, error) {
	amount, err := r.refundAmount(w, action)
	if err != nil {
		return nil, err
	}
	f := &filler{values: map[string]any{
		"{receipt_id}": w.receiptID(), "{amount}": amount, "{currency}": w.Entry.Currency,
		"{recipient}": w.Original.Terms.Recipient, "{reference}": w.Original.Terms.Reference,
		"{customer}": orElse(w.Entry.Customer, w.Original.Terms.Customer), "{order_id}": w.Original.OrderID,
	}}
	payload, _ := f.fill(template).(map[string]any)
	if f.missing != "" {
		return nil, noRefund("the configured refund needs %s, and nothing is known of it here.", f.missing)
	}
	return payload, nameSettlement(payload, action, w)
}

// fill puts values in for placeholders. One that is a whole member keeps its
// type, and a member that would say nothing is left out: what cannot do without
// it, the schema refuses.
func (f *filler) fill(v any) any {
	switch v := v.(type) {
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, member := range v {
			if filled := f.fill(member); filled != nil {
				object[name] = filled
			}
		}
		return object
	case []any:
		var array []any
		for _, element := range v {
			array = append(array, f.fill(element))
		}
		return array
	case string:
		return f.text(v)
	case int, int64, uint64, float64: // as a configuration file gives it
		return json.Number(fmt.Sprint(v))
	}
	return v
}

func (f *filler) text(text string) any {
	if value, whole := f.values[text]; whole {
		if value == "" {
			return nil
		}
		return value
	}
	return placeholder.ReplaceAllStringFunc(text, func(p string) string {
		value := fmt.Sprint(f.values[p])
		if value == "" && f.missing == "" {
			f.missing = p
		}
		return value
	})
}

// fillRoles makes a payload for a rail that the money did not come in by. Where
// it goes is the customer, who is all that the entry knows of the way there; a
// recipient of the first rail means nothing on the second.
func (r Rulebook) fillRoles(w RefundWish, action *ActionType) (map[string]any, error) {
	amount, err := r.refundAmount(w, action)
	if err != nil {
		return nil, err
	}
	customer := orElse(w.Entry.Customer, w.Original.Terms.Customer)
	payload := map[string]any{}
	for role, value := range map[string]any{
		roleAmount: amount, roleCurrency: w.Entry.Currency, roleRecipient: customer, roleCustomer: customer, roleRefundOf: w.receiptID(),
	} {
		if at := action.Pointer(role); at != "" && value != "" {
			if err := Set(payload, at, value); err != nil {
				return nil, noRefund("%s has no place for its %s.", action.Name, role)
			}
		}
	}
	if action.Pointer(roleRecipient) != "" && customer == "" {
		return nil, noRefund("%s needs a recipient, and the entry names no customer.", action.Name)
	}
	return payload, nameSettlement(payload, action, w)
}

// refundAmount is the amount as the refund's own action type writes it.
func (r Rulebook) refundAmount(w RefundWish, action *ActionType) (any, error) {
	digits, known := r.Currencies.Digits(w.Entry.Currency)
	place := action.root.find(action.roles[roleAmount])
	switch {
	case !known:
		return nil, noRefund("the currency %s is not configured.", w.Entry.Currency)
	case place == nil:
		return nil, noRefund("no member of %s has the role amount, so nobody could tell what it gives back.", action.Name)
	case place.normalize == "decimal":
		return decimalString(w.Amount, digits), nil
	}
	return json.Number(fmt.Sprint(w.Amount)), nil
}

// nameSettlement gives the refund a reference of its own where it has a place
// for one, behind what the template says there. Without it the second part of an
// entry would look like the first one again, and wait for a person.
func nameSettlement(payload map[string]any, action *ActionType, w RefundWish) error {
	at := action.Pointer(roleReference)
	if at == "" {
		return nil
	}
	name := w.Name()
	if said, _ := Get(payload, at); said != nil && said != "" {
		name = fmt.Sprint(said, " ", name)
	}
	if err := Set(payload, at, name); err != nil {
		return noRefund("%s has no place for its reference.", action.Name)
	}
	return nil
}

// receiptID is the provider's name of the effect, which a refund has to name. An
// effect that came without one goes by our order id in the ledger, of which the
// provider knows nothing.
func (w RefundWish) receiptID() string {
	if w.Entry.ReceiptID == w.Original.OrderID {
		return ""
	}
	return w.Entry.ReceiptID
}
