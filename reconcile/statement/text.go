package statement

import (
	"bytes"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// What one file may hold at most. A month of a busy account is far below; a file
// that is made to fill the memory is stopped before it does.
const (
	fileLimit  = 64 << 20
	lineLimit  = 500_000
	fieldLimit = 32 << 10
	widthLimit = 500 // columns
)

var utf8Mark = []byte("\xEF\xBB\xBF")

// encodings are the declared ones that are not UTF-8.
var encodings = map[string]encoding.Encoding{
	"utf-16le":     unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM),
	"utf-16be":     unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM),
	"windows-1252": charmap.Windows1252,
	"iso-8859-1":   charmap.ISO8859_1,
	"iso-8859-15":  charmap.ISO8859_15,
}

// decode makes UTF-8 without a mark of a file. A mark at its beginning wins over
// what was declared, since it was written by whoever wrote the file.
func decode(data []byte, declared string) ([]byte, error) {
	if len(data) > fileLimit {
		return nil, refuse(0, "", "The file is larger than %d MiB. Export a shorter time.", fileLimit>>20)
	}
	name := declared
	switch {
	case bytes.HasPrefix(data, utf8Mark):
		data, name = data[3:], "utf-8"
	case bytes.HasPrefix(data, []byte{0xFF, 0xFE}):
		data, name = data[2:], "utf-16le"
	case bytes.HasPrefix(data, []byte{0xFE, 0xFF}):
		data, name = data[2:], "utf-16be"
	case declared != "":
	case len(data) >= 4 && data[1] == 0 && data[3] == 0 && data[0] != 0:
		name = "utf-16le"
	case len(data) >= 4 && data[0] == 0 && data[2] == 0 && data[1] != 0:
		name = "utf-16be"
	}
	if e := encodings[name]; e != nil {
		if len(data)%2 != 0 && name[:3] == "utf" {
			return nil, refuse(0, "", "The file is cut off: UTF-16 has two bytes to a character, and the last is half. Export it again.")
		}
		text, err := e.NewDecoder().Bytes(data)
		if err != nil || bytes.ContainsRune(text, utf8.RuneError) {
			return nil, refuse(0, "", "The file is not text in %s. Export it as UTF-8, or set the encoding.", name)
		}
		data = text
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, refuse(0, "", "The file is empty. Export it again.")
	}
	if !utf8.Valid(data) {
		return nil, refuse(firstInvalid(data), "", "The file is not UTF-8. Export it as UTF-8, or write what it is in, such as windows-1252, under statement.encoding.")
	}
	for i, b := range data {
		if b < ' ' && b != '\t' && b != '\n' && b != '\r' || b == 0x7f {
			return nil, refuse(1+bytes.Count(data[:i], []byte("\n")), "", "The file holds a control character (0x%02x), so it is not a text. Export it again, as CSV or XML.", b)
		}
	}
	return data, nil
}

func firstInvalid(data []byte) int {
	line := 1
	for l := range bytes.Lines(data) {
		if !utf8.Valid(l) {
			return line
		}
		line++
	}
	return line
}
