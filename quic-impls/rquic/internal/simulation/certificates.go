package simulation

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/contract"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/endpoint"
)

// wallet keeps what was read from files, which stay as they are.
type wallet map[files]kept

// files of an assignment; a client has but an authority.
type files struct{ authority, certificate, privateKey string }

type kept struct {
	credentials endpoint.Credentials
	failure     error // of the endpoint
	refusal     error // of the task
}

// notEd25519 is the refusal of a key with which no trial would be like another.
type notEd25519 struct{ what, path, is string }

func (e notEd25519) Error() string {
	return fmt.Sprintf("%s: %s is %s; the simulator takes Ed25519 alone, since other signatures differ in length from run to run",
		e.what, e.path, e.is)
}

// credentials of an assignment. A failure is that of the endpoint; a refusal, that of the task.
func (w wallet) credentials(a contract.Assignment) kept {
	named, what, certificate := files{authority: a.Authority}, "authority", a.Authority
	if a.Role == "server" {
		named, what, certificate = files{certificate: a.Certificate, privateKey: a.PrivateKey}, "certificate", a.Certificate
	}
	if known, ok := w[named]; ok {
		return known
	}
	var k kept
	if k.credentials, k.failure = endpoint.ReadCredentials(a); k.failure == nil {
		k.refusal = requireEd25519(what, certificate)
	}
	w[named] = k
	return k
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
