package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"holdfast/store/ledger"
)

// lineChunk is how many lines are written or matched in one change: enough to
// be quick, and so few that whoever submits meanwhile hardly waits.
const lineChunk = 100

// StatementFile is a file that was read, on its way into the ledger.
type StatementFile struct {
	TenantID  string
	Rail      string
	Name      string // the file's
	SHA256    string // over its bytes
	Statement ledger.Statement
	By        ledger.Holder
	Progress  func(done, of int) // may be nil
}

// StatementRefused is a file that cannot be taken in. Nothing of it was stored.
type StatementRefused struct {
	Line     int // 0: the file as a whole
	Sentence string
}

func (r StatementRefused) Error() string {
	if r.Line > 0 {
		return fmt.Sprintf("line %d: %s", r.Line, r.Sentence)
	}
	return r.Sentence
}

// StatementPreview is what an import would do.
type StatementPreview struct {
	Import ledger.StatementImport // as it would be stored
	New    int
	First  []ledger.StatementLine // the first lines, as they were read
	lines  []ledger.KeptLine      // the new ones
}

// previewLines is how many lines a preview shows.
const previewLines = 10

// StatementImported is what an import did.
type StatementImported struct {
	Import                        ledger.StatementImport
	New, Already                  int
	Matched, Suggested, Unmatched int // of the new lines
}

// PreviewStatement says what an import of the file would do, and stores nothing.
func (s *Store) PreviewStatement(ctx context.Context, f StatementFile) (StatementPreview, error) {
	defer s.lockAccount(f)()
	return s.examine(ctx, f)
}

// ImportStatement takes in a file, all of it or nothing: its lines are written in
// small changes under an import that nobody sees, and one commit shows them. The
// same file again changes nothing. The new lines are matched before it returns.
func (s *Store) ImportStatement(ctx context.Context, f StatementFile) (StatementImported, error) {
	unlock := s.lockAccount(f)
	i, first, last, err := s.takeIn(ctx, f)
	unlock()
	done := StatementImported{Import: i, New: i.Lines - i.Already, Already: i.Already}
	if errors.Is(err, errTakenIn) {
		done.New, done.Already = 0, i.Lines
		return done, nil
	}
	if err != nil || done.New == 0 {
		return done, err
	}
	if _, err := s.matchLines(ctx, first, last, f.progress(i.Lines+done.New, i.Lines)); err != nil {
		return done, fmt.Errorf("the lines are stored and will be matched by the next run of the job: %w", err)
	}
	return done, s.countNew(ctx, &done)
}

func (s *Store) countNew(ctx context.Context, done *StatementImported) error {
	return s.readers.QueryRowContext(ctx, `
		select coalesce(sum(case when state = 'matched' then 1 end), 0), coalesce(sum(case when state = 'suggested' then 1 end), 0),
			coalesce(sum(case when state = 'unmatched' then 1 end), 0)
		from statement_lines where statement_id = $1 and undone = 0`, done.Import.ID).Scan(&done.Matched, &done.Suggested, &done.Unmatched)
}

func (f StatementFile) progress(of, before int) func(int) {
	return func(n int) {
		if f.Progress != nil {
			f.Progress(before+n, of)
		}
	}
}

// errTakenIn means that this very file is in the ledger.
var errTakenIn = errors.New("this file was taken in before")

// takeIn writes the import and gives the ids of its first and last new line.
func (s *Store) takeIn(ctx context.Context, f StatementFile) (i ledger.StatementImport, first, last int64, err error) {
	if err := s.DropUnfinishedImports(ctx); err != nil {
		return i, 0, 0, err
	}
	same, err := s.statementWhere(ctx, `tenant_id = $1 and rail = $2 and account = $3 and sha256 = $4 and undone_at = 0 and visible_at > 0`,
		f.TenantID, f.Rail, f.account(s), f.SHA256)
	if err == nil {
		return same, 0, 0, errTakenIn
	}
	if !errors.Is(err, ErrNotFound) {
		return i, 0, 0, err
	}
	p, err := s.examine(ctx, f)
	if err != nil {
		return i, 0, 0, err
	}
	i = p.Import
	s.importing.Store(i.ID, true)
	defer s.importing.Delete(i.ID)
	if err = s.writeImport(ctx, f, &i, p.lines); err != nil {
		s.importing.Delete(i.ID)
		return i, 0, 0, errors.Join(err, s.DropUnfinishedImports(context.WithoutCancel(ctx)))
	}
	if len(p.lines) > 0 {
		first, last = p.lines[0].ID, p.lines[len(p.lines)-1].ID
	}
	return i, first, last, nil
}

