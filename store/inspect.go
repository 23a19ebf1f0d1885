package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"holdfast/store/ledger"
)

// inspectPage is how many rows are read in one transaction when a whole ledger is
// read: a long read would keep the write-ahead log from being emptied.
const inspectPage = 200

// Dossier is one operation with all that the ledger holds about it, read at one
// moment.
type Dossier struct {
	Operation ledger.Operation
	Request   *ledger.Request // nil before the first mark
	Attempts  []ledger.Attempt
	Approvals []ledger.Approval
	Entries   []ledger.Entry
	Refunds   []ledger.RefundOwed
	// PaidAfterAll says that it was to pay an entry, was rejected, and that the
	// entry was settled by a proof all the same: by its own late effect, say.
	PaidAfterAll bool
}

// EachOperation calls f with every operation of every tenant, oldest first, until
// f returns an error. It reads page by page and holds nothing open while f works.
func (s *Store) EachOperation(ctx context.Context, f func(Dossier) error) error {
	for last, done := int64(-1), false; !done; {
		page, next, err := s.dossiers(ctx, last)
		if err != nil {
			return err
		}
		for _, d := range page {
			if err := f(d); err != nil {
				return err
			}
		}
		last, done = next, len(page) < inspectPage
	}
	return nil
}

// sightedSince is the schema that first kept whether an operation was sighted. A
// file that only older binaries wrote can still be read.
const sightedSince = 6

func (s *Store) dossiers(ctx context.Context, after int64) (page []Dossier, last int64, err error) {
	t, err := s.readers.BeginTx(ctx, nil)
	if err != nil {
		return nil, 0, err
	}
	defer t.Rollback()
	columns := operationColumns
	if file, _, err := s.Schema(ctx); err != nil {
		return nil, 0, err
	} else if file < sightedSince {
		columns = strings.Replace(columns, ", sighted", ", 0", 1)
	}
	refunds := refundColumns
	if kept, err := s.keepsJournal(ctx); err != nil {
		return nil, 0, err
	} else if !kept {
		refunds = earlyRefundColumns
	}
	rows, err := t.QueryContext(ctx, `select id, `+columns+` from operations where id > $1 order by id limit $2`, after, inspectPage)
	if err != nil {
		return nil, 0, err
	}
	first := after
	at := map[opKey]int{}
	page, err = collect(rows, func(r *sql.Rows) (d Dossier, err error) {
		d.Operation, err = scanOperation(withID{r, &last})
		at[opKey{d.Operation.TenantID, d.Operation.OperationID}] = len(at)
		return d, err
	})
	if err != nil || len(page) == 0 {
		return nil, after, err
	}
	dossier := func(tenant, operation string) *Dossier { return &page[at[opKey{tenant, operation}]] }
	return page, last, errors.Join(
		belonging(ctx, t, `attempts`, attemptColumns, `number`, first, last, func(r *sql.Rows) error {
			a, err := scanAttempt(r)
			d := dossier(a.TenantID, a.OperationID)
			d.Attempts = append(d.Attempts, a)
			return err
		}),
		belonging(ctx, t, `approvals`, approvalColumns, `decided_at, x.id`, first, last, func(r *sql.Rows) error {
			a, err := scanApproval(r)
			d := dossier(a.TenantID, a.OperationID)
			d.Approvals = append(d.Approvals, a)
			return err
		}),
		belonging(ctx, t, `action_log`, entryColumns, `seq`, first, last, func(r *sql.Rows) error {
			e, err := scanEntry(r)
			d := dossier(e.TenantID, e.OperationID)
			d.Entries = append(d.Entries, e)
			return err
		}),
		belonging(ctx, t, `refunds_owed`, refunds, `opened_at, x.id`, first, last, func(r *sql.Rows) error {
			e, err := scanRefund(r)
			d := dossier(e.TenantID, e.OperationID)
			d.Refunds = append(d.Refunds, e)
			return err
		}),
		paidAfterAll(ctx, t, refunds, first, last, dossier),
		belonging(ctx, t, `requests`, `tenant_id, operation_id, `+requestColumns, `created_at`, first, last, func(r *sql.Rows) error {
			var tenant, operation string
			q, err := scanRequest(scanAfter{r, []any{&tenant, &operation}})
			dossier(tenant, operation).Request = &q
			return err
		}),
	)
}

