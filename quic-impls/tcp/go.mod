module github.com/fecbench/fecbench/quic-impls/tcp

go 1.26.0
