package simulation

import (
	"errors"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// collectAbove is the number of bytes of objects from which they are collected.
	collectAbove = 16 << 20
	// memoryLimit is the limit at which Go collects in any case, since more would harm the machine.
	memoryLimit = 3 << 30
	// lookEvery is the number of datagrams between two looks at the memory.
	lookEvery = 4096
)

// errCollected means that a trial is not the one that its task describes.
var errCollected = errors.New("collected garbage within the trial")

// memory collects garbage when nothing can run beside the collector: while goroutines can, it changes their order, and so
// the trial.
type memory struct {
	samples   []metrics.Sample
	ours      uint64 // collections
	lookAfter uint64 // datagrams
}

func newMemory() *memory {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(memoryLimit)
	return &memory{samples: []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/cycles/total:gc-cycles"}}}
}

// look returns how many bytes of objects there are, and how many collections there have been.
func (m *memory) look() (bytes, collections uint64) {
	metrics.Read(m.samples)
	return m.samples[0].Value.Uint64(), m.samples[1].Value.Uint64()
}

// collectIfMany collects garbage when there may be much.
func (m *memory) collectIfMany() {
	if bytes, _ := m.look(); bytes > collectAbove {
		runtime.GC()
		m.ours++
	}
}

// atRest is called when nothing but its caller can run in the trial.
func (m *memory) atRest(carried uint64) {
	if carried >= m.lookAfter {
		m.lookAfter = carried + lookEvery
		m.collectIfMany()
	}
}

// undisturbed calls a function, and returns an error when garbage was collected at a time that was not ours.
func (m *memory) undisturbed(f func() error) error {
	m.collectIfMany()
	_, before := m.look()
	m.ours, m.lookAfter = 0, 0
	if err := f(); err != nil {
		return err
	}
	debug.SetGCPercent(-1) // waits for a collection that has begun, and counts when it has ended
	if _, after := m.look(); after != before+m.ours {
		return errCollected
	}
	return nil
}
