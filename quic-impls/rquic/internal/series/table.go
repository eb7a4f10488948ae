package series

import (
	"bufio"
	"io"
	"strconv"
	"time"
)

// Table is a series of which every row is kept: one from which others are computed, so that none may be missing.
type Table struct {
	recording *Recording
	path      string
	columns   []Column
	rows      []tableRow
}

// Column of a table, besides t_s and connection. Its values are integers.
type Column struct {
	Name string
	Time bool // the values are ns, and written as seconds
}

type tableRow struct {
	connection int
	at         time.Duration
	values     [maxValues]int64
}

// BeginTable is Begin for a table.
func (r *Recording) BeginTable(path string, columns ...Column) *Table {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := &Table{recording: r, path: path, columns: columns}
	r.files = append(r.files, t)
	return t
}

// Add adds a row with the present time, one value for each column. The connection is a number that Open returned.
func (t *Table) Add(connection int, values ...int64) {
	t.recording.mu.Lock()
	defer t.recording.mu.Unlock()
	row := tableRow{connection: connection, at: time.Since(t.recording.begun)}
	copy(row.values[:], values)
	t.rows = append(t.rows, row)
}

func (t *Table) place() string { return t.path }

func (t *Table) writeTo(w io.Writer) error {
	out := bufio.NewWriterSize(w, 1<<16)
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = c.Name
	}
	writeHeader(out, names) // Flush has its error, and those below
	var line []byte
	for _, row := range t.rows {
		line = appendStart(line[:0], row.at, row.connection)
		for i, c := range t.columns {
			line = append(line, ',')
			if c.Time {
				line = appendSeconds(line, row.values[i])
			} else {
				line = strconv.AppendInt(line, row.values[i], 10)
			}
		}
		out.Write(append(line, '\n'))
	}
	return out.Flush()
}

// appendSeconds appends ns that are not negative as seconds, without a loss.
func appendSeconds(b []byte, ns int64) []byte {
	b = strconv.AppendInt(b, ns/1e9, 10)
	b = append(b, '.')
	fraction := strconv.AppendInt(nil, 1e9+ns%1e9, 10)
	return append(b, fraction[1:]...)
}
