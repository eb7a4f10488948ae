// Command tcp is an endpoint of fecbench: TLS 1.3 over the kernel's TCP, or over Multipath TCP. Its one argument is the
// path of the JSON file that says what to do; with --check, it tells whether it would take these options.
// quic-impls/README.md has the contract.
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
	"github.com/fecbench/fecbench/quic-impls/tcp/internal/contract"
	"github.com/fecbench/fecbench/quic-impls/tcp/internal/endpoint"
)

func main() {
	log.SetFlags(0)
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(arguments []string, stdout, stderr io.Writer) int {
	if len(arguments) == 2 && arguments[0] == "--check" {
		return told(contract.CheckOptions([]byte(arguments[1])), stderr)
	}
	if len(arguments) != 1 {
		fmt.Fprintln(stderr, "usage: tcp ASSIGNMENT.json | --check OPTIONS")
		return host.ExitBadInput
	}
	assignment, err := host.Read(arguments[0], contract.Parse)
	if err != nil {
		return told(err, stderr)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := endpoint.Run(ctx, assignment, stdout); err != nil {
		fmt.Fprintf(stderr, "tcp: %s: %v\n", assignment.Role, err)
		return host.CodeOfFailure(err)
	}
	return host.ExitSuccess
}

// told is the exit code for what was asked for, after one line that says what is wrong with it.
func told(err error, stderr io.Writer) int {
	if err == nil {
		return host.ExitSuccess
	}
	fmt.Fprintf(stderr, "tcp: %v\n", err)
	return host.CodeOfInput(err)
}
