package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// MetricsTokenName is the variable of the environment that holds the token for
// /metrics.
const MetricsTokenName = "HOLDFAST_METRICS_TOKEN"

// shortestMetricsToken is what cannot be guessed over a network: openssl rand
// -hex 16.
const shortestMetricsToken = 32

// checkMetricsToken refuses a token that could be guessed. None at all is no
// mistake: then only this machine reads the metrics.
func checkMetricsToken(token string) error {
	if token != "" && len(token) < shortestMetricsToken {
		return fmt.Errorf("%s is shorter than %d characters and could be guessed; make one with: openssl rand -hex 32", MetricsTokenName, shortestMetricsToken)
	}
	return nil
}

// mayScrape decides who reads the metrics, which name every tenant and its sums:
// whoever has the token; without one, a program on this machine, and that only
// where there is one tenant to learn of. A status of 0 lets it pass.
func (s *Server) mayScrape(r *http.Request) (status int, why string) {
	if s.MetricsToken != "" {
		given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(s.MetricsToken))
		if !bearer || subtle.ConstantTimeCompare(a[:], b[:]) != 1 {
			return http.StatusUnauthorized, "The metrics are read with the token in " + MetricsTokenName + "."
		}
		return 0, ""
	}
	if !direct(r) {
		return http.StatusForbidden, "The metrics are read from the machine itself, or with a token."
	}
	tenants, err := s.Store.EveryTenant(r.Context())
	if err != nil {
		return http.StatusServiceUnavailable, "The ledger could not be read."
	}
	if len(tenants) > 1 || len(s.Config().Tenants) > 1 {
		return http.StatusForbidden, "There are several tenants here, and an agent of one may run on this machine: set " + MetricsTokenName + "."
	}
	return 0, ""
}

// direct reports whether a program on this machine asks for itself: no proxy in
// between, and no browser that a page of somebody else's has sent here under a
// name of its own.
func direct(r *http.Request) bool {
	for _, trace := range []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Forwarded", "Via", "Origin"} {
		if r.Header.Get(trace) != "" {
			return false
		}
	}
	return peerAddress(r).IsLoopback() && namesThisMachine(r.Host)
}

func namesThisMachine(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && a.Unmap().IsLoopback()
}
