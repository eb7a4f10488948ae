package endpoint

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	"github.com/quic-go/quic-go"

	host "github.com/fecbench/fecbench/quic-impls/host-go"
	"github.com/fecbench/fecbench/quic-impls/host-go/content"
)

// exchange is a request and its answer over one application protocol.
type exchange interface {
	// download asks for size bytes and copies them to w.
	download(ctx context.Context, size int64, w io.Writer) error
	// upload sends size bytes of body and returns the hash that the server answers with.
	upload(ctx context.Context, size int64, body io.Reader) (hash string, err error)
}

// fetch runs the client: one connection, one transfer, verified.
func (e *endpoint) fetch(ctx context.Context, out io.Writer) error {
	ctx, cancel := e.untilDeadline(ctx)
	defer cancel()
	workload := e.assignment.Workload
	var right string
	if workload.Name == "upload" {
		hash := content.Hash(e.assignment.ContentSeed, workload.Size)
		right = hex.EncodeToString(hash[:])
	}

	start := time.Now()
	connection, err := e.dial(ctx)
	if err != nil {
		return err
	}
	handshake := time.Since(start)
	stop := context.AfterFunc(ctx, func() { connection.CloseWithError(0, "cut short") })
	defer stop()
	if err := e.transfer(ctx, e.exchange(connection), right); err != nil {
		return fmt.Errorf("%s of %d bytes: %w", workload.Name, workload.Size, explain(ctx, err))
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

// untilDeadline is a context that ends with the time that a client has.
func (e *endpoint) untilDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, e.assignment.Deadline,
		fmt.Errorf("not done within the deadline of %v s", e.assignment.Deadline.Seconds()))
}

func (e *endpoint) dial(ctx context.Context) (*quic.Conn, error) {
	connection, err := e.transport.Dial(ctx, e.remote(), e.tlsConfig(), e.quicConfig())
	if err != nil {
		return nil, fmt.Errorf("handshake with %v: %w", e.assignment.Address, explain(ctx, err))
	}
	return connection, nil
}

func (e *endpoint) exchange(connection *quic.Conn) exchange {
	if e.assignment.Options.HTTP == "h3" {
		return newHTTP3(connection, e.assignment.ServerName)
	}
	return hq{connection}
}

// transfer carries out the one transfer; right is the hash that the server of an upload answers with.
func (e *endpoint) transfer(ctx context.Context, x exchange, right string) error {
	workload, seed := e.assignment.Workload, e.assignment.ContentSeed
	if workload.Name == "upload" {
		hash, err := x.upload(ctx, workload.Size, content.NewReader(seed, workload.Size))
		if err == nil && hash != right {
			err = fmt.Errorf("the server received content with SHA-256 %.64q, right is %s", hash, right)
		}
		return err
	}
	return receive(ctx, x, workload.Size, seed)
}

// receive downloads size bytes, and compares each with that of the content.
func receive(ctx context.Context, x exchange, size int64, seed uint64) error {
	received := &content.Verifier{Seed: seed, Size: size}
	if err := x.download(ctx, size, received); err != nil {
		return fmt.Errorf("after %d bytes: %w", received.Received, err)
	}
	if received.Received != size {
		return fmt.Errorf("the server sent %d bytes", received.Received)
	}
	return nil
}
