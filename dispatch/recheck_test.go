package dispatch_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/store/ledger"
)

const recheckRail = `
rails:
  bank:
    adapter: sandbox
    base_url: http://%s
    dedupe: { by: none }
action_types:`

// Nothing shows from outside that the provider acted twice: its answer is a
// clean one, and nothing was ever unknown.
func TestADoubleBehindACleanAnswerIsFoundByTheRecheck(t *testing.T) {
	provider := serveBook(t, false)
	res, err := http.Post("http://"+provider+"/_faults", "application/json", strings.NewReader(`[{"match":{},"fault":"double","times":1}]`))
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(err, res)
	}
	res.Body.Close()
	var ahead atomic.Int64
	g := openGateway(t, t.TempDir(), fmt.Sprintf(recheckRail, provider)+action("pay", "bank")+allowAll,
		func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
	defer g.close()
	stop := g.run()
	g.submit("twice", "pay")
	g.submit("once", "pay")
	for _, id := range []string{"twice", "once"} {
		for deadline := time.Now().Add(10 * time.Second); g.get(id).Status != ledger.Confirmed; {
			if time.Now().After(deadline) {
				t.Fatal(id, g.get(id).Status)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	stop()
	effects := effectsOf(t, provider)
	if len(effects) != 3 {
		t.Fatalf("the book has %d effects", len(effects))
	}
	ahead.Store(int64(time.Hour))
	for round := range 2 { // the same again opens nothing
		g.do("recheck")
		owed, err := g.store.RefundsOwed(t.Context(), "default")
		if err != nil || len(owed) != 1 || owed[0].Cause != "duplicate_charge" || owed[0].Open != 4800 {
			t.Fatalf("round %d: owed %+v %v", round, owed, err)
		}
		doubled := g.get(owed[0].OperationID)
		if doubled.Status != ledger.Confirmed || doubled.Receipt.ID == owed[0].ReceiptID || bookOf(t, provider)[doubled.OrderID] != 2 {
			t.Errorf("%s with receipt %s, owed %s", doubled.Status, doubled.Receipt.ID, owed[0].ReceiptID)
		}
	}
	if open, err := g.store.OpenExceptions(t.Context(), "default"); err != nil || len(open) != 0 {
		t.Errorf("a person is asked about %+v %v", open, err)
	}
}
