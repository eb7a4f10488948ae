package contract

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/messages"
)

// Directions of messages.
const (
	directionUp   = "up"
	directionDown = "down"
)

const maxDeadlineMs = 1e9

func parseMessages(values map[string]json.RawMessage) (*messages.Traffic, error) {
	t := &messages.Traffic{}
	var direction, delivery string
	if err := cmp.Or(
		word(values, "direction", &direction, directionUp, directionDown),
		word(values, "delivery", &delivery, messages.Deliveries...),
	); err != nil {
		return nil, err
	}
	t.Up, t.Delivery = direction == directionUp, messages.Delivery(delivery)
	if err := decode(values["part_bytes"], &t.PartBytes); err != nil || t.PartBytes < 1 || t.PartBytes > messages.MaxPart {
		return nil, fmt.Errorf("workload.part_bytes: %s is not an integer in 1 to %d", raw(values["part_bytes"]), messages.MaxPart)
	}
	if t.Delivery == messages.Deadline {
		var ms float64
		if err := decode(values["deadline_ms"], &ms); err != nil || !(ms > 0 && ms <= maxDeadlineMs) {
			return nil, fmt.Errorf("workload.deadline_ms: %s is not a number above 0 and up to %v", raw(values["deadline_ms"]), maxDeadlineMs)
		}
		t.Deadline = time.Duration(ms * float64(time.Millisecond))
	}
	var err error
	if t.Messages, err = messages.ParseTimetable(values["timetable"], t.PartBytes); err != nil {
		return nil, fmt.Errorf("workload.timetable: %w", err)
	}
	return t, unknown("workload", values, "name", "direction", "delivery", "deadline_ms", "part_bytes", "timetable")
}

// word reads a string of the workload.
func word(values map[string]json.RawMessage, name string, value *string, choices ...string) error {
	if err := decode(values[name], value); err != nil {
		return fmt.Errorf("workload.%s: %s is not one of %s", name, raw(values[name]), strings.Join(choices, ", "))
	}
	return oneOf("workload."+name, *value, choices...)
}

// besidesDatagram is what quic-go allows for in a packet besides a datagram's payload: the first byte, the longest
// connection ID and the tag.
const besidesDatagram = 1 + 20 + 16

// fitMessages refuses messages that cannot be sent with an implementation's options.
func (a Assignment) fitMessages() error {
	t := a.Workload.Messages
	if a.Options.HTTP != "hq" {
		return Unsupported{fmt.Sprintf("workload.name: \"messages\" with http = %q", a.Options.HTTP)}
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
