package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
)

func good(role string) map[string]any {
	return map[string]any{
		"version": 1, "role": role, "address": "10.0.2.2", "port": 4433, "server_name": "server.fecbench",
		"workload":     map[string]any{"name": "download", "size_bytes": 50000},
		"content_seed": json.Number("18446744073709551615"),
		"options":      map[string]any{"colour": "red", "share": 0.5, "paths": 2},
		"certificate":  "/c.pem", "private_key": "/k.pem", "authority": "/a.pem", "log_folder": "/log", "deadline_s": 0.5,
	}
}

func parse(t *testing.T, document any) (Assignment, Left, error) {
	t.Helper()
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return Parse(text)
}

func refused(t *testing.T, err error, naming string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), naming) || strings.Contains(err.Error(), "\n") {
		t.Errorf("refused with %v, which should name %s", err, naming)
	}
	if CodeOfInput(err) != ExitBadInput {
		t.Errorf("%v has the code %d", err, CodeOfInput(err))
	}
}

func TestAnAssignmentIsReadButForWhatIsLeft(t *testing.T) {
	document := good("client")
	document["series"], document["local_addresses"] = []string{"cwnd"}, []string{"10.0.1.2"}
	a, left, err := parse(t, document)
	right := Assignment{
		Role: "client", Address: netip.MustParseAddrPort("10.0.2.2:4433"), ServerName: "server.fecbench",
		ContentSeed: 1<<64 - 1, Certificate: "/c.pem", PrivateKey: "/k.pem", Authority: "/a.pem", LogFolder: "/log",
		Deadline: 500 * time.Millisecond,
	}
	if err != nil || a != right {
		t.Errorf("read %+v, %v; right is %+v", a, err, right)
	}
	if !reflect.DeepEqual(left.Series, []string{"cwnd"}) || len(left.LocalAddresses) != 1 ||
		string(left.Workload.Raw("name")) != `"download"` || string(left.Options.Raw("paths")) != "2" {
		t.Errorf("left %+v", left)
	}
}

func TestWhatIsWrongIsOneLineThatNamesTheKey(t *testing.T) {
	for _, bad := range []struct {
		key    string
		value  any
		naming string
	}{
		{"version", 2, "version: 2"},
		{"version", nil, "version: 0"},
		{"role", "router", `role: "router" is not one of client, server`},
		{"address", "here", `address: "here" is not an IP address`},
		{"port", 0, "port: 0 is not in 1 to 65535"},
		{"port", 65536, "port: 65536"},
		{"deadline_s", 0, "deadline_s: 0 is not"},
		{"deadline_s", -1, "deadline_s: -1"},
		{"log_folder", nil, "log_folder: missing"},
		{"authority", nil, "authority: missing; a client needs it"},
		{"server_name", "", "server_name: missing"},
		{"content_seed", -1, "content_seed"},
		{"series", "cwnd", "series"},
		{"local_addresses", []string{"here"}, "here"},
		{"colour", "red", `"colour"`},
	} {
		document := good("client")
		document[bad.key] = bad.value
		if bad.value == nil {
			delete(document, bad.key)
		}
		_, _, err := parse(t, document)
		refused(t, err, bad.naming)
	}
	_, _, err := parse(t, []any{})
	refused(t, err, "not an assignment")
	_, _, err = Parse([]byte(`{"version": 1}{}`))
	refused(t, err, "more than one JSON value")
}

func TestAServerNeedsItsCertificate(t *testing.T) {
	for _, key := range []string{"certificate", "private_key"} {
		document := good("server")
		delete(document, key)
		_, _, err := parse(t, document)
		refused(t, err, key+": missing; a server needs it")
	}
}

func TestValuesAreOfTheirKindAndInTheirRange(t *testing.T) {
	v, err := OptionsOf([]byte(`{"colour": "red", "share": 0.5, "paths": 2, "nothing": null}`))
	if err != nil {
		t.Fatal(err)
	}
	var colour string
	var share float64
	var paths int
	var size int64
	if err := errors.Join(
		v.Choice("colour", &colour, "red", "blue"), v.Number("share", &share, 0, 0.5), Integer(v, "paths", &paths, 1, 2),
		v.Only("colour", "share", "paths", "nothing"),
	); err != nil || colour != "red" || share != 0.5 || paths != 2 {
		t.Errorf("read %q, %v, %d: %v", colour, share, paths, err)
	}
	refused(t, v.Choice("colour", &colour, "blue", "green"), `options.colour: "red" is not one of blue, green`)
	refused(t, v.Choice("shade", &colour, "dark"), "options.shade: nothing is not one of dark")
	refused(t, v.Choice("paths", &colour, "one"), "options.paths: 2 is not one of one")
	refused(t, v.Number("share", &share, 0.6, 1), "options.share: 0.5 is not a number in 0.6 to 1")
	refused(t, v.Number("share", &share, 0, 0.4), "options.share: 0.5 is not a number in 0 to 0.4")
	refused(t, v.Number("nothing", &share, 0, 1), "options.nothing: null is not a number")
	refused(t, Integer(v, "share", &paths, 0, 1), "options.share: 0.5 is not an integer in 0 to 1")
	refused(t, Integer(v, "paths", &paths, 3, 8), "options.paths: 2 is not an integer in 3 to 8")
	refused(t, Integer(v, "paths", &paths, 0, 1), "options.paths: 2 is not an integer in 0 to 1")
	refused(t, v.Only("colour"), "options.nothing: unknown; known are colour")
	refused(t, v.Transfer(&size), "options.size_bytes: nothing is not an integer in 0 to 1099511627776")
	_, err = OptionsOf([]byte("[]"))
	refused(t, err, "options: no JSON object")
}

func TestWhatIsNotSupportedHasItsOwnCode(t *testing.T) {
	if CodeOfInput(Unsupported{"it"}) != ExitUnsupported || CodeOfFailure(Unsupported{"it"}) != ExitUnsupported ||
		CodeOfFailure(errors.New("no")) != ExitFailure {
		t.Error("a wrong code")
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

func TestEventsAreLinesOfJSON(t *testing.T) {
	var out bytes.Buffer
	if err := Ready(&out); err != nil {
		t.Fatal(err)
	}
	if err := Done(&out, map[string]float64{"dct_s": 0.25}); err != nil {
		t.Fatal(err)
	}
	if right := `{"event":"ready"}` + "\n" + `{"event":"done","metrics":{"dct_s":0.25}}` + "\n"; out.String() != right {
		t.Errorf("wrote %q", out.String())
	}
}
