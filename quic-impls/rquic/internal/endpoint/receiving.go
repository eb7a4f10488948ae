package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/messages"
)

// drain is the time without news after which a receiver of datagrams takes the missing ones for lost, once it knows that all were
// sent.
const drain = time.Second

var errDrained = errors.New("nothing more has come")

// receiver verifies and notes what comes of the messages.
type receiver struct {
	*conversation
}

// receiveAll returns when all has come that will come.
func (c *conversation) receiveAll(control io.Reader) error {
	r := receiver{c}
	sent := make(chan struct{}) // closed when the sender says that it has sent all
	go func() {
		if err := hear(control, endOfAll); err != nil {
			c.end(err)
			return
		}
		close(sent)
	}()
	switch c.traffic.Delivery {
	case messages.Datagram:
		return r.receiveDatagrams(sent)
	case messages.Reliable:
		return r.receiveReliably()
	default:
		return r.receiveStreams()
	}
}

// arrived notes that a part has become whole, now.
func (r receiver) arrived(message, part, size int) {
	if r.messaging.rows != nil {
		r.messaging.rows.Add(r.followed.Number(), int64(message), int64(part), int64(r.surroundings.Clock()), int64(size))
	}
}

func (r receiver) verifier() *messages.Verifier {
	return &messages.Verifier{Traffic: r.traffic, Seed: r.assignment.ContentSeed}
}

// refused returns the error about something that a peer should not have sent.
func refused(err error) error { return fmt.Errorf("%w: %w", errMessages, err) }

func (r receiver) receiveDatagrams(sent <-chan struct{}) error {
	ctx, stop := context.WithCancelCause(r.ctx)
	defer stop(nil)
	news := make(chan struct{}, 1)
	go func() {
		if r.awaitSilence(ctx, sent, news) {
			stop(errDrained)
		}
	}()
	received, verifier := messages.NewReceived(r.traffic), r.verifier()
	for !received.Complete() {
		datagram, err := r.connection.ReceiveDatagram(ctx)
		if errors.Is(err, errDrained) {
			return nil
		}
		if err != nil {
			return err
		}
		message, part, content, err := r.traffic.Read(datagram)
		if err != nil {
			return refused(err)
		}
		if err := verifier.Verify(message, part, content); err != nil {
			return refused(err)
		}
		if !received.Add(message, part) {
			continue
		}
		r.arrived(message, part, len(content))
		select {
		case news <- struct{}{}:
		default:
		}
	}
	return nil
}

// awaitSilence waits until all was sent, and then until there were no news for some time; false when the context ends.
func (r receiver) awaitSilence(ctx context.Context, sent, news <-chan struct{}) bool {
	select {
	case <-sent:
	case <-ctx.Done():
		return false
	}
	silence := time.NewTimer(drain)
	defer silence.Stop()
	for {
		select {
		case <-news:
			silence.Reset(drain)
		case <-silence.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// receiveStreams receives a message from each stream.
func (r receiver) receiveStreams() error {
	var receiving sync.WaitGroup
	for m := range r.traffic.Messages {
		stream, err := r.connection.AcceptUniStream(r.ctx)
		if err != nil {
			r.end(err)
			break
		}
		receiving.Go(func() {
			if err := r.receiveStream(m, stream); err != nil {
				r.end(err)
			}
		})
	}
	receiving.Wait()
	return context.Cause(r.ctx)
}

// receiveStream receives a message that is the whole of a stream, unless the stream may be reset, and is.
func (r receiver) receiveStream(message int, stream *quic.ReceiveStream) error {
	verifier := r.verifier()
	err := r.receiveMessage(message, stream, verifier)
	if err == nil {
		err = atEnd(stream)
	}
	var reset *quic.StreamError
	if errors.As(err, &reset) {
		if r.traffic.Delivery == messages.Deadline {
			return nil
		}
		return refused(fmt.Errorf("the stream of message %d was reset", message))
	}
	return err
}

func (r receiver) receiveReliably() error {
	stream, err := r.connection.AcceptUniStream(r.ctx)
	if err != nil {
		return err
	}
	verifier := r.verifier()
	for m := range r.traffic.Messages {
		if err := r.receiveMessage(m, stream, verifier); err != nil {
			return err
		}
	}
	return atEnd(stream)
}

// receiveMessage reads the parts of a message.
func (r receiver) receiveMessage(message int, stream io.Reader, verifier *messages.Verifier) error {
	var buffer [messages.MaxPart]byte
	for part := range r.traffic.Parts(message) {
		_, size := r.traffic.Part(message, part)
		n, err := io.ReadFull(stream, buffer[:size])
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return refused(fmt.Errorf("a stream ended after %d bytes of part %d of message %d, which has %d", n, part, message, size))
		}
		if err != nil {
			return err
		}
		if err := verifier.Verify(message, part, buffer[:n]); err != nil {
			return refused(err)
		}
		r.arrived(message, part, n)
	}
	return nil
}

// atEnd refuses a stream that goes on.
func atEnd(stream io.Reader) error {
	var more [1]byte
	n, err := io.ReadFull(stream, more[:])
	if n > 0 {
		return refused(errors.New("a stream goes on behind its last message"))
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
