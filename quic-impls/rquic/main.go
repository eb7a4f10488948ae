// Command rquic is an endpoint of fecbench: QUIC with rQUIC's forward erasure correction, over hq-interop or
// HTTP/3. Its one argument is the path of the JSON file that says what to do; with --check, it tells whether it would
// take these options, and with --sources what it was built from. quic-impls/README.md has the contract.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	host "github.com/fecbench/fecbench/quic-impls/host-go"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/contract"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/endpoint"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("rquic: ")
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(arguments []string, stdout, stderr io.Writer) int {
	if len(arguments) == 2 && arguments[0] == "--check" {
		return told(contract.CheckOptions([]byte(arguments[1])), stderr)
	}
	if len(arguments) == 1 && arguments[0] == contract.TellSources {
		fmt.Fprintln(stdout, contract.Sources)
		return host.ExitSuccess
	}
	if len(arguments) != 1 {
		fmt.Fprintln(stderr, "usage: rquic ASSIGNMENT.json | --check OPTIONS | --sources")
		return host.ExitBadInput
	}
	assignment, err := host.Read(arguments[0], contract.Parse)
	if err != nil {
		return told(err, stderr)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := endpoint.Run(ctx, assignment, stdout); err != nil {
		fmt.Fprintf(stderr, "rquic: %s: %v\n", assignment.Role, err)
		return host.ExitFailure
	}
	return host.ExitSuccess
}

// told is the exit code for what was asked for, after one line that says what is wrong with it.
func told(err error, stderr io.Writer) int {
	if err == nil {
		return host.ExitSuccess
	}
	fmt.Fprintf(stderr, "rquic: %v\n", err)
	return host.CodeOfInput(err)
}
