package rail

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
)

// TLS is whom the rail trusts, and with which certificate it shows who it is.
// The certificate belongs to the rail's account as a token does: it may rotate
// while the account keeps its name.
type TLS struct {
	Cert PEM `yaml:"cert"`
	Key  PEM `yaml:"key"`
	CA   PEM `yaml:"ca"` // in place of the system's authorities
}

// PEM is the text of a file, read when the configuration is, and the name that
// stands in errors. A private key is a secret as a token is.
type PEM struct {
	file string
	text Secret
}

// NewPEM is a file that was read.
func NewPEM(file string, text []byte) PEM { return PEM{file, NewSecret(string(text))} }

func (p PEM) given() bool { return p.text.text != nil }

// tls takes the files apart. No error shows what is in them.
func (f *findings) tls(r *Rail, c Config) {
	t := c.TLS
	if !t.Cert.given() && !t.Key.given() && !t.CA.given() {
		return
	}
	if r.base != nil && r.base.Scheme != "https" {
		f.add("tls", "needs a base_url that begins with https://")
	}
	if t.CA.given() {
		r.roots = x509.NewCertPool()
		if !r.roots.AppendCertsFromPEM([]byte(t.CA.text.reveal())) {
			f.add("tls.ca", "%q holds no certificate in PEM form", t.CA.file)
		}
	}
	switch {
	case !t.Cert.given() && !t.Key.given():
	case !t.Key.given():
		f.add("tls.key", "is missing; the certificate is of no use without its private key")
	case !t.Cert.given():
		f.add("tls.cert", "is missing; the private key is of no use without its certificate")
	case !isPEM(t.Cert):
		f.add("tls.cert", "%q holds no certificate in PEM form", t.Cert.file)
	default:
		pair, err := tls.X509KeyPair([]byte(t.Cert.text.reveal()), []byte(t.Key.text.reveal()))
		if err != nil {
			f.add("tls.key", "%q holds no private key in PEM form that belongs to %q; an encrypted one is not read", t.Key.file, t.Cert.file)
			return
		}
		r.certificates = []tls.Certificate{pair}
	}
}

func isPEM(p PEM) bool {
	block, _ := pem.Decode([]byte(p.text.reveal()))
	if block == nil || block.Type != "CERTIFICATE" {
		return false
	}
	_, err := x509.ParseCertificate(block.Bytes)
	return err == nil
}

// Format prints the name of the file whatever the verb.
func (p PEM) Format(s fmt.State, _ rune) { fmt.Fprint(s, p.file) }
