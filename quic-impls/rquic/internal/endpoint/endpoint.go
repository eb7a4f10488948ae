// Package endpoint runs one end of a transfer over QUIC: a client that downloads or uploads one content
// over one connection, loads a web page, or exchanges messages, or a server that serves them.
package endpoint

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"

	host "github.com/fecbench/fecbench/quic-impls/host-go"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/coderate"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/coding"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/contract"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/header"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/observer"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/rquic"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/series"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/socket"
)

// Flow control must not be what limits a transfer: these are several times the bandwidth-delay
// product of the fastest link with the longest delay that the papers use (100 Mbps, 2 × 400 ms: 10 MB).
const (
	initialWindow = 32 << 20
	maxWindow     = 128 << 20
)

// endpoint is the common part of client and server.
type endpoint struct {
	assignment   contract.Assignment
	socket       *socket.Socket
	surroundings Surroundings
	fec          *rquic.Conn // nil with the scheme "plain"
	observer     *observer.Observer
	transport    *quic.Transport
	messaging    messaging
}

// Surroundings are the environment of an endpoint, besides its socket.
type Surroundings struct {
	Credentials
	// KeyLog takes TLS secrets; nil when nobody wants them.
	KeyLog io.Writer
	// Qlog makes a trace for each connection, or nil when nobody wants it.
	Qlog func(ctx context.Context, isClient bool, id quic.ConnectionID) qlogwriter.Trace
	// SparesEvents has QUIC make no event for a trace if nobody hears it.
	SparesEvents bool
	// Log takes what a server has to say of its clients.
	Log *log.Logger
	// Clock is the time of the workloads "messages" and "requests", the same for both ends.
	Clock func() time.Duration
	// Lines are the standard input of a client of the workload "requests".
	Lines <-chan string
}

// Run does what an assignment says, and writes the contract's events. A server
// serves until ctx ends; a client fails when it ends.
func Run(ctx context.Context, assignment contract.Assignment, out io.Writer) error {
	local := assignment.Address
	if assignment.Role == "client" {
		local = netip.AddrPortFrom(unspecified(assignment.Address.Addr()), 0)
	}
	udp, err := socket.Listen(local)
	if err != nil {
		return err
	}
	defer udp.Close()
	credentials, err := ReadCredentials(assignment)
	if err != nil {
		return err
	}
	surroundings := Surroundings{Credentials: credentials, Qlog: qlog.DefaultConnectionTracer, Log: log.Default(), Clock: host.Monotonic}
	if assignment.AsksAsTold() {
		surroundings.Lines = host.Lines(os.Stdin)
	}
	if path := os.Getenv("SSLKEYLOGFILE"); path != "" {
		// For appending, since both ends may share it.
		keyLog, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("SSLKEYLOGFILE: %w", err)
		}
		defer keyLog.Close()
		surroundings.KeyLog = keyLog
	}
	recording, err := RunOver(ctx, udp, assignment, surroundings, out)
	return cmp.Or(err, recording.Write())
}

// RunOver is Run over a socket, and in surroundings, that are there already. The caller writes its records, also
// after an error.
func RunOver(
	ctx context.Context, s *socket.Socket, assignment contract.Assignment, surroundings Surroundings, out io.Writer,
) (*series.Recording, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	e := newEndpoint(s, assignment, surroundings, fail)
	run := e.fetch
	switch {
	case assignment.Role == "server":
		run = e.serve
	case assignment.AsksAsTold():
		run = e.ask
	case assignment.Workload.Page != nil:
		run = e.loadPage
	case assignment.Workload.Messages != nil:
		run = e.exchangeMessages
	}
	err := run(ctx, out)
	return &e.observer.Recording, cmp.Or(err, e.transport.Close(), e.observer.Flush())
}

