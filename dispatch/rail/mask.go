package rail

import (
	"encoding/json"
	"net/http"
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

// newMasker knows every configured value, alone, without its scheme, and as
// JSON would write it. Longer ones come first, so that no part is left over.
func newMasker(secrets []header, also ...Secret) *strings.Replacer {
	var pairs []string
	add := func(text string) {
		if len(text) < shortestMasked {
			return
		}
		pairs = append(pairs, text, dots)
		if quoted, err := json.Marshal(text); err == nil && string(quoted[1:len(quoted)-1]) != text {
			pairs = append(pairs, string(quoted[1:len(quoted)-1]), dots)
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
