// Command rquic is an endpoint of fecbench: QUIC with rQUIC's forward erasure correction, over hq-interop or
// HTTP/3. Its one argument is the path of the JSON file that says what to do; quic-impls/README.md has the contract.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/contract"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/endpoint"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("rquic: ")
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(arguments []string, stdout, stderr io.Writer) int {
	if len(arguments) != 1 {
		fmt.Fprintln(stderr, "usage: rquic ASSIGNMENT.json")
		return contract.ExitBadInput
	}
	assignment, err := contract.Read(arguments[0])
	if err != nil {
		fmt.Fprintf(stderr, "rquic: %v\n", err)
		if errors.As(err, &contract.Unsupported{}) {
			return contract.ExitUnsupported
		}
		return contract.ExitBadInput
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := endpoint.Run(ctx, assignment, stdout); err != nil {
		fmt.Fprintf(stderr, "rquic: %s: %v\n", assignment.Role, err)
		return contract.ExitFailure
	}
	return contract.ExitSuccess
}
