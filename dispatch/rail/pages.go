package rail

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"holdfast/store/ledger"
)

// pages checks how a list is read on.
func (f *findings) pages(r Rail, l Lookup) {
	for _, pointer := range slices.Sorted(maps.Keys(l.ConfirmedWhen)) {
		f.check("lookup.confirmed_when", checkPointer(pointer))
		wanted := oneOrMore(l.ConfirmedWhen[pointer])
		if len(wanted) == 0 {
			f.add("lookup.confirmed_when."+pointer, "is an empty list; name what must stand there")
		}
		for _, want := range wanted {
			f.check("lookup.confirmed_when."+pointer, checkScalar(want))
		}
	}
	n := l.Next
	if n == nil {
		return
	}
	if (n.Cursor == "") == (n.Last == "") {
		f.add("lookup.next", "needs either cursor: (where the answer says what comes next) or last: (where a record has its id)")
	}
	for _, p := range [][2]string{{"cursor", n.Cursor}, {"last", n.Last}, {"more", n.More}} {
		if p[1] != "" {
			f.check("lookup.next."+p[0], checkPointer(p[1]))
		}
	}
	switch {
	case n.Param == "":
		f.add("lookup.next.param", "is missing; name the query parameter that asks for the next page")
	case hasControl(n.Param) || strings.ContainsAny(n.Param, "&=#? "):
		f.add("lookup.next.param", "%q is not the name of a query parameter", n.Param)
	case r.lookupPath.hasParam(n.Param):
		f.add("lookup.next.param", "%q stands in lookup.path already", n.Param)
	}
	if *n.Pages < 1 {
		f.add("lookup.next.pages", "%d is less than 1", *n.Pages)
	}
}

// hasParam reports whether a query parameter is written into the path.
func (t template) hasParam(name string) bool {
	_, query, _ := strings.Cut(t.text, "?")
	return slices.ContainsFunc(strings.Split(query, "&"), func(pair string) bool {
		written, _, _ := strings.Cut(pair, "=")
		return written == name
	})
}

func (r *Rail) pagesAtMost() int {
	if r.config.Lookup.Next == nil {
		return 1
	}
	return *r.config.Lookup.Next.Pages
}

// next is what asks for the page behind this one, and whether the list goes on
// at all. A list that does not say where it ends is taken to go on.
func (r *Rail) next(answer any, records []jsontext.Value, header http.Header) (after string, more bool) {
	n := r.config.Lookup.Next
	if n == nil {
		return "", r.hasMore(answer, header)
	}
	said, _ := ledger.Get(answer, n.More)
	goesOn, clear := said.(bool)
	if clear && !goesOn {
		return "", false
	}
	if n.Cursor != "" {
		cursor, _ := ledger.Get(answer, n.Cursor)
		ends := cursor == nil || cursor == "" || cursor == false
		return textAt(answer, n.Cursor), !ends || clear || r.hasMore(answer, header)
	}
	if !clear || len(records) == 0 {
		return "", true
	}
	last, err := readJSON(records[len(records)-1])
	if err != nil {
		return "", true
	}
	return textAt(last, n.Last), true
}

// Where providers say how a list goes on, and how long it is.
var (
	listNotes  = []string{"", "/pagination", "/paging", "/page", "/page_info", "/pageInfo", "/cursors", "/meta", "/meta/pagination", "/meta/page", "/metadata", "/links", "/_links"}
	listNext   = []string{"next", "next_url", "nextUrl", "next_uri", "next_cursor", "nextCursor", "next_page", "nextPage", "next_page_url", "next_page_token", "nextPageToken", "next_token", "nextToken", "@odata.nextLink"}
	listMore   = []string{"has_more", "hasMore", "has_next", "hasNext", "has_next_page", "hasNextPage", "more", "truncated", "is_truncated", "isTruncated", "incomplete_results"}
	listTotals = []string{"total", "total_count", "totalCount", "total_records", "totalRecords", "total_items", "totalItems", "total_results", "totalResults", "total_elements", "totalElements", "count"}
)

// notes are the objects of an answer in which a list speaks of itself: those at
// the top, and those beside the list. The one record that is its own answer
// speaks of no list.
func (r *Rail) notes(answer any) (found []map[string]any) {
	items := r.config.Lookup.Items
	if items == "" {
		return nil
	}
	places := []string{""}
	if beside := items[:strings.LastIndexByte(items, '/')]; beside != "" {
		places = append(places, beside)
	}
	for _, place := range places {
		for _, note := range listNotes {
			at := answer
			if place+note != "" {
				at, _ = ledger.Get(answer, place+note)
			}
			if object, ok := at.(map[string]any); ok {
				found = append(found, object)
			}
		}
	}
	return found
}

// hasMore reports whether the list goes on elsewhere, where the configuration
// does not say how to read it: what is not on this page is not absent.
func (r *Rail) hasMore(answer any, header http.Header) bool {
	for _, link := range header.Values("Link") {
		if rel := strings.ToLower(strings.ReplaceAll(link, " ", "")); strings.Contains(rel, "rel=next") || strings.Contains(rel, `rel="next"`) {
			return true
		}
	}
	return slices.ContainsFunc(r.notes(answer), func(note map[string]any) bool {
		return slices.ContainsFunc(listMore, func(name string) bool { return note[name] == true }) ||
			slices.ContainsFunc(listNext, func(name string) bool { return leadsOn(note[name]) })
	})
}

// leadsOn reports whether a member names a next page: a text, a number, or an
// object that holds the link.
func leadsOn(v any) bool {
	switch v := v.(type) {
	case string:
		return v != ""
	case bool:
		return v
	case map[string]any:
		return len(v) > 0
	case nil:
		return false
	}
	return true
}

// listTotal is how many records the list says it has, on all of its pages. Where
// it says so twice, the larger number counts.
func (r *Rail) listTotal(answer any, header http.Header) (total int) {
	count := func(text string) {
		if n, err := strconv.ParseFloat(text, 64); err == nil && n > float64(total) {
			total = int(min(n, 1e9))
		}
	}
	count(header.Get("X-Total-Count"))
	for _, note := range r.notes(answer) {
		for _, name := range listTotals {
			count(textAt(note, "/"+name))
			count(textAt(note, "/"+name+"/value")) // as search engines write it
		}
	}
	return total
}

// oneOrMore is a list that may be written as its only member.
func oneOrMore(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}

// given reports whether any of it is configured.
func (l Lookup) given() bool {
	return l.Path != "" || l.Items != "" || l.Next != nil || l.ConfirmedWhen != nil ||
		l.Lag != (Duration{}) || l.AbsenceProvesAfter != (Duration{})
}
