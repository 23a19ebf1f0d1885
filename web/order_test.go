package web

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/store"
	"holdfast/store/ledger"
)

// with is the good submission with more members beside the payload.
func with(id, members string, oldNew ...string) string {
	body := strings.Replace(named(id), `"payload"`, members+`,"payload"`, 1)
	return strings.NewReplacer(oldNew...).Replace(body)
}

func after(id string, first ...string) string {
	return with(id, `"after":["`+strings.Join(first, `","`)+`"]`)
}

func replacing(id, old string, oldNew ...string) string {
	return with(id, fmt.Sprintf(`"replaces":%q`, old), oldNew...)
}

// due are the operations that a worker would get now.
func (a agent) due() []string {
	a.t.Helper()
	claims, err := a.Store.Claim(a.t.Context(), "worker-1", a.tenant, "card", 50, 50)
	must(a.t, err)
	ids := []string{}
	for _, c := range claims {
		ids = append(ids, c.Operation.OperationID)
		must(a.t, a.Store.Release(a.t.Context(), c, 0, "not now"))
	}
	slices.Sort(ids)
	return ids
}

func (a agent) wantDue(ids ...string) {
	a.t.Helper()
	if got := a.due(); !slices.Equal(got, append([]string{}, ids...)) {
		a.t.Errorf("%v are due, want %v", got, ids)
	}
}

// refused lets the provider decline an operation.
func (a agent) refused(id string) {
	a.t.Helper()
	if o := a.answer(a.stored(a.tenant, id), ledger.Answer{Finding: ledger.Refused, HTTPStatus: 402}); o.Status != ledger.Rejected {
		a.t.Fatalf("%s is %s", id, o.Status)
	}
}

// different lets a person say that a held operation is a purchase of its own.
func (w *world) different(id string) ledger.Operation {
	w.t.Helper()
	o := w.stored("default", id)
	o, err := w.Store.DifferentPurchase(w.t.Context(), "default", id, store.Decision{Person: w.person("default", id+"@example.com", "approver"),
		Seen: store.Seen{Fingerprint: o.Fingerprint, Version: o.Version}, Reason: "two invoices"})
	must(w.t, err)
	return o
}

func (a agent) is(id string, status ledger.Status, reason ledger.Reason) {
	a.t.Helper()
	if o := a.stored(a.tenant, id); o.Status != status || o.Reason != reason {
		a.t.Errorf("%s is %s %s (%s), want %s %s", id, o.Status, o.Reason, o.Detail, status, reason)
	}
}

func TestOperationWaitsForThoseBeforeIt(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	a.submit(named("one"))
	a.submit(changed("4800", "200000", "ID", "two")) // waits for a person
	h := a.submit(after("last", "one", "two", "one"))
	h.is(t, 202, "", "wait", false)
	a.wantDue("one")
	a.lose(a.stored("default", "one")) // unknown is not confirmed
	a.wantDue()
	o := a.stored("default", "one")
	r := *receiptFor(o).Receipt
	r.Stamp = o.OrderID
	_, err := a.Store.RecordLook(t.Context(), "default", "one", ledger.Look{Finding: ledger.LookFound, Records: []ledger.Receipt{r}, AskedAt: a.Store.Now()},
		ledger.Holder{Kind: ledger.Reconciler, Name: "lookup"}, time.Second)
	must(t, err)
	a.is("one", ledger.Confirmed, "")
	a.wantDue()
	two := a.stored("default", "two")
	_, err = a.Store.Approve(t.Context(), "default", "two", store.Decision{Person: a.person("default", "ana@example.com", "approver"),
		Seen: store.Seen{Fingerprint: two.Fingerprint, Version: two.Version}})
	must(t, err)
	a.wantDue("two")
	a.confirm("two")
	a.wantDue("last")
	a.confirm("last")
	a.is("last", ledger.Confirmed, "")
}

