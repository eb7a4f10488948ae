//! Settings of QUIC and TLS.

use std::path::Path;

use boring::ssl::{SslContextBuilder, SslMethod, SslSignatureAlgorithm};
use host::contract::Role;
use quiche::Config;

use crate::Assignment;

/// The largest UDP payload that is received, in bytes.
const LARGEST_PAYLOAD: usize = 1472;

/// Streams that a client may open.
const MOST_STREAMS: u64 = 100;

/// Ed25519, which trials use, is not among those that BoringSSL accepts by default.
const SIGNATURES: [SslSignatureAlgorithm; 5] = [
    SslSignatureAlgorithm::ED25519,
    SslSignatureAlgorithm::ECDSA_SECP256R1_SHA256,
    SslSignatureAlgorithm::ECDSA_SECP384R1_SHA384,
    SslSignatureAlgorithm::RSA_PSS_RSAE_SHA256,
    SslSignatureAlgorithm::RSA_PSS_RSAE_SHA384,
];

/// The time-out is beyond the deadline, so that the deadline alone ends a trial. The MTU is fixed. An error is one line.
pub fn config(assignment: &Assignment) -> Result<Config, String> {
    let mut tls = SslContextBuilder::new(SslMethod::tls()).map_err(|error| format!("TLS: {error}"))?;
    tls.set_verify_algorithm_prefs(&SIGNATURES).map_err(|error| format!("TLS: {error}"))?;
    let mut config = Config::with_boring_ssl_ctx_builder(quiche::PROTOCOL_VERSION, tls).map_err(unusable)?;
    match assignment.role {
        Role::Client => {
            config
                .load_verify_locations_from_file(text("authority", &assignment.authority)?)
                .map_err(|error| format!("authority: {}: {error}", assignment.authority.display()))?;
            config.verify_peer(true);
        }
        Role::Server => {
            config
                .load_cert_chain_from_pem_file(text("certificate", &assignment.certificate)?)
                .map_err(|error| format!("certificate: {}: {error}", assignment.certificate.display()))?;
            config
                .load_priv_key_from_pem_file(text("private_key", &assignment.private_key)?)
                .map_err(|error| format!("private_key: {}: {error}", assignment.private_key.display()))?;
        }
    }
    config.set_application_protos(&[hq::ALPN]).map_err(unusable)?;
    config.log_keys();
    let window = u64::from(hq::FLOW_CONTROL_WINDOW);
    config.set_initial_max_data(window);
    config.set_initial_max_stream_data_bidi_local(window);
    config.set_initial_max_stream_data_bidi_remote(window);
    config.set_max_connection_window(window);
    config.set_max_stream_window(window);
    config.set_initial_max_streams_bidi(MOST_STREAMS);
    config.set_max_idle_timeout(2 * assignment.deadline.as_millis() as u64 + 1);
    config.set_max_recv_udp_payload_size(LARGEST_PAYLOAD);
    let options = assignment.options;
    config.set_max_send_udp_payload_size(options.packet_size);
    config.set_cc_algorithm(options.congestion_control);
    config.set_initial_congestion_window_packets(options.initial_window);
    Ok(config)
}

fn unusable(error: quiche::Error) -> String {
    format!("quiche: {error}")
}

fn text<'a>(key: &str, path: &'a Path) -> Result<&'a str, String> {
    path.to_str().ok_or_else(|| format!("{key}: {}: quiche takes UTF-8 only", path.display()))
}
