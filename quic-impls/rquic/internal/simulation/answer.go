package simulation

import (
	"encoding/json"
	"fmt"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/lane"
)

// Answer is the outcome of a trial, as in quic-impls/README.md.
type Answer struct {
	Number           int64              `json:"number"`
	Endpoints        map[string]Ended   `json:"endpoints"` // those that were started
	TimedOut         bool               `json:"timed_out"`
	BackgroundLasted bool               `json:"background_lasted"`
	Competition      *Competition       `json:"competition"`
	Links            map[string]Reports `json:"links"`
	ClientS          *float64           `json:"client_s"`
	VirtualS         float64            `json:"virtual_s"`
}

// Refusal is the answer to a task that cannot be carried out.
type Refusal struct {
	Number int64  `json:"number"`
	Error  string `json:"error"`
}

// Disturbance is the answer to a task whose trial isn't the one that was asked for, by the simulator's own doing.
type Disturbance struct {
	Number  int64  `json:"number"`
	Invalid string `json:"invalid"`
}

// Ended is the end of an endpoint.
type Ended struct {
	Ready    bool            `json:"ready"`
	ExitCode int             `json:"exit_code"`
	Metrics  json.RawMessage `json:"metrics"`
	Stderr   string          `json:"stderr"`
}

// Competition is the measurements of two transfers that competed.
type Competition struct {
	FillingS       float64  `json:"filling_s"`
	ForegroundMbps *float64 `json:"foreground_mbps"`
	BackgroundMbps *float64 `json:"background_mbps"`
}

// Reports has those of both directions of a link.
type Reports struct {
	Up   Report `json:"up"`
	Down Report `json:"down"`
}

// Report has the counters of a direction, and the verdicts of what left it.
type Report struct {
	FramesIn        uint64            `json:"frames_in"`
	BytesIn         uint64            `json:"bytes_in"`
	FramesOut       uint64            `json:"frames_out"`
	BytesOut        uint64            `json:"bytes_out"`
	QueueDropped    uint64            `json:"queue_dropped"`
	OversizeDropped uint64            `json:"oversize_dropped"`
	InFlight        uint64            `json:"in_flight"`
	MaxQueueBytes   uint64            `json:"max_queue_bytes"`
	MaxQueuePackets uint64            `json:"max_queue_packets"`
	Dropped         uint64            `json:"dropped"`
	OutageDropped   uint64            `json:"outage_dropped"`
	Counted         map[string]uint64 `json:"counted,omitempty"` // of effects that most links lack
	Conserved       bool              `json:"conserved"`
	Packets         uint64            `json:"packets"` // that were judged; the bitmap may have fewer
	Bitmap          []byte            `json:"bitmap"`
	Arrivals        []byte            `json:"arrivals,omitempty"` // of its packets, 8 bytes each: ns since the first; where losses follow from it
	Times           string            `json:"times"`              // a hash of when packets entered and left, in hexadecimal
}

func reportOf(l *lane.Lane) Report {
	r := l.Report()
	bitmap, _ := l.Verdicts()
	return Report{
		FramesIn: r.FramesIn, BytesIn: r.BytesIn, FramesOut: r.FramesOut, BytesOut: r.BytesOut,
		QueueDropped: r.QueueDropped, OversizeDropped: r.OversizeDropped, InFlight: r.InFlight,
		MaxQueueBytes: r.MaxQueueBytes, MaxQueuePackets: r.MaxQueuePackets,
		Dropped: r.Dropped, OutageDropped: r.OutageDropped, Counted: l.Counted(), Conserved: r.Conserved, Packets: r.FramesOut, Bitmap: bitmap, Arrivals: l.Arrivals(),
		Times: fmt.Sprintf("%016x", l.Times()),
	}
}
