package dispatch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"holdfast/dispatch/rail"
)

// ListProfiles prints the ready-made profiles, a line each.
func ListProfiles(out io.Writer, asJSON bool) error {
	rows := []rail.ProfileRow{}
	for _, p := range rail.Profiles() {
		row, err := p.Row()
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	if asJSON {
		return json.NewEncoder(out).Encode(map[string]any{"items": rows})
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, strings.ToUpper(strings.Join(rail.ProfileColumns, "\t")))
	for _, row := range rows {
		fmt.Fprintln(table, strings.Join(row.Cells(), "\t"))
	}
	return table.Flush()
}

// ShowProfile prints one profile as it is written, with its sources: what is
// under rail: may be copied into a configuration.
func ShowProfile(out io.Writer, name string) error {
	p, known := rail.ProfileNamed(name)
	if !known {
		return errors.New(noProfile(name))
	}
	_, err := io.WriteString(out, p.Text)
	return err
}

// noProfile says that a name is none, and which one may have been meant.
func noProfile(name string) string {
	names := rail.ProfileNames()
	hint := strings.TrimPrefix(unknownKey(name, names), "unknown key; ")
	for _, n := range names {
		if name != "" && strings.HasPrefix(n, strings.ToLower(name)) { // stripe, paypal
			hint = "did you mean " + n + "?"
			break
		}
	}
	return fmt.Sprintf("%q is no profile; %s", name, hint)
}
