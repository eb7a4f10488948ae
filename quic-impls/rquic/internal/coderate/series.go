package coderate

import "math"

// Columns are the columns of the series "code_rate": a row when a connection opens, and one at the end of each period.
var Columns = []string{"q", "residual_loss", "delivered", "lost", "window_packets", "smoothed_rtt_ms"}

// Row has the sample's values for Columns. The residual loss is 0 before any was measured.
func (s Sample) Row() []float64 {
	residualLoss := s.ResidualLoss
	if math.IsNaN(residualLoss) {
		residualLoss = 0
	}
	return []float64{
		s.Q, residualLoss, float64(s.Delivered), float64(s.Lost), float64(s.WindowPackets), s.SmoothedRTT.Seconds() * 1000,
	}
}
