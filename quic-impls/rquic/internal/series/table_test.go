package series

import (
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestATableHasEveryRowInTheOrderInWhichTheyCameAndTimesWithoutALoss(t *testing.T) {
	path := filepath.Join(t.TempDir(), "messages.series.csv")
	synctest.Test(t, func(t *testing.T) {
		recording := &Recording{}
		table := recording.BeginTable(path, Column{Name: "message"}, Column{Name: "due_s", Time: true})
		connection := recording.Open()
		time.Sleep(time.Millisecond)
		table.Add(connection, 7, 9_007_199_254_000_000_001)
		table.Add(connection, 0, 0)
		table.Add(connection, 1, 1_000_000_010)
		if err := recording.Write(); err != nil {
			t.Error(err)
		}
	})
	right := []string{
		"t_s,connection,message,due_s", "0.001000,0,7,9007199254.000000001", "0.001000,0,0,0.000000000", "0.001000,0,1,1.000000010",
	}
	if got := lines(t, path); !slices.Equal(got, right) {
		t.Errorf("%q", got)
	}
}

func TestATableIsNotThinned(t *testing.T) {
	path, rows := filepath.Join(t.TempDir(), "messages.series.csv"), 2*limit
	recording := &Recording{}
	table := recording.BeginTable(path, Column{Name: "message"})
	connection := recording.Open()
	for i := range rows {
		table.Add(connection, int64(i))
	}
	if err := recording.Write(); err != nil {
		t.Fatal(err)
	}
	if got := lines(t, path); len(got) != rows+1 {
		t.Errorf("%d lines", len(got))
	}
}
