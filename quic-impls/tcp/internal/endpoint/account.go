package endpoint

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/fecbench/fecbench/quic-impls/tcp/internal/kernel"
)

// account is the record of a connection: it stays when the connection is gone.
type account struct {
	connection *net.TCPConn
	number     int
	window     *window // nil when nobody wants the series
	following  sync.WaitGroup

	lock  sync.Mutex
	ended chan struct{} // closed at the end
	flows []kernel.Flow
	err   error
}

// open begins the account of a connection.
func (e *endpoint) open(connection *net.TCPConn, number int) *account {
	a := &account{connection: connection, number: number, window: e.window, ended: make(chan struct{})}
	if a.window != nil {
		a.following.Go(a.follow)
	}
	return a
}

// follow reads the counters again and again.
func (a *account) follow() {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for a.read() {
		select {
		case <-ticker.C:
		case <-a.ended:
			return
		}
	}
}

// read reads the counters, unless the account has ended.
func (a *account) read() bool {
	a.lock.Lock()
	defer a.lock.Unlock()
	select {
	case <-a.ended:
		return false
	default:
	}
	if a.flows, a.err = kernel.Flows(a.connection); a.err == nil {
		a.window.add(a.number, a.flows)
	}
	return a.err == nil
}

// end reads the counters for the last time. Called again, it does nothing.
func (a *account) end() {
	a.read()
	a.lock.Lock()
	select {
	case <-a.ended:
	default:
		close(a.ended)
	}
	a.lock.Unlock()
	a.following.Wait()
}

// metrics returns the metrics of all connections together.
func (e *endpoint) metrics(accounts []*account) (map[string]float64, error) {
	var flows []kernel.Flow
	var err error
	for _, a := range accounts {
		flows, err = append(flows, a.flows...), errors.Join(err, a.err)
	}
	if err != nil {
		return nil, fmt.Errorf("counters of the kernel: %w", err)
	}
	metrics := counters(flows)
	if len(accounts) > 0 {
		addRTT(metrics, "", accounts[len(accounts)-1].flows)
	}
	if !e.isMultipath() {
		return metrics, nil
	}
	for n, path := range e.paths(flows) {
		prefix := fmt.Sprintf("path%d.", n+1)
		of := counters(path)
		for _, name := range []string{"packets_sent", "packets_lost", "bytes_sent"} {
			metrics[prefix+name] = of[name]
		}
		addRTT(metrics, prefix, path)
	}
	return metrics, nil
}

// paths are the flows by the client's address that they have, in the order of the paths. A server doesn't know the addresses of
// clients that have not sent anything from them; it knows that they ascend with the number of the path.
func (e *endpoint) paths(flows []kernel.Flow) [][]kernel.Flow {
	addresses, of := e.assignment.LocalAddresses, func(f kernel.Flow) netip.Addr { return f.Local }
	if e.assignment.Role == "server" {
		of = func(f kernel.Flow) netip.Addr { return f.Remote }
		addresses = nil
		for _, f := range flows {
			addresses = append(addresses, f.Remote)
		}
		slices.SortFunc(addresses, netip.Addr.Compare)
		addresses = slices.Compact(addresses)
	}
	paths := make([][]kernel.Flow, e.assignment.Options.Paths)
	for _, f := range flows {
		if n := slices.Index(addresses, of(f)); n >= 0 && n < len(paths) {
			paths[n] = append(paths[n], f)
		}
	}
	return paths
}

// addRTT adds the estimate of the first of these flows, if it has measured a round trip.
func addRTT(metrics map[string]float64, prefix string, flows []kernel.Flow) {
	if rtt := cmp.Or(flows...).SmoothedRTT; rtt > 0 {
		metrics[prefix+"smoothed_rtt_ms"] = rtt.Seconds() * 1e3
	}
}

func counters(flows []kernel.Flow) map[string]float64 {
	sum := func(of func(kernel.Flow) int64) (total float64) {
		for _, f := range flows {
			total += float64(of(f))
		}
		return total
	}
	return map[string]float64{
		"packets_sent":        sum(func(f kernel.Flow) int64 { return f.SegmentsSent }),
		"packets_received":    sum(func(f kernel.Flow) int64 { return f.SegmentsReceived }),
		"packets_lost":        sum(func(f kernel.Flow) int64 { return f.SegmentsSentAgain }),
		"spurious_losses":     sum(func(f kernel.Flow) int64 { return f.Duplicates }),
		"bytes_sent":          sum(func(f kernel.Flow) int64 { return f.BytesSent }),
		"bytes_received":      sum(func(f kernel.Flow) int64 { return f.BytesReceived }),
		"waited_for_window_s": sum(func(f kernel.Flow) int64 { return int64(f.WaitedForWindow) }) / 1e9,
		"waited_for_buffer_s": sum(func(f kernel.Flow) int64 { return int64(f.WaitedForBuffer) }) / 1e9,
	}
}
