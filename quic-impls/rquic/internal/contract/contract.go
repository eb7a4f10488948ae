// Package contract has rQUIC's own parts of an assignment: its workloads, options and series.
package contract

import (
	"errors"
	"fmt"

	host "github.com/fecbench/fecbench/quic-impls/host-go"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/messages"
)

// Assignment is the task of an endpoint.
type Assignment struct {
	host.Assignment
	Workload Workload
	Options  Options
	Series   Series
}

// Workload is a transfer of Size bytes, "download" or "upload", the load of a Page, "page", Messages, "messages", or what a
// client is told in the course of the trial, "requests".
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
	Repair           = "fec"
	Messages         = "messages"
)

// Series are the tables over time that an endpoint was asked to leave in its log folder.
type Series struct{ CongestionWindow, CodeRate, Repair, Messages bool }

// Parse reads an assignment from the text of its file.
func Parse(text []byte) (Assignment, error) {
	var a Assignment
	var left host.Left
	var err error
	if a.Assignment, left, err = host.Parse(text); err != nil {
		return a, err
	}
	if left.LocalAddresses != nil {
		return a, errors.New("local_addresses: unknown; there is one path")
	}
	if a.Series, err = parseSeries(left.Series); err != nil {
		return a, err
	}
	if a.Options, err = parseOptions(left.Options); err != nil {
		return a, err
	}
	if a.Workload, err = parseWorkload(left.Workload); err != nil {
		return a, err
	}
	return a, a.fitsTogether()
}

// AsksAsTold reports whether it is a client that gets its requests during the trial.
func (a Assignment) AsksAsTold() bool { return a.Role == "client" && a.Workload.Name == host.Requests }

// fitsTogether refuses content of a client that nothing would protect, and messages that cannot be sent.
func (a Assignment) fitsTogether() error {
	coded := a.Options.Scheme != "none" && a.Options.Scheme != "plain"
	if coded && a.Workload.ClientSends() && a.Options.ServerEncodesAlone() {
		return host.Unsupported{What: fmt.Sprintf("workload.name: %q with an encoder at the server alone", a.Workload.Name)}
	}
	if a.Workload.Messages != nil {
		return a.fitMessages()
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
		case Repair:
			s.Repair = true
		case Messages:
			s.Messages = true
		default:
			return s, host.Unsupported{What: fmt.Sprintf("series: %q", name)}
		}
	}
	return s, nil
}

func parseWorkload(values host.Values) (Workload, error) {
	var w Workload
	if err := values.Decode("name", &w.Name); err != nil {
		return w, errors.New(`workload.name: missing or not a string; "download", "upload", "page", "messages" and "requests" are supported`)
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
	if w.Name == host.Requests {
		return w, values.Only("name")
	}
	if w.Name != "download" && w.Name != "upload" {
		return w, host.Unsupported{What: fmt.Sprintf("workload.name: %q", w.Name)}
	}
	return w, values.Transfer(&w.Size)
}
