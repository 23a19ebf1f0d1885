package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"holdfast/static"
	"holdfast/store/ledger"
)

// apiDoc is the OpenAPI document with its schemas compiled as they are needed.
type apiDoc struct {
	root     map[string]any
	compiler *jsonschema.Compiler
	mu       sync.Mutex
	compiled map[string]*jsonschema.Schema
}

const apiDocURL = "holdfast:///openapi.json"

// openAPI is the one document that all tests compare with.
var openAPI = sync.OnceValue(func() *apiDoc {
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(static.OpenAPI()))
	if err != nil {
		panic(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource(apiDocURL, parsed); err != nil {
		panic(err)
	}
	return &apiDoc{root: parsed.(map[string]any), compiler: c, compiled: map[string]*jsonschema.Schema{}}
})

// place is where something stands in the document: the path of names to it.
type place []string

func (p place) to(names ...string) place { return append(slices.Clone(p), names...) }

func (p place) pointer() string {
	var b strings.Builder
	for _, name := range p {
		b.WriteString("/" + strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1"))
	}
	return b.String()
}

// at follows names, and references on the way; nil if they lead nowhere. The
// place it returns is behind all references.
func (d *apiDoc) at(p place) (any, place) {
	var v any = d.root
	var here place
	for _, name := range p {
		switch in := v.(type) {
		case map[string]any:
			v = in[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(in) {
				return nil, here
			}
			v = in[i]
		default:
			return nil, here
		}
		here = here.to(name)
		if o, ok := v.(map[string]any); ok {
			if ref, ok := o["$ref"].(string); ok && !slices.Contains(here, "schema") && !slices.Contains(here, "schemas") {
				v, here = d.at(refPlace(ref))
			}
		}
	}
	return v, here
}

func refPlace(ref string) place {
	var p place
	for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		p = append(p, strings.NewReplacer("~1", "/", "~0", "~").Replace(name))
	}
	return p
}

func (d *apiDoc) object(p place) map[string]any {
	v, _ := d.at(p)
	o, _ := v.(map[string]any)
	return o
}

// check validates a value against the schema at the place.
func (d *apiDoc) check(p place, value any) error {
	_, p = d.at(p)
	d.mu.Lock()
	defer d.mu.Unlock()
	schema := d.compiled[p.pointer()]
	if schema == nil {
		var err error
		if schema, err = d.compiler.Compile(apiDocURL + "#" + (&url.URL{Path: p.pointer()}).EscapedPath()); err != nil {
			return err
		}
		d.compiled[p.pointer()] = schema
	}
	return schema.Validate(value)
}

// call finds what describes a request: the place of the operation, or nothing.
func (d *apiDoc) call(method, path string) (place, bool) {
	segments := strings.Split(path, "/")
	for template := range d.object(place{"paths"}) {
		described := strings.Split(template, "/")
		if len(described) != len(segments) {
			continue
		}
		fits := true
		for i := range described {
			fits = fits && (described[i] == segments[i] || strings.HasPrefix(described[i], "{") && segments[i] != "")
		}
		p := place{"paths", template, strings.ToLower(method)}
		if fits && d.object(p) != nil {
			return p, true
		}
	}
	return nil, false
}

// ambient headers are about HTTP, not about the API, and stand on every answer.
var ambient = []string{"Content-Type", "Content-Length", "Date", "Allow", "Vary", "Cache-Control", "Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy",
	"X-Frame-Options", "Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy", "Strict-Transport-Security"}

// conforms compares an answer of the API with the document. Answers of pages
// are not in it, and pass. The path is as it was asked for.
func conforms(t testing.TB, method, path string, status int, header http.Header, body []byte) {
	t.Helper()
	for _, wrong := range openAPI().violations(method, path, status, header, body) {
		t.Errorf("%s %s %d is not as the OpenAPI document says: %s\n%.2000s", method, path, status, wrong, body)
	}
}

func (d *apiDoc) violations(method, path string, status int, header http.Header, body []byte) (all []string) {
	wrong := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	path, _, _ = strings.Cut(path, "?")
	call, described := d.call(method, path)
	if !described {
		if strings.HasPrefix(path, "/v1/") {
			d.checkStray(status, body, wrong)
		}
		return all
	}
	answer := call.to("responses", strconv.Itoa(status))
	if d.object(answer) == nil {
		wrong("it has no such status")
		return all
	}
	d.checkHeaders(answer, header, wrong)
	content := d.object(answer.to("content"))
	if content == nil {
		if len(body) > 0 || header.Get("Content-Type") != "" {
			wrong("it has no content")
		}
		return all
	}
	media, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	if content[media] == nil {
		wrong("its content is not %q", media)
		return all
	}
	var value any = string(body)
	if strings.HasSuffix(media, "json") {
		parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
		if err != nil {
			wrong("%v", err)
			return all
		}
		value = parsed
		if o, ok := parsed.(map[string]any); ok && strings.HasPrefix(media, "application/problem") && o["status"] != json.Number(strconv.Itoa(status)) {
			wrong("the problem says that the status is %v", o["status"])
		}
	}
	if err := d.check(answer.to("content", media, "schema"), value); err != nil {
		wrong("%v", err)
	}
	return all
}

// checkStray is for an address that the document does not have.
func (d *apiDoc) checkStray(status int, body []byte, wrong func(string, ...any)) {
	if status != http.StatusNotFound && status != http.StatusMethodNotAllowed {
		wrong("it has no such address, and the answer is neither 404 nor 405")
		return
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err == nil {
		err = d.check(place{"components", "schemas", "Problem"}, value)
	}
	if err != nil {
		wrong("%v", err)
	}
}

func (d *apiDoc) checkHeaders(answer place, header http.Header, wrong func(string, ...any)) {
	described := d.object(answer.to("headers"))
	for name := range described {
		given := header.Values(name)
		required, _ := d.object(answer.to("headers", name))["required"].(bool)
		if required && len(given) == 0 {
			wrong("the header %s is missing", name)
		}
		for _, value := range given {
			if err := d.check(answer.to("headers", name, "schema"), value); err != nil {
				wrong("header %s: %q: %v", name, value, err)
			}
		}
	}
	known := slices.Collect(maps.Keys(described))
	for name := range header {
		if !slices.ContainsFunc(append(known, ambient...), func(k string) bool { return strings.EqualFold(k, name) }) {
			wrong("the header %s is not described", name)
		}
	}
}

// walk visits every value of the document.
func walk(v any, here place, visit func(place, any)) {
	visit(here, v)
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			walk(inner, here.to(name), visit)
		}
	case []any:
		for i, inner := range v {
			walk(inner, here.to(strconv.Itoa(i)), visit)
		}
	}
}

// methods of an item of paths.
var methods = []string{"get", "put", "post", "delete", "patch"}

func TestOpenAPIDocumentIsWhole(t *testing.T) {
	if _, err := ledger.ParseStrict(static.OpenAPI()); err != nil {
		t.Fatal("not strict JSON: ", err)
	}
	d := openAPI()
	if d.root["openapi"] != "3.1.0" {
		t.Error("it says that it is OpenAPI ", d.root["openapi"])
	}
	used := map[string]bool{}
	walk(d.root, nil, func(here place, v any) {
		o, ok := v.(map[string]any)
		if !ok {
			return
		}
		ref, ok := o["$ref"].(string)
		if !ok {
			return
		}
		used[ref] = true
		if target, _ := d.at(refPlace(ref)); target == nil || !strings.HasPrefix(ref, "#/components/") {
			t.Errorf("%s: %s leads nowhere", here.pointer(), ref)
		}
	})
	for kind, named := range d.object(place{"components"}) {
		for name := range named.(map[string]any) {
			// No described call has the answer that its own method is not answered.
			if kind != "securitySchemes" && !used["#/components/"+kind+"/"+name] && name != "method_not_allowed" {
				t.Errorf("components/%s/%s is used nowhere", kind, name)
			}
		}
	}
	for name := range d.object(place{"components", "schemas"}) {
		p := place{"components", "schemas", name}
		if err := d.check(p, nil); err != nil && !strings.Contains(err.Error(), "jsonschema validation failed") {
			t.Error(err)
		}
		if o := d.object(p); o["type"] == "object" && o["additionalProperties"] != false {
			t.Errorf("%s takes members that it does not describe", name)
		}
	}
}

func TestEveryCallIsDescribedWhole(t *testing.T) {
	d := openAPI()
	ids := map[any]bool{}
	for path := range d.object(place{"paths"}) {
		for _, method := range methods {
			p := place{"paths", path, method}
			call := d.object(p)
			if call == nil {
				continue
			}
			if id := call["operationId"]; id == nil || ids[id] {
				t.Errorf("%s: operationId %v", p.pointer(), id)
			} else {
				ids[id] = true
			}
			if call["summary"] == nil {
				t.Errorf("%s has no summary", p.pointer())
			}
			security, named := call["security"].([]any)
			signed := named && len(security) == 0 // a provider's: its signature is its right, and its media type its own business
			if !signed && (call["requestBody"] != nil) != (d.object(p.to("responses", "415")) != nil) {
				t.Errorf("%s: a body, or 415, but not both", p.pointer())
			}
			if signed && strings.HasPrefix(path, "/v1/") && call["operationId"] != "receiveEvent" {
				t.Errorf("%s is open to everybody", p.pointer())
			}
			if strings.HasPrefix(path, "/v1/") && !signed {
				for _, status := range []string{"401", "403", "429", "500", "503"} {
					if d.object(p.to("responses", status)) == nil {
						t.Errorf("%s has no %s", p.pointer(), status)
					}
				}
				if len(security) != 1 || !slices.Contains(Scopes, security[0].(map[string]any)["bearer"].([]any)[0].(string)) {
					t.Errorf("%s names no scope", p.pointer())
				}
			}
			for status := range d.object(p.to("responses")) {
				answer := d.object(p.to("responses", status))
				if answer["description"] == "" || d.object(p.to("responses", status, "headers", "X-Request-Id"))["required"] != true {
					t.Errorf("%s: %s has no description, or no X-Request-Id", p.pointer(), status)
				}
				for media, content := range d.object(p.to("responses", status, "content")) {
					if c := content.(map[string]any); c["example"] == nil && c["examples"] == nil || c["schema"] == nil {
						t.Errorf("%s: %s %s has no schema or no example", p.pointer(), status, media)
					}
				}
			}
			d.checkParameters(t, path, p)
		}
	}
}

// checkParameters compares the braces in a path with the parameters in it.
func (d *apiDoc) checkParameters(t *testing.T, path string, call place) {
	t.Helper()
	var described []string
	for _, list := range []place{{"paths", path, "parameters"}, call.to("parameters")} {
		all, _ := d.at(list)
		items, _ := all.([]any)
		for i := range items {
			o := d.object(list.to(strconv.Itoa(i)))
			if o["in"] == "path" {
				described = append(described, "{"+o["name"].(string)+"}")
			}
			if o["description"] == nil || o["schema"] == nil {
				t.Errorf("%s: the parameter %v has no description or no schema", call.pointer(), o["name"])
			}
		}
	}
	for segment := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(segment, "{") != slices.Contains(described, segment) {
			t.Errorf("%s: %s has no parameter of that name", call.pointer(), segment)
		}
	}
}

