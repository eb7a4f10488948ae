package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/coderate"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/contract"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/header"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/lossylink"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/observer"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/rquic"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/socket"
)

func download(size int64) contract.Workload { return contract.Workload{Name: "download", Size: size} }

const wifiDelay = 12500 * time.Microsecond // one way; the paper's Wi-Fi has an RTT of 25 ms and 20 Mbps

func wifi(drops lossylink.Drops) lossylink.Settings { return link(20, wifiDelay, drops) }

func TestEveryTransferArrivesInEveryArm(t *testing.T) {
	losses := map[string][2]lossylink.Drops{
		"no loss":  {lossylink.Nothing, lossylink.Nothing},
		"uniform":  {lossylink.Uniform(1, 0.05), lossylink.Uniform(2, 0.05)},
		"in burst": {lossylink.GilbertElliott(3, 0.02, 0.4, 1, 0.1), lossylink.GilbertElliott(4, 0.02, 0.4, 1, 0.1)},
	}
	for name, drops := range losses {
		for _, scheme := range []string{"none", "hold", "xor", "rlc", "plain"} {
			for _, http := range []string{"hq", "h3"} {
				for _, workload := range []string{"download", "upload"} {
					t.Run(fmt.Sprintf("%s %s %s %s", name, scheme, http, workload), func(t *testing.T) {
						options := withScheme(fecOptions, scheme)
						options.HTTP = http
						for _, size := range []int64{0, 1, 1252, 50_000, 500_000} {
							o := transfer{
								workload: contract.Workload{Name: workload, Size: size}, options: options,
								up: wifi(drops[0]), down: wifi(drops[1]),
							}.succeed(t)
							// The server hears all that the client sends, unless it fills the queue.
							sent, received := o.client["bytes_sent"], o.server["bytes_received"]
							if name == "no loss" && size <= 50_000 && sent != received {
								t.Errorf("the client sent %v bytes, the server received %v", sent, received)
							}
						}
					})
				}
			}
		}
	}
}

// lose drops the packets of one generation (10 of them, the last being the coded one) whose places are in the pattern.
func lose(generation uint8, pattern []int) lossylink.Drops {
	place := 0
	return lossylink.Those(func(_ uint64, datagram []byte) bool {
		_, h, _, err := header.Parse(datagram)
		if header.IsLong(datagram) || err != nil || h.Kind == header.Unprotected || h.Generation != generation {
			return false
		}
		defer func() { place++ }()
		for _, lost := range pattern {
			if place == lost {
				return true
			}
		}
		return false
	})
}

func TestEveryLossPatternOfUpTo3PacketsOfAGenerationIsRecoveredOrRetransmitted(t *testing.T) {
	const sources, coded = 9, 9 // places 0 to 8 and 9
	var patterns [][]int
	for a := range coded + 1 {
		patterns = append(patterns, []int{a})
		for b := range a {
			patterns = append(patterns, []int{a, b})
			for c := range b {
				patterns = append(patterns, []int{a, b, c})
			}
		}
	}
	if len(patterns) != 10+45+120 {
		t.Fatalf("%d patterns", len(patterns))
	}
	for _, pattern := range patterns {
		o := transfer{
			workload: download(50_000), options: fecOptions,
			up: wifi(lossylink.Nothing), down: wifi(lose(2, pattern)),
		}.succeed(t)
		sourcesLost, codedLost := len(pattern), 0.0
		if pattern[0] == coded {
			sourcesLost, codedLost = len(pattern)-1, 1
		}
		recovered := 0.0
		if sourcesLost == 1 && codedLost == 0 {
			recovered = 1
		}
		if o.client["packets_recovered"] != recovered {
			t.Errorf("losing %v: %v packets recovered, right is %v", pattern, o.client["packets_recovered"], recovered)
		}
		if retransmitted := o.server["packets_lost"]; retransmitted != float64(sourcesLost)-recovered {
			t.Errorf("losing %v: %v packets retransmitted, right is %v", pattern, retransmitted, float64(sourcesLost)-recovered)
		}
		if o.server["spurious_losses"] != 0 || o.client["recovered_late"] != 0 {
			t.Errorf("losing %v: QUIC saw a gap that was mended: %v, %v", pattern, o.client, o.server)
		}
	}
}

