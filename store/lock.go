package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockFolder takes an exclusive lock that the kernel lets go when the process
// dies. Whoever gets it knows that no other process sends from this ledger: what
// it finds under way belongs to the dead.
func lockFolder(folder string) (*os.File, error) {
	path := filepath.Join(folder, "holdfast.lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock file %s: %w", path, unwrapPath(err))
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		f.Close()
		return nil, fmt.Errorf("%w: %s; stop it, or use its address", ErrLocked, folder)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return f, nil
}
