package hold

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const timeout = 25 * time.Millisecond

var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func at(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }

func expect(t *testing.T, released []int, right ...int) {
	t.Helper()
	if !slices.Equal(released, right) {
		t.Errorf("released %v, right is %v", released, right)
	}
}

func TestTheFirstPacketOfAllIsReleasedAtOnce(t *testing.T) {
	b := New[int](timeout)
	expect(t, b.Receive(at(0), 0, 77, 77, nil), 77)
}

func TestAPacketIsReleasedAtOnceBehindItsPredecessor(t *testing.T) {
	b := New[int](timeout)
	b.Receive(at(0), 0, 254, 254, nil)
	expect(t, b.Receive(at(0), 0, 255, 255, nil), 255)
	expect(t, b.Receive(at(0), 0, 256, 256, nil), 256)
}

func TestAPacketBehindAGapWaitsForTheTimeoutAndNoLonger(t *testing.T) {
	b := New[int](timeout)
	b.Receive(at(0), 0, 0, 0, nil)
	expect(t, b.Receive(at(1), 0, 2, 2, nil))
	if deadline, held := b.Deadline(); !held || !deadline.Equal(at(26)) {
		t.Errorf("deadline %v, %v", deadline, held)
	}
	expect(t, b.Expire(at(25), nil))
	expect(t, b.Expire(at(26), nil), 2)
	if _, held := b.Deadline(); held {
		t.Error("something is still held")
	}
}

func TestARecoveredPacketIsPutInItsPlace(t *testing.T) {
	b := New[int](timeout)
	b.Receive(at(0), 0, 0, 0, nil)
	b.Receive(at(1), 0, 2, 2, nil)
	b.Receive(at(2), 0, 3, 3, nil)
	expect(t, b.Insert(at(3), 0, 1, 1, nil), 1, 2, 3)
}

func TestTheThirdPacketOfNewerGenerationsEndsTheWait(t *testing.T) {
	for name, newer := range map[string][]int64{"of one generation": {1, 1, 1}, "of several": {1, 2, 3}} {
		t.Run(name, func(t *testing.T) {
			b := New[int](timeout)
			b.Receive(at(0), 0, 0, 0, nil)
			expect(t, b.Receive(at(0), 0, 2, 2, nil))
			expect(t, b.Receive(at(0), newer[0], 3+1, 4, nil))
			expect(t, b.Receive(at(0), newer[1], 5, 5, nil))
			expect(t, b.Receive(at(0), newer[2], 6, 6, nil), 2)
		})
	}
}

func TestAReleaseAfterTheTimeoutTakesWhatPrecedesWithIt(t *testing.T) {
	b := New[int](timeout)
	b.Receive(at(0), 0, 0, 0, nil)
	b.Receive(at(1), 0, 5, 5, nil)
	b.Receive(at(9), 0, 3, 3, nil)
	b.Receive(at(9), 0, 7, 7, nil)
	expect(t, b.Expire(at(26), nil), 3, 5)
}

func TestALatePacketIsReleasedAtOnce(t *testing.T) {
	b := New[int](0)
	b.Receive(at(0), 0, 10, 10, nil)
	expect(t, b.Receive(at(0), 0, 12, 12, nil), 12)
	if !b.Passed(11) || b.Passed(13) {
		t.Error("11 has passed, 13 has not")
	}
	expect(t, b.Insert(at(0), 0, 11, 11, nil), 11)
}

func TestAHeldPacketThatComesTwiceIsReleasedTwice(t *testing.T) {
	b := New[int](timeout)
	b.Receive(at(0), 0, 0, 0, nil)
	b.Receive(at(0), 0, 2, 2, nil)
	expect(t, b.Receive(at(0), 0, 2, 22, nil), 22)
	expect(t, b.ReleaseAll(nil), 2)
}

