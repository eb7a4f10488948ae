package rquic

// rebuiltWindow is how far behind the newest id a packet is still recognised as one that was rebuilt: as far as the 8 bits
// of the wire tell ids apart (see order), and twice as far as the decoder remembers symbols.
const rebuiltWindow = 256

// rebuilt remembers which of the newest packets were rebuilt and haven't come themselves, so that one that was merely
// late isn't taken for lost. It keeps rebuiltWindow ids at most.
type rebuilt [rebuiltWindow]int64 // 1 + the id, at the id modulo rebuiltWindow; 0: none

// add remembers a packet that was rebuilt, in the place of one that is rebuiltWindow ids older.
func (r *rebuilt) add(id int64) { r[id%rebuiltWindow] = id + 1 }

// take forgets a packet that has come, and reports whether it was rebuilt before.
func (r *rebuilt) take(id int64) bool {
	was := r[id%rebuiltWindow] == id+1
	if was {
		r[id%rebuiltWindow] = 0
	}
	return was
}
