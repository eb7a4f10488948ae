package endpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fecbench/fecbench/quic-impls/tcp/internal/contract"
	"github.com/fecbench/fecbench/quic-impls/tcp/internal/kernel"
)

const (
	// interval is the time between two looks at the counters of a connection.
	interval = 2 * time.Millisecond
	mostRows = 200_000
)

// window is the series CongestionWindow: the kernel's values at each look that have changed since the one before.
type window struct {
	lock  sync.Mutex
	began time.Time
	rows  []row
	last  map[int]row
	// One of every so many changes is kept: fewer each time that there were mostRows.
	every, skipped int
}

type row struct {
	after                time.Duration
	connection           int
	windowBytes, flightB int64
	smoothedRTT          time.Duration
}

func newWindow() *window { return &window{last: map[int]row{}, every: 1} }

// begin is called when a connection begins; the series begins with the first one.
func (w *window) begin(at time.Time) {
	if w == nil {
		return
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.began.IsZero() {
		w.began = at
	}
}

// add takes the flows of a connection as they are now.
func (w *window) add(connection int, flows []kernel.Flow) {
	if w == nil || len(flows) == 0 {
		return
	}
	r := row{connection: connection, smoothedRTT: flows[0].SmoothedRTT}
	for _, f := range flows {
		r.windowBytes, r.flightB = r.windowBytes+f.WindowBytes, r.flightB+f.FlightBytes
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	if last, known := w.last[connection]; known && last == r {
		return
	}
	w.last[connection] = r
	if w.skipped++; w.skipped < w.every {
		return
	}
	w.skipped = 0
	r.after = time.Since(w.began)
	w.rows = append(w.rows, r)
	if len(w.rows) == mostRows {
		w.thin()
	}
}

func (w *window) thin() {
	for n := range mostRows / 2 {
		w.rows[n] = w.rows[2*n]
	}
	w.rows, w.every = w.rows[:mostRows/2], 2*w.every
}

func (w *window) write(folder string) error {
	w.lock.Lock()
	defer w.lock.Unlock()
	var text strings.Builder
	text.WriteString("t_s,connection,congestion_window_bytes,bytes_in_flight,smoothed_rtt_ms\n")
	for _, r := range w.rows {
		fmt.Fprintf(&text, "%.6f,%d,%d,%d,%.3f\n",
			r.after.Seconds(), r.connection, r.windowBytes, r.flightB, r.smoothedRTT.Seconds()*1e3)
	}
	return os.WriteFile(filepath.Join(folder, contract.CongestionWindow+".series.csv"), []byte(text.String()), 0o644)
}