// In any stream with losses and reordering, every packet that arrives is released once, at most the timeout after its
// arrival, and after all those with lower ids that came before its release.
func TestEveryPacketIsReleasedOnceInOrderAndInTime(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			lossRate, generationSize := random.Float64()*0.5, 1+random.IntN(63)
			b := New[int](timeout)
			now := start
			arrival, releasedAt := map[int]time.Time{}, map[int]time.Time{}
			newestReleased := -1
			release := func(packets []int) {
				for _, p := range packets {
					if _, twice := releasedAt[p]; twice {
						t.Fatalf("%d was released twice", p)
					}
					releasedAt[p] = now
					if waited := now.Sub(arrival[p]); waited > timeout {
						t.Errorf("%d waited for %v", p, waited)
					}
					if late := p < newestReleased; late && !arrival[p].Equal(now) {
						t.Errorf("%d was held, and released behind %d", p, newestReleased)
					}
					newestReleased = max(newestReleased, p)
				}
			}
			expireUntil := func(end time.Time) {
				for deadline, held := b.Deadline(); held && !end.Before(deadline); deadline, held = b.Deadline() {
					now = deadline
					release(b.Expire(now, nil))
				}
				now = end
			}
			receive := func(p int) {
				expireUntil(now)
				arrival[p] = now
				release(b.Receive(now, int64(p/generationSize), int64(p), p, nil))
				if len(b.held) > maxHeld {
					t.Fatalf("%d packets are held", len(b.held))
				}
			}
			var delayed []int
			for p := range 2000 {
				now = now.Add(time.Duration(random.IntN(3000)) * time.Microsecond)
				switch {
				case p > 0 && random.Float64() < lossRate:
				case p > 0 && random.Float64() < 0.05:
					delayed = append(delayed, p)
				default:
					receive(p)
				}
				if len(delayed) > 0 && random.Float64() < 0.3 {
					receive(delayed[0])
					delayed = delayed[1:]
				}
			}
			expireUntil(now.Add(timeout))
			if len(releasedAt) != len(arrival) {
				t.Errorf("%d of %d packets were released", len(releasedAt), len(arrival))
			}
		})
	}
}

func TestALongerTimeoutAlsoHoldsWhatIsThereAlready(t *testing.T) {
	b := New[int](timeout)
	b.Receive(at(0), 0, 0, 0, nil)
	b.Receive(at(0), 0, 2, 2, nil)
	b.SetTimeout(2 * timeout)
	expect(t, b.Expire(at(49), nil))
	expect(t, b.Expire(at(50), nil), 2)
}

func TestTheFirstOfTooManyPacketsIsReleased(t *testing.T) {
	b := New[int](timeout)
	b.Receive(at(0), 0, 0, 0, nil)
	for id := 2; id < 2+maxHeld; id++ {
		expect(t, b.Insert(at(0), 0, int64(2*id), 2*id, nil))
	}
	expect(t, b.Insert(at(0), 0, 9999, 9999, nil), 4)
}

// FuzzBuffer gives a buffer whatever packets at whatever times: 5 bytes for each. All come out once, in time.
func FuzzBuffer(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 0, 1, 1, 0, 2, 0, 1, 1, 0, 1, 0})
	f.Add([]byte{1, 0, 0, 0, 0, 1, 1, 0, 2, 0, 1, 1, 1, 4, 0, 1, 1, 1, 5, 0, 1, 1, 1, 6, 0})
	f.Add([]byte{0, 0, 0, 9, 0, 0, 30, 5, 200, 0, 1, 30, 200, 100, 9})
	f.Fuzz(func(t *testing.T, input []byte) {
		b := New[int](timeout)
		now, in := start, 0
		out := map[int]bool{}
		arrival := map[int]time.Time{}
		release := func(packets []int) {
			for _, p := range packets {
				if out[p] || now.Sub(arrival[p]) > timeout {
					t.Fatalf("%d came out twice or after %v", p, now.Sub(arrival[p]))
				}
				out[p] = true
			}
		}
		id := int64(256)
		for ; len(input) >= 5; input = input[5:] {
			next := now.Add(time.Duration(input[1]) * time.Millisecond)
			for deadline, held := b.Deadline(); held && !next.Before(deadline); deadline, held = b.Deadline() {
				now = deadline
				release(b.Expire(now, nil))
			}
			now = next
			arrival[in] = now
			id += int64(int8(input[3]))
			if input[0]%2 == 0 {
				release(b.Insert(now, int64(input[2]), id, in, nil))
			} else {
				release(b.Receive(now, int64(input[2]), id+int64(input[4]), in, nil))
			}
			in++
			if len(b.held) > maxHeld {
				t.Fatalf("%d are held", len(b.held))
			}
		}
		now = now.Add(timeout)
		for _, p := range b.ReleaseAll(nil) {
			if out[p] {
				t.Fatalf("%d came out twice", p)
			}
			out[p] = true
		}
		if len(out) != in {
			t.Fatalf("%d of %d came out", len(out), in)
		}
	})
}