func TestEveryExampleFitsItsSchema(t *testing.T) {
	d := openAPI()
	checked := 0
	example := func(here, schema place, value any) {
		checked++
		if err := d.check(schema, value); err != nil {
			t.Errorf("%s: %v", here.pointer(), err)
		}
	}
	walk(d.root, nil, func(here place, v any) {
		o, ok := v.(map[string]any)
		if !ok || o["schema"] == nil || slices.Contains(here, "schemas") {
			return
		}
		if value, ok := o["example"]; ok {
			example(here, here.to("schema"), value)
		}
		named, _ := o["examples"].(map[string]any)
		for name := range named {
			value, ok := d.object(here.to("examples", name))["value"]
			if !ok {
				t.Errorf("%s: the example %s has no value", here.pointer(), name)
			}
			example(here.to("examples", name), here.to("schema"), value)
		}
	})
	if checked < 80 {
		t.Errorf("only %d examples were found", checked)
	}
}

// words are the constants that a schema lists, each with its description.
func (d *apiDoc) words(t *testing.T, schema string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	v, _ := d.at(place{"components", "schemas", schema, "oneOf"})
	listed, _ := v.([]any)
	for _, one := range listed {
		o := one.(map[string]any)
		word, _ := o["const"].(string)
		if text, _ := o["description"].(string); text == "" || word == "" || all[word] {
			t.Errorf("%s: %q twice, or without a description", schema, word)
		}
		all[word] = true
	}
	return all
}

