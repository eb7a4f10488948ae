package simulation

import "time"

// filling watches the bytes that a link carries downwards until it is full: as runners/trial/competition.py does in
// emulated trials.
type filling struct {
	window    time.Duration
	bytesPerS float64 // of a full link
	readings  []reading
}

type reading struct {
	at      time.Duration
	carried uint64
}

func newFilling(f Filling, rateBPS uint64) *filling {
	return &filling{window: seconds(f.WindowS), bytesPerS: f.FullShare * float64(rateBPS) / 8}
}

// isFull tells whether the link is full at a time, when it has carried so many bytes since it was made.
func (f *filling) isFull(at time.Duration, carried uint64) bool {
	f.readings = append(f.readings, reading{at, carried})
	for len(f.readings) > 1 && f.readings[1].at <= at-f.window {
		f.readings = f.readings[1:]
	}
	first := f.readings[0]
	passed := at - first.at
	return passed >= f.window && float64(carried-first.carried) >= f.bytesPerS*passed.Seconds()
}
