package endpoint

import (
	"testing"
	"time"

	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/contract"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/header"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/lossylink"
)

// comingLate is a download of which every 100th datagram comes late, 8 in all; the RTT is 25 ms. Packets are numbered, and none is
// held.
func comingLate(recovery string, lateness time.Duration) transfer {
	options := withScheme(fecOptions, "hold")
	options.BTO, options.Recovery = 0, recovery
	down := lossylink.Rate(20, wifiDelay, 1<<20, lossylink.Nothing) // never full: nothing is lost
	return transfer{
		workload: download(1_000_000), options: options, up: wifi(lossylink.Nothing),
		hostile: comesLate(func(n int) bool { return n%100 == 0 }, lateness, &down), down: down,
	}
}

func eventsOfLateness(t *testing.T, recovery string) (events []qlogwriter.Event) {
	t.Helper()
	late := comingLate(recovery, 10*time.Millisecond)
	late.heard = func(event qlogwriter.Event) { events = append(events, event) }
	late.succeed(t)
	return events
}

// quic-go's reaction to a spurious loss, now and in 2020.
func TestTheRecoveryOf2020LeavesTheWindowReducedForALossThatWasNone(t *testing.T) {
	for _, recovery := range []string{"current", "2020"} {
		before, after := 0, 0 // the window, until the first loss turns out to be spurious, and then
		spurious := false
		for _, event := range eventsOfLateness(t, recovery) {
			switch e := event.(type) {
			case qlog.SpuriousLoss:
				spurious = true
			case qlog.MetricsUpdated:
				if !spurious {
					before = e.CongestionWindow
				} else if after == 0 {
					after = e.CongestionWindow
				}
			}
		}
		if after == 0 {
			t.Fatalf("%s: no loss was spurious", recovery)
		}
		// A reduction is by 30 %; in congestion avoidance, the window grows by a packet in an RTT.
		if restored := float64(after) > 1.3*float64(before); restored != (recovery == "current") {
			t.Errorf("%s: the window was %d bytes before it turned out, and %d then", recovery, before, after)
		}
	}
}

// A late datagram counts as lost by the packet threshold, or, as the end of the transfer and of a burst have it, by the time
// threshold: which one, is up to the order in which goroutines run.
func TestTheRecoveryOf2020KeepsItsThresholdsWhenPacketsAreReordered(t *testing.T) {
	for _, recovery := range []string{"current", "2020"} {
		var changes []qlog.RecoveryParametersSet
		byThreshold, spurious := 0, 0
		for _, event := range eventsOfLateness(t, recovery) {
			switch e := event.(type) {
			case qlog.RecoveryParametersSet:
				changes = append(changes, e)
			case qlog.PacketLost:
				if e.Trigger == qlog.PacketLossReorderingThreshold {
					byThreshold++
				}
			case qlog.SpuriousLoss:
				spurious++
			}
		}
		if recovery == "current" && (!changes[len(changes)-1].PacketThresholdDisabled || byThreshold > 2) {
			t.Errorf("%s: %d losses by the packet threshold; parameters %+v", recovery, byThreshold, changes)
		}
		if recovery == "2020" && (len(changes) != 1 || byThreshold < 6 || spurious < 7) {
			t.Errorf("%s: %d losses by the packet threshold, %d spurious ones; parameters %+v", recovery, byThreshold, spurious, changes)
		}
	}
}

func TestAllLossesAreSpuriousWhereTheLinkLosesNothing(t *testing.T) {
	for _, recovery := range []string{"current", "2020"} {
		server := comingLate(recovery, 10*time.Millisecond).succeed(t).server
		if lost, spurious := server["packets_lost"], server["spurious_losses"]; lost == 0 || spurious != lost {
			t.Errorf("%s: %v of %v losses are spurious", recovery, spurious, lost)
		}
	}
}

// The first flight has 32 packets. After a burst of 10, slow start paces at 2 windows in an RTT, and at 5/4 in 2020.
func TestTheRecoveryOf2020PacesSlowStartAsCongestionAvoidance(t *testing.T) {
	spread := map[string]time.Duration{}
	for _, recovery := range []string{"current", "2020"} {
		options := withScheme(fecOptions, "none")
		options.Recovery = recovery
		var sent []time.Time
		transfer{
			workload: download(100_000), options: options,
			up: link(100, 50*time.Millisecond, lossylink.Nothing), down: link(100, 50*time.Millisecond, lossylink.Nothing),
			hostile: func(_, server *lossylink.End) {
				server.Watch = func(datagram []byte) {
					if !header.IsLong(datagram) && len(datagram) > 1200 {
						sent = append(sent, time.Now())
					}
				}
			},
		}.succeed(t)
		spread[recovery] = sent[28].Sub(sent[10])
	}
	if ratio := spread["2020"].Seconds() / spread["current"].Seconds(); ratio < 1.5 || ratio > 1.7 {
		t.Errorf("18 packets of the first flight take %v; right is 8/5 as long in 2020", spread)
	}
}

func TestEveryArmTransfersWithTheRecoveryOf2020(t *testing.T) {
	for _, scheme := range []string{"none", "hold", "xor", "rlc", "plain"} {
		for _, workload := range []string{"download", "upload"} {
			options := withScheme(fecOptions, scheme)
			options.Recovery = "2020"
			transfer{
				workload: contract.Workload{Name: workload, Size: 500_000}, options: options,
				up: wifi(lossylink.Uniform(1, 0.05)), down: wifi(lossylink.Uniform(2, 0.05)),
			}.succeed(t)
		}
	}
}
