// Package contract is the endpoint contract of fecbench (quic-impls/README.md): the JSON file that an endpoint is started
// with, the events that it writes, and its exit codes. It refuses unknown keys, options that impl.toml doesn't have, and
// values outside of the ranges given there.
package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"
)

// Exit codes.
const (
	ExitSuccess     = 0
	ExitFailure     = 1
	ExitBadInput    = 2
	ExitUnsupported = 127 // the convention of the QUIC interop runner
)

// CongestionWindow is the name of the one series that there is.
const CongestionWindow = "cwnd"

const (
	mostBytes = 1 << 40
	mostPaths = 8
)

// Assignment is what an endpoint has to do.
type Assignment struct {
	Role           string
	Address        netip.AddrPort // where the server listens
	ServerName     string
	Workload       Workload
	ContentSeed    uint64
	Options        Options
	LocalAddresses []netip.Addr
	Certificate    string // path; server only
	PrivateKey     string // path; server only
	Authority      string // path; client only
	LogFolder      string // path
	WantsWindow    bool   // the series CongestionWindow
	Deadline       time.Duration
}

// Workload is a transfer of Size bytes, "download" or "upload".
type Workload struct {
	Name string
	Size int64
}

// Options are those of impl.toml.
type Options struct {
	CongestionControl string
	Paths             int
}

// Unsupported says that this implementation, or this machine, doesn't have what was asked for.
type Unsupported struct{ What string }

func (u Unsupported) Error() string { return u.What + " is not supported" }

// CodeOfInput is the exit code of an endpoint whose assignment is refused with an error.
func CodeOfInput(err error) int { return code(err, ExitBadInput) }

// CodeOfFailure is that of one that has failed with an error.
func CodeOfFailure(err error) int { return code(err, ExitFailure) }

func code(err error, otherwise int) int {
	if errors.As(err, &Unsupported{}) {
		return ExitUnsupported
	}
	return otherwise
}

type document struct {
	Version        int                        `json:"version"`
	Role           string                     `json:"role"`
	Address        string                     `json:"address"`
	Port           int                        `json:"port"`
	ServerName     string                     `json:"server_name"`
	Workload       map[string]json.RawMessage `json:"workload"`
	ContentSeed    uint64                     `json:"content_seed"`
	Options        map[string]json.RawMessage `json:"options"`
	LocalAddresses []netip.Addr               `json:"local_addresses"`
	Certificate    string                     `json:"certificate"`
	PrivateKey     string                     `json:"private_key"`
	Authority      string                     `json:"authority"`
	LogFolder      string                     `json:"log_folder"`
	Series         []string                   `json:"series"`
	DeadlineS      float64                    `json:"deadline_s"`
}

