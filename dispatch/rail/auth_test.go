package rail

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"holdfast/store/ledger"
)

func TestCredentialsAreOneHeaderAndShownNowhere(t *testing.T) {
	pair := base64.StdEncoding.EncodeToString([]byte("acct_7:" + canary))
	for name, c := range map[string]struct {
		auth Auth
		want string
	}{
		"bearer": {Auth{Bearer: NewSecret(canary)}, "Bearer " + canary},
		"basic":  {Auth{Basic: &Basic{User: NewSecret("acct_7"), Password: NewSecret(canary)}}, "Basic " + pair},
	} {
		p := newProvider(t, always(answer("401 Unauthorized", `{"error":"bad `+canary+` in `+c.want+`"}`)))
		r := mustRail(t, with(card(p.url), func(k *Config) { k.Headers, k.Auth = nil, c.auth }))
		x := send(t, r)
		r.Lookup(t.Context(), payment())
		if _, wire := p.seen(); strings.Count(wire, "\r\nAuthorization: "+c.want+"\r\n") != 2 {
			t.Errorf("%s: the wire saw %s", name, wire)
		}
		shown := fmt.Sprintf("%s %+v %s %+v %v", mustRender(t, r, payment()).Display, x, x.Body, r.config, x.Header)
		if strings.Contains(shown, canary) || strings.Contains(shown, c.want) || !strings.Contains(shown, "Authorization: "+dots) {
			t.Errorf("%s is shown: %s", name, shown)
		}
	}
}

// authority signs certificates for a test.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file PEM
}

func newAuthority(t *testing.T) authority {
	a := authority{t: t}
	own, key := a.issue("authority")
	a.cert, _ = x509.ParseCertificate(mustPEM(t, own))
	block, _ := pem.Decode([]byte(key.text.reveal()))
	private, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	a.key, a.file = private, own
	return a
}

func mustPEM(t *testing.T, p PEM) []byte {
	block, _ := pem.Decode([]byte(p.text.reveal()))
	if block == nil {
		t.Fatal("no PEM")
	}
	return block.Bytes
}

// issue makes a certificate and its key; without an authority it signs itself.
func (a authority) issue(name string) (cert, key PEM) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		IsCA:        a.cert == nil, BasicConstraintsValid: true,
	}
	parent, signer := template, private
	if a.cert != nil {
		parent, signer = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &private.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		a.t.Fatal(err)
	}
	return NewPEM(name+".pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		NewPEM(name+".key", pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}))
}

// secured is an HTTPS server that offers HTTP/2 first and notes with whom it
// spoke, and how.
func (a authority) secured(change func(*tls.Config)) (url string, spoken func() []string) {
	a.t.Helper()
	cert, key := a.issue("server")
	pair, err := tls.X509KeyPair([]byte(cert.text.reveal()), []byte(key.text.reveal()))
	if err != nil {
		a.t.Fatal(err)
	}
	var heard []string
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := "nobody"
		if len(r.TLS.PeerCertificates) > 0 {
			who = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		heard = append(heard, fmt.Sprintf("%s %s %s", r.Proto, r.TLS.NegotiatedProtocol, who))
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, paid)
	}))
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}}
	change(s.TLS)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	a.t.Cleanup(s.Close)
	return strings.Replace(s.URL, "127.0.0.1", "localhost", 1), func() []string { s.Close(); return heard }
}

func TestNoRailSpeaksHTTP2(t *testing.T) {
	a := newAuthority(t)
	url, spoken := a.secured(func(*tls.Config) {})
	// The server would rather speak it, and does with a client that offers it.
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	eager := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}}
	if got, err := eager.Get(url); err != nil || got.ProtoMajor != 2 {
		t.Fatalf("%v, %v", got, err)
	}
	eager.CloseIdleConnections()
	r := mustRail(t, with(card(url), func(c *Config) { c.TLS.CA = a.file }))
	if x := send(t, r); x.Status != 201 {
		t.Fatalf("%+v", x)
	}
	if got := spoken(); len(got) != 2 || got[1] != "HTTP/1.1 http/1.1 nobody" {
		t.Errorf("spoke %q", got)
	}
}

func TestClientCertificatesAreShownAndServersChecked(t *testing.T) {
	a, stranger := newAuthority(t), newAuthority(t)
	clients := x509.NewCertPool()
	clients.AddCert(a.cert)
	url, spoken := a.secured(func(c *tls.Config) { c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, clients })
	cert, key := a.issue("live-eu")
	r := mustRail(t, with(card(url), func(c *Config) { c.TLS = TLS{Cert: cert, Key: key, CA: a.file} }))
	if x := send(t, r); x.Status != 201 {
		t.Errorf("%+v", x)
	}
	f, err := r.For("charge", Override{})
	if err != nil {
		t.Fatal(err)
	}
	if x := send(t, f); x.Status != 201 {
		t.Errorf("an action type's rail shows no certificate: %+v", x)
	}
	// Without one the server hangs up. Under TLS 1.3 that is heard only after the
	// request left, so it proves nothing.
	bare := mustRail(t, with(card(url), func(c *Config) { c.TLS = TLS{CA: a.file} }))
	if conn, err := bare.Connect(t.Context()); err == nil {
		x := conn.Send(t.Context(), mustRender(t, bare, payment()), time.Now().Add(5*time.Second))
		if got := bare.Classify(payment(), x); got.Finding == ledger.Found || got.Finding == ledger.Refused {
			t.Errorf("%+v", got)
		}
	}
	foreign := mustRail(t, with(card(url), func(c *Config) { c.TLS = TLS{CA: stranger.file} }))
	if _, err := foreign.Connect(t.Context()); err == nil {
		t.Error("a server of another authority is trusted")
	}
	if got := spoken(); len(got) != 2 || got[0] != "HTTP/1.1 http/1.1 live-eu" || got[1] != got[0] {
		t.Errorf("spoke %q", got)
	}
	if _, err := New("card", with(card(url), func(c *Config) { _, other := a.issue("other"); c.TLS = TLS{Cert: cert, Key: other} }), time.Now); err == nil ||
		!strings.Contains(err.Error(), `rails.card.tls.key: "other.key" holds no private key in PEM form that belongs to "live-eu.pem"`) {
		t.Errorf("a key of another certificate is accepted: %v", err)
	}
	if shown := fmt.Sprintf("%v %+v %#v", r.config, r.config, r.config); strings.Contains(shown, "PRIVATE") || strings.Contains(shown, "CERTIFICATE") {
		t.Errorf("the key is shown: %s", shown)
	}
}