func TestFECShortensDownloadsOverALossyLink(t *testing.T) {
	const seeds = 20
	for _, loss := range []float64{0.02, 0.05} {
		dct, recovered := map[string]float64{}, map[string]float64{}
		for _, scheme := range []string{"none", "xor"} {
			for seed := range uint64(seeds) {
				o := transfer{
					workload: download(1_000_000), options: withScheme(fecOptions, scheme),
					up: wifi(lossylink.Nothing), down: wifi(lossylink.Uniform(seed, loss)),
				}.succeed(t)
				dct[scheme] += o.client["dct_s"] / seeds
				recovered[scheme] += o.client["packets_recovered"]
			}
		}
		t.Logf("loss %v: mean DCT of 1 MB without FEC %.3f s, with FEC %.3f s, %v packets recovered in %d transfers",
			loss, dct["none"], dct["xor"], recovered["xor"], seeds)
		if dct["xor"] >= dct["none"] || recovered["xor"] == 0 || recovered["none"] != 0 {
			t.Errorf("loss %v: DCT %v, recovered %v", loss, dct, recovered)
		}
	}
}

// dropFirst drops the first packet of a kind that has at least a number of bytes.
func dropFirst(kind header.Kind, atLeast int) lossylink.Drops {
	dropped := false
	return lossylink.Those(func(_ uint64, datagram []byte) bool {
		if dropped || header.IsLong(datagram) || len(datagram) < atLeast {
			return false
		}
		_, h, _, err := header.Parse(datagram)
		dropped = err == nil && h.Kind == kind
		return dropped
	})
}

func TestAShortDownloadIsProtectedByTheFlushAtTheStreamsEnd(t *testing.T) {
	outcomes := map[string]outcome{}
	for _, flush := range []string{"stream_end", "never"} {
		options := fecOptions
		options.Flush = flush
		outcomes[flush] = transfer{
			workload: download(1000), options: options,
			up: wifi(lossylink.Nothing), down: wifi(dropFirst(header.Source, 1000)),
		}.succeed(t)
	}
	flushed, never := outcomes["stream_end"], outcomes["never"]
	if flushed.client["packets_recovered"] != 1 || flushed.server["packets_lost"] != 0 {
		t.Errorf("with a flush: %v", flushed)
	}
	if never.client["packets_recovered"] != 0 || never.server["repair_sent"] != 0 {
		t.Errorf("without a flush: %v", never)
	}
	if flushed.client["dct_s"] >= never.client["dct_s"] {
		t.Errorf("DCT %v s with a flush, %v s without", flushed.client["dct_s"], never.client["dct_s"])
	}
}

func TestWithoutTheHoldBufferPacketsAreRecoveredOutOfOrder(t *testing.T) {
	for _, bto := range []time.Duration{0, 25 * time.Millisecond} {
		options := fecOptions
		options.BTO = bto
		o := transfer{
			workload: download(1_000_000), options: options,
			up: wifi(lossylink.Nothing), down: wifi(lossylink.Uniform(5, 0.02)),
		}.succeed(t)
		if late := o.client["recovered_out_of_order"]; (late > 0) != (bto == 0) {
			t.Errorf("BTO %v: %v of %v packets recovered out of order", bto, late, o.client["packets_recovered"])
		}
	}
}

