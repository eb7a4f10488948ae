package endpoint

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/contract"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/lossylink"
)

var bulk = flag.Bool("bulk", false, "print the README's table of the paper's bulk transfers; some minutes")

// The completion rate is the DCT in parts of that without FEC, the overhead is that of equation (5).
func TestBulkTransfersOfThePaper(t *testing.T) {
	if !*bulk {
		t.Skip("without -bulk")
	}
	const seeds = 4
	presets := []string{"none", "constant", "paper", "code2021", "campaign2021"}
	for _, network := range []struct {
		name  string
		mbps  float64
		delay time.Duration
		size  int64
	}{
		{"Wi-Fi, 20 Mbps, RTT 25 ms, 20 MiB", 20, wifiDelay, 20 << 20},
		{"cellular, 10 Mbps, 100 ms, 20 MiB", 10, 50 * time.Millisecond, 20 << 20},
		{"satellite, 1.5 Mbps, 400 ms, 5 MiB", 1.5, 200 * time.Millisecond, 5 << 20},
	} {
		for _, loss := range []float64{0, 0.02, 0.05} {
			dct, overhead := map[string]float64{}, map[string]float64{}
			for _, preset := range presets {
				for seed := range uint64(seeds) {
					o := transfer{
						workload: download(network.size), options: asInThePaper(preset),
						up:   link(network.mbps, network.delay, lossylink.Uniform(2*seed, loss)),
						down: link(network.mbps, network.delay, lossylink.Uniform(2*seed+1, loss)),
					}.succeed(t)
					dct[preset] += o.client["dct_s"] / seeds
					overhead[preset] += o.server["overhead"] / seeds
				}
			}
			row := []string{network.name, fmt.Sprintf("%.0f %%", 100*loss), fmt.Sprintf("%.1f s", dct["none"])}
			for _, preset := range presets[1:] {
				row = append(row, fmt.Sprintf("%.2f, %.0f %%", dct[preset]/dct["none"], 100*overhead[preset]))
			}
			t.Log(strings.Join(row, " | "))
		}
	}
}

// asInThePaper has the options of a preset, or of FEC off with "none".
func asInThePaper(preset string) contract.Options {
	options := fecOptions
	options.Flush, options.Encoder = "never", "preset"
	if preset == "none" {
		return withScheme(options, "none")
	}
	options.Rate.Preset = preset
	return options
}
