package rail

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"holdfast/store/ledger"
)

// mailbox is the tests' side of a mail server that runs as a process of its own.
type mailbox struct {
	t       testing.TB
	address string
	file    string
	stdin   io.WriteCloser
	stdout  *bufio.Scanner
	process *exec.Cmd
}

func startMailServer(t testing.TB, env ...string) *mailbox {
	t.Helper()
	b := &mailbox{t: t, file: filepath.Join(t.TempDir(), "book")}
	b.process = exec.Command(os.Args[0])
	b.process.Env = append(os.Environ(), append(env, testProcess+"=mailserver", "MAIL_BOOK="+b.file)...)
	b.process.Stderr = os.Stderr
	var err error
	if b.stdin, err = b.process.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := b.process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.process.Start(); err != nil {
		t.Fatal(err)
	}
	b.stdout = bufio.NewScanner(out)
	if !b.stdout.Scan() {
		t.Fatal("the mail server does not say where it listens")
	}
	b.address = b.stdout.Text()
	t.Cleanup(func() { b.stdin.Close(); b.process.Wait() })
	return b
}

func (b *mailbox) arm(f mailFault) {
	b.t.Helper()
	line, _ := json.Marshal(f)
	if _, err := b.stdin.Write(append(line, '\n')); err != nil || !b.stdout.Scan() {
		b.t.Fatalf("the mail server takes no fault: %v", err)
	}
}

// holds is what the server's book shows.
func (b *mailbox) holds() (all []bookEntry) {
	b.t.Helper()
	text, err := os.ReadFile(b.file)
	if err != nil && !os.IsNotExist(err) {
		b.t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var e bookEntry
		if err := json.Unmarshal(line, &e); err != nil {
			b.t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func (b *mailbox) empty() { os.Remove(b.file) }

// post is an smtp rail to the server.
func post(base string) Config {
	return Config{
		Adapter: AdapterSMTP,
		BaseURL: base,
		Account: "live",
		Timeout: Lasting(3 * time.Second),
		Auth:    Auth{Basic: &Basic{NewSecret("holdfast"), NewSecret(mailPassword)}},
		Mail:    Mail{From: "Example Billing <billing@example.com>"},
	}
}

func plain(address string) Config {
	c := post("smtp+plain://" + address)
	c.Auth = Auth{}
	return c
}

// email is the operation that the tests send.
func email() ledger.Operation {
	return ledger.Operation{
		TenantID:    "default",
		OperationID: "ticket-7-mail",
		OrderID:     ledger.OrderID("test", "default", "ticket-7-mail"),
		ProviderKey: ledger.ProviderKey("test", "default", "ticket-7-mail", "live"),
		ActionType:  "send_email",
		Effect:      "email",
		CreatedAt:   time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixMilli(),
		Payload:     []byte(`{"to":"ana@example.org","subject":"Your ticket","body":"Dear Ana,\nit is done.\n.\nBye","reference":"ticket-7"}`),
		Terms:       ledger.Terms{Recipient: "ana@example.org", Reference: "ticket-7"},
	}
}

func letterWith(members string) ledger.Operation {
	o := email()
	o.Payload = []byte(members)
	return o
}

// mailOnce connects and sends; connected is false where it did not come to that.
func mailOnce(t testing.TB, r *Rail, o ledger.Operation) (a ledger.Answer, x Exchange, connected bool) {
	t.Helper()
	req := mustRender(t, r, o)
	c, err := r.Connect(t.Context())
	if err != nil {
		return a, x, false
	}
	x = c.Send(t.Context(), req, time.Now().Add(time.Minute))
	return r.Classify(o, x), x, true
}

// certificate makes an authority and a certificate of it for 127.0.0.1, as files
// for the server and as a pool for the client.
func certificate(t testing.TB) (env []string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, block := range map[string]*pem.Block{"cert": {Type: "CERTIFICATE", Bytes: der}, "key": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(root)
	return []string{fmt.Sprintf("MAIL_CERT=%s", filepath.Join(dir, "cert")), fmt.Sprintf("MAIL_KEY=%s", filepath.Join(dir, "key"))}, pool
}
