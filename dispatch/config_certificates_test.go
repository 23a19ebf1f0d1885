package dispatch

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCertificatesAreReadWithTheConfiguration(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("rails:\n  a:\n    adapter: http\n    base_url: %s\n    tls: { ca: ca.pem }\n", s.URL)
	c, err := ParseConfig([]byte(text), dir, "h.yaml", nil, testNow, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(ca); err != nil { // it was read, and is not read again
		t.Fatal(err)
	}
	conn, err := c.Tenants[DefaultTenant].Rails["a"].Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	_, err = ParseConfig([]byte(text), dir, "h.yaml", nil, testNow, nil)
	if err == nil || !strings.Contains(err.Error(), `h.yaml:5: rails.a.tls.ca: "ca.pem" there is no such file`) {
		t.Errorf("%v", err)
	}
}
