package endpoint

import (
	"context"
	"crypto/sha256"
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
	right := content.Hash(e.assignment.ContentSeed, workload.Size)

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

func (e *endpoint) transfer(ctx context.Context, x exchange, right [sha256.Size]byte) error {
	workload := e.assignment.Workload
	if workload.Name == "upload" {
		hash, err := x.upload(ctx, workload.Size, content.NewReader(e.assignment.ContentSeed, workload.Size))
		if err == nil && hash != hex.EncodeToString(right[:]) {
			err = fmt.Errorf("the server received content with SHA-256 %.64q, right is %x", hash, right)
		}
		return err
	}
	return receive(ctx, x, workload.Size, right)
}

// receive downloads size bytes and verifies them.
func receive(ctx context.Context, x exchange, size int64, right [sha256.Size]byte) error {
	received := &hashed{limit: size, hash: sha256.New()}
	if err := x.download(ctx, size, received); err != nil {
		return fmt.Errorf("after %d bytes: %w", received.size, err)
	}
	if received.size != size {
		return fmt.Errorf("the server sent %d bytes", received.size)
	}
	if got := received.hash.Sum(nil); [sha256.Size]byte(got) != right {
		return fmt.Errorf("the content received has SHA-256 %x, right is %x", got, right)
	}
	return nil
}
