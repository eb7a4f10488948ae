package coding

import (
	"math/bits"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/header"
)

// linearDecoder solves the equations that coded symbols are, step by step as symbols arrive. Its equations
// are always fully reduced (Gauss-Jordan): known symbols are subtracted, and each has a pivot, an unknown that
// none of the others has. So one with a single unknown has solved it.
type linearDecoder struct {
	listed    bool // payloads list their coefficients
	started   bool
	newest    int64
	known     [Window]knownSymbol // by place
	equations []*equation         // no more than Window, since pivots differ
	spare     []*equation
	ones      [header.MaxGenerationSize]byte
	recovered []Recovered // reused
}

// knownSymbol is a source symbol that arrived or was recovered.
type knownSymbol struct {
	id          int64 // -1: none
	generations Range
	symbol      []byte
}

// equation is the sum of unknown source symbols, each times its coefficient, and its value.
type equation struct {
	generation  int64 // the newest of those that it was made of
	pivot       int   // place
	unknown     places
	coefficient [Window]byte // by place; 0 where nothing is unknown
	sum         []byte
}

// place returns the place of an id. Ids of one window have different places.
func place(id int64) int { return int(id & (Window - 1)) }

func newLinearDecoder(listed bool) *linearDecoder {
	d := &linearDecoder{listed: listed}
	for i := range d.ones {
		d.ones[i] = 1
	}
	for i := range d.known {
		d.known[i].id = -1
	}
	return d
}

func (d *linearDecoder) Source(id int64, generations Range, symbol []byte) []Recovered {
	d.recovered = d.recovered[:0]
	d.advance(id)
	k := &d.known[place(id)]
	if id <= d.newest-Window || k.id == id {
		return nil
	}
	k.id, k.generations, k.symbol = id, generations, append(k.symbol[:0], symbol...)
	d.substitute(id)
	return d.solved()
}

func (d *linearDecoder) Repair(generation, id int64, size int, payload []byte) []Recovered {
	d.recovered = d.recovered[:0]
	if size < 1 || size > header.MaxGenerationSize {
		return nil
	}
	coefficients := d.ones[:size]
	if d.listed {
		if len(payload) < size {
			return nil
		}
		coefficients, payload = payload[:size], payload[size:]
	}
	if len(payload) == 0 {
		return nil
	}
	d.advance(id)
	first := id - int64(size) + 1
	if first <= d.newest-Window || d.contradicts(generation, first, id) {
		return nil
	}
	if e := d.equation(generation, first, coefficients, payload); e != nil {
		d.insert(e)
	}
	return d.solved()
}

func (d *linearDecoder) Forget(id int64) {
	if k := &d.known[place(id)]; k.id == id {
		k.id = -1
	}
	d.spare = append(d.spare, d.equations...)
	d.equations = d.equations[:0]
}

// contradicts reports whether a symbol that arrived says that it isn't in a generation from first to last.
func (d *linearDecoder) contradicts(generation, first, last int64) bool {
	for id := first; id <= last; id++ {
		k := &d.known[place(id)]
		if k.id == id && (generation < k.generations.First || generation > k.generations.Last) {
			return true
		}
	}
	return false
}

// equation makes one of a coded symbol, without the symbols that are known; nil when all are.
func (d *linearDecoder) equation(generation, first int64, coefficients, sum []byte) *equation {
	var unknown places
	for i, coefficient := range coefficients {
		if id := first + int64(i); coefficient != 0 && d.known[place(id)].id != id {
			unknown.add(place(id))
		}
	}
	if unknown.none() {
		return nil
	}
	e := d.newEquation()
	e.generation, e.unknown, e.sum = generation, unknown, append(e.sum, sum...)
	for i, coefficient := range coefficients {
		if at := place(first + int64(i)); unknown.has(at) {
			e.coefficient[at] = coefficient
		} else if coefficient != 0 {
			e.sum = addTimes(e.sum, coefficient, d.known[at].symbol)
		}
	}
	return e
}

