package endpoint

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/contract"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/lossylink"
)

// rowsOf reads a series that an end of a transfer has left: its columns, and its rows.
func (o outcome) rowsOf(t *testing.T, role, name string) (columns []string, rows [][]float64) {
	t.Helper()
	file, err := os.Open(filepath.Join(o.logs, role, name+".series.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	table, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range table[1:] {
		var row []float64
		for _, text := range record {
			value, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			row = append(row, value)
		}
		rows = append(rows, row)
	}
	if !slices.IsSortedFunc(rows, func(a, b []float64) int { return slices.Compare(a[:1], b[:1]) }) {
		t.Errorf("%s: the rows of %s are not in the order of time", role, name)
	}
	return table[0], rows
}

func TestTheCongestionWindowOverTimeIsThatOfTheTransfer(t *testing.T) {
	for _, scheme := range []string{"plain", "none", "xor"} {
		o := transfer{
			workload: download(1_000_000), options: withScheme(fecOptions, scheme),
			series: contract.Series{CongestionWindow: true},
			up:     wifi(lossylink.Nothing), down: wifi(lossylink.Uniform(4, 0.02)),
		}.succeed(t)
		_, rows := o.rowsOf(t, "server", "cwnd")
		const time, connection, window, inFlight, rtt = 0, 1, 2, 3, 4
		// The client's first flight has two datagrams, and the server answers the second.
		if first := rows[0]; first[time] > 0.001 || !slices.Equal(first[window:], []float64{32 * 1252, 1252, 0}) {
			t.Errorf("%s: the first row is %v", scheme, first)
		}
		last := rows[len(rows)-1]
		if last[time] < o.client["dct_s"]-2*wifiDelay.Seconds() || last[time] > o.client["dct_s"]+1 {
			t.Errorf("%s: the last row is of %v s, the DCT %v s", scheme, last[time], o.client["dct_s"])
		}
		if difference := last[rtt] - o.server["smoothed_rtt_ms"]; difference < -1e-5 || difference > 1e-5 {
			t.Errorf("%s: the last row has an RTT of %v ms, the metric is %v ms", scheme, last[rtt], o.server["smoothed_rtt_ms"])
		}
		reductions, packets := 0, 0
		for i, row := range rows[1:] {
			if row[window] < rows[i][window] {
				reductions++
			}
			if row[inFlight] > rows[i][inFlight] {
				packets++
			}
			if row[connection] != 0 || row[rtt] != 0 && row[rtt] < 2*wifiDelay.Seconds()*1000 {
				t.Errorf("%s: %v", scheme, row)
			}
		}
		if most := o.server["packets_lost"]; reductions < 1 || float64(reductions) > most {
			t.Errorf("%s: the window became smaller %d times, with %v losses", scheme, reductions, most)
		}
		// All that carry content need an acknowledgement.
		if content := 1_000_000 / 1252; packets < content || float64(packets) > o.server["packets_sent"] {
			t.Errorf("%s: the bytes in flight grew %d times with %v packets", scheme, packets, o.server["packets_sent"])
		}
	}
}

func TestEachConnectionOfAPageHasItsRows(t *testing.T) {
	o := transfer{
		workload: loading(photos(20), true), options: fecOptions,
		series: contract.Series{CongestionWindow: true, CodeRate: true},
		up:     wifi(lossylink.Nothing), down: wifi(lossylink.Nothing),
	}.succeed(t)
	for _, role := range []string{"client", "server"} {
		for _, name := range []string{"cwnd", "code_rate"} {
			first := map[float64]float64{}
			_, rows := o.rowsOf(t, role, name)
			for _, row := range rows {
				if _, known := first[row[1]]; !known {
					first[row[1]] = row[0]
				}
			}
			// The second one is dialled when the document was loaded and processed.
			if len(first) != 3 || first[0] > 0.001 || first[1] < (20*time.Millisecond).Seconds() || first[2] < first[1] {
				t.Errorf("%s: by %s, connections begin at %v", role, name, first)
			}
		}
	}
}

func TestNoSeriesIsLeftThatWasNotAskedFor(t *testing.T) {
	o := transfer{
		workload: download(1000), options: fecOptions, up: wifi(lossylink.Nothing), down: wifi(lossylink.Nothing),
	}.succeed(t)
	for _, role := range []string{"client", "server"} {
		if files, err := os.ReadDir(filepath.Join(o.logs, role)); err != nil || len(files) != 0 {
			t.Errorf("%s: %v, %v", role, err, files)
		}
	}
}

func TestATransferThatFailsLeavesItsSeries(t *testing.T) {
	o := transfer{
		workload: download(1_000_000), options: withScheme(fecOptions, "none"), deadline: 3 * time.Second,
		series: contract.Series{CongestionWindow: true},
		up:     wifi(lossylink.Nothing), down: wifi(lossylink.Those(func(n uint64, _ []byte) bool { return n > 20 })),
	}.run(t)
	if o.clientErr == nil {
		t.Error("it succeeded")
	}
	if _, rows := o.rowsOf(t, "client", "cwnd"); len(rows) == 0 {
		t.Error("the client left no rows")
	}
}

func TestTheCodeRateOverTimeHasARowForEachPeriod(t *testing.T) {
	for preset, initial := range map[string]float64{"constant": 9, "paper": 32, "code2021": 10} {
		rate := fecOptions.Rate
		rate.Preset = preset
		o := transfer{
			workload: download(2_000_000), options: withRate("xor", rate), series: contract.Series{CodeRate: true},
			up: wifi(lossylink.Nothing), down: wifi(lossylink.Uniform(6, 0.02)),
		}.succeed(t)
		columns, rows := o.rowsOf(t, "server", "code_rate")
		if right := []string{"t_s", "connection", "q", "residual_loss", "delivered", "lost", "window_packets", "smoothed_rtt_ms"}; !slices.Equal(columns, right) {
			t.Errorf("%s: columns %v", preset, columns)
		}
		if !slices.Equal(rows[0], []float64{0, 0, initial, 0, 0, 0, 0, 0}) {
			t.Errorf("%s: the first row is %v", preset, rows[0])
		}
		if adaptive := preset != "constant"; (len(rows) > 1) != adaptive {
			t.Errorf("%s: %d rows", preset, len(rows))
		}
		delivered, lost, busiest := 0.0, 0.0, 0.0
		for _, row := range rows {
			delivered, lost, busiest = delivered+row[4], lost+row[5], max(busiest, row[4])
		}
		// Packets after the last period are not included.
		if delivered > o.server["protected_delivered"] || lost > o.server["protected_lost"] {
			t.Errorf("%s: %v packets delivered and %v lost in all periods, %v", preset, delivered, lost, o.server)
		}
		if most := o.server["protected_delivered"]; preset != "constant" && delivered < most-busiest {
			t.Errorf("%s: %v of %v packets delivered in all periods", preset, delivered, most)
		}
	}
}

func TestWithoutACodeItsRateIsASeriesOfNothing(t *testing.T) {
	for _, scheme := range []string{"none", "plain"} {
		o := transfer{
			workload: download(1000), options: withScheme(fecOptions, scheme), series: contract.Series{CodeRate: true},
			up: wifi(lossylink.Nothing), down: wifi(lossylink.Nothing),
		}.succeed(t)
		if _, rows := o.rowsOf(t, "server", "code_rate"); len(rows) != 0 {
			t.Errorf("%s: %v", scheme, rows)
		}
	}
}
