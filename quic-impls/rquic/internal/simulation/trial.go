package simulation

import (
	"cmp"
	"context"
	"crypto/cipher"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/contract"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/lane"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/lossylink"
)

// late is the delay after an instant with which the trial looks at the endpoints' actions at that instant.
const late = time.Nanosecond

// pair is a client and its server.
type pair struct{ client, server *process }

// trial is a running trial.
type trial struct {
	task       *Task
	pairs      []pair
	foreground pair
	background *pair // nil: there is none

	link     *lossylink.Link
	ends     map[*process]*lossylink.End
	captures []*lane.Capture
	begun    time.Time
	answer   Answer
	// unanswered is the reason for which the harness could not be asked, if it could not.
	unanswered error
}

// newTrial reads all that the trial needs: no file is opened while it runs.
func (s *Simulator) newTrial(task *Task) (*trial, error) {
	x := &trial{task: task, ends: map[*process]*lossylink.End{}, answer: Answer{BackgroundLasted: true}}
	for number, assigned := range task.Pairs {
		prefix := []string{"", "background_"}[number]
		client, err := s.newProcess(prefix+"client", assigned.Client)
		if err != nil {
			return nil, err
		}
		server, err := s.newProcess(prefix+"server", assigned.Server)
		if err != nil {
			return nil, err
		}
		x.pairs = append(x.pairs, pair{client, server})
	}
	x.foreground = x.pairs[0]
	if len(x.pairs) > 1 {
		x.background = &x.pairs[1]
	}
	return x, nil
}

// newProcess has an error when the task is at fault; the endpoint's own fault is kept until it is started.
func (s *Simulator) newProcess(name string, assigned json.RawMessage) (*process, error) {
	p := &process{name: name}
	if p.assignment, p.refusal = contract.Parse(assigned); p.refusal != nil {
		return p, nil
	}
	found := s.wallet.credentials(p.assignment)
	p.failure, p.surroundings.Credentials, p.surroundings.Log = found.failure, found.credentials, p.log()
	return p, found.refusal
}

// carryOut runs a trial in a bubble of its own.
func (s *Simulator) carryOut(t *testing.T, task *Task) (Answer, error) {
	x, err := s.newTrial(task)
	if err != nil {
		return Answer{}, err
	}
	x.observe()
	cryptotest.SetGlobalRandom(t, *task.Seed)
	quic.ProtectPacketsWith(x.protection())
	synctest.Test(t, func(t *testing.T) {
		x.begun = time.Now()
		x.shareClock()
		if err = x.connect(s); err == nil {
			err = x.capture()
		}
		if err == nil {
			x.run()
		}
	})
	if err = cmp.Or(err, x.unanswered); err != nil {
		return Answer{}, err
	}
	for _, c := range x.captures {
		if err := c.Close(); err != nil {
			return Answer{}, err
		}
	}
	x.leave(t)
	x.conclude(s)
	return x.answer, nil
}

// shareClock lets the time of all endpoints begin with the trial.
func (x *trial) shareClock() {
	for _, p := range x.pairs {
		for _, process := range []*process{p.client, p.server} {
			process.surroundings.Clock = func() time.Duration { return time.Since(x.begun) }
		}
	}
}

// connect makes the link and the ends of all pairs.
func (x *trial) connect(s *Simulator) (err error) {
	link := x.task.Links[linkName]
	x.link, err = lossylink.New(lossylink.Settings{Text: link.Up}, lossylink.Settings{Text: link.Down}, s.up, s.down)
	if err != nil {
		return fmt.Errorf("links.%s.%w", linkName, err)
	}
	x.link.AtRest = func(carried uint64) {
		s.memory.atRest(carried)
		if x.unanswered == nil {
			x.unanswered = x.converse(s.harness)
		}
		if x.unanswered != nil {
			x.foreground.client.interrupt(x.unanswered)
		}
	}
	x.foreground.client.wake = x.link.Wake
	for number, p := range x.pairs {
		server := net.UDPAddrFromAddrPort(p.server.assignment.Address)
		client := &net.UDPAddr{IP: net.IPv4(10, 0, 1, byte(2+number)).To4(), Port: 50000}
		if p.server.assignment.Address.Addr().Is6() {
			client.IP = net.ParseIP(fmt.Sprintf("fd00:fec:a00:1::%d", 2+number))
		}
		x.ends[p.client], x.ends[p.server] = x.link.Connect(client, server, time.Duration(x.task.Processor.DatagramNS))
	}
	return nil
}

// run does what runners/trial/transfer.py does in an emulated trial.
func (x *trial) run() {
	ctx, stop := context.WithCancel(context.Background())
	carried := make(chan struct{})
	go func() {
		x.link.Run(ctx)
		close(carried)
	}()
	if x.serve() {
		x.transfer()
	}
	for _, p := range x.pairs { // a server that is ended serves nobody any more
		p.client.end()
		p.server.end()
	}
	x.answer.VirtualS = time.Since(x.begun).Seconds()
	stop()
	<-carried
}

// serve starts the servers, and reports whether all are ready.
func (x *trial) serve() bool {
	for _, p := range x.pairs {
		x.start(p.server)
	}
	ready := true
	for _, p := range x.pairs {
		select {
		case <-p.server.ready:
		case <-p.server.ended:
			ready = false
		}
	}
	return ready
}

func (x *trial) start(p *process) { p.start(x.ends[p]) }

