package ledger

import (
	_ "embed"
	"encoding/binary"
	"strings"
)

// 1024 words, one a line. The list never changes: words that were read out
// over the phone must mean the same fingerprint tomorrow.
//
//go:embed words.txt
var wordList string

var words = strings.Fields(wordList)

// Words gives the three words by which people compare a fingerprint by voice,
// like amber-falcon-otter. They are 30 of its 256 bits: they help the eye, and
// only the whole fingerprint binds. What is no fingerprint has no words.
func Words(fingerprint string) string {
	sum, ok := fingerprintSum(fingerprint)
	if !ok {
		return ""
	}
	return threeWords(sum)
}

func threeWords(sum [32]byte) string {
	bits := binary.BigEndian.Uint32(sum[:4]) >> 2 // the first 30
	return words[bits>>20] + "-" + words[bits>>10&1023] + "-" + words[bits&1023]
}
