// Package ledger is the domain of holdfast: what an operation is, how it may
// change, what its identity and fingerprint are, when it overlaps another, who
// must be asked, and what an answer from a provider proves.
//
// Everything here is pure. The package imports nothing else of this program,
// knows no database, no network and no clock: facts and the time come in by
// parameter, decisions go out as values with the sentence that explains them.
//
// Times are Unix milliseconds UTC, and 0 means "not set". Amounts are integers
// in the minor unit of their currency.
package ledger
