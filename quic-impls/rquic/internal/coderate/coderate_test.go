package coderate

import (
	"math"
	"slices"
	"testing"
	"time"
)

const rtt = 20 * time.Millisecond

var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// path is the path that a controller sees, advanced by hand.
type path struct {
	now   time.Time
	state State
}

func newPath(windowPackets int) *path {
	return &path{start, State{WindowPackets: windowPackets, SmoothedRTT: rtt, MinRTT: rtt / 2}}
}

// period lets a time pass in which packets are delivered and lost.
func (p *path) period(c *Controller, d time.Duration, delivered, lost int64) (Sample, bool) {
	p.now = p.now.Add(d)
	p.state.Delivered += delivered
	p.state.Lost += lost
	return c.Update(p.now, p.state)
}

func begun(a Adaptive, p *path) *Controller {
	c := NewController(a, 63)
	c.Update(p.now, p.state)
	return c
}

func near(t *testing.T, got, right float64) {
	t.Helper()
	if math.Abs(got-right) > 1e-9*math.Abs(right) {
		t.Errorf("Q is %v, right is %v", got, right)
	}
}

func TestThePresetsAreThoseOfThePaperAndOfItsCode(t *testing.T) {
	state := State{SmoothedRTT: rtt, MinRTT: 5 * time.Millisecond}
	for preset, right := range map[*Adaptive]struct {
		q      float64
		period time.Duration
	}{&Paper: {32, 3 * rtt}, &Code2021: {10, 75 * time.Millisecond}, &Campaign2021: {10, 15 * time.Millisecond}} {
		c := NewController(*preset, 63)
		near(t, c.Q(), right.q)
		if got := c.period(state); got != right.period {
			t.Errorf("the period is %v, right is %v", got, right.period)
		}
	}
}

// Algorithm 1: Q falls by the factor 1 - δ after a mean residual loss above γ, and grows by 1 + δ otherwise.
func TestQFallsWithLossesAndGrowsWithoutThem(t *testing.T) {
	p := newPath(1000)
	c := begun(Paper, p)
	p.period(c, 3*rtt, 90, 10)
	near(t, c.Q(), 32*0.67)
	p.period(c, 3*rtt, 100, 0) // the mean is still above 1 %
	near(t, c.Q(), 32*0.67*0.67)
	p.period(c, 3*rtt, 100, 0)
	near(t, c.Q(), 32*0.67*0.67*0.67)
	p.period(c, 3*rtt, 100, 0) // three periods without loss
	near(t, c.Q(), 32*0.67*0.67*0.67*1.33)
}

func TestALossOfExactlyTheThresholdIsNotAboveIt(t *testing.T) {
	p := newPath(1000)
	a := Code2021
	a.Periods, a.Gamma = 1, 0.0625
	c := begun(a, p)
	p.period(c, a.Period, 16, 1)
	near(t, c.Q(), 10*1.33)
}

func TestNothingChangesBeforeAPeriodHasEnded(t *testing.T) {
	for _, a := range []Adaptive{Paper, Code2021} {
		p := newPath(1000)
		c := begun(a, p)
		if _, ended := p.period(c, c.period(p.state)-1, 10, 10); ended || c.Q() != a.Initial {
			t.Errorf("ended %v, Q is %v", ended, c.Q())
		}
		sample, ended := p.period(c, 1, 90, 0)
		if !ended || sample.Delivered != 100 || sample.Lost != 10 || sample.Q != c.Q() {
			t.Errorf("ended %v, %+v", ended, sample)
		}
	}
}

// The code divides by N from the beginning; the paper speaks of the mean.
func TestTheFirstMeansAreThoseOfThePresets(t *testing.T) {
	for preset, right := range map[*Adaptive]float64{&Paper: 0.06, &Code2021: 0.02} {
		p := newPath(1000)
		c := begun(*preset, p)
		if sample, _ := p.period(c, c.period(p.state), 100, 6); math.Abs(sample.ResidualLoss-right) > 1e-12 {
			t.Errorf("%v, right is %v", sample.ResidualLoss, right)
		}
	}
}

func TestOnlyTheLastPeriodsAreAveraged(t *testing.T) {
	p := newPath(1000)
	c := begun(Paper, p)
	losses := []float64{0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07}
	for i, loss := range losses {
		sample, _ := p.period(c, 3*rtt, 100, int64(math.Round(100*loss)))
		last := losses[max(0, i-2) : i+1]
		sum := 0.0
		for _, l := range last {
			sum += l
		}
		if right := sum / float64(len(last)); math.Abs(sample.ResidualLoss-right) > 1e-12 {
			t.Errorf("after %d: %v, right is %v", i+1, sample.ResidualLoss, right)
		}
	}
}

func TestQStaysWithinItsBounds(t *testing.T) {
	unbound := Paper
	unbound.Minimum = 0.01
	for _, a := range []Adaptive{Paper, Code2021, Campaign2021, unbound} {
		p := newPath(40)
		c := begun(a, p)
		for range 20 {
			p.period(c, c.period(p.state), 100, 0)
		}
		near(t, c.Q(), 40) // the congestion window in packets
		p.state.WindowPackets = 1000
		for range 20 {
			p.period(c, c.period(p.state), 100, 0)
		}
		near(t, c.Q(), 63)
		p.state.WindowPackets = 12
		p.period(c, 0, 0, 0) // at once, not with the next period
		near(t, c.Q(), 12)
		for range 20 {
			p.period(c, c.period(p.state), 100, 50)
		}
		near(t, c.Q(), max(a.Minimum, 12*math.Pow(0.67, 20)))
	}
}

func TestTheLeastQIsNoMoreThanGenerationsAllow(t *testing.T) {
	near(t, NewController(Code2021, 1).Q(), 1)
}

func TestAPeriodThatTellsNothingChangesNothing(t *testing.T) {
	for _, c := range []struct {
		adaptive        Adaptive
		delivered, lost int64
		changes         bool
	}{{Paper, 0, 0, false}, {Code2021, 0, 0, false}, {Paper, 3, 5, true}, {Code2021, 3, 5, false}, {Code2021, 0, 5, false}} {
		p := newPath(1000)
		controller := begun(c.adaptive, p)
		p.period(controller, controller.period(p.state), c.delivered, c.lost)
		if changed := controller.Q() != c.adaptive.Initial; changed != c.changes {
			t.Errorf("%+v: Q is %v", c, controller.Q())
		}
	}
}

func TestARowHasAFiniteValueForEachColumn(t *testing.T) {
	for _, c := range []struct {
		sample Sample
		right  []float64
	}{
		{Sample{6.7, 0.25, 80, 20, 40, rtt}, []float64{6.7, 0.25, 80, 20, 40, 20}},
		{Sample{Q: 10, ResidualLoss: math.NaN()}, []float64{10, 0, 0, 0, 0, 0}},
	} {
		if row := c.sample.Row(); !slices.Equal(row, c.right) || len(row) != len(Columns) {
			t.Errorf("%v", row)
		}
	}
}
