// Package messages is the traffic of the workload "messages": when each message is due, how it is cut into parts, the
// header of a part in a datagram, and which of them have come. It knows nothing of QUIC.
package messages

import (
	"encoding/json"
	"fmt"
	"time"
)

// Limits of the traffic; the contract has the same.
const (
	MaxMessages = 100_000
	MaxSize     = 16 << 20 // of a message, in bytes
	MaxParts    = 1 << 16  // of a message
	MaxPart     = 1400     // bytes
)

// maxDue is the last time at which a message may be due: more than any deadline.
const maxDue = 1_000_000 * time.Second

// Delivery is a way to send messages.
type Delivery string

// The deliveries of messages.
const (
	Datagram Delivery = "datagram" // a datagram for each part
	Deadline Delivery = "deadline" // a stream for each message, which is reset when it is too late
	Stream   Delivery = "stream"   // a stream for each message
	Reliable Delivery = "reliable" // one stream for all
)

// Deliveries are the names of all.
var Deliveries = []string{string(Datagram), string(Deadline), string(Stream), string(Reliable)}

// Traffic is the traffic of one end to the other.
type Traffic struct {
	Up        bool // from the client
	Delivery  Delivery
	Deadline  time.Duration // of Deadline: how late a message may be
	PartBytes int64
	Messages  []Message
}

// Message is due some time after the sender began. Its content begins in that of all messages at an offset.
type Message struct {
	Due          time.Duration
	Offset, Size int64
}

// ParseTimetable reads [[µs since the beginning, bytes], …], in the order of time, of messages in parts of some bytes.
func ParseTimetable(text []byte, partBytes int64) ([]Message, error) {
	var rows [][]int64
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, fmt.Errorf("not a list of pairs of integers: %w", err)
	}
	if len(rows) < 1 || len(rows) > MaxMessages {
		return nil, fmt.Errorf("%d messages; there are 1 to %d", len(rows), MaxMessages)
	}
	timetable := make([]Message, len(rows))
	var before Message
	for i, row := range rows {
		if len(row) != 2 {
			return nil, fmt.Errorf("[%d]: %d numbers; a message has two, µs and bytes", i, len(row))
		}
		if least, most := before.Due.Microseconds(), maxDue.Microseconds(); row[0] < least || row[0] > most {
			return nil, fmt.Errorf("[%d]: due at %d µs, which is not in %d to %d", i, row[0], least, most)
		}
		if most := min(MaxSize, MaxParts*partBytes); row[1] < 1 || row[1] > most {
			return nil, fmt.Errorf("[%d]: %d bytes, which are not in 1 to %d", i, row[1], most)
		}
		before = Message{Due: time.Duration(row[0]) * time.Microsecond, Offset: before.Offset + before.Size, Size: row[1]}
		timetable[i] = before
	}
	return timetable, nil
}

// Parts is the number of parts of a message.
func (t *Traffic) Parts(message int) int {
	return int((t.Messages[message].Size + t.PartBytes - 1) / t.PartBytes)
}

// Part returns where a part's content begins in that of all messages, and how many bytes it has.
func (t *Traffic) Part(message, part int) (offset, size int64) {
	m := t.Messages[message]
	within := int64(part) * t.PartBytes
	return m.Offset + within, min(t.PartBytes, m.Size-within)
}
