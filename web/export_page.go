package web

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"holdfast/store"
	"holdfast/store/ledger"
)

// export answers GET /exports/{name}.{format}: the list as a file, for everybody
// who may see the page, as they see it there.
func (s *Server) export(c echo.Context, p ledger.PersonRecord) error {
	name, format, _ := strings.Cut(c.Param("file"), ".")
	kind, known := exportOf(name, format)
	if !known {
		return store.ErrNotFound
	}
	t := &takeout{Server: s, kind: kind, format: format, who: p, by: ledger.Holder{Kind: ledger.Person, Name: p.Email}, bom: c.QueryParam("for") == "excel"}
	words := map[string]string{}
	for _, f := range exportFilters {
		words[f] = asked(c, f)
	}
	if err := t.narrow(words); err != nil {
		return unclear{http.StatusUnprocessableEntity, "Nothing was taken out: " + sentence(err)}
	}
	file := fmt.Sprintf("holdfast-%s-%s-%s.%s", p.TenantID, name, time.UnixMilli(s.Store.Now()).UTC().Format(time.DateOnly), format)
	out := &download{c: c, file: file, kind: "text/plain; charset=utf-8"}
	if format == "csv" {
		out.kind = "text/csv; charset=utf-8; header=present"
	}
	err := t.write(c.Request().Context(), out)
	if err != nil && c.Response().Committed {
		s.Log.Error("an export ended early", "request_id", requestIDOf(c), "error", err)
		panic(http.ErrAbortHandler) // the browser says so; a shorter file would look whole
	}
	return err
}

// download is the answer as a file. Its headers go with its first bytes, so that
// what goes wrong before them is an ordinary page.
type download struct {
	c          echo.Context
	file, kind string
}

// slowReader is how long one piece of a file may take. The whole may take longer
// than the server's own limit.
const slowReader = time.Minute

func (d *download) Write(b []byte) (int, error) {
	r := d.c.Response()
	if !r.Committed {
		r.Header().Set("Content-Type", d.kind)
		r.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", d.file))
		r.WriteHeader(http.StatusOK)
	}
	_ = http.NewResponseController(r).SetWriteDeadline(time.Now().Add(slowReader)) // where there is no connection, there is no deadline either
	return r.Write(b)
}

// ExportOptions are the flags of export.
type ExportOptions struct {
	Tenant, Name, Format                                                string
	Status, ActionType, Reference, Run, Rail, Query, Customer, Currency string
}

// Export writes a list of the ledger as a file. Whoever may read the data folder
// sees all of it.
func (i *Instance) Export(ctx context.Context, o ExportOptions, out io.Writer) error {
	if err := checkTenant(o.Tenant); err != nil {
		return err
	}
	kind, known := exportOf(o.Name, o.Format)
	if !known {
		return usagef("export %s --format %s: there are %s, each as %s", o.Name, o.Format, strings.Join(exportNames(), ", "), strings.Join(exportFormats, ", "))
	}
	t := &takeout{Server: &Server{Store: i.Store, Log: i.Log}, kind: kind, format: o.Format, by: operator,
		who: ledger.PersonRecord{TenantID: o.Tenant, Email: operator.Name, Roles: []string{"admin"}}}
	if err := t.narrow(map[string]string{"status": o.Status, "action_type": o.ActionType, "reference": o.Reference, "run_id": o.Run, "rail": o.Rail,
		"q": o.Query, "customer": o.Customer, "currency": o.Currency}); err != nil {
		return Usage{err}
	}
	if !slices.Contains(i.Store.Tenants(), o.Tenant) {
		return fmt.Errorf("there is no tenant %s; the configuration names %s", o.Tenant, strings.Join(slices.Sorted(slices.Values(i.Store.Tenants())), ", "))
	}
	return t.write(ctx, out)
}
