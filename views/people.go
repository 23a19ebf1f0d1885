package views

import (
	"slices"
	"strconv"
	"strings"

	"holdfast/store/ledger"
)

// PeoplePage lists who may sign in, for those who may change it.
type PeoplePage struct {
	Frame   Frame
	People  []PersonRow
	Invites []ledger.Invite // open ones
	Made    *ledger.Invite  // just now
	Link    string          // of that one; shown once
	Form    FormState
}

// PersonRow is somebody, and what the reader may do about them.
type PersonRow struct {
	Person  ledger.PersonRecord
	Self    bool
	Change  Decision // roles, and all of the following
	Disable Decision
}

// roleDoes says what each role is for.
var roleDoes = map[string]string{
	"admin":    "lets people in, and decides like finance and approvers",
	"approver": "decides on what agents ask for",
	"finance":  "decides as well, and settles what is owed",
	"viewer":   "reads, and decides nothing",
}

// ticked reports whether a role stands ticked in a form: as it was typed, where
// it comes back, or else as the person has it.
func (p PeoplePage) ticked(act, role string, has []string) bool {
	if p.Form.Act == act && act == "invite" {
		has = strings.Split(p.Form.Values["roles"], ",")
	}
	return slices.Contains(has, role)
}

// about reports whether what is wrong with a form is about that person.
func (p PeoplePage) about(r PersonRow) bool {
	return p.Form.Problem != "" && p.Form.Act != "invite" && p.Form.Values["person"] == r.Person.ID
}

// loose reports whether a problem belongs to nobody on the page.
func (p PeoplePage) loose() bool {
	return p.Form.Problem != "" && p.Form.Act != "invite" && !slices.ContainsFunc(p.People, p.about)
}

// InvitePage is where an invite link leads.
type InvitePage struct {
	Frame   Frame
	Invite  ledger.Invite
	Path    string
	Name    string
	Email   string
	Problem string
}

// CodePage asks for a code, or for the password once more.
type CodePage struct {
	Frame       Frame
	Act, Path   string
	Next        string
	Code        bool // a code; else the password
	Wrong       bool
	WaitSeconds int
}

// title says what the page is for.
func (p CodePage) title() string {
	if p.Act == "confirm" {
		return "Is it still you?"
	}
	return "Your code"
}

// wrong says what did not fit.
func (p CodePage) wrong() string {
	switch {
	case !p.Wrong:
		return ""
	case p.Code:
		return "That code does not fit. Each one counts once; wait for the next."
	}
	return "That is not your password."
}

// AccountPage is a person's own password, second factor and sessions.
type AccountPage struct {
	Frame         Frame
	Person        ledger.PersonRecord
	Fresh         bool // no need for the password so far
	LeastPassword int
	Offered       bool    // a second factor was offered, and not confirmed
	Secret        string  // of that one; shown once
	Picture       Squares // the same for a camera
	RecoveryCodes []string
	CodesLeft     int
	Sessions      []ledger.Session
	Notice        string
	Form          FormState
}

// Squares are a picture made of squares, as a path of an SVG.
type Squares struct {
	Size int
	Path string
}

// box leaves the four squares of quiet around it that a camera needs.
func (s Squares) box() string { return "-4 -4 " + itoa(int64(s.Size+8)) + " " + itoa(int64(s.Size+8)) }

func (s Squares) side() string { return strconv.Itoa(s.Size + 8) }

// problemOf is what is wrong with that form.
func (p AccountPage) problemOf(act string) string {
	if p.Form.Act != act {
		return ""
	}
	return p.Form.Problem
}

// TooMany says how long to wait.
func TooMany(seconds int) string {
	return "Too many wrong ones. Wait " + count(seconds, "second", "seconds") + ", then try again."
}

// device says in words what a browser says about itself; what it says is not
// believed for anything.
func device(userAgent string) string {
	browser, system := "", ""
	for _, b := range []struct{ mark, name string }{{"Edg", "Edge"}, {"OPR/", "Opera"}, {"SamsungBrowser", "Samsung Internet"}, {"Firefox/", "Firefox"}, {"FxiOS", "Firefox"},
		{"CriOS", "Chrome"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"}} {
		if strings.Contains(userAgent, b.mark) {
			browser = b.name
			break
		}
	}
	for _, o := range []struct{ mark, name string }{{"iPhone", "an iPhone"}, {"iPad", "an iPad"}, {"Android", "Android"}, {"Windows", "Windows"}, {"Mac OS X", "a Mac"}, {"CrOS", "ChromeOS"}, {"Linux", "Linux"}} {
		if strings.Contains(userAgent, o.mark) {
			system = o.name
			break
		}
	}
	switch {
	case browser != "" && system != "":
		return browser + " on " + system
	case browser != "":
		return browser
	case system != "":
		return "A browser on " + system
	case userAgent == "":
		return "A browser that does not say what it is"
	}
	return userAgent
}

// NoPerson says that there is nobody of that name; the same words serve for
// another tenant's.
func NoPerson(f Frame) MessagePage {
	return MessagePage{Frame: f, Tone: Slate, Title: "There is no such person or link here.",
		Lines: []string{"Nothing was recorded."}, Links: []Link{{"/settings/people", "People"}}}
}

// PersonChanged says that somebody else changed the person first.
func PersonChanged(f Frame) MessagePage {
	return MessagePage{Frame: f, Tone: Amber, Title: "This was changed while you were reading.",
		Lines: []string{"Their roles are others by now. Nothing from you was recorded."}, Links: []Link{{"/settings/people", "People as they are now"}}}
}

// NoInvite says that a link is not good.
func NoInvite(f Frame) MessagePage {
	return MessagePage{Frame: f, Tone: Slate, Title: "This link is not good.",
		Lines: []string{"It is wrong, used, revoked, or older than 7 days. Ask whoever sent it for another."}, Links: []Link{{"/login", "Sign in"}}}
}

// madeFor says whom a link is for.
func madeFor(i ledger.Invite) string {
	if i.Email == "" {
		return "somebody"
	}
	return i.Email
}
