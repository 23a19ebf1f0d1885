package reconcile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"

	"holdfast/reconcile/statement"
	"holdfast/store"
	"holdfast/store/ledger"
)

// MaxStatement is the largest file that is taken in: some three hundred thousand
// lines.
const MaxStatement = 64 << 20

// ErrNoRail means that the tenant has no such rail.
var ErrNoRail = errors.New("no such rail")

// Upload is a statement file as somebody hands it in.
type Upload struct {
	Tenant   string
	Rail     string
	Account  string // empty: as the file says, else the rail's own
	Name     string
	Data     []byte
	Answers  map[string]string // to what the file leaves open, by the key of the question
	Anew     bool              // forget what was answered of files with this header before
	By       ledger.Holder
	Progress func(done, of int) // may be nil
}

// PreviewStatement reads a file and says what an import would do. Its error may
// be a *statement.Refusal, a *statement.Question or a store.StatementRefused.
func (s *Scheduler) PreviewStatement(ctx context.Context, u Upload) (store.StatementPreview, error) {
	f, err := s.readStatement(ctx, &u)
	if err != nil {
		return store.StatementPreview{}, err
	}
	return s.Store.PreviewStatement(ctx, f)
}

// ImportStatement reads a file and takes it in. What a person answered is kept
// for the next file with the same header.
func (s *Scheduler) ImportStatement(ctx context.Context, u Upload) (store.StatementImported, error) {
	said := len(u.Answers) > 0 || u.Anew
	f, err := s.readStatement(ctx, &u)
	if err != nil {
		return store.StatementImported{}, err
	}
	done, err := s.Store.ImportStatement(ctx, f)
	if err == nil && said {
		err = s.Store.KeepMapping(ctx, u.Tenant, u.Rail, headerOf(u.Data), u.Answers, u.By)
	}
	return done, err
}

func (s *Scheduler) readStatement(ctx context.Context, u *Upload) (store.StatementFile, error) {
	t := s.Config().Tenants[u.Tenant]
	if t == nil || t.Rails[u.Rail] == nil {
		return store.StatementFile{}, ErrNoRail
	}
	if err := s.recall(ctx, u); err != nil {
		return store.StatementFile{}, err
	}
	st, err := statement.Read(u.Data, statement.Options{Name: u.Name, Rail: u.Rail, Mapping: t.RailConfigs[u.Rail].Statement,
		Currencies: t.Rulebook.Currencies, Answers: u.Answers})
	if err != nil {
		return store.StatementFile{}, err
	}
	if u.Account != "" {
		st.Account = u.Account
	}
	sum := sha256.Sum256(u.Data)
	return store.StatementFile{TenantID: u.Tenant, Rail: u.Rail, Name: u.Name, SHA256: hex.EncodeToString(sum[:]), Statement: st, By: u.By, Progress: u.Progress}, nil
}

// recall adds what was answered of files with this header before; what is said
// now counts first.
func (s *Scheduler) recall(ctx context.Context, u *Upload) error {
	if u.Anew {
		return nil
	}
	all, err := s.Store.Mapping(ctx, u.Tenant, u.Rail, headerOf(u.Data))
	if err != nil || len(all) == 0 {
		return err
	}
	maps.Copy(all, u.Answers)
	u.Answers = all
	return nil
}

// NamedByHand reports whether a person named the columns of this file, or of one
// with its header before.
func (s *Scheduler) NamedByHand(ctx context.Context, u Upload) (bool, error) {
	err := s.recall(ctx, &u)
	return statement.NamesColumns(u.Answers), err
}

// headerOf is the fingerprint of a file's first line: files of one export have
// it in common.
func headerOf(data []byte) string {
	const longest = 4 << 10
	n := 0
	for n < len(data) && n < longest && data[n] != '\n' && data[n] != '\r' {
		n++
	}
	sum := sha256.Sum256(data[:n])
	return hex.EncodeToString(sum[:])
}

// statements is the job: it matches what is new or changed, and finds what no
// statement shows although one should by now.
func (s *Scheduler) statements(ctx context.Context, run *ledger.JobRun) error {
	m, err := s.Store.MatchStatements(ctx)
	run.LookedAt, run.Resolved, run.Held, run.Opened = m.LookedAt+m.Missing, m.Matched, m.Suggested, m.Missing
	return err
}
