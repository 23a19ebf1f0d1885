package rail

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	encodingJSON = "json"
	encodingForm = "form"
)

var contentTypes = map[string]string{
	encodingJSON: "application/json",
	encodingForm: "application/x-www-form-urlencoded",
}

// encodeForm writes an object the way form APIs take nested values: a[b]=c for
// a member, a[0][b]=c for an element. Names come in order, so that the same
// object is the same bytes. What a form cannot say without a second reading is
// refused: null, an empty list or object, and a name that holds a bracket.
func encodeForm(v any) ([]byte, error) {
	object, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("the payload is no object, and a form has only named values")
	}
	var pairs []string
	err := appendForm(&pairs, "", "", object)
	return []byte(strings.Join(pairs, "&")), err
}

// appendForm adds the value whose name in the form is key; at is its JSON
// Pointer, for errors.
func appendForm(pairs *[]string, key, at string, v any) error {
	add := func(text string) { *pairs = append(*pairs, key+"="+url.QueryEscape(text)) }
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 && key != "" {
			return fmt.Errorf("%s is an empty object, which a form cannot say; leave it out", at)
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			here := at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
			if name == "" || strings.ContainsAny(name, "[]") {
				return fmt.Errorf("%s has an empty name or one with a bracket, which a form cannot say", here)
			}
			inner := url.QueryEscape(name)
			if key != "" {
				inner = key + "[" + inner + "]"
			}
			if err := appendForm(pairs, inner, here, v[name]); err != nil {
				return err
			}
		}
	case []any:
		if len(v) == 0 {
			return fmt.Errorf("%s is an empty list, which a form cannot say; leave it out", at)
		}
		for i, element := range v {
			if err := appendForm(pairs, key+"["+strconv.Itoa(i)+"]", at+"/"+strconv.Itoa(i), element); err != nil {
				return err
			}
		}
	case string:
		add(v)
	case bool:
		add(strconv.FormatBool(v))
	case stdjson.Number:
		if strings.ContainsAny(v.String(), "eE") {
			return fmt.Errorf("%s is a number too large or too small for a form; send it as a string", at)
		}
		add(v.String())
	default:
		return fmt.Errorf("%s is null, which a form cannot say; leave it out", at)
	}
	return nil
}
