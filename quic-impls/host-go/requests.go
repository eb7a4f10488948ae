package host

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/fecbench/fecbench/quic-impls/host-go/content"
)

// Requests is the name of the workload whose client is told in the course of the trial what to ask for.
const Requests = "requests"

// errInputEnded is why a connection is not made that nobody needs any more.
var errInputEnded = errors.New("the input ended before the handshake")

// Lines are those of standard input. The channel is closed at its end.
func Lines(in io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(in); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	return lines
}

// sizeOf is how many bytes a line asks for.
func sizeOf(line string) (int64, error) {
	var asked struct {
		Get *int64 `json:"get"`
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(line)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&asked); err != nil || asked.Get == nil || *asked.Get < 0 || *asked.Get > mostBytes {
		return 0, fmt.Errorf("standard input: %.80q is not {\"get\": BYTES} of at most %d bytes", line, int64(mostBytes))
	}
	return *asked.Get, nil
}

// Object is what a client says of an object that has arrived.
func Object(out io.Writer, size int64, requestedAt, firstByteAt, doneAt time.Duration) error {
	_, err := fmt.Fprintf(out, `{"event": "object", "bytes": %d, "requested_at": %.9f, "first_byte_at": %.9f, "done_at": %.9f}`+"\n",
		size, requestedAt.Seconds(), firstByteAt.Seconds(), doneAt.Seconds())
	return err
}

// Asker carries out the workload.
type Asker struct {
	Seed  uint64
	Lines <-chan string
	Clock func() time.Duration // that both ends of a trial have
	Out   io.Writer

	requests chan request
	failed   error // of a line
}

// request is one that was read, at a time.
type request struct {
	size int64
	at   time.Duration
}

// Listen begins to read. The context that it returns ends when the input does.
func (a *Asker) Listen(ctx context.Context) context.Context {
	needed, end := context.WithCancelCause(ctx)
	a.requests = make(chan request, 1024)
	go func() {
		defer close(a.requests)
		for a.failed == nil {
			select {
			case <-ctx.Done():
				return
			case line, more := <-a.Lines:
				if !more {
					end(errInputEnded)
					return
				}
				a.read(line)
			}
		}
	}()
	return needed
}

func (a *Asker) read(line string) {
	var size int64
	if size, a.failed = sizeOf(line); a.failed == nil {
		a.requests <- request{size, a.Clock()}
	}
}

// Ask fetches what it is asked for, and says what has arrived, until the input ends. Objects are fetched beside each other; what is
// still on its way at the end is given up, for which fetch has to heed its context.
func (a *Asker) Ask(ctx context.Context, fetch func(ctx context.Context, size int64, to io.Writer) error) error {
	var saying sync.Mutex
	var fetching sync.WaitGroup
	ctx, stop := context.WithCancelCause(ctx)
	defer fetching.Wait()
	defer stop(nil)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case r, more := <-a.requests:
			if !more {
				return a.failed
			}
			fetching.Go(func() {
				to := &timed{Verifier: content.Verifier{Seed: a.Seed, Size: r.size}, clock: a.Clock}
				err := fetch(ctx, r.size, to)
				if err == nil && to.Received < r.size {
					err = fmt.Errorf("the server sent %d of %d bytes", to.Received, r.size)
				}
				if err == nil {
					done := a.Clock()
					if r.size == 0 {
						to.first = done
					}
					saying.Lock()
					err = Object(a.Out, r.size, r.at, to.first, done)
					saying.Unlock()
				}
				if err != nil {
					stop(fmt.Errorf("%d bytes: %w", r.size, err))
				}
			})
		}
	}
}

// timed notes when the first byte came.
type timed struct {
	content.Verifier
	clock func() time.Duration
	first time.Duration
}

func (t *timed) Write(b []byte) (int, error) {
	if t.Received == 0 && len(b) > 0 {
		t.first = t.clock()
	}
	return t.Verifier.Write(b)
}
