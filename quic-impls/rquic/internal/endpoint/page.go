package endpoint

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	host "github.com/fecbench/fecbench/quic-impls/host-go"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/page"
)

// loadPage runs the client: every object of a page, verified, over one connection or one for each origin.
func (e *endpoint) loadPage(ctx context.Context, out io.Writer) error {
	ctx, cancel := e.untilDeadline(ctx)
	defer cancel()
	graph := e.assignment.Workload.Page.Graph

	b := &browser{endpoint: e, start: time.Now(), opened: map[string]*opening{}}
	if err := graph.Load(ctx, b.fetch); err != nil {
		return fmt.Errorf("page of %d objects: %w", len(graph), explain(ctx, err))
	}
	loaded := time.Since(b.start)
	for _, connection := range b.connections {
		if err := connection.CloseWithError(0, ""); err != nil {
			return fmt.Errorf("closing a connection: %w", err)
		}
	}
	metrics := e.metrics(b.connections)
	metrics["dct_s"], metrics["handshake_s"] = loaded.Seconds(), b.handshake.Seconds()
	metrics["first_object_s"] = b.firstObject.Seconds()
	metrics["objects"], metrics["connections"] = float64(len(graph)), float64(len(b.connections))
	return host.Done(out, metrics)
}

// browser opens connections as objects need them, and fetches over them.
type browser struct {
	*endpoint
	start time.Time

	mu                     sync.Mutex
	opened                 map[string]*opening // by origin, "" with one connection for all
	connections            []*quic.Conn        // in the order of their handshakes
	handshake, firstObject time.Duration       // since start, of the first of each; 0: none yet
}

// opening is a connection that is made by the first object that needs it; the others wait.
type opening struct {
	done     chan struct{} // closed when exchange or err is there
	exchange exchange
	err      error
}

// fetch gets an object. When ctx ends, by the deadline or by another object's error, nothing waits any longer.
func (b *browser) fetch(ctx context.Context, object page.Object) error {
	stop := context.AfterFunc(ctx, b.cutShort)
	defer stop()
	x, err := b.exchangeWith(ctx, object.Origin)
	if err != nil {
		return err
	}
	if err := receive(ctx, x, object.Size, b.assignment.ContentSeed); err != nil {
		return fmt.Errorf("%d bytes: %w", object.Size, err)
	}
	b.note(&b.firstObject)
	return nil
}

// exchangeWith returns the exchange over the connection to an origin, which it opens when there is none.
func (b *browser) exchangeWith(ctx context.Context, origin string) (exchange, error) {
	if !b.assignment.Workload.Page.PerOrigin {
		origin = ""
	}
	b.mu.Lock()
	o, opened := b.opened[origin]
	if !opened {
		o = &opening{done: make(chan struct{})}
		b.opened[origin] = o
	}
	b.mu.Unlock()
	if !opened {
		o.exchange, o.err = b.open(ctx)
		close(o.done)
	}
	<-o.done // open heeds ctx
	return o.exchange, o.err
}

func (b *browser) open(ctx context.Context) (exchange, error) {
	connection, err := b.dial(ctx)
	if err != nil {
		return nil, err
	}
	b.note(&b.handshake)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.connections = append(b.connections, connection)
	return b.exchange(connection), nil
}

// note keeps the time since the start, when it is the first of its kind.
func (b *browser) note(first *time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if *first == 0 {
		*first = time.Since(b.start)
	}
}

// cutShort closes the connections that are open: reading from them ends at once.
func (b *browser) cutShort() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, connection := range b.connections {
		connection.CloseWithError(0, "cut short")
	}
}
