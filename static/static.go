// Package static holds the assets that pages load: the stylesheets, the scripts
// and two favicons; and the documents about the API. Each asset is served under a name that carries a hash of its
// content, so that a browser may keep it for ever and still never shows an old
// one.
package static

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

// Prefix is where Handler expects to be mounted.
const Prefix = "/static/"

//go:embed holdfast.css docs.css live.js takeback.js favicon.svg favicon-test.svg
var files embed.FS

// asset is one file with its hashed name, like holdfast.1f2e3d4c5b6a.css.
type asset struct {
	name, hashed, kind string
	body               []byte
}

var byName, byHashed = load()

func load() (byName, byHashed map[string]asset) {
	byName, byHashed = map[string]asset{}, map[string]asset{}
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		panic(err) // the files are part of the program
	}
	for _, e := range entries {
		body, err := files.ReadFile(e.Name())
		if err != nil {
			panic(err)
		}
		a := asset{name: e.Name(), hashed: hashedName(e.Name(), body), kind: kindOf(e.Name()), body: body}
		byName[a.name], byHashed[a.hashed] = a, a
	}
	return byName, byHashed
}

func hashedName(name string, body []byte) string {
	sum := sha256.Sum256(body)
	ext := path.Ext(name)
	return strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:6]) + ext
}

// kindOf does not ask the machine's own table, which differs between machines.
func kindOf(name string) string {
	switch path.Ext(name) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return mime.TypeByExtension(path.Ext(name))
}

// Path is where an asset is served, under its hashed name. An asset that does
// not exist keeps its plain name, and then the handler answers 404.
func Path(name string) string {
	if a, ok := byName[name]; ok {
		return Prefix + a.hashed
	}
	return Prefix + name
}

// Handler serves the assets under Prefix. A hashed name may be kept for ever; a
// plain one must be asked for again.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "Assets are only read.", http.StatusMethodNotAllowed)
			return
		}
		name := strings.TrimPrefix(r.URL.Path, Prefix)
		keep := "public, max-age=31536000, immutable"
		a, ok := byHashed[name]
		if !ok {
			keep = "no-cache"
			a, ok = byName[name]
		}
		if !ok {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Type", a.kind)
		h.Set("Cache-Control", keep)
		h.Set("ETag", `"`+a.hashed+`"`)
		h.Set("X-Content-Type-Options", "nosniff")
		if r.Header.Get("If-None-Match") == `"`+a.hashed+`"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		if r.Method == http.MethodHead {
			return
		}
		_, _ = w.Write(a.body)
	})
}
