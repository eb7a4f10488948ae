package host

import (
	"context"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// assigned is an Assignment, or what embeds one.
type assigned interface{ role() string }

func (a Assignment) role() string { return a.Role }

// Program is the command of an implementation, whose assignments are of type A.
type Program[A assigned] struct {
	Name         string
	CheckOptions func(options []byte) error
	Parse        func(text []byte) (A, error)
	// Run carries an assignment out, and writes its events to out.
	Run func(ctx context.Context, assignment A, out io.Writer) error
	// More are further arguments, each with the line that answers it.
	More map[string]string
}

// Main runs the program and ends the process.
func (p Program[A]) Main() {
	log.SetFlags(0)
	log.SetPrefix(p.Name + ": ")
	os.Exit(p.run(os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit code.
func (p Program[A]) run(arguments []string, stdout, stderr io.Writer) int {
	if len(arguments) == 2 && arguments[0] == "--check" {
		return p.input(p.CheckOptions([]byte(arguments[1])), stderr)
	}
	if len(arguments) != 1 {
		usage := append([]string{"ASSIGNMENT.json", "--check OPTIONS"}, slices.Sorted(maps.Keys(p.More))...)
		fmt.Fprintf(stderr, "usage: %s %s\n", p.Name, strings.Join(usage, " | "))
		return ExitBadInput
	}
	if line, is := p.More[arguments[0]]; is {
		fmt.Fprintln(stdout, line)
		return ExitSuccess
	}
	assignment, err := Read(arguments[0], p.Parse)
	if err != nil {
		return p.input(err, stderr)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := p.Run(ctx, assignment, stdout); err != nil {
		fmt.Fprintf(stderr, "%s: %s: %v\n", p.Name, assignment.role(), err)
		return CodeOfFailure(err)
	}
	return ExitSuccess
}

// input returns the exit code for an input, after one line that names what is wrong with it.
func (p Program[A]) input(err error, stderr io.Writer) int {
	if err == nil {
		return ExitSuccess
	}
	fmt.Fprintf(stderr, "%s: %v\n", p.Name, err)
	return CodeOfInput(err)
}
