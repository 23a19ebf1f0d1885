package web

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"holdfast/store/ledger"
)

// Limits of what people type.
const (
	maxForm   = 64 << 10
	maxReason = 2000 // characters
	maxID     = 500
)

// unclear says what to change about a form, in a whole sentence.
type unclear struct {
	status   int
	sentence string
}

func (u unclear) Error() string { return u.sentence }

// readForm reads the form of a POST; of other requests there is none. Only the
// body counts: a link can't fill in a form.
func readForm(c echo.Context) error {
	r := c.Request()
	if r.Method != http.MethodPost {
		return nil
	}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != echo.MIMEApplicationForm && (kind != "" || r.ContentLength != 0) {
		return unclear{http.StatusUnsupportedMediaType, "Send it as the form on the page does."}
	}
	r.Body = http.MaxBytesReader(c.Response(), r.Body, maxForm)
	err := r.ParseForm()
	if _, tooLong := errors.AsType[*http.MaxBytesError](err); tooLong {
		return unclear{http.StatusRequestEntityTooLarge, "It is too long. A reason has at most 2,000 characters."}
	}
	if err != nil {
		return unclear{http.StatusBadRequest, "The form could not be read. Open the page again and fill it in anew."}
	}
	return nil
}

// typed is a text of the form without the space around it.
func typed(c echo.Context, name string) string {
	text := strings.ReplaceAll(c.Request().PostForm.Get(name), "\r\n", "\n")
	return strings.TrimSpace(text)
}

// checkText says what is wrong with a typed text; nothing if it may be kept.
func checkText(what, text string, limit int, needed bool) string {
	switch {
	case needed && !legible(text):
		return what + " is needed."
	case !utf8.ValidString(text):
		return what + " has bytes that are no text. Type it again."
	case utf8.RuneCountInString(text) > limit:
		return fmt.Sprintf("%s is too long: %d characters, and at most %d are kept.", what, utf8.RuneCountInString(text), limit)
	}
	return ""
}

// legible reports whether a text has anything to read: a letter, a digit or a
// symbol that is drawn. Invisible characters say nothing.
func legible(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return unicode.In(r, unicode.L, unicode.N, unicode.S) && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) &&
			r != '\u2800' && r != utf8.RuneError // a Braille cell without dots
	})
}

// typedAmount reads a decimal in the operation's currency as minor units.
func typedAmount(text string, o ledger.Operation, money ledger.Currencies) (*int64, string) {
	if text == "" {
		return nil, ""
	}
	amount, err := money.MinorUnits(text, o.Terms.Currency)
	switch {
	case err != nil:
		return nil, "The amount can't be read: " + err.Error() + "."
	case amount < 0:
		return nil, "The amount can't be read: write it without a sign."
	}
	return &amount, ""
}

// cut shortens a text of somebody else's to so many bytes, at a character.
func cut(s string, limit int) string {
	s = strings.ToValidUTF8(s, "")
	for len(s) > limit {
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
	return s
}