// insert reduces an equation by the others, and the others by it.
func (d *linearDecoder) insert(e *equation) {
	for _, other := range d.equations {
		e.subtract(other)
	}
	if e.unknown.none() {
		d.spare = append(d.spare, e) // it says nothing new
		return
	}
	e.pivot = e.unknown.first()
	inverse := inverses[e.coefficient[e.pivot]]
	field.GalMulSlice(inverse, e.coefficient[:], e.coefficient[:])
	field.GalMulSlice(inverse, e.sum, e.sum)
	for _, other := range d.equations {
		other.subtractAt(e.pivot, e)
	}
	d.equations = append(d.equations, e)
}

// subtract removes the other's pivot from e.
func (e *equation) subtract(other *equation) { e.subtractAt(other.pivot, other) }

func (e *equation) subtractAt(pivot int, other *equation) {
	times := e.coefficient[pivot]
	if times == 0 {
		return
	}
	field.GalMulSliceXor(times, other.coefficient[:], e.coefficient[:])
	e.sum = addTimes(e.sum, times, other.sum)
	e.generation = max(e.generation, other.generation)
	changed := e.unknown
	changed.addAll(other.unknown)
	e.unknown = places{}
	for at := range changed.each {
		if e.coefficient[at] != 0 {
			e.unknown.add(at)
		}
	}
}

// substitute subtracts a symbol that has become known. An equation that had it as its pivot needs a new one.
func (d *linearDecoder) substitute(id int64) {
	at := place(id)
	var homeless *equation // only one can have had the pivot
	kept := d.equations[:0]
	for _, e := range d.equations {
		if e.unknown.has(at) {
			e.sum = addTimes(e.sum, e.coefficient[at], d.known[at].symbol)
			e.coefficient[at] = 0
			e.unknown.remove(at)
		}
		if e.pivot == at {
			homeless = e
		} else {
			kept = append(kept, e)
		}
	}
	d.equations = kept
	if homeless != nil {
		d.insert(homeless)
	}
}

// solved moves the symbols of equations with a single unknown to those that are known.
func (d *linearDecoder) solved() []Recovered {
	kept := d.equations[:0]
	for _, e := range d.equations {
		if e.unknown.count() > 1 {
			kept = append(kept, e)
			continue
		}
		id := d.newest - int64((place(d.newest)-e.pivot)&(Window-1))
		k := &d.known[e.pivot]
		k.id, k.generations = id, Range{First: 0, Last: 1 << 62} // the last isn't known
		k.symbol, e.sum = e.sum, k.symbol
		d.recovered = append(d.recovered, Recovered{Generation: e.generation, ID: id, Symbol: k.symbol})
		d.spare = append(d.spare, e)
	}
	d.equations = kept
	return d.recovered
}

// advance moves the window up to an id, and drops the symbols and equations that fall out of it.
func (d *linearDecoder) advance(id int64) {
	if !d.started {
		d.started, d.newest = true, id
		return
	}
	for d.newest < id {
		d.newest++
		d.forget(place(d.newest))
	}
}

func (d *linearDecoder) forget(at int) {
	d.known[at].id = -1
	kept := d.equations[:0]
	for _, e := range d.equations {
		if e.unknown.has(at) {
			d.spare = append(d.spare, e)
		} else {
			kept = append(kept, e)
		}
	}
	d.equations = kept
}

func (d *linearDecoder) newEquation() *equation {
	last := len(d.spare) - 1
	if last < 0 {
		return &equation{}
	}
	e := d.spare[last]
	d.spare = d.spare[:last]
	*e = equation{sum: e.sum[:0]}
	return e
}

// places is a set of places.
type places [Window / 64]uint64

func (p *places) add(at int)      { p[at/64] |= 1 << (at % 64) }
func (p *places) remove(at int)   { p[at/64] &^= 1 << (at % 64) }
func (p *places) has(at int) bool { return p[at/64]&(1<<(at%64)) != 0 }
func (p *places) none() bool      { return *p == places{} }

func (p *places) addAll(other places) {
	for i := range p {
		p[i] |= other[i]
	}
}

func (p *places) count() (n int) {
	for _, word := range p {
		n += bits.OnesCount64(word)
	}
	return n
}

func (p *places) first() int {
	for at := range p.each {
		return at
	}
	panic("no place in an empty set")
}

func (p *places) each(yield func(int) bool) {
	for i, word := range p {
		for ; word != 0; word &= word - 1 {
			if !yield(64*i + bits.TrailingZeros64(word)) {
				return
			}
		}
	}
}
