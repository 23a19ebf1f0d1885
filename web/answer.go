package web

import (
	"strconv"

	"github.com/labstack/echo/v4"
)

// answer is what a call of the API came to, before a transport sends it. HTTP
// says all of it; a tool of the Model Context Protocol says the body.
type answer struct {
	status     int
	body       any
	location   string
	etag       string
	link       string
	replayed   bool // it was recorded before
	retryAfter *int // seconds
}

// write sends the answer over HTTP.
func (a answer) write(c echo.Context) error {
	h := c.Response().Header()
	set := func(name, value string) {
		if value != "" {
			h.Set(name, value)
		}
	}
	set("Location", a.location)
	set("ETag", a.etag)
	set("Link", a.link)
	if a.replayed {
		h.Set("Idempotent-Replayed", "true")
	}
	if a.retryAfter != nil {
		h.Set("Retry-After", strconv.Itoa(*a.retryAfter))
	}
	return writeJSON(c, a.status, echo.MIMEApplicationJSON, a.body)
}
