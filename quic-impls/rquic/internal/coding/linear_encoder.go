package coding

import "math/rand/v2"

// linearEncoder adds every source symbol to its coded symbols as it comes.
type linearEncoder struct {
	random *rand.Rand // of coefficients; nil: all are 1
	size   int
	rows   []row
}

// row is a coded symbol that is being made.
type row struct{ coefficients, sum []byte }

func (e *linearEncoder) Add(symbol []byte) {
	for i := range e.rows {
		r := &e.rows[i]
		coefficient := byte(1)
		if e.random != nil {
			coefficient = byte(1 + e.random.UintN(255))
			r.coefficients = append(r.coefficients, coefficient)
		}
		r.sum = addTimes(r.sum, coefficient, symbol)
	}
	e.size++
}

func (e *linearEncoder) Size() int { return e.size }

func (e *linearEncoder) AppendRepair(b []byte, index int) []byte {
	return append(append(b, e.rows[index].coefficients...), e.rows[index].sum...)
}

func (e *linearEncoder) Reset() {
	e.size = 0
	for i := range e.rows {
		e.rows[i].coefficients, e.rows[i].sum = e.rows[i].coefficients[:0], e.rows[i].sum[:0]
	}
}
