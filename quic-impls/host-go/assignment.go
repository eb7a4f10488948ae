// Package host is the endpoint contract of fecbench (quic-impls/README.md) as far as it is the same for all
// implementations in Go: the JSON file that an endpoint is started with, the events that it writes, and its exit
// codes. It refuses unknown keys and values outside of the ranges given there; what it leaves to an implementation
// are workloads, options and series.
package host

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
	"time"
)

// Assignment is the task of an endpoint of any implementation.
type Assignment struct {
	Role        string
	Address     netip.AddrPort // where the server listens
	ServerName  string
	ContentSeed uint64
	Certificate string // path; server only
	PrivateKey  string // path; server only
	Authority   string // path; client only
	LogFolder   string // path
	Deadline    time.Duration
}

// Left are the parts of an assignment that an implementation reads itself.
type Left struct {
	Workload, Options Values
	Series            []string
	LocalAddresses    []netip.Addr // none when there is no such key
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

// Read reads an implementation's assignment. Its error is one line that names the file, the key and what would be right.
func Read[A any](path string, parse func([]byte) (A, error)) (A, error) {
	var none A
	text, err := os.ReadFile(path)
	if err != nil {
		return none, err
	}
	a, err := parse(text)
	if err != nil {
		return none, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

// Parse reads an assignment from the text of its file.
func Parse(text []byte) (Assignment, Left, error) {
	var d document
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		return Assignment{}, Left{}, fmt.Errorf("not an assignment: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Assignment{}, Left{}, errors.New("not an assignment: more than one JSON value")
	}
	a, err := d.assignment()
	return a, Left{Values{"workload", d.Workload}, Values{"options", d.Options}, d.Series, d.LocalAddresses}, err
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
	return a, d.requireFor(d.Role)
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