func TestRejectedPrerequisiteRejects(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	a.submit(named("one"))
	a.submit(after("two", "one"))
	a.submit(strings.Replace(after("three", "two"), "4800", "200000", 1)) // waits for a person besides
	a.submit(strings.Replace(after("held", "three"), "ref-held", "ref-one", 1))
	a.submit(named("apart"))
	a.refused("one")
	for _, id := range []string{"two", "three"} { // the whole chain
		a.is(id, ledger.Rejected, ledger.PrerequisiteRejected)
		a.get("/v1/operations/"+id).is(t, 200, "prerequisite_rejected", "stop", true)
	}
	a.is("apart", ledger.Ready, "")
	// A held one is told when a person lets it go.
	a.is("held", ledger.UnknownHold, ledger.SameReference)
	a.different("held")
	a.is("held", ledger.Rejected, ledger.PrerequisiteRejected)
	// One that comes too late is recorded, and rejected at once.
	h := a.submit(after("late", "one"))
	h.is(t, 202, "prerequisite_rejected", "stop", true)
	if !strings.Contains(a.stored("default", "late").Detail, "to come after one") {
		t.Error("it does not say after what: ", h.Body)
	}
	a.submit(after("late", "one")).is(t, 200, "prerequisite_rejected", "stop", true)
	a.wantDue("apart")
}

func TestPrerequisitesAreWaitedForThroughAliases(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	for _, outcome := range []ledger.Status{ledger.Confirmed, ledger.Rejected} {
		name := func(id string) string { return id + "-" + string(outcome) }
		a.submit(named(name("first")))
		a.submit(changed("ref-ID", "ref-"+name("first"), "ID", name("again")))
		a.submit(after(name("early"), name("again"))) // before a person said what it is
		a.wantDue(name("first"))
		o := a.stored("default", name("again"))
		_, err := a.Store.SamePurchase(t.Context(), "default", o.OperationID, store.Decision{Person: a.person("default", name("ana")+"@example.com", "approver"),
			Seen: store.Seen{Fingerprint: o.Fingerprint, Version: o.Version}})
		must(t, err)
		a.submit(after(name("late"), name("again"))) // and after
		a.wantDue(name("first"))
		if outcome == ledger.Confirmed {
			a.confirm(name("first"))
			a.wantDue(name("early"), name("late"))
			a.confirm(name("early"))
			a.confirm(name("late"))
			continue
		}
		a.refused(name("first"))
		a.is(name("early"), ledger.Rejected, ledger.PrerequisiteRejected)
		a.is(name("late"), ledger.Rejected, ledger.PrerequisiteRejected)
		a.submit(after(name("later"), name("again"))).is(t, 202, "prerequisite_rejected", "stop", true)
		a.wantDue()
	}
}

func TestOnlyWhatIsOnRecordCanBeWaitedFor(t *testing.T) {
	w := newServer(t, apiConfig)
	a, stranger := w.agent("t1"), w.agent("t2")
	stranger.submit(named("theirs"))
	for _, body := range []string{after("op-A", "absent"), after("op-A", "theirs"), after("op-A", "op-A"), replacing("op-A", "absent"), replacing("op-A", "theirs"), replacing("op-A", "op-A")} {
		h := a.submit(body)
		h.is(t, 400, "invalid_request", "fix_request", false)
		if strings.Contains(body, `"absent"`) || strings.Contains(body, `"theirs"`) {
			if want := map[bool]string{true: "/after", false: "/replaces"}[strings.Contains(body, "after")]; h.text("pointer") != want {
				t.Errorf("the pointer is %q, want %s", h.text("pointer"), want)
			}
		}
		a.absent("op-A")
	}
	a.submit(named("op-A")).is(t, 202, "", "wait", false) // no id was used up
	stranger.is("theirs", ledger.Ready, "")
}

func TestReplacedOperationEndsAndTheNewOneIsJudgedAfresh(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	a.submit(named("small"))
	a.submit(after("next", "small"))
	// The same purchase with another amount: no overlap with what it replaces.
	a.submit(replacing("large", "small", "4800", "200000", "ref-large", "ref-small")).is(t, 202, "", "await_approval", false)
	a.is("small", ledger.Rejected, ledger.Replaced)
	a.get("/v1/operations/small").is(t, 200, "replaced", "stop", true)
	a.is("next", ledger.Rejected, ledger.PrerequisiteRejected)
	if got := a.intend(by("reference", "ref-small")).gives(t, 200); got != "large" {
		t.Error("the reference leads to ", got)
	}
	a.submit(named("small")).is(t, 200, "replaced", "stop", true)
	a.submit(replacing("large", "small", "4800", "200000", "ref-large", "ref-small")).is(t, 409, "in_progress", "wait", false)
	a.submit(replacing("tiny", "large", "4800", "100", "ref-tiny", "ref-small")).is(t, 202, "", "wait", false)
	a.is("large", ledger.Rejected, ledger.Replaced)
	a.wantDue("tiny")
	// One that policy denies still ends the old one: the agent no longer wants it.
	a.submit(replacing("bad", "tiny", "acct-bad", "acct_bad")).is(t, 403, "policy_denied", "stop", true)
	a.is("tiny", ledger.Rejected, ledger.Replaced)
	a.wantDue()
}

