package web

import (
	"net/http"
	"testing"
)

func TestCommandsOnPagesNameTheFolder(t *testing.T) {
	w := newServer(t, pagesConfig)
	w.Folder = "/srv/hold fast"
	setup := w.do(http.MethodGet, "/setup", "")
	shows(t, setup, http.StatusOK, "holdfast setup-link --data '/srv/hold fast'")
	shows(t, w.setup("AAAA-AAAA"), http.StatusForbidden, "holdfast setup-link --data '/srv/hold fast'")
	b := w.signIn(w.person("default", "ana@example.com", "admin"))
	shows(t, b.get("/"), http.StatusOK, "holdfast user create --data '/srv/hold fast' --tenant default")
	shows(t, b.get("/settings"), http.StatusOK, "holdfast token create --data '/srv/hold fast'")
}
