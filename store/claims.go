package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"holdfast/store/ledger"
)

// maxClaims is how often an operation may be claimed without a mark or a clean
// release before a person looks: its payload may be what kills the workers.
const maxClaims = 10

// Claim is a lease on an operation, with the fence that proves it.
type Claim struct {
	Operation ledger.Operation
	Worker    string
	Epoch     int64
	Fence     int64
	Until     int64
}

// holds reports whether the claim still gives the right to mark: nobody took
// the operation over, and it waits to be sent as it did.
func (c Claim) holds(o ledger.Operation, now int64) bool {
	return (o.Status == ledger.Ready || o.Status == ledger.Unknown) && o.Epoch == c.Epoch && o.Fence == c.Fence && o.LeaseOwner == c.Worker && o.LeaseUntil > now
}

// Claim leases up to limit operations of one rail that are due, oldest first: ready
// ones, and unknown ones whose same-key resend is due. At most retries of them
// were sent before. No status changes, and a lease that ends before the mark
// costs nothing.
func (s *Store) Claim(ctx context.Context, worker, tenant, rail string, limit, retries int) ([]Claim, error) {
	promise, known := s.Rulebook(tenant).Rails[rail]
	if !known || limit <= 0 {
		return nil, nil
	}
	if due, err := s.anyDue(ctx, tenant, rail, retries); err != nil || !due {
		return nil, err
	}
	var claims []Claim
	err := s.change(ctx, func(t *tx) error {
		claims = nil
		due, err := t.due(tenant, rail, limit, retries)
		if err != nil {
			return err
		}
		for _, o := range due {
			c, err := t.claim(o, worker, s.Rulebook(tenant).LeaseFor(promise))
			if err != nil {
				return err
			}
			if c != nil {
				claims = append(claims, *c)
			}
		}
		return nil
	})
	return claims, err
}

const selectAnyDue = `
	select count(*) from (
		select 1 from operations
		where (status = 'ready' or (status = 'unknown' and next_send_at > 0))
		  and next_send_at <= $1 and lease_until <= $1 and tenant_id = $2 and rail = $3 and (attempts = 0 or $4 > 0)
		  and ` + noneAwaited + notPaused + `
		limit 1) as one`

// notPaused holds while nobody has paused the operation's rail.
const notPaused = `
		  and not exists (select 1 from rail_pauses p where p.tenant_id = operations.tenant_id and p.rail = operations.rail)`

// noneAwaited holds for an operation that waits for no other.
const noneAwaited = `not exists (
			select 1 from prerequisites p join operations x on x.tenant_id = p.tenant_id and x.operation_id = p.after_id
			where p.tenant_id = operations.tenant_id and p.operation_id = operations.operation_id and x.status <> 'confirmed')`

// anyDue asks a reader first: an idle dispatcher does not bother the writer.
func (s *Store) anyDue(ctx context.Context, tenant, rail string, retries int) (bool, error) {
	var n int
	err := s.readers.QueryRowContext(ctx, selectAnyDue, s.now(), tenant, rail, retries).Scan(&n)
	return n > 0, err
}

func (t *tx) due(tenant, rail string, limit, retries int) ([]ledger.Operation, error) {
	const query = `
		select ` + operationColumns + ` from operations
		where (status = 'ready' or (status = 'unknown' and next_send_at > 0))
		  and next_send_at <= $1 and lease_until <= $1 and tenant_id = $2 and rail = $3 and (attempts = 0 or $4 > 0)
		  and ` + noneAwaited + notPaused + `
		order by next_send_at, id limit $5`
	rows, err := t.rows(query, t.now, tenant, rail, retries, limit)
	if err != nil {
		return nil, err
	}
	due, err := collect(rows, func(r *sql.Rows) (ledger.Operation, error) { return scanOperation(r) })
	return slices.DeleteFunc(due, func(o ledger.Operation) bool {
		if o.Attempts == 0 {
			return false
		}
		retries--
		return retries < 0
	}), err
}

