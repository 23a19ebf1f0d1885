package ledger

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

var allActors = []Actor{Agent, Person, Worker, Reconciler, Clock, "nobody"}

var allEvents = sync.OnceValue(func() []Event {
	events := []Event{"explode"}
	for _, r := range Rules() {
		if !slices.Contains(events, r.Event) {
			events = append(events, r.Event)
		}
	}
	return events
})

var allReasons = sync.OnceValue(func() []Reason {
	reasons := []Reason{"", "unheard of"}
	for _, list := range contractReasons {
		for _, r := range list {
			if !slices.Contains(reasons, r) {
				reasons = append(reasons, r)
			}
		}
	}
	return reasons
})

const now = 10 // in these tests

// standings are all facts about an operation that a guard may ask for.
func standings(s Status) []Operation {
	var all []Operation
	for _, made := range []struct{ attempts, open int }{{0, 0}, {1, 0}, {1, 1}, {2, 1}} {
		for _, quarantined := range []bool{false, true} {
			for _, quietFrom := range []int64{0, now, now + 1} {
				for _, r := range []Reason{"", Inconclusive, ReceiptMismatch, EvidenceConflict} {
					if s != UnknownHold && r != "" {
						continue
					}
					for _, turn := range []struct{ leaves, lease int64 }{{0, 0}, {now, 0}, {now + 1, now}, {now + 1, now + 1}} {
						all = append(all, Operation{Status: s, Reason: r, Attempts: made.attempts, OpenAttempts: made.open,
							Quarantined: quarantined, QuietFrom: quietFrom, NextSendAt: turn.leaves, LeaseUntil: turn.lease, Version: 3, UpdatedAt: 7})
					}
				}
			}
		}
	}
	return all
}

// guards says once more, in other words, what each guard means.
var guards = map[Guard]func(Operation) bool{
	Always: func(Operation) bool { return true },
	Unsent: func(o Operation) bool { return !mayHaveBeenSent(o) },
	Staying: func(o Operation) bool {
		return !mayHaveBeenSent(o) && o.NextSendAt == now+1 && o.LeaseUntil != now+1
	},
	Sent:     mayHaveBeenSent,
	NoneOpen: func(o Operation) bool { return !mayStillAct(o) },
	SomeOpen: mayStillAct,
	Quiet: func(o Operation) bool {
		return mayHaveBeenSent(o) && o.QuietFrom != 0 && o.QuietFrom <= now && o.Reason != ReceiptMismatch
	},
	Clearable: func(o Operation) bool { return mayHaveBeenSent(o) && (o.Reason == "" || o.Reason == Inconclusive) },
}

func mayHaveBeenSent(o Operation) bool { return o.Quarantined || o.Attempts != 0 }
func mayStillAct(o Operation) bool     { return o.Quarantined || o.OpenAttempts != 0 }

// TestOnlyTheTableChangesAStatus tries every event by every actor on every
// standing, and allows exactly what a row of the table allows.
func TestOnlyTheTableChangesAStatus(t *testing.T) {
	statuses := append(Statuses(), "", "lost")
	for _, s := range statuses {
		for _, e := range allEvents() {
			for _, actor := range allActors {
				reasons := allReasons()
				if _, err := s.On(e, actor); err != nil {
					reasons = reasons[:1] // no row, so none of them matters
				}
				for _, o := range standings(s) {
					for _, named := range reasons {
						want, allowed := expected(o, e, actor, named)
						got, err := o.On(e, actor, named, now)
						switch {
						case allowed && err != nil:
							t.Fatalf("%s by %s on %+v as %q: %v", e, actor, o, named, err)
						case !allowed && (!errors.Is(err, ErrNotAllowed) || got.Status != o.Status || got.Reason != o.Reason || got.Version != o.Version):
							t.Fatalf("%s by %s on %+v as %q was not refused: %v", e, actor, o, named, err)
						case allowed && (got.Status != want.To || got.Version != o.Version+1 || got.UpdatedAt != now):
							t.Fatalf("%s by %s on %+v as %q: %+v", e, actor, o, named, got)
						}
						if named == "" && len(want.Reasons) < 2 && o.May(e, actor, now) != allowed {
							t.Fatalf("%s by %s on %+v: may %v", e, actor, o, !allowed)
						}
					}
				}
			}
		}
	}
}