func paidAfterAll(ctx context.Context, t *sql.Tx, refunds string, first, last int64, dossier func(tenant, operation string) *Dossier) error {
	if refunds == earlyRefundColumns {
		return nil // there were no settlements
	}
	fell := `(select * from refund_settlements f where f.state = 'fell' and exists (select 1 from refund_settlements p where p.entry = f.entry and p.kind = 'proof'))`
	return belonging(ctx, t, fell, `tenant_id, operation_id`, `at, x.id`, first, last, func(r *sql.Rows) error {
		var tenant, operation string
		err := r.Scan(&tenant, &operation)
		dossier(tenant, operation).PaidAfterAll = true
		return err
	})
}

// keepsJournal tells a file that has a journal of what is owed from an older one,
// which is only read here.
func (s *Store) keepsJournal(ctx context.Context) (kept bool, err error) {
	return kept, s.readers.QueryRowContext(ctx, `select exists (select 1 from migrations where name like '%_refunds.%')`).Scan(&kept)
}

// belonging reads the rows of a table that belong to the operations after one row
// id up to another.
func belonging(ctx context.Context, t *sql.Tx, table, columns, order string, after, last int64, each func(*sql.Rows) error) error {
	rows, err := t.QueryContext(ctx, `
		select `+columns+` from (
			select x.*, o.id as operation_row from operations o join `+table+` x on x.tenant_id = o.tenant_id and x.operation_id = o.operation_id
			where o.id > $1 and o.id <= $2 and x.operation_id <> ''
		) as x order by operation_row, `+order, after, last)
	if err != nil {
		return err
	}
	_, err = collect(rows, func(r *sql.Rows) (struct{}, error) { return struct{}{}, each(r) })
	return err
}

// scanAfter reads more columns before those that are asked for.
type scanAfter struct {
	row  *sql.Rows
	more []any
}

func (s scanAfter) Scan(to ...any) error { return s.row.Scan(append(s.more, to...)...) }

// EachEntry calls f with every entry of the action log after a number, in order,
// until f returns an error. It reads page by page.
func (s *Store) EachEntry(ctx context.Context, after int64, f func(ledger.Entry) error) error {
	for {
		rows, err := s.readers.QueryContext(ctx, `select `+entryColumns+` from action_log where seq > $1 order by seq limit $2`, after, inspectPage)
		if err != nil {
			return err
		}
		page, err := collect(rows, scanEntry)
		if err != nil {
			return err
		}
		for _, e := range page {
			if err := f(e); err != nil {
				return err
			}
			after = e.Seq
		}
		if len(page) < inspectPage {
			return nil
		}
	}
}

// LostOperations lists, as far as the first hundred, operations that the log
// speaks of and the ledger does not hold.
func (s *Store) LostOperations(ctx context.Context) ([]ledger.Entry, error) {
	rows, err := s.readers.QueryContext(ctx, `
		select `+entryColumns+` from action_log l
		where from_status = '' and object = 'operation'
		  and not exists (select 1 from operations o where o.tenant_id = l.tenant_id and o.operation_id = l.operation_id)
		order by seq limit 100`)
	if err != nil {
		return nil, err
	}
	return collect(rows, scanEntry)
}

// Schema tells the number of the last migration in the file, and of the last one
// that this binary knows.
func (s *Store) Schema(ctx context.Context) (file, known int, err error) {
	wanted, err := readMigrations("sqlite")
	if err != nil {
		return 0, 0, err
	}
	err = s.readers.QueryRowContext(ctx, `select coalesce(max(number), 0) from migrations`).Scan(&file)
	return file, len(wanted), err
}

// OpenForReading opens a ledger beside a process that may be writing it. It takes
// no lock and changes nothing; whatever would change something is refused.
func OpenForReading(ctx context.Context, o Options) (*Store, error) {
	s := newStore(o)
	path := filepath.Join(s.folder, "holdfast.db")
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("no ledger at %s: %w; name its folder with --data", path, unwrapPath(err))
	}
	var err error
	if s.readers, err = openReaders(ctx, path); err != nil {
		return nil, fmt.Errorf("opening %s for reading: %w", path, err)
	}
	file, known, err := s.Schema(ctx)
	if err == nil && file > known {
		err = fmt.Errorf("%w: its schema is at %d, this binary knows %d; use the newer binary", ErrNewer, file, known)
	}
	if err == nil {
		err = s.readers.QueryRowContext(ctx, selectIdentity).Scan(&s.instance, &s.epoch)
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}
