package views_test

import (
	"testing"

	"github.com/a-h/templ"

	"holdfast/store/ledger"
	"holdfast/views"
)

func peoplePage() views.PeoplePage {
	person := func(id, name string, roles ...string) ledger.PersonRecord {
		return ledger.PersonRecord{ID: id, TenantID: "acme", Name: name, Email: id + "@example.com", Roles: roles, CreatedAt: now - 90*day, LastSignInAt: now - hour}
	}
	no := func(act, why string) views.Decision { return views.Decision{Act: act, Why: why} }
	yes := func(act string) views.Decision { return views.Decision{Act: act, Allowed: true} }
	gone, phone := person("tom", "Old Tom", "viewer"), person("jon", "Jon", "approver", "finance")
	gone.DisabledAt, gone.LastSignInAt, phone.SecondFactorAt = now-day, 0, now-30*day
	invite := ledger.Invite{ID: "in_1", TenantID: "acme", Email: "bo@example.com", Roles: []string{"finance"}, By: "ana@example.com", CreatedAt: now - day, ExpiresAt: now + 6*day}
	open := invite
	open.ID, open.Email = "in_2", ""
	return views.PeoplePage{Frame: frame(views.AtSettings), Made: new(invite), Link: "https://pay.example.com/invite/5ec7e7", Invites: []ledger.Invite{invite, open},
		People: []views.PersonRow{
			{Person: person("ana", "Ana", "admin"), Self: true, Change: no("change-roles", "Nobody changes their own roles or rights. Another admin does it."), Disable: no("disable-person", "")},
			{Person: phone, Change: yes("change-roles"), Disable: yes("disable-person")},
			{Person: person("kim", "", "admin"), Change: yes("change-roles"), Disable: no("disable-person", "kim@example.com is the last admin of acme. Make somebody else admin first.")},
			{Person: gone, Change: yes("change-roles"), Disable: yes("disable-person")},
		}}
}

func invitePage(f views.Frame) views.InvitePage {
	f.Person = views.Person{}
	return views.InvitePage{Frame: f, Path: "/invite/5ec7e7", Invite: ledger.Invite{Email: "bo@example.com", Roles: []string{"finance", "approver"}, By: "ana@example.com"}, Email: "bo@example.com"}
}

func accountPage() views.AccountPage {
	return views.AccountPage{Frame: frame(views.AtSettings), LeastPassword: 15, Person: ledger.PersonRecord{Email: "ana@example.com", Roles: []string{"finance"}},
		Sessions: []ledger.Session{
			{ID: "1", UserAgent: "Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/131.0 Safari/537.36 Edg/131.0", Address: "192.0.2.10", CreatedAt: now - day, SeenAt: now, Current: true},
			{ID: "2", CreatedAt: now - 2*day, SeenAt: now - hour},
		}}
}

// aboutPeople are the pages about people and accounts in each of their states.
func aboutPeople(out views.Frame) map[string]templ.Component {
	plain, wrong := peoplePage(), peoplePage()
	plain.Made, plain.Link, plain.Invites, plain.People = nil, "", nil, plain.People[:1]
	wrong.Form = views.FormState{Act: "invite", Problem: "Choose at least one role.", Values: map[string]string{"email": "bo@example.com", "roles": "finance"}}
	offered, on, short := accountPage(), accountPage(), accountPage()
	offered.Offered, offered.Fresh, offered.Secret, offered.Picture = true, true, "GEZD GNBV GY3T QOJQ GEZD GNBV GY3T QOJQ", views.Squares{Size: 21, Path: "M0 0h1v1h-1z"}
	on.Person.SecondFactorAt, on.Person.ShortPassword, on.CodesLeft, on.LeastPassword, on.Notice = now-day, true, 10, 8, "Your second factor is on."
	on.RecoveryCodes = []string{"ABCD-EFGH-JKMN-PQRS", "TUVW-XYZ2-3456-789A"}
	short.Person.ShortPassword = true
	short.Form = views.FormState{Act: "set-password", Problem: "The password so far is not that one."}
	again := accountPage()
	again.Offered, again.Form = true, views.FormState{Act: "confirm-second-factor", Problem: "That code does not fit. Type the one that your app shows now."}
	f := frame("")
	return map[string]templ.Component{
		"people": views.People(peoplePage()), "people-alone": views.People(plain), "people-wrong": views.People(wrong),
		"invite":  views.InviteForm(invitePage(out)),
		"account": views.Account(accountPage()), "account-offered": views.Account(offered), "account-on": views.Account(on),
		"account-short": views.Account(short), "account-again": views.Account(again),
		"code":         views.Code(views.CodePage{Frame: out, Act: "login-code", Path: "/login/code", Next: "/", Code: true}),
		"code-wrong":   views.Code(views.CodePage{Frame: out, Act: "login-code", Path: "/login/code", Next: "/", Code: true, Wrong: true, WaitSeconds: 5}),
		"confirm":      views.Code(views.CodePage{Frame: f, Act: "confirm", Path: "/confirm", Next: "/approvals"}),
		"confirm-code": views.Code(views.CodePage{Frame: f, Act: "confirm", Path: "/confirm", Next: "/approvals", Code: true, Wrong: true}),
		"no-invite":    views.Message(views.NoInvite(out)), "no-person": views.Message(views.NoPerson(f)), "person-changed": views.Message(views.PersonChanged(f)),
	}
}

func TestBrowsersAreNamedInWords(t *testing.T) {
	for ua, want := range map[string]string{
		"Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/131.0 Safari/537.36":             "Chrome on Windows",
		"Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 Chrome/131.0 Mobile Safari/537.36":    "Chrome on Android",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15) AppleWebKit/605 Version/18.0 Safari/605.1": "Safari on a Mac",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) CriOS/131.0 Mobile Safari/604.1":  "Chrome on an iPhone",
		"Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0":                  "Firefox on Linux",
		"curl/8.5.0": "curl", "": "A browser that does not say what it is", "something else": "something else",
	} {
		p := accountPage()
		p.Sessions = []ledger.Session{{UserAgent: ua}}
		mustSay(t, draw(t, views.Account(p)), want)
	}
}
