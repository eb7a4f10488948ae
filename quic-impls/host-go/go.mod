module github.com/fecbench/fecbench/quic-impls/host-go

go 1.26.0