func expected(o Operation, e Event, actor Actor, named Reason) (Rule, bool) {
	var match Rule
	for _, r := range Rules() {
		if r.From != o.Status || r.Event != e || !slices.Contains(r.By, actor) || !guards[r.Guard](o) {
			continue
		}
		match = r
		if slices.Contains(r.Reasons, named) || named == "" && len(r.Reasons) < 2 {
			return r, true
		}
	}
	return match, false
}

func TestNothingLeadsOutOfTheEnd(t *testing.T) {
	for _, r := range Rules() {
		if r.From.Final() {
			t.Errorf("%s leads out of %s", r.Event, r.From)
		}
	}
	for _, s := range []Status{Confirmed, Rejected} {
		if !s.Final() {
			t.Errorf("%s is not final", s)
		}
		for _, e := range allEvents() {
			for _, actor := range allActors {
				for _, o := range standings(s) {
					if _, err := o.On(e, actor, "", now); err == nil {
						t.Fatalf("%s by %s leads out of %s", e, actor, s)
					}
				}
			}
		}
	}
}

// TestNothingNegativeLeadsFromUnknownWithoutItsGuard looks at every way from
// "it may have happened" to "it did not".
func TestNothingNegativeLeadsFromUnknownWithoutItsGuard(t *testing.T) {
	quiet := func(o Operation) bool { return o.QuietFrom > 0 && o.QuietFrom <= now }
	excuse := map[Event]func(Operation, Actor) bool{
		Decline:        func(o Operation, a Actor) bool { return a == Worker && o.OpenAttempts == 0 && !o.Quarantined },
		Disprove:       func(o Operation, a Actor) bool { return a == Reconciler && quiet(o) },
		SayNotHappened: func(o Operation, a Actor) bool { return a == Person && quiet(o) },
	}
	ways := map[Event]bool{}
	for _, s := range []Status{InFlight, Unknown, UnknownHold, Ready} {
		for _, o := range standings(s) {
			if !mayStillAct(o) && s != Unknown {
				continue
			}
			for _, e := range allEvents() {
				for _, actor := range allActors {
					if !o.May(e, actor, now) {
						continue // a refused event rejects nothing, as the test above shows
					}
					for _, named := range allReasons() {
						got, err := o.On(e, actor, named, now)
						if err != nil || got.Status != Rejected {
							continue
						}
						if excuse[e] == nil || !excuse[e](o, actor) {
							t.Fatalf("%s by %s rejects %+v", e, actor, o)
						}
						ways[e] = true
					}
				}
			}
		}
	}
	if !ways[Disprove] || !ways[SayNotHappened] {
		t.Errorf("looked at too little: %v", ways)
	}
}

func TestTheTableIsWellFormed(t *testing.T) {
	to := map[string]Status{}
	statuses := map[Status]bool{}
	for _, r := range Rules() {
		key := string(r.From) + " " + string(r.Event)
		if first, known := to[key]; known && first != r.To {
			t.Errorf("%s leads to %s and to %s", key, first, r.To)
		}
		to[key] = r.To
		statuses[r.To] = true
		if guards[r.Guard] == nil {
			t.Errorf("%s: guard %q is not known", key, r.Guard)
		}
		if len(r.By) == 0 || r.Note == "" {
			t.Errorf("%s: nobody may cause it, or nobody knows why", key)
		}
		if needs := r.To == UnknownHold || r.To == Rejected; needs != (len(r.Reasons) > 0) {
			t.Errorf("%s: %s with reasons %v", key, r.To, r.Reasons)
		}
		for _, reason := range r.Reasons {
			if !slices.Contains(contractReasons[r.To], reason) {
				t.Errorf("%s: %s is no reason of %s", key, reason, r.To)
			}
		}
	}
	if len(statuses) != len(Statuses()) {
		t.Errorf("reached %v", statuses)
	}
	if (Operation{Attempts: 1, QuietFrom: 1}).holds("a guard nobody knows", now) {
		t.Error("an unknown guard does not refuse")
	}
}

// standing is a place in a life, and the steps that lead on from it.
type standing struct {
	o     Operation
	steps []step
}

type step struct {
	event Event // empty: time went by, or an answer came under an old fence
	actor Actor
	from  Operation
	to    Operation
}

