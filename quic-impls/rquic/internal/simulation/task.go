package simulation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/lane"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/lossylink"
)

// linkName is that of the one link that all pairs share.
const linkName = "internet"

// What a queue is.
const (
	droptail = "droptail"
	codel    = "codel"
)

// Task is a trial to be carried out, as quic-impls/README.md has it.
type Task struct {
	Version    int             `json:"version"`
	Number     int64           `json:"number"`
	Pairs      []Pair          `json:"pairs"`
	Links      map[string]Link `json:"links"`
	Completion string          `json:"completion"`
	TimeoutS   float64         `json:"timeout_s"`
	Seed       *uint64         `json:"seed"`
	Filling    *Filling        `json:"filling"`
	Processor  Processor       `json:"processor"`
	Capture    *string         `json:"capture"`
}

// Pair has the assignments of a client and its server.
type Pair struct {
	Client json.RawMessage `json:"client"`
	Server json.RawMessage `json:"server"`
}

// Link has both directions of a link.
type Link struct {
	Up   Direction `json:"up"`
	Down Direction `json:"down"`
}

// Direction has the settings of one direction of a link, and of the losses behind it.
type Direction struct {
	RateBPS      uint64    `json:"rate_bps"`
	DelayNS      int64     `json:"delay_ns"`
	QueueBytes   *uint64   `json:"queue_bytes"`
	QueuePackets *uint64   `json:"queue_packets"`
	QueueNS      *uint64   `json:"queue_ns"`
	Queue        string    `json:"queue"`
	Schedule     *Schedule `json:"schedule"`
	Jitter       *Jitter   `json:"jitter"`
	Reorder      bool      `json:"reorder"`
	OutageNS     *[2]int64 `json:"outage_ns"`
	Losses       Losses    `json:"losses"`
}

// Schedule is how a link's rate and delay change: steps of an end in ns, a rate, a delay and a burst at the end.
type Schedule struct {
	Steps    [][4]uint64 `json:"steps"`
	Repeat   string      `json:"repeat"`
	OffsetNS int64       `json:"offset_ns"`
}

// Jitter is noise of a link's delay.
type Jitter struct {
	Law    string `json:"law"`
	MeanNS int64  `json:"mean_ns"`
	Seed   uint64 `json:"seed"`
}

var jitterLaws = map[string]lane.JitterLaw{"uniform": lane.Uniform, "normal": lane.Normal, "pareto": lane.Pareto}

var repeats = map[string]lane.Repeat{"loop": lane.Loops, "hold": lane.Holds, "end": lane.Ends}

// Losses are a seed and thresholds or, with Pattern, a bitmap.
type Losses struct {
	Seed      uint64 `json:"seed"`
	LossGood  uint64 `json:"loss_good"`
	LossBad   uint64 `json:"loss_bad"`
	GoodToBad uint64 `json:"good_to_bad"`
	BadToGood uint64 `json:"bad_to_good"`
	GoodUS    uint64 `json:"good_us"`
	BadUS     uint64 `json:"bad_us"`

	Pattern *[]byte `json:"pattern"`
	Packets uint64  `json:"packets"`
	Repeats bool    `json:"repeats"`
	SlotNS  uint64  `json:"slot_ns"`
}

// Filling says when a link that the second pair fills is full, so that the first one begins.
type Filling struct {
	FullShare float64 `json:"full_share"`
	WindowS   float64 `json:"window_s"`
	IntervalS float64 `json:"interval_s"`
}

// Processor is the CPU time that each endpoint takes.
type Processor struct {
	HandshakeNS int64 `json:"handshake_ns"`
	DatagramNS  int64 `json:"datagram_ns"`
}

