package endpoint

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	host "github.com/fecbench/fecbench/quic-impls/host-go"
	"github.com/fecbench/fecbench/quic-impls/tcp/internal/contract"
	"github.com/fecbench/fecbench/quic-impls/tcp/internal/kernel"
)

func flow(local, remote string, sent int64) kernel.Flow {
	return kernel.Flow{Local: netip.MustParseAddr(local), Remote: netip.MustParseAddr(remote), SegmentsSent: sent}
}

func TestFlowsAreCountedByPathAtBothEnds(t *testing.T) {
	flows := []kernel.Flow{flow("10.0.1.2", "10.0.100.2", 5), flow("10.0.3.2", "10.0.100.2", 7)}
	client := &endpoint{assignment: contract.Assignment{Assignment: host.Assignment{Role: "client"}, Options: contract.Options{Paths: 3}}}
	for _, own := range []string{"10.0.1.2", "10.0.2.2", "10.0.3.2"} {
		client.assignment.LocalAddresses = append(client.assignment.LocalAddresses, netip.MustParseAddr(own))
	}
	metrics, err := client.metrics([]*account{{flows: flows}})
	if err != nil || metrics["packets_sent"] != 12 || metrics["path1.packets_sent"] != 5 ||
		metrics["path2.packets_sent"] != 0 || metrics["path3.packets_sent"] != 7 {
		t.Errorf("%v, %v", metrics, err)
	}
	server := &endpoint{assignment: contract.Assignment{Assignment: host.Assignment{Role: "server"}, Options: contract.Options{Paths: 2}}}
	flows = []kernel.Flow{flow("10.0.100.2", "10.0.2.2", 7), flow("10.0.100.2", "10.0.1.2", 5)}
	metrics, err = server.metrics([]*account{{flows: flows}})
	if err != nil || metrics["path1.packets_sent"] != 5 || metrics["path2.packets_sent"] != 7 {
		t.Errorf("%v, %v", metrics, err)
	}
}

func TestRowsAreChangesAndTheirNumberIsBounded(t *testing.T) {
	w := newWindow()
	w.begin(time.Now())
	for n := range 3 * mostRows {
		f := kernel.Flow{WindowBytes: int64(n / 2)} // every other look has nothing new
		w.add(0, []kernel.Flow{f})
	}
	if len(w.rows) < mostRows/2 || len(w.rows) > mostRows {
		t.Fatalf("%d rows", len(w.rows))
	}
	for n := 1; n < len(w.rows); n++ {
		if w.rows[n].windowBytes <= w.rows[n-1].windowBytes || w.rows[n].after < w.rows[n-1].after {
			t.Fatalf("row %d: %+v after %+v", n, w.rows[n], w.rows[n-1])
		}
	}
	if last := w.rows[len(w.rows)-1].windowBytes; last < 3*mostRows/2-8 {
		t.Errorf("the rows end with %d", last)
	}
	folder := t.TempDir()
	if err := w.write(folder); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(folder, "cwnd.series.csv"))
	if err != nil || info.Size() > 16<<20 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestAPathOfARequestIsASize(t *testing.T) {
	for path, right := range map[string]int64{"/0": 0, "/123": 123} {
		if size, err := parseSize(path); err != nil || size != right {
			t.Errorf("%s: %d, %v", path, size, err)
		}
	}
	for _, path := range []string{"", "/", "12", "/-1", "/1x", "/99999999999999999999"} {
		if size, err := parseSize(path); err == nil {
			t.Errorf("%s: %d", path, size)
		}
	}
}
