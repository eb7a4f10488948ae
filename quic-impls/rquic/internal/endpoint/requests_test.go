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
	"time"

	"github.com/quic-go/quic-go"

	"github.com/fecbench/fecbench/quic-impls/host-go/content"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/contract"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/lossylink"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/socket"
)

func TestBadRequestsAreRefusedAndTheServerGoesOn(t *testing.T) {
	certificate, key := certificates(t)
	synctest.Test(t, func(t *testing.T) {
		clientEnd, serverEnd := ends(t, wifi(lossylink.Nothing), wifi(lossylink.Nothing))
		server, client := transfer{workload: download(5), options: fecOptions}.assignments(certificate, key, serverEnd)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- run(ctx, serverEnd, server, io.Discard) }()
		time.Sleep(time.Nanosecond) // the server listens

		surroundings, err := readSurroundings(client)
		if err != nil {
			t.Fatal(err)
		}
		e := newEndpoint(&socket.Socket{PacketConn: clientEnd}, client, surroundings, func(error) {})
		connection, err := e.dial(ctx)
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

// wrong is a server that answers with whatever.
type wrong string

func (x wrong) download(_ context.Context, _ int64, w io.Writer) error {
	_, err := io.WriteString(w, string(x))
	return err
}

func (x wrong) upload(context.Context, int64, io.Reader) (string, error) { return string(x), nil }

func TestContentThatIsNotRightIsRefused(t *testing.T) {
	of, _ := io.ReadAll(content.NewReader(0, 5))
	right := wrong(of)
	for workload, answers := range map[string]map[wrong]string{
		"download": {right[:4]: "sent 4 bytes", right + "x": "more than the 5 bytes", right[:4] + "x": "byte 4 is not", "": "sent 0 bytes"},
		"upload":   {"00ff": "SHA-256", "": "SHA-256"},
	} {
		for answer, reason := range answers {
			e := endpoint{assignment: contract.Assignment{Workload: contract.Workload{Name: workload, Size: 5}}}
			err := e.transfer(t.Context(), answer, "of other content")
			if err == nil || !strings.Contains(err.Error(), reason) {
				t.Errorf("%s answered with %q: %v", workload, answer, err)
			}
		}
	}
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
