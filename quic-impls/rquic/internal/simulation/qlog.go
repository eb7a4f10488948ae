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
	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"
)

// trace hears of all events of an endpoint's connections. The events that are kept are written when the trial is over: a
// writer that ran meanwhile would be one goroutine more, and the trial another one than without it.
type trace struct {
	handshake time.Duration // that the processor takes for TLS
	kept      bool

	mu          sync.Mutex
	connections []*connectionTrace
}

// connectionTrace implements qlogwriter.Trace, and qlogwriter.Recorder.
type connectionTrace struct {
	trace    *trace
	isClient bool
	id       quic.ConnectionID
	begun    time.Time

	mu      sync.Mutex
	events  []timedEvent
	hasKeys bool // of 1-RTT packets
}

type timedEvent struct {
	at    time.Time
	event qlogwriter.Event
}

func (t *trace) open(_ context.Context, isClient bool, id quic.ConnectionID) qlogwriter.Trace {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &connectionTrace{trace: t, isClient: isClient, id: id, begun: time.Now()}
	t.connections = append(t.connections, c)
	return c
}

func (c *connectionTrace) AddProducer() qlogwriter.Recorder { return c }

// Takes implements qlogwriter.Selective.
func (c *connectionTrace) Takes(qlogwriter.Kind) bool { return c.trace.kept }

func (c *connectionTrace) RecordEvent(event qlogwriter.Event) {
	if e, ok := event.(qlog.KeyUpdated); ok {
		c.takeKeys(e)
	}
	if !c.trace.kept {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, timedEvent{time.Now(), event})
}

// takeKeys lets the connection's goroutine, which records the event, take its time for TLS when it has the first key of
// 1-RTT packets: a server then has made its signature, a client verified it, and nothing of it has been sent.
func (c *connectionTrace) takeKeys(e qlog.KeyUpdated) {
	if c.hasKeys || e.KeyType != qlog.KeyTypeServer1RTT && e.KeyType != qlog.KeyTypeClient1RTT {
		return
	}
	c.hasKeys = true
	time.Sleep(c.trace.handshake)
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
