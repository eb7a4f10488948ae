//! Settings of QUIC and TLS.

use std::sync::Arc;
use std::time::Duration;

use host::contract::Role;
use host::tls;
use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, ConnectionId, EndpointConfig, IdleTimeout, QlogConfig, ServerConfig, TransportConfig, VarInt,
};

use crate::Assignment;
use crate::options::{CongestionControl, Options};
use crate::surroundings::{Days, Surroundings};

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
    let tls = tls::client(assignment, hq::ALPN, surroundings.calendar, &surroundings.records)?;
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).expect("ring has the initial suite")));
    config.transport_config(Arc::new(transport(assignment, surroundings)?));
    if let Some(seed) = surroundings.seed {
        config.initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&seed.first_id())));
    }
    Ok(config)
}

fn server(assignment: &Assignment, surroundings: &Surroundings) -> Result<ServerConfig, String> {
    let tls = tls::server(assignment, hq::ALPN, surroundings.calendar, &surroundings.records)?;
    let crypto = QuicServerConfig::try_from(tls).expect("ring has the initial suite");
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(Arc::new(transport(assignment, surroundings)?));
    config.time_source(Arc::new(Days(surroundings.calendar)));
    Ok(config)
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
