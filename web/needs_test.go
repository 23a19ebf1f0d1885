package web

import (
	"testing"
	"time"

	"holdfast/store/ledger"
)

func TestAKeyIsGoodOnlyForWhatWasSentWithIt(t *testing.T) {
	key := ledger.Dedupe{By: ledger.DedupeKey, Place: "header idempotency-key", Retention: 24 * time.Hour}
	rail := ledger.Rail{Address: "https://a", Account: "live", Dedupe: key}
	none := ledger.Rail{Address: "https://a", Account: "live", Dedupe: ledger.Dedupe{By: ledger.DedupeNone}}
	sent := func(by string) ledger.Operation {
		return ledger.Operation{Attempts: 1, FirstMarkAt: 1000, RailAddress: "https://a", RailAccount: "live", RecognisedBy: by}
	}
	elsewhere := sent(key.Recognition())
	elsewhere.RailAccount = "other"
	for _, c := range []struct {
		claim      string
		o          ledger.Operation
		rail       ledger.Rail
		good, lost bool
	}{
		{"sent as the rail recognises it", sent(key.Recognition()), rail, true, false},
		{"sent without a key", sent("none"), rail, false, true},
		{"sent with it in another header", sent("key header x-key"), rail, false, true},
		{"sent before that was kept", sent(""), rail, false, true},
		{"sent under another account", elsewhere, rail, false, true},
		{"not sent yet", ledger.Operation{}, rail, true, false},
		{"not sent that is known of, before a restore", ledger.Operation{Quarantined: true}, rail, false, false},
		{"a rail that recognises nothing any more", sent(key.Recognition()), none, false, false},
	} {
		if good := keyUntil(c.o, c.rail, 2000) > 2000; good != c.good {
			t.Errorf("%s: good %t", c.claim, good)
		}
		if lost := changedSince(c.o, c.rail, 2000); lost != c.lost {
			t.Errorf("%s: lost %t", c.claim, lost)
		}
	}
}
