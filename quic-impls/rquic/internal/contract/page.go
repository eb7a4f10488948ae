package contract

import (
	"encoding/json"
	"fmt"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/page"
)

// Page is what a client does with the workload "page"; a server needs nothing of it.
type Page struct {
	Graph page.Graph
	// PerOrigin: one connection for each origin, instead of one for all.
	PerOrigin bool
}

func parsePage(values map[string]json.RawMessage) (*Page, error) {
	graph, err := page.Parse(values["graph"])
	if err != nil {
		return nil, fmt.Errorf("workload.graph: %w", err)
	}
	var connections string
	if err := decode(values["connections"], &connections); err != nil {
		return nil, fmt.Errorf("workload.connections: %s is not one of one, per_origin", raw(values["connections"]))
	}
	if err := oneOf("workload.connections", connections, "one", "per_origin"); err != nil {
		return nil, err
	}
	return &Page{graph, connections == "per_origin"}, unknown("workload", values, "name", "graph", "connections")
}
