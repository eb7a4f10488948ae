module github.com/fecbench/fecbench/quic-impls/tcp

go 1.26.0

require github.com/fecbench/fecbench/quic-impls/host-go v0.0.0

replace github.com/fecbench/fecbench/quic-impls/host-go => ../host-go
