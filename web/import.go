package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"holdfast/dispatch/rail"
	"holdfast/reconcile"
	"holdfast/reconcile/statement"
)

// ImportOptions are the flags of statement import.
type ImportOptions struct {
	Tenant, Rail, Account, File string
	DateOrder                   string
	Answers                     []string // KEY=VALUE
	Preview, JSON               bool
}

// ImportStatement reads a statement file and takes it in, or says what that
// would do. Long files show on notes how far they are.
func (i *Instance) ImportStatement(ctx context.Context, o ImportOptions, out, notes io.Writer) error {
	u, err := o.upload()
	if err != nil {
		return err
	}
	u.Progress = progressOn(notes)
	body, err := importStatement(ctx, i.Scheduler, u, o.Preview)
	if q, ok := errors.AsType[*statement.Question](err); ok {
		return fmt.Errorf("%s", askedOnLine(q, o.File))
	}
	if errors.Is(err, reconcile.ErrNoRail) {
		return usagef("--rail %q is not configured for tenant %s", o.Rail, o.Tenant)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", o.File, err)
	}
	if o.JSON {
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		return enc.Encode(body)
	}
	return body.print(out, notes)
}

func (o ImportOptions) upload() (reconcile.Upload, error) {
	u := reconcile.Upload{Tenant: o.Tenant, Rail: o.Rail, Account: o.Account, Name: filepath.Base(o.File), By: operator, Answers: map[string]string{}}
	if o.Rail == "" {
		return u, usagef("name the rail whose statement it is with --rail")
	}
	if o.DateOrder != "" {
		if !slices.Contains(rail.StatementDates, o.DateOrder) {
			return u, usagef("--date-order %q: use one of %s", o.DateOrder, strings.Join(rail.StatementDates, ", "))
		}
		u.Answers["dates"] = o.DateOrder
	}
	for _, a := range o.Answers {
		key, value, ok := strings.Cut(a, "=")
		if !ok {
			return u, usagef("--answer %q: write KEY=VALUE", a)
		}
		u.Answers[key] = value
	}
	f, err := os.Open(o.File)
	if err != nil {
		return u, err
	}
	defer f.Close()
	if u.Data, err = io.ReadAll(io.LimitReader(f, reconcile.MaxStatement+1)); err != nil {
		return u, err
	}
	if len(u.Data) > reconcile.MaxStatement {
		return u, fmt.Errorf("%s is larger than %d MiB; split it by day or month", o.File, reconcile.MaxStatement>>20)
	}
	return u, nil
}

// progressOn says every few seconds how far a long import is; a short one says
// nothing.
func progressOn(notes io.Writer) func(done, of int) {
	const every = 2 * time.Second
	next := time.Now().Add(every)
	return func(done, of int) {
		if now := time.Now(); now.After(next) && of > 0 {
			next = now.Add(every)
			fmt.Fprintf(notes, "%d %% of the lines are stored and matched\n", 100*done/of)
		}
	}
}

func askedOnLine(q *statement.Question, file string) string {
	var choices []string
	for _, c := range q.Choices {
		choices = append(choices, fmt.Sprintf("--answer %s=%s (%s)", q.Key, c.Value, c.Label))
	}
	return fmt.Sprintf("%s: %s %s Say it with %s. Nothing was stored.", file, q.Ask, q.Sentence, strings.Join(choices, " or "))
}

func (b importBody) print(out, notes io.Writer) error {
	for _, n := range append(slices.Clone(b.Notes), b.Warnings...) {
		fmt.Fprintf(notes, "note: %s\n", n)
	}
	if !b.Stored {
		_, err := fmt.Fprintf(out, "%s, account %s: %d lines, %d new, %d already imported; nothing was stored\n", b.Format, b.Account, b.Lines, b.New, b.AlreadyImported)
		return err
	}
	_, err := fmt.Fprintf(out, "%s, account %s: %d lines, %d new, %d already imported; of the new ones %d matched, %d suggested, %d unmatched\n",
		b.Format, b.Account, b.Lines, b.New, b.AlreadyImported, b.Matched, b.Suggested, b.Unmatched)
	return err
}
