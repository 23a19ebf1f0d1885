package views

import (
	"maps"
	"net/url"

	"github.com/a-h/templ"
)

func exportPath(name, format string, filter url.Values) templ.SafeURL {
	path := "/exports/" + name + "." + format
	if len(filter) > 0 {
		path += "?" + filter.Encode()
	}
	return templ.SafeURL(path)
}

// excel is a filter with the wish for a file that Excel takes for UTF-8.
func excel(filter url.Values) url.Values {
	with := maps.Clone(filter)
	if with == nil {
		with = url.Values{}
	}
	with.Set("for", "excel")
	return with
}
