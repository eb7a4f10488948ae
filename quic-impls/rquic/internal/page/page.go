// Package page is a web page as a browser loads it: a graph of objects, each of which is requested when its parents
// have arrived and been processed. It knows nothing of QUIC: fetching an object is its caller's.
package page

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// Limits of a page; the contract has the same.
const (
	MaxObjects    = 10_000
	MaxSize       = 1 << 40
	MaxProcessing = time.Hour
)

// Object is an object that one request fetches.
type Object struct {
	Name       string
	Origin     string
	Size       int64
	Parents    []int // places in the graph, before that of the object
	Processing time.Duration
}

// Graph is a page; parents stand before their children.
type Graph []Object

// Parse reads the graph of the contract: {"objects": [{"name", "origin", "size_bytes", "parents", "processing_ms"}, …]}.
func Parse(text []byte) (Graph, error) {
	var document struct {
		Objects []object `json:"objects"`
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&document); err != nil {
		return nil, fmt.Errorf("not a graph: %w", err)
	}
	if n := len(document.Objects); n < 1 || n > MaxObjects {
		return nil, fmt.Errorf("objects: %d of them; a page has 1 to %d", n, MaxObjects)
	}
	places := map[string]int{}
	graph := make(Graph, len(document.Objects))
	for i, o := range document.Objects {
		var err error
		if graph[i], err = o.resolved(places); err != nil {
			return nil, fmt.Errorf("objects[%d].%w", i, err)
		}
		places[o.Name] = i
	}
	return graph, nil
}

type object struct {
	Name         string   `json:"name"`
	Origin       string   `json:"origin"`
	SizeBytes    *int64   `json:"size_bytes"`
	Parents      []string `json:"parents"`
	ProcessingMs float64  `json:"processing_ms"`
}

// resolved is the object with the places of its parents, given those of the objects before it.
func (o object) resolved(places map[string]int) (Object, error) {
	if _, known := places[o.Name]; known || o.Name == "" {
		return Object{}, fmt.Errorf("name: %q is empty or given twice", o.Name)
	}
	if o.SizeBytes == nil || *o.SizeBytes < 0 || *o.SizeBytes > MaxSize {
		return Object{}, fmt.Errorf("size_bytes: not an integer in 0 to %d", int64(MaxSize))
	}
	if !(o.ProcessingMs >= 0 && o.ProcessingMs <= float64(MaxProcessing/time.Millisecond)) {
		return Object{}, fmt.Errorf("processing_ms: %v is not in 0 to %d", o.ProcessingMs, MaxProcessing/time.Millisecond)
	}
	resolved := Object{
		Name: o.Name, Origin: o.Origin, Size: *o.SizeBytes,
		Processing: time.Duration(o.ProcessingMs * float64(time.Millisecond)),
	}
	for _, parent := range o.Parents {
		place, known := places[parent]
		if !known {
			return Object{}, fmt.Errorf("parents: there is no object %q before %q", parent, o.Name)
		}
		resolved.Parents = append(resolved.Parents, place)
	}
	return resolved, nil
}

// Load fetches every object, as many at a time as the graph allows, and returns when the last one has been processed.
// fetch returns when the object has arrived whole; its first error ends the load.
func (g Graph) Load(ctx context.Context, fetch func(context.Context, Object) error) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	processed := make([]chan struct{}, len(g))
	for i := range g {
		processed[i] = make(chan struct{})
	}
	var loading sync.WaitGroup
	for i, object := range g {
		loading.Go(func() {
			for _, parent := range object.Parents {
				select {
				case <-processed[parent]:
				case <-ctx.Done():
					return
				}
			}
			if err := fetch(ctx, object); err != nil {
				end(fmt.Errorf("object %q: %w", object.Name, err))
				return
			}
			if process(ctx, object.Processing) {
				close(processed[i])
			}
		})
	}
	loading.Wait()
	return context.Cause(ctx)
}

// process takes time, and reports whether it was given it.
func process(ctx context.Context, duration time.Duration) bool {
	if duration == 0 {
		return true
	}
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
