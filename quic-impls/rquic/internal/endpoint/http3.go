package endpoint

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/fecbench/fecbench/quic-impls/host-go/content"
)

// http3Exchange is hq over HTTP/3: GET and PUT of /SIZE.
type http3Exchange struct {
	connection *http3.ClientConn
	authority  string
}

func newHTTP3(connection *quic.Conn, serverName string) http3Exchange {
	transport := &http3.Transport{DisableCompression: true}
	return http3Exchange{transport.NewClientConn(connection), serverName}
}

func (x http3Exchange) download(ctx context.Context, size int64, w io.Writer) error {
	body, err := x.request(ctx, http.MethodGet, size, nil)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, body)
	return err
}

func (x http3Exchange) upload(ctx context.Context, size int64, body io.Reader) (string, error) {
	answer, err := x.request(ctx, http.MethodPut, size, body)
	if err != nil {
		return "", err
	}
	hash, err := io.ReadAll(io.LimitReader(answer, 2*sha256.Size+1))
	return string(hash), err
}

func (x http3Exchange) request(ctx context.Context, method string, size int64, body io.Reader) (io.Reader, error) {
	url := fmt.Sprintf("https://%s/%d", x.authority, size)
	request, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.ContentLength = size
	}
	response, err := x.connection.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answered %s %s with status %d", method, url, response.StatusCode)
	}
	return response.Body, nil
}

// serveHTTP3 answers the requests of a connection until it ends.
func serveHTTP3(connection *quic.Conn, seed uint64) {
	handler := func(w http.ResponseWriter, r *http.Request) { answerHTTP3(w, r, seed) }
	server := &http3.Server{Handler: http.HandlerFunc(handler)}
	server.ServeQUICConn(connection) // the connection's own context has the reason of its end
}

func answerHTTP3(w http.ResponseWriter, r *http.Request, seed uint64) {
	size, err := parseSize(r.URL.Path)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch r.Method {
	case http.MethodGet:
		w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
		content.NewReader(seed, size).WriteTo(w) // a client that goes away shows in the connection
	case http.MethodPut:
		hash, err := hashBody(r.Body, size)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		io.WriteString(w, hash)
	default:
		http.Error(w, "only GET and PUT are served", http.StatusMethodNotAllowed)
	}
}
