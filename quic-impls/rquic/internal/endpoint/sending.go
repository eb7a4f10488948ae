package endpoint

import (
	"errors"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/fecbench/fecbench/quic-impls/host-go/content"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/messages"
)

// sender hands messages over to quic-go at their times. It may be kept from that, by a queue that is full, or by streams or
// flow control that the peer doesn't grant: then it goes on as soon as it can, and skips none.
type sender struct {
	*conversation
	begun   time.Time
	clock   time.Duration // then
	content []byte        // reused

	mu      sync.Mutex
	streams []*quic.SendStream // of the messages that have one, as long as they may have to be reset
}

// sendAll sends all messages, each at its time, and then says so.
func (c *conversation) sendAll(control *quic.Stream) error {
	s := &sender{conversation: c, begun: time.Now(), clock: c.surroundings.Clock()}
	send := map[messages.Delivery]func() error{
		messages.Datagram: s.sendDatagrams, messages.Stream: s.sendStreams, messages.Deadline: s.sendBeforeDeadlines,
		messages.Reliable: s.sendReliably,
	}[c.traffic.Delivery]
	if err := send(); err != nil {
		return err
	}
	return say(control, endOfAll)
}

// eachAtItsTime calls hand for all messages in order, none before its time.
func (s *sender) eachAtItsTime(hand func(message int) error) error {
	for m := range s.traffic.Messages {
		if err := s.waitUntil(s.due(m)); err != nil {
			return err
		}
		if err := hand(m); err != nil {
			return err
		}
	}
	return nil
}

// due returns when a message is due.
func (s *sender) due(message int) time.Time { return s.begun.Add(s.traffic.Messages[message].Due) }