func TestWhatWasSentIsNotReplaced(t *testing.T) {
	w := newServer(t, apiConfig)
	a := w.agent("default")
	a.marked("in_flight")
	a.submit(named("unknown"))
	a.lose(w.stored("default", "unknown"))
	a.confirmed("confirmed")
	a.submit(named("declined"))
	a.refused("declined")
	for _, id := range []string{"in_flight", "unknown", "confirmed", "declined"} {
		before := w.stored("default", id)
		h := a.submit(replacing("new", id))
		h.is(t, 409, "already_dispatched", "wait", false)
		if operation, _ := h.said["operation"].(map[string]any); operation["operation_id"] != id || operation["status"] != string(before.Status) {
			t.Error("the answer is about another operation: ", h.Body)
		}
		a.absent("new")
		if after := w.stored("default", id); after.Version != before.Version {
			t.Errorf("%s changed", id)
		}
	}
	// A token that may not use the old one's action type ends nothing.
	a.submit(named("ready"))
	token, _, err := IssueToken(t.Context(), w.Store, ledger.TokenRecord{TenantID: "default", Agent: "narrow", Scopes: Scopes, ActionTypes: []string{"refund"},
		ExpiresAt: w.Store.Now() + 3_600_000}, ledger.Holder{Kind: ledger.Person, Name: "test"})
	must(t, err)
	agent{w, "default", token}.submit(replacing("new", "ready", `"pay"`, `"refund"`)).is(t, 403, "forbidden", "stop", true)
	a.is("ready", ledger.Ready, "")
}

// What ended unsent may be followed by one new operation, not by two.
func TestOneOperationStandsForWhatWasDenied(t *testing.T) {
	w := newServer(t, apiConfig)
	a := w.agent("default")
	a.submit(changed("4800", "200000", "ID", "large"))
	o := w.stored("default", "large")
	_, err := w.Store.AskForChanges(t.Context(), "default", "large", store.Decision{Person: w.person("default", "ana@example.com", "approver"),
		Seen: store.Seen{Fingerprint: o.Fingerprint, Version: o.Version}, Reason: "at most 50 euro"})
	must(t, err)
	a.submit(replacing("small", "large")).is(t, 202, "", "wait", false)
	a.submit(replacing("other", "large")).is(t, 409, "already_dispatched", "stop", true)
	a.absent("other")
	a.submit(replacing("smaller", "small")).is(t, 202, "", "wait", false)
	for _, old := range []string{"large", "small"} { // also over the one in between
		a.submit(replacing("other", old)).is(t, 409, "already_dispatched", "stop", true)
	}
	a.wantDue("smaller")
	a.refused("smaller")
	a.submit(replacing("other", "large")).is(t, 202, "", "wait", false)
}

func TestReplacedHoldIsFollowedByAHold(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	a.submit(named("first"))
	a.submit(changed("ref-ID", "ref-first", "ID", "held")).is(t, 202, "same_reference", "await_human", false)
	// Under another reference it would overlap nothing: the question stays.
	h := a.submit(replacing("narrow", "held", "4800", "100"))
	h.is(t, 202, "same_reference", "await_human", false)
	if fmt.Sprint(overlapped(h)) != "[first]" {
		t.Error("it waits for ", overlapped(h))
	}
	a.is("held", ledger.Rejected, ledger.Replaced)
	// And so it does where the new one overlaps something else besides.
	a.submit(named("second"))
	h = a.submit(replacing("narrower", "narrow", "4800", "50", "ref-narrower", "ref-second"))
	h.is(t, 202, "same_reference", "await_human", false)
	if fmt.Sprint(overlapped(h)) != "[second first]" {
		t.Error("it waits for ", overlapped(h))
	}
	a.wantDue("first", "second")
}

func overlapped(h heard) (ids []string) {
	list, _ := h.said["overlaps"].([]any)
	for _, o := range list {
		id, _ := o.(map[string]any)["operation_id"].(string)
		ids = append(ids, id)
	}
	return ids
}

