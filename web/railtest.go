package web

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"holdfast/dispatch"
	"holdfast/dispatch/rail"
	"holdfast/store/ledger"
)

// RailTestOptions are the flags of rail test.
type RailTestOptions struct {
	Tenant, Rail, ActionType string
	Payload                  string // a file; empty: say what the rail promises, and send nothing
	TestAccount              bool
}

// TestRail says what a rail promises and, given a payload, tries it. What came
// of it is kept with the rail. The error means that a promise was not kept.
func (i *Instance) TestRail(ctx context.Context, o RailTestOptions, out io.Writer) error {
	tenant := i.Config().Tenants[o.Tenant]
	if tenant == nil {
		return usagef("--tenant %q has no rails here", o.Tenant)
	}
	promise, known := tenant.Rulebook.Rails[o.Rail]
	if !known {
		return usagef("%q is no rail of tenant %s", o.Rail, o.Tenant)
	}
	fmt.Fprintf(out, "%s promises:\n  %s\n", o.Rail, railSays(promise))
	if o.Payload == "" {
		fmt.Fprintln(out, "Nothing was sent. To try it, give --action-type and --payload FILE.")
		return nil
	}
	test, err := i.railTest(tenant, o)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "and did:")
	test.Say = func(f ledger.RailFinding) {
		mark := "ok  "
		if !f.Passed {
			mark = "NOT "
		}
		fmt.Fprintf(out, "  %s%-9s %s\n            promised: %s\n", mark, f.Check, f.Seen, f.Promised)
	}
	findings, err := test.Run(ctx)
	if err != nil {
		return usagef("%s: %w", o.Payload, err)
	}
	result := ledger.RailTest{TenantID: o.Tenant, Rail: o.Rail, By: operator.Name, Findings: findings}
	if err := i.Store.RecordRailTest(ctx, result); err != nil {
		return err
	}
	if !result.Passed() {
		return fmt.Errorf("rail %s did not do all that its configuration promises", o.Rail)
	}
	return nil
}

func (i *Instance) railTest(tenant *dispatch.Tenant, o RailTestOptions) (t dispatch.RailTest, err error) {
	if tenant.RailConfigs[o.Rail].Adapter != rail.AdapterSandbox && !o.TestAccount {
		return t, usagef("%w", dispatch.ErrNotATestAccount)
	}
	var types []string
	for name, route := range tenant.Rulebook.Routes {
		if route.Name == o.Rail {
			types = append(types, name)
		}
	}
	slices.Sort(types)
	if o.ActionType == "" && len(types) == 1 {
		o.ActionType = types[0]
	}
	if !slices.Contains(types, o.ActionType) {
		return t, usagef("--action-type %q does not go out on %s; there are %s", o.ActionType, o.Rail, strings.Join(types, ", "))
	}
	payload, err := os.ReadFile(o.Payload)
	if err != nil {
		return t, usagef("--payload: %w", err)
	}
	return dispatch.RailTest{Rail: tenant.Routes[o.ActionType], Promise: tenant.Rulebook.Routes[o.ActionType],
		Action: tenant.Rulebook.Actions[o.ActionType], Payload: payload, ID: "rail-test-" + rand.Text(), Wait: 30 * time.Second, Now: time.Now,
		Pause: func(ctx context.Context, d time.Duration) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(d):
				return nil
			}
		}}, nil
}
