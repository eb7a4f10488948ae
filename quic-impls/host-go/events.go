package host

import (
	"encoding/json"
	"errors"
	"io"
)

// Exit codes.
const (
	ExitSuccess     = 0
	ExitFailure     = 1
	ExitBadInput    = 2
	ExitUnsupported = 127 // the convention of the QUIC interop runner
)

// Unsupported means that this implementation, or this machine, does not have something in the assignment.
type Unsupported struct{ What string }

func (u Unsupported) Error() string { return u.What + " is not supported" }

// CodeOfInput is the exit code of an endpoint whose assignment is refused with an error.
func CodeOfInput(err error) int { return code(err, ExitBadInput) }

// CodeOfFailure returns the exit code for a failure with an error.
func CodeOfFailure(err error) int { return code(err, ExitFailure) }

func code(err error, otherwise int) int {
	if errors.As(err, &Unsupported{}) {
		return ExitUnsupported
	}
	return otherwise
}

// Ready writes the message of a server that listens.
func Ready(out io.Writer) error { return json.NewEncoder(out).Encode(map[string]any{"event": "ready"}) }

// Done writes the last message of an endpoint.
func Done(out io.Writer, metrics map[string]float64) error {
	return json.NewEncoder(out).Encode(map[string]any{"event": "done", "metrics": metrics})
}
