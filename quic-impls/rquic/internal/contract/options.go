package contract

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	host "github.com/fecbench/fecbench/quic-impls/host-go"
)

// Options are the options of impl.toml.
type Options struct {
	Scheme     string
	Rate       Rate
	Encoder    string // "both", "server" or, as the preset has it, "preset"
	Flush      string
	BTO        time.Duration
	BTORTT     float64 // above 0: in smoothed RTTs, in the place of BTO
	HTTP       string
	Recovery   string // from losses, as quic-go had it: "current" or "2020"
	PacketSize uint16
}

// Rate is the number of coded packets, and their distribution over generations.
type Rate struct {
	Preset        string  // "constant", "paper", "code2021" or "campaign2021"
	CodeRate      float64 // of "constant"
	GenerationMax int
	Redundancies  int
	Overlap       int

	// The rest is for adaptive rates. With both periods 0, and with a minimum of 0, the preset has its own.
	Minimum   float64
	Period    time.Duration
	PeriodRTT float64
	Periods   int
	Gamma     float64
	Delta     float64
}

// SourcePerCoded is the paper's constant code rate Q, the number of source packets for each
// coded one: the Q from 1 to 63 that is nearest to rate/(1-rate).
func (r Rate) SourcePerCoded() int {
	return min(max(1, int(math.Round(r.CodeRate/(1-r.CodeRate)))), 63)
}

// ServerEncodesAlone reports whether what a client sends is not protected.
func (o Options) ServerEncodesAlone() bool {
	return o.Encoder == "server" || o.Encoder == "preset" && o.Rate.Preset == "campaign2021"
}

// maxPacketRLC leaves room for the coefficients of the largest generation in a datagram of 1452 bytes.
const maxPacketRLC = 1382

// CheckOptions refuses a JSON object that an assignment could not have as its options.
func CheckOptions(text []byte) error {
	values, err := host.OptionsOf(text)
	if err == nil {
		_, err = parseOptions(values)
	}
	return err
}

func parseOptions(values host.Values) (Options, error) {
	var o Options
	var bto, period float64
	var packetSize int
	err := cmp.Or(
		values.Choice("scheme", &o.Scheme, "none", "hold", "xor", "rlc", "plain"),
		values.Choice("rate", &o.Rate.Preset, "constant", "paper", "code2021", "campaign2021"),
		values.Choice("encoder", &o.Encoder, "preset", "both", "server"),
		values.Number("code_rate", &o.Rate.CodeRate, 0.5, 0.985),
		values.Number("q_min", &o.Rate.Minimum, 0, 63),
		host.Integer(values, "generation_max", &o.Rate.GenerationMax, 1, 63),
		host.Integer(values, "redundancies", &o.Rate.Redundancies, 1, 8),
		host.Integer(values, "overlap", &o.Rate.Overlap, 1, 8),
		values.Number("period_rtt", &o.Rate.PeriodRTT, 0, 100),
		values.Number("period_ms", &period, 0, 10000),
		host.Integer(values, "periods", &o.Rate.Periods, 1, 100),
		values.Number("gamma", &o.Rate.Gamma, 0, 1),
		values.Number("delta", &o.Rate.Delta, 0.01, 0.99),
		values.Choice("flush", &o.Flush, "stream_end", "never"),
		values.Number("bto_ms", &bto, 0, 10000),
		values.Number("bto_rtt", &o.BTORTT, 0, 100),
		values.Choice("http", &o.HTTP, "hq", "h3"),
		host.Integer(values, "packet_size", &packetSize, 1200, 1445),
		values.Choice("recovery", &o.Recovery, "current", "2020"),
		values.Only("scheme", "rate", "encoder", "code_rate", "q_min", "generation_max", "redundancies", "overlap",
			"period_rtt", "period_ms", "periods", "gamma", "delta", "flush", "bto_ms", "bto_rtt", "http", "packet_size", "recovery"),
	)
	if err != nil {
		return o, err
	}
	o.BTO, o.Rate.Period, o.PacketSize = milliseconds(bto), milliseconds(period), uint16(packetSize)
	return o, o.fitTogether()
}

// fitTogether refuses combinations of values that are right by themselves.
func (o Options) fitTogether() error {
	r := o.Rate
	if r.Period > 0 && r.PeriodRTT > 0 {
		return errors.New("options.period_ms, options.period_rtt: both are above 0; one of them is the period")
	}
	if o.Scheme == "xor" && r.Redundancies > 1 {
		return fmt.Errorf("options.redundancies: %d; xor has no more than 1 different coded packet", r.Redundancies)
	}
	if o.Scheme == "rlc" && o.PacketSize > maxPacketRLC {
		return fmt.Errorf("options.packet_size: %d; rlc needs room for its coefficients: at most %d", o.PacketSize, maxPacketRLC)
	}
	if o.Scheme == "hold" && r.Redundancies > 1 {
		return fmt.Errorf("options.redundancies: %d; hold has no coded packet, and spaces its generations as for 1", r.Redundancies)
	}
	if o.Scheme == "none" || o.Scheme == "plain" {
		return nil
	}
	size := r.SourcePerCoded() * r.Redundancies * r.Overlap
	if r.Preset == "constant" && size > r.GenerationMax {
		return fmt.Errorf("options.code_rate: %v with redundancies %d and overlap %d needs generations of %d; generation_max is %d",
			r.CodeRate, r.Redundancies, r.Overlap, size, r.GenerationMax)
	}
	return nil
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
