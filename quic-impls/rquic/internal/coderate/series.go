package coderate

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"sync"
	"time"
)

// Series is a CSV file with the code rate of connections over time: a row when a connection is opened, and one
// at the end of each period of its rate.
type Series struct {
	mu          sync.Mutex
	start       time.Time
	file        io.WriteCloser
	out         *bufio.Writer
	connections int
	err         error // the first one
}

const columns = "time_s,connection,q,residual_loss,delivered,lost,window_packets,smoothed_rtt_ms\n"

// Create begins a file.
func Create(path string, start time.Time) (*Series, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("time series of the code rate: %w", err)
	}
	s := &Series{start: start, file: file, out: bufio.NewWriter(file)}
	_, s.err = s.out.WriteString(columns)
	return s, nil
}

// Open gives a new connection its number, counted from 0.
func (s *Series) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connections++
	return s.connections - 1
}

// Add writes a row. What was not measured is left empty.
func (s *Series) Add(connection int, sample Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	loss := ""
	if !math.IsNaN(sample.ResidualLoss) {
		loss = strconv.FormatFloat(sample.ResidualLoss, 'g', 6, 64)
	}
	_, s.err = fmt.Fprintf(s.out, "%.6f,%d,%.6g,%s,%d,%d,%d,%.3f\n", sample.Time.Sub(s.start).Seconds(), connection, sample.Q,
		loss, sample.Delivered, sample.Lost, sample.WindowPackets, sample.SmoothedRTT.Seconds()*1000)
}

// Close completes the file. Its error is the first of all.
func (s *Series) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = s.out.Flush()
	}
	if err := s.file.Close(); s.err == nil {
		s.err = err
	}
	if s.err != nil {
		return fmt.Errorf("time series of the code rate: %w", s.err)
	}
	return nil
}
