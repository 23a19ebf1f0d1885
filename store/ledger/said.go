package ledger

import (
	"errors"
	"fmt"
)

// maxPointers is how many members of a payload one sentence may be about: with
// more, nothing is said.
const maxPointers = 50

// CheckPointers says what is wrong with the members that a person's no is about:
// each is in the payload.
func CheckPointers(payload []byte, pointers []string) error {
	if len(pointers) == 0 {
		return nil
	}
	if len(pointers) > maxPointers {
		return fmt.Errorf("at most %d fields can be marked; say the rest in words", maxPointers)
	}
	whole, err := ParseStrict(payload)
	if err != nil {
		return errors.New("the payload can't be read, so no field of it can be marked")
	}
	for _, p := range pointers {
		if _, there := Get(whole, p); !there {
			return errors.New("a field was marked that is not in the payload")
		}
	}
	return nil
}
