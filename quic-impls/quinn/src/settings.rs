//! How QUIC and TLS are set up.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use host::contract::Role;
use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{ClientConfig, EndpointConfig, IdleTimeout, QlogConfig, ServerConfig, TransportConfig, VarInt};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{KeyLog, NoKeyLog, RootCertStore, SignatureAlgorithm};

use crate::Assignment;
use crate::options::{CongestionControl, Options};
use crate::surroundings::Surroundings;

/// The largest UDP payload that is received, in bytes.
const LARGEST_PAYLOAD: u16 = 1472;

pub struct Configuration {
    pub endpoint: EndpointConfig,
    pub end: End,
}

pub enum End {
    Client(ClientConfig),
    Server(ServerConfig),
}

impl Configuration {
    /// An error is one line.
    pub fn of(assignment: &Assignment, surroundings: &Surroundings) -> Result<Self, String> {
        let end = match assignment.role {
            Role::Client => End::Client(client(assignment, surroundings)?),
            Role::Server => End::Server(server(assignment, surroundings)?),
        };
        Ok(Self { endpoint: endpoint(surroundings), end })
    }
}

fn endpoint(surroundings: &Surroundings) -> EndpointConfig {
    let mut config = EndpointConfig::default();
    config.max_udp_payload_size(LARGEST_PAYLOAD).expect("QUIC allows every limit from 1200 on");
    config.rng_seed(surroundings.seed.map(|seed| seed.of_generators()));
    config
}

fn client(assignment: &Assignment, surroundings: &Surroundings) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("authority", &assignment.authority)? {
        roots.add(certificate).map_err(|error| format!("authority: {}: {error}", assignment.authority.display()))?;
    }
    let mut tls = rustls::ClientConfig::builder_with_details(provider(), Arc::new(surroundings.calendar))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("ring has TLS 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![hq::ALPN.to_vec()];
    tls.key_log = key_log(surroundings)?;
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).expect("ring has the initial suite")));
    config.transport_config(Arc::new(transport(assignment, surroundings)?));
    if let Some(seed) = surroundings.seed {
        config.initial_dst_cid_provider(Arc::new(move || seed.first_id()));
    }
    Ok(config)
}

fn server(assignment: &Assignment, surroundings: &Surroundings) -> Result<ServerConfig, String> {
    let chain = certificates("certificate", &assignment.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&assignment.private_key)
        .map_err(|error| format!("private_key: {}: {error}", assignment.private_key.display()))?;
    let mut tls = rustls::ServerConfig::builder_with_details(provider(), Arc::new(surroundings.calendar))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("ring has TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| format!("certificate and private_key: {error}"))?;
    tls.alpn_protocols = vec![hq::ALPN.to_vec()];
    tls.key_log = key_log(surroundings)?;
    let crypto = QuicServerConfig::try_from(tls).expect("ring has the initial suite");
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(Arc::new(transport(assignment, surroundings)?));
    config.time_source(Arc::new(surroundings.calendar));
    Ok(config)
}

/// How a certificate ends that is signed with Ed25519: the algorithm, and the 64 bytes of the signature, which follow.
const ED25519_SIGNATURE: [u8; 10] = [0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x41, 0x00];

/// Refuses a server whose handshakes differ in length from run to run, in one line. A file that can't be read is left to the
/// endpoint.
pub fn check_same_length(server: &Assignment) -> Result<(), String> {
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

/// The time-out is beyond the deadline, so that the deadline alone ends a trial. The MTU is fixed.
fn transport(assignment: &Assignment, surroundings: &Surroundings) -> Result<TransportConfig, String> {
    let mut config = TransportConfig::default();
    let packet_size = assignment.options.packet_size;
    config
        .max_idle_timeout(Some(idle_timeout(assignment.deadline)))
        .stream_receive_window(hq::FLOW_CONTROL_WINDOW.into())
        .receive_window(hq::FLOW_CONTROL_WINDOW.into())
        .send_window(hq::FLOW_CONTROL_WINDOW.into())
        .initial_mtu(packet_size)
        .min_mtu(packet_size)
        .mtu_discovery_config(None)
        .enable_segmentation_offload(false)
        .congestion_controller_factory(congestion_controller(&assignment.options));
    if let Some(file) = surroundings.records.qlog(&assignment.role.to_string())? {
        let mut qlog = QlogConfig::default();
        qlog.writer(Box::new(file));
        config.qlog_stream(qlog.into_stream());
    }
    Ok(config)
}

fn idle_timeout(deadline: Duration) -> IdleTimeout {
    let milliseconds = VarInt::from_u64(2 * deadline.as_millis() as u64 + 1);
    IdleTimeout::from(milliseconds.expect("a deadline is at most 1e6 s"))
}

fn congestion_controller(options: &Options) -> Arc<dyn ControllerFactory + Send + Sync> {
    let initial_window = options.initial_window * u64::from(options.packet_size);
    match options.congestion_control {
        CongestionControl::Cubic => {
            let mut config = CubicConfig::default();
            config.initial_window(initial_window);
            Arc::new(config)
        }
        CongestionControl::NewReno => {
            let mut config = NewRenoConfig::default();
            config.initial_window(initial_window);
            Arc::new(config)
        }
        CongestionControl::Bbr => {
            let mut config = BbrConfig::default();
            config.initial_window(initial_window);
            Arc::new(config)
        }
    }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
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

fn key_log(surroundings: &Surroundings) -> Result<Arc<dyn KeyLog>, String> {
    Ok(match surroundings.records.secrets()? {
        Some(file) => Arc::new(Secrets(Mutex::new(file))),
        None => Arc::new(NoKeyLog),
    })
}

#[derive(Debug)]
struct Secrets(Mutex<File>);

impl KeyLog for Secrets {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let line = format!("{label} {} {}\n", hex(client_random), hex(secret));
        if let Err(error) = self.0.lock().expect("nobody panics with it").write_all(line.as_bytes()) {
            eprintln!("quinn: TLS secrets: {error}");
        }
    }
}