// Read reads an assignment. Its error is one line that names the file, the key and what would be right.
func Read(path string) (Assignment, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Assignment{}, err
	}
	a, err := Parse(text)
	if err != nil {
		return Assignment{}, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

// Parse reads an assignment from the text of its file.
func Parse(text []byte) (Assignment, error) {
	var d document
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		return Assignment{}, fmt.Errorf("not an assignment: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Assignment{}, errors.New("not an assignment: more than one JSON value")
	}
	return d.assignment()
}

func (d document) assignment() (Assignment, error) {
	a := Assignment{
		Role: d.Role, ServerName: d.ServerName, ContentSeed: d.ContentSeed, LocalAddresses: d.LocalAddresses,
		Certificate: d.Certificate, PrivateKey: d.PrivateKey, Authority: d.Authority, LogFolder: d.LogFolder,
		Deadline: time.Duration(d.DeadlineS * float64(time.Second)),
	}
	if d.Version != 1 {
		return a, fmt.Errorf("version: %d; this program knows version 1", d.Version)
	}
	if err := oneOf("role", d.Role, "client", "server"); err != nil {
		return a, err
	}
	address, err := netip.ParseAddr(d.Address)
	if err != nil {
		return a, fmt.Errorf("address: %q is not an IP address", d.Address)
	}
	if d.Port < 1 || d.Port > 65535 {
		return a, fmt.Errorf("port: %d is not in 1 to 65535", d.Port)
	}
	a.Address = netip.AddrPortFrom(address, uint16(d.Port))
	if !(d.DeadlineS > 0 && d.DeadlineS <= 1e6) {
		return a, fmt.Errorf("deadline_s: %v is not above 0 and up to 1000000", d.DeadlineS)
	}
	if d.LogFolder == "" {
		return a, errors.New("log_folder: missing")
	}
	if err := d.requireFor(d.Role); err != nil {
		return a, err
	}
	if a.WantsWindow, err = parseSeries(d.Series); err != nil {
		return a, err
	}
	if a.Options, err = parseOptions(d.Options); err != nil {
		return a, err
	}
	a.Workload, err = parseWorkload(d.Workload)
	return a, err
}

func (d document) requireFor(role string) error {
	needed := map[string]string{"server_name": d.ServerName, "authority": d.Authority}
	if role == "server" {
		needed = map[string]string{"certificate": d.Certificate, "private_key": d.PrivateKey}
	}
	for _, key := range slices.Sorted(maps.Keys(needed)) {
		if needed[key] == "" {
			return fmt.Errorf("%s: missing; a %s needs it", key, role)
		}
	}
	return nil
}

func parseSeries(names []string) (wantsWindow bool, err error) {
	for _, name := range names {
		if name != CongestionWindow {
			return false, Unsupported{fmt.Sprintf("series: %q", name)}
		}
	}
	return len(names) > 0, nil
}

func parseWorkload(values map[string]json.RawMessage) (Workload, error) {
	var w Workload
	if err := decode(values["name"], &w.Name); err != nil {
		return w, errors.New(`workload.name: missing or not a string; "download" and "upload" are supported`)
	}
	if w.Name != "download" && w.Name != "upload" {
		return w, Unsupported{fmt.Sprintf("workload.name: %q", w.Name)}
	}
	if err := decode(values["size_bytes"], &w.Size); err != nil || w.Size < 0 || w.Size > mostBytes {
		return w, fmt.Errorf("workload.size_bytes: %s is not an integer in 0 to %d", raw(values["size_bytes"]), int64(mostBytes))
	}
	return w, unknown("workload", values, "name", "size_bytes")
}

// CheckOptions refuses a JSON object that an assignment could not have as its options.
func CheckOptions(text []byte) error {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(text, &values); err != nil {
		return fmt.Errorf("options: no JSON object: %w", err)
	}
	_, err := parseOptions(values)
	return err
}

func parseOptions(values map[string]json.RawMessage) (Options, error) {
	var o Options
	choices := []string{"reno", "cubic", "bbr"}
	if err := decode(values["congestion_control"], &o.CongestionControl); err != nil {
		return o, fmt.Errorf("options.congestion_control: %s is not one of %s", raw(values["congestion_control"]), strings.Join(choices, ", "))
	}
	if err := oneOf("options.congestion_control", o.CongestionControl, choices...); err != nil {
		return o, err
	}
	if err := decode(values["paths"], &o.Paths); err != nil || o.Paths < 1 || o.Paths > mostPaths {
		return o, fmt.Errorf("options.paths: %s is not an integer in 1 to %d", raw(values["paths"]), mostPaths)
	}
	return o, unknown("options", values, "congestion_control", "paths")
}

func oneOf(key, value string, choices ...string) error {
	if !slices.Contains(choices, value) {
		return fmt.Errorf("%s: %q is not one of %s", key, value, strings.Join(choices, ", "))
	}
	return nil
}

func unknown(key string, values map[string]json.RawMessage, known ...string) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(known, name) {
			return fmt.Errorf("%s.%s: unknown; known are %s", key, name, strings.Join(known, ", "))
		}
	}
	return nil
}

// decode reads a JSON value that has to be there.
func decode(value json.RawMessage, into any) error {
	if value == nil || string(value) == "null" {
		return errors.New("missing")
	}
	return json.Unmarshal(value, into)
}

func raw(value json.RawMessage) string {
	if value == nil {
		return "nothing"
	}
	return string(value)
}

// Ready is what a server writes as soon as it listens.
func Ready(out io.Writer) error { return json.NewEncoder(out).Encode(map[string]any{"event": "ready"}) }

// Done is what an endpoint writes at its end.
func Done(out io.Writer, metrics map[string]float64) error {
	return json.NewEncoder(out).Encode(map[string]any{"event": "done", "metrics": metrics})
}
