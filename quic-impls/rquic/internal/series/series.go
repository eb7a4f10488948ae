// Package series keeps tables of numbers over time, which an endpoint leaves in its log folder when it is asked for
// them (quic-impls/README.md). Rows stay in memory until the end, so that no transfer waits for a file, and are
// bounded: of a long transfer fewer of them are kept, evenly.
package series

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// limit is the most rows that a series keeps, apart from the last one of each connection: less than 16 MiB in a file.
const limit = 200_000

// maxValues is the number of values in the widest row.
const maxValues = 6

// Recording has all series of an endpoint. Their time begins with its first connection.
type Recording struct {
	mu          sync.Mutex
	begun       time.Time // zero before the first connection
	connections int
	files       []file
}

// file is a series or a table.
type file interface {
	place() string
	writeTo(io.Writer) error
}

// Series is a table of some values of each connection over time.
type Series struct {
	recording *Recording
	path      string
	columns   []string // of the values

	limit         int
	rows          []row
	latest        []latest      // by connection
	leastInterval time.Duration // between two rows of a connection
}

type row struct {
	connection int // -1: none
	at         time.Duration
	values     [maxValues]float64
}

// latest is the last row of a connection.
type latest struct {
	added row // whether or not it became one of the rows
	kept  row
}

var none = row{connection: -1}

// Open numbers a connection that begins, from 0.
func (r *Recording) Open() (connection int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.connections == 0 {
		r.begun = time.Now()
	}
	r.connections++
	return r.connections - 1
}

// Connections returns how many have begun.
func (r *Recording) Connections() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.connections
}

// Begin adds a series with some columns, besides t_s and connection, that will be the file at a path.
func (r *Recording) Begin(path string, columns ...string) *Series {
	r.mu.Lock()
	defer r.mu.Unlock()
	// All rows have their place from the beginning, so that nothing waits while it grows.
	s := &Series{recording: r, path: path, columns: columns, limit: limit, rows: make([]row, 0, limit+1)}
	r.files = append(r.files, s)
	return s
}

// Add adds a row with the present time, one value for each column, all of them finite. The connection is a number
// that Open returned.
func (s *Series) Add(connection int, values ...float64) {
	s.recording.mu.Lock()
	defer s.recording.mu.Unlock()
	for len(s.latest) <= connection {
		s.latest = append(s.latest, latest{added: none, kept: none})
	}
	l := &s.latest[connection]
	l.added = row{connection: connection, at: time.Since(s.recording.begun)}
	copy(l.added.values[:], values)
	if l.kept != none && l.added.at-l.kept.at < s.leastInterval {
		return
	}
	l.kept = l.added
	s.rows = append(s.rows, l.added)
	if len(s.rows) > s.limit {
		s.thin()
	}
}

// thin drops every second row of each connection, and doubles the least interval between those to come.
func (s *Series) thin() {
	keep := make([]bool, len(s.latest))
	s.rows = slices.DeleteFunc(s.rows, func(r row) bool {
		keep[r.connection] = !keep[r.connection]
		return !keep[r.connection]
	})
	lasted := s.rows[len(s.rows)-1].at
	s.leastInterval = 2 * max(s.leastInterval, lasted/time.Duration(s.limit))
}

// complete has the rows in the order of time, with the last one of each connection.
func (s *Series) complete() []row {
	last := slices.Repeat([]row{none}, len(s.latest))
	for _, r := range s.rows {
		last[r.connection] = r
	}
	rows := slices.Clone(s.rows)
	for connection, l := range s.latest {
		if l.added != last[connection] {
			rows = append(rows, l.added)
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.at, b.at) })
	return rows
}

// Write writes the files of all series. Its error is the first one.
func (r *Recording) Write() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var first error
	for _, f := range r.files {
		if err := write(f); err != nil {
			first = cmp.Or(first, fmt.Errorf("series: %w", err))
		}
	}
	return first
}

func write(f file) error {
	to, err := os.Create(f.place())
	if err != nil {
		return err
	}
	err = f.writeTo(to)
	return cmp.Or(err, to.Close())
}

func (s *Series) place() string { return s.path }

func (s *Series) writeTo(w io.Writer) error {
	out := bufio.NewWriterSize(w, 1<<16)
	writeHeader(out, s.columns) // Flush has its error, and those below
	var line []byte
	for _, r := range s.complete() {
		line = appendStart(line[:0], r.at, r.connection)
		for _, value := range r.values[:len(s.columns)] {
			line = strconv.AppendFloat(append(line, ','), value, 'g', 10, 64)
		}
		out.Write(append(line, '\n'))
	}
	return out.Flush()
}

func writeHeader(w io.StringWriter, columns []string) {
	w.WriteString(strings.Join(append([]string{"t_s", "connection"}, columns...), ",") + "\n")
}

// appendStart appends the first columns of every line.
func appendStart(line []byte, at time.Duration, connection int) []byte {
	line = strconv.AppendFloat(line, at.Seconds(), 'f', 6, 64)
	return strconv.AppendInt(append(line, ','), int64(connection), 10)
}
