package web

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"holdfast/store"
	"holdfast/store/ledger"
)

// dossier is all that the ledger holds about one operation, as somebody may see
// it.
type dossier struct {
	Operation ledger.Operation // veiled
	Whole     ledger.Operation
	Hidden    bool // some of it is not for this reader
	Request   *ledger.Request
	Approvals []ledger.Approval
	Attempts  []ledger.Attempt
	Evidence  []ledger.Evidence
	Lines     []ledger.KeptLine
	Refunds   []ledger.RefundOwed
	Log       []ledger.Entry
	Proof     ledger.LogProof
	Leaves    [][]byte // of the entries of the log, as they were hashed; none before the first seal
}

func (s *Server) dossier(ctx context.Context, p ledger.PersonRecord, o ledger.Operation) (d dossier, err error) {
	d = dossier{Operation: s.veil(p, o), Whole: o, Hidden: s.conceals(p, o)}
	q, err := s.Store.Request(ctx, o.TenantID, o.OperationID)
	if err == nil {
		d.Request = &q
	} else if !errors.Is(err, store.ErrNotFound) {
		return d, err
	}
	if d.Approvals, err = s.Store.Approvals(ctx, o.TenantID, o.OperationID); err != nil {
		return d, err
	}
	if d.Attempts, err = s.Store.Attempts(ctx, o.TenantID, o.OperationID); err != nil {
		return d, err
	}
	if d.Evidence, err = s.Store.Evidence(ctx, o.TenantID, o.OperationID); err != nil {
		return d, err
	}
	if d.Lines, err = s.Store.LinesOf(ctx, o.TenantID, o.OperationID); err != nil {
		return d, err
	}
	if d.Refunds, err = s.Store.RefundsOf(ctx, o.TenantID, o.OperationID); err != nil {
		return d, err
	}
	if d.Log, err = s.Store.Timeline(ctx, o.TenantID, o.OperationID); err != nil {
		return d, err
	}
	d.Proof, d.Leaves, err = s.Store.ProveLog(ctx, d.Log)
	return d, err
}

// keptBytes is a byte string as it is kept: its hash, and its text where it may
// be shown.
type keptBytes struct {
	SHA256   string  `json:"sha256"`
	Bytes    int     `json:"bytes"`
	Encoding *string `json:"encoding"` // utf-8 · base64; null: not shown
	Body     *string `json:"body"`
}

func keep(b []byte, hidden bool) keptBytes {
	sum := sha256.Sum256(b)
	k := keptBytes{SHA256: hex.EncodeToString(sum[:]), Bytes: len(b)}
	if hidden {
		return k
	}
	encoding, body := "utf-8", string(b)
	if !utf8.Valid(b) {
		encoding, body = "base64", base64.StdEncoding.EncodeToString(b)
	}
	k.Encoding, k.Body = &encoding, &body
	return k
}

// The members of a bundle.
type (
	evidenceBody struct {
		Operation      ledger.Envelope   `json:"operation"`
		Masked         bool              `json:"masked"`
		Canonical      keptBytes         `json:"canonical"`
		Request        *keptRequest      `json:"request"`
		Approvals      []approvalBody    `json:"approvals"`
		Attempts       []attemptBody     `json:"attempts"`
		Evidence       []observationBody `json:"evidence"`
		Receipts       []receiptBody     `json:"receipts"`
		StatementLines []lineBody        `json:"statement_lines"`
		RefundsOwed    []refundBody      `json:"refunds_owed"`
		Timeline       []entryBody       `json:"timeline"`
		Log            logBody           `json:"log"`
	}
	logBody struct {
		Key     *string           `json:"key"` // null: nothing was sealed yet
		Head    *string           `json:"head"`
		Entries []provedBody      `json:"entries"`
		Earlier *ledger.HeadProof `json:"earlier"`
	}
	provedBody struct {
		ledger.EntryProof
		Leaf keptBytes `json:"leaf"`
	}
	keptRequest struct {
		SHA256 string    `json:"sha256"` // over method, address, headers and body
		Body   keptBytes `json:"body"`
	}
	approvalBody struct {
		Decision     string  `json:"decision"`
		By           string  `json:"by"`
		SelfApproved bool    `json:"self_approved"`
		Fingerprint  string  `json:"fingerprint"`
		Policy       string  `json:"policy_version"`
		Reason       string  `json:"reason"`
		DecidedAt    *string `json:"decided_at"`
		SpentAt      *string `json:"spent_at"`
		VoidedAt     *string `json:"voided_at"`
	}
	attemptBody struct {
		Number        int     `json:"number"`
		Worker        string  `json:"worker"`
		Fence         int64   `json:"fence"`
		ProviderKey   string  `json:"provider_key"`
		RequestSHA256 string  `json:"request_sha256"`
		MarkedAt      *string `json:"marked_at"`
		Outcome       string  `json:"outcome"`
		OutcomeAt     *string `json:"outcome_at"`
		HTTPStatus    *int    `json:"http_status"`
		Sentence      string  `json:"sentence"`
	}
	observationBody struct {
		ID       string    `json:"id"`
		Attempt  int       `json:"attempt"`
		Source   string    `json:"source"`
		Finding  string    `json:"finding"`
		Sentence string    `json:"sentence"`
		By       string    `json:"by"`
		At       *string   `json:"at"`
		Body     keptBytes `json:"body"`
	}
	receiptBody struct {
		Receipt *ledger.Receipt `json:"receipt"`
		Raw     keptBytes       `json:"raw"`
	}
	lineBody struct {
		Rail       string  `json:"rail"`
		Number     int     `json:"number"`
		ProviderID string  `json:"provider_id"`
		Stamp      string  `json:"stamp"`
		Amount     *int64  `json:"amount"`
		Currency   string  `json:"currency"`
		At         *string `json:"at"`
		State      string  `json:"state"`
		SHA256     string  `json:"sha256"` // over what the file says of the line
	}
	entryBody struct {
		Seq       int64           `json:"seq"`
		At        *string         `json:"at"`
		Object    string          `json:"object"`
		Event     string          `json:"event"`
		ActorKind string          `json:"actor_kind"`
		Actor     string          `json:"actor"`
		From      string          `json:"from"`
		To        string          `json:"to"`
		Reason    string          `json:"reason"`
		Sentence  string          `json:"sentence"`
		Fact      json.RawMessage `json:"fact"`
	}
)

