package endpoint

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"io"
	"net"
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
	right := content.Hash(seed, workload.Size)

	start := time.Now()
	connection, err := e.dial(ctx)
	if err != nil {
		return fmt.Errorf("connection to %v: %w", e.assignment.Address, explain(ctx, err))
	}
	defer connection.Close()
	stop := context.AfterFunc(ctx, func() { connection.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	e.window.begin(start)
	a := e.open(connection, 0)
	defer a.end()
	secured := tls.Client(connection, e.tls)
	if err := secured.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("handshake with %v: %w", e.assignment.Address, explain(ctx, err))
	}
	handshake := time.Since(start)
	if workload.Name == "upload" {
		err = upload(secured, content.NewReader(seed, workload.Size), workload.Size, hex.EncodeToString(right[:]))
	} else {
		err = download(secured, workload.Size, seed)
	}
	if err != nil {
		return fmt.Errorf("%s of %d bytes: %w", workload.Name, workload.Size, explain(ctx, err))
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

// download asks for size bytes, and compares each with that of the content.
func download(connection io.ReadWriter, size int64, seed uint64) error {
	if _, err := fmt.Fprintf(connection, "GET /%d\r\n", size); err != nil {
		return err
	}
	received := &verifier{seed: seed}
	if _, err := io.CopyN(received, connection, size); err != nil {
		return fmt.Errorf("after %d bytes: %w", received.size, unexpected(err))
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

// explain is why ctx has ended, if it has, and else the error itself.
func explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// verifier takes the content of a seed, and refuses the first byte that is none of it.
type verifier struct {
	seed  uint64
	size  int64
	right []byte
}

func (v *verifier) Write(b []byte) (int, error) {
	if len(v.right) < len(b) {
		v.right = make([]byte, len(b))
	}
	content.Fill(v.right[:len(b)], v.seed, v.size)
	for n, got := range b {
		if got != v.right[n] {
			return n, fmt.Errorf("byte %d is not that of the content", v.size+int64(n))
		}
	}
	v.size += int64(len(b))
	return len(b), nil
}
