package contract

import (
	"fmt"

	host "github.com/fecbench/fecbench/quic-impls/host-go"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/page"
)

// Page is the task of a client with the workload "page"; a server does not need it.
type Page struct {
	Graph page.Graph
	// PerOrigin: one connection for each origin, instead of one for all.
	PerOrigin bool
}

func parsePage(values host.Values) (*Page, error) {
	graph, err := page.Parse(values.Raw("graph"))
	if err != nil {
		return nil, fmt.Errorf("workload.graph: %w", err)
	}
	var connections string
	if err := values.Choice("connections", &connections, "one", "per_origin"); err != nil {
		return nil, err
	}
	return &Page{graph, connections == "per_origin"}, values.Only("name", "graph", "connections")
}