func sameWords[S ~string](t *testing.T, what string, got map[string]bool, want []S) {
	t.Helper()
	wanted := map[string]bool{}
	for _, w := range want {
		wanted[string(w)] = true
	}
	for w := range wanted {
		if !got[w] {
			t.Errorf("%s: the document lacks %s", what, w)
		}
	}
	for w := range got {
		if !wanted[w] {
			t.Errorf("%s: the ledger has no %s", what, w)
		}
	}
}

func TestEveryWordOfTheLedgerIsInTheDocument(t *testing.T) {
	d := openAPI()
	reasons := map[ledger.Status][]ledger.Reason{}
	for _, r := range ledger.Rules() {
		reasons[r.To] = append(reasons[r.To], r.Reasons...)
	}
	var nexts []string
	for _, s := range ledger.Statuses() {
		nexts = append(nexts, ledger.Next(s, ""))
		if s != ledger.UnknownHold && s != ledger.Rejected && len(reasons[s]) > 0 {
			t.Errorf("%s has reasons; the document has none for it", s)
		}
	}
	var problems []string
	for _, p := range ledger.Problems {
		problems, nexts = append(problems, p.Reason), append(nexts, p.Next)
	}
	sameWords(t, "Status", d.words(t, "Status"), ledger.Statuses())
	sameWords(t, "HoldReason", d.words(t, "HoldReason"), reasons[ledger.UnknownHold])
	sameWords(t, "RejectionReason", d.words(t, "RejectionReason"), reasons[ledger.Rejected])
	sameWords(t, "Next", d.words(t, "Next"), nexts)
	sameWords(t, "ProblemReason", d.words(t, "ProblemReason"), problems)
}