// transfer has the measured transfer, beside that of the second pair if there is one.
func (x *trial) transfer() {
	deadline := time.Now().Add(seconds(x.task.TimeoutS))
	if x.background != nil && !x.fill(deadline) {
		return
	}
	client := x.foreground.client
	begun, before := time.Now(), x.receivedBytes()
	x.link.Start()
	client.assignment.Deadline = min(client.assignment.Deadline, deadline.Sub(begun))
	x.start(client)
	ended := within(deadline, client.ended)
	lasted := time.Since(begun)
	if !ended {
		lasted = deadline.Sub(begun)
	}
	x.answer.TimedOut = !ended || client.exitCode != 0 && !begun.Add(lasted).Before(deadline)
	reported := lasted.Seconds()
	if client.metrics != nil {
		reported = client.reportedAt.Sub(begun).Seconds()
	}
	x.answer.ClientS = &reported
	if x.background == nil {
		return
	}
	x.answer.BackgroundLasted = !x.background.client.hasEnded()
	mbps := make([]float64, len(x.pairs))
	for i, received := range x.receivedBytes() {
		mbps[i] = 8e-6 * float64(received-before[i]) / lasted.Seconds()
	}
	x.answer.Competition.ForegroundMbps, x.answer.Competition.BackgroundMbps = &mbps[0], &mbps[1]
}

// fill starts the background's client, and reports whether it has filled the link before it ended or the deadline passed.
func (x *trial) fill(deadline time.Time) bool {
	begun, client := time.Now(), x.background.client
	x.link.BeginFilling(x.task.Filling.FullShare, seconds(x.task.Filling.WindowS))
	x.start(client)
	for step := 1; ; step++ {
		look := begun.Add(time.Duration(step) * seconds(x.task.Filling.IntervalS))
		if within(look, client.ended) || look.After(deadline) {
			break
		}
		if x.link.IsFull(look.Sub(begun)) {
			x.answer.Competition = &Competition{FillingS: look.Sub(begun).Seconds()}
			return true
		}
	}
	x.answer.BackgroundLasted = !client.hasEnded()
	x.answer.TimedOut = !client.hasEnded() || client.exitCode != 0 && !time.Now().Before(deadline)
	return false
}

// receivedBytes returns the bytes that each client's host has received.
func (x *trial) receivedBytes() (bytes []uint64) {
	for _, p := range x.pairs {
		bytes = append(bytes, x.ends[p.client].ReceivedBytes)
	}
	return bytes
}

// within waits until a channel is closed, and reports whether it was at a time.
func within(until time.Time, c <-chan struct{}) bool {
	timer := time.NewTimer(time.Until(until) + late)
	defer timer.Stop()
	select {
	case <-c:
		return true
	case <-timer.C:
		return isClosed(c)
	}
}

// capture records the datagrams of all ends, if the task asks for it.
func (x *trial) capture() error {
	if x.task.Capture == nil {
		return nil
	}
	for number, p := range x.pairs {
		folder := filepath.Join(*x.task.Capture, []string{"", "background"}[number])
		if err := os.MkdirAll(folder, 0o777); err != nil {
			return fmt.Errorf("capture: %w", err)
		}
		client, server := x.ends[p.client], x.ends[p.server]
		for name, end := range map[string]*lossylink.End{"client": client, "server": server} {
			c, err := lane.OpenCapture(filepath.Join(folder, name+".pcapng"), x.begun)
			if err != nil {
				return err
			}
			x.captures = append(x.captures, c)
			own, peer := end.Address(), end.Peer().Address()
			end.Sent = func(at time.Duration, datagram []byte) { c.Packet(at, own, peer, datagram) }
			end.Received = func(at time.Duration, datagram []byte) { c.Packet(at, peer, own, datagram) }
		}
	}
	return nil
}

// observe hears of what happens in the endpoints, and keeps it if the task asks for it.
func (x *trial) observe() {
	handshake, kept := time.Duration(x.task.Processor.HandshakeNS), x.task.Capture != nil
	for _, p := range x.pairs {
		for _, process := range []*process{p.client, p.server} {
			process.trace = &trace{handshake: handshake, kept: kept}
			process.surroundings.Qlog, process.surroundings.SparesEvents = process.trace.open, true
			if kept {
				process.surroundings.KeyLog = &process.keys
			}
		}
	}
}

// protection makes what seals packets, which others have to be able to open where they are kept: nil is AES-GCM.
func (x *trial) protection() func(key []byte) cipher.AEAD {
	if x.task.Capture != nil {
		return nil
	}
	return newSeal
}

// leave writes the files that the endpoints leave. A file that cannot be written is the endpoint's failure.
func (x *trial) leave(t *testing.T) {
	for _, p := range x.pairs {
		for _, process := range []*process{p.client, p.server} {
			if err := process.leave(t); err != nil {
				process.exitCode = process.exitCodeAfter(err)
			}
		}
	}
}

// leave writes the files of an endpoint into its log folder.
func (p *process) leave(t *testing.T) error {
	if p.recording != nil {
		if err := p.recording.Write(); err != nil {
			return err
		}
	}
	if !p.trace.kept || !p.started() {
		return nil
	}
	if err := os.WriteFile(filepath.Join(p.assignment.LogFolder, "keys.log"), p.keys.Bytes(), 0o600); err != nil {
		return err
	}
	return p.trace.write(t, p.assignment.LogFolder)
}

// conclude has the reports of the link, and how the endpoints ended.
func (x *trial) conclude(s *Simulator) {
	x.answer.Number = x.task.Number
	x.answer.Links = map[string]Reports{linkName: {reportOf(s.up), reportOf(s.down)}}
	x.answer.Endpoints = map[string]Ended{}
	for _, p := range x.pairs {
		for _, process := range []*process{p.client, p.server} {
			if process.started() {
				x.answer.Endpoints[process.name] = process.outcome()
			}
		}
	}
}