// quic-go changes the connection ID after 5,000 to 15,000 packets.
func TestRecoveryGoesOnAfterAChangeOfTheConnectionID(t *testing.T) {
	ids := map[string]int{}
	count := func(n uint64, datagram []byte) bool {
		if !header.IsLong(datagram) {
			ids[string(datagram[1:header.Prefix])]++
		}
		return n%21 == 20 // never two of a generation of 10, and each place in turn
	}
	o := transfer{
		workload: download(30_000_000), options: fecOptions,
		up: link(100, wifiDelay, lossylink.Nothing), down: lossylink.Rate(100, wifiDelay, 100_000_000, lossylink.Those(count)),
	}.succeed(t)
	if len(ids) < 2 {
		t.Errorf("the server used %d connection IDs", len(ids))
	}
	sent := 0
	for _, n := range ids {
		sent += n
	}
	t.Logf("%d datagrams to %d connection IDs, client %v, server %v", sent, len(ids), o.client, o.server)
	if o.client["packets_recovered"] < 0.8*float64(sent)/21 || o.server["packets_lost"] > 20 {
		t.Errorf("client %v, server %v", o.client, o.server)
	}
}

func TestATransferSurvivesTheWorstLinkOfThePapers(t *testing.T) {
	for seed := range uint64(10) {
		transfer{
			workload: download(10_000), options: fecOptions,
			up:   link(0.3, 400*time.Millisecond, lossylink.Uniform(2*seed, 0.08)),
			down: link(0.3, 400*time.Millisecond, lossylink.Uniform(2*seed+1, 0.08)),
		}.succeed(t)
	}
}

func TestTheDeadlineEndsAClientWithOneClearLine(t *testing.T) {
	everything := lossylink.Those(func(uint64, []byte) bool { return true })
	afterTheHandshake := lossylink.Those(func(n uint64, _ []byte) bool { return n > 20 })
	for name, drops := range map[string]lossylink.Drops{"handshake": everything, "download": afterTheHandshake} {
		o := transfer{
			workload: download(1_000_000), options: fecOptions, deadline: 3 * time.Second,
			up: wifi(lossylink.Nothing), down: wifi(drops),
		}.run(t)
		if o.clientErr == nil || !strings.Contains(o.clientErr.Error(), "not done within the deadline of 3 s") ||
			!strings.Contains(o.clientErr.Error(), name) || strings.Contains(o.clientErr.Error(), "\n") {
			t.Errorf("%s: %v", name, o.clientErr)
		}
		if o.serverErr != nil {
			t.Errorf("%s: the server ended with %v", name, o.serverErr)
		}
	}
}

func TestHostileDatagramsDoNotHarmATransfer(t *testing.T) {
	for seed := range uint64(5) {
		random := rand.New(rand.NewPCG(seed, 0))
		o := transfer{
			workload: download(500_000), options: fecOptions,
			up: wifi(lossylink.Nothing), down: wifi(lossylink.Nothing),
			hostile: func(client, server *lossylink.End) {
				// Whatever the server sends is followed by a forgery that claims to come from it too.
				server.Watch = func(datagram []byte) {
					if random.Float64() < 0.3 {
						client.Inject(forge(random, datagram), server.LocalAddr())
					}
				}
			},
		}.succeed(t)
		if o.client["malformed_received"] == 0 {
			t.Error("no forgery was seen")
		}
	}
}

// An attacker who sees the packets sends forgeries in the server's name: now and then a packet far ahead, and before each
// coded packet one with other content. Recovery continues, and packets that QUIC refuses do not count.
func TestForgeriesOfOneWhoSeesThePacketsCostATransferLittleRecovery(t *testing.T) {
	for _, scheme := range []string{"xor", "rlc"} {
		recovered := map[bool]float64{}
		for _, hostile := range []bool{false, true} {
			for seed := range uint64(4) {
				n := 0
				o := transfer{
					workload: download(1_000_000), options: withScheme(fecOptions, scheme),
					up: wifi(lossylink.Nothing), down: wifi(lossylink.Uniform(seed, 0.02)),
					hostile: func(client, server *lossylink.End) {
						server.Watch = func(datagram []byte) {
							_, h, _, err := header.Parse(datagram)
							if n++; !hostile || header.IsLong(datagram) || err != nil || h.Kind == header.Unprotected {
								return
							}
							forged := append([]byte{}, datagram...)
							if h.Kind != header.Source {
								forged[len(forged)-1] ^= 1
								client.Inject(forged, server.LocalAddr())
							} else if n%60 == 0 {
								forged[header.Prefix+1] += 200
								forged[header.Prefix+2] += 100
								client.Inject(forged, server.LocalAddr())
							}
						}
					},
				}.succeed(t)
				recovered[hostile] += o.client["packets_recovered"]
				if hostile && o.client["malformed_received"] == 0 {
					t.Errorf("%s, seed %d: QUIC refused nothing that was rebuilt", scheme, seed)
				}
			}
		}
		if recovered[false] == 0 || recovered[true] < 0.8*recovered[false] {
			t.Errorf("%s: %v packets recovered, %v without forgeries", scheme, recovered[true], recovered[false])
		}
	}
}

