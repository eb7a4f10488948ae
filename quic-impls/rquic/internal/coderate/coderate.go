// Package coderate decides how many source packets there are for each coded one: the code rate Q, in the sense of
// Zverev et al., IEEE Access 2021, §II-C. Q is constant, or follows the residual loss (Algorithm 1, §IV-B): the losses
// that erasure correction didn't mend, as QUIC's acknowledgements tell. It reads no clock.
package coderate

import (
	"math"
	"time"
)

// Adaptive has the parameters of Algorithm 1 and of what the paper leaves open.
type Adaptive struct {
	Initial float64       // Q at the beginning
	Minimum float64       // Q doesn't fall below, unless generations can't follow
	Period  time.Duration // of a measurement of losses (T)
	// PeriodRTT is the period in smoothed RTTs, when Period is 0; PeriodMinRTT in least RTTs, when both are.
	PeriodRTT    float64
	PeriodMinRTT float64
	Periods      int     // over which the residual loss is averaged (N)
	Gamma        float64 // residual loss above which Q falls (γ)
	Delta        float64 // relative step of Q (δ)
	// FromZeros averages the first measurements with zeros, as if earlier periods had been without loss.
	FromZeros bool
	// OnlyPlausible ignores periods with more losses than deliveries, or without deliveries.
	OnlyPlausible bool
}

// The presets. The paper begins with its initial window of 32 packets; its authors' code differs from it in all that
// they don't have in common here (pgOrtiz90/quic-go-fec, rquic/conf.go and rquic/rencoder/ratio.go). The script of the paper's
// campaign (rquic/examples/bulk_transfer/sim_campaign_general.go there) runs that code with periods of three times
// the RTT that is emulated, of which the least RTT is the nearest that an endpoint knows.
//
// All have the least Q of the authors' code, 2; the paper names none. With every Q below 2 there is a coded packet for each source
// packet, and below 1 a lower Q shows in nothing but the time that it takes to come up.
var (
	Paper    = Adaptive{Initial: 32, Minimum: 2, PeriodRTT: 3, Periods: 3, Gamma: 0.01, Delta: 0.33}
	Code2021 = Adaptive{
		Initial: 10, Minimum: 2, Period: 75 * time.Millisecond, Periods: 3, Gamma: 0.01, Delta: 0.33,
		FromZeros: true, OnlyPlausible: true,
	}
	Campaign2021 = Adaptive{
		Initial: 10, Minimum: 2, PeriodMinRTT: 3, Periods: 3, Gamma: 0.01, Delta: 0.33, FromZeros: true, OnlyPlausible: true,
	}
)

// Sample is the knowledge at the end of a period.
type Sample struct {
	Q               float64 // that follows
	ResidualLoss    float64 // mean over periods: lost to delivered packets; NaN before any was measured
	Delivered, Lost int64   // in the period
	WindowPackets   int
	SmoothedRTT     time.Duration
}

// State of a path at a time. The counts grow.
type State struct {
	Delivered, Lost     int64
	WindowPackets       int
	SmoothedRTT, MinRTT time.Duration
}

// Controller holds Q for one connection.
type Controller struct {
	adaptive Adaptive
	maximum  float64
	q        float64
	begun    time.Time // the period; zero before the first
	atBegin  State
	losses   []float64 // of the last periods
	next     int       // where the next one goes
}

// NewController begins with the initial Q. Q stays at or below maximum, beyond which generations couldn't follow.
func NewController(adaptive Adaptive, maximum float64) *Controller {
	c := &Controller{adaptive: adaptive, maximum: maximum, losses: make([]float64, 0, adaptive.Periods)}
	c.q = c.within(adaptive.Initial, math.MaxInt)
	return c
}

// Q is the number of source packets for each coded one.
func (c *Controller) Q() float64 { return c.q }

// Update takes the state of the path, and returns a sample when a period has ended.
//
// Q is kept at or below the congestion window in packets, so that a coded packet needn't wait for a window that is full.
func (c *Controller) Update(now time.Time, state State) (sample Sample, ended bool) {
	c.q = c.within(c.q, state.WindowPackets)
	if c.begun.IsZero() {
		c.begun, c.atBegin = now, state
		return sample, false
	}
	if period := c.period(state); period <= 0 || now.Sub(c.begun) < period {
		return sample, false
	}
	delivered, lost := state.Delivered-c.atBegin.Delivered, state.Lost-c.atBegin.Lost
	c.begun, c.atBegin = now, state
	if c.measurable(delivered, lost) {
		c.measured(float64(lost) / float64(max(delivered, 1)))
		c.q = c.within(c.step(), state.WindowPackets)
	}
	return Sample{c.q, c.residualLoss(), delivered, lost, state.WindowPackets, state.SmoothedRTT}, true
}

func (c *Controller) period(state State) time.Duration {
	switch {
	case c.adaptive.Period > 0:
		return c.adaptive.Period
	case c.adaptive.PeriodRTT > 0:
		return time.Duration(c.adaptive.PeriodRTT * float64(state.SmoothedRTT))
	default:
		return time.Duration(c.adaptive.PeriodMinRTT * float64(state.MinRTT))
	}
}

func (c *Controller) measurable(delivered, lost int64) bool {
	if c.adaptive.OnlyPlausible {
		return delivered > 0 && delivered >= lost
	}
	return delivered > 0 || lost > 0
}

func (c *Controller) measured(loss float64) {
	if len(c.losses) < c.adaptive.Periods {
		c.losses = append(c.losses, loss)
		return
	}
	c.losses[c.next] = loss
	c.next = (c.next + 1) % len(c.losses)
}

func (c *Controller) residualLoss() float64 {
	sum, periods := 0.0, len(c.losses)
	for _, loss := range c.losses {
		sum += loss
	}
	if c.adaptive.FromZeros && periods > 0 {
		periods = c.adaptive.Periods
	}
	return sum / float64(periods)
}

// step is Algorithm 1.
func (c *Controller) step() float64 {
	if c.residualLoss() > c.adaptive.Gamma {
		return c.q * (1 - c.adaptive.Delta)
	}
	return c.q * (1 + c.adaptive.Delta)
}

func (c *Controller) within(q float64, windowPackets int) float64 {
	return min(max(min(q, float64(windowPackets)), c.adaptive.Minimum), c.maximum)
}