func (s *Store) writeImport(ctx context.Context, f StatementFile, i *ledger.StatementImport, lines []ledger.KeptLine) error {
	err := s.change(ctx, func(t *tx) error {
		i.StartedAt = t.now
		return t.addStatement(*i)
	})
	if err != nil {
		return err
	}
	report := f.progress(i.Lines+len(lines), i.Already)
	for done := 0; done < len(lines); {
		chunk := lines[done:min(done+lineChunk, len(lines))]
		err := s.change(ctx, func(t *tx) error {
			for n := range chunk {
				chunk[n].ID = t.s.rowIDs.next(t.now)
				if err := t.addLine(chunk[n]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		done += len(chunk)
		report(done)
	}
	return s.change(ctx, func(t *tx) error {
		i.VisibleAt = t.now
		if err := t.exec(`update statements set visible_at = $1 where id = $2 and visible_at = 0`, t.now, i.ID); err != nil {
			return err
		}
		if err := t.lookAnew(i.TenantID, i.Rail); err != nil {
			return err
		}
		return t.log(ledger.Entry{TenantID: i.TenantID, Object: "statement", ObjectID: i.ID, Event: "import", ActorKind: f.By.Kind, Actor: f.By.Name,
			Sentence: fmt.Sprintf("%s imported a statement of %s, account %s: %d lines, %d of them new.", f.By.Name, i.Rail, i.Account, i.Lines, i.Lines-i.Already),
			Fact:     factText(map[string]any{"file": i.FileName, "sha256": i.SHA256, "format": i.Format})})
	})
}

// lockAccount lets one import of an account be under way at a time: two of them
// would both find the same lines new.
func (s *Store) lockAccount(f StatementFile) (unlock func()) {
	lock, _ := s.accounts.LoadOrStore([3]string{f.TenantID, f.Rail, f.account(s)}, &sync.Mutex{})
	lock.(*sync.Mutex).Lock()
	return lock.(*sync.Mutex).Unlock
}

// account is whose statement it is: as the file says, else the rail's own.
func (f StatementFile) account(s *Store) string {
	if f.Statement.Account != "" {
		return f.Statement.Account
	}
	return orElse(s.Rulebook(f.TenantID).Rails[f.Rail].Account, f.Rail)
}

func orElse(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// DropUnfinishedImports removes what a process that ended left of an import:
// nobody ever saw it, and the file can be imported again.
func (s *Store) DropUnfinishedImports(ctx context.Context) error {
	rows, err := s.readers.QueryContext(ctx, `select id from statements where visible_at = 0 order by started_at`)
	if err != nil {
		return err
	}
	ids, err := collect(rows, func(r *sql.Rows) (id string, err error) { return id, r.Scan(&id) })
	if err != nil {
		return err
	}
	for _, id := range ids {
		if _, underWay := s.importing.Load(id); underWay {
			continue
		}
		for left := int64(1); left > 0; {
			err := s.change(ctx, func(t *tx) (err error) {
				left, err = t.affected(`
					delete from statement_lines where id in (select id from statement_lines where statement_id = $1 order by id limit $2)`, id, 4*lineChunk)
				if err != nil || left > 0 {
					return err
				}
				return t.exec(`delete from statements where id = $1 and visible_at = 0`, id)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// examine holds a file against the ledger.
func (s *Store) examine(ctx context.Context, f StatementFile) (StatementPreview, error) {
	st := f.Statement
	i := ledger.StatementImport{ID: randomID("stm_"), TenantID: f.TenantID, Rail: f.Rail, Account: f.account(s), Format: st.Format, FileName: f.Name,
		SHA256: f.SHA256, Currency: st.Currency, From: st.From, To: max(st.From, st.To), Zone: st.Zone, Opening: st.Opening, Closing: st.Closing, Lines: len(st.Lines),
		Notes: st.Notes, By: f.By.Name}
	p := StatementPreview{First: st.Lines[:min(len(st.Lines), previewLines)]}
	if _, known := s.Rulebook(f.TenantID).Rails[f.Rail]; !known {
		return p, StatementRefused{Sentence: fmt.Sprintf("there is no rail %q", f.Rail)}
	}
	if err := addUp(&i, st.Lines); err != nil {
		return p, err
	}
	closed, err := s.closedUntil(ctx, i.TenantID, i.Rail, i.Account)
	if err != nil {
		return p, err
	}
	if i.Warnings, err = s.warnings(ctx, i, closed); err != nil {
		return p, err
	}
	p.lines, i.Already, err = s.newLines(ctx, i, st.Lines, closed)
	p.Import, p.New = i, len(p.lines)
	return p, err
}

// addUp sums the lines, and refuses balances that they do not lead from one to
// the other.
func addUp(i *ledger.StatementImport, lines []ledger.StatementLine) error {
	for _, l := range lines {
		for _, n := range []int64{l.Amount, l.Gross, l.Fee} {
			if n > largestAmount || n < -largestAmount {
				return StatementRefused{l.Number, "the amount is larger than any that is counted here"}
			}
		}
		if l.Currency == "" {
			return StatementRefused{l.Number, "the currency is missing"}
		}
		if i.Currency != "" && l.Currency != i.Currency {
			if i.Opening != nil || i.Closing != nil {
				return StatementRefused{l.Number, fmt.Sprintf("it is in %s, and the balances are in %s", l.Currency, i.Currency)}
			}
			continue
		}
		sum, ok := ledger.AddAmounts(i.Total, l.Amount)
		if !ok {
			return StatementRefused{l.Number, "the amounts come to more than is counted here"}
		}
		i.Total = sum
	}
	if !i.AddsUp() {
		return StatementRefused{0, fmt.Sprintf("the balances do not add up: %s and the lines (%s) do not come to %s; nothing was stored",
			ledger.Currencies{}.Format(*i.Opening, i.Currency), ledger.Currencies{}.Format(i.Total, i.Currency), ledger.Currencies{}.Format(*i.Closing, i.Currency))}
	}
	return nil
}

// warnings are what somebody should know before it is stored.
func (s *Store) warnings(ctx context.Context, i ledger.StatementImport, closed int64) (all []string, err error) {
	const live = `tenant_id = $1 and rail = $2 and account = $3 and visible_at > 0 and undone_at = 0`
	var before, overlaps int64
	err = s.readers.QueryRowContext(ctx, `
		select coalesce(max(case when from_at < $4 then to_at end), 0), coalesce(sum(case when from_at < $5 and to_at > $4 then 1 else 0 end), 0)
		from statements where `+live, i.TenantID, i.Rail, i.Account, i.From, i.To).Scan(&before, &overlaps)
	if err != nil {
		return nil, err
	}
	if before > 0 && before < i.From {
		all = append(all, fmt.Sprintf("There is a gap before it: the last statement ends with %s, this one begins with %s.", day(before-1), day(i.From)))
	}
	if overlaps > 0 {
		all = append(all, fmt.Sprintf("It overlaps %d statement(s) that were imported before; lines that are there already are not stored twice.", overlaps))
	}
	if closed > i.From {
		all = append(all, fmt.Sprintf("The account is closed up to %s. Lines before that which are new count in the period after it.", day(closed-1)))
	}
	return all, nil
}

func day(ms int64) string { return time.UnixMilli(ms).UTC().Format("2 Jan 2006") }

// Statements lists what was imported, newest first; of one rail, or of all.
func (s *Store) Statements(ctx context.Context, tenant, rail string, limit int) ([]ledger.StatementImport, error) {
	rows, err := s.readers.QueryContext(ctx, `
		select `+statementColumns+` from statements
		where tenant_id = $1 and ($2 = '' or rail = $2) and visible_at > 0 order by visible_at desc, id limit $3`, tenant, rail, limit)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (ledger.StatementImport, error) { return scanStatement(r) })
}

// Statement is one import.
func (s *Store) Statement(ctx context.Context, tenant, id string) (ledger.StatementImport, error) {
	return s.statementWhere(ctx, `tenant_id = $1 and id = $2 and visible_at > 0`, tenant, id)
}

func (s *Store) statementWhere(ctx context.Context, where string, args ...any) (ledger.StatementImport, error) {
	return scanStatement(s.readers.QueryRowContext(ctx, `select `+statementColumns+` from statements where `+where, args...))
}

const statementColumns = `id, tenant_id, rail, account, format, file_name, sha256, currency, from_at, to_at, opening, closing, total, lines, already,
	warnings, notes, imported_by, started_at, visible_at, undone_at, undone_by, undone_reason, zone`

func scanStatement(row scanner) (i ledger.StatementImport, err error) {
	var warnings, notes string
	err = row.Scan(&i.ID, &i.TenantID, &i.Rail, &i.Account, &i.Format, &i.FileName, &i.SHA256, &i.Currency, &i.From, &i.To, &i.Opening, &i.Closing,
		&i.Total, &i.Lines, &i.Already, &warnings, &notes, &i.By, &i.StartedAt, &i.VisibleAt, &i.UndoneAt, &i.UndoneBy, &i.UndoneReason, &i.Zone)
	fromText(warnings, &i.Warnings)
	fromText(notes, &i.Notes)
	return i, notFound(err)
}

func (t *tx) addStatement(i ledger.StatementImport) error {
	return t.exec(`insert into statements (`+statementColumns+`) values ($1`+placeholders(2, 23)+`)`,
		i.ID, i.TenantID, i.Rail, i.Account, i.Format, i.FileName, i.SHA256, i.Currency, i.From, i.To, i.Opening, i.Closing,
		i.Total, i.Lines, i.Already, text(i.Warnings), text(i.Notes), i.By, i.StartedAt, 0, 0, "", "", i.Zone)
}
