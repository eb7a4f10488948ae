package endpoint

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/contract"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/lossylink"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/page"
)

func loading(graph page.Graph, perOrigin bool) contract.Workload {
	return contract.Workload{Name: "page", Page: &contract.Page{Graph: graph, PerOrigin: perOrigin}}
}

// photos is a document, a script and a style after it, and many photos of two origins behind the script.
func photos(count int) page.Graph {
	graph := page.Graph{
		{Name: "document", Origin: "www", Size: 30_000, Processing: 20 * time.Millisecond},
		{Name: "style", Origin: "static", Size: 10_000, Parents: []int{0}},
		{Name: "script", Origin: "static", Size: 60_000, Parents: []int{0}, Processing: 30 * time.Millisecond},
	}
	for i := range count {
		graph = append(graph, page.Object{
			Name: fmt.Sprint(i), Origin: "photos", Size: int64(1000 * (i % 50)), Parents: []int{1, 2},
		})
	}
	return graph
}

func TestEveryPageArrivesInEveryArmOverOneAndOverSeveralConnections(t *testing.T) {
	for _, scheme := range []string{"none", "xor", "plain"} {
		for _, http := range []string{"hq", "h3"} {
			for perOrigin, connections := range map[bool]float64{false: 1, true: 3} {
				t.Run(fmt.Sprint(scheme, " ", http, " ", connections), func(t *testing.T) {
					options := withScheme(fecOptions, scheme)
					options.HTTP = http
					o := transfer{
						workload: loading(photos(120), perOrigin), options: options, // more than the streams at a time
						up: wifi(lossylink.Uniform(1, 0.03)), down: wifi(lossylink.Uniform(2, 0.03)),
					}.succeed(t)
					m := o.client
					if m["objects"] != 123 || m["connections"] != connections {
						t.Errorf("%v objects over %v connections", m["objects"], m["connections"])
					}
					if !(0 < m["handshake_s"] && m["handshake_s"] < m["first_object_s"] && m["first_object_s"] < m["dct_s"]) {
						t.Errorf("handshake %v s, first object %v s, DCT %v s", m["handshake_s"], m["first_object_s"], m["dct_s"])
					}
					if recovered := m["packets_recovered"] > 0; recovered != (scheme == "xor") {
						t.Errorf("%v packets recovered", m["packets_recovered"])
					}
				})
			}
		}
	}
}

// Objects of a few bytes over a fast link take one round trip each; a new connection's handshake takes one more.
func TestTheLoadTimeIsThatOfTheCriticalPath(t *testing.T) {
	const rtt, processing = 0.2, 0.05
	chain := page.Graph{
		{Name: "a", Origin: "x", Size: 10, Processing: 50 * time.Millisecond},
		{Name: "b", Origin: "y", Size: 10, Parents: []int{0}},
		{Name: "c", Origin: "x", Size: 10, Parents: []int{1}, Processing: 50 * time.Millisecond},
		{Name: "aside", Origin: "x", Size: 10, Parents: []int{0}},
	}
	fast := link(100, 100*time.Millisecond, lossylink.Nothing)
	for perOrigin, right := range map[bool]float64{false: 4*rtt + 2*processing, true: 5*rtt + 2*processing} {
		m := transfer{workload: loading(chain, perOrigin), options: withScheme(fecOptions, "none"), up: fast, down: fast}.succeed(t).client
		if math.Abs(m["dct_s"]-right) > 0.01 || math.Abs(m["first_object_s"]-2*rtt) > 0.01 || math.Abs(m["handshake_s"]-rtt) > 0.01 {
			t.Errorf("an origin a connection %v: handshake %v s, first object %v s, DCT %v s; right is %v s",
				perOrigin, m["handshake_s"], m["first_object_s"], m["dct_s"], right)
		}
	}
}

func TestTheDeadlineEndsAPageWithOneClearLine(t *testing.T) {
	everything := lossylink.Those(func(uint64, []byte) bool { return true })
	afterTheHandshake := lossylink.Those(func(n uint64, _ []byte) bool { return n > 20 })
	for name, drops := range map[string]lossylink.Drops{"handshake": everything, "objects": afterTheHandshake} {
		for _, http := range []string{"hq", "h3"} {
			options := fecOptions
			options.HTTP = http
			var begun, lastSent time.Time
			o := transfer{
				workload: loading(photos(30), true), options: options, deadline: 3 * time.Second, down: wifi(drops),
				up: wifi(lossylink.Nothing),
				hostile: func(client, _ *lossylink.End) {
					begun = time.Now()
					client.Watch = func([]byte) { lastSent = time.Now() }
				},
			}.run(t)
			// The last datagrams close the connections.
			if after := lastSent.Sub(begun); name == "objects" && (after < 3*time.Second || after > 3100*time.Millisecond) {
				t.Errorf("%s, %s: the connections were closed after %v", name, http, after)
			}
			if o.clientErr == nil || strings.Contains(o.clientErr.Error(), "\n") ||
				!strings.Contains(o.clientErr.Error(), "page of 33 objects: not done within the deadline of 3 s") {
				t.Errorf("%s, %s: %v", name, http, o.clientErr)
			}
			if o.serverErr != nil {
				t.Errorf("%s, %s: the server ended with %v", name, http, o.serverErr)
			}
		}
	}
}
