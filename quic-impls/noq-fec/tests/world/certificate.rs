//! The server's certificate, made anew by each process that tests: no private key is kept, and nothing expires.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::OnceLock;

use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};

/// A PEM file with a certificate for this name and its private key. The certificate is signed by itself, and so its own
/// authority.
pub fn certificate(server_name: &str) -> PathBuf {
    static FILE: OnceLock<PathBuf> = OnceLock::new();
    FILE.get_or_init(|| {
        // Ed25519 has signatures of one length, so that a handshake takes the same bytes whenever it is run.
        let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        let certificate = CertificateParams::new([server_name.into()]).unwrap().self_signed(&key).unwrap();
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("server-{}.pem", process::id()));
        fs::write(&file, certificate.pem() + &key.serialize_pem()).unwrap();
        file
    })
    .clone()
}
