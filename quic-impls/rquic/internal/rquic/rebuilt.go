package rquic

import "github.com/fecbench/fecbench/quic-impls/rquic/internal/observer"

// rebuiltWindow is the distance behind the newest id up to which a packet is recognised as a recovered one: as far as the 8 bits of
// the wire distinguish ids (see order), and twice as far as the decoder remembers symbols.
const rebuiltWindow = 256

// rebuilt remembers which of the newest packets were rebuilt and haven't come themselves, so that one that was merely
// late isn't taken for lost. It keeps rebuiltWindow ids at most.
type rebuilt [rebuiltWindow]rebuiltPacket // at the id modulo rebuiltWindow

type rebuiltPacket struct {
	id        int64 // 1 + the id; 0: none
	authentic bool  // what was rebuilt is the packet
	came      bool  // the packet came itself
	recovery  *observer.Recovery
}

// add remembers a packet that was rebuilt, in the place of one that is rebuiltWindow ids older.
func (r *rebuilt) add(id int64, recovery *observer.Recovery) {
	r[id%rebuiltWindow] = rebuiltPacket{id: id + 1, recovery: recovery}
}

// confirm records that the recovered content is the packet, and reports whether the packet came itself.
func (r *rebuilt) confirm(id int64) (came bool) {
	p := &r[id%rebuiltWindow]
	if p.id != id+1 {
		return false
	}
	p.authentic, came = true, p.came
	r.settle(p)
	return came
}

// awaited is the recovery of a packet that was rebuilt, rightly or not, and hasn't come itself; nil: there is none.
func (r *rebuilt) awaited(id int64) *observer.Recovery {
	if p := r[id%rebuiltWindow]; p.id == id+1 && !p.came {
		return p.recovery
	}
	return nil
}

// take records that a packet came itself, and reports whether it had been recovered, and rightly.
func (r *rebuilt) take(id int64) (was bool) {
	p := &r[id%rebuiltWindow]
	if p.id != id+1 {
		return false
	}
	p.came, was = true, p.authentic
	r.settle(p)
	return was
}

// forget records that the recovered content is no packet.
func (r *rebuilt) forget(id int64) {
	if p := &r[id%rebuiltWindow]; p.id == id+1 {
		*p = rebuiltPacket{}
	}
}

// settle forgets a packet of which there is no more to learn.
func (r *rebuilt) settle(p *rebuiltPacket) {
	if p.authentic && p.came {
		*p = rebuiltPacket{}
	}
}
