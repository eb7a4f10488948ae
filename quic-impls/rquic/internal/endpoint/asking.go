package endpoint

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/quic-go/quic-go"

	host "github.com/fecbench/fecbench/quic-impls/host-go"
)

// ask runs the client: one connection, over which it asks for what its input says, until that ends.
func (e *endpoint) ask(ctx context.Context, out io.Writer) error {
	ctx, cancel := e.untilDeadline(ctx)
	defer cancel()
	start := time.Now()
	asker := &host.Asker{Seed: e.assignment.ContentSeed, Lines: e.surroundings.Lines, Clock: e.surroundings.Clock, Out: out, Stops: true}
	connection, err := e.dial(asker.Listen(ctx))
	if err != nil {
		return err
	}
	handshake := time.Since(start)
	stop := context.AfterFunc(ctx, func() { connection.CloseWithError(0, "cut short") })
	defer stop()
	exchange := e.exchange(connection)
	err = asker.Ask(ctx, func(ctx context.Context, size int64, to io.Writer) error {
		// The object on its way when the input ends is given up, and the connection with it.
		stop := context.AfterFunc(ctx, func() {
			if context.Cause(ctx) != host.ErrStopped {
				connection.CloseWithError(0, "")
			}
		})
		defer stop()
		return exchange.download(ctx, size, to)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", host.Requests, explain(ctx, err))
	}
	dct := time.Since(start)
	stop()
	if err := connection.CloseWithError(0, ""); err != nil {
		return fmt.Errorf("closing the connection: %w", err)
	}
	metrics := e.metrics([]*quic.Conn{connection})
	metrics["dct_s"], metrics["handshake_s"] = dct.Seconds(), handshake.Seconds()
	return host.Done(out, metrics)
}
