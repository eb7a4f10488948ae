package contract

import (
	"encoding/json"
	"errors"
	"maps"
	"net/netip"
	"strings"
	"testing"
	"time"

	host "github.com/fecbench/fecbench/quic-impls/host-go"
)

func good(role string) map[string]any {
	return map[string]any{
		"version": 1, "role": role, "address": "10.0.2.2", "port": 4433, "server_name": "server.fecbench",
		"workload":     map[string]any{"name": "download", "size_bytes": 50000},
		"content_seed": json.Number("18446744073709551615"),
		"options": map[string]any{
			"scheme": "xor", "rate": "constant", "encoder": "preset", "code_rate": 0.9, "q_min": 2, "generation_max": 60, "redundancies": 1, "overlap": 2,
			"period_rtt": 0, "period_ms": 75, "periods": 3, "gamma": 0.01, "delta": 0.33,
			"flush": "stream_end", "bto_ms": 2.5, "bto_rtt": 1.5, "http": "hq", "packet_size": 1252, "recovery": "2020",
		},
		"certificate": "/c.pem", "private_key": "/k.pem", "authority": "/a.pem", "log_folder": "/log", "deadline_s": 0.5,
	}
}

// with returns an assignment with a value at a dotted path; nil removes the key.
func with(path string, value any) map[string]any {
	document := good("client")
	into := document
	if outer, inner, nested := strings.Cut(path, "."); nested {
		into = maps.Clone(document[outer].(map[string]any))
		document[outer] = into
		path = inner
	}
	into[path] = value
	if value == nil {
		delete(into, path)
	}
	return document
}

func parse(t *testing.T, document any) (Assignment, error) {
	t.Helper()
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return Parse(text)
}

func TestAnAssignmentIsRead(t *testing.T) {
	a, err := parse(t, good("client"))
	if err != nil {
		t.Fatal(err)
	}
	right := Assignment{
		Assignment: host.Assignment{
			Role: "client", Address: netip.MustParseAddrPort("10.0.2.2:4433"), ServerName: "server.fecbench", ContentSeed: 1<<64 - 1,
			Certificate: "/c.pem", PrivateKey: "/k.pem", Authority: "/a.pem", LogFolder: "/log", Deadline: 500 * time.Millisecond,
		},
		Workload: Workload{Name: "download", Size: 50000},
		Options: Options{
			Scheme: "xor", Rate: Rate{"constant", 0.9, 60, 1, 2, 2, 75 * time.Millisecond, 0, 3, 0.01, 0.33}, Encoder: "preset",
			Flush: "stream_end", BTO: 2500 * time.Microsecond, BTORTT: 1.5, HTTP: "hq", PacketSize: 1252,
			Recovery: "2020",
		},
	}
	if a != right {
		t.Errorf("read %+v, right is %+v", a, right)
	}
}

func TestBadInputIsRefusedWithOneLineThatNamesTheKey(t *testing.T) {
	for _, bad := range []struct {
		document any
		naming   string
	}{
		{with("surprise", 1), `"surprise"`},
		{with("workload.name", nil), "workload.name: missing"},
		{with("workload.name", 7), "workload.name: missing or not a string"},
		{with("workload.size_bytes", nil), "workload.size_bytes: nothing"},
		{with("workload.size_bytes", -1), "workload.size_bytes: -1"},
		{with("workload.size_bytes", 0.5), "workload.size_bytes: 0.5"},
		{with("workload.size_bytes", json.RawMessage("null")), "workload.size_bytes: null"},
		{with("workload.pages", 3), "workload.pages: unknown"},
		{with("options.scheme", "raptor"), `options.scheme: "raptor" is not one of none, hold, xor, rlc, plain`},
		{with("options.scheme", nil), "options.scheme: nothing"},
		{with("options.code_rate", 1), "options.code_rate: 1"},
		{with("options.rate", "best"), `options.rate: "best"`},
		{with("options.generation_max", 64), "options.generation_max: 64"},
		{with("options.generation_max", 17), "options.code_rate: 0.9 with redundancies 1 and overlap 2 needs generations of 18"},
		{with("options.redundancies", 0), "options.redundancies: 0"},
		{with("options.redundancies", 2), "options.redundancies: 2; xor"},
		{with("options.overlap", 1.5), "options.overlap: 1.5 is not an integer"},
		{with("options.period_rtt", 3), "options.period_ms, options.period_rtt: both"},
		{with("options.encoder", "client"), `options.encoder: "client"`},
		{with("options.q_min", -1), "options.q_min: -1"},
		{with("options.periods", 0), "options.periods: 0"},
		{with("options.gamma", -1), "options.gamma: -1"},
		{with("options.delta", 1), "options.delta: 1"},
		{with("options.bto_rtt", 101), "options.bto_rtt: 101"},
		{with("options.code_rate", "high"), `options.code_rate: "high"`},
		{with("options.bto_ms", -0.1), "options.bto_ms: -0.1"},
		{with("options.bto_ms", json.RawMessage("null")), "options.bto_ms: null"},
		{with("options.flush", "often"), `options.flush: "often"`},
		{with("options.http", "h2"), `options.http: "h2"`},
		{with("options.packet_size", 1199), "options.packet_size: 1199"},
		{with("options.packet_size", 1300.5), "options.packet_size: 1300.5 is not an integer"},
		{with("options.recovery", "2021"), `options.recovery: "2021" is not one of current, 2020`},
		{with("options.colour", "red"), "options.colour: unknown; known are scheme, "},
		{[]any{}, "not an assignment"},
		{with("local_addresses", []string{"10.0.1.2"}), "local_addresses: unknown"},
	} {
		_, err := parse(t, bad.document)
		if err == nil || !strings.Contains(err.Error(), bad.naming) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v was refused with %q, which should name %q", bad.document, err, bad.naming)
		}
		if errors.As(err, &host.Unsupported{}) {
			t.Errorf("%v is called unsupported", bad.document)
		}
	}
}

