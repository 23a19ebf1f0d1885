package rail

import (
	"encoding/base64"
	"errors"
	"strings"
)

// Auth is how the rail proves who asks. It becomes one header that joins the
// bytes at the wire, as configured headers do.
type Auth struct {
	Bearer Secret `yaml:"bearer"`
	Basic  *Basic `yaml:"basic"`
}

// Basic is a name and a password. Some providers take a key for the name, so it
// is kept as one.
type Basic struct {
	User     Secret `yaml:"user"`
	Password Secret `yaml:"password"`
}

func (a Auth) given() bool { return a.Bearer.text != nil || a.Basic != nil }

// check says under which key a credential is wrong, and how. It shows none.
func (a Auth) check() (key string, err error) {
	var user string
	if a.Basic != nil {
		user = a.Basic.User.reveal()
	}
	switch {
	case a.Bearer.text != nil && a.Basic != nil:
		return "auth", errors.New("has both bearer and basic; give one")
	case a.Bearer.text != nil:
		return "auth.bearer", checkHeaderValue(a.Bearer.reveal())
	case a.Basic == nil:
		return "", nil
	case user == "" || strings.Contains(user, ":") || hasControl(user):
		return "auth.basic.user", errors.New("is missing, or holds a colon or a control character")
	case a.Basic.Password.text == nil:
		return "auth.basic.password", errors.New("is missing; write \"\" where the provider wants none")
	case hasControl(a.Basic.Password.reveal()):
		return "auth.basic.password", errors.New("holds a control character")
	}
	return "", nil
}

// header is the one line that all of it becomes.
func (a Auth) header() header {
	if a.Basic == nil {
		return header{"Authorization", NewSecret("Bearer " + a.Bearer.reveal())}
	}
	pair := a.Basic.User.reveal() + ":" + a.Basic.Password.reveal()
	return header{"Authorization", NewSecret("Basic " + base64.StdEncoding.EncodeToString([]byte(pair)))}
}

// password is what an answer might repeat apart from that line.
func (a Auth) password() Secret {
	if a.Basic == nil {
		return Secret{}
	}
	return a.Basic.Password
}

// auth adds the credential to the configured headers.
func (f *findings) auth(r *Rail, c Config) {
	if !c.Auth.given() {
		return
	}
	for name := range c.Headers {
		if strings.EqualFold(name, "Authorization") {
			f.add("auth", "says the same as headers.%s; give one", name)
			return
		}
	}
	if key, err := c.Auth.check(); err != nil {
		f.check(key, err)
		return
	}
	r.secret = append(r.secret, c.Auth.header())
}
