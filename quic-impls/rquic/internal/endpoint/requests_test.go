package endpoint

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/quic-go/quic-go"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/lossylink"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/socket"
)

func TestBadRequestsAreRefusedAndTheServerGoesOn(t *testing.T) {
	certificate, key := certificates(t)
	synctest.Test(t, func(t *testing.T) {
		clientEnd, serverEnd := lossylink.New(wifi(lossylink.Nothing), wifi(lossylink.Nothing))
		server, client := transfer{workload: download(5), options: fecOptions}.assignments(certificate, key, serverEnd)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- runOver(ctx, &socket.Socket{PacketConn: serverEnd}, server, io.Discard) }()
		synctest.Wait()

		e := newEndpoint(&socket.Socket{PacketConn: clientEnd}, client, func(error) {})
		tlsConfig, err := e.clientTLS()
		if err != nil {
			t.Fatal(err)
		}
		connection, err := e.transport.Dial(ctx, e.remote(), tlsConfig, e.quicConfig())
		if err != nil {
			t.Fatal(err)
		}
		ask := func(request string) (answer string, err error) {
			stream, err := hq{connection}.request(ctx, request, nil)
			if err != nil {
				return "", err
			}
			all, err := io.ReadAll(stream)
			return string(all), err
		}
		for _, bad := range []string{
			"", "\r\n", "GET /x\r\n", "GET 5\r\n", "GET /-5\r\n", "POST /5\r\n", "GET /5", "PUT /5\r\nfour", "PUT /5\r\nsixsix",
			strings.Repeat("GET", 100) + "\r\n", "GET /99999999999999999999\r\n",
		} {
			refusal := (*quic.StreamError)(nil)
			if answer, err := ask(bad); !errors.As(err, &refusal) || !refusal.Remote || answer != "" {
				t.Errorf("%q was answered with %q, %v", bad, answer, err)
			}
		}
		if answer, err := ask("GET /5\r\n"); len(answer) != 5 || err != nil {
			t.Errorf("a good request was answered with %q, %v", answer, err)
		}
		connection.CloseWithError(0, "")
		e.transport.Close()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestBadHTTP3RequestsGetAStatus(t *testing.T) {
	for _, bad := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/", "", http.StatusBadRequest},
		{"GET", "/x", "", http.StatusBadRequest},
		{"DELETE", "/5", "", http.StatusMethodNotAllowed},
		{"PUT", "/5", "four", http.StatusBadRequest},
		{"PUT", "/5", "sixsix", http.StatusBadRequest},
		{"PUT", "/4", "four", http.StatusOK},
	} {
		answer := httptest.NewRecorder()
		answerHTTP3(answer, httptest.NewRequest(bad.method, bad.path, strings.NewReader(bad.body)), 7)
		if answer.Code != bad.status {
			t.Errorf("%s %s got %d, right is %d", bad.method, bad.path, answer.Code, bad.status)
		}
	}
}
