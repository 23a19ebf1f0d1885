package store

import (
	"context"
	"database/sql"
	"slices"

	"holdfast/store/ledger"
)

// RefundFilter narrows a list of what is owed; empty members do not count.
type RefundFilter struct {
	Statuses []ledger.RefundStatus
	Customer string
	Rail     string
	Currency string
	Cursor   string // opaque; from an earlier page
	Limit    int    // 1 to 200, default 50
}

// RefundPage lists entries, soonest due first, and gives the cursor of the next
// page; empty at the end.
func (s *Store) RefundPage(ctx context.Context, tenant string, f RefundFilter) (items []ledger.RefundOwed, next string, err error) {
	if f.Limit <= 0 || f.Limit > 200 {
		f.Limit = 50
	}
	after, err := s.readCursor(tenant, f.Cursor)
	if err != nil {
		return nil, "", err
	}
	statuses := ""
	for _, one := range f.Statuses {
		statuses += "," + string(one) + ","
	}
	rows, err := s.readers.QueryContext(ctx, `
		select `+refundColumns+` from refunds_owed
		where tenant_id = $1
		  and ($2 = '' or $2 like '%,' || status || ',%')
		  and ($3 = '' or customer = $3) and ($4 = '' or rail = $4) and ($5 = '' or currency = $5)
		  and (due_at, number) > (coalesce((select due_at from refunds_owed where tenant_id = $1 and number = $6), -1), $6)
		order by due_at, number limit $7`,
		tenant, statuses, f.Customer, f.Rail, f.Currency, after, f.Limit+1)
	if err != nil {
		return nil, "", err
	}
	items, err = collect(rows, scanRefundRow)
	if len(items) > f.Limit {
		items = items[:f.Limit]
		next = s.cursor(tenant, items[f.Limit-1].Number)
	}
	return items, next, err
}

// RefundBalances sums the journal per direction, customer, rail and currency.
func (s *Store) RefundBalances(ctx context.Context, tenant string) ([]ledger.RefundBalance, error) {
	rows, err := s.readers.QueryContext(ctx, `
		select direction, customer, rail, currency, account, `+wideSum(`amount`)+`,
			count(distinct case when (select e.open from refunds_owed e where e.id = entry) > 0 then entry end) from refund_postings
		where tenant_id = $1 group by direction, customer, rail, currency, account
		order by direction desc, currency, rail, customer`, tenant)
	if err != nil {
		return nil, err
	}
	var all []ledger.RefundBalance
	_, err = collect(rows, func(r *sql.Rows) (struct{}, error) {
		var b ledger.RefundBalance
		var account ledger.RefundAccount
		var sum wide
		var entries int
		err := r.Scan(&b.Direction, &b.Customer, &b.Rail, &b.Currency, &account, &sum.high, &sum.low, &entries)
		if n := len(all); n == 0 || all[n-1].RefundParty != b.RefundParty {
			all = append(all, b)
		}
		if last := &all[len(all)-1]; account == ledger.AccountOrigin {
			last.Entries, last.Owed = entries, -sum.amount()
		} else {
			last.Add(account, sum.amount())
		}
		return struct{}{}, err
	})
	return all, err
}

// RefundAges sums what is open by how long it has been, per direction and
// currency.
func (s *Store) RefundAges(ctx context.Context, tenant string) ([]ledger.RefundAge, error) {
	rows, err := s.readers.QueryContext(ctx, `
		select e.direction, e.currency, case when $2 - e.opened_at < 8 * 86400000 then 0 when $2 - e.opened_at < 31 * 86400000 then 1 else 2 end as bucket,
			`+wideSum(`p.amount`)+`, count(distinct e.id)
		from refunds_owed e join refund_postings p on p.entry = e.id and p.account in ('open', 'settling')
		where e.tenant_id = $1 and e.open > 0
		group by e.direction, e.currency, bucket order by e.direction desc, e.currency, bucket`, tenant, s.now())
	if err != nil {
		return nil, err
	}
	var all []ledger.RefundAge
	_, err = collect(rows, func(r *sql.Rows) (struct{}, error) {
		var a ledger.RefundAge
		var bucket, entries int
		var sum wide
		err := r.Scan(&a.Direction, &a.Currency, &bucket, &sum.high, &sum.low, &entries)
		i := slices.IndexFunc(all, func(o ledger.RefundAge) bool { return o.Direction == a.Direction && o.Currency == a.Currency })
		if i < 0 {
			all, i = append(all, a), len(all)
		}
		all[i].Open[bucket], all[i].Entries[bucket] = sum.amount(), entries
		return struct{}{}, err
	})
	return all, err
}

// RefundJournal lists the transactions of an entry with their postings, oldest
// first.
func (s *Store) RefundJournal(ctx context.Context, tenant, entry string) ([]ledger.JournalTransaction, error) {
	rows, err := s.readers.QueryContext(ctx, `
		select j.id, j.entry, j.event, j.settlement, j.by, j.reason, j.at, p.account, p.amount
		from refund_journal j join refund_postings p on p.transaction_id = j.id
		where j.tenant_id = $1 and j.entry = $2 order by j.id, p.line`, tenant, entry)
	if err != nil {
		return nil, err
	}
	var all []ledger.JournalTransaction
	_, err = collect(rows, func(r *sql.Rows) (struct{}, error) {
		var j ledger.JournalTransaction
		var p ledger.Posting
		err := r.Scan(&j.ID, &j.Entry, &j.Event, &j.Settlement, &j.By, &j.Reason, &j.At, &p.Account, &p.Amount)
		if n := len(all); n == 0 || all[n-1].ID != j.ID {
			all = append(all, j)
		}
		last := &all[len(all)-1]
		last.Postings = append(last.Postings, p)
		return struct{}{}, err
	})
	return all, err
}
