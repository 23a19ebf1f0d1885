package rail

import (
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// parseBase reads the base_url of an HTTP rail.
func parseBase(text string) (*url.URL, error) {
	return parseAddress(text, "https://api.example.com", "https", "http")
}

// parseAddress reads base_url: scheme, host, perhaps a port and a path.
func parseAddress(text, example string, schemes ...string) (*url.URL, error) {
	if text == "" {
		return nil, errors.New("is missing; write the provider's address, such as " + example)
	}
	u, err := url.Parse(text)
	if err != nil || hasControl(text) {
		return nil, errors.New("is not an address; write one such as " + example)
	}
	host := u.Hostname()
	_, notIP := netip.ParseAddr(host)
	switch {
	case !slices.Contains(schemes, u.Scheme):
		return nil, errors.New("must begin with " + strings.Join(schemes, ":// or ") + "://")
	case host == "" || u.Opaque != "":
		return nil, errors.New("names no host")
	case u.User != nil:
		return nil, errors.New("holds a name or password; put credentials into headers")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(text, "#"):
		return nil, errors.New("holds a query or a fragment; put the query into send.path")
	case notIP != nil && strings.ContainsFunc(host, func(c rune) bool {
		return c != '-' && c != '.' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	}):
		return nil, errors.New("has a host with letters that are not ASCII; write it in its xn-- form")
	case strings.Contains(host, "%"):
		return nil, errors.New("has an address with a zone, which only this machine knows")
	case strings.HasSuffix(u.Host, ":"):
		return nil, errors.New("has a colon without a port")
	case u.Port() == "0" || len(u.Port()) > 5 || len(u.Port()) == 5 && u.Port() > "65535":
		return nil, errors.New("has a port that does not exist")
	case hasDotSegment(u.Path) || strings.Contains(u.Path, "//"):
		return nil, errors.New("has a path with ., .. or an empty segment")
	}
	u.Host = strings.ToLower(u.Host)
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/"), strings.TrimSuffix(u.RawPath, "/")
	return u, nil
}
