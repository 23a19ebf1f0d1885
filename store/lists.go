package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"holdfast/store/ledger"
)

// Filter narrows a list of operations; empty members do not count.
type Filter struct {
	Statuses    []ledger.Status
	ActionType  string
	Reference   string
	RunID       string
	Rail        string
	Search      string // an operation id, order id, provider key, receipt id, reference, recipient or fingerprint
	Cursor      string // opaque; from an earlier page
	Limit       int    // 1 to 200, default 50
	OldestFirst bool
}

// Page is one page of operations and the cursor of the next; empty at the end.
type Page struct {
	Items []ledger.Operation
	Next  string
}

// Operations lists a tenant's operations, newest first unless said otherwise.
func (s *Store) Operations(ctx context.Context, tenant string, f Filter) (Page, error) {
	if f.Limit <= 0 || f.Limit > 200 {
		f.Limit = 50
	}
	beyond, err := s.readCursor(tenant, f.Cursor)
	if err != nil {
		return Page{}, err
	}
	limit := f.Limit
	f.Limit++ // one more tells whether there is a next page
	items, ids, err := s.listOperations(ctx, tenant, f, beyond)
	if err != nil {
		return Page{}, err
	}
	page := Page{Items: items}
	if len(items) > limit {
		page.Items = items[:limit]
		page.Next = s.cursor(tenant, ids[limit-1])
	}
	return page, nil
}

// listOperations reads those beyond a row; 0: from the beginning of the list.
func (s *Store) listOperations(ctx context.Context, tenant string, f Filter, beyond int64) (items []ledger.Operation, ids []int64, err error) {
	further, order := `id < $8`, `id desc`
	if f.OldestFirst {
		further, order = `id > $8`, `id`
	} else if beyond == 0 {
		beyond = math.MaxInt64
	}
	rows, err := s.readers.QueryContext(ctx, `
		select id, `+operationColumns+` from operations
		where tenant_id = $1
		  and ($2 = '' or $2 like '%,' || status || ',%')
		  and ($3 = '' or action_type = $3) and ($4 = '' or reference_key = $4) and ($5 = '' or run_id = $5) and ($6 = '' or rail = $6)
		  and ($7 = '' or operation_id = $7 or order_id = $7 or provider_key = $7 or receipt_id = $7 or reference = $7 or (reference_key = $10 and $10 <> '') or recipient = $7 or fingerprint = $7)
		  and `+further+`
		order by `+order+` limit $9`,
		tenant, statusList(f.Statuses), f.ActionType, cmp.Or(ledger.ReferenceKey(f.Reference), f.Reference), f.RunID, f.Rail, f.Search, beyond, f.Limit, ledger.ReferenceKey(f.Search))
	if err != nil {
		return nil, nil, err
	}
	items, err = collect(rows, func(r *sql.Rows) (ledger.Operation, error) {
		var id int64
		o, err := scanOperation(withID{r, &id})
		ids = append(ids, id)
		return o, err
	})
	return items, ids, err
}

// withID reads one more column before those of an operation.
type withID struct {
	row *sql.Rows
	id  *int64
}

func (w withID) Scan(to ...any) error { return w.row.Scan(append([]any{w.id}, to...)...) }

func statusList(s []ledger.Status) string {
	if len(s) == 0 {
		return ""
	}
	list := ","
	for _, one := range s {
		list += string(one) + ","
	}
	return list
}

// cursor names the last row of a page, with a check that only this ledger can
// make, and for this tenant: one that no list gave out would show an empty page
// where there is something.
func (s *Store) cursor(tenant string, id int64) string {
	row := strconv.FormatInt(id, 36)
	sum := sha256.Sum256([]byte(text([]string{"holdfast cursor 1", s.instance, tenant, row})))
	return row + "-" + hex.EncodeToString(sum[:5])
}

func (s *Store) readCursor(tenant, c string) (int64, error) {
	if c == "" {
		return 0, nil
	}
	row, _, _ := strings.Cut(c, "-")
	id, err := strconv.ParseInt(row, 36, 64)
	if err != nil || id <= 0 || s.cursor(tenant, id) != c {
		return 0, fmt.Errorf("%w: the cursor is not one that a list gave out", ErrForbidden)
	}
	return id, nil
}

// Counts are what the strip on every page shows. What we owe and what is owed to
// us are two things, and so are two currencies.
type Counts struct {
	Approvals       int
	Unknown         int   // unknown and held
	OldestSince     int64 // when the oldest of them became so
	AtRisk          map[string]int64
	Owed            map[string]int64
	OwedEntries     int
	OwedToUs        map[string]int64
	OwedToUsEntries int
	ByStatus        map[ledger.Status]int
}

// Counts reads them for a tenant.
func (s *Store) Counts(ctx context.Context, tenant string) (Counts, error) {
	c := Counts{AtRisk: map[string]int64{}, Owed: map[string]int64{}, OwedToUs: map[string]int64{}, ByStatus: map[ledger.Status]int{}}
	// Only what was sent can have moved.
	rows, err := s.readers.QueryContext(ctx, `
		select status, currency, count(*), `+wideSum(`case when attempts > 0 or quarantined = 1 then amount else 0 end`)+`,
			min(case when unknown_since > 0 then unknown_since else created_at end)
		from operations where tenant_id = $1 and status in ('awaiting_approval', 'ready', 'in_flight', 'unknown', 'unknown_hold')
		group by status, currency`, tenant)
	if err != nil {
		return c, err
	}
	_, err = collect(rows, func(r *sql.Rows) (struct{}, error) {
		var status ledger.Status
		var currency string
		var n int
		var sum wide
		var oldest int64
		err := r.Scan(&status, &currency, &n, &sum.high, &sum.low, &oldest)
		c.add(status, currency, n, sum.amount(), oldest)
		return struct{}{}, err
	})
	if err != nil {
		return c, err
	}
	return c, s.countOwed(ctx, tenant, &c)
}

func (c *Counts) add(status ledger.Status, currency string, n int, sum, oldest int64) {
	c.ByStatus[status] += n
	switch status {
	case ledger.AwaitingApproval:
		c.Approvals += n
	case ledger.Unknown, ledger.UnknownHold:
		c.Unknown += n
		if c.OldestSince == 0 || oldest < c.OldestSince {
			c.OldestSince = oldest
		}
		if currency != "" && sum > 0 {
			addTo(c.AtRisk, currency, sum)
		}
	}
}

func (s *Store) countOwed(ctx context.Context, tenant string, c *Counts) error {
	rows, err := s.readers.QueryContext(ctx, `
		select direction, currency, count(*), `+wideSum(`open`)+` from refunds_owed
		where tenant_id = $1 and open > 0 group by direction, currency`, tenant)
	if err != nil {
		return err
	}
	_, err = collect(rows, func(r *sql.Rows) (struct{}, error) {
		var direction, currency string
		var n int
		var sum wide
		err := r.Scan(&direction, &currency, &n, &sum.high, &sum.low)
		if direction == "owed_to_us" {
			c.OwedToUsEntries += n
			addTo(c.OwedToUs, currency, sum.amount())
		} else {
			c.OwedEntries += n
			addTo(c.Owed, currency, sum.amount())
		}
		return struct{}{}, err
	})
	return err
}

// Ready tells whether the store can commit.
func (s *Store) Ready(ctx context.Context) error {
	return s.change(ctx, func(t *tx) error {
		return t.exec(`insert into meta (key, value) values ('ready_probe', $1) on conflict (key) do update set value = $1`, fmt.Sprint(t.now))
	})
}