// showEvidence answers GET /v1/operations/{id}/evidence. An agent is shown what a
// person without a role would be.
func (s *Server) showEvidence(c echo.Context) error {
	who, err := s.authenticate(c, "operations:read")
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	o, err := s.find(ctx, who, pathID(c))
	if err != nil {
		return err
	}
	original, err := s.Store.Original(ctx, o)
	if err != nil {
		return err
	}
	e, err := s.envelope(ctx, o, original)
	if err != nil {
		return err
	}
	reader := ledger.PersonRecord{TenantID: who.TenantID}
	d, err := s.dossier(ctx, reader, o)
	if err != nil {
		return err
	}
	if e.Result != nil && original != nil {
		e.Result = s.veil(reader, *original).Receipt
	} else if e.Result != nil {
		e.Result = d.Operation.Receipt
	}
	body := s.bundle(d)
	body.Operation = e
	return answer{status: http.StatusOK, body: body}.write(c)
}

// canonicalBytes are the bytes that the fingerprint covers. Where something in
// them is not shown, the hash is still theirs and the text is masked.
func (s *Server) canonicalBytes(d dossier) keptBytes {
	k := keep(d.Whole.Canonical, d.Hidden)
	action := s.Store.Rulebook(d.Whole.TenantID).Actions[d.Whole.ActionType]
	if !d.Hidden || action == nil {
		return k
	}
	if masked, err := action.Mask(d.Whole.Canonical); err == nil {
		shown := keep(masked, false)
		k.Encoding, k.Body = shown.Encoding, shown.Body
	}
	return k
}

func (s *Server) bundle(d dossier) evidenceBody {
	b := evidenceBody{Masked: d.Hidden, Canonical: s.canonicalBytes(d), Approvals: []approvalBody{}, Attempts: []attemptBody{}, Evidence: []observationBody{},
		Receipts: []receiptBody{}, StatementLines: []lineBody{}, RefundsOwed: []refundBody{}, Timeline: []entryBody{}}
	if d.Request != nil {
		b.Request = &keptRequest{d.Request.SHA256, keep(d.Request.Body, d.Hidden)}
	}
	for _, a := range d.Approvals {
		b.Approvals = append(b.Approvals, approvalBody{a.Decision, a.PersonEmail, a.SelfApproved, a.Fingerprint, a.PolicyVersion, a.Reason, utc(a.DecidedAt), utc(a.SpentAt), utc(a.VoidedAt)})
	}
	for _, a := range d.Attempts {
		var status *int
		if a.HTTPStatus > 0 {
			status = &a.HTTPStatus
		}
		b.Attempts = append(b.Attempts, attemptBody{a.Number, a.Worker, a.Fence, a.ProviderKey, a.RequestSHA256, utc(a.MarkedAt), string(a.Outcome), utc(a.OutcomeAt), status, a.Sentence})
	}
	for _, e := range d.Evidence {
		b.Evidence = append(b.Evidence, observationBody{e.ID, e.Attempt, e.Source, e.Finding, e.Sentence, e.By, utc(e.At), keep(e.Body, d.Hidden)})
	}
	if d.Operation.Receipt != nil {
		b.Receipts = append(b.Receipts, receiptBody{d.Operation.Receipt, keep(d.Whole.Receipt.Raw, d.Hidden)})
	}
	for _, l := range d.Lines {
		line := lineBody{l.Rail, l.Number, l.ProviderID, l.Stamp, &l.Amount, l.Currency, utc(l.At), string(l.State), l.Content}
		if d.Whole.Terms.HasAmount && !d.Operation.Terms.HasAmount {
			line.Amount = nil
		}
		b.StatementLines = append(b.StatementLines, line)
	}
	for _, r := range d.Refunds {
		entry := refundOf(r)
		if d.Hidden {
			entry.Customer = nil
		}
		b.RefundsOwed = append(b.RefundsOwed, entry)
	}
	for _, e := range d.Log {
		entry := entryBody{e.Seq, utc(e.At), e.Object, e.Event, string(e.ActorKind), e.Actor, string(e.From), string(e.To), string(e.Reason), e.Sentence, nil}
		if !d.Hidden && json.Valid([]byte(e.Fact)) {
			entry.Fact = json.RawMessage(e.Fact)
		}
		b.Timeline = append(b.Timeline, entry)
	}
	b.Log = provedLog(d)
	return b
}

func provedLog(d dossier) logBody {
	b := logBody{Entries: []provedBody{}, Earlier: d.Proof.Earlier}
	if d.Proof.Key != "" {
		b.Key, b.Head = &d.Proof.Key, &d.Proof.Head
	}
	for i, e := range d.Proof.Entries {
		b.Entries = append(b.Entries, provedBody{e, keep(d.Leaves[i], d.Hidden)})
	}
	return b
}
