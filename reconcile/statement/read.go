package statement

import (
	"holdfast/dispatch/rail"
	"holdfast/store/ledger"
)

// Options say what is known about a file before it is opened.
type Options struct {
	Name       string         // the file's, for messages
	Rail       string         // whose statement it is
	Mapping    rail.Statement // how the configuration says that the rail's files are written
	Currencies ledger.Currencies
	// Answers are a person's, by the Key of the question. They stand in for what
	// the mapping does not say.
	Answers map[string]string
}

// Read reads a whole file or refuses it: the error is then a *Refusal, or a
// *Question that a person has to answer first.
func Read(data []byte, o Options) (ledger.Statement, error) {
	return ledger.Statement{}, refuse(0, "", "No reader knows this file.")
}
