package endpoint

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/contract"
)

// Credentials are the contents of an assignment's files.
type Credentials struct {
	Certificate tls.Certificate // of a server
	Authority   *x509.CertPool  // that a client trusts
}

// ReadCredentials reads the files that an assignment's role needs.
func ReadCredentials(assignment contract.Assignment) (c Credentials, err error) {
	if assignment.Role == "server" {
		if c.Certificate, err = tls.LoadX509KeyPair(assignment.Certificate, assignment.PrivateKey); err != nil {
			return c, fmt.Errorf("certificate and private_key: %w", err)
		}
		return c, nil
	}
	authority, err := os.ReadFile(assignment.Authority)
	if err != nil {
		return c, fmt.Errorf("authority: %w", err)
	}
	c.Authority = x509.NewCertPool()
	if !c.Authority.AppendCertsFromPEM(authority) {
		return c, fmt.Errorf("authority: no certificate in %s", assignment.Authority)
	}
	return c, nil
}
