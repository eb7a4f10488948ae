//! How QUIC and TLS are set up: alike for all schemes, so that the arms of a comparison differ in FEC alone.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use host::contract::Workload;
use host::messages::Delivery;
use noq_proto::congestion::{Bbr3Config, ControllerFactory, CubicConfig, NewRenoConfig};
use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq_proto::{ClientConfig, EndpointConfig, IdleTimeout, ServerConfig, TransportConfig, VarInt};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, SignatureAlgorithm};

use crate::olia::Olia;
use crate::options::{CongestionControl, Http, Options};
use crate::scheduler::Scheduling;
use crate::schemes::LARGEST_PAYLOAD;
use crate::surroundings::{Randomness, Surroundings};
use crate::unlimited::Unlimited;
use crate::{Assignment, h3, hq, messages};

/// Flow control must not be what limits a transfer: this is several times the bandwidth-delay product of
/// the fastest link with the longest delay that the papers use (100 Mbps, 2 × 400 ms: 10 MB).
const WINDOW: u32 = 64 << 20;

pub fn endpoint(surroundings: &Surroundings) -> EndpointConfig {
    let mut config = EndpointConfig::default();
    config.max_udp_payload_size(LARGEST_PAYLOAD).expect("QUIC allows every limit from 1200 on");
    if let Randomness::Seeded(seed) = surroundings.randomness {
        config.rng_seed(Some(seed.of_generators()));
    }
    config
}

pub fn client(assignment: &Assignment, surroundings: &Surroundings) -> Result<ClientConfig, String> {
    let mut config = ClientConfig::new(Arc::new(client_tls(assignment, surroundings)?));
    config.transport_config(Arc::new(transport(assignment, surroundings)));
    if let Randomness::Seeded(seed) = surroundings.randomness {
        config.initial_dst_cid_provider(Arc::new(move || seed.first_id()));
    }
    Ok(config)
}

pub fn client_tls(assignment: &Assignment, surroundings: &Surroundings) -> Result<QuicClientConfig, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("authority", &assignment.authority)? {
        roots.add(certificate).map_err(|error| format!("authority: {}: {error}", assignment.authority.display()))?;
    }
    let mut tls = rustls::ClientConfig::builder_with_details(provider(), Arc::new(surroundings.calendar))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("ring has TLS 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![alpn(assignment)];
    tls.key_log = surroundings.key_log.clone();
    Ok(QuicClientConfig::try_from(tls).expect("ring has the initial cipher suite"))
}

fn alpn(assignment: &Assignment) -> Vec<u8> {
    match (&assignment.workload, assignment.options.http) {
        (Workload::Transfer(_) | Workload::Requests, Http::Hq) => hq::ALPN.to_vec(),
        (Workload::Transfer(_) | Workload::Requests, Http::H3) => h3::ALPN.to_vec(),
        (Workload::Messages(_), _) => messages::ALPN.to_vec(),
    }
}

/// The code of a connection that has served its purpose.
pub fn no_error(assignment: &Assignment) -> VarInt {
    match assignment.options.http {
        Http::Hq => VarInt::from_u32(0),
        Http::H3 => h3::NO_ERROR,
    }
}

pub fn server(assignment: &Assignment, surroundings: &Surroundings) -> Result<ServerConfig, String> {
    let mut config = ServerConfig::with_crypto(Arc::new(server_tls(assignment, surroundings)?));
    config.transport_config(Arc::new(transport(assignment, surroundings)));
    config.time_source(Arc::new(surroundings.calendar));
    Ok(config)
}

/// The configuration for one more connection of a server: what its paths have in common is theirs alone.
pub fn of_connection(server: &ServerConfig, options: &Options, randomness: Randomness) -> ServerConfig {
    let mut transport = (*server.transport).clone();
    transport.congestion_controller_factory(congestion_controller(options, randomness));
    let mut config = server.clone();
    config.transport_config(Arc::new(transport));
    config
}

pub fn server_tls(assignment: &Assignment, surroundings: &Surroundings) -> Result<QuicServerConfig, String> {
    let chain = certificates("certificate", &assignment.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&assignment.private_key)
        .map_err(|error| format!("private_key: {}: {error}", assignment.private_key.display()))?;
    let mut tls = rustls::ServerConfig::builder_with_details(provider(), Arc::new(surroundings.calendar))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("ring has TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| format!("certificate and private_key: {error}"))?;
    tls.alpn_protocols = vec![alpn(assignment)];
    tls.key_log = surroundings.key_log.clone();
    Ok(QuicServerConfig::try_from(tls).expect("ring has the initial cipher suite"))
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
pub fn transport(assignment: &Assignment, surroundings: &Surroundings) -> TransportConfig {
    let mut config = TransportConfig::default();
    let packet_size = assignment.options.packet_size;
    config
        .max_idle_timeout(Some(idle_timeout(assignment.deadline)))
        .stream_receive_window(WINDOW.into())
        .receive_window(WINDOW.into())
        .send_window(WINDOW.into())
        .initial_mtu(packet_size)
        .min_mtu(packet_size)
        .mtu_discovery_config(None)
        .enable_segmentation_offload(false)
        .slow_start_pacing_quarters(assignment.options.slow_start_pacing)
        .congestion_controller_factory(congestion_controller(&assignment.options, surroundings.randomness));
    if assignment.options.paths > 1 {
        let options = &assignment.options;
        config.max_concurrent_multipath_paths(options.paths as u32).ack_path(options.ack_path);
        if options.scheduler != Scheduling::LowestId {
            config.scheduler(Some(Arc::new(options.scheduler)));
        }
    }
    if let Workload::Messages(messages) = &assignment.workload
        && let Delivery::Deadline(_) | Delivery::Stream = messages.delivery
    {
        config.max_concurrent_uni_streams(messages.count().into());
    }
    if let Some(schemes) = &assignment.options.schemes {
        config.fec(Some(Arc::new(schemes.clone())));
    }
    if let Some(qlog) = &surroundings.qlog {
        config.qlog_factory(qlog.clone());
    }
    config
}

fn idle_timeout(deadline: Duration) -> IdleTimeout {
    let milliseconds = VarInt::from_u64(2 * deadline.as_millis() as u64 + 1);
    IdleTimeout::from(milliseconds.expect("a deadline is at most 1e6 s"))
}

pub fn congestion_controller(options: &Options, randomness: Randomness) -> Arc<dyn ControllerFactory + Send + Sync> {
    let initial_window = options.initial_window;
    match options.congestion_control {
        CongestionControl::Cubic | CongestionControl::CubicOfTwo => {
            let connections = 1 + u32::from(options.congestion_control == CongestionControl::CubicOfTwo);
            let mut config = CubicConfig::default();
            config.initial_window(initial_window).connections(connections);
            Arc::new(config)
        }
        CongestionControl::NewReno => {
            let mut config = NewRenoConfig::default();
            config.initial_window(initial_window);
            Arc::new(config)
        }
        CongestionControl::Bbr3 => {
            let mut config = Bbr3Config::default();
            config.initial_window(initial_window);
            if let Randomness::Seeded(seed) = randomness {
                config.probe_rng_seed(Some(seed.of_congestion_control()));
            }
            Arc::new(config)
        }
        CongestionControl::Olia => Arc::new(Olia::new(initial_window, true)),
        // A scheduler may ask for windows all the same.
        CongestionControl::None if options.paths > 1 => Arc::new(Olia::new(initial_window, false)),
        CongestionControl::None => Arc::new(Unlimited),
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