func (t *tx) claim(o ledger.Operation, worker string, lease time.Duration) (*Claim, error) {
	if o.Claims >= maxClaims {
		_, err := t.hold(o, ledger.Holder{Kind: ledger.Worker, Name: worker}, o.TooManyClaims(),
			fmt.Sprintf("It was claimed %d times in a row and not sent. Something about it stops the workers.", o.Claims))
		return nil, err
	}
	was := o
	o.Epoch = t.s.epoch
	o.Fence++
	o.Claims++
	o.LeaseOwner, o.LeaseUntil = worker, t.now+lease.Milliseconds()
	err := t.note(was, o, "claim", ledger.Holder{Kind: ledger.Worker, Name: worker},
		fmt.Sprintf("Claimed with fence %d.", o.Fence), map[string]int64{"epoch": o.Epoch, "fence": o.Fence, "lease_until": o.LeaseUntil})
	return &Claim{Operation: o, Worker: worker, Epoch: o.Epoch, Fence: o.Fence, Until: o.LeaseUntil}, err
}

// Release gives a claim back before the mark: nothing was sent, nothing counts.
// The operation may be claimed again at next; zero: at once, in its old place
// among those that wait.
func (s *Store) Release(ctx context.Context, c Claim, next int64, sentence string) error {
	return s.change(ctx, func(t *tx) error {
		o, err := t.operation(c.Operation.TenantID, c.Operation.OperationID)
		if err != nil {
			return err
		}
		if !c.holds(o, t.now) {
			return ErrLeaseLost
		}
		was := o
		o.Claims--
		o.LeaseUntil, o.LeaseOwner = 0, ""
		if next != 0 {
			o.NextSendAt = next
		}
		if o.Detail != sentence {
			o.Detail = sentence
			o.Version++
		}
		return t.note(was, o, "release", ledger.Holder{Kind: ledger.Worker, Name: c.Worker}, sentence, nil)
	})
}

// Marked is what a worker may put on the wire: once.
type Marked struct {
	Operation ledger.Operation
	Attempt   ledger.Attempt
	Request   ledger.Request
	Harmless  bool
}

// NotMarked says that the claim did not become a mark, and what became of the
// operation instead. Nothing was sent and nothing may be.
type NotMarked struct{ Sentence string }

func (n NotMarked) Error() string { return "not marked: " + n.Sentence }

// Mark commits "from here on it may have happened". Before it, everything that
// gives the right to send is checked again, in the same transaction: the lease,
// the row's own hash, the token, the approval, the policy, the budgets. A worker
// that does not get a Marked back must not send a byte.
//
// sendFor is how long the worker may still begin to write. render makes the
// request of a first attempt; later ones send the stored bytes.
func (s *Store) Mark(ctx context.Context, c Claim, sendFor time.Duration, render func(ledger.Operation) (ledger.Request, error)) (Marked, error) {
	var m Marked
	var refused *NotMarked
	err := s.change(ctx, func(t *tx) error {
		m, refused = Marked{}, nil
		o, err := t.operation(c.Operation.TenantID, c.Operation.OperationID)
		if err != nil {
			return err
		}
		if !c.holds(o, t.now) {
			return ErrLeaseLost
		}
		sentence, err := t.authority(o, c.Worker)
		if err != nil {
			return err
		}
		if sentence == "" {
			sentence, err = t.heldBack(o, c)
		}
		if err != nil {
			return err
		}
		if sentence != "" {
			refused = &NotMarked{sentence}
			return nil
		}
		m, err = t.mark(o, c, sendFor, render)
		if errors.As(err, &refused) {
			return nil
		}
		return err
	})
	if err == nil && refused != nil {
		return Marked{}, *refused
	}
	return m, err
}

// heldBack gives a claim back whose rail was paused since: it says so, and the
// operation waits as if it had never been claimed.
func (t *tx) heldBack(o ledger.Operation, c Claim) (string, error) {
	p, err := t.pause(o.TenantID, o.Rail)
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	was, sentence := o, fmt.Sprintf("%s has paused its rail: it waits. Nothing was sent this time.", p.Person)
	o.Claims--
	o.LeaseUntil, o.LeaseOwner = 0, ""
	return sentence, t.note(was, o, "release", ledger.Holder{Kind: ledger.Worker, Name: c.Worker}, sentence, nil)
}