// parse reads a task. After an error, it has what could be read.
func parse(line []byte) (*Task, error) {
	task := &Task{}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(task); err != nil {
		return task, fmt.Errorf("not a task: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return task, errors.New("not a task: more than one JSON value in a line")
	}
	return task, task.check()
}

func (t *Task) check() error {
	link, known := t.Links[linkName]
	switch {
	case t.Version != 1:
		return fmt.Errorf("version: %d; this program knows version 1", t.Version)
	case len(t.Pairs) < 1 || len(t.Pairs) > 2:
		return fmt.Errorf("pairs: %d of them; 1 or 2 are simulated", len(t.Pairs))
	case !known || len(t.Links) != 1:
		return fmt.Errorf("links: one link is simulated, %q; there are %d", linkName, len(t.Links))
	case !(t.TimeoutS > 0 && t.TimeoutS <= 1e6):
		return fmt.Errorf("timeout_s: %v is not above 0 and up to 1000000", t.TimeoutS)
	case t.Seed == nil:
		return errors.New("seed: missing; without one, no trial is like another")
	case (t.Filling != nil) != (len(t.Pairs) == 2):
		return fmt.Errorf("filling: it is for two pairs, and has to be there for them; there are %d", len(t.Pairs))
	case t.Filling != nil && !(t.Filling.FullShare > 0 && t.Filling.WindowS >= 0 && t.Filling.IntervalS >= 1e-6):
		return fmt.Errorf("filling: %+v has a share or an interval that is not above 0, or a window below 0", *t.Filling)
	case t.Processor.HandshakeNS < 0 || t.Processor.DatagramNS < 0:
		return fmt.Errorf("processor: %+v is below 0", t.Processor)
	}
	return errors.Join(link.Up.check("up"), link.Down.check("down"))
}

func (d Direction) check(name string) error {
	if d.RateBPS == 0 {
		return fmt.Errorf("links.%s.%s.rate_bps: it is missing or 0", linkName, name)
	}
	if d.DelayNS < 0 {
		return fmt.Errorf("links.%s.%s.delay_ns: %d is below 0", linkName, name, d.DelayNS)
	}
	if d.Schedule == nil && (orNone(d.QueueBytes) > 0) == (orNone(d.QueuePackets) > 0) {
		return fmt.Errorf("links.%s.%s: one of queue_bytes and queue_packets has to be above 0", linkName, name)
	}
	if s := d.Schedule; s != nil {
		if _, known := repeats[s.Repeat]; !known || s.OffsetNS < 0 {
			return fmt.Errorf("links.%s.%s.schedule: repeat %q is not loop, hold or end, or the offset is below 0", linkName, name, s.Repeat)
		}
	}
	if j := d.Jitter; j != nil {
		if _, known := jitterLaws[j.Law]; !known || j.MeanNS < 1 || j.MeanNS > 10_000_000_000 {
			return fmt.Errorf("links.%s.%s.jitter: law %q is not uniform, normal or pareto, or the mean is not 1 to 10000000000 ns", linkName, name, j.Law)
		}
	}
	if d.Queue != "" && d.Queue != droptail && d.Queue != codel {
		return fmt.Errorf("links.%s.%s.queue: %q is neither %q nor %q", linkName, name, d.Queue, droptail, codel)
	}
	if o := d.OutageNS; o != nil && !(0 <= o[0] && o[0] < o[1]) {
		return fmt.Errorf("links.%s.%s.outage_ns: %v; the first is the smaller, and not below 0", linkName, name, *o)
	}
	return nil
}

func (d Direction) settings() lossylink.Settings {
	s := lane.Settings{
		RateBPS: d.RateBPS, Delay: time.Duration(d.DelayNS), QueueBytes: orNone(d.QueueBytes), QueuePackets: orNone(d.QueuePackets),
		QueueTime: time.Duration(orNone(d.QueueNS)), CoDel: d.Queue == codel,
		Reorder: d.Reorder,
	}
	if j := d.Jitter; j != nil {
		s.Jitter = lane.Jitter{Law: jitterLaws[j.Law], Mean: time.Duration(j.MeanNS), Seed: j.Seed}
	}
	if d.Schedule != nil {
		s.Schedule = &lane.Schedule{Repeat: repeats[d.Schedule.Repeat], Offset: time.Duration(d.Schedule.OffsetNS)}
		for _, step := range d.Schedule.Steps {
			s.Schedule.Steps = append(s.Schedule.Steps, lane.Step{EndNS: step[0], RateBPS: step[1], DelayNS: step[2], Burst: step[3]})
		}
	}
	if l := d.Losses; l.Pattern != nil {
		s.Pattern = &lane.Pattern{Bits: *l.Pattern, Packets: l.Packets, Repeats: l.Repeats, SlotNS: l.SlotNS, Seed: l.Seed}
	} else {
		s.Losses = lane.Losses{Seed: l.Seed, LossGood: l.LossGood, LossBad: l.LossBad, GoodToBad: l.GoodToBad, BadToGood: l.BadToGood, GoodUS: l.GoodUS, BadUS: l.BadUS}
	}
	if o := d.OutageNS; o != nil {
		s.Outage = &lane.Outage{From: time.Duration(o[0]), To: time.Duration(o[1])}
	}
	return lossylink.Settings{Settings: s}
}

func orNone(limit *uint64) uint64 {
	if limit == nil {
		return 0
	}
	return *limit
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
