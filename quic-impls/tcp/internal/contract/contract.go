// Package contract has TCP's own parts of an assignment: its workloads, options and series.
package contract

import (
	"errors"
	"fmt"
	"net/netip"

	host "github.com/fecbench/fecbench/quic-impls/host-go"
)

// CongestionWindow is the name of the one series that there is.
const CongestionWindow = "cwnd"

const mostPaths = 8

// Assignment is the task of an endpoint.
type Assignment struct {
	host.Assignment
	Workload       Workload
	Options        Options
	LocalAddresses []netip.Addr
	WantsWindow    bool // the series CongestionWindow
}

// Workload is a transfer of Size bytes, "download" or "upload", or what a client is told in the course of the trial, "requests".
type Workload struct {
	Name string
	Size int64
}

func (w Workload) String() string {
	if w.Name == host.Requests {
		return w.Name
	}
	return fmt.Sprintf("%s of %d bytes", w.Name, w.Size)
}

// Options are the options of impl.toml.
type Options struct {
	CongestionControl string
	Paths             int
	ECN               bool
}

// Parse reads an assignment from the text of its file.
func Parse(text []byte) (Assignment, error) {
	var a Assignment
	var left host.Left
	var err error
	if a.Assignment, left, err = host.Parse(text); err != nil {
		return a, err
	}
	a.LocalAddresses = left.LocalAddresses
	if a.WantsWindow, err = parseSeries(left.Series); err != nil {
		return a, err
	}
	if a.Options, err = parseOptions(left.Options); err != nil {
		return a, err
	}
	a.Workload, err = parseWorkload(left.Workload)
	return a, err
}

func parseSeries(names []string) (wantsWindow bool, err error) {
	for _, name := range names {
		if name != CongestionWindow {
			return false, host.Unsupported{What: fmt.Sprintf("series: %q", name)}
		}
	}
	return len(names) > 0, nil
}

func parseWorkload(values host.Values) (Workload, error) {
	var w Workload
	if err := values.Decode("name", &w.Name); err != nil {
		return w, errors.New(`workload.name: missing or not a string; "download", "upload" and "requests" are supported`)
	}
	if w.Name == host.Requests {
		return w, values.Only("name")
	}
	if w.Name != "download" && w.Name != "upload" {
		return w, host.Unsupported{What: fmt.Sprintf("workload.name: %q", w.Name)}
	}
	return w, values.Transfer(&w.Size)
}

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
	if err := values.Choice("congestion_control", &o.CongestionControl, "reno", "cubic", "bbr"); err != nil {
		return o, err
	}
	if err := host.Integer(values, "paths", &o.Paths, 1, mostPaths); err != nil {
		return o, err
	}
	if raw := values.Raw("ecn"); raw != nil { // tasks of before have none
		if err := values.Decode("ecn", &o.ECN); err != nil {
			return o, fmt.Errorf("options.ecn: %s is not true or false", raw)
		}
	}
	return o, values.Only("congestion_control", "paths", "ecn")
}
