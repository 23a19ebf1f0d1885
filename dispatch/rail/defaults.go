package rail

import (
	"net/url"
	"time"

	"holdfast/store/ledger"
)

// filled puts the defaults in for everything but the sandbox's own ways.
func (c Config) filled() Config {
	or := func(p *int, otherwise int) *int {
		if p == nil {
			return &otherwise
		}
		return p
	}
	if c.Answers == nil {
		c.Answers = defaultAnswers
	}
	if c.Dedupe.By == "" && c.Dedupe.Header == "" && c.Dedupe.Body == "" {
		c.Dedupe.By = string(ledger.DedupeNone)
	}
	if c.Send.Method == "" {
		c.Send.Method = "POST"
	}
	if c.Send.Body == "" {
		c.Send.Body = bodyPayload
	}
	if c.Send.Encoding == "" {
		c.Send.Encoding = encodingJSON
	}
	if n := c.Lookup.Next; n != nil {
		filled := *n
		if filled.More == "" {
			filled.More = "/has_more"
		}
		filled.Pages = or(filled.Pages, 20)
		c.Lookup.Next = &filled
	}
	if c.Receipt.Amounts == "" {
		c.Receipt.Amounts = amountsMinor
	}
	c.Limits.Concurrency = or(c.Limits.Concurrency, 8)
	c.Limits.MaxAttempts = or(c.Limits.MaxAttempts, 5)
	c.Limits.Quota = or(c.Limits.Quota, 500)
	c.Limits.Recheck = or(c.Limits.Recheck, 200)
	if c.Limits.Backoff == nil {
		c.Limits.Backoff = []Duration{Lasting(500 * time.Millisecond), Lasting(time.Minute)}
	}
	c.Breaker.Failures = or(c.Breaker.Failures, 5)
	for _, d := range []struct {
		at        *Duration
		otherwise time.Duration
	}{
		{&c.Timeout, 10 * time.Second},
		{&c.Limits.MaxElapsed, 15 * time.Minute},
		{&c.Breaker.OpenFor, 30 * time.Second},
		{&c.Quiet, 15 * time.Minute},        // a request can sit at the provider after its sender died
		{&c.PendingFor, 7 * 24 * time.Hour}, // a bank's week
	} {
		if !d.at.given {
			*d.at = Lasting(d.otherwise)
		}
	}
	return c
}

// promise is the part of the configuration that the ledger judges by.
func (c Config) promise(name string, base *url.URL) ledger.Rail {
	return ledger.Rail{
		Name:    name,
		Adapter: c.Adapter,
		Address: base.String(),
		Account: c.boundAccount(),
		Dedupe:  ledger.Dedupe{By: ledger.DedupeBy(c.Dedupe.By), Place: c.Dedupe.place(), Retention: c.Dedupe.Retention.Or(0)},
		Lookup: ledger.LookupPromise{
			Possible:           c.Lookup.Path != "",
			Lag:                c.Lookup.Lag.Or(0),
			AbsenceProvesAfter: c.Lookup.AbsenceProvesAfter.Or(0), // zero and never are one
		},
		Compared: ledger.ReceiptFields{
			Amount:    c.Receipt.Amount != "",
			Currency:  c.Receipt.Currency != "",
			Recipient: c.Receipt.Recipient != "",
			Reference: c.Receipt.Reference != "",
			Stamp:     c.Receipt.Stamp != "",
		},
		Timeout:      c.Timeout.Or(0),
		Quiet:        c.Quiet.Or(0),
		PendingFor:   c.PendingFor.Or(0),
		StatementDue: c.Statement.Due.Or(0),
		Limits: ledger.Limits{
			Concurrency: *c.Limits.Concurrency,
			Quota:       *c.Limits.Quota,
			PerSecond:   c.Limits.PerSecond,
			Recheck:     *c.Limits.Recheck,
			MaxAttempts: *c.Limits.MaxAttempts,
			MaxElapsed:  c.Limits.MaxElapsed.Or(0),
			BackoffMin:  c.Limits.Backoff[0].Or(0),
			BackoffMax:  c.Limits.Backoff[1].Or(0),
		},
	}
}
