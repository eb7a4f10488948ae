// Package contract is the endpoint contract of fecbench (quic-impls/README.md): the JSON file that an endpoint
// is started with, the events that it writes, and its exit codes. It refuses unknown keys, options
// that impl.toml doesn't have, and values outside of the ranges given there.
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

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/messages"
)

// Exit codes.
const (
	ExitSuccess     = 0
	ExitFailure     = 1
	ExitBadInput    = 2
	ExitUnsupported = 127 // the convention of the QUIC interop runner
)

// Assignment is what an endpoint has to do.
type Assignment struct {
	Role        string
	Address     netip.AddrPort // where the server listens
	ServerName  string
	Workload    Workload
	ContentSeed uint64
	Options     Options
	Certificate string // path; server only
	PrivateKey  string // path; server only
	Authority   string // path
	LogFolder   string // path
	Series      Series
	Deadline    time.Duration
}

// Workload is a transfer of Size bytes, "download" or "upload", the load of a Page, "page", or Messages, "messages".
type Workload struct {
	Name     string
	Size     int64
	Page     *Page
	Messages *messages.Traffic
}

// Names of series.
const (
	CongestionWindow = "cwnd"
	CodeRate         = "code_rate"
	Messages         = "messages"
)

// Series are the tables over time that an endpoint was asked to leave in its log folder.
type Series struct{ CongestionWindow, CodeRate, Messages bool }

// Unsupported says that this implementation doesn't have what was asked for.
type Unsupported struct{ What string }

func (u Unsupported) Error() string { return u.What + " is not supported" }

// ExitCode is that of an endpoint whose assignment is refused with an error.
func ExitCode(err error) int {
	if errors.As(err, &Unsupported{}) {
		return ExitUnsupported
	}
	return ExitBadInput
}

type document struct {
	Version     int                        `json:"version"`
	Role        string                     `json:"role"`
	Address     string                     `json:"address"`
	Port        int                        `json:"port"`
	ServerName  string                     `json:"server_name"`
	Workload    map[string]json.RawMessage `json:"workload"`
	ContentSeed uint64                     `json:"content_seed"`
	Options     map[string]json.RawMessage `json:"options"`
	Certificate string                     `json:"certificate"`
	PrivateKey  string                     `json:"private_key"`
	Authority   string                     `json:"authority"`
	LogFolder   string                     `json:"log_folder"`
	Series      []string                   `json:"series"`
	DeadlineS   float64                    `json:"deadline_s"`
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
		Role: d.Role, ServerName: d.ServerName, ContentSeed: d.ContentSeed, Certificate: d.Certificate,
		PrivateKey: d.PrivateKey, Authority: d.Authority, LogFolder: d.LogFolder,
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
	if a.Series, err = parseSeries(d.Series); err != nil {
		return a, err
	}
	if a.Options, err = parseOptions(d.Options); err != nil {
		return a, err
	}
	if a.Workload, err = parseWorkload(d.Workload); err != nil {
		return a, err
	}
	return a, a.fitsTogether()
}

// fitsTogether refuses content of a client that nothing would protect, and messages that cannot be sent.
func (a Assignment) fitsTogether() error {
	coded := a.Options.Scheme != "none" && a.Options.Scheme != "plain"
	if coded && a.Workload.ClientSends() && a.Options.ServerEncodesAlone() {
		return Unsupported{fmt.Sprintf("workload.name: %q with an encoder at the server alone", a.Workload.Name)}
	}
	if a.Workload.Messages != nil {
		return a.fitMessages()
	}
	return nil
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

func parseSeries(names []string) (Series, error) {
	var s Series
	for _, name := range names {
		switch name {
		case CongestionWindow:
			s.CongestionWindow = true
		case CodeRate:
			s.CodeRate = true
		case Messages:
			s.Messages = true
		default:
			return s, Unsupported{fmt.Sprintf("series: %q", name)}
		}
	}
	return s, nil
}

func parseWorkload(values map[string]json.RawMessage) (Workload, error) {
	var w Workload
	if err := decode(values["name"], &w.Name); err != nil {
		return w, errors.New(`workload.name: missing or not a string; "download", "upload", "page" and "messages" are supported`)
	}
	if w.Name == "messages" {
		traffic, err := parseMessages(values)
		w.Messages = traffic
		return w, err
	}
	if w.Name == "page" {
		page, err := parsePage(values)
		w.Page = page
		return w, err
	}
	if w.Name != "download" && w.Name != "upload" {
		return w, Unsupported{fmt.Sprintf("workload.name: %q", w.Name)}
	}
	if err := decode(values["size_bytes"], &w.Size); err != nil || w.Size < 0 || w.Size > 1<<40 {
		return w, fmt.Errorf("workload.size_bytes: %s is not an integer in 0 to %d", raw(values["size_bytes"]), int64(1)<<40)
	}
	return w, unknown("workload", values, "name", "size_bytes")
}

func choice(values map[string]json.RawMessage, name string, value *string, choices ...string) error {
	if err := decode(values[name], value); err != nil {
		return fmt.Errorf("options.%s: %s is not one of %s", name, raw(values[name]), strings.Join(choices, ", "))
	}
	return oneOf("options."+name, *value, choices...)
}

func number(values map[string]json.RawMessage, name string, value *float64, minimum, maximum float64) error {
	if err := decode(values[name], value); err != nil || *value < minimum || *value > maximum {
		return fmt.Errorf("options.%s: %s is not a number in %v to %v", name, raw(values[name]), minimum, maximum)
	}
	return nil
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
