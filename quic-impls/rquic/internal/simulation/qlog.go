package simulation

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlogwriter"
)

// trace keeps the events of an endpoint's connections until the trial is over. Only then are they written down: a writer
// that ran meanwhile would be one goroutine more, and the trial another one than without it.
type trace struct {
	mu          sync.Mutex
	connections []*connectionTrace
}

// connectionTrace implements qlogwriter.Trace, and qlogwriter.Recorder.
type connectionTrace struct {
	isClient bool
	id       quic.ConnectionID
	begun    time.Time

	mu     sync.Mutex
	events []timedEvent
}

type timedEvent struct {
	at    time.Time
	event qlogwriter.Event
}

func (t *trace) open(_ context.Context, isClient bool, id quic.ConnectionID) qlogwriter.Trace {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &connectionTrace{isClient: isClient, id: id, begun: time.Now()}
	t.connections = append(t.connections, c)
	return c
}

func (c *connectionTrace) AddProducer() qlogwriter.Recorder { return c }

func (c *connectionTrace) RecordEvent(event qlogwriter.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, timedEvent{time.Now(), event})
}

func (c *connectionTrace) Close() error { return nil }

// write makes the qlog files, named as quic-go names them.
func (t *trace) write(test *testing.T, folder string) error {
	for _, c := range t.connections {
		if err := c.write(test, folder); err != nil {
			return fmt.Errorf("qlog: %w", err)
		}
	}
	return nil
}

// write makes quic-go write the events, each at its time, in a bubble of its own.
func (c *connectionTrace) write(test *testing.T, folder string) error {
	role := "server"
	if c.isClient {
		role = "client"
	}
	file, err := os.Create(filepath.Join(folder, fmt.Sprintf("%s_%s.sqlog", c.id, role)))
	if err != nil {
		return err
	}
	out := bufio.NewWriter(file)
	synctest.Test(test, func(*testing.T) {
		time.Sleep(time.Until(c.begun))
		log := qlogwriter.NewConnectionFileSeq(unclosed{out}, c.isClient, c.id)
		go log.Run()
		producer := log.AddProducer()
		for _, e := range c.events {
			time.Sleep(time.Until(e.at))
			producer.RecordEvent(e.event)
		}
		err = producer.Close()
	})
	return cmp.Or(err, out.Flush(), file.Close())
}

// unclosed is a writer whose owner flushes and closes it.
type unclosed struct{ *bufio.Writer }

func (unclosed) Close() error { return nil }
