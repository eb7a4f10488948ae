package endpoint

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlogwriter"

	host "github.com/fecbench/fecbench/quic-impls/host-go"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/contract"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/lane"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/lossylink"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/socket"
)

// transfer is a run of a client and a server over a link.
type transfer struct {
	workload contract.Workload
	options  contract.Options
	up, down lossylink.Settings
	deadline time.Duration
	series   contract.Series // of both ends
	// hostile is called with the ends of the link before the transfer.
	hostile func(client, server *lossylink.End)
	// heard takes what QUIC at the server tells of a connection; nil when nobody listens.
	heard func(qlogwriter.Event)
}

type outcome struct {
	client, server       map[string]float64
	clientErr, serverErr error
	logs                 string // folder with those of both
}

var fecOptions = contract.Options{
	Scheme: "xor", Flush: "stream_end", BTO: 25 * time.Millisecond, HTTP: "hq", PacketSize: 1252,
	Recovery: "current",
	Rate: contract.Rate{
		Preset: "constant", CodeRate: 0.9, GenerationMax: 63, Redundancies: 1, Overlap: 1,
		Periods: 3, Gamma: 0.01, Delta: 0.33,
	},
}

func withScheme(options contract.Options, scheme string) contract.Options {
	options.Scheme = scheme
	return options
}

func link(mbps float64, delay time.Duration, drops lossylink.Drops) lossylink.Settings {
	bandwidthDelay := mbps * 1e6 / 8 * 2 * delay.Seconds()
	return lossylink.Rate(mbps, delay, max(uint64(math.Round(1.5*bandwidthDelay)), 10*1514), drops)
}

func (x transfer) assignments(certificate, key string, serverEnd *lossylink.End) (server, client contract.Assignment) {
	server = contract.Assignment{
		Assignment: host.Assignment{
			Role: "server", Address: serverEnd.LocalAddr().(*net.UDPAddr).AddrPort(), ServerName: "server.fecbench", ContentSeed: 7,
			Certificate: certificate, PrivateKey: key, Authority: certificate, Deadline: x.deadline,
			LogFolder: filepath.Join(filepath.Dir(certificate), "server"),
		},
		Workload: x.workload, Options: x.options, Series: x.series,
	}
	if x.deadline == 0 {
		server.Deadline = time.Hour
	}
	client = server
	client.Role, client.LogFolder = "client", filepath.Join(filepath.Dir(certificate), "client")
	return server, client
}

// run runs a transfer in virtual time.
func (x transfer) run(t *testing.T) (o outcome) {
	t.Helper()
	certificate, key := certificates(t)
	synctest.Test(t, func(t *testing.T) {
		clientEnd, serverEnd := ends(t, x.up, x.down)
		if x.hostile != nil {
			x.hostile(clientEnd, serverEnd)
		}
		server, client := x.assignments(certificate, key, serverEnd)
		o.logs = filepath.Dir(certificate)
		ctx, stop := context.WithCancel(t.Context())
		var serving sync.WaitGroup
		var serverOut, clientOut bytes.Buffer
		serving.Go(func() {
			o.serverErr = runTelling(ctx, serverEnd, server, &serverOut, x.heard)
		})
		time.Sleep(time.Nanosecond) // the server listens
		o.clientErr = run(ctx, clientEnd, client, &clientOut)
		time.Sleep(10 * time.Second) // the client's last packets arrive
		stop()
		serving.Wait()
		o.client, o.server = metricsOf(t, clientOut.Bytes()), metricsOf(t, serverOut.Bytes())
	})
	return o
}

// ends returns the ends of a link that carries datagrams until the test ends.
func ends(t *testing.T, up, down lossylink.Settings) (client, server *lossylink.End) {
	t.Helper()
	link, err := lossylink.New(up, down, lane.New(), lane.New())
	if err != nil {
		t.Fatal(err)
	}
	client, server = link.Connect(
		&net.UDPAddr{IP: net.IPv4(10, 0, 1, 2).To4(), Port: 50000}, &net.UDPAddr{IP: net.IPv4(10, 0, 2, 2).To4(), Port: 4433},
		0,
	)
	go link.Run(t.Context())
	return client, server
}

// run runs an endpoint at an end of a link.
func run(ctx context.Context, end *lossylink.End, assignment contract.Assignment, out io.Writer) error {
	return runTelling(ctx, end, assignment, out, nil)
}

// runTelling is run, of which somebody hears the events of QUIC.
func runTelling(
	ctx context.Context, end *lossylink.End, assignment contract.Assignment, out io.Writer, heard func(qlogwriter.Event),
) error {
	surroundings, err := readSurroundings(assignment)
	if err != nil {
		return err
	}
	if heard != nil {
		surroundings.Qlog = func(context.Context, bool, quic.ConnectionID) qlogwriter.Trace { return listening(heard) }
	}
	recording, err := RunOver(ctx, &socket.Socket{PacketConn: end}, assignment, surroundings, out)
	return cmp.Or(err, recording.Write())
}

// listening is a trace of which somebody hears the events.
type listening func(qlogwriter.Event)

func (l listening) AddProducer() qlogwriter.Recorder   { return l }
func (l listening) RecordEvent(event qlogwriter.Event) { l(event) }
func (l listening) Close() error                       { return nil }

func readSurroundings(assignment contract.Assignment) (Surroundings, error) {
	credentials, err := ReadCredentials(assignment)
	begun := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of a bubble's time
	return Surroundings{Credentials: credentials, Log: log.Default(), Clock: func() time.Duration { return time.Since(begun) }}, err
}

// succeed runs a transfer that has to end well; the client verifies the content.
func (x transfer) succeed(t *testing.T) outcome {
	t.Helper()
	o := x.run(t)
	if err := errors.Join(o.clientErr, o.serverErr); err != nil {
		t.Fatal(err)
	}
	return o
}

// metricsOf reads the last of an endpoint's events.
func metricsOf(t *testing.T, out []byte) map[string]float64 {
	var event struct {
		Event   string
		Metrics map[string]float64
	}
	decoder := json.NewDecoder(bytes.NewReader(out))
	for decoder.More() {
		if err := decoder.Decode(&event); err != nil {
			t.Fatalf("%v in %q", err, out)
		}
	}
	return event.Metrics
}

// certificates makes, once, a certificate that is its own authority, valid in the year in which virtual time begins;
// in the same folder, one for the logs of each end.
func certificates(t *testing.T) (certificate, key string) {
	t.Helper()
	folder := t.TempDir()
	for _, role := range []string{"client", "server"} {
		if err := os.Mkdir(filepath.Join(folder, role), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "server.fecbench"},
		DNSNames: []string{"server.fecbench"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key = filepath.Join(folder, "certificate.pem"), filepath.Join(folder, "key.pem")
	for path, block := range map[string]*pem.Block{
		certificate: {Type: "CERTIFICATE", Bytes: signed}, key: {Type: "PRIVATE KEY", Bytes: encoded},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certificate, key
}
