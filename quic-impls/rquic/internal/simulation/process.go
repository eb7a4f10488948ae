package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"slices"
	"strings"
	"time"

	host "github.com/fecbench/fecbench/quic-impls/host-go"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/contract"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/endpoint"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/lossylink"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/series"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/socket"
)

// errInterrupted is the reason of an end that was asked for by SIGINT, as the real program gives it.
var errInterrupted = errors.New("interrupt signal received")

// stderrTail is the number of bytes of an endpoint's standard error that are kept, as in an emulated trial.
const stderrTail = 4096

// process is the counterpart of a program in an emulated trial: an endpoint with its messages, standard error and exit code.
type process struct {
	name       string
	assignment contract.Assignment
	refusal    error // of its assignment
	failure    error // of the files that it needs
	trace      *trace
	keys       bytes.Buffer

	surroundings endpoint.Surroundings
	recording    *series.Recording
	interrupt    context.CancelCauseFunc // nil: it was not started
	stderr       bytes.Buffer

	lines chan string       // its standard input
	said  []json.RawMessage // what it says of objects, and the harness has not heard
	asks  bool              // it waits to be told what to read at first
	due   []*time.Timer     // of the lines to come
	wake  func()            // the harness is to be asked

	ready, ended chan struct{} // closed when it is, and when it has
	wasReady     bool
	metrics      json.RawMessage
	reportedAt   time.Time
	exitCode     int
}

// start begins to run it at an end of the link.
func (p *process) start(end *lossylink.End) {
	p.ready, p.ended = make(chan struct{}), make(chan struct{})
	if p.refusal == nil && p.assignment.AsksAsTold() {
		p.lines, p.asks = make(chan string, 1), true
		p.surroundings.Lines = p.lines
		p.wake()
	}
	ctx, interrupt := context.WithCancelCause(context.Background())
	p.interrupt = interrupt
	go func() {
		defer close(p.ended)
		defer interrupt(nil)
		p.exitCode = p.run(ctx, end)
	}()
}

func (p *process) run(ctx context.Context, end *lossylink.End) int {
	if p.refusal != nil {
		fmt.Fprintf(&p.stderr, "rquic: %v\n", p.refusal)
		return host.CodeOfInput(p.refusal)
	}
	err := p.failure
	if err == nil {
		p.recording, err = endpoint.RunOver(ctx, &socket.Socket{PacketConn: end}, p.assignment, p.surroundings, p)
	}
	return p.exitCodeAfter(err)
}

func (p *process) exitCodeAfter(err error) int {
	if err == nil {
		return host.ExitSuccess
	}
	fmt.Fprintf(&p.stderr, "rquic: %s: %v\n", p.assignment.Role, err)
	return host.ExitFailure
}

// Write takes an event of the endpoint: its standard output.
func (p *process) Write(event []byte) (int, error) {
	var e struct {
		Event   string
		Metrics json.RawMessage
	}
	if err := json.Unmarshal(event, &e); err != nil {
		return 0, err
	}
	if e.Event == "object" || e.Event == "progress" || e.Event == "stopped" {
		p.said = append(p.said, slices.Clone(event))
		p.wake()
		return len(event), nil
	}
	if e.Event == "ready" {
		p.wasReady = true
		close(p.ready)
		return len(event), nil
	}
	p.metrics, p.reportedAt = e.Metrics, time.Now()
	return len(event), nil
}

func (p *process) started() bool { return p.interrupt != nil }

func (p *process) hasEnded() bool { return p.started() && isClosed(p.ended) }

// end asks it to end, and waits until it has.
func (p *process) end() {
	if p.started() {
		p.interrupt(errInterrupted)
		<-p.ended
	}
}

// outcome returns how it ended, which it must have.
func (p *process) outcome() Ended {
	stderr := p.stderr.Bytes()
	stderr = stderr[max(0, len(stderr)-stderrTail):]
	return Ended{p.wasReady, p.exitCode, p.metrics, strings.ToValidUTF8(string(stderr), "�")}
}

func (p *process) log() *log.Logger { return log.New(&p.stderr, "rquic: ", 0) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