// reachable walks every life an operation can have, up to two attempts.
var reachable = sync.OnceValue(func() map[string]standing {
	found := map[string]standing{}
	queue := []Operation{{}}
	for len(queue) > 0 {
		o := queue[0]
		queue = queue[1:]
		if _, seen := found[where(o)]; seen {
			continue
		}
		s := standing{o: o}
		add := func(e Event, actor Actor, from, to Operation) {
			to.Version, to.UpdatedAt = 0, 0 // how often and when does not matter here
			s.steps = append(s.steps, step{e, actor, from, to})
			queue = append(queue, to)
		}
		if o.QuietFrom > now {
			quiet := o
			quiet.QuietFrom = now
			add("", Clock, o, quiet)
		}
		if o.NextSendAt > now {
			due := o
			due.NextSendAt = now
			add("", Clock, o, due)
		}
		if o.OpenAttempts > 0 {
			add("", Worker, o, o.Resolve(Attempt{}, AttemptDeclined))
		}
		for _, e := range allEvents() {
			for _, actor := range allActors {
				for _, named := range allReasons() {
					if _, err := o.Status.On(e, actor); err != nil {
						break
					}
					from := o
					if e == Decline || e == Unsend { // it is the outcome of an attempt, which counts first
						if o.OpenAttempts == 0 {
							continue
						}
						from = o.Resolve(Attempt{}, AttemptDeclined)
					}
					to, err := from.On(e, actor, named, now)
					if err != nil || e == Mark && o.Attempts == 2 {
						continue
					}
					if e == Mark {
						to.Attempts++
						to.OpenAttempts++
					}
					switch e {
					case Approve:
						to.NextSendAt = now + 1
					case TakeBack, Mark:
						to.NextSendAt = 0
					}
					if e == Mark || e == Restore {
						to.QuietFrom = now + 1
					}
					add(e, actor, from, to)
				}
			}
		}
		found[where(o)] = s
	}
	return found
})

func where(o Operation) string {
	return fmt.Sprint(o.Status, "/", o.Reason, " attempts ", o.Attempts, " open ", o.OpenAttempts, " quarantined ", o.Quarantined, " quiet ", o.QuietFrom, " leaves ", o.NextSendAt)
}

func TestReasonsAreReachedExactlyWhereTheContractSays(t *testing.T) {
	got := map[string]bool{}
	for _, s := range reachable() {
		if s.o.Status != "" {
			got[fmt.Sprint(s.o.Status, " ", s.o.Reason, " ", s.o.Status == UnknownHold && mayHaveBeenSent(s.o))] = true
		}
	}
	want := map[string]bool{}
	for status, reasons := range contractReasons {
		for _, r := range reasons {
			if status != UnknownHold {
				want[fmt.Sprint(status, " ", r, " ", false)] = true
			}
		}
	}
	for _, r := range reasonsBeforeASend {
		want[fmt.Sprint(UnknownHold, " ", r, " ", false)] = true
	}
	for _, r := range reasonsAfterASend {
		want[fmt.Sprint(UnknownHold, " ", r, " ", true)] = true
	}
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if !got[k] {
			t.Errorf("never reached: %s", k)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(got)) {
		if !want[k] {
			t.Errorf("reached against the contract: %s", k)
		}
	}
}

func TestEveryLifeCanEnd(t *testing.T) {
	all := reachable()
	ends := map[string]bool{}
	for grew := true; grew; {
		grew = false
		for k, s := range all {
			leads := func(st step) bool { return st.event != Restore && ends[where(st.to)] } // a restore is no way out
			if !ends[k] && (s.o.Status.Final() || slices.ContainsFunc(s.steps, leads)) {
				ends[k], grew = true, true
			}
		}
	}
	for k := range all {
		if !ends[k] {
			t.Errorf("no way out of %s", k)
		}
	}
}

func TestEveryRowIsUsed(t *testing.T) {
	used := map[string]bool{}
	for _, s := range reachable() {
		for _, st := range s.steps {
			used[fmt.Sprint(st.from.Status, " ", st.event, " ", st.actor, " ", st.to.Reason)] = true
		}
	}
	for _, r := range Rules() {
		reasons := r.Reasons
		if len(reasons) == 0 {
			reasons = []Reason{""}
		}
		for _, actor := range r.By {
			for _, reason := range reasons {
				if k := fmt.Sprint(r.From, " ", r.Event, " ", actor, " ", reason); !used[k] {
					t.Errorf("never happens: %s", k)
				}
			}
		}
	}
}

