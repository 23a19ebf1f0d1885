// Package views draws the pages. A page is a function from a plain model to
// HTML; the model is filled by the caller from the ledger, and the page
// computes nothing but words: it opens no database, decides nothing, and knows
// no request. What it says about the state of an operation, and in which words,
// stands in words.go and nowhere else.
//
// Every page works without script, carries no inline style or script, and draws
// what agents and providers wrote as text that cannot act or hide.
package views
