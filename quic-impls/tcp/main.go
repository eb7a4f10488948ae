// Command tcp is an endpoint of fecbench: TLS 1.3 over the kernel's TCP, or over Multipath TCP. Its one argument is the
// path of the JSON file that says what to do; with --check, it tells whether it would take these options.
// quic-impls/README.md has the contract.
package main

import (
	host "github.com/fecbench/fecbench/quic-impls/host-go"
	"github.com/fecbench/fecbench/quic-impls/tcp/internal/contract"
	"github.com/fecbench/fecbench/quic-impls/tcp/internal/endpoint"
)

func main() {
	host.Program[contract.Assignment]{
		Name: "tcp", CheckOptions: contract.CheckOptions, Parse: contract.Parse, Run: endpoint.Run,
	}.Main()
}
