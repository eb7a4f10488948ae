package observer

import (
	"time"

	"github.com/quic-go/quic-go/qlog"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/series"
)

// CongestionColumns are the columns of the series "cwnd", which has a row for each change. The RTT is 0 before it was measured.
var CongestionColumns = []string{"congestion_window_bytes", "bytes_in_flight", "smoothed_rtt_ms"}

// congestion is the last state of a connection's congestion control.
type congestion struct {
	number                int // of the connection
	window, bytesInFlight int
	smoothedRTT           time.Duration
}

func (c *congestion) update(s *series.Series, e *qlog.MetricsUpdated) {
	now := congestion{c.number, e.CongestionWindow, e.BytesInFlight, e.SmoothedRTT}
	if now == *c {
		return // another of the event's metrics changed
	}
	*c = now
	s.Add(c.number, float64(c.window), float64(c.bytesInFlight), c.smoothedRTT.Seconds()*1000)
}