func TestACodeRateIsTheNearestNumberOfSourcePacketsForEachCodedOne(t *testing.T) {
	for q := 1; q <= 63; q++ {
		if got := (Rate{CodeRate: float64(q) / float64(q+1)}).SourcePerCoded(); got != q {
			t.Errorf("rate %d/%d gives %d", q, q+1, got)
		}
	}
	for rate, q := range map[float64]int{0.5: 1, 0.9: 9, 0.985: 63, 0.65: 2, 0.55: 1} {
		if got := (Rate{CodeRate: rate}).SourcePerCoded(); got != q {
			t.Errorf("rate %v gives %d, right is %d", rate, got, q)
		}
	}
}

func TestACodeThatDoesNotFitIntoADatagramIsRefused(t *testing.T) {
	document := with("options.scheme", "rlc")
	document["options"].(map[string]any)["packet_size"] = 1383
	if _, err := parse(t, document); err == nil || !strings.Contains(err.Error(), "options.packet_size: 1383; rlc") {
		t.Error(err)
	}
}

func TestHoldHasNoCodedPacketsToMultiply(t *testing.T) {
	document := with("options.scheme", "hold")
	if _, err := parse(t, document); err != nil {
		t.Error(err)
	}
	document["options"].(map[string]any)["redundancies"] = 2
	if _, err := parse(t, document); err == nil || !strings.Contains(err.Error(), "options.redundancies: 2; hold") {
		t.Error(err)
	}
}

func TestAnUploadThatOnlyTheServerWouldProtectIsUnsupported(t *testing.T) {
	for _, c := range []struct {
		workload, scheme, rate, encoder string
		unsupported                     bool
	}{
		{"upload", "xor", "constant", "server", true},
		{"upload", "xor", "campaign2021", "preset", true},
		{"upload", "xor", "campaign2021", "both", false},
		{"upload", "xor", "code2021", "preset", false},
		{"upload", "none", "constant", "server", false},
		{"download", "xor", "campaign2021", "preset", false},
	} {
		document := with("workload.name", c.workload)
		options := document["options"].(map[string]any)
		options["scheme"], options["rate"], options["encoder"] = c.scheme, c.rate, c.encoder
		if _, err := parse(t, document); errors.As(err, &host.Unsupported{}) != c.unsupported || !c.unsupported && err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestSeriesAreThoseThatWereAskedForAndNoneWithoutTheKey(t *testing.T) {
	for _, c := range []struct {
		asked any
		right Series
	}{
		{nil, Series{}},
		{[]string{}, Series{}},
		{[]string{"cwnd"}, Series{CongestionWindow: true}},
		{[]string{"code_rate", "cwnd"}, Series{CongestionWindow: true, CodeRate: true}},
		{[]string{"messages"}, Series{Messages: true}},
	} {
		a, err := parse(t, with("series", c.asked))
		if err != nil || a.Series != c.right {
			t.Errorf("%v: %v, %+v", c.asked, err, a.Series)
		}
	}
	if _, err := parse(t, with("series", []string{"cwnd", "pace"})); !errors.As(err, &host.Unsupported{}) || !strings.Contains(err.Error(), `series: "pace"`) {
		t.Error(err)
	}
	if _, err := parse(t, with("series", "cwnd")); err == nil || !strings.Contains(err.Error(), "series") || errors.As(err, &host.Unsupported{}) {
		t.Error(err)
	}
}

func TestAnUnknownWorkloadIsUnsupported(t *testing.T) {
	document := good("client")
	document["workload"] = map[string]any{"name": "video", "bitrate_mbps": 3}
	if _, err := parse(t, document); !errors.As(err, &host.Unsupported{}) {
		t.Error(err)
	}
}

func FuzzParseNeverPanics(f *testing.F) {
	text, err := json.Marshal(good("server"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"version": 1}{}`))
	f.Fuzz(func(_ *testing.T, text []byte) { Parse(text) })
}