// forge returns a datagram that is random, or cut, or the given one with a lying header.
func forge(random *rand.Rand, datagram []byte) []byte {
	forged := append([]byte{}, datagram...)
	switch random.IntN(4) {
	case 0:
		for i := range forged {
			forged[i] = byte(random.Uint32())
		}
	case 1:
		forged = forged[:random.IntN(len(forged))]
	default:
		for i := header.Prefix; i < min(len(forged), header.Prefix+4); i++ {
			if random.IntN(2) == 0 {
				forged[i] = byte(random.IntN(8))
			}
		}
	}
	return forged
}

func TestAllArmsSendTheSameQUICPackets(t *testing.T) {
	var longest = map[string]int{}
	for _, scheme := range []string{"plain", "none", "hold", "xor", "rlc"} {
		transfer{
			workload: download(100_000), options: withScheme(fecOptions, scheme),
			up: wifi(lossylink.Nothing), down: wifi(lossylink.Those(func(_ uint64, datagram []byte) bool {
				longest[scheme] = max(longest[scheme], len(datagram))
				return false
			})),
		}.succeed(t)
	}
	if right := map[string]int{"plain": 1252, "none": 1253, "hold": 1256, "xor": 1259, "rlc": 1259 + 9}; fmt.Sprint(longest) != fmt.Sprint(right) {
		t.Errorf("longest datagrams: %v, right is %v", longest, right)
	}
}

// datagrams counts those that a server sends of each kind in a transfer.
func datagrams(t *testing.T, options contract.Options) (kinds map[header.Kind]int, o outcome) {
	kinds = map[header.Kind]int{}
	o = transfer{
		workload: download(100_000), options: options,
		up: wifi(lossylink.Nothing), down: wifi(lossylink.Those(func(n uint64, datagram []byte) bool {
			if _, h, _, err := header.Parse(datagram); err == nil && !header.IsLong(datagram) {
				kinds[h.Kind]++
			}
			return n%19 == 11
		})),
	}.succeed(t)
	return kinds, o
}

func TestHoldSendsSourcePacketsAndNothingElseOfACode(t *testing.T) {
	for _, overlap := range []int{1, 3} {
		options := withScheme(fecOptions, "hold")
		options.Rate.Overlap = overlap
		kinds, o := datagrams(t, options)
		if kinds[header.Source] == 0 || kinds[header.CodedXOR]+kinds[header.CodedRLC] > 0 {
			t.Errorf("datagrams by kind: %v", kinds)
		}
		if o.server["source_sent"] != float64(kinds[header.Source]) || o.server["repair_sent"] != 0 ||
			o.server["generations_sent"] == 0 || o.client["packets_recovered"] != 0 {
			t.Errorf("server %v, client %v", o.server, o.client)
		}
	}
}

// A packet behind a gap waits for the whole timeout, since nothing mends the gap; of a code it waits until the gap is mended.
func TestOfItsPartsTheHoldAloneDelaysAndTheCodeAloneMends(t *testing.T) {
	dct := map[string]float64{}
	for name, c := range map[string]struct {
		scheme string
		bto    time.Duration
	}{"none": {"none", 0}, "hold": {"hold", 100 * time.Millisecond}, "code": {"xor", 0}} {
		options := withScheme(fecOptions, c.scheme)
		options.BTO = c.bto
		kinds, o := datagrams(t, options)
		dct[name] = o.client["dct_s"]
		if mends := o.client["packets_recovered"] > 0; mends != (name == "code") {
			t.Errorf("%s recovered %v packets; datagrams by kind: %v", name, o.client["packets_recovered"], kinds)
		}
	}
	if dct["hold"] <= dct["none"] {
		t.Errorf("with a hold of 100 ms %v s, without %v s", dct["hold"], dct["none"])
	}
}

