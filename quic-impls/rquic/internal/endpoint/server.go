package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/quic-go/quic-go"

	host "github.com/fecbench/fecbench/quic-impls/host-go"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/rquic"
)

// serve runs the server until ctx ends. A client's fault ends that client's
// connection; a fault that falsifies the experiment (rquic.ErrOutOfStep, errMessages) ends the server.
func (e *endpoint) serve(ctx context.Context, out io.Writer) error {
	listener, err := e.transport.Listen(e.tlsConfig(), e.quicConfig())
	if err != nil {
		return fmt.Errorf("cannot listen at %v: %w", e.assignment.Address, err)
	}
	if err := host.Ready(out); err != nil {
		return err
	}
	connections, err := e.acceptUntil(ctx, listener)
	if err != nil {
		return err
	}
	if err := e.transport.Close(); err != nil { // which sends packets of connections that are still in their handshake
		return err
	}
	return host.Done(out, e.serverMetrics(connections))
}

// serverMetrics leaves packets out where a handshake was not complete: quic-go does not tell those of such a connection.
func (e *endpoint) serverMetrics(connections []*quic.Conn) map[string]float64 {
	metrics := e.metrics(connections)
	if e.observer.Recording.Connections() > len(connections) {
		for _, name := range [...]string{"packets_sent", "packets_received", "packets_lost", "losses_declared", "spurious_losses"} {
			delete(metrics, name)
		}
	}
	return metrics
}

// acceptUntil serves connections until ctx ends, closes them, and returns them all.
func (e *endpoint) acceptUntil(ctx context.Context, listener *quic.Listener) ([]*quic.Conn, error) {
	var connections []*quic.Conn
	var serving sync.WaitGroup
	for {
		connection, err := listener.Accept(ctx)
		if err != nil {
			break
		}
		connections = append(connections, connection)
		serving.Go(func() { e.serveConnection(connection) })
	}
	for _, connection := range connections {
		connection.CloseWithError(0, "server stopped") // an error is the one that closed it before
	}
	serving.Wait()
	if cause := context.Cause(ctx); errors.Is(cause, rquic.ErrOutOfStep) || errors.Is(cause, errMessages) {
		return nil, cause
	}
	return connections, nil
}

func (e *endpoint) serveConnection(connection *quic.Conn) {
	if e.assignment.Workload.Messages != nil {
		e.serveMessages(connection)
		return
	}
	if e.assignment.Options.HTTP == "h3" {
		serveHTTP3(connection, e.assignment.ContentSeed)
		return
	}
	serveHQ(connection, e.assignment.ContentSeed, e.surroundings.Log)
}