// Whatever pair of status and reason the ledger can have, its envelope fits; and
// with another next it does not.
func TestEveryEnvelopeOfTheLedgerFits(t *testing.T) {
	d := openAPI()
	schema := place{"components", "schemas", "Envelope"}
	for _, r := range ledger.Rules() {
		for _, reason := range append(slices.Clone(r.Reasons), "")[:max(len(r.Reasons), 1)] {
			o := ledger.Operation{OperationID: "op-1", OrderID: ledger.OrderID("i", "t", "op-1"), ActionType: "pay", Status: r.To, Reason: reason,
				Fingerprint: "hf1:sha256:" + strings.Repeat("0", 64), Overlaps: []ledger.Overlapped{{OperationID: "op-0", Why: []string{"reference equal"}}}}
			e := ledger.Describe(o, nil).Saying("because", "/amount")
			if err := d.check(schema, asJSON(t, e)); err != nil {
				t.Errorf("%s %s: %v", r.To, reason, err)
			}
			e.Next = ledger.NextFixRequest
			if d.check(schema, asJSON(t, e)) == nil {
				t.Errorf("%s %s fits with next %s", r.To, reason, e.Next)
			}
		}
	}
}

func asJSON(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	must(t, err)
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	must(t, err)
	return parsed
}

func TestEveryProblemHasAnExample(t *testing.T) {
	d := openAPI()
	for _, p := range ledger.Problems {
		value, _ := d.at(place{"components", "examples", p.Reason, "value"})
		e, _ := value.(map[string]any)
		if e == nil {
			t.Errorf("%s has no example", p.Reason)
			continue
		}
		if err := d.check(place{"components", "schemas", "Problem"}, e); err != nil {
			t.Error(p.Reason, err)
		}
		want := map[string]any{"type": p.Type(), "title": p.Title, "status": json.Number(strconv.Itoa(p.Status)), "reason": p.Reason, "next": p.Next, "terminal": p.Terminal}
		for name, v := range want {
			if e[name] != v {
				t.Errorf("%s: %s is %v, want %v", p.Reason, name, e[name], v)
			}
		}
		// No pair of a reason and another answer fits.
		for _, changed := range []map[string]any{{"next": "use_result"}, {"terminal": !p.Terminal}, {"status": json.Number("418")}} {
			other := maps.Clone(e)
			maps.Copy(other, changed)
			if d.check(place{"components", "schemas", "Problem"}, other) == nil {
				t.Errorf("%s fits with %v", p.Reason, changed)
			}
		}
	}
}