func TestAnEncoderAtTheServerAloneLeavesWhatTheClientSendsUnprotected(t *testing.T) {
	campaign := fecOptions
	campaign.Rate.Preset, campaign.Encoder = "campaign2021", "preset"
	both, server := campaign, fecOptions
	both.Encoder, server.Encoder = "both", "server"
	for name, c := range map[string]struct {
		options contract.Options
		alone   bool
	}{"campaign": {campaign, true}, "campaign, both": {both, false}, "server": {server, true}, "default": {fecOptions, false}} {
		o := transfer{
			workload: download(1_000_000), options: c.options, up: wifi(lossylink.Nothing), down: wifi(lossylink.Uniform(1, 0.03)),
		}.succeed(t)
		if o.server["source_sent"] == 0 || o.client["packets_recovered"] == 0 || (o.client["source_sent"] == 0) != c.alone {
			t.Errorf("%s: server %v, client %v", name, o.server, o.client)
		}
	}
}

// forgetful loses the announcement of one packet.
type forgetful struct {
	observer.Connection
	after int
}

func (f *forgetful) PacketSent(p observer.SentPacket) {
	if f.after--; f.after != 0 {
		f.Connection.PacketSent(p)
	}
}

func TestAPacketThatWasNotAnnouncedEndsTheServerWithAnError(t *testing.T) {
	certificate, key := certificates(t)
	synctest.Test(t, func(t *testing.T) {
		clientEnd, serverEnd := ends(t, wifi(lossylink.Nothing), wifi(lossylink.Nothing))
		x := transfer{workload: download(100_000), options: fecOptions, deadline: 5 * time.Second}
		server, client := x.assignments(certificate, key, serverEnd)
		ended := make(chan error, 1)
		go func() {
			ctx, fail := context.WithCancelCause(t.Context())
			surroundings, err := readSurroundings(server)
			if err != nil {
				t.Error(err)
			}
			e := newEndpoint(&socket.Socket{PacketConn: serverEnd}, server, surroundings, fail)
			defer e.transport.Close()
			open := e.observer.Open
			e.observer.Open = func(number int) observer.Connection { return &forgetful{open(number), 20} }
			ended <- e.serve(ctx, io.Discard)
		}()
		time.Sleep(time.Nanosecond) // the server listens
		if err := run(t.Context(), clientEnd, client, io.Discard); err == nil {
			t.Error("the client succeeded")
		}
		if err := <-ended; !errors.Is(err, rquic.ErrOutOfStep) {
			t.Errorf("the server ended with %v", err)
		}
	})
}

func withRate(scheme string, rate contract.Rate) contract.Options {
	options := withScheme(fecOptions, scheme)
	options.Rate = rate
	return options
}

func TestOptionsTakeThePlacesOfAPresetsParameters(t *testing.T) {
	rate := contract.Rate{Preset: "code2021", Periods: 5, Gamma: 0.02, Delta: 0.5}
	right := coderate.Code2021
	right.Periods, right.Gamma, right.Delta = 5, 0.02, 0.5
	if got := adaptive(rate); *got != right {
		t.Errorf("%+v, right is %+v", *got, right)
	}
	rate.PeriodRTT, right.PeriodRTT, right.Period = 2, 2, 0
	rate.Minimum, right.Minimum = 1, 1
	if got := adaptive(rate); *got != right {
		t.Errorf("with a period in RTTs: %+v, right is %+v", *got, right)
	}
	rate.Preset = "constant"
	if got := adaptive(rate); got != nil {
		t.Errorf("a constant rate became %+v", *got)
	}
}

