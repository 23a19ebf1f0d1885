package views

// money is an amount as it stands in headlines, buttons and sums: $480.00,
// 90.00 USDC. The code may be of a file that somebody sent.
func (f Frame) money(amount int64, code string) string { return plainly(f.Money.Short(amount, code)) }
