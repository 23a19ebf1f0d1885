package rail

import (
	"context"
	"encoding/base64"
	"errors"
	"net/mail"
	"slices"
	"strings"
	"time"

	"holdfast/store/ledger"
)

// The schemes say how the connection is protected. They are part of the rail's
// address, and an approval is bound to that: mail that was approved for a
// protected way takes no other.
const (
	smtpTLS      = "smtps"      // TLS from the first byte
	smtpStartTLS = "smtp"       // STARTTLS, or no mail
	smtpPlain    = "smtp+plain" // in the clear, as written
)

// Mail is what an smtp rail adds to a payload to make a message of it.
type Mail struct {
	From     string   `yaml:"from"`      // the sender: an address, or Name <address>
	Domain   string   `yaml:"domain"`    // of Message-IDs and of the greeting; the sender's if left out
	LeaveOut []string `yaml:"leave_out"` // members of the payload that are no part of the message
}

// overSMTP is the adapter of mail submission (RFC 6409 and 5321). smtp_message.go
// renders, smtp_dialogue.go speaks, smtp_answer.go classifies.
//
// A mail server recognises no repeated message and cannot be asked for one. What
// this adapter knows for certain is one moment: before the final dot was handed
// to the network, nothing can have been delivered.
type overSMTP struct {
	from     *mail.Address
	domain   string
	leaveOut []string
	login    *Basic // nil: the server asks for none
}

func (overSMTP) usable(*Rail) error { return nil }

func (overSMTP) lookup(context.Context, *Rail, ledger.Operation) ledger.Look {
	return ledger.Look{Finding: ledger.LookInconclusive, Sentence: "A mail server cannot be asked what it delivered."}
}

// buildMail checks the configuration of an smtp rail and makes the rail.
func (f *findings) buildMail(r *Rail, c Config) (*Rail, error) {
	f.onlyHTTP(c)
	c = c.withMailWays().filled()
	f.numbers(c)
	f.furnishings(c)
	if hasControl(c.Account) {
		f.add("account", "holds a control character")
	}
	m := f.mail(c)
	base, err := parseAddress(c.BaseURL, "smtps://mail.example.com", smtpTLS, smtpStartTLS, smtpPlain)
	f.check("base_url", err)
	if err == nil && base.Path != "" {
		f.add("base_url", "has a path, which mail has no use for")
	}
	if err == nil && m.login != nil && base.Scheme == smtpPlain && !newTarget(base, false).loopback() {
		f.add("auth", "would send the password in the clear; write smtp:// or smtps:// in base_url")
	}
	if len(f.errs) > 0 {
		return nil, errors.Join(f.errs...)
	}
	r.config, r.base, r.adapter = c, base, m
	r.origin = base.Scheme + "://" + base.Host
	r.dial = newTarget(base, c.AllowPrivate)
	r.masker = newMasker(m.login.shapes())
	r.promise = c.promise(r.name, base)
	return r, nil
}

// onlyHTTP refuses what has no meaning for mail: a key that is read and then
// ignored would promise something.
func (f *findings) onlyHTTP(c Config) {
	for _, k := range []struct {
		key   string
		given bool
	}{
		{"headers", c.Headers != nil},
		{"auth.bearer", c.Auth.Bearer.text != nil},
		{"tls", c.TLS != (TLS{})},
		{"send", c.Send != Send{}},
		{"stamp", c.Stamp != Stamp{}},
		{"answers", c.Answers != nil},
		{"receipt", c.Receipt != Receipt{}},
		{"lookup", c.Lookup.given()},
	} {
		if k.given {
			f.add(k.key, "is not for adapter smtp; leave it out")
		}
	}
	if c.Dedupe != (Dedupe{}) && c.Dedupe != (Dedupe{By: string(ledger.DedupeNone)}) {
		f.add("dedupe", "is not for adapter smtp: a mail server recognises no repeated message; leave it out")
	}
}

// onlyMail refuses, on other rails, what only mail has a use for.
func (f *findings) onlyMail(c Config) {
	if c.Mail.From != "" || c.Mail.Domain != "" || c.Mail.LeaveOut != nil {
		f.add("mail", "is for adapter smtp")
	}
}

func (f *findings) mail(c Config) overSMTP {
	m := overSMTP{domain: strings.ToLower(c.Mail.Domain), leaveOut: c.Mail.LeaveOut}
	from, err := parseMailbox(c.Mail.From)
	switch {
	case c.Mail.From == "":
		f.add("mail.from", "is missing; write the sender, such as Billing <billing@example.com>")
	case err != nil:
		f.check("mail.from", err)
	default:
		m.from = from
		if m.domain == "" {
			m.domain = strings.ToLower(domainOf(from.Address))
		}
		if !isHostname(m.domain) {
			f.add("mail.domain", "%q is not the name of a domain", m.domain)
		}
	}
	for _, name := range m.leaveOut {
		switch {
		case name == "":
			f.add("mail.leave_out", "names an empty member")
		case slices.Contains(letterMembers, name):
			f.add("mail.leave_out", "%s is part of the message", name)
		}
	}
	if c.Auth.Basic != nil {
		m.login = c.Auth.Basic
		for _, k := range []struct {
			key   string
			value Secret
		}{{"auth.basic.user", m.login.User}, {"auth.basic.password", m.login.Password}} {
			switch {
			case k.value.reveal() == "":
				f.add(k.key, "is missing")
			case hasControl(k.value.reveal()):
				f.add(k.key, "holds a control character")
			}
		}
	}
	return m
}

// shapes are the forms in which a server could repeat the credential. The name
// alone is often the sender's address, and no secret.
func (b *Basic) shapes() []header {
	if b == nil {
		return nil
	}
	user, password := b.User.reveal(), b.Password.reveal()
	coded := func(text string) Secret { return NewSecret(base64.StdEncoding.EncodeToString([]byte(text))) }
	return []header{{"AUTH", coded("\x00" + user + "\x00" + password)}, {"AUTH", coded(password)}, {"AUTH", b.Password}}
}

// withMailWays fills in what suits mail better than the common defaults: servers
// look through a message before they answer, and turn strangers away for
// minutes (greylisting).
func (c Config) withMailWays() Config {
	if !c.Timeout.given {
		c.Timeout = Lasting(time.Minute)
	}
	if c.Limits.Backoff == nil {
		c.Limits.Backoff = []Duration{Lasting(10 * time.Second), Lasting(10 * time.Minute)}
	}
	if c.Limits.MaxAttempts == nil {
		attempts := 10
		c.Limits.MaxAttempts = &attempts
	}
	if !c.Limits.MaxElapsed.given {
		c.Limits.MaxElapsed = Lasting(4 * time.Hour)
	}
	return c
}
