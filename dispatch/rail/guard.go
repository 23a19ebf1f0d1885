package rail

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
)

// target is the one place a rail may connect to.
type target struct {
	scheme, host, port string
	literal            netip.Addr // valid where the configuration wrote an address, not a name
	localhost          bool
	allowPrivate       bool
}

func newTarget(u *url.URL, allowPrivate bool) target {
	t := target{scheme: u.Scheme, host: u.Hostname(), port: u.Port(), allowPrivate: allowPrivate}
	if t.port == "" {
		t.port = map[string]string{"http": "80", "https": "443", smtpTLS: "465", smtpStartTLS: "587", smtpPlain: "25"}[u.Scheme]
	}
	if a, err := netip.ParseAddr(t.host); err == nil {
		t.literal = a.Unmap()
	}
	t.localhost = strings.EqualFold(t.host, "localhost")
	return t
}

// loopback reports whether the configuration names this machine.
func (t target) loopback() bool { return t.localhost || t.literal.IsValid() && t.literal.IsLoopback() }

func (t target) address() string { return net.JoinHostPort(t.host, t.port) }

// errRefusedAddress marks a connection that the guard did not allow.
var errRefusedAddress = errors.New("is not dialled")

// control stands between resolving and connecting, so that it sees the address
// that is really dialled: a name may resolve differently at every look-up.
func (t target) control(_, address string, _ syscall.RawConn) error {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%s %w: it cannot be read", address, errRefusedAddress)
	}
	if net.JoinHostPort("", t.port) != fmt.Sprintf(":%d", a.Port()) {
		return fmt.Errorf("%s %w: only port %s is configured", address, errRefusedAddress, t.port)
	}
	return t.admit(a.Addr())
}

// admit decides about one resolved address. A private one is meant only where
// the configuration writes it as such, or allows it by name.
func (t target) admit(a netip.Addr) error {
	kind := private(a)
	switch {
	case kind == "", t.allowPrivate:
		return nil
	case t.literal.IsValid() && t.literal.WithZone("") == a.Unmap().WithZone(""):
		return nil
	case t.localhost && a.Unmap().IsLoopback():
		return nil
	}
	return fmt.Errorf("%s %w: it resolves to %s, %s; write that address in base_url, or allow_private: true, if it is meant", t.host, errRefusedAddress, a, kind)
}

// nonPublic are the ranges that no provider on the public network has.
var nonPublic = []struct {
	prefix netip.Prefix
	kind   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "an unspecified address"},
	{netip.MustParsePrefix("10.0.0.0/8"), "a private address"},
	{netip.MustParsePrefix("100.64.0.0/10"), "a carrier's shared address"},
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback address"},
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address"},
	{netip.MustParsePrefix("172.16.0.0/12"), "a private address"},
	{netip.MustParsePrefix("192.0.0.0/24"), "a reserved address"},
	{netip.MustParsePrefix("192.168.0.0/16"), "a private address"},
	{netip.MustParsePrefix("198.18.0.0/15"), "a reserved address"},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address"},
	{netip.MustParsePrefix("240.0.0.0/4"), "a reserved address"},
	{netip.MustParsePrefix("::/128"), "an unspecified address"},
	{netip.MustParsePrefix("::1/128"), "a loopback address"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "a local translation address"},
	{netip.MustParsePrefix("100::/64"), "a reserved address"},
	{netip.MustParsePrefix("2001::/32"), "a tunnel address"},
	{netip.MustParsePrefix("fc00::/7"), "a private address"},
	{netip.MustParsePrefix("fe80::/10"), "a link-local address"},
	{netip.MustParsePrefix("fec0::/10"), "a private address"},
	{netip.MustParsePrefix("ff00::/8"), "a multicast address"},
}

// embedding are the IPv6 ranges that carry an IPv4 address, and where.
var embedding = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12}, // NAT64
	{netip.MustParsePrefix("::/96"), 12},        // IPv4-compatible
	{netip.MustParsePrefix("2002::/16"), 2},     // 6to4
}

// private says which kind of non-public address this is; empty for a public
// one. IPv6 forms that carry an IPv4 address are judged by that.
func private(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	if !a.IsValid() {
		return "no address"
	}
	for _, r := range nonPublic {
		if r.prefix.Contains(a) {
			return r.kind
		}
	}
	for _, e := range embedding {
		if e.prefix.Contains(a) {
			b := a.As16()
			return private(netip.AddrFrom4([4]byte(b[e.at : e.at+4])))
		}
	}
	return ""
}
