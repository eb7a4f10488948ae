package simulation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// linkName is the name of the one link that all pairs share.
const linkName = "internet"

// version of the contract with simulators.
const version = 2

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

// Link has both directions of a link, as lanes read them.
type Link struct {
	Up   string `json:"up"`
	Down string `json:"down"`
}

// Filling is the condition for a full link: the second pair fills it, and then the first one begins.
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

// parse reads a task. After an error, it has the parts that could be read.
func parse(line []byte) (*Task, error) {
	task := &Task{}
	// A task of another version has other fields, too: its version is wrong, not these.
	var of struct {
		Version *int  `json:"version"`
		Number  int64 `json:"number"`
	}
	if err := json.Unmarshal(line, &of); err == nil && of.Version != nil && *of.Version != version {
		task.Number = of.Number
		return task, fmt.Errorf("version: %d; this program knows version %d", *of.Version, version)
	}
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
	_, known := t.Links[linkName]
	switch {
	case t.Version != version:
		return fmt.Errorf("version: it is missing; this program knows version %d", version)
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
	return nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