func (t *tx) mark(o ledger.Operation, c Claim, sendFor time.Duration, render func(ledger.Operation) (ledger.Request, error)) (Marked, error) {
	rules := t.s.Rulebook(o.TenantID)
	rail, _ := rules.Route(o)
	worker := ledger.Holder{Kind: ledger.Worker, Name: c.Worker}
	request, unsendable, err := t.request(o, render)
	if err != nil {
		return Marked{}, err
	}
	if unsendable != nil {
		sentence, err := t.stop(o, worker, "The request cannot be sent: "+unsendable.Error()+".")
		if err != nil {
			return Marked{}, err
		}
		return Marked{}, &NotMarked{sentence}
	}
	a := ledger.Attempt{
		TenantID: o.TenantID, OperationID: o.OperationID, Number: o.Attempts + 1, Epoch: c.Epoch, Fence: c.Fence, Worker: c.Worker,
		ProviderKey: o.ProviderKey, Address: rail.Address, Account: rail.Account, RequestSHA256: request.SHA256,
		MarkedAt: t.now, SendBy: t.now + sendFor.Milliseconds(), Outcome: ledger.AttemptOpen,
	}
	o, err = t.happen(o, happening{event: ledger.Mark, by: worker,
		sentence: fmt.Sprintf("Attempt %d, key %s, fence %d.", a.Number, o.ProviderKey, c.Fence),
		fact:     map[string]any{"attempt": a.Number, "epoch": a.Epoch, "fence": a.Fence, "key": a.ProviderKey, "request": a.RequestSHA256},
		with: func(o *ledger.Operation) {
			o.Attempts++
			o.OpenAttempts++
			o.Claims, o.Released = 0, false
			o.LeaseUntil = max(o.LeaseUntil, t.now+rules.LeaseFor(rail).Milliseconds()) // connecting took some of it
			if o.FirstMarkAt == 0 {
				o.FirstMarkAt, o.RecognisedBy = t.now, rail.Dedupe.Recognition()
			}
			o.LastSendBy = max(o.LastSendBy, a.SendBy)
			o.QuietFrom = max(o.QuietFrom, o.LastSendBy+rail.Quiet.Milliseconds())
			o.NextSendAt, o.NextLookAt, o.Looks = 0, 0, 0
		}})
	if err != nil {
		return Marked{}, err
	}
	if err := t.addAttempt(a); err != nil {
		return Marked{}, err
	}
	// Not before it was given, also where the clock was set back in between.
	err = t.exec(`update approvals set spent_at = case when decided_at > $1 then decided_at else $1 end where tenant_id = $2 and operation_id = $3 and decision = 'approve' and voided_at = 0 and spent_at = 0`,
		t.now, o.TenantID, o.OperationID)
	return Marked{o, a, request, rules.Harmless(o)}, err
}

func (t *tx) addAttempt(a ledger.Attempt) error {
	return t.exec(`
		insert into attempts (tenant_id, operation_id, number, epoch, fence, worker, provider_key, address, account, request_sha256, marked_at, send_by, outcome, outcome_at, http_status, sentence)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 0, 0, '')`,
		a.TenantID, a.OperationID, a.Number, a.Epoch, a.Fence, a.Worker, a.ProviderKey, a.Address, a.Account, a.RequestSHA256, a.MarkedAt, a.SendBy, a.Outcome)
}

// request renders what goes out with the first mark and keeps it; afterwards it
// gives back what was kept, after checking that it is still what it was. What
// cannot be sent at all is unsendable; err is the store's own trouble.
func (t *tx) request(o ledger.Operation, render func(ledger.Operation) (ledger.Request, error)) (r ledger.Request, unsendable, err error) {
	kept, err := scanRequest(t.row(selectRequest, o.TenantID, o.OperationID))
	switch {
	case err == nil && kept.HashRequest() != kept.SHA256:
		return kept, errors.New("the stored request was changed on disk"), nil
	case err == nil:
		return kept, nil, nil
	case !errors.Is(err, ErrNotFound):
		return kept, nil, err
	}
	if r, unsendable = render(o); unsendable != nil {
		return r, unsendable, nil
	}
	r.SHA256 = r.HashRequest()
	return r, nil, t.exec(`
		insert into requests (tenant_id, operation_id, method, url, header, body, sha256, display, created_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		o.TenantID, o.OperationID, r.Method, r.URL, text(r.Header), notNil(r.Body), r.SHA256, r.Display, t.now)
}

const requestColumns = `method, url, header, body, sha256, display`

const selectRequest = `select ` + requestColumns + ` from requests where tenant_id = $1 and operation_id = $2`

func scanRequest(row scanner) (ledger.Request, error) {
	var r ledger.Request
	var header string
	err := row.Scan(&r.Method, &r.URL, &header, &r.Body, &r.SHA256, &r.Display)
	fromText(header, &r.Header)
	return r, notFound(err)
}

// Request reads the bytes that went out, without their secrets.
func (s *Store) Request(ctx context.Context, tenant, operation string) (ledger.Request, error) {
	return scanRequest(s.readers.QueryRowContext(ctx, selectRequest, tenant, operation))
}

func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
