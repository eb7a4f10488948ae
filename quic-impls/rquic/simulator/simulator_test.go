// Command simulator carries out trials in virtual time: it reads tasks from its standard input, and writes answers to
// its standard output (quic-impls/README.md). It is built by `go test -c`, since a bubble of virtual time and seeded
// cryptography are only given to tests. With --sources alone, it tells what it was built from.
package simulator

import (
	"fmt"
	"os"
	"testing"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/contract"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/simulation"
)

var answers = os.Stdout

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == contract.TellSources {
		fmt.Println(contract.Sources)
		return
	}
	os.Stdout = os.Stderr // what the testing package says is no answer
	os.Exit(m.Run())
}

func TestSimulate(t *testing.T) {
	if err := simulation.New().Serve(t, os.Stdin, answers); err != nil {
		t.Fatal(err)
	}
}
