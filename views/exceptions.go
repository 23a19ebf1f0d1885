package views

import "holdfast/store/ledger"

// exceptionWord names what contradicts an operation that ended.
func exceptionWord(kind ledger.ExceptionKind) Word {
	switch kind {
	case ledger.ReceiptGone:
		return Word{Text: "Receipt gone", Tone: Amber, Icon: Question}
	case ledger.ReceiptChanged:
		return Word{Text: "Receipt changed", Tone: Amber, Icon: Question}
	case ledger.HappenedAfterAll:
		return Word{Text: "Happened after all", Tone: Amber, Icon: Question}
	}
	return Word{Text: "Contradiction", Tone: Amber, Icon: Question}
}
