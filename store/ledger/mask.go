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
