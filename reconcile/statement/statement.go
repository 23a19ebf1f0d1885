// Package statement reads the files in which providers and banks say what
// happened on an account. It stores nothing and believes nothing: a file that is
// not wholly understood is refused with its line and the reason.
package statement
