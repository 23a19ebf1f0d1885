package web

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"holdfast/store/ledger"
)

// mint is a workshop for tokens that are signed with the ledger's own key.
type mint struct {
	*world
	kid string
	key ed25519.PrivateKey
	r   ledger.TokenRecord // of a good token
	old string             // that token
}

func newMint(t *testing.T) mint {
	t.Helper()
	w := newServer(t, apiConfig)
	token, r := w.token("default", "agent-1", "owner@example.com")
	key, err := w.Store.SigningKey(t.Context())
	must(t, err)
	return mint{w, key.KID, key.Private, r, token}
}

// parts are header and claims of a good token, with some of them changed; a
// change to nil takes the member away.
func (m mint) parts(header, claims jwt.MapClaims) (h, c map[string]any) {
	now := m.Store.Now() / 1000
	h = map[string]any{"alg": "EdDSA", "typ": "JWT", "kid": m.kid}
	c = map[string]any{"iss": m.Store.Instance(), "aud": audience, "sub": m.r.Agent, "jti": m.r.ID, "iat": now, "exp": m.r.ExpiresAt / 1000}
	for part, changes := range map[*map[string]any]jwt.MapClaims{&h: header, &c: claims} {
		maps.Copy(*part, changes)
		maps.DeleteFunc(*part, func(_ string, v any) bool { return v == nil })
	}
	return h, c
}

func segment(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func (m mint) unsigned(header, claims jwt.MapClaims) string {
	h, c := m.parts(header, claims)
	return segment(h) + "." + segment(c)
}

func (m mint) signed(header, claims jwt.MapClaims) string {
	text := m.unsigned(header, claims)
	return text + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(m.key, []byte(text)))
}

