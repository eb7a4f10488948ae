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

// ErrStopped is the reason for which a fetch is given up.
var ErrStopped = errors.New("given up")

// errInputEnded is the reason for which a connection is not made that nobody needs any more.
var errInputEnded = errors.New("the input ended before the handshake")

// Lines returns the lines of standard input. The channel is closed at its end.
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

// request is the request in a line, with the time at which it was read.
type request struct {
	at        time.Duration
	stop      bool // what is on its way is given up
	size      int64
	isWatched bool
	tellEvery time.Duration // of its progress, where it is watched
}

func requested(line string) (request, error) {
	var asked struct {
		Get       *int64   `json:"get"`
		TellEvery *float64 `json:"tell_every_s"`
		Stop      bool     `json:"stop"`
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(line)))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&asked)
	isGet := asked.Get != nil && *asked.Get >= 0 && *asked.Get <= mostBytes
	isWatched := asked.TellEvery != nil
	isRight := !isWatched || *asked.TellEvery >= 0 && *asked.TellEvery <= 3600
	switch {
	case err == nil && isGet && isRight && !asked.Stop:
		r := request{size: *asked.Get, isWatched: isWatched}
		if isWatched {
			r.tellEvery = time.Duration(*asked.TellEvery * float64(time.Second))
		}
		return r, nil
	case err == nil && asked.Stop && asked.Get == nil && !isWatched:
		return request{stop: true}, nil
	}
	return request{}, fmt.Errorf(`standard input: %.80q is neither {"get": BYTES} of at most %d bytes, which may have "tell_every_s" of at most 3600, nor {"stop": true}`,
		line, int64(mostBytes))
}

// Asker carries out the workload.
type Asker struct {
	Seed  uint64
	Lines <-chan string
	Clock func() time.Duration // that both ends of a trial have
	Out   io.Writer
	// Stops reports whether fetch heeds [ErrStopped] as the cause of its context's end.
	Stops bool

	requests chan request
	failed   error // of a line
	saying   sync.Mutex
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
	r, err := requested(line)
	if err == nil && !a.Stops && (r.stop || r.isWatched) {
		err = Unsupported{"standard input: to watch a download and give it up"}
	}
	if a.failed = err; err == nil {
		r.at = a.Clock()
		a.requests <- r
	}
}

// Ask fetches what it is asked for, and says what has arrived, until the input ends. Objects are fetched beside each
// other. Objects that are still on their way when it is stopped, or at the end, are given up, for which fetch has to
// heed its context.
func (a *Asker) Ask(ctx context.Context, fetch func(ctx context.Context, size int64, to io.Writer) error) error {
	var fetching sync.WaitGroup
	ctx, fail := context.WithCancelCause(ctx)
	defer fetching.Wait()
	defer fail(nil)
	var onTheirWay struct {
		context context.Context
		giveUp  context.CancelCauseFunc
	}
	onTheirWay.context, onTheirWay.giveUp = context.WithCancelCause(ctx)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case r, more := <-a.requests:
			if !more {
				return a.failed
			}
			if r.stop {
				onTheirWay.giveUp(ErrStopped)
				onTheirWay.context, onTheirWay.giveUp = context.WithCancelCause(ctx)
				continue
			}
			of := onTheirWay.context
			fetching.Go(func() {
				to := &arriving{Verifier: content.Verifier{Seed: a.Seed, Size: r.size}, asker: a, request: r}
				if err := to.fetch(of, fetch); err != nil {
					fail(fmt.Errorf("%d bytes: %w", r.size, err))
				}
			})
		}
	}
}

// say writes what a client says.
func (a *Asker) say(format string, values ...any) error {
	a.saying.Lock()
	defer a.saying.Unlock()
	_, err := fmt.Fprintf(a.Out, format+"\n", values...)
	return err
}

// arriving is an object on its way.
type arriving struct {
	content.Verifier
	asker       *Asker
	request     request
	first, told time.Duration // when the first byte came, and when its progress was told; 0: not yet
}

func (o *arriving) fetch(ctx context.Context, fetch func(ctx context.Context, size int64, to io.Writer) error) error {
	event := "object"
	err := fetch(ctx, o.request.size, o)
	switch {
	case errors.Is(context.Cause(ctx), ErrStopped) && (err != nil || o.Received < o.request.size):
		event = "stopped"
	case err != nil:
		return err
	case o.Received < o.request.size:
		return fmt.Errorf("the server sent %d of %d bytes", o.Received, o.request.size)
	}
	done := o.asker.Clock()
	if o.Received == 0 {
		o.first = done
	}
	return o.asker.say(`{"event": %q, "bytes": %d, "requested_at": %.9f, "first_byte_at": %.9f, "done_at": %.9f}`,
		event, o.Received, o.request.at.Seconds(), o.first.Seconds(), done.Seconds())
}

func (o *arriving) Write(b []byte) (int, error) {
	isFirst := o.Received == 0 && len(b) > 0
	if isFirst {
		o.first = o.asker.Clock()
	}
	written, err := o.Verifier.Write(b)
	if err != nil || !o.request.isWatched || o.Received == o.request.size {
		return written, err
	}
	if now := o.asker.Clock(); isFirst || now-o.told >= o.request.tellEvery {
		o.told = now
		err = o.asker.say(`{"event": "progress", "bytes": %d, "requested_at": %.9f, "at": %.9f}`,
			o.Received, o.request.at.Seconds(), now.Seconds())
	}
	return written, err
}
