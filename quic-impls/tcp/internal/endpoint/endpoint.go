// Package endpoint runs one end of a transfer over TLS 1.3 and the kernel's TCP: a client that downloads or uploads one
// content over one connection, or a server that serves them.
//
// The protocol is that of hq-interop without QUIC: "GET /SIZE\r\n" or "PUT /SIZE\r\n" and the content, and the answer, the
// content or its SHA-256 in hexadecimal. The client closes the connection when it has the answer. There is no session ticket
// and no early data, so a handshake takes one round trip for TCP and one for TLS.
package endpoint

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	host "github.com/fecbench/fecbench/quic-impls/host-go"
	"github.com/fecbench/fecbench/quic-impls/tcp/internal/contract"
	"github.com/fecbench/fecbench/quic-impls/tcp/internal/kernel"
)

const protocol = "http/0.9" // ALPN

// endpoint is the common part of client and server.
type endpoint struct {
	assignment contract.Assignment
	tls        *tls.Config
	window     *window // nil when nobody wants the series
}

// Run does what an assignment says, and writes the contract's events. A server serves until ctx ends; a client fails when it
// ends.
func Run(ctx context.Context, assignment contract.Assignment, out io.Writer) error {
	e := &endpoint{assignment: assignment}
	keyLog, err := openKeyLog()
	if err != nil {
		return err
	}
	defer keyLog.Close()
	if e.tls, err = tlsConfig(assignment); err != nil {
		return err
	}
	if keyLog != nil {
		e.tls.KeyLogWriter = keyLog
	}
	run := e.fetch
	if assignment.Role == "server" {
		run = e.serve
	}
	if !assignment.WantsWindow {
		return run(ctx, out)
	}
	e.window = newWindow()
	return cmp.Or(run(ctx, out), e.window.write(assignment.LogFolder))
}

// openKeyLog is nil when nobody wants TLS secrets.
func openKeyLog() (*os.File, error) {
	path := os.Getenv("SSLKEYLOGFILE")
	if path == "" {
		return nil, nil
	}
	// For appending, since both ends may share it.
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("SSLKEYLOGFILE: %w", err)
	}
	return file, nil
}

func tlsConfig(assignment contract.Assignment) (*tls.Config, error) {
	config := &tls.Config{
		MinVersion:                  tls.VersionTLS13,
		NextProtos:                  []string{protocol},
		SessionTicketsDisabled:      true,
		DynamicRecordSizingDisabled: true,
	}
	if assignment.Role == "server" {
		certificate, err := tls.LoadX509KeyPair(assignment.Certificate, assignment.PrivateKey)
		if err != nil {
			return nil, fmt.Errorf("certificate and private_key: %w", err)
		}
		config.Certificates = []tls.Certificate{certificate}
		return config, nil
	}
	authority, err := os.ReadFile(assignment.Authority)
	if err != nil {
		return nil, fmt.Errorf("authority: %w", err)
	}
	config.RootCAs, config.ServerName = x509.NewCertPool(), assignment.ServerName
	if !config.RootCAs.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("authority: no certificate in %s", assignment.Authority)
	}
	return config, nil
}

func (e *endpoint) isMultipath() bool { return e.assignment.Options.Paths > 1 }

// prepare is called with a socket that is not yet connected or does not yet listen.
func (e *endpoint) prepare(_, _ string, socket syscall.RawConn) error {
	name := e.assignment.Options.CongestionControl
	err := kernel.SetCongestionControl(socket, name)
	if errors.Is(err, syscall.ENOENT) {
		return host.Unsupported{What: fmt.Sprintf("congestion_control = %q: this kernel has none of that name, so it", name)}
	}
	return err
}

// checkConnection refuses a connection that is not what was asked for.
func (e *endpoint) checkConnection(connection *net.TCPConn) error {
	asked := e.assignment.Options
	name, err := kernel.CongestionControl(connection)
	if err != nil {
		return err
	}
	if name != asked.CongestionControl {
		return host.Unsupported{What: fmt.Sprintf(
			"congestion_control = %q: the connection got %s, and without rights this kernel allows %s, so it",
			asked.CongestionControl, name, kernel.Allowed())}
	}
	if has, err := kernel.HasECN(connection); err != nil {
		return err
	} else if asked.ECN && !has {
		return host.Unsupported{What: "ecn = true: the connection has none (sysctl net.ipv4.tcp_ecn is not 1 at both ends), so it"}
	}
	isMultipath, err := connection.MultipathTCP()
	if err == nil && e.isMultipath() && !isMultipath {
		return host.Unsupported{What: fmt.Sprintf("paths = %d: the connection is not Multipath TCP, so it", asked.Paths)}
	}
	return err
}