func withHMAC(text string, secret []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func TestForgedTokensAreOneAnswer(t *testing.T) {
	m := newMint(t)
	now := m.Store.Now() / 1000
	public := m.key.Public().(ed25519.PublicKey)
	der, err := x509.MarshalPKIXPublicKey(public)
	must(t, err)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	_, strangerKey, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	stranger := m
	stranger.key = strangerKey
	rs := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{"iss": m.Store.Instance(), "aud": audience, "sub": m.r.Agent, "jti": m.r.ID, "exp": now + 60})
	rs.Header["kid"] = m.kid
	withRSA, err := rs.SignedString(rsaKey)
	must(t, err)

	revoked, revokedRecord := m.token("default", "agent-1", "")
	must(t, m.Store.RevokeToken(t.Context(), revokedRecord.ID, ledger.Holder{Kind: ledger.Person, Name: "test"}))
	elsewhere, _ := newServer(t, apiConfig).token("default", "agent-1", "")
	good := m.signed(nil, nil)
	head, rest, _ := strings.Cut(good, ".")
	body, signature, _ := strings.Cut(rest, ".")
	_, otherClaims := m.parts(nil, jwt.MapClaims{"sub": "agent-2"})

	forged := map[string]string{
		"no algorithm":                        m.unsigned(jwt.MapClaims{"alg": "none"}, nil) + ".",
		"no algorithm, in capitals":           m.unsigned(jwt.MapClaims{"alg": "NONE"}, nil) + ".",
		"no algorithm, the good signature":    m.unsigned(jwt.MapClaims{"alg": "none"}, nil) + "." + signature,
		"no algorithm named":                  m.signed(jwt.MapClaims{"alg": nil}, nil),
		"no signature":                        head + "." + body + ".",
		"HS256 with the public key":           withHMAC(m.unsigned(jwt.MapClaims{"alg": "HS256"}, nil), public),
		"HS256 with the public key as DER":    withHMAC(m.unsigned(jwt.MapClaims{"alg": "HS256"}, nil), der),
		"HS256 with the public key as PEM":    withHMAC(m.unsigned(jwt.MapClaims{"alg": "HS256"}, nil), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})),
		"HS256 with nothing":                  withHMAC(m.unsigned(jwt.MapClaims{"alg": "HS256"}, nil), nil),
		"RS256":                               withRSA,
		"a stranger's key":                    stranger.signed(nil, nil),
		"a stranger's key in the header":      stranger.signed(jwt.MapClaims{"jwk": map[string]any{"kty": "OKP", "crv": "Ed25519", "x": base64.RawURLEncoding.EncodeToString(strangerKey.Public().(ed25519.PublicKey))}}, nil),
		"a stranger's key by address":         stranger.signed(jwt.MapClaims{"jku": "http://127.0.0.1:1/keys"}, nil),
		"a stranger's certificate by address": stranger.signed(jwt.MapClaims{"x5u": "http://127.0.0.1:1/cert", "x5c": []string{base64.StdEncoding.EncodeToString(der)}}, nil),
		"an unknown kid":                      m.signed(jwt.MapClaims{"kid": "k_unknown"}, nil),
		"no kid":                              m.signed(jwt.MapClaims{"kid": nil}, nil),
		"a kid that is a path":                m.signed(jwt.MapClaims{"kid": "../../../../dev/null"}, nil),
		"a kid that is a statement":           m.signed(jwt.MapClaims{"kid": m.kid + "' or '1'='1"}, nil),
		"a kid that is a list":                m.signed(jwt.MapClaims{"kid": []string{m.kid}}, nil),
		"another issuer":                      m.signed(nil, jwt.MapClaims{"iss": "somebody"}),
		"no issuer":                           m.signed(nil, jwt.MapClaims{"iss": nil}),
		"another audience":                    m.signed(nil, jwt.MapClaims{"aud": "elsewhere"}),
		"no audience":                         m.signed(nil, jwt.MapClaims{"aud": nil}),
		"no expiry":                           m.signed(nil, jwt.MapClaims{"exp": nil}),
		"an expiry that is a text":            m.signed(nil, jwt.MapClaims{"exp": "never"}),
		"expired":                             m.signed(nil, jwt.MapClaims{"exp": now - 1}),
		"expired this very second":            m.signed(nil, jwt.MapClaims{"exp": now}),
		"not yet":                             m.signed(nil, jwt.MapClaims{"nbf": now + 60}),
		"issued tomorrow":                     m.signed(nil, jwt.MapClaims{"iat": now + 86400}),
		"revoked":                             revoked,
		"an unknown id":                       m.signed(nil, jwt.MapClaims{"jti": "tok_unknown"}),
		"no id":                               m.signed(nil, jwt.MapClaims{"jti": nil}),
		"another agent's id":                  m.signed(nil, jwt.MapClaims{"sub": "agent-2"}),
		"no agent":                            m.signed(nil, jwt.MapClaims{"sub": nil}),
		"another ledger's":                    elsewhere,
		"a payload that was changed":          head + "." + segment(otherClaims) + "." + signature,
		"garbage behind it":                   good + "x",
		"a part behind it":                    good + ".x",
		"a word behind it":                    good + " x",
		"padding behind it":                   good + "==",
		"its first half":                      good[:len(good)/2],
		"no token at all":                     "holdfast",
		"dots alone":                          "..",
		"a very long one":                     strings.Repeat("a", 8<<10) + "." + body + "." + signature,
	}
	// The last letter holds two bits of the signature and four of nothing.
	forged["bits behind the signature"] = good[:len(good)-1] + string(rune(good[len(good)-1]+1))

	const path = "/v1/operations"
	allow := func(headers ...string) heard {
		return hear(t, m.do(http.MethodPost, path, named("op-1"), append(headers, "Content-Type: application/json")...))
	}
	want := allow().Body.String() // without any token
	refuse := func(name string, headers ...string) {
		t.Helper()
		h := allow(headers...)
		h.is(t, 401, "unauthorized", "fix_request", false)
		if challenge := h.Header().Get("WWW-Authenticate"); !strings.HasPrefix(challenge, `Bearer realm="holdfast"`) {
			t.Errorf("%s: WWW-Authenticate is %q", name, challenge)
		}
		if h.Body.String() != want {
			t.Errorf("%s has an answer of its own: %s", name, h.Body)
		}
	}
	for name, token := range forged {
		refuse(name, "Authorization: Bearer "+token)
	}
	for name, headers := range map[string][]string{
		"no header": nil, "an empty header": {"Authorization: "}, "the word alone": {"Authorization: Bearer"}, "no scheme": {"Authorization: " + good},
		"another scheme": {"Authorization: Basic " + good}, "two headers": {"Authorization: Bearer " + good, "Authorization: Bearer " + good},
		"a good and a bad header": {"Authorization: Bearer " + good, "Authorization: Bearer " + revoked}, "a cookie": {"Cookie: token=" + good}, "a header of its own": {"X-Api-Key: " + good},
	} {
		refuse(name, headers...)
	}
	refuse("in the address", "X-Nothing: true")
	if h := hear(t, m.do(http.MethodGet, path+"?access_token="+good, "")); h.Code != 401 {
		t.Error("a token in the address is taken: ", h.Code)
	}
	if m.count("default") != 0 {
		t.Error("something was recorded")
	}

	// The workshop's good tokens are good: what is refused above is refused for
	// what is wrong with it.
	for name, token := range map[string]string{"ours": good, "as it was issued": m.old, "with a list of audiences": m.signed(nil, jwt.MapClaims{"aud": []string{"other", audience}})} {
		if h := hear(t, m.do(http.MethodGet, path, "", "Authorization: bearer "+token)); h.Code != 200 {
			t.Errorf("%s: %d %s", name, h.Code, h.Body)
		}
	}
	allow("Authorization: Bearer "+good).is(t, 202, "", "wait", false)
}

