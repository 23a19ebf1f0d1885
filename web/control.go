package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// A server listens on a socket in its data folder, open to its own user only,
// and runs the commands that come over it: so one process owns the writer, and
// a command does the same whether a server runs or not.

// Call is a command line on its way to the server.
type Call struct {
	Args  []string `json:"args"`
	Stdin []byte   `json:"stdin,omitempty"`
}

// Reply is what the command printed, and how it ended. What it says meanwhile
// goes before it, in replies that say there is more.
type Reply struct {
	Code   int    `json:"code"`
	Stdout []byte `json:"stdout,omitempty"`
	Stderr []byte `json:"stderr,omitempty"`
	More   bool   `json:"more,omitempty"`
}

// Answerer runs a command that came over the socket. What it writes to notes is
// seen at the caller's at once.
type Answerer func(ctx context.Context, call Call, notes io.Writer) Reply

// notes sends what a command says while it still runs. A caller that went away
// is no reason to stop: the command's context says that.
type notes struct {
	to    *json.Encoder
	flush func() error
}

func (n notes) Write(said []byte) (int, error) {
	if err := n.to.Encode(Reply{Stderr: said, More: true}); err == nil {
		n.flush()
	}
	return len(said), nil
}

func socketPath(folder string) string { return filepath.Join(folder, "holdfast.sock") }

// maxSocketPath is what the kernel takes in an address, with its final zero.
const maxSocketPath = 107

// listenControl opens the socket. Whoever holds the folder's lock may remove
// what a killed server left behind.
func listenControl(folder string, command Answerer, log *slog.Logger) (io.Closer, error) {
	path := socketPath(folder)
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("%s is too long for a socket (%d bytes at most); choose a shorter data folder with --data", path, maxSocketPath)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s cannot be replaced: %w", path, err)
	}
	before := syscall.Umask(0o177) // the socket is 0600 from its first moment
	l, err := net.Listen("unix", path)
	syscall.Umask(before)
	if err != nil {
		return nil, fmt.Errorf("control socket %s: %w", path, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /command", func(w http.ResponseWriter, r *http.Request) {
		var call Call
		if err := json.NewDecoder(io.LimitReader(r.Body, 64<<20)).Decode(&call); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		log.Info("command", "args", len(call.Args)) // not the words: they may hold secrets
		w.Header().Set("Content-Type", "application/json")
		to := json.NewEncoder(w)
		to.Encode(command(r.Context(), call, notes{to, http.NewResponseController(w).Flush}))
	})
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go srv.Serve(l)
	return srv, nil
}

// ErrNoServer means that no server runs on the data folder.
var ErrNoServer = errors.New("no server runs on this data folder")

// Forward runs a command inside the server of a data folder, and writes to notes
// what it says meanwhile.
func Forward(ctx context.Context, folder string, call Call, notes io.Writer) (Reply, error) {
	path := socketPath(folder)
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		},
	}}
	body, err := json.Marshal(call)
	if err != nil {
		return Reply{}, err
	}
	// A reader of our own: the transport then cannot send a command twice.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://holdfast/command", io.MultiReader(bytes.NewReader(body)))
	if err != nil {
		return Reply{}, err
	}
	res, err := client.Do(req)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return Reply{}, ErrNoServer
	}
	if err != nil {
		return Reply{}, fmt.Errorf("the server on %s did not answer: %w", folder, err)
	}
	defer res.Body.Close()
	replies := json.NewDecoder(res.Body)
	for {
		var reply Reply
		err := replies.Decode(&reply)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return reply, fmt.Errorf("the server on %s ended before the command did; look at what it did before you run it again", folder)
		}
		if err != nil {
			return reply, fmt.Errorf("the server on %s answered something else: %w", folder, err)
		}
		notes.Write(reply.Stderr)
		if !reply.More {
			return reply, nil
		}
	}
}

func notifyHangup(c chan<- os.Signal) { signal.Notify(c, syscall.SIGHUP) }