func TestEveryRouteIsInTheDocument(t *testing.T) {
	e := echo.New()
	s := &Server{}
	s.routeAPI(e)
	s.routeHealth(e)
	var routed []string
	for _, r := range e.Routes() {
		if !strings.Contains(r.Path, "*") {
			routed = append(routed, r.Method+" "+nameless(r.Path))
		}
	}
	d := openAPI()
	described := map[string]bool{}
	for path := range d.object(place{"paths"}) {
		for _, method := range methods {
			if d.object(place{"paths", path, method}) != nil {
				described[strings.ToUpper(method)+" "+nameless(path)] = true
			}
		}
	}
	sameWords(t, "calls", described, routed)
	if len(routed) < 6 {
		t.Error("only ", routed)
	}
}

// nameless is a path with its parameters as {}, however they are written.
func nameless(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if strings.HasPrefix(s, ":") || strings.HasPrefix(s, "{") {
			segments[i] = "{}"
		}
	}
	return strings.Join(segments, "/")
}

// The example is one that a server without a configuration takes, and the
// envelope beside it is its answer.
func TestTheExampleIsAnsweredAsItSays(t *testing.T) {
	d := openAPI()
	value := func(name string) map[string]any {
		v, _ := d.at(place{"components", "examples", name, "value"})
		return v.(map[string]any)
	}
	body, err := json.Marshal(value("submit"))
	must(t, err)
	a := newServer(t).agent("default")
	h := a.submit(string(body))
	h.is(t, 202, "", "wait", false)
	for _, name := range []string{"operation_id", "action_type", "status", "fingerprint", "words", "poll", "detail"} {
		if h.said[name] != value("ready")[name] {
			t.Errorf("%s is %v, the example says %v", name, h.said[name], value("ready")[name])
		}
	}
}

// TestConformanceFindsWhatDiffers: an answer that is right passes, and none
// with one thing wrong.
func TestConformanceFindsWhatDiffers(t *testing.T) {
	d := openAPI()
	value, _ := d.at(place{"components", "examples", "ready", "value"})
	right := func() (http.Header, map[string]any) {
		return http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"req_1"}, "Etag": {`"1"`}, "Retry-After": {"1"}, "Location": {"/v1/operations/inv-481-charge"}},
			maps.Clone(value.(map[string]any))
	}
	const path = "/v1/operations"
	for name, c := range map[string]struct {
		method, path string
		status       int
		change       func(http.Header, map[string]any)
		fits         bool
	}{
		"nothing":             {"POST", path, 202, func(http.Header, map[string]any) {}, true},
		"another header":      {"POST", path, 202, func(h http.Header, _ map[string]any) { h.Set("X-Else", "1") }, false},
		"no request id":       {"POST", path, 202, func(h http.Header, _ map[string]any) { h.Del("X-Request-Id") }, false},
		"a bad Retry-After":   {"POST", path, 202, func(h http.Header, _ map[string]any) { h.Set("Retry-After", "0") }, false},
		"another media type":  {"POST", path, 202, func(h http.Header, _ map[string]any) { h.Set("Content-Type", "text/html") }, false},
		"another status":      {"POST", path, 206, func(http.Header, map[string]any) {}, false},
		"not ended with 201":  {"POST", path, 201, func(http.Header, map[string]any) {}, false},
		"a body with 304":     {"GET", path + "/op-1", 304, func(http.Header, map[string]any) {}, false},
		"no replay with 200":  {"POST", path, 200, func(http.Header, map[string]any) {}, false},
		"a member more":       {"POST", path, 202, func(_ http.Header, e map[string]any) { e["tenant_id"] = "t1" }, false},
		"a member less":       {"POST", path, 202, func(_ http.Header, e map[string]any) { delete(e, "words") }, false},
		"another next":        {"POST", path, 202, func(_ http.Header, e map[string]any) { e["next"] = "stop" }, false},
		"a reason too many":   {"POST", path, 202, func(_ http.Header, e map[string]any) { e["reason"] = "denied" }, false},
		"a local time":        {"POST", path, 202, func(_ http.Header, e map[string]any) { e["created_at"] = "2026-03-04T09:00:00.000+01:00" }, false},
		"an undescribed call": {"DELETE", path, 202, func(http.Header, map[string]any) {}, false},
		"a page":              {"GET", "/login", 202, func(http.Header, map[string]any) {}, true},
	} {
		header, e := right()
		c.change(header, e)
		body, err := json.Marshal(e)
		must(t, err)
		if found := d.violations(c.method, c.path, c.status, header, body); (len(found) == 0) != c.fits {
			t.Errorf("%s: found %v", name, found)
		}
	}
}
