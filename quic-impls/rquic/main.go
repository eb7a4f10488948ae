// Command rquic is an endpoint of fecbench: QUIC with rQUIC's forward erasure correction, over hq-interop or
// HTTP/3. Its one argument is the path of the JSON file that says what to do; with --check, it tells whether it would
// take these options, and with --sources what it was built from. quic-impls/README.md has the contract.
package main

import (
	host "github.com/fecbench/fecbench/quic-impls/host-go"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/contract"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/endpoint"
)

func main() {
	host.Program[contract.Assignment]{
		Name: "rquic", CheckOptions: contract.CheckOptions, Parse: contract.Parse, Run: endpoint.Run,
		More: map[string]string{contract.TellSources: contract.Sources},
	}.Main()
}