// codings are combinations of codes, rates and generations.
func codings() map[string]contract.Options {
	rate := fecOptions.Rate
	overlapping, redundant, both := rate, rate, rate
	overlapping.Overlap = 2
	redundant.Redundancies = 3
	both.Overlap, both.Redundancies, both.CodeRate = 3, 2, 0.8
	paper, code2021, campaign2021, short := rate, rate, rate, rate
	paper.Preset, code2021.Preset, campaign2021.Preset = "paper", "code2021", "campaign2021"
	short.Preset, short.Overlap, short.Period = "paper", 2, 20*time.Millisecond
	return map[string]contract.Options{
		"xor, overlapping": withRate("xor", overlapping), "rlc, overlapping": withRate("rlc", overlapping),
		"rlc, redundant": withRate("rlc", redundant), "rlc, both": withRate("rlc", both),
		"xor, paper": withRate("xor", paper), "xor, code2021": withRate("xor", code2021),
		"xor, campaign2021": withRate("xor", campaign2021),
		"rlc, paper":        withRate("rlc", paper), "rlc, adaptive and overlapping": withRate("rlc", short),
	}
}

// The counters of a transfer agree with each other. The link loses only what the pattern says, so every recovered packet is
// one that QUIC did not have to send again.
func TestEveryCodingShortensADownloadAndItsCountersAgree(t *testing.T) {
	dct := func(options contract.Options, seed uint64) (float64, outcome) {
		o := transfer{
			workload: download(1_000_000), options: options,
			up: wifi(lossylink.Nothing), down: wifi(lossylink.Uniform(seed, 0.03)),
		}.succeed(t)
		return o.client["dct_s"], o
	}
	const seeds = 5
	without := 0.0
	for seed := range uint64(seeds) {
		d, _ := dct(withScheme(fecOptions, "none"), seed)
		without += d / seeds
	}
	for name, options := range codings() {
		with, recovered := 0.0, 0.0
		for seed := range uint64(seeds) {
			d, o := dct(options, seed)
			with += d / seeds
			c, s := o.client, o.server
			recovered += c["packets_recovered"]
			r := options.Rate
			if s["repair_sent"] != s["generations_sent"]*float64(r.Redundancies) || s["generation_size_max"] > 63 ||
				s["generation_size_min"] < 1 || s["repair_sent"] < c["repair_received"] ||
				c["source_received"]+c["packets_recovered"] > s["source_sent"] ||
				s["protected_delivered"]+s["protected_lost"] > s["source_sent"]+10 ||
				s["residual_loss"] != s["protected_lost"]/s["protected_delivered"] ||
				s["overhead"] != s["repair_sent"]/(s["repair_sent"]+s["source_sent"]) ||
				c["malformed_received"]+s["malformed_received"] != 0 {
				t.Errorf("%s: client %v, server %v", name, c, s)
			}
		}
		t.Logf("%s: mean DCT %.3f s, without FEC %.3f s; %v packets recovered in %d downloads", name, with, without, recovered, seeds)
		if with >= without || recovered == 0 {
			t.Errorf("%s: DCT %.3f s, without FEC %.3f s; %v packets recovered", name, with, without, recovered)
		}
	}
}

func TestAnAdaptiveRateSendsMoreCodedPacketsTheMoreAreLost(t *testing.T) {
	for _, preset := range []string{"paper", "code2021"} {
		rate := fecOptions.Rate
		rate.Preset = preset
		before := 0.0
		for _, loss := range []float64{0, 0.02, 0.08} {
			// Never full: nothing else is lost.
			down := lossylink.Rate(20, wifiDelay, 1<<20, lossylink.Uniform(3, loss))
			o := transfer{
				workload: download(5_000_000), options: withRate("xor", rate), up: wifi(lossylink.Nothing), down: down,
			}.succeed(t)
			t.Logf("%s, loss %v: overhead %.3f, residual loss %.4f", preset, loss, o.server["overhead"], o.server["residual_loss"])
			if o.server["overhead"] <= before {
				t.Errorf("%s: at loss %v the overhead is %v, at less loss %v", preset, loss, o.server["overhead"], before)
			}
			before = o.server["overhead"]
		}
	}
}

