package dispatch

import (
	"net/http"
	"sync"
	"time"
)

// sandboxKeys recognises repeated requests as real providers do: the first
// request under a key is acted on, a second at the same time is turned away,
// a later one gets the first one's answer, whatever that was.
type sandboxKeys struct {
	retention time.Duration
	mu        sync.Mutex
	stored    map[string]sandboxAnswer
	busy      map[string]sandboxRequest
}

// claim takes the key for q, or returns the answer that is kept under it, or
// says why neither can be.
func (k *sandboxKeys) claim(q sandboxRequest) (earlier, refusal *sandboxAnswer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if first, ok := k.busy[q.Key]; ok {
		if first.Method != q.Method || first.Path != q.Path || first.bodySHA256 != q.bodySHA256 {
			return nil, sandboxKeyMismatch()
		}
		return nil, sandboxRefusal(http.StatusConflict, "idempotency_key_in_use", "the first request with this Idempotency-Key is still being worked on")
	}
	if a, ok := k.stored[q.Key]; ok && q.At.Sub(a.At) < k.retention {
		if a.Method != q.Method || a.Path != q.Path || a.BodySHA256 != q.bodySHA256 {
			return nil, sandboxKeyMismatch()
		}
		return &a, nil
	}
	k.busy[q.Key] = q
	return nil, nil
}

func sandboxKeyMismatch() *sandboxAnswer {
	return sandboxRefusal(http.StatusConflict, "idempotency_mismatch", "this Idempotency-Key was used for another request: same key, other path or body")
}

// keep stores the answer that repeats will get, and frees the key in the same
// step: between the two a repeat would have been acted on.
func (k *sandboxKeys) keep(q sandboxRequest, a sandboxAnswer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stored[q.Key] = a
	delete(k.busy, q.Key)
}

// release frees the key if it is still this request's, whichever way that one ended.
func (k *sandboxKeys) release(q sandboxRequest) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.busy[q.Key].N == q.N {
		delete(k.busy, q.Key)
	}
}
