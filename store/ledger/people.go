package ledger

import (
	"slices"
	"strings"
	"time"
)

// Roles that a person may have, several at once.
var Roles = []string{"admin", "approver", "finance", "viewer"}

// InviteLife is how long an invite link is good: somebody on holiday comes back
// to it, and one that lies in an old chat opens nothing.
const InviteLife = 7 * 24 * time.Hour

// Invite lets whoever has its link become a person of the tenant, once.
type Invite struct {
	ID        string
	TenantID  string
	Email     string // empty: whoever has the link says it
	Roles     []string
	By        string // e-mail of the admin who made it
	CreatedAt int64
	ExpiresAt int64
	UsedAt    int64
	RevokedAt int64
}

// Open reports whether the link is still good.
func (i Invite) Open(now int64) bool { return i.UsedAt == 0 && i.RevokedAt == 0 && now < i.ExpiresAt }

// MayManagePeople says whether a person may invite, change or disable others.
func MayManagePeople(by PersonRecord) (allowed bool, why string) {
	switch {
	case by.DisabledAt > 0:
		return false, "You are disabled."
	case !slices.Contains(by.Roles, "admin"):
		return false, "This needs the role admin."
	}
	return true, ""
}

// MayChange says whether one person may change another's roles, disable or enable
// them, or take their second factor away; all of it is for somebody else to do.
func MayChange(by, whom PersonRecord) (allowed bool, why string) {
	if allowed, why = MayManagePeople(by); !allowed {
		return false, why
	}
	if by.ID == whom.ID {
		return false, "Nobody changes their own roles or rights. Another admin does it."
	}
	return true, ""
}

// MayGiveRoles says whether a person may have just these roles from now on.
// otherAdmins counts the tenant's enabled admins without them.
func MayGiveRoles(whom PersonRecord, roles []string, otherAdmins int) (allowed bool, why string) {
	if allowed, why = GoodRoles(roles); !allowed {
		return false, why
	}
	if slices.Contains(roles, "admin") {
		return true, ""
	}
	return maySpareAdmin(whom, otherAdmins)
}

// MayDisable says whether a person may lose every right.
func MayDisable(whom PersonRecord, otherAdmins int) (allowed bool, why string) {
	return maySpareAdmin(whom, otherAdmins)
}

// maySpareAdmin keeps one enabled admin in every tenant that has one: without it,
// nobody could let anybody in.
func maySpareAdmin(whom PersonRecord, otherAdmins int) (allowed bool, why string) {
	if whom.DisabledAt == 0 && slices.Contains(whom.Roles, "admin") && otherAdmins == 0 {
		return false, whom.Email + " is the last admin of " + whom.TenantID + ". Make somebody else admin first."
	}
	return true, ""
}

// GoodRoles says whether a list of roles may be given: at least one, each known.
func GoodRoles(roles []string) (good bool, why string) {
	if len(roles) == 0 {
		return false, "Choose at least one role."
	}
	for _, r := range roles {
		if !slices.Contains(Roles, r) {
			return false, "There is no such role. There are " + strings.Join(Roles, ", ") + "."
		}
	}
	return true, ""
}

// Shrinks reports whether somebody who had the roles was loses one of them.
func Shrinks(was, now []string) bool {
	return slices.ContainsFunc(was, func(r string) bool { return !slices.Contains(now, r) })
}
