package contract

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	host "github.com/fecbench/fecbench/quic-impls/host-go"
)

func good(role string) map[string]any {
	return map[string]any{
		"version": 1, "role": role, "address": "10.0.2.2", "port": 4433, "server_name": "server.fecbench",
		"workload": map[string]any{"name": "download", "size_bytes": 50000}, "content_seed": uint64(1<<64 - 1),
		"options":     map[string]any{"congestion_control": "bbr", "paths": 2, "ecn": true},
		"certificate": "/c.pem", "private_key": "/c.key", "authority": "/a.pem", "log_folder": "/log", "deadline_s": 2.5,
		"local_addresses": []string{"10.0.1.2", "10.0.2.2"},
	}
}

func parse(t *testing.T, document map[string]any) (Assignment, error) {
	t.Helper()
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return Parse(text)
}

func TestAnAssignmentIsRead(t *testing.T) {
	for _, role := range []string{"client", "server"} {
		a, err := parse(t, good(role))
		if err != nil {
			t.Fatal(err)
		}
		if a.Role != role || a.Address.String() != "10.0.2.2:4433" || a.Workload != (Workload{"download", 50000}) ||
			a.ContentSeed != 1<<64-1 || a.Options != (Options{"bbr", 2, true}) || a.Deadline != 2500*time.Millisecond ||
			len(a.LocalAddresses) != 2 || a.WantsWindow {
			t.Errorf("read %+v", a)
		}
	}
}

func TestASeriesIsWanted(t *testing.T) {
	document := good("server")
	document["series"] = []string{CongestionWindow}
	if a, err := parse(t, document); err != nil || !a.WantsWindow {
		t.Errorf("read %+v, %v", a, err)
	}
}

func TestWhatIsWrongIsOneLineThatNamesTheKey(t *testing.T) {
	for _, bad := range []struct {
		key    string
		value  any
		naming string
	}{
		{"workload", map[string]any{"size_bytes": 1}, "workload.name: missing"},
		{"workload", map[string]any{"name": "download"}, "workload.size_bytes: nothing is not an integer"},
		{"workload", map[string]any{"name": "upload", "size_bytes": -1}, "workload.size_bytes: -1 is not an integer"},
		{"workload", map[string]any{"name": "upload", "size_bytes": 1, "rate": 2}, "workload.rate: unknown"},
		{"options", map[string]any{"congestion_control": "newreno", "paths": 1}, `options.congestion_control: "newreno" is not one of`},
		{"options", map[string]any{"paths": 1}, "options.congestion_control: nothing is not one of"},
		{"options", map[string]any{"congestion_control": "reno", "paths": 9}, "options.paths: 9 is not an integer in 1 to 8"},
		{"options", map[string]any{"congestion_control": "reno", "paths": 1, "ecn": 1}, "options.ecn: 1 is not true or false"},
		{"options", map[string]any{"congestion_control": "reno", "paths": 1, "scheme": "xor"}, "options.scheme: unknown"},
	} {
		document := good("client")
		document[bad.key] = bad.value
		_, err := parse(t, document)
		if err == nil || !strings.Contains(err.Error(), bad.naming) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s = %v was refused with %v, which should name %s", bad.key, bad.value, err, bad.naming)
		}
		if host.CodeOfInput(err) != host.ExitBadInput {
			t.Errorf("%s = %v is called unsupported", bad.key, bad.value)
		}
	}
}

func TestWhatIsNotSupportedHasItsOwnCode(t *testing.T) {
	for key, value := range map[string]any{"workload": map[string]any{"name": "page"}, "series": []string{"pace"}} {
		document := good("server")
		document[key] = value
		if _, err := parse(t, document); host.CodeOfInput(err) != host.ExitUnsupported {
			t.Errorf("%s = %v was refused with %v", key, value, err)
		}
	}
}
