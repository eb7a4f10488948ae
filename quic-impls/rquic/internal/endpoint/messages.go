package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	host "github.com/fecbench/fecbench/quic-impls/host-go"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/contract"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/messages"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/observer"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/series"
)

// errMessages means that a peer sent something that the workload "messages" does not have: it ends the receiver, whichever it is.
var errMessages = errors.New("messages")

const messagesProtocol = "fecbench-messages"

// Messages of the ends on the first bidirectional stream.
const (
	getMessages = "GET MESSAGES\r\n"
	putMessages = "PUT MESSAGES\r\n"
	endOfAll    = "END\r\n"
	allReceived = "DONE\r\n"
)

// Error codes of the connection, and of a stream that is reset since its message is too late.
const (
	asAgreed    quic.ApplicationErrorCode = 0
	cutShort    quic.ApplicationErrorCode = 1
	messageLate quic.StreamErrorCode      = 1
)

// messagesWindow is the window of flow control: it must not bind.
const messagesWindow = 64 << 20

// maxOpenStreams is the most messages that may be on their way as streams. A sender with more of them waits.
const maxOpenStreams = 4096

var (
	sentColumns = []series.Column{
		{Name: "message"}, {Name: "part"}, {Name: "due_s", Time: true}, {Name: "sent_s", Time: true}, {Name: "bytes"},
	}
	receivedColumns = []series.Column{{Name: "message"}, {Name: "part"}, {Name: "arrived_s", Time: true}, {Name: "bytes"}}
)

// messaging is the state of an endpoint for the workload "messages".
type messaging struct {
	rows  *series.Table // nil when nobody asked for them
	reset atomic.Int64  // messages
	fail  func(error)
}

// sendsMessages reports whether this end is the sender.
func (e *endpoint) sendsMessages() bool {
	return e.assignment.Workload.ClientSends() == (e.assignment.Role == "client")
}

// beginMessages begins the table of messages, if it is wanted. It has no rows with another workload.
func (e *endpoint) beginMessages() {
	if !e.assignment.Series.Messages {
		return
	}
	columns := receivedColumns
	if e.sendsMessages() {
		columns = sentColumns
	}
	path := filepath.Join(e.assignment.LogFolder, contract.Messages+".series.csv")
	e.messaging.rows = e.observer.Recording.BeginTable(path, columns...)
}

// allowMessages changes what the other workloads have.
func allowMessages(config *quic.Config, traffic *messages.Traffic) {
	config.InitialStreamReceiveWindow, config.MaxStreamReceiveWindow = messagesWindow, messagesWindow
	config.InitialConnectionReceiveWindow, config.MaxConnectionReceiveWindow = messagesWindow, messagesWindow
	config.EnableDatagrams = true
	config.MaxIncomingUniStreams = int64(min(len(traffic.Messages), maxOpenStreams))
}

// followConnections makes the server's connections known by their contexts.
func (e *endpoint) followConnections() {
	e.transport.ConnContext = func(ctx context.Context, _ *quic.ClientInfo) (context.Context, error) {
		return observer.Follow(ctx), nil
	}
}

// exchangeMessages runs the client: one connection, all messages in one direction.
func (e *endpoint) exchangeMessages(ctx context.Context, out io.Writer) error {
	ctx, cancel := e.untilDeadline(ctx)
	defer cancel()
	start := time.Now()
	connection, err := e.dial(observer.Follow(ctx))
	if err != nil {
		return err
	}
	handshake := time.Since(start)
	if err := e.conversation(ctx, connection).asClient(); err != nil {
		return fmt.Errorf("%d messages: %w", len(e.assignment.Workload.Messages.Messages), explain(ctx, err))
	}
	dct := time.Since(start)
	if err := connection.CloseWithError(asAgreed, ""); err != nil {
		return fmt.Errorf("closing the connection: %w", err)
	}
	metrics := e.metrics([]*quic.Conn{connection})
	metrics["dct_s"], metrics["handshake_s"] = dct.Seconds(), handshake.Seconds()
	return host.Done(out, metrics)
}

