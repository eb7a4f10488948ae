package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/fecbench/fecbench/quic-impls/host-go/content"
)

const seed = 7

// asked runs an asker over some lines, with what a fetch does. Its clock goes on by a second at each look.
func asked(lines []string, fetch func(context.Context, int64, io.Writer) error) (string, error) {
	var out bytes.Buffer
	var now time.Duration
	clock := func() time.Duration { now += time.Second; return now }
	a := &Asker{Seed: seed, Lines: Lines(strings.NewReader(strings.Join(lines, "\n"))), Clock: clock, Out: &out}
	a.Listen(context.Background())
	for deadline := time.Now().Add(10 * time.Second); len(a.requests) < len(lines) && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond) // the clock of this test is one goroutine's at a time
	}
	err := a.Ask(context.Background(), fetch)
	return out.String(), err
}

func right(_ context.Context, size int64, to io.Writer) error {
	_, err := content.NewReader(seed, size).WriteTo(to)
	return err
}

func TestWhatIsAskedForIsFetchedAndSaid(t *testing.T) {
	got := make(chan struct{})
	said, err := asked([]string{`{"get": 1000}`}, func(ctx context.Context, size int64, to io.Writer) error {
		defer close(got)
		return right(ctx, size, to)
	})
	<-got
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"event": "object", "bytes": 1000, "requested_at": 1.000000000, "first_byte_at": 2.000000000, "done_at": 3.000000000}` + "\n"; said != want {
		t.Errorf("said %q, right is %q", said, want)
	}
}

func TestWhatIsWrongOrTooLittleOrTooMuchEndsIt(t *testing.T) {
	for _, bad := range []struct {
		fetch  func(context.Context, int64, io.Writer) error
		naming string
	}{
		{func(_ context.Context, _ int64, to io.Writer) error { _, err := to.Write([]byte("x")); return err }, "byte 0 is not"},
		{func(context.Context, int64, io.Writer) error { return nil }, "the server sent 0 of 10 bytes"},
		{func(ctx context.Context, size int64, to io.Writer) error { return right(ctx, size+1, to) }, "more than the 10 bytes"},
		{func(context.Context, int64, io.Writer) error { return errors.New("no server") }, "no server"},
	} {
		failed := make(chan error)
		lines, out := make(chan string), &bytes.Buffer{}
		a := &Asker{Seed: seed, Lines: lines, Clock: Monotonic, Out: out}
		a.Listen(context.Background())
		go func() { failed <- a.Ask(context.Background(), bad.fetch) }()
		lines <- `{"get": 10}`
		if err := <-failed; err == nil || !strings.Contains(err.Error(), bad.naming) || out.Len() > 0 {
			t.Errorf("%v, which should name %q; said %q", err, bad.naming, out)
		}
	}
}

func TestALineThatIsNoneIsNamed(t *testing.T) {
	for _, line := range []string{
		"", "get", "{}", `{"get": -1}`, `{"get": 1.5}`, `{"get": 1, "put": 2}`, `{"get": 1099511627777}`,
		`{"get": 1, "tell_every_s": -1}`, `{"get": 1, "stop": true}`, `{"stop": false}`, `{"stop": true, "tell_every_s": 1}`,
	} {
		if _, err := requested(line); err == nil || !strings.Contains(err.Error(), "standard input: "+fmt.Sprintf("%q", line)) {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestWhatIsStoppedIsSaidWithWhatHasCome(t *testing.T) {
	lines, came := make(chan string), make(chan struct{})
	out := &bytes.Buffer{}
	a := &Asker{Seed: seed, Lines: lines, Clock: Monotonic, Out: out, Stops: true}
	a.Listen(context.Background())
	ended := make(chan error)
	go func() {
		ended <- a.Ask(context.Background(), func(ctx context.Context, size int64, to io.Writer) error {
			defer close(came)
			reader := content.NewReader(seed, size)
			for range 3 {
				if _, err := io.CopyN(to, reader, 100); err != nil {
					return err
				}
				time.Sleep(2 * time.Millisecond)
			}
			<-ctx.Done()
			return context.Cause(ctx)
		})
	}()
	lines <- `{"get": 1000, "tell_every_s": 0.001}`
	lines <- `{"stop": true}`
	<-came
	close(lines)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	told := strings.Split(strings.TrimSpace(out.String()), "\n")
	for n, start := range []string{`"progress", "bytes": 100, "requested_at"`, `"progress", "bytes": 200`, `"progress", "bytes": 300`, `"stopped", "bytes": 300, "requested_at"`} {
		if n >= len(told) || !strings.HasPrefix(told[n], `{"event": `+start) {
			t.Fatalf("said %q", told)
		}
	}
}

func TestADownloadIsWatchedWhereItCanBeStoppedAlone(t *testing.T) {
	for _, line := range []string{`{"get": 1, "tell_every_s": 1}`, `{"stop": true}`} {
		a := &Asker{Seed: seed, Lines: Lines(strings.NewReader(line)), Clock: Monotonic, Out: io.Discard}
		a.Listen(context.Background())
		if err := a.Ask(context.Background(), right); CodeOfFailure(err) != ExitUnsupported {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestWhatIsOnItsWayAtTheEndOfTheInputIsGivenUp(t *testing.T) {
	begun := make(chan struct{})
	lines := make(chan string)
	a := &Asker{Seed: seed, Lines: lines, Clock: Monotonic, Out: io.Discard}
	needed := a.Listen(context.Background())
	ended := make(chan error)
	go func() {
		ended <- a.Ask(context.Background(), func(ctx context.Context, _ int64, _ io.Writer) error {
			close(begun)
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	lines <- `{"get": 10}`
	<-begun
	if needed.Err() != nil {
		t.Error("the input has not ended")
	}
	close(lines)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	<-needed.Done()
	if !errors.Is(context.Cause(needed), errInputEnded) {
		t.Error(context.Cause(needed))
	}
}