func newEndpoint(s *socket.Socket, assignment contract.Assignment, surroundings Surroundings, fail func(error)) *endpoint {
	e := &endpoint{assignment: assignment, socket: s, surroundings: surroundings}
	e.observer = &observer.Observer{Qlog: surroundings.Qlog, SparesEvents: surroundings.SparesEvents}
	e.transport = &quic.Transport{Conn: s, ConnectionIDLength: header.ConnectionIDLength}
	if assignment.Series.CongestionWindow {
		e.observer.Congestion = e.begin(contract.CongestionWindow, observer.CongestionColumns)
	}
	var codeRate *series.Series
	if assignment.Series.CodeRate {
		codeRate = e.begin(contract.CodeRate, coderate.Columns)
	}
	var repair *series.Series
	if assignment.Series.Repair {
		repair = e.begin(contract.Repair, rquic.RepairColumns)
	}
	e.messaging.fail = fail
	e.beginMessages()
	if assignment.Workload.Messages != nil {
		e.followConnections()
	}
	if assignment.Options.Scheme == "plain" {
		return e
	}
	settings := fecSettings(assignment, codeRate, fail)
	settings.Repair = repair
	e.fec = rquic.New(s, settings)
	e.fec.Observe(e.observer)
	e.transport.Conn = e.fec
	return e
}

// begin begins a series where the contract wants it.
func (e *endpoint) begin(name string, columns []string) *series.Series {
	return e.observer.Recording.Begin(filepath.Join(e.assignment.LogFolder, name+".series.csv"), columns...)
}

func fecSettings(assignment contract.Assignment, codeRate *series.Series, fail func(error)) rquic.Settings {
	options := assignment.Options
	settings := rquic.Settings{
		Code:             code(options),
		DecodeOnly:       assignment.Role == "client" && options.ServerEncodesAlone(),
		Overlap:          options.Rate.Overlap,
		GenerationMax:    options.Rate.GenerationMax,
		Rate:             float64(options.Rate.SourcePerCoded()),
		Adaptive:         adaptive(options.Rate),
		PacketSize:       int(options.PacketSize),
		Series:           codeRate,
		FlushAtStreamEnd: options.Flush == "stream_end",
		HoldTimeout:      options.BTO,
		HoldRTTs:         options.BTORTT,
		Fail:             fail,
	}
	if settings.DecodeOnly {
		settings.Adaptive, settings.Series = nil, nil // nothing follows a rate
	}
	return settings
}

// code is nil when forward erasure correction is off.
func code(options contract.Options) coding.Code {
	switch options.Scheme {
	case "xor":
		return coding.XOR{}
	case "rlc":
		return coding.RLC{Coded: options.Rate.Redundancies}
	case "hold":
		return coding.None{}
	default:
		return nil
	}
}

// adaptive has a preset's parameters, with those of the options in their places; nil for a constant rate.
func adaptive(rate contract.Rate) *coderate.Adaptive {
	presets := map[string]coderate.Adaptive{
		"paper": coderate.Paper, "code2021": coderate.Code2021, "campaign2021": coderate.Campaign2021,
	}
	a, ok := presets[rate.Preset]
	if !ok {
		return nil
	}
	a.Periods, a.Gamma, a.Delta = rate.Periods, rate.Gamma, rate.Delta
	if rate.Period > 0 || rate.PeriodRTT > 0 {
		a.Period, a.PeriodRTT = rate.Period, rate.PeriodRTT
	}
	if rate.Minimum > 0 {
		a.Minimum = rate.Minimum
	}
	return &a
}

// quicConfig is the same in all arms. Its timeouts are beyond the deadline, so that the deadline alone ends a trial.
func (e *endpoint) quicConfig() *quic.Config {
	config := &quic.Config{
		HandshakeIdleTimeout:           2 * e.assignment.Deadline,
		MaxIdleTimeout:                 2 * e.assignment.Deadline,
		InitialStreamReceiveWindow:     initialWindow,
		MaxStreamReceiveWindow:         maxWindow,
		InitialConnectionReceiveWindow: initialWindow,
		MaxConnectionReceiveWindow:     maxWindow,
		InitialPacketSize:              e.assignment.Options.PacketSize,
		DisablePathMTUDiscovery:        true,
		Recovery2020:                   e.assignment.Options.Recovery == "2020",
		Tracer:                         e.observer.Trace,
	}
	if traffic := e.assignment.Workload.Messages; traffic != nil {
		allowMessages(config, traffic)
	}
	return config
}

// tlsConfig has what either role needs: a server its certificate, a client whom it trusts.
func (e *endpoint) tlsConfig() *tls.Config {
	config := &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{e.applicationProtocol()}, KeyLogWriter: e.surroundings.KeyLog,
	}
	if e.assignment.Role == "server" {
		config.Certificates = []tls.Certificate{e.surroundings.Certificate}
	} else {
		config.RootCAs, config.ServerName = e.surroundings.Authority, e.assignment.ServerName
	}
	return config
}

