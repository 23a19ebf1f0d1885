package rail

import (
	"context"
	"io"
)

// metered limits how much is read while the headers last, and remembers how
// the connection ended: http.ReadResponse says "unexpected EOF" for several
// endings, and quotes the answer in its errors.
type metered struct {
	from  io.Reader
	left  int // -1: no limit here
	ended error
}

func (m *metered) Read(p []byte) (int, error) {
	if m.left == 0 {
		m.ended = TooLong
		return 0, m.ended
	}
	if m.left > 0 {
		p = p[:min(len(p), m.left)]
	}
	n, err := m.from.Read(p)
	if m.left > 0 {
		m.left -= n
	}
	if err != nil {
		m.ended = err
	}
	return n, err
}

func (m *metered) fault(ctx context.Context) Fault {
	if m.ended == nil {
		return Garbled
	}
	return faultOf(ctx, m.ended)
}