func (s *sender) waitUntil(at time.Time) error {
	wait := time.Until(at)
	if wait <= 0 {
		return s.ctx.Err()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// contentOf returns the content of some bytes of all messages; it is valid until the next call.
func (s *sender) contentOf(offset, size int64) []byte {
	if int64(cap(s.content)) < size {
		s.content = make([]byte, size)
	}
	s.content = s.content[:size]
	content.Fill(s.content, s.assignment.ContentSeed, offset)
	return s.content
}

// handedOver notes that a part was. The time is that just before: it may arrive before the call that hands it over returns.
func (s *sender) handedOver(message, part int, at time.Duration) {
	if s.messaging.rows == nil {
		return
	}
	_, size := s.traffic.Part(message, part)
	due := s.clock + s.traffic.Messages[message].Due
	s.messaging.rows.Add(s.followed.Number(), int64(message), int64(part), int64(due), int64(at), size)
}

func (s *sender) allHandedOver(message int, at time.Duration) {
	for part := range s.traffic.Parts(message) {
		s.handedOver(message, part, at)
	}
}

func (s *sender) sendDatagrams() error {
	var datagram []byte
	return s.eachAtItsTime(func(m int) error {
		for part := range s.traffic.Parts(m) {
			datagram = append(messages.AppendHeader(datagram[:0], m, part), s.contentOf(s.traffic.Part(m, part))...)
			at := s.surroundings.Clock()
			if err := s.connection.SendDatagram(datagram); err != nil {
				return err
			}
			s.handedOver(m, part, at)
		}
		return nil
	})
}

func (s *sender) sendStreams() error {
	return s.eachAtItsTime(func(m int) error {
		stream, err := s.connection.OpenUniStreamSync(s.ctx)
		if err != nil {
			return err
		}
		return s.sendMessage(m, stream)
	})
}

// sendMessage sends a message as the whole of a stream.
func (s *sender) sendMessage(m int, stream *quic.SendStream) error {
	at := s.surroundings.Clock()
	if err := s.write(m, stream); err != nil {
		return err
	}
	// Before quic-go packs what was written, so that the end of the stream goes with its last byte.
	if err := stream.Close(); err != nil {
		return err
	}
	s.allHandedOver(m, at)
	return nil
}

func (s *sender) sendReliably() error {
	stream, err := s.connection.OpenUniStreamSync(s.ctx)
	if err != nil {
		return err
	}
	last := len(s.traffic.Messages) - 1
	return s.eachAtItsTime(func(m int) error {
		if m == last {
			return s.sendMessage(m, stream)
		}
		at := s.surroundings.Clock()
		if err := s.write(m, stream); err != nil {
			return err
		}
		s.allHandedOver(m, at)
		return nil
	})
}

// write hands a message over at once, as far as flow control allows it: Write alone would wait until the most of it was sent, and
// the next message with it.
func (s *sender) write(m int, stream *quic.SendStream) error {
	message := s.traffic.Messages[m]
	whole := s.contentOf(message.Offset, message.Size)
	err := stream.TryWriteAll(whole)
	if errors.Is(err, quic.ErrWouldBlock) {
		_, err = stream.Write(whole)
	}
	return err
}

// sendBeforeDeadlines is sendStreams, but that streams are reset whose messages are too late.
func (s *sender) sendBeforeDeadlines() error {
	s.streams = make([]*quic.SendStream, len(s.traffic.Messages))
	var resetting sync.WaitGroup
	resetting.Go(s.resetLateOnes)
	err := s.eachAtItsTime(func(m int) error {
		stream, err := s.connection.OpenUniStreamSync(s.ctx)
		if err != nil {
			return err
		}
		if !s.mayStillBeSent(m, stream) {
			s.reset(stream)
			return nil
		}
		if err := s.sendMessage(m, stream); err != nil && !s.isLate(m) { // whoever is late was reset meanwhile
			return err
		}
		return nil
	})
	if err != nil {
		s.end(err)
	}
	resetting.Wait()
	return err
}

// lateFrom returns when nothing of a message may be sent any more.
func (s *sender) lateFrom(message int) time.Time { return s.due(message).Add(s.traffic.Deadline) }

func (s *sender) isLate(message int) bool { return !time.Now().Before(s.lateFrom(message)) }

// mayStillBeSent leaves a message's stream to resetLateOnes, unless it is too late for that.
func (s *sender) mayStillBeSent(message int, stream *quic.SendStream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isLate(message) {
		return false
	}
	s.streams[message] = stream
	return true
}

// reset ends a stream of which not all was acknowledged.
func (s *sender) reset(stream *quic.SendStream) {
	stream.CancelWrite(messageLate)
	s.messaging.reset.Add(1)
}

// resetLateOnes returns when no message can be late any more: they become so in their order.
func (s *sender) resetLateOnes() {
	for m := range s.traffic.Messages {
		if !s.awaitEndOf(m) {
			return
		}
		s.mu.Lock()
		stream := s.streams[m]
		s.streams[m] = nil
		s.mu.Unlock()
		if stream == nil {
			continue // its turn has not come
		}
		size := s.traffic.Messages[m].Size
		switch id := stream.StreamID(); {
		case !s.followed.Acknowledged(id, size):
			s.reset(stream)
		case !s.followed.Settled(id, size):
			stream.CancelWrite(messageLate) // of what was acknowledged, quic-go would send a lost copy once more
		}
		s.followed.Forget(stream.StreamID())
	}
}

// awaitEndOf waits until a message was acknowledged for good, or is late; false when all is over.
func (s *sender) awaitEndOf(message int) bool {
	timer := time.NewTimer(time.Until(s.lateFrom(message)))
	defer timer.Stop()
	for !s.isSettled(message) && !s.isLate(message) {
		select {
		case <-s.followed.Changed:
		case <-timer.C:
		case <-s.ctx.Done():
			return false
		}
	}
	return true
}

func (s *sender) isSettled(message int) bool {
	s.mu.Lock()
	stream := s.streams[message]
	s.mu.Unlock()
	return stream != nil && s.followed.Settled(stream.StreamID(), s.traffic.Messages[message].Size)
}
