package web

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// clientAddress is where a request comes from. A proxy on this machine may say
// for whom it asks; nobody else is believed.
func clientAddress(r *http.Request) netip.Addr {
	peer := peerAddress(r)
	if !peer.IsLoopback() {
		return peer
	}
	all := r.Header.Values("X-Forwarded-For")
	if len(all) == 0 {
		return peer
	}
	hops := strings.Split(all[len(all)-1], ",")
	client, err := netip.ParseAddr(strings.TrimSpace(hops[len(hops)-1]))
	if err != nil {
		return netip.Addr{} // the proxy speaks for somebody it does not name: nowhere near
	}
	return client.Unmap()
}

func peerAddress(r *http.Request) netip.Addr {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap()
}

// isHTTPS reports whether the browser's connection is encrypted, to us or to
// the proxy on this machine.
func isHTTPS(r *http.Request) bool {
	return r.TLS != nil || peerAddress(r).IsLoopback() && strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// baseURL is how the browser reached us, for links that people copy.
func baseURL(r *http.Request) string {
	if isHTTPS(r) {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}
