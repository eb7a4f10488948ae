package contract

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	host "github.com/fecbench/fecbench/quic-impls/host-go"
)

func pageWorkload(key string, value any) map[string]any {
	document := good("client")
	workload := map[string]any{
		"name": "page", "connections": "one",
		"graph": json.RawMessage(`{"objects": [{"name": "a", "origin": "x", "size_bytes": 5, "processing_ms": 2}]}`),
	}
	workload[key] = value
	document["workload"] = workload
	return document
}

func TestAPageIsRead(t *testing.T) {
	for connections, perOrigin := range map[string]bool{"one": false, "per_origin": true} {
		a, err := parse(t, pageWorkload("connections", connections))
		if err != nil {
			t.Fatal(err)
		}
		page := a.Workload.Page
		if page.PerOrigin != perOrigin || len(page.Graph) != 1 || page.Graph[0].Processing != 2*time.Millisecond {
			t.Errorf("read %+v", page)
		}
	}
}

func TestABadPageIsRefusedWithOneLineThatNamesTheKey(t *testing.T) {
	for _, bad := range []struct {
		key    string
		value  any
		naming string
	}{
		{"connections", "many", `workload.connections: "many" is not one of one, per_origin`},
		{"connections", nil, "workload.connections: null"},
		{"graph", nil, "workload.graph: "},
		{"graph", "page.json", "workload.graph: not a graph"},
		{"graph", map[string]any{"objects": []any{}}, "workload.graph: objects: 0 of them"},
		{"size_bytes", 5, "workload.size_bytes: unknown"},
	} {
		_, err := parse(t, pageWorkload(bad.key, bad.value))
		if err == nil || !strings.Contains(err.Error(), bad.naming) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s = %v was refused with %v, which should name %s", bad.key, bad.value, err, bad.naming)
		}
		if errors.As(err, &host.Unsupported{}) {
			t.Errorf("%s = %v is called unsupported", bad.key, bad.value)
		}
	}
}
