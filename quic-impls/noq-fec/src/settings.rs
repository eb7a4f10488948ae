//! The settings of QUIC and TLS: alike for all schemes, so that the arms of a comparison differ in FEC alone.

use std::sync::Arc;
use std::time::Duration;

use host::coding::Redundancy;
use host::contract::Workload;
use host::messages::Delivery;
use host::tls;
use noq_proto::congestion::{Bbr3Config, ControllerFactory, CubicConfig, NewRenoConfig};
use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq_proto::{ClientConfig, ConnectionId, EndpointConfig, IdleTimeout, ServerConfig, TransportConfig, VarInt};

use crate::measured::Measuring;
use crate::olia::Olia;
use crate::options::{CongestionControl, Http, Options};
use crate::prague::PragueConfig;
use crate::scheduler::Scheduling;
use crate::schemes::LARGEST_PAYLOAD;
use crate::surroundings::{Days, Randomness, Surroundings};
use crate::unlimited::Unlimited;
use crate::{Assignment, h3, messages};

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
        config.initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&seed.first_id())));
    }
    Ok(config)
}

pub fn client_tls(assignment: &Assignment, surroundings: &Surroundings) -> Result<QuicClientConfig, String> {
    let tls = tls::client(assignment, alpn(assignment), surroundings.calendar, &surroundings.records)?;
    Ok(QuicClientConfig::try_from(tls).expect("ring has the initial cipher suite"))
}

fn alpn(assignment: &Assignment) -> &'static [u8] {
    match (&assignment.workload, assignment.options.http) {
        (Workload::Transfer(_) | Workload::Requests, Http::Hq) => hq::ALPN,
        (Workload::Transfer(_) | Workload::Requests, Http::H3) => h3::ALPN,
        (Workload::Messages(_), _) => messages::ALPN,
        (Workload::Live(live), _) => live.protocol.alpn().as_bytes(),
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
    config.time_source(Arc::new(Days(surroundings.calendar)));
    Ok(config)
}

/// The configuration for one more connection of a server, with a factory of congestion controllers for its paths alone.
pub fn of_connection(server: &ServerConfig, options: &Options, randomness: Randomness) -> ServerConfig {
    let mut transport = (*server.transport).clone();
    transport.congestion_controller_factory(congestion_controller(options, randomness));
    let mut config = server.clone();
    config.transport_config(Arc::new(transport));
    config
}

pub fn server_tls(assignment: &Assignment, surroundings: &Surroundings) -> Result<QuicServerConfig, String> {
    let tls = tls::server(assignment, alpn(assignment), surroundings.calendar, &surroundings.records)?;
    Ok(QuicServerConfig::try_from(tls).expect("ring has the initial cipher suite"))
}

/// The time-out is beyond the deadline, so that the deadline alone ends a trial. The MTU is fixed.
pub fn transport(assignment: &Assignment, surroundings: &Surroundings) -> TransportConfig {
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
    if let Some(live) = assignment.workload.live() {
        // A stream at most for each frame, and some for announcements.
        config.send_window(live.send_buffer).max_concurrent_uni_streams((live.frames() as u32 + 100).into());
    }
    if let Some(schemes) = &assignment.options.schemes {
        config.fec(Some(Arc::new(schemes.clone())));
    }
    if let Some(qlog) = surroundings.qlog() {
        config.qlog_factory(qlog);
    }
    config
}

fn idle_timeout(deadline: Duration) -> IdleTimeout {
    let milliseconds = VarInt::from_u64(2 * deadline.as_millis() as u64 + 1);
    IdleTimeout::from(milliseconds.expect("a deadline is at most 1e6 s"))
}

/// Congestion control of the options, which measures what FEC needs to know besides.
pub fn congestion_controller(options: &Options, randomness: Randomness) -> Arc<dyn ControllerFactory + Send + Sync> {
    let control = bare_controller(options, randomness);
    match &options.schemes {
        Some(schemes) if matches!(schemes.coding.redundancy, Redundancy::Deadline(_)) => Arc::new(Measuring(control)),
        _ => control,
    }
}

fn bare_controller(options: &Options, randomness: Randomness) -> Arc<dyn ControllerFactory + Send + Sync> {
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
        CongestionControl::Prague => Arc::new(PragueConfig { initial_window }),
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
