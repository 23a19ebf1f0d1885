package web

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"time"

	"holdfast/dispatch"
	"holdfast/store"
)

// demoPeople are who may sign in. Between them they have one role each, so that
// a visitor sees what each may do and may not.
var demoPeople = []struct{ name, email, role string }{
	{"Ana", "ana@example.com", "finance"},
	{"Jon", "jon@example.com", "approver"},
	{"Mia", "mia@example.com", "admin"},
}

// demoAgents and who owns their tokens. An owner does not decide on what their
// own agent asks for: Ana sees that at the refunds, which Jon and Mia decide.
var demoAgents = []struct{ name, owner string }{
	{billing, "mia@example.com"},
	{support, "ana@example.com"},
	{treasury, "mia@example.com"},
	{developer, "jon@example.com"},
}

const (
	billing   = "billing"
	support   = "support"
	treasury  = "treasury"
	developer = "developer" // the visitor's own, and trigger's
)

const demoTokenLife = 30 * 24 * time.Hour

// cast are the demo's people and agents.
type cast struct {
	links  map[string]string // secret of a one-click sign-in → e-mail
	tokens map[string]string // agent → token
}

// seedCast sets everybody up. In a folder of an earlier demo the people are
// there already; tokens and links are new each time.
func seedCast(ctx context.Context, i *Instance) (cast, error) {
	c := cast{links: map[string]string{}, tokens: map[string]string{}}
	for _, p := range demoPeople {
		_, _, err := i.Store.PersonByEmail(ctx, p.email)
		if errors.Is(err, store.ErrNotFound) {
			err = i.CreateUser(ctx, UserOptions{Tenant: dispatch.DefaultTenant, Email: p.email, Name: p.name, Roles: []string{p.role}}, io.Discard)
		}
		if err != nil {
			return c, err
		}
		c.links[rand.Text()] = p.email
	}
	for _, a := range demoAgents {
		token, err := i.CreateToken(ctx, TokenOptions{Tenant: dispatch.DefaultTenant, Agent: a.name, Owner: a.owner, TTL: demoTokenLife}, io.Discard)
		if err != nil {
			return c, err
		}
		c.tokens[a.name] = token
	}
	return c, nil
}

// signIn gives each person's one-click link.
func (c cast) signIn(base string) map[string]string {
	links := map[string]string{}
	for secret, email := range c.links {
		links[email] = base + "/in/" + secret
	}
	return links
}
