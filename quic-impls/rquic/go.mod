module github.com/fecbench/fecbench/quic-impls/rquic

go 1.26.0

require (
	github.com/fecbench/fecbench/quic-impls/host-go v0.0.0
	github.com/klauspost/reedsolomon v1.14.2
	github.com/quic-go/quic-go v0.65.0
	golang.org/x/sys v0.47.0
)

require (
	github.com/klauspost/cpuid/v2 v2.3.0 // indirect
	github.com/quic-go/qpack v0.6.0 // indirect
	golang.org/x/crypto v0.54.0 // indirect
	golang.org/x/net v0.56.0 // indirect
	golang.org/x/text v0.40.0 // indirect
)

// Made by quic-go.sh of the version above, of which go.sum keeps the hash.
replace github.com/quic-go/quic-go => ./build/quic-go

replace github.com/fecbench/fecbench/quic-impls/host-go => ../host-go
