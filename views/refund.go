package views

// back is the amount in the form that gives back: at first all that is owed.
func (p RefundPage) back() string {
	if p.Form.Act == "give-back" {
		return p.kept("give-back", "amount")
	}
	return p.Frame.Money.Plain(p.Entry.Free(), p.Entry.Currency)
}
