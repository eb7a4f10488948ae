package contract

import (
	"errors"
	"strings"
	"testing"
	"time"

	host "github.com/fecbench/fecbench/quic-impls/host-go"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/messages"
)

type changes = map[string]any

// withMessages is an assignment of messages with other values of the workload and of the options; nil removes a key.
func withMessages(workload, options changes) map[string]any {
	document := good("client")
	document["workload"] = map[string]any{
		"name": "messages", "direction": "down", "delivery": "deadline", "deadline_ms": 100.5, "part_bytes": 1000,
		"timetable": [][]int64{{0, 8000}, {33333, 2500}},
	}
	for key, of := range map[string]changes{"workload": workload, "options": options} {
		for name, value := range of {
			document[key].(map[string]any)[name] = value
			if value == nil {
				delete(document[key].(map[string]any), name)
			}
		}
	}
	return document
}

func TestMessagesAreRead(t *testing.T) {
	a, err := parse(t, withMessages(nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	traffic := a.Workload.Messages
	if traffic.Up || traffic.Delivery != messages.Deadline || traffic.Deadline != 100500*time.Microsecond || traffic.PartBytes != 1000 ||
		len(traffic.Messages) != 2 || traffic.Messages[1].Offset != 8000 {
		t.Errorf("%+v", traffic)
	}
	if a.Workload.ClientSends() {
		t.Error("the client sends what goes down")
	}
}

func TestADeadlineCountsForItsDeliveryAlone(t *testing.T) {
	for _, delivery := range []string{"datagram", "stream", "reliable"} {
		a, err := parse(t, withMessages(changes{"delivery": delivery, "deadline_ms": nil, "direction": "up"}, nil))
		if err != nil || !a.Workload.ClientSends() {
			t.Errorf("%s: %v", delivery, err)
		}
	}
}

func TestMessagesThatCannotBeAreRefusedWithOneLineThatNamesTheKey(t *testing.T) {
	for _, bad := range []struct {
		workload, options changes
		naming            string
	}{
		{changes{"direction": "sideways"}, nil, `workload.direction: "sideways" is not one of up, down`},
		{changes{"direction": nil}, nil, "workload.direction: nothing is not one of up, down"},
		{changes{"delivery": "post"}, nil, `workload.delivery: "post" is not one of datagram, deadline, stream, reliable`},
		{changes{"deadline_ms": 0}, nil, "workload.deadline_ms: 0 is not"},
		{changes{"deadline_ms": nil}, nil, "workload.deadline_ms: nothing is not"},
		{changes{"part_bytes": 0}, nil, "workload.part_bytes: 0 is not an integer in 1 to 1400"},
		{changes{"part_bytes": 1401}, nil, "workload.part_bytes: 1401 is not"},
		{changes{"part_bytes": 10.5}, nil, "workload.part_bytes: 10.5 is not"},
		{changes{"timetable": nil}, nil, "workload.timetable: "},
		{changes{"timetable": [][]int64{{5, 1}, {4, 1}}}, nil, "workload.timetable: [1]: due at 4"},
		{changes{"rate_hz": 30}, nil, "workload.rate_hz: unknown"},
		{changes{"delivery": "datagram", "part_bytes": 1210}, nil, "workload.part_bytes: 1210; a datagram in a packet of 1252 bytes takes at most 1209"},
	} {
		_, err := parse(t, withMessages(bad.workload, bad.options))
		if err == nil || !strings.Contains(err.Error(), bad.naming) || strings.Contains(err.Error(), "\n") || errors.As(err, &host.Unsupported{}) {
			t.Errorf("%v, which should name %q", err, bad.naming)
		}
	}
	if _, err := parse(t, withMessages(changes{"delivery": "datagram", "part_bytes": 1209}, nil)); err != nil {
		t.Error(err)
	}
	if _, err := parse(t, withMessages(changes{"delivery": "stream", "part_bytes": 1400}, nil)); err != nil {
		t.Error(err)
	}
}

func TestMessagesThatThisEndpointDoesNotSendAreUnsupported(t *testing.T) {
	for _, c := range []struct{ workload, options changes }{
		{nil, changes{"http": "h3"}},
		{changes{"direction": "up"}, changes{"encoder": "server"}},
	} {
		if _, err := parse(t, withMessages(c.workload, c.options)); !errors.As(err, &host.Unsupported{}) {
			t.Errorf("%v: %v", c, err)
		}
	}
	if _, err := parse(t, withMessages(changes{"direction": "up"}, changes{"encoder": "server", "scheme": "none"})); err != nil {
		t.Error(err)
	}
}
