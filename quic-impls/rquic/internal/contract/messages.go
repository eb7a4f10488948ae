package contract

import (
	"cmp"
	"fmt"
	"time"

	host "github.com/fecbench/fecbench/quic-impls/host-go"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/messages"
)

// Directions of messages.
const (
	directionUp   = "up"
	directionDown = "down"
)

const maxDeadlineMs = 1e9

func parseMessages(values host.Values) (*messages.Traffic, error) {
	t := &messages.Traffic{}
	var direction, delivery string
	if err := cmp.Or(
		values.Choice("direction", &direction, directionUp, directionDown),
		values.Choice("delivery", &delivery, messages.Deliveries...),
	); err != nil {
		return nil, err
	}
	t.Up, t.Delivery = direction == directionUp, messages.Delivery(delivery)
	if err := host.Integer(values, "part_bytes", &t.PartBytes, 1, messages.MaxPart); err != nil {
		return nil, err
	}
	if t.Delivery == messages.Deadline {
		var ms float64
		if err := values.Decode("deadline_ms", &ms); err != nil || !(ms > 0 && ms <= maxDeadlineMs) {
			return nil, values.Not("deadline_ms", fmt.Sprintf("a number above 0 and up to %v", maxDeadlineMs))
		}
		t.Deadline = time.Duration(ms * float64(time.Millisecond))
	}
	var err error
	if t.Messages, err = messages.ParseTimetable(values.Raw("timetable"), t.PartBytes); err != nil {
		return nil, fmt.Errorf("workload.timetable: %w", err)
	}
	return t, values.Only("name", "direction", "delivery", "deadline_ms", "part_bytes", "timetable")
}

// besidesDatagram is the room that quic-go leaves in a packet besides a datagram's payload: the first byte, the longest connection
// ID and the tag.
const besidesDatagram = 1 + 20 + 16

// fitMessages refuses messages that cannot be sent with an implementation's options.
func (a Assignment) fitMessages() error {
	t := a.Workload.Messages
	if a.Options.HTTP != "hq" {
		return host.Unsupported{What: fmt.Sprintf("workload.name: \"messages\" with http = %q", a.Options.HTTP)}
	}
	if most := int64(a.Options.PacketSize) - besidesDatagram - messages.Header; t.Delivery == messages.Datagram && t.PartBytes > most {
		return fmt.Errorf("workload.part_bytes: %d; a datagram in a packet of %d bytes takes at most %d of them",
			t.PartBytes, a.Options.PacketSize, most)
	}
	return nil
}

// ClientSends reports whether the content goes from the client to the server.
func (w Workload) ClientSends() bool {
	return w.Name == "upload" || w.Messages != nil && w.Messages.Up
}