// Sixteen replacements and a worker race for one operation: either the worker
// sends it and nothing replaces it, or exactly one replaces it.
func TestReplacementRacesWithTheMark(t *testing.T) {
	w := newServer(t, apiConfig)
	a := w.agent("default")
	var sent, replaced int
	for round := range 20 {
		id := fmt.Sprint("old-", round)
		a.submit(named(id))
		claims, err := w.Store.Claim(t.Context(), "worker-1", "default", "card", 1, 1)
		must(t, err)
		var all sync.WaitGroup
		var mu sync.Mutex
		var won []string
		marked := false
		race := func(f func()) { all.Go(f) }
		for i := range 16 {
			race(func() {
				next := fmt.Sprintf("new-%d-%d", round, i)
				h := a.submit(replacing(next, id, "acct-"+next, "acct-"+id))
				if h.Code != 202 && h.text("reason") != "already_dispatched" {
					t.Error(h.Code, h.Body)
				}
				if h.Code == 202 {
					mu.Lock()
					won = append(won, next)
					mu.Unlock()
				}
			})
			if i == round%16 {
				race(func() {
					_, err := w.Store.Mark(context.WithoutCancel(t.Context()), claims[0], 10*time.Second, w.Config().Route(claims[0].Operation).Render)
					if err != nil && !errors.Is(err, store.ErrLeaseLost) {
						t.Error(err)
					}
					marked = err == nil
				})
			}
		}
		all.Wait()
		o := w.stored("default", id)
		switch {
		case marked && len(won) == 0 && o.Status == ledger.InFlight:
			sent++
		case !marked && len(won) == 1 && o.Status == ledger.Rejected && o.Reason == ledger.Replaced:
			replaced++
			a.call("POST", "/v1/operations/"+won[0]+"/cancel", "").is(t, 200, "cancelled", "stop", true)
		default:
			t.Errorf("round %d: marked %v, replaced by %v, and it is %s %s", round, marked, won, o.Status, o.Reason)
		}
	}
	t.Logf("sent %d, replaced %d", sent, replaced)
}

// cacheConfig answers identical payments of an agent from the record for an
// hour, and lets everything else that is equal wait for a person.
var cacheConfig = strings.ReplaceAll(apiConfig, "pay: { rail: card, effect: charge,", "pay: { rail: card, effect: charge, cacheable: 1h,")

// again is the payment of another id, under a new id.
func again(id, first string) string {
	return changed("acct-ID", "acct-"+first, "ref-ID", "ref-"+first, "ID", id)
}

func (h heard) cachedFrom(t testing.TB, id string) {
	t.Helper()
	h.is(t, 200, "", "use_result", true)
	result, _ := h.said["result"].(map[string]any)
	if h.Header().Get("Idempotent-Replayed") != "true" || h.text("duplicate_of") != id || result["id"] != "ch_"+id || h.said["attempts"] != 0.0 {
		t.Errorf("it is not answered from %s: %v %s", id, h.Header(), h.Body)
	}
}

func TestIdenticalRepeatIsAnsweredFromTheRecord(t *testing.T) {
	w := newServer(t, cacheConfig)
	a := w.agent("default")
	a.submit(named("op-A"))
	a.submit(again("op-early", "op-A")).is(t, 202, "same_reference", "await_human", false) // not confirmed yet
	a.confirm("op-A")
	for _, id := range []string{"op-B", "op-C"} {
		a.submit(again(id, "op-A")).cachedFrom(t, "op-A")
		a.submit(again(id, "op-A")).cachedFrom(t, "op-A") // the repeat of it
		a.get("/v1/operations/"+id).is(t, 200, "", "use_result", true)
		if o := w.stored("default", id); o.Status != ledger.Rejected || o.Reason != ledger.Duplicate || o.Attempts != 0 {
			t.Errorf("%s is %s %s", id, o.Status, o.Reason)
		}
	}
	// Only what is equal, only this agent's, and only this tenant's.
	a.submit(strings.Replace(again("op-other", "op-A"), "4800", "4801", 1)).is(t, 202, "same_reference", "await_human", false)
	a.another().submit(again("op-theirs", "op-A")).is(t, 202, "same_reference", "await_human", false)
	w.agent("t1").submit(again("op-tenant", "op-A")).is(t, 202, "", "wait", false)
	w.pass(time.Hour)
	a = w.agent("default")
	a.submit(again("op-last", "op-A")).cachedFrom(t, "op-A")
	w.pass(time.Millisecond)
	a.submit(again("op-late", "op-A")).is(t, 202, "same_reference", "await_human", false)
	a.wantDue()
}

