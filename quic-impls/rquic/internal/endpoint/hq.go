package endpoint

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"log"
	"strconv"
	"strings"

	"github.com/quic-go/quic-go"

	host "github.com/fecbench/fecbench/quic-impls/host-go"
	"github.com/fecbench/fecbench/quic-impls/host-go/content"
)

// Stream error codes of our hq-interop, which defines none.
const (
	givenUp     quic.StreamErrorCode = 0
	badRequest  quic.StreamErrorCode = 1
	notReceived quic.StreamErrorCode = 2
)

// maxRequestLine is the longest request line that is read, in bytes.
const maxRequestLine = 64

// hq is hq-interop: a stream for each request, "GET /SIZE\r\n" or "PUT /SIZE\r\n" and the
// body; the answer is the content, or the hash of the body in hex. The end of the stream ends both.
type hq struct{ connection *quic.Conn }

func (x hq) download(ctx context.Context, size int64, w io.Writer) error {
	stream, err := x.request(ctx, fmt.Sprintf("GET /%d\r\n", size), nil)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() {
		if context.Cause(ctx) == host.ErrStopped {
			stream.CancelRead(givenUp)
		}
	})
	defer stop()
	_, err = io.Copy(w, stream)
	return err
}

func (x hq) upload(ctx context.Context, size int64, body io.Reader) (string, error) {
	stream, err := x.request(ctx, fmt.Sprintf("PUT /%d\r\n", size), body)
	if err != nil {
		return "", err
	}
	answer, err := io.ReadAll(io.LimitReader(stream, 2*sha256.Size+1))
	return string(answer), err
}

func (x hq) request(ctx context.Context, line string, body io.Reader) (*quic.Stream, error) {
	stream, err := x.connection.OpenStreamSync(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(stream, line); err != nil {
		return nil, err
	}
	if body != nil {
		if _, err := io.Copy(stream, body); err != nil {
			return nil, err
		}
	}
	return stream, stream.Close()
}

// serveHQ answers the requests of a connection until it ends.
func serveHQ(connection *quic.Conn, seed uint64, problems *log.Logger) {
	for {
		stream, err := connection.AcceptStream(connection.Context())
		if err != nil {
			return // the connection's own context has the reason
		}
		go func() {
			if err := answer(stream, seed); err != nil {
				problems.Printf("request of %v: %v", connection.RemoteAddr(), err)
			}
		}()
	}
}

func answer(stream *quic.Stream, seed uint64) error {
	reader := bufio.NewReaderSize(stream, maxRequestLine)
	line, err := reader.ReadSlice('\n')
	if err != nil {
		refuse(stream, badRequest)
		return fmt.Errorf("no request line: %w", err)
	}
	method, path, _ := strings.Cut(strings.TrimRight(string(line), "\r\n"), " ")
	size, err := parseSize(path)
	if err != nil {
		refuse(stream, badRequest)
		return err
	}
	switch method {
	case "GET":
		_, err = content.NewReader(seed, size).WriteTo(stream)
	case "PUT":
		var hash string
		if hash, err = hashBody(reader, size); err == nil {
			_, err = io.WriteString(stream, hash)
		}
	default:
		err = fmt.Errorf("method %q is neither GET nor PUT", method)
	}
	if err != nil {
		refuse(stream, notReceived)
		return err
	}
	return stream.Close()
}

func refuse(stream *quic.Stream, code quic.StreamErrorCode) {
	stream.CancelRead(code)
	stream.CancelWrite(code)
}

// parseSize reads the path of a request: "/" and a number of bytes.
func parseSize(path string) (int64, error) {
	digits, ok := strings.CutPrefix(path, "/")
	size, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || size < 0 {
		return 0, fmt.Errorf("path %q is not / and a number of bytes", path)
	}
	return size, nil
}

// hashBody returns the SHA-256 of a body of size bytes in hex.
func hashBody(body io.Reader, size int64) (string, error) {
	received := &hashed{limit: size, hash: sha256.New()}
	if _, err := io.Copy(received, body); err != nil {
		return "", err
	}
	if received.size != size {
		return "", fmt.Errorf("the body has %d bytes, announced were %d", received.size, size)
	}
	return hex.EncodeToString(received.hash.Sum(nil)), nil
}

// hashed is a writer that hashes what is received, and refuses more than a limit.
type hashed struct {
	size, limit int64
	hash        hash.Hash
}

func (h *hashed) Write(b []byte) (int, error) {
	if h.size += int64(len(b)); h.size > h.limit {
		return 0, fmt.Errorf("more than the %d bytes that were asked for", h.limit)
	}
	return h.hash.Write(b)
}
