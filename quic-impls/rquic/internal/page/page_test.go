package page

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestAGraphIsRead(t *testing.T) {
	graph, err := Parse([]byte(`{"objects": [
		{"name": "a", "origin": "x", "size_bytes": 5, "parents": [], "processing_ms": 1.5},
		{"name": "b", "origin": "y", "size_bytes": 0, "parents": ["a"], "processing_ms": 0},
		{"name": "c", "origin": "x", "size_bytes": 7, "parents": ["a", "b"], "processing_ms": 0}]}`))
	if err != nil {
		t.Fatal(err)
	}
	right := Graph{
		{"a", "x", 5, nil, 1500 * time.Microsecond}, {"b", "y", 0, []int{0}, 0}, {"c", "x", 7, []int{0, 1}, 0},
	}
	if fmt.Sprint(graph) != fmt.Sprint(right) {
		t.Errorf("read %v, right is %v", graph, right)
	}
}

func TestABadGraphIsRefusedWithOneLineThatNamesTheKey(t *testing.T) {
	for text, naming := range map[string]string{
		``:                             "not a graph",
		`[]`:                           "not a graph",
		`{"objects": [], "colour": 1}`: `"colour"`,
		`{}`:                           "objects: 0 of them",
		`{"objects": []}`:              "objects: 0 of them",
		`{"objects": [{}]}`:            "objects[0].name",
		`{"objects": [{"name": "a"}]}`: "objects[0].size_bytes",
		`{"objects": [{"name": "a", "size_bytes": -1}]}`:                      "objects[0].size_bytes",
		`{"objects": [{"name": "a", "size_bytes": 1.5}]}`:                     "size_bytes",
		`{"objects": [{"name": "a", "size_bytes": 1, "processing_ms": -1}]}`:  "objects[0].processing_ms: -1",
		`{"objects": [{"name": "a", "size_bytes": 1, "processing_ms": 1e9}]}`: "objects[0].processing_ms: 1e+09",
		`{"objects": [{"name": "a", "size_bytes": 1, "parents": ["a"]}]}`:     `no object "a" before "a"`,
		`{"objects": [{"name": "a", "size_bytes": 1, "parents": ["b"]}]}`:     `no object "b" before "a"`,
		`{"objects": [{"name": "a", "size_bytes": 1}, {"name": "a"}]}`:        "objects[1].name",
		`{"objects": [{"name": "a", "size_bytes": 1, "weight": 2}]}`:          `"weight"`,
	} {
		_, err := Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), naming) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s was refused with %v, which should name %s", text, err, naming)
		}
	}
}

// random returns a graph in which an object has up to 3 parents among those before it.
func random(random *rand.Rand) Graph {
	graph := make(Graph, 1+random.IntN(40))
	for i := range graph {
		graph[i] = Object{Name: fmt.Sprint(i), Processing: time.Duration(random.IntN(30)) * time.Millisecond}
		for range min(i, random.IntN(4)) {
			graph[i].Parents = append(graph[i].Parents, random.IntN(i))
		}
	}
	return graph
}

func TestEveryObjectIsRequestedAsSoonAsItsParentsAreProcessedAndNotBefore(t *testing.T) {
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			source := rand.New(rand.NewPCG(seed, 0))
			graph := random(source)
			transfers := make([]time.Duration, len(graph))
			for i := range transfers {
				transfers[i] = time.Duration(source.IntN(50)) * time.Millisecond
			}
			start := time.Now()
			var mu sync.Mutex
			requested := map[string]time.Duration{}
			err := graph.Load(t.Context(), func(_ context.Context, o Object) error {
				mu.Lock()
				requested[o.Name] = time.Since(start)
				mu.Unlock()
				var i int
				fmt.Sscan(o.Name, &i)
				time.Sleep(transfers[i])
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			// The critical path, computed without concurrency.
			ends, last := make([]time.Duration, len(graph)), time.Duration(0)
			for i, o := range graph {
				begin := time.Duration(0)
				for _, parent := range o.Parents {
					begin = max(begin, ends[parent])
				}
				if requested[o.Name] != begin {
					t.Errorf("seed %d: object %d was requested at %v, right is %v", seed, i, requested[o.Name], begin)
				}
				ends[i] = begin + transfers[i] + o.Processing
				last = max(last, ends[i])
			}
			if took := time.Since(start); took != last || len(requested) != len(graph) {
				t.Errorf("seed %d: loaded %d of %d objects in %v, right is %v", seed, len(requested), len(graph), took, last)
			}
		})
	}
}

func TestTheFirstErrorEndsALoadAtOnceAndNamesTheObject(t *testing.T) {
	broken := errors.New("broken")
	graph := Graph{
		{Name: "slow"}, {Name: "bad"}, {Name: "after", Parents: []int{0}}, {Name: "processing", Processing: time.Hour},
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		err := graph.Load(t.Context(), func(ctx context.Context, o Object) error {
			switch o.Name {
			case "bad":
				time.Sleep(time.Second)
				return broken
			case "after":
				t.Error("an object was requested after the error")
			case "slow":
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		if !errors.Is(err, broken) || !strings.Contains(err.Error(), `"bad"`) || time.Since(start) != time.Second {
			t.Errorf("ended after %v with %v", time.Since(start), err)
		}
	})
}

func TestALoadEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("deadline")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer cancel()
		graph := Graph{{Name: "a", Processing: time.Hour}, {Name: "b", Parents: []int{0}}}
		if err := graph.Load(ctx, func(context.Context, Object) error { return nil }); !errors.Is(err, why) {
			t.Error(err)
		}
	})
}

func FuzzParseNeverPanics(f *testing.F) {
	f.Add([]byte(`{"objects": [{"name": "a", "size_bytes": 1, "parents": []}]}`))
	f.Fuzz(func(_ *testing.T, text []byte) { Parse(text) })
}
