package ledger

// InPerson reports whether a person asked for the operation at a page, and not an
// agent with a token. Policy and four eyes ask about it as about any other.
func (o Operation) InPerson() bool { return o.Agent == "" && o.TokenID == "" && o.Owner != "" }

// Requester is who asked for the operation, for the log.
func (o Operation) Requester() Holder {
	if o.InPerson() {
		return Holder{Person, o.Owner}
	}
	return Holder{Agent, o.Agent}
}
