package ledger

import "strconv"

// Masked stands where a value is not shown.
const Masked = "••••"

// Mask is the canonical form of an operation without what is sensitive in its
// payload. Its hash is no fingerprint any more.
func (t *ActionType) Mask(canonical []byte) ([]byte, error) {
	v, err := ParseStrict(canonical)
	if err != nil {
		return nil, err
	}
	if whole, ok := v.(map[string]any); ok {
		whole["payload"] = t.mask(whole["payload"], "")
	}
	return Canonical(v)
}

func (t *ActionType) mask(v any, at string) any {
	if t.Hides(at) {
		return Masked
	}
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = t.mask(member, under(at, name))
		}
	case []any:
		for i, member := range v {
			v[i] = t.mask(member, under(at, strconv.Itoa(i)))
		}
	}
	return v
}

// Veil is an operation without what is sensitive in its terms: dots stand there.
// Where the action type is not configured any more, nobody can say what is
// sensitive, and so all of it is.
func (t *ActionType) Veil(o Operation) Operation {
	hidden := map[string]bool{}
	if t == nil {
		for _, role := range []string{"amount", "recipient", "reference", "account", "customer"} {
			hidden[role] = true
		}
	} else {
		for _, f := range t.Fields() {
			hidden[f.Role] = hidden[f.Role] || t.Hides(f.Pointer)
		}
	}
	veilTerms(&o, hidden)
	return o
}

func veilTerms(o *Operation, hidden map[string]bool) {
	hide := func(role string, text *string) {
		if hidden[role] && *text != "" {
			*text = Masked
		}
	}
	hide("recipient", &o.Terms.Recipient)
	hide("reference", &o.Terms.Reference)
	hide("reference", &o.ReferenceKey)
	hide("account", &o.Terms.Account)
	hide("customer", &o.Terms.Customer)
	o.Terms.HasAmount = o.Terms.HasAmount && !hidden["amount"]
	if o.Receipt == nil {
		return
	}
	r := *o.Receipt
	r.Raw = nil
	hide("recipient", &r.Recipient)
	hide("reference", &r.Reference)
	if hidden["amount"] {
		r.Amount = nil
	}
	o.Receipt = &r
}
