// Package simulation carries out trials in virtual time: client and server run in a bubble of testing/synctest, over lanes,
// with all randomness from the task's seed. quic-impls/README.md describes its input and its answers.
//
// The same task has the same answer, byte for byte. That needs, besides the seed, one processor (GOMAXPROCS), no collection
// of garbage while goroutines can run, and keys whose signatures are all of one length.
package simulation

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/lane"
)

// Simulator carries out one trial after another.
type Simulator struct {
	up, down *lane.Lane
	wallet   wallet
	memory   *memory
	harness  *harness // nil: nobody tells clients in the course of a trial what to ask for
}

// New takes the whole process for simulating: one processor, and garbage that is collected at our times.
func New() *Simulator {
	runtime.GOMAXPROCS(1)
	return &Simulator{up: lane.New(), down: lane.New(), wallet: wallet{}, memory: newMemory()}
}

// Serve reads tasks, a line each, and answers each with a line, until the input ends.
func (s *Simulator) Serve(t *testing.T, in io.Reader, out io.Writer) error {
	refusal := requireOrder(t)
	s.harness = &harness{in: bufio.NewReaderSize(in, 1<<20), out: out}
	for {
		line, err := s.harness.nextTask()
		if len(line) > 0 {
			answer := s.Answer
			if refusal != nil {
				answer = refuseAll(refusal)
			}
			if err := s.harness.write(answer(t, line)); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Answer carries out a task, and returns the answer without the end of its line.
func (s *Simulator) Answer(t *testing.T, line []byte) []byte {
	task, err := parse(line)
	var answer Answer
	if err == nil {
		// A test of its own: what it sets is restored at its end.
		t.Run("trial", func(t *testing.T) {
			err = s.memory.undisturbed(func() (err error) {
				defer func() {
					if problem := recover(); problem != nil {
						err = fmt.Errorf("panic: %v", problem)
					}
				}()
				answer, err = s.carryOut(t, task)
				return err
			})
		})
	}
	switch {
	case errors.Is(err, errCollected):
		return encoded(Disturbance{task.Number, errCollected.Error()})
	case err != nil:
		return refused(task, err)
	}
	return encoded(answer)
}

// refuseAll answers every task with an error.
func refuseAll(refusal error) func(*testing.T, []byte) []byte {
	return func(_ *testing.T, line []byte) []byte {
		task, err := parse(line)
		return refused(task, cmp.Or(err, refusal))
	}
}

func refused(task *Task, err error) []byte {
	return encoded(Refusal{task.Number, strings.Join(strings.Fields(err.Error()), " ")})
}

func encoded(answer any) []byte {
	text, err := json.Marshal(answer)
	if err != nil {
		panic(err) // metrics are numbers, since endpoints have written them
	}
	return text
}
