package store

import "sync"

type opKey struct{ tenant, operation string }

// watchers wakes those who wait for an operation, and those who look for work.
// A wake-up carries nothing: whoever is woken reads the ledger.
type watchers struct {
	mu   sync.Mutex
	one  map[opKey][]chan struct{}
	work []chan struct{}
}

// Watch gives a channel that receives after the operation changed. Call end
// when done.
func (s *Store) Watch(tenant, operation string) (changed <-chan struct{}, end func()) {
	c := make(chan struct{}, 1)
	k := opKey{tenant, operation}
	w := &s.watchers
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.one == nil {
		w.one = map[opKey][]chan struct{}{}
	}
	w.one[k] = append(w.one[k], c)
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.one[k] = without(w.one[k], c)
		if len(w.one[k]) == 0 {
			delete(w.one, k)
		}
	}
}

// WatchAll gives a channel that receives after anything changed.
func (s *Store) WatchAll() (changed <-chan struct{}, end func()) {
	c := make(chan struct{}, 1)
	w := &s.watchers
	w.mu.Lock()
	defer w.mu.Unlock()
	w.work = append(w.work, c)
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.work = without(w.work, c)
	}
}

func (w *watchers) tell(changed []opKey) {
	if len(changed) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range changed {
		for _, c := range w.one[k] {
			poke(c)
		}
	}
	for _, c := range w.work {
		poke(c)
	}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is already awake
	}
}

func without(all []chan struct{}, gone chan struct{}) []chan struct{} {
	kept := all[:0]
	for _, c := range all {
		if c != gone {
			kept = append(kept, c)
		}
	}
	return kept
}
