package series

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func lines(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

func TestTheTimeOfAllSeriesBeginsWithTheFirstConnection(t *testing.T) {
	folder := t.TempDir()
	one, other := filepath.Join(folder, "one.series.csv"), filepath.Join(folder, "other.series.csv")
	synctest.Test(t, func(t *testing.T) {
		recording := &Recording{}
		windows, rates := recording.Begin(one, "window_bytes", "rtt_ms"), recording.Begin(other, "q")
		time.Sleep(time.Hour)
		first := recording.Open()
		time.Sleep(time.Millisecond)
		windows.Add(first, 12520, 0)
		time.Sleep(time.Second)
		second := recording.Open()
		windows.Add(second, 134217728, 25.25)
		rates.Add(second, 6.7)
		if err := recording.Write(); err != nil {
			t.Error(err)
		}
	})
	right := []string{"t_s,connection,window_bytes,rtt_ms", "0.001000,0,12520,0", "1.001000,1,134217728,25.25"}
	if got := lines(t, one); !slices.Equal(got, right) {
		t.Errorf("%q", got)
	}
	if got := lines(t, other); !slices.Equal(got, []string{"t_s,connection,q", "1.001000,1,6.7"}) {
		t.Errorf("%q", got)
	}
}

func TestASeriesOfNothingIsItsHeader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "q.series.csv")
	recording := &Recording{}
	recording.Begin(path, "q")
	if err := recording.Write(); err != nil {
		t.Fatal(err)
	}
	if got := lines(t, path); !slices.Equal(got, []string{"t_s,connection,q"}) {
		t.Errorf("%q", got)
	}
}

// Two connections take turns, so that every second row of all would be one of them.
func TestASeriesBeyondItsLimitIsThinnedEvenlyAndKeepsBothEnds(t *testing.T) {
	const limit, changes = 100, 12_345
	synctest.Test(t, func(t *testing.T) {
		recording := &Recording{}
		s := recording.Begin("", "change")
		s.limit = limit
		recording.Open()
		recording.Open()
		for change := range changes {
			for _, connection := range []int{1, 0} {
				s.Add(connection, float64(change))
				time.Sleep(time.Millisecond)
			}
		}
		rows := s.complete()
		if len(rows) < limit/2 || len(rows) > limit+2 {
			t.Errorf("%d rows", len(rows))
		}
		if !slices.IsSortedFunc(rows, func(a, b row) int { return int(a.at - b.at) }) {
			t.Error("the rows are not in the order of time")
		}
		for connection := range 2 {
			var kept, gaps []float64
			for _, r := range rows {
				if r.connection == connection {
					kept = append(kept, r.values[0])
				}
			}
			for i := range len(kept) - 1 {
				gaps = append(gaps, kept[i+1]-kept[i])
			}
			if kept[0] != 0 || kept[len(kept)-1] != changes-1 {
				t.Errorf("connection %d: from change %v to %v", connection, kept[0], kept[len(kept)-1])
			}
			if least, most := slices.Min(gaps[:len(gaps)-1]), slices.Max(gaps); most > 3*least {
				t.Errorf("connection %d: gaps of %v to %v changes", connection, least, most)
			}
		}
	})
}

// Time stands still, and the last row makes the series thin out, every second row of which is dropped.
func TestRowsOfOneInstantStayInTheirOrderAndTheLastOneIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recording := &Recording{}
		s := recording.Begin("", "change")
		s.limit = 11
		connection := recording.Open()
		var kept []float64
		for change := range 1002 {
			s.Add(connection, float64(change))
		}
		for _, r := range s.complete() {
			kept = append(kept, r.values[0])
		}
		if !slices.IsSorted(kept) || len(kept) > 12 || kept[len(kept)-1] != 1001 {
			t.Errorf("%v", kept)
		}
	})
}

// The contract has a limit of 16 MiB. These are the widest rows that the series of this implementation may have.
func TestAFileWithAsManyRowsAsThereMayBeIsWithinTheContract(t *testing.T) {
	s := (&Recording{}).Begin("", slices.Repeat([]string{"wide"}, maxValues)...)
	widest := row{at: 99_999 * time.Second, connection: 9, values: [...]float64{62.0 / 3, 0.1 / 7, 9_999_999, 9_999_999, 99_999, 2e4 / 7}}
	s.rows = slices.Repeat([]row{widest}, limit)
	s.latest = slices.Repeat([]latest{{added: widest, kept: widest}}, 10)
	var file bytes.Buffer
	if err := s.writeTo(&file); err != nil {
		t.Fatal(err)
	}
	if file.Len() > 16<<20 {
		t.Errorf("%d bytes", file.Len())
	}
}

func TestASeriesThatCannotBeWrittenIsAnErrorThatNamesIt(t *testing.T) {
	for _, path := range []string{filepath.Join(t.TempDir(), "missing", "q.series.csv"), "/dev/full"} {
		recording := &Recording{}
		recording.Begin(path, "q")
		if err := recording.Write(); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