func TestRepeatFromTheRecordKeepsItsNames(t *testing.T) {
	a := newServer(t, cacheConfig).agent("default")
	a.confirmed("op-A")
	repeat := strings.Replace(again("op-B", "op-A"), `"payload"`, `"run_id":"run-2","step":"charge","payload"`, 1)
	a.submit(repeat).cachedFrom(t, "op-A")
	if got := a.intend(by("run_id", "run-2", "step", "charge")).gives(t, 200); got != "op-B" {
		t.Error("the step leads to ", got)
	}
}

func TestRepeatFromTheRecordStillReplaces(t *testing.T) {
	a := newServer(t, cacheConfig).agent("default")
	a.confirmed("op-A")
	a.submit(named("op-unwanted"))
	a.submit(strings.Replace(again("op-B", "op-A"), `"payload"`, `"replaces":"op-unwanted","payload"`, 1)).cachedFrom(t, "op-A")
	a.is("op-unwanted", ledger.Rejected, ledger.Replaced)
	a.wantDue()
}

func TestDeclinedRepeatIsNotAnsweredFromTheRecord(t *testing.T) {
	a := newServer(t, cacheConfig).agent("default")
	a.submit(named("op-A"))
	a.refused("op-A")
	a.submit(again("op-B", "op-A")).is(t, 202, "", "wait", false)
	a.wantDue("op-B")
}

// "Same purchase" as what was replaced means what replaced it, and nothing is
// the repeat of itself.
func TestNothingBecomesTheAliasOfWhatItReplaced(t *testing.T) {
	for _, let := range []bool{true, false} {
		a := newServer(t, apiConfig).agent("default")
		ana := a.person("default", "ana@example.com", "approver")
		same := func(id, original string) error {
			o := a.stored("default", id)
			_, err := a.Store.SamePurchase(t.Context(), "default", id, store.Decision{Person: ana,
				Seen: store.Seen{Fingerprint: o.Fingerprint, Version: o.Version}, Reason: "one invoice", Original: original})
			return err
		}
		a.submit(changed("4800", "200000", "ID", "A")).is(t, 202, "", "await_approval", false)
		a.submit(changed("ref-ID", "ref-A", "ID", "N")).is(t, 202, "same_reference", "await_human", false)
		a.submit(replacing("R", "A", "ref-R", "ref-A")).is(t, 202, "same_reference", "await_human", false)
		must(t, same("N", "A"))
		if o := a.stored("default", "N"); o.DuplicateOf != "R" {
			t.Errorf("N became an alias of %s", o.DuplicateOf)
		}
		if err := same("R", "N"); !errors.Is(err, store.ErrForbidden) || !strings.Contains(err.Error(), "stands for N itself") {
			t.Error("R was made its own original: ", err)
		}
		a.is("R", ledger.UnknownHold, ledger.SameReference)
		page := a.signIn(ana).get("/operations/R")
		shows(t, page, 200, "this one stands for them")
		hides(t, page, `name="original"`)
		if !let {
			continue
		}
		a.different("R")
		a.wantDue("R")
		a.confirm("R")
		a.get("/v1/operations/N").is(t, 200, "", "use_result", true)
	}
}

// An alias of what was replaced later still counts as the purchase: what
// replaced it stands for both.
func TestAliasOfAReplacedOperationStillHolds(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	a.submit(changed("4800", "200000", "ID", "A")).is(t, 202, "", "await_approval", false)
	a.submit(changed("4800", "200000", "acct-ID", "acct-A", "ID", "N", "ref-ID", "ref-A")).is(t, 202, "same_reference", "await_human", false)
	a.same("N")
	a.submit(replacing("R", "A", "ref-R", "another-name")).is(t, 202, "", "wait", false)
	h := a.submit(changed("ref-ID", "ref-A", "ID", "fresh"))
	h.is(t, 202, "same_reference", "await_human", false)
	if fmt.Sprint(overlapped(h)) != "[R]" {
		t.Error("it is held behind ", h.Body)
	}
}
