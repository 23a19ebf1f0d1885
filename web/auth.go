package web

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/labstack/echo/v4"

	"holdfast/store"
	"holdfast/store/ledger"
)

// audience is whom our tokens are for.
const audience = "holdfast"

// Scopes that a token may carry; the first two are given when none is named.
var Scopes = []string{"operations:write", "operations:read", "refunds:report", "refunds:read", "statements:write"}

// IssueToken records a token and signs it. What the token may do stands in the
// record, not in the token: a right that is taken away is gone at once.
func IssueToken(ctx context.Context, st *store.Store, r ledger.TokenRecord, by ledger.Holder) (string, ledger.TokenRecord, error) {
	if len(r.Scopes) == 0 {
		r.Scopes = Scopes[:2]
	}
	for _, scope := range r.Scopes {
		if !slices.Contains(Scopes, scope) {
			return "", r, usagef("no scope %q; there are %s", scope, strings.Join(Scopes, ", "))
		}
	}
	key, err := st.SigningKey(ctx)
	if err != nil {
		return "", r, err
	}
	r, err = st.AddToken(ctx, r, by)
	if err != nil {
		return "", r, err
	}
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.RegisteredClaims{
		Issuer: st.Instance(), Audience: jwt.ClaimStrings{audience}, Subject: r.Agent, ID: r.ID,
		IssuedAt: jwt.NewNumericDate(time.UnixMilli(st.Now())), ExpiresAt: jwt.NewNumericDate(time.UnixMilli(r.ExpiresAt)),
	})
	t.Header["kid"] = key.KID
	signed, err := t.SignedString(key.Private)
	return signed, r, err
}

// caller is who makes an API request.
type caller struct{ ledger.TokenRecord }

func (c caller) holder() ledger.Holder { return ledger.Holder{Kind: ledger.Agent, Name: c.Agent} }

// authenticate finds out who calls, and whether they may call this, now.
func (s *Server) authenticate(c echo.Context, scope string) (caller, error) {
	who, err := s.identify(c.Request())
	if err != nil {
		return caller{}, err
	}
	if err := who.holds(scope); err != nil {
		return caller{}, err
	}
	return who, s.limitRate(c, "token", who.ID)
}

// identify finds out who calls. Whatever is wrong with a token has one answer, so
// that trying teaches nothing. The signature is checked first, then the record:
// it must exist, be of this agent, not be revoked and not be over.
func (s *Server) identify(q *http.Request) (caller, error) {
	raw, ok := bearer(q)
	if !ok {
		return caller{}, newProblem("unauthorized", "")
	}
	token, err := s.verify(q.Context(), raw)
	if err != nil {
		return caller{}, err
	}
	r, err := s.Store.Token(q.Context(), token.id)
	switch {
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return caller{}, err
	case err != nil, r.Agent != token.agent, r.RevokedAt > 0, r.ExpiresAt <= s.Store.Now():
		return caller{}, newProblem("unauthorized", "")
	}
	return caller{r}, nil
}

// holds checks that the token carries a scope.
func (c caller) holds(scope string) error {
	if !slices.Contains(c.Scopes, scope) {
		return problemf("forbidden", "This token lacks the scope %s. Nothing was recorded or sent. Stop and tell the person you work for.", scope)
	}
	return nil
}

func bearer(r *http.Request) (string, bool) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	token = strings.TrimSpace(token)
	return token, ok && strings.EqualFold(scheme, "Bearer") && token != ""
}

// verify checks a token's signature and claims.
func (s *Server) verify(ctx context.Context, raw string) (goodToken, error) {
	sum := sha256.Sum256([]byte(raw))
	if g, ok := s.tokens.get(sum, s.Store.Now()); ok {
		return g, nil
	}
	key, err := s.Store.SigningKey(ctx)
	if err != nil {
		return goodToken{}, err
	}
	var claims jwt.RegisteredClaims
	_, err = jwt.ParseWithClaims(raw, &claims, func(t *jwt.Token) (any, error) {
		if t.Header["kid"] != key.KID {
			return nil, errors.New("unknown kid")
		}
		return key.Private.Public().(ed25519.PublicKey), nil
	},
		jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}),
		jwt.WithIssuer(s.Store.Instance()), jwt.WithAudience(audience),
		jwt.WithExpirationRequired(), jwt.WithIssuedAt(),
		jwt.WithTimeFunc(func() time.Time { return time.UnixMilli(s.Store.Now()) }),
		jwt.WithStrictDecoding())
	// An expiry in milliseconds is a mistake, not a very long life.
	if err != nil || claims.ID == "" || claims.ExpiresAt.Year() > 9999 {
		return goodToken{}, newProblem("unauthorized", "")
	}
	now := s.Store.Now()
	g := goodToken{claims.ID, claims.Subject, min(now+cacheFor.Milliseconds(), claims.ExpiresAt.UnixMilli())}
	s.tokens.put(sum, g)
	return g, nil
}

// tokenCache remembers good signatures for a short while: checking one costs
// more than reading the record, which is read every time all the same.
type tokenCache struct {
	mu   sync.Mutex
	good map[[32]byte]goodToken
}

type goodToken struct {
	id    string
	agent string
	until int64
}

const (
	cacheFor  = 30 * time.Second
	cacheSize = 10_000
)

func (t *tokenCache) get(sum [32]byte, now int64) (goodToken, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g, ok := t.good[sum]
	return g, ok && now < g.until
}

func (t *tokenCache) put(sum [32]byte, g goodToken) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.good == nil || len(t.good) >= cacheSize {
		t.good = map[[32]byte]goodToken{}
	}
	t.good[sum] = g
}
