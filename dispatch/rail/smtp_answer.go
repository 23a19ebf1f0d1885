package rail

import (
	"fmt"

	"holdfast/store/ledger"
)

// shuttingDown is the one reply that answers no command: a server that goes away
// says it whatever it was doing, and so perhaps after it took the message.
const shuttingDown = 421

// classify knows two times: before the final dot left, when silence proves that
// nothing ran, and after it, when only a reply proves anything.
func (m overSMTP) classify(r *Rail, o ledger.Operation, x Exchange) ledger.Answer {
	a := ledger.Answer{Finding: ledger.Unclear}
	said := codes(x.Status, x.mail.text)
	answered := x.Whole && x.Err == nil
	switch {
	case x.Written == 0 && x.Err != nil:
		a.Finding, a.Sentence = ledger.NotSent, fmt.Sprintf("Nothing was sent: %v.", x.Err)
	case x.mail.withheld && x.Err != nil:
		a.Finding, a.Sentence = ledger.NotSent, fmt.Sprintf("The message was not handed over. It got as far as %s: %s", x.mail.step, r.unheard(x))
	case !answered:
		a.Sentence = "The message was handed over, and no reply to it can be read: " + r.unheard(x)
	case x.Status >= 500:
		a.Finding, a.Sentence = ledger.Refused, fmt.Sprintf("The mail server answered %s with %s, a definite no. Nobody got the message.", x.mail.step, said)
	case x.Status == shuttingDown && !x.mail.withheld:
		a.Sentence = fmt.Sprintf("The mail server answered the message with %s and went away, which does not say whether it took it.", said)
	case x.Status >= 400:
		a.Finding, a.Sentence = ledger.NotSent, fmt.Sprintf("The mail server answered %s with %s: not now. Nobody got the message.", x.mail.step, said)
	case x.Status == 250 && !x.mail.withheld:
		id := "<" + m.messageID(o) + ">"
		a.Finding = ledger.Found
		a.Receipt = &ledger.Receipt{ID: id, Raw: []byte("250 " + x.mail.text)}
		a.Sentence = fmt.Sprintf("The mail server took the message %s with %s.", id, said)
	default:
		a.Sentence = "The dialogue with the mail server ended in a way that proves nothing."
	}
	return a
}

// unheard says why a dialogue ended without a reply.
func (r *Rail) unheard(x Exchange) string {
	switch x.Err {
	case TimedOut:
		return fmt.Sprintf("it was not over after %s.", seconds(r))
	case TooLate:
		return "the send deadline passed."
	case Garbled, TooLong:
		return "what came back is not SMTP."
	case Interrupted:
		return "sending was interrupted."
	}
	return "the connection was cut."
}
