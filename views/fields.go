package views

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"holdfast/store/ledger"
)

// Fields reads the payload of an operation as rows: every member, in the order
// of the action type's schema, named as the schema names it; members that the
// schema does not list come after. With was, each row says what the other
// operation had there, and members that only the other one had are listed too.
// Sensitive members are left out of the rows, values and all, unless the reader
// may see them.
func Fields(o ledger.Operation, was *ledger.Operation, action *ledger.ActionType, maySee bool, money ledger.Currencies) ([]Field, error) {
	rows, err := leaves(o, action, money)
	if err != nil {
		return nil, err
	}
	if was != nil {
		before, err := leaves(*was, action, money)
		if err != nil {
			return nil, err
		}
		rows = beside(rows, before)
	}
	for i, f := range rows {
		if !maySee && action != nil && action.Hides(f.Pointer) {
			rows[i].Value, rows[i].Was, rows[i].Raw, rows[i].Masked = "", "", "", true
		}
	}
	return rows, nil
}

// NotThere stands for a member that one of two payloads has and the other has not.
const NotThere = "not there"

// beside adds to each row what the other operation had there.
func beside(rows, before []Field) []Field {
	at := func(rows []Field, pointer string) int {
		return slices.IndexFunc(rows, func(f Field) bool { return f.Pointer == pointer })
	}
	for i := range rows {
		rows[i].Was, rows[i].Changed = NotThere, true
		if j := at(before, rows[i].Pointer); j >= 0 {
			rows[i].Was = before[j].Value
			rows[i].Changed = rows[i].Was != rows[i].Value
		}
	}
	for _, f := range before {
		if at(rows, f.Pointer) < 0 {
			f.Was, f.Value, f.Changed, f.Gone = f.Value, NotThere, true, true
			rows = append(rows, f)
		}
	}
	return rows
}

// leaves flattens a payload. It reads tokens, so that numbers stay as written.
func leaves(o ledger.Operation, action *ledger.ActionType, money ledger.Currencies) ([]Field, error) {
	payload := o.Payload
	if len(payload) == 0 {
		payload = []byte("{}")
	}
	var named []ledger.Field
	if action != nil {
		named = action.Fields()
	}
	d := json.NewDecoder(bytes.NewReader(payload))
	d.UseNumber()
	var rows []Field
	leaf := func(pointer, value string) {
		f := Field{Pointer: pointer, Label: labelOf(pointer), Value: value, order: len(named)}
		if i := slices.IndexFunc(named, func(n ledger.Field) bool { return n.Pointer == pointer }); i >= 0 {
			f.order, f.Role = i, named[i].Role
			if named[i].Title != "" {
				f.Label = named[i].Title
			}
		}
		if f.Role == "amount" && o.Terms.HasAmount {
			f.Value, f.Raw = money.Format(o.Terms.Amount, o.Terms.Currency), minorUnits(o.Terms.Amount)
		}
		rows = append(rows, f)
	}
	if err := walk(d, "", leaf); err != nil {
		return nil, fmt.Errorf("the stored payload of %s can't be read: %w", o.OperationID, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the stored payload of %s has something after its end", o.OperationID)
	}
	slices.SortStableFunc(rows, func(a, b Field) int { return a.order - b.order })
	return rows, nil
}

func walk(d *json.Decoder, pointer string, leaf func(pointer, value string)) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	switch t := t.(type) {
	case json.Delim:
		return walkInside(d, t, pointer, leaf)
	case string:
		leaf(pointer, t)
	case json.Number:
		leaf(pointer, t.String())
	case bool:
		leaf(pointer, strconv.FormatBool(t))
	case nil:
		leaf(pointer, "null")
	}
	return nil
}

func walkInside(d *json.Decoder, open json.Delim, pointer string, leaf func(pointer, value string)) error {
	n := 0
	for ; d.More(); n++ {
		name := strconv.Itoa(n)
		if open == '{' {
			t, err := d.Token()
			if err != nil {
				return err
			}
			name, _ = t.(string)
		}
		if err := walk(d, pointer+"/"+escaper.Replace(name), leaf); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return err
	}
	if n == 0 {
		empty := "[]"
		if open == '{' {
			empty = "{}"
		}
		leaf(pointer, empty)
	}
	return nil
}

var (
	escaper   = strings.NewReplacer("~", "~0", "/", "~1") // JSON Pointer
	unescaper = strings.NewReplacer("~1", "/", "~0", "~")
)

// labelOf names a place for people: /order/lines/0/sku is "order · lines · 1 · sku".
func labelOf(pointer string) string {
	if pointer == "" {
		return "payload"
	}
	parts := strings.Split(pointer[1:], "/")
	for i, p := range parts {
		p = unescaper.Replace(p)
		if n, err := strconv.Atoi(p); err == nil && i > 0 {
			p = strconv.Itoa(n + 1)
		}
		parts[i] = p
	}
	return strings.Join(parts, " · ")
}
