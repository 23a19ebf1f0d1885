package rail

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// shortestMasked is the length below which a configured header is taken for a
// word: masking "2024" or "gzip" in an answer would only spoil evidence.
const shortestMasked = 8

// mask puts dots where an answer repeats one of our secrets, as providers do in
// "invalid API key: …". Classifying uses the answer as it came.
func (r *Rail) mask(x *Exchange) {
	if r.masker == nil || x.Status == 0 {
		return
	}
	x.Body = r.masked(x.Body)
	header := make(http.Header, len(x.Header))
	for name, values := range x.Header {
		for _, v := range values {
			name := r.masker.Replace(name)
			header[name] = append(header[name], r.masker.Replace(v))
		}
	}
	x.Header = header
}

func (r *Rail) masked(body []byte) []byte {
	if r.masker == nil {
		return body
	}
	return []byte(r.masker.Replace(string(body)))
}

// spellings are the ways in which an answer may repeat a secret: as it is, as
// JSON, an address or a page would write it, and encoded; longer ones first.
func spellings(text string) []string {
	all := []string{text}
	if quoted, err := json.Marshal(text); err == nil {
		inside := string(quoted[1 : len(quoted)-1])
		all = append(all, inside, strings.ReplaceAll(inside, "/", `\/`))
	}
	plain := strings.NewReplacer("\\", `\\`, `"`, `\"`).Replace(text) // JSON that escapes no more than it must
	all = append(all, plain, strings.ReplaceAll(plain, "/", `\/`), url.QueryEscape(text), url.PathEscape(text), html.EscapeString(text),
		base64.StdEncoding.EncodeToString([]byte(text)), base64.RawURLEncoding.EncodeToString([]byte(text)))
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return slices.Compact(all)
}

// newMasker knows every configured value, alone and without its scheme, in all
// its spellings. Longer ones come first, so that no part is left over.
func newMasker(secrets []header, also ...Secret) *strings.Replacer {
	var pairs []string
	add := func(text string) {
		if len(text) < shortestMasked {
			return
		}
		for _, written := range spellings(text) {
			pairs = append(pairs, written, dots)
		}
	}
	for _, h := range secrets {
		add(h.value.reveal())
	}
	for _, s := range also {
		add(s.reveal())
	}
	for _, h := range secrets {
		if _, credential, ok := strings.Cut(h.value.reveal(), " "); ok {
			add(strings.TrimSpace(credential))
		}
	}
	if pairs == nil {
		return nil
	}
	return strings.NewReplacer(pairs...)
}
