package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"holdfast/store"
	"holdfast/store/ledger"
)

// refundBody is what an agent reads about an entry.
type refundBody struct {
	ID          string                 `json:"id"`
	Direction   ledger.RefundDirection `json:"direction"`
	Rail        string                 `json:"rail"`
	Currency    string                 `json:"currency"`
	Amount      int64                  `json:"amount"`
	Open        int64                  `json:"open"`
	Cause       ledger.RefundCause     `json:"cause"`
	Status      ledger.RefundStatus    `json:"status"`
	OperationID *string                `json:"operation_id"`
	ReceiptID   string                 `json:"receipt_id"`
	Customer    *string                `json:"customer"`
	DueAt       *string                `json:"due_at"`
}

func refundOf(e ledger.RefundOwed) refundBody {
	return refundBody{e.ID, e.Direction, e.Rail, e.Currency, e.Amount, e.Open, e.Cause, e.Status, given(e.OperationID), e.ReceiptID, given(e.Customer), utc(e.DueAt)}
}

type refundsBody struct {
	Items      []refundBody `json:"items"`
	NextCursor *string      `json:"next_cursor"`
}

var reportMembers = []string{"operation_id", "receipt_id", "rail", "amount", "currency", "cause", "direction", "customer", "reason", "due_at"}

// reportRefund answers POST /v1/refunds-owed.
func (s *Server) reportRefund(c echo.Context) error {
	who, err := s.authenticate(c, "refunds:report")
	if err != nil {
		return err
	}
	in, err := readMembers(c, reportMembers...)
	if err != nil {
		return err
	}
	report, err := readReport(in, who)
	if err != nil {
		return err
	}
	if len(who.Rails) > 0 && report.Rail != "" && !slices.Contains(who.Rails, report.Rail) {
		return problemf("forbidden", "This token may not use the rail %q. Nothing was recorded or sent. Stop and tell the person you work for.", report.Rail)
	}
	e, existed, err := s.Store.ReportRefund(c.Request().Context(), report)
	if wrong, ok := errors.AsType[store.Misreported](err); ok {
		return unreported(wrong.Member, wrong.Sentence)
	}
	if differs, ok := errors.AsType[store.ReportDiffers](err); ok {
		p := problemf("request", "%s is on record for this effect with another %s. It is untouched and nothing else was recorded. Stop and tell the person you work for.",
			differs.Entry.ID, strings.Join(differs.Members, " and "))
		for _, member := range differs.Members {
			p.mismatch = append(p.mismatch, "/"+member)
		}
		return p
	}
	if err != nil {
		return err
	}
	status := http.StatusCreated
	if existed {
		status = http.StatusOK
	}
	return answer{status: status, body: refundOf(e), replayed: existed}.write(c)
}

// unreported refuses a report at one member.
func unreported(member, message string) error {
	p := newProblem("invalid_payload", fmt.Sprintf("/%s: %s. Correct it and report it again. Nothing was recorded or sent.", member, message))
	p.errors = []ledger.FieldError{{Pointer: "/" + member, Message: message}}
	return p
}

// readReport reads the body. There is no amount that goes without saying: one that
// is missing, null or no whole number is refused like one of nothing.
func readReport(r memberReader, who caller) (store.RefundReport, error) {
	report := store.RefundReport{TenantID: who.TenantID, By: who.holder(),
		OperationID: r.line("operation_id", 128), ReceiptID: strings.TrimSpace(r.line("receipt_id", 256)), Rail: r.line("rail", 64),
		Currency: r.line("currency", 16), Cause: ledger.RefundCause(r.line("cause", 32)), Direction: ledger.RefundDirection(r.line("direction", 16)),
		Customer: r.line("customer", 256), Reason: strings.TrimSpace(r.text("reason", maxReason))}
	due := r.line("due_at", 64)
	if r.wrong != nil {
		return report, r.wrong
	}
	number, _ := r.members["amount"].(json.Number)
	amount, err := strconv.ParseInt(number.String(), 10, 64)
	if err != nil || amount <= 0 {
		return report, unreported("amount", "send a positive whole number of minor units")
	}
	report.Amount = amount
	if report.Cause != "" && !slices.Contains(ledger.RefundCauses(), report.Cause) {
		return report, unreported("cause", "use one of "+strings.Join(texts(ledger.RefundCauses()), ", "))
	}
	if report.Direction != "" && report.Direction != ledger.WeOwe && report.Direction != ledger.OwedToUs {
		return report, unreported("direction", "use we_owe or owed_to_us")
	}
	if due != "" {
		when, err := time.Parse(time.RFC3339, due)
		if err != nil || when.Year() < 2000 || when.Year() > 2200 {
			return report, unreported("due_at", "send an RFC 3339 time such as 2026-01-31T12:00:00Z")
		}
		report.DueAt = when.UnixMilli()
	}
	return report, nil
}

func texts[T ~string](all []T) (words []string) {
	for _, one := range all {
		words = append(words, string(one))
	}
	return words
}

// listRefunds answers GET /v1/refunds-owed.
func (s *Server) listRefunds(c echo.Context) error {
	who, err := s.authenticate(c, "refunds:read")
	if err != nil {
		return err
	}
	q := c.QueryParams()
	f, err := refundFilter(q)
	if err != nil {
		return err
	}
	items, next, err := s.Store.RefundPage(c.Request().Context(), who.TenantID, f)
	if errors.Is(err, store.ErrForbidden) {
		return newProblem("invalid_request", "cursor: use one that a list gave out, with the same filter.")
	}
	if err != nil {
		return err
	}
	body := refundsBody{Items: make([]refundBody, 0, len(items))}
	for _, e := range items {
		body.Items = append(body.Items, refundOf(e))
	}
	link := ""
	if next != "" {
		body.NextCursor = &next
		q.Set("cursor", next)
		link = fmt.Sprintf(`</v1/refunds-owed?%s>; rel="next"`, q.Encode())
	}
	return answer{status: http.StatusOK, body: body, link: link}.write(c)
}

func refundFilter(q url.Values) (store.RefundFilter, error) {
	f := store.RefundFilter{Customer: q.Get("customer"), Rail: q.Get("rail"), Currency: q.Get("currency"), Cursor: q.Get("cursor")}
	if err := knownParameters(q, "status", "customer", "rail", "currency", "cursor", "limit"); err != nil {
		return f, err
	}
	if word := q.Get("status"); word != "" {
		for _, one := range strings.Split(word, ",") {
			if !slices.Contains(ledger.RefundStatuses(), ledger.RefundStatus(one)) {
				return f, problemf("invalid_request", "status: %q is no status.", one)
			}
			f.Statuses = append(f.Statuses, ledger.RefundStatus(one))
		}
	}
	limit, err := limitOf(q)
	f.Limit = limit
	return f, err
}
