package simulation

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// harness is at the other end of our input and output.
type harness struct {
	in    *bufio.Reader
	out   io.Writer
	ahead [][]byte // tasks that came before the reply that was waited for
}

// question is a simulator's question during a trial: the lines for its client, at first or after this message of it.
type question struct {
	Number  int64             `json:"number"`
	Objects []json.RawMessage `json:"objects"`
	NowS    float64           `json:"now_s"`
}

// reply is the lines for the client from then on, with their times in ns of the trial: a text, or null, the end.
type reply struct {
	Number int64   `json:"number"`
	Lines  []timed `json:"lines"`
}

type timed struct {
	at   time.Duration
	text *string
}

func (l *timed) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&l.at, &l.text})
}

// nextTask is the line of a task, with io.EOF behind the last one.
func (h *harness) nextTask() ([]byte, error) {
	if len(h.ahead) > 0 {
		line := h.ahead[0]
		h.ahead = h.ahead[1:]
		return line, nil
	}
	return h.in.ReadBytes('\n')
}

func (h *harness) write(line []byte) error {
	_, err := h.out.Write(append(line, '\n'))
	return err
}

// ask puts a question, and waits for the reply.
func (h *harness) ask(q question) (reply, error) {
	if err := h.write(encoded(q)); err != nil {
		return reply{}, fmt.Errorf("no question can be asked: %w", err)
	}
	for {
		line, err := h.in.ReadBytes('\n')
		if err != nil {
			return reply{}, fmt.Errorf("no reply: %w", err)
		}
		var told reply
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.DisallowUnknownFields()
		if decoder.Decode(&told) == nil && told.Lines != nil {
			if told.Number != q.Number {
				return told, fmt.Errorf("the reply is to task %d", told.Number)
			}
			return told, nil
		}
		h.ahead = append(h.ahead, line) // a task: it is told what is wrong with it in its turn
	}
}

// converse asks what the measured client is to read, when it has something to say. Nothing else in the trial can run meanwhile.
func (x *trial) converse(h *harness) error {
	p := x.foreground.client
	for p.started() && !p.hasEnded() && (p.asks || len(p.said) > 0) {
		q := question{Number: x.task.Number, Objects: []json.RawMessage{}, NowS: time.Since(x.begun).Seconds()}
		if p.asks {
			p.asks = false
		} else {
			q.Objects, p.said = p.said[:1:1], p.said[1:]
		}
		if h == nil {
			return errors.New("nobody says what is to be asked for")
		}
		told, err := h.ask(q)
		if err != nil {
			return err
		}
		p.read(told.Lines, time.Since(x.begun))
	}
	return nil
}

// read has it read these lines, in the place of what it has not read yet.
func (p *process) read(lines []timed, now time.Duration) {
	for _, timer := range p.due {
		timer.Stop()
	}
	p.due = nil
	for _, line := range lines {
		p.due = append(p.due, time.AfterFunc(line.at-now, func() {
			if line.text == nil {
				close(p.lines)
			} else {
				select {
				case p.lines <- *line.text:
				case <-p.ended:
				}
			}
		}))
	}
}