// A signature that was checked is remembered; that the token is good is not.
func TestRememberedTokenEndsAtOnce(t *testing.T) {
	for name, end := range map[string]func(mint){
		"revoked": func(m mint) { must(t, m.Store.RevokeToken(t.Context(), m.r.ID, operator)) },
		"expired": func(m mint) { m.pass(time.Hour) },
	} {
		m := newMint(t)
		// The token claims more time than its record gives.
		a := agent{m.world, "default", m.signed(nil, jwt.MapClaims{"exp": m.r.ExpiresAt/1000 + 3600})}
		for range 2 {
			if h := a.get("/v1/operations"); h.Code != 200 {
				t.Fatal(h.Code, h.Body)
			}
		}
		end(m)
		for _, h := range []heard{a.get("/v1/operations"), a.submit(named("op-1"))} {
			h.is(t, 401, "unauthorized", "fix_request", false)
		}
		if m.count("default") != 0 {
			t.Errorf("%s: something was recorded", name)
		}
	}
}

func TestTokenCacheIsBounded(t *testing.T) {
	var c tokenCache
	for i := range cacheSize + 100 {
		c.put(sha256.Sum256([]byte{byte(i), byte(i >> 8)}), goodToken{"id", "agent", 100})
	}
	if len(c.good) > cacheSize {
		t.Error("it holds ", len(c.good))
	}
	sum := sha256.Sum256([]byte("one"))
	c.put(sum, goodToken{"id", "agent", 100})
	if _, ok := c.get(sum, 100); ok {
		t.Error("it outlives its time")
	}
	if _, ok := c.get(sum, 99); !ok {
		t.Error("it is forgotten early")
	}
}

func TestTokenSaysWhoAndNotWhatItMay(t *testing.T) {
	m := newMint(t)
	claims := jwt.MapClaims{}
	_, _, err := jwt.NewParser().ParseUnverified(m.old, claims)
	must(t, err)
	for name := range claims {
		if !strings.Contains(" iss aud sub jti iat exp ", " "+name+" ") {
			t.Errorf("the token carries %s", name)
		}
	}
	// A scope that somebody writes into it counts for nothing.
	reads, r, err := IssueToken(t.Context(), m.Store, ledger.TokenRecord{TenantID: "default", Agent: "reader", Scopes: []string{"operations:read"}, ExpiresAt: m.r.ExpiresAt}, operator)
	must(t, err)
	swollen := m.signed(nil, jwt.MapClaims{"jti": r.ID, "sub": "reader", "scope": "operations:write", "scopes": Scopes, "tenant": "t1"})
	for _, token := range []string{reads, swollen} {
		agent{m.world, "default", token}.submit(named("op-1")).is(t, 403, "forbidden", "stop", true)
	}
	if _, _, err := IssueToken(t.Context(), m.Store, ledger.TokenRecord{TenantID: "default", Agent: "a", Scopes: []string{"everything"}}, operator); err == nil {
		t.Error("a scope that does not exist was given")
	}
	if _, r, _ := IssueToken(t.Context(), m.Store, ledger.TokenRecord{TenantID: "default", Agent: "a", ExpiresAt: 1}, operator); strings.Join(r.Scopes, " ") != "operations:write operations:read" {
		t.Error("the default scopes are ", r.Scopes)
	}
}