// TestRejectedNeverWhileAnAttemptMayAct holds for every life: what was rejected
// with an attempt unresolved was so by a person or by proof, when quiet.
func TestRejectedNeverWhileAnAttemptMayAct(t *testing.T) {
	for _, s := range reachable() {
		for _, st := range s.steps {
			if st.to.OpenAttempts < 0 || st.to.OpenAttempts > st.to.Attempts {
				t.Errorf("%s: %d of %d open", where(s.o), st.to.OpenAttempts, st.to.Attempts)
			}
			if st.from.Status.Final() && st.event != "" {
				t.Errorf("%s leads out of %s", st.event, st.from.Status)
			}
			if st.to.Status != Rejected || st.from.Status == Rejected || !mayStillAct(st.from) {
				continue
			}
			byPerson, byProof := st.event == SayNotHappened && st.actor == Person, st.event == Disprove && st.actor == Reconciler
			if !byPerson && !byProof || st.from.QuietFrom > now {
				t.Errorf("%s by %s rejects %s", st.event, st.actor, where(st.from))
			}
		}
	}
}

// An attempt that is known not to have run leaves a mark behind. People must
// still be able to decide when such an operation comes back to them.
func TestWhatComesBackToPeopleCanBeDecided(t *testing.T) {
	o, err := Operation{Status: Ready, Attempts: 1}.On(AskAgain, Worker, "", now)
	if err != nil {
		t.Fatal(err)
	}
	for e, actor := range map[Event]Actor{Approve: Person, Deny: Person, Expire: Clock, Cancel: Agent, Replace: Agent, StopRun: Person, Fail: Clock} {
		if !o.May(e, actor, now) {
			t.Errorf("%s by %s is not possible", e, actor)
		}
	}
}

func TestALeaseThatEndsNeverMakesItReady(t *testing.T) {
	for _, o := range standings(InFlight) {
		got, err := o.On(Lose, Clock, "", now)
		if err != nil || got.Status != Unknown {
			t.Fatalf("%+v: %s %v", o, got.Status, err)
		}
	}
	for _, r := range Rules() {
		if r.To == Ready && (r.From == InFlight && r.Event != Unsend || r.From == Unknown) {
			t.Errorf("%s leads from %s to ready", r.Event, r.From)
		}
	}
}

func TestRestoredCountsAsSent(t *testing.T) {
	for _, s := range Statuses() {
		if s.Final() {
			continue
		}
		o, err := Operation{Status: s}.On(Restore, Clock, "", now)
		if err != nil || o.Status != UnknownHold || o.Reason != Restored || !o.Quarantined {
			t.Fatalf("%s: %+v %v", s, o, err)
		}
		for _, e := range []Event{Merge, Separate, SeparateAsk, Deny, Cancel, Replace} {
			for _, actor := range allActors {
				if o.May(e, actor, now) {
					t.Errorf("%s by %s treats a restored operation as unsent", e, actor)
				}
			}
		}
	}
}

func TestTooManyClaimsSaysNothingWasSentOnlyWhereItIsTrue(t *testing.T) {
	for _, o := range standings(Ready) {
		if got, err := o.On(GiveUp, Worker, o.TooManyClaims(), now); err != nil || got.Reason == ClaimsExhausted && mayHaveBeenSent(o) {
			t.Fatalf("%+v: %s %v", o, got.Reason, err)
		}
	}
}

var update = flag.Bool("update", false, "write the generated parts of docs/lifecycle.md")

// TestDiagramStandsInTheDocument keeps docs/lifecycle.md honest. After a change
// of the table: go test ./store/ledger -run Diagram -update
func TestDiagramStandsInTheDocument(t *testing.T) {
	const file = "../../docs/lifecycle.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	for name, content := range map[string]string{
		"picture": "```mermaid\n" + Diagram() + "```\n",
		"table":   ruleTable(),
	} {
		begin, end := "<!-- "+name+": begin -->\n", "<!-- "+name+": end -->\n"
		before, rest, ok := strings.Cut(got, begin)
		_, after, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("%s has no place for the %s", file, name)
		}
		got = before + begin + content + end + after
	}
	if got == string(text) {
		return
	}
	if !*update {
		t.Fatalf("%s differs from the table in lifecycle.go; run: go test ./store/ledger -run Diagram -update", file)
	}
	if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
		t.Fatal(err)
	}
}

func ruleTable() string {
	var b strings.Builder
	b.WriteString("| from | event | who | only if | to | reason | why |\n|---|---|---|---|---|---|---|\n")
	for _, r := range Rules() {
		from := "–"
		if r.From != "" {
			from = "`" + string(r.From) + "`"
		}
		var who, reasons []string
		for _, a := range r.By {
			who = append(who, string(a))
		}
		for _, reason := range r.Reasons {
			reasons = append(reasons, "`"+string(reason)+"`")
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | `%s` | %s | %s |\n", from, r.Event, strings.Join(who, ", "), r.Guard, r.To, strings.Join(reasons, " "), r.Note)
	}
	return b.String()
}
