package rail

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// doubtful are members beside a list by which a provider says that it could not
// look everywhere.
var doubtful = []string{"error", "errors", "partial", "incomplete", "timed_out"}

// doubt says why an answer to a look-up cannot show that something is not there,
// though it is whole and well written: it is an old copy, or says itself that it
// is not all. What it does show is there all the same.
func doubt(answer any, header http.Header) string {
	if kept, err := strconv.Atoi(strings.TrimSpace(header.Get("Age"))); err == nil && kept > 0 {
		return fmt.Sprintf("The look-up was answered with a copy that a cache has had for %d s; what came since is not in it.", kept)
	}
	members, _ := answer.(map[string]any)
	for _, name := range doubtful {
		if says(members[name]) {
			return fmt.Sprintf("The look-up's answer has a list and %q beside it; what it does not show is not absent.", name)
		}
	}
	return ""
}

// says reports whether a member holds anything.
func says(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}
