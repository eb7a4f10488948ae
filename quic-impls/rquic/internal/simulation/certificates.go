package simulation

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"time"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/contract"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/endpoint"
)

// wallet keeps what was read from files as long as they stay as they are.
type wallet map[string]kept

type kept struct {
	changed     time.Time // the latest of the files
	credentials endpoint.Credentials
	refusal     error
}

// notEd25519 is the refusal of a key with which no trial would be like another.
type notEd25519 struct{ what, path, is string }

func (e notEd25519) Error() string {
	return fmt.Sprintf("%s: %s is %s; the simulator takes Ed25519 alone, since other signatures differ in length from run to run",
		e.what, e.path, e.is)
}

// credentials of an assignment. A failure is that of the endpoint; a refusal, that of the task.
func (w wallet) credentials(a contract.Assignment) (c endpoint.Credentials, failure, refusal error) {
	files := []string{a.Authority}
	if a.Role == "server" {
		files = []string{a.Certificate, a.PrivateKey}
	}
	var changed time.Time
	key := a.Role
	for _, file := range files {
		key += "\x00" + file
		status, err := os.Stat(file)
		if err != nil {
			_, failure = endpoint.ReadCredentials(a)
			return c, failure, nil
		}
		if status.ModTime().After(changed) {
			changed = status.ModTime()
		}
	}
	if known, ok := w[key]; ok && known.changed.Equal(changed) {
		return known.credentials, nil, known.refusal
	}
	if c, failure = endpoint.ReadCredentials(a); failure != nil {
		return c, failure, nil
	}
	if a.Role == "server" {
		refusal = requireEd25519("certificate", a.Certificate)
	} else {
		refusal = requireEd25519("authority", a.Authority)
	}
	w[key] = kept{changed, c, refusal}
	return c, nil, refusal
}

// requireEd25519 refuses a file with a certificate that has another key, or is signed by one.
func requireEd25519(what, path string) error {
	rest, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", what, path, err)
		}
		if _, ok := certificate.PublicKey.(ed25519.PublicKey); !ok {
			return notEd25519{what, path, "a certificate of a key for " + certificate.PublicKeyAlgorithm.String()}
		}
		if certificate.SignatureAlgorithm != x509.PureEd25519 {
			return notEd25519{what, path, "signed with " + certificate.SignatureAlgorithm.String()}
		}
	}
}