// serveMessages serves a connection until it ends.
func (e *endpoint) serveMessages(connection *quic.Conn) {
	err := e.conversation(connection.Context(), connection).asServer()
	switch {
	case errors.Is(err, errMessages):
		e.messaging.fail(err)
	case err != nil && !endedAsAgreed(connection):
		e.surroundings.Log.Printf("messages of %v: %v", connection.RemoteAddr(), err)
	}
}

// endedAsAgreed reports whether a connection was closed by a client that had no reason to complain, or by our own end.
func endedAsAgreed(connection *quic.Conn) bool {
	var closed *quic.ApplicationError
	return errors.As(context.Cause(connection.Context()), &closed) && closed.ErrorCode == asAgreed
}

// addMessages adds the counters of the workload.
func (e *endpoint) addMessages(m map[string]float64) {
	m["messages_reset"] = float64(e.messaging.reset.Load())
	m["datagrams_dropped"] = float64(e.observer.Datagrams.Dropped.Load())
	m["datagrams_overflowed"] = float64(e.observer.Datagrams.Overflowed.Load())
}

// conversation is a connection with messages.
type conversation struct {
	*endpoint
	ctx        context.Context // ends with the first error
	end        context.CancelCauseFunc
	connection *quic.Conn
	traffic    *messages.Traffic
	followed   *observer.Followed
}

func (e *endpoint) conversation(ctx context.Context, connection *quic.Conn) *conversation {
	c := &conversation{
		endpoint: e, connection: connection, traffic: e.assignment.Workload.Messages,
		followed: observer.FollowedBy(connection.Context()),
	}
	c.ctx, c.end = context.WithCancelCause(ctx)
	return c
}

// carryOut does what one end has to do. When that fails, or the context ends, so does the connection, on which all else waits.
func (c *conversation) carryOut(do func() error) error {
	defer c.end(nil)
	closeIt := func() { c.connection.CloseWithError(cutShort, "cut short") }
	stop := context.AfterFunc(c.ctx, closeIt)
	defer stop()
	err := do()
	if err == nil {
		return nil
	}
	c.end(err)
	closeIt()
	return context.Cause(c.ctx) // the first error
}

func (c *conversation) asClient() error {
	return c.carryOut(func() error {
		control, err := c.connection.OpenStreamSync(c.ctx)
		if err != nil {
			return err
		}
		if c.traffic.Up {
			return c.put(control)
		}
		return c.get(control)
	})
}

func (c *conversation) put(control *quic.Stream) error {
	if _, err := io.WriteString(control, putMessages); err != nil {
		return err
	}
	if err := c.sendAll(control); err != nil {
		return err
	}
	return hear(control, allReceived)
}

func (c *conversation) get(control *quic.Stream) error {
	if err := say(control, getMessages); err != nil {
		return err
	}
	return c.receiveAll(control)
}

func (c *conversation) asServer() error {
	return c.carryOut(func() error {
		control, err := c.connection.AcceptStream(c.ctx)
		if err != nil {
			return err
		}
		request := getMessages
		if c.traffic.Up {
			request = putMessages
		}
		if err := hearFirst(control, request); err != nil {
			return err
		}
		if !c.traffic.Up {
			return c.sendAll(control)
		}
		if err := c.receiveAll(control); err != nil {
			return err
		}
		return say(control, allReceived)
	})
}

// say says the last that is to be said on a stream.
func say(control *quic.Stream, line string) error {
	if _, err := io.WriteString(control, line); err != nil {
		return err
	}
	return control.Close()
}

// hear reads the last line of a stream, which is known.
func hear(control io.Reader, line string) error {
	got, err := io.ReadAll(io.LimitReader(control, int64(len(line))+1))
	if err == nil && string(got) != line {
		err = fmt.Errorf("%w: the first stream has %q; right is %q", errMessages, got, line)
	}
	return err
}

// hearFirst reads a line, which is known, of a stream that may go on.
func hearFirst(control io.Reader, line string) error {
	got := make([]byte, len(line))
	n, err := io.ReadFull(control, got)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if string(got[:n]) != line {
		return fmt.Errorf("%w: the first stream begins with %q; right is %q", errMessages, got[:n], line)
	}
	return nil
}
