package endpoint

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	host "github.com/fecbench/fecbench/quic-impls/host-go"
	"github.com/fecbench/fecbench/quic-impls/host-go/content"
)

// fetch runs the client: one connection, one transfer, verified.
func (e *endpoint) fetch(ctx context.Context, out io.Writer) error {
	if paths, own := e.assignment.Options.Paths, len(e.assignment.LocalAddresses); paths > max(1, own) {
		return host.Unsupported{What: fmt.Sprintf("paths = %d: with %d local_addresses it", paths, own)}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, e.assignment.Deadline,
		fmt.Errorf("not done within the deadline of %v s", e.assignment.Deadline.Seconds()))
	defer cancel()
	workload, seed := e.assignment.Workload, e.assignment.ContentSeed
	var right [sha256.Size]byte
	if workload.Name == "upload" {
		right = content.Hash(seed, workload.Size)
	}

	start, needed := time.Now(), ctx
	asker := &host.Asker{Seed: seed, Clock: host.Monotonic, Out: out}
	if workload.Name == host.Requests {
		asker.Lines = host.Lines(os.Stdin)
		needed = asker.Listen(ctx)
	}
	connection, err := e.dial(needed)
	if err != nil {
		return fmt.Errorf("connection to %v: %w", e.assignment.Address, explain(needed, err))
	}
	defer connection.Close()
	stop := context.AfterFunc(ctx, func() { connection.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	e.window.begin(start)
	a := e.open(connection, 0)
	defer a.end()
	secured := tls.Client(connection, e.tls)
	if err := secured.HandshakeContext(needed); err != nil {
		return fmt.Errorf("handshake with %v: %w", e.assignment.Address, explain(needed, err))
	}
	handshake := time.Since(start)
	switch workload.Name {
	case host.Requests:
		err = ask(ctx, asker, secured, connection)
	case "upload":
		err = upload(secured, content.NewReader(seed, workload.Size), workload.Size, hex.EncodeToString(right[:]))
	default:
		err = download(secured, workload.Size, seed)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", workload, explain(ctx, err))
	}
	dct := time.Since(start)
	a.end()
	secured.Close() // an error is none of the transfer, which is whole
	metrics, err := e.metrics([]*account{a})
	if err != nil {
		return err
	}
	metrics["dct_s"], metrics["handshake_s"] = dct.Seconds(), handshake.Seconds()
	return host.Done(out, metrics)
}

func (e *endpoint) dial(ctx context.Context) (*net.TCPConn, error) {
	dialer := net.Dialer{KeepAlive: -1, Control: e.prepare}
	dialer.SetMultipathTCP(e.isMultipath())
	connection, err := dialer.DialContext(ctx, "tcp", e.assignment.Address.String())
	if err != nil {
		return nil, err
	}
	tcp := connection.(*net.TCPConn)
	if err := e.checkConnection(tcp); err != nil {
		tcp.Close()
		return nil, err
	}
	return tcp, nil
}

// ask asks for what the input says, one object after another, until it ends. The object on its way is then given up.
func ask(ctx context.Context, asker *host.Asker, secured io.ReadWriter, connection net.Conn) error {
	var turn sync.Mutex
	return asker.Ask(ctx, func(ctx context.Context, size int64, to io.Writer) error {
		turn.Lock()
		defer turn.Unlock()
		stop := context.AfterFunc(ctx, func() { connection.SetReadDeadline(time.Unix(1, 0)) })
		defer stop()
		if _, err := fmt.Fprintf(secured, "GET /%d\r\n", size); err != nil {
			return err
		}
		_, err := io.CopyN(to, secured, size)
		return unexpected(err)
	})
}

// download asks for size bytes, and compares each with that of the content.
func download(connection io.ReadWriter, size int64, seed uint64) error {
	if _, err := fmt.Fprintf(connection, "GET /%d\r\n", size); err != nil {
		return err
	}
	received := &content.Verifier{Seed: seed, Size: size}
	if _, err := io.CopyN(received, connection, size); err != nil {
		return fmt.Errorf("after %d bytes: %w", received.Received, unexpected(err))
	}
	return nil
}

// upload sends size bytes of body, and compares the hash that the server answers with.
func upload(connection io.ReadWriter, body io.WriterTo, size int64, right string) error {
	if _, err := fmt.Fprintf(connection, "PUT /%d\r\n", size); err != nil {
		return err
	}
	if _, err := body.WriteTo(connection); err != nil {
		return err
	}
	hash := make([]byte, len(right))
	if _, err := io.ReadFull(connection, hash); err != nil {
		return fmt.Errorf("the server confirmed nothing: %w", unexpected(err))
	}
	if string(hash) != right {
		return fmt.Errorf("the server received content with SHA-256 %.64q, right is %s", hash, right)
	}
	return nil
}

// unexpected is an error of reading: an end is one when more was to come.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// explain returns why ctx has ended, if it has, and else the error itself.
func explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
