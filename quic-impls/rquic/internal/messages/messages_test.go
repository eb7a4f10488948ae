package messages

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/fecbench/fecbench/quic-impls/host-go/content"
)

func traffic(t *testing.T, timetable string, partBytes int64) *Traffic {
	t.Helper()
	parsed, err := ParseTimetable([]byte(timetable), partBytes)
	if err != nil {
		t.Fatal(err)
	}
	return &Traffic{Delivery: Datagram, PartBytes: partBytes, Messages: parsed}
}

func TestATimetableSaysWhenEachMessageIsDueAndWhereItsContentBegins(t *testing.T) {
	x := traffic(t, "[[0, 8000], [33333, 1], [33333, 2500]]", 1000)
	right := []Message{{0, 0, 8000}, {33333 * time.Microsecond, 8000, 1}, {33333 * time.Microsecond, 8001, 2500}}
	if fmt.Sprint(x.Messages) != fmt.Sprint(right) {
		t.Errorf("read %v, right is %v", x.Messages, right)
	}
	if x.Parts(0) != 8 || x.Parts(1) != 1 || x.Parts(2) != 3 {
		t.Errorf("%d, %d and %d parts", x.Parts(0), x.Parts(1), x.Parts(2))
	}
	if offset, size := x.Part(2, 2); offset != 10_001 || size != 500 {
		t.Errorf("the last part has %d bytes from %d on", size, offset)
	}
}

func TestThePartsOfAMessageAreItsContentWithoutGaps(t *testing.T) {
	for range 200 {
		x := &Traffic{PartBytes: 1 + rand.Int64N(MaxPart), Messages: []Message{{Offset: rand.Int64N(1e9), Size: 1 + rand.Int64N(20_000)}}}
		end := x.Messages[0].Offset
		for part := range x.Parts(0) {
			offset, size := x.Part(0, part)
			if offset != end || size < 1 || size > x.PartBytes {
				t.Fatalf("part %d of %+v has %d bytes from %d on", part, x, size, offset)
			}
			end += size
		}
		if end != x.Messages[0].Offset+x.Messages[0].Size {
			t.Fatalf("the parts of %+v end at %d", x, end)
		}
	}
}

func TestATimetableThatCannotBeIsRefused(t *testing.T) {
	for timetable, naming := range map[string]string{
		"7":                      "not a list of pairs of integers",
		"[]":                     "0 messages; there are 1 to 100000",
		"[[0, 0.5]]":             "not a list of pairs of integers",
		"[[0, 1, 2]]":            "[0]: 3 numbers",
		"[[0]]":                  "[0]: 1 numbers",
		"[[-1, 1]]":              "[0]: due at -1 µs",
		"[[5, 1], [4, 1]]":       "[1]: due at 4 µs, which is not in 5 to",
		"[[0, 0]]":               "[0]: 0 bytes, which are not in 1 to 65536",
		"[[0, 65537]]":           "[0]: 65537 bytes, which are not in 1 to 65536",
		"[[2000000000000, 100]]": "[0]: due at 2000000000000 µs",
		"[" + strings.Repeat("[0,1],", MaxMessages) + "[0,1]]": "100001 messages",
	} {
		if _, err := ParseTimetable([]byte(timetable), 1); err == nil || !strings.Contains(err.Error(), naming) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40s: %v, which should name %q", timetable, err, naming)
		}
	}
	if _, err := ParseTimetable([]byte("[[0, 16777217]]"), MaxPart); err == nil {
		t.Error("a message of more than 16 MiB was taken")
	}
}

func TestADatagramIsReadAsItWasWritten(t *testing.T) {
	x := traffic(t, "[[0, 2500], [1, 1000]]", 1000)
	for m := range x.Messages {
		for part := range x.Parts(m) {
			_, size := x.Part(m, part)
			datagram := append(AppendHeader(nil, m, part), bytes.Repeat([]byte{7}, int(size))...)
			message, got, content, err := x.Read(datagram)
			if err != nil || message != m || got != part || len(content) != int(size) {
				t.Errorf("part %d of message %d was read as part %d of %d with %d bytes, %v", part, m, got, message, len(content), err)
			}
		}
	}
}

func TestADatagramThatIsNoneOfTheTrafficIsRefusedWithOneLineThatNamesIt(t *testing.T) {
	x := traffic(t, "[[0, 2500], [1, 1000]]", 1000)
	part := func(message, part, size int) []byte {
		return append(AppendHeader(nil, message, part), make([]byte, size)...)
	}
	for naming, datagram := range map[string][]byte{
		"of 0 bytes has no header":            nil,
		"of 5 bytes has no header":            make([]byte, 5),
		"of message 2; the last one is 1":     part(2, 0, 1000),
		"of message 4294967295":               part(1<<32-1, 0, 1000),
		"of part 3 of message 0":              part(0, 3, 1000),
		"of part 65535 of message 1":          part(1, 1<<16-1, 1000),
		"with 0 bytes of part 0 of message 0": part(0, 0, 0),
		"with 499 bytes of part 2":            part(0, 2, 499),
		"with 1001 bytes of part 0":           part(1, 0, 1001),
	} {
		if _, _, _, err := x.Read(datagram); err == nil || !strings.Contains(err.Error(), naming) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, which should name %q", err, naming)
		}
	}
}

func FuzzRead(f *testing.F) {
	x := &Traffic{PartBytes: 1000, Messages: []Message{{Size: 2500}, {Offset: 2500, Size: 1}}}
	f.Add(append(AppendHeader(nil, 0, 2), make([]byte, 500)...))
	f.Fuzz(func(t *testing.T, datagram []byte) {
		received := NewReceived(x)
		if m, part, content, err := x.Read(datagram); err == nil {
			if _, size := x.Part(m, part); int64(len(content)) != size || !received.Add(m, part) {
				t.Errorf("part %d of message %d was taken with %d bytes", part, m, len(content))
			}
		}
	})
}

func TestAllHasComeWhenEachPartHasInWhateverOrderAndSecondCopiesAreNone(t *testing.T) {
	x := traffic(t, "[[0, 2500], [1, 100000], [2, 1]]", 1000)
	type place struct{ message, part int }
	var places []place
	for m := range x.Messages {
		for part := range x.Parts(m) {
			places = append(places, place{m, part})
		}
	}
	rand.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
	received := NewReceived(x)
	if len(received.came) != 2 {
		t.Errorf("104 parts take %d words", len(received.came))
	}
	for _, p := range places {
		if received.Complete() {
			t.Fatal("complete before the last part")
		}
		if !received.Add(p.message, p.part) || received.Add(p.message, p.part) {
			t.Errorf("part %d of message %d is new the second time, not the first", p.part, p.message)
		}
	}
	if !received.Complete() {
		t.Error("not complete")
	}
}

func TestOnlyTheRightContentIsVerified(t *testing.T) {
	x := traffic(t, "[[0, 2500], [1, 1003]]", 1000)
	all := make([]byte, 3503)
	content.Fill(all, 7, 0)
	verifier := Verifier{Traffic: x, Seed: 7}
	for m := range x.Messages {
		for part := range x.Parts(m) {
			offset, size := x.Part(m, part)
			right := all[offset : offset+size]
			if err := verifier.Verify(m, part, right); err != nil {
				t.Error(err)
			}
			other := bytes.Clone(right)
			other[rand.IntN(len(other))] ^= 1
			if err := verifier.Verify(m, part, other); err == nil {
				t.Errorf("part %d of message %d was taken with another content", part, m)
			}
		}
	}
}
