//! TLS 1.3 by rustls, alike for all stacks that use it: only with the feature `rustls`. Errors are one line.
//!
//! In virtual time it is [`plaintext`], unless secrets are recorded.

mod plaintext;

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use rustls::client::WebPkiServerVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::{
    ClientConfig, ConfigBuilder, KeyLog, NoKeyLog, RootCertStore, ServerConfig, SignatureAlgorithm, WantsVerifier,
};

use crate::contract::Assignment;
use crate::records::Records;
use crate::surroundings::Calendar;

/// Last bytes of a certificate that is signed with Ed25519, before the signature: the algorithm, and the length of 64
/// bytes.
const ED25519_SIGNATURE: [u8; 10] = [0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x41, 0x00];

/// A client that trusts its authority alone.
pub fn client<O>(
    assignment: &Assignment<O>,
    alpn: &[u8],
    calendar: Calendar,
    records: &Records,
) -> Result<ClientConfig, String> {
    let mut tls = match is_plaintext(calendar, records) {
        true => plaintext::client(&assignment.authority)?,
        false => of_client(provider(), calendar)
            .with_webpki_verifier(verifier(&assignment.authority, provider())?)
            .with_no_client_auth(),
    };
    tls.alpn_protocols = vec![alpn.to_vec()];
    tls.key_log = key_log(records);
    Ok(tls)
}

pub fn server<O>(
    assignment: &Assignment<O>,
    alpn: &[u8],
    calendar: Calendar,
    records: &Records,
) -> Result<ServerConfig, String> {
    let Assignment { certificate, private_key, .. } = assignment;
    let mut tls = match is_plaintext(calendar, records) {
        true => plaintext::server(certificate, private_key)?,
        false => of_server(certificate, private_key, provider(), calendar)?,
    };
    tls.alpn_protocols = vec![alpn.to_vec()];
    tls.key_log = key_log(records);
    Ok(tls)
}

/// Whether nothing is encrypted: whoever reads what is recorded has secrets to decrypt it with.
fn is_plaintext(calendar: Calendar, records: &Records) -> bool {
    matches!(calendar, Calendar::Virtual) && records.secrets().is_none()
}

fn of_client(provider: Arc<CryptoProvider>, calendar: Calendar) -> ConfigBuilder<ClientConfig, WantsVerifier> {
    ClientConfig::builder_with_details(provider, Arc::new(calendar))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("ring has TLS 1.3")
}

/// Verifies certificates of an authority alone.
fn verifier(authority: &Path, provider: Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, String> {
    let bad = |error: String| format!("authority: {}: {error}", authority.display());
    let mut roots = RootCertStore::empty();
    for certificate in certificates("authority", authority)? {
        roots.add(certificate).map_err(|error| bad(error.to_string()))?;
    }
    let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
    builder.build().map_err(|error| bad(error.to_string()))
}

fn of_server(
    certificate: &Path,
    private_key: &Path,
    provider: Arc<CryptoProvider>,
    calendar: Calendar,
) -> Result<ServerConfig, String> {
    let chain = certificates("certificate", certificate)?;
    let key = PrivateKeyDer::from_pem_file(private_key)
        .map_err(|error| format!("private_key: {}: {error}", private_key.display()))?;
    ServerConfig::builder_with_details(provider, Arc::new(calendar))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("ring has TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| format!("certificate and private_key: {error}"))
}

/// Refuses a server whose handshakes differ in length from run to run. A file that can't be read is left to the endpoint.
pub fn check_same_length<O>(server: &Assignment<O>) -> Result<(), String> {
    let why = "must be Ed25519: signatures of other keys vary in length";
    let key = PrivateKeyDer::from_pem_file(&server.private_key).ok();
    if let Some(key) = key.and_then(|key| provider().key_provider.load_private_key(key).ok())
        && key.algorithm() != SignatureAlgorithm::ED25519
    {
        return Err(format!("private_key: {}: the certificate's key {why}", server.private_key.display()));
    }
    for certificate in certificates("certificate", &server.certificate).unwrap_or_default() {
        let is_ed25519 =
            certificate.len().checked_sub(64).is_some_and(|end| certificate[..end].ends_with(&ED25519_SIGNATURE));
        if !is_ed25519 {
            return Err(format!("certificate: {}: its authority's key {why}", server.certificate.display()));
        }
    }
    Ok(())
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn certificates(key: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let bad = |error| format!("{key}: {}: {error}", path.display());
    let certificates: Vec<_> =
        CertificateDer::pem_file_iter(path).map_err(bad)?.collect::<Result<_, _>>().map_err(bad)?;
    match certificates.is_empty() {
        true => Err(format!("{key}: no certificate in {}", path.display())),
        false => Ok(certificates),
    }
}

impl TimeProvider for Calendar {
    fn current_time(&self) -> Option<UnixTime> {
        let now = self.now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
        Some(UnixTime::since_unix_epoch(now))
    }
}

fn key_log(records: &Records) -> Arc<dyn KeyLog> {
    match records.secrets() {
        Some(file) => Arc::new(Secrets(file)),
        None => Arc::new(NoKeyLog),
    }
}

#[derive(Debug)]
struct Secrets(Arc<File>);

impl KeyLog for Secrets {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let line = format!("{label} {} {}\n", hex(client_random), hex(secret));
        if let Err(error) = (&*self.0).write_all(line.as_bytes()) {
            eprintln!("TLS secrets: {error}");
        }
    }
}