func (e *endpoint) applicationProtocol() string {
	switch {
	case e.assignment.Workload.Messages != nil:
		return messagesProtocol
	case e.assignment.Options.HTTP == "h3":
		return "h3"
	default:
		return "hq-interop"
	}
}

// metrics returns the metrics of the contract. Packets are counted as QUIC sees them: coded packets are not included, recovered
// ones are. Bytes are all UDP payload that passed the socket.
func (e *endpoint) metrics(connections []*quic.Conn) map[string]float64 {
	m := map[string]float64{
		"packets_sent": 0, "packets_lost": 0, "losses_declared": 0, "spurious_losses": 0,
		"packets_received": float64(e.observer.Recoveries.TooLate()),
		"bytes_sent":       float64(e.socket.BytesSent.Load()),
		"bytes_received":   float64(e.socket.BytesReceived.Load()),
	}
	for _, connection := range connections {
		stats := connection.ConnectionStats()
		m["packets_sent"] += float64(stats.PacketsSent)
		m["packets_lost"] += float64(stats.PacketsLost)
		m["losses_declared"] += float64(stats.PacketsLost)
		m["spurious_losses"] += float64(stats.SpuriousLosses)
		m["packets_received"] += float64(stats.PacketsReceived)
		// The last connection has it; before it was measured, quic-go has a guess.
		if delete(m, "smoothed_rtt_ms"); stats.LatestRTT > 0 {
			m["smoothed_rtt_ms"] = milliseconds(stats.SmoothedRTT)
		}
	}
	if e.fec != nil {
		e.fec.ReadCounters(func(counters *rquic.Counters) { addFEC(m, counters) })
	} else {
		addFEC(m, &rquic.Counters{})
	}
	if late, known := e.observer.Recoveries.Late(); known {
		m["recovered_late"] = float64(late)
		m["recovered_in_time"] = m["packets_recovered"] + m["recovered_spurious"] - m["recovered_late"]
	} else { // whoever cannot tell which packet QUIC reported cannot count those that were rebuilt
		for _, name := range [...]string{"packets_recovered", "recovered_spurious", "recovered_out_of_order", "repair_useless"} {
			delete(m, name)
		}
	}
	if e.assignment.Workload.Messages != nil {
		e.addMessages(m)
	}
	return m
}

// addFEC adds the counters of FEC to metrics, and what follows from them.
func addFEC(m map[string]float64, counters *rquic.Counters) {
	for name, counter := range map[string]*atomic.Int64{
		"source_sent":            &counters.SourceSent,
		"repair_sent":            &counters.RepairSent,
		"source_received":        &counters.SourceReceived,
		"repair_received":        &counters.RepairReceived,
		"recovered_spurious":     &counters.RecoveredSpurious,
		"recovered_out_of_order": &counters.RecoveredOutOfOrder,
		"malformed_received":     &counters.Malformed,
		"generations_sent":       &counters.Generations,
		"generation_size_min":    &counters.SmallestGeneration,
		"generation_size_max":    &counters.LargestGeneration,
		"protected_delivered":    &counters.Delivered,
		"protected_lost":         &counters.Lost,
	} {
		m[name] = float64(counter.Load())
	}
	rebuilt := float64(counters.Recovered.Load())
	m["packets_recovered"] = rebuilt - m["recovered_spurious"]
	m["repair_useless"] = m["repair_received"] - rebuilt                         // a system of equations has as many as it solves
	m["overhead"] = m["repair_sent"] / max(m["source_sent"]+m["repair_sent"], 1) // equation (5)
	if m["repair_sent"] > 0 {
		m["code_rate_mean"] = m["source_sent"] / m["repair_sent"] // equation (6)
	}
	if m["protected_delivered"] > 0 {
		m["residual_loss"] = m["protected_lost"] / m["protected_delivered"]
	}
}

// explain returns why a transfer was cut short: a deadline or a signal is a better reason than the error that it caused.
func explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func unspecified(like netip.Addr) netip.Addr {
	if like.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

// remote is the server's address as quic-go wants it.
func (e *endpoint) remote() net.Addr { return net.UDPAddrFromAddrPort(e.assignment.Address) }