// A loss that can't be mended is noticed when the packets behind it are released: the hold time in RTTs shows in the DCT.
func TestTheHoldTimeFollowsTheSmoothedRTT(t *testing.T) {
	short, long := downloadWithHoldTime(t, 0.1), downloadWithHoldTime(t, 4)
	if more := long - short; more < 0.05 {
		t.Errorf("DCT with a hold time of 0.1 RTTs %.3f s, with 4 RTTs %.3f s", short, long)
	}
}

// downloadWithHoldTime returns the DCT in s of a download that misses two source packets. Goroutines that wake at one instant
// run in any order: about one client in 80 has sent its request before it codes packets. That transfer runs again.
func downloadWithHoldTime(t *testing.T, rtts float64) float64 {
	t.Helper()
	options := fecOptions
	options.BTO, options.BTORTT = 25*time.Millisecond, rtts
	options.Rate.CodeRate = 0.98 // generations longer than the transfer
	for range 20 {
		full := 0
		o := transfer{
			workload: download(30_000), options: options, up: wifi(lossylink.Nothing),
			down: wifi(lossylink.Those(func(_ uint64, datagram []byte) bool {
				_, h, _, err := header.Parse(datagram)
				if header.IsLong(datagram) || err != nil || h.Kind != header.Source || len(datagram) < 1000 {
					return false
				}
				full++
				return full == 4 || full == 6
			})),
		}.succeed(t)
		if o.client["source_sent"] > 0 {
			return o.client["dct_s"]
		}
	}
	t.Fatal("no client sent its request in a source packet")
	return 0
}

// comesLate takes datagrams with source packets that fill them out of the link, by their number from 1, and hands them to the
// client later on.
func comesLate(isLate func(n int) bool, lateness time.Duration, down *lossylink.Settings) func(client, server *lossylink.End) {
	var deliver func(datagram []byte)
	sources := 0
	down.Loses = func(_ uint64, datagram []byte) bool {
		_, h, _, err := header.Parse(slices.Clone(datagram))
		if header.IsLong(datagram) || err != nil || h.Kind != header.Source || len(datagram) < 1200 {
			return false
		}
		sources++
		if isLate(sources) {
			deliver(slices.Clone(datagram))
		}
		return isLate(sources)
	}
	return func(client, server *lossylink.End) {
		deliver = func(datagram []byte) {
			time.AfterFunc(lateness, func() { client.Inject(datagram, server.LocalAddr()) })
		}
	}
}

// Over a link that loses nothing, there is nothing to recover: a packet that was rebuilt because it was late counts apart.
func TestAPacketThatWasMerelyLateIsNotRecovered(t *testing.T) {
	for _, lateness := range []time.Duration{60 * time.Millisecond, 100 * time.Millisecond, 130 * time.Millisecond} {
		down := lossylink.Rate(20, wifiDelay, 1<<20, lossylink.Nothing) // 1.7 packets a ms
		o := transfer{
			workload: download(500_000), options: fecOptions, up: wifi(lossylink.Nothing),
			hostile: comesLate(func(n int) bool { return n == 100 }, lateness, &down), down: down,
		}.succeed(t)
		c, s := o.client, o.server
		if c["packets_recovered"] != 0 || c["recovered_spurious"] != 1 || c["repair_useless"] != c["repair_received"]-1 {
			t.Errorf("late by %v: %v recovered, %v spurious, %v of %v coded packets useless", lateness,
				c["packets_recovered"], c["recovered_spurious"], c["repair_useless"], c["repair_received"])
		}
		if c["source_received"] > s["source_sent"] || c["packets_received"] > s["packets_sent"] {
			t.Errorf("late by %v: more was received than sent: client %v, server %v", lateness, c, s)
		}
	}
}
