package endpoint

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	host "github.com/fecbench/fecbench/quic-impls/host-go"
	"github.com/fecbench/fecbench/quic-impls/host-go/content"
)

// longestRequestLine is in bytes.
const longestRequestLine = 64

// serve runs the server until ctx ends. A client's fault ends that client's connection; a connection that is not what
// was asked for ends the server.
func (e *endpoint) serve(ctx context.Context, out io.Writer) error {
	listen := net.ListenConfig{KeepAlive: -1, Control: e.prepare}
	listen.SetMultipathTCP(e.isMultipath())
	listener, err := listen.Listen(ctx, "tcp", e.assignment.Address.String())
	if err != nil {
		return fmt.Errorf("cannot listen at %v: %w", e.assignment.Address, err)
	}
	if err := host.Ready(out); err != nil {
		return err
	}
	accounts, err := e.acceptUntil(ctx, listener)
	if err != nil {
		return err
	}
	metrics, err := e.metrics(accounts)
	if err != nil {
		return err
	}
	return host.Done(out, metrics)
}

// acceptUntil serves connections until ctx ends, closes them, and returns the accounts of all.
func (e *endpoint) acceptUntil(ctx context.Context, listener net.Listener) ([]*account, error) {
	var accounts []*account
	var serving sync.WaitGroup
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	for {
		accepted, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			break
		}
		if err != nil {
			return nil, err
		}
		e.window.begin(time.Now())
		connection := accepted.(*net.TCPConn)
		if err := e.checkConnection(connection); err != nil {
			return nil, err
		}
		a := e.open(connection, len(accounts))
		accounts = append(accounts, a)
		serving.Go(func() {
			defer connection.Close()
			if err := e.answer(connection); err != nil && ctx.Err() == nil {
				log.Printf("tcp: connection of %v: %v", connection.RemoteAddr(), err)
			}
			a.end()
		})
	}
	for _, a := range accounts {
		a.end()
		a.connection.Close()
	}
	serving.Wait()
	return accounts, nil
}

// answer answers the requests of a connection, one after another, until the client ends it.
func (e *endpoint) answer(connection *net.TCPConn) error {
	secured := tls.Server(connection, e.tls)
	reader := bufio.NewReaderSize(secured, longestRequestLine)
	for {
		line, err := reader.ReadSlice('\n')
		if err == io.EOF && len(line) == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("no request line: %w", err)
		}
		if err := e.answerLine(string(line), reader, secured); err != nil {
			return err
		}
	}
}

func (e *endpoint) answerLine(line string, reader io.Reader, secured io.Writer) error {
	method, path, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
	size, err := parseSize(path)
	if err != nil {
		return err
	}
	switch method {
	case "GET":
		_, err = content.NewReader(e.assignment.ContentSeed, size).WriteTo(secured)
	case "PUT":
		hash := sha256.New()
		if _, err = io.CopyN(hash, reader, size); err == nil {
			_, err = io.WriteString(secured, hex.EncodeToString(hash.Sum(nil)))
		}
	default:
		err = fmt.Errorf("method %q is neither GET nor PUT", method)
	}
	return err
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
