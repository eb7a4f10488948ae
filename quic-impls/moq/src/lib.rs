//! Live media over QUIC with FEC inside: moq-net, the library of Media over QUIC that deployments use, over the stack of
//! noq-fec. There is no runtime: all of it runs over noq-fec's endpoint, with a socket or in virtual time.
//!
//! | module | its one job |
//! |---|---|
//! | [`transport`] | a connection of noq-proto behind the traits that moq-net asks for |
//! | [`tasks`] | the tasks and drivers of moq-net, without a runtime |
//! | [`publisher`] | the sender of a broadcast |
//! | [`subscriber`] | the receiver of a broadcast |
//! | [`broadcast`] | the workload `live` on one connection: joins these |
//! | [`parts`] | frames that are cut into parts, a datagram each |
//! | [`repair`] | repair symbols over these parts, on a track of their own |
//! | [`relay`] | a relay between two of them |

pub mod broadcast;
pub mod parts;
pub mod publisher;
pub mod relay;
pub mod repair;
pub mod subscriber;
pub mod tasks;
pub mod transport;

use std::path::Path;

use host::coding::Redundancy;
use host::contract::{self, Refused, Values, wrong};
use host::implementation::{Host, Implementation};
use host::live::Delivery;
use noq_fec::ends::{MessageEnds, NotedEnds};
use noq_fec::options::{Http, Options};
use noq_fec::scheduler::Scheduling;
use noq_fec::surroundings::Surroundings;
use noq_fec::{Assignment, NoqFec, messages, sent, series};

/// The name of the folder is that of the library; this is the program's.
pub const NAME: &str = "moq";

/// Most bytes of moq-net before a frame in a datagram: the numbers of subscription and group, and the time. moq-transport adds a type,
/// a priority, and the type and length of the time, but numbers of 8 bytes are beyond any broadcast.
const DATAGRAM_HEADER: u64 = 24;

/// The implementation, as impl.toml declares it.
#[derive(Debug)]
pub struct Moq;

impl Implementation for Moq {
    const NAME: &'static str = NAME;
    const DECLARED: &'static str = NoqFec::DECLARED;
    const WORKLOADS: &'static [&'static str] = &[host::live::NAME];
    const SERIES: &'static [&'static str] = &[
        <series::Congestion as series::Values>::NAME,
        <series::Repair as series::Values>::NAME,
        sent::NAME,
        host::live::NAME,
    ];
    const RELAYS: bool = true;
    const HAS_CERTIFICATES: bool = true;

    type Options = Options;
    type Surroundings = Surroundings;
    type Prepared = relay::Prepared;
    type Endpoint = relay::Endpoint;

    fn options(values: &mut Values) -> contract::Result<Options> {
        Options::parse(values)
    }

    fn paths(options: &Options) -> usize {
        options.paths
    }

    fn settle(assignment: &mut Assignment) -> contract::Result<()> {
        let Some(live) = assignment.workload.live().cloned() else {
            return Ok(());
        };
        if assignment.options.http == Http::H3 {
            return Err(Refused::Unsupported("workload.name: \"live\" with http = \"h3\"".into()));
        }
        for track in live.tracks.iter().filter(|track| track.delivery.is_by_datagrams()) {
            if assignment.options.scheduler == Scheduling::Redundant {
                return wrong(format!(
                    "options.scheduler: \"redundant\" repeats what streams carry, and track {:?} travels in datagrams: another \
                     scheduler, or delivery = \"group\" or \"frame\"",
                    track.name
                ));
            }
            if track.delivery == Delivery::Parts {
                continue;
            }
            let most = messages::longest_part(&assignment.options) - DATAGRAM_HEADER;
            let longest = track.frames.iter().map(|frame| frame.bytes).max().unwrap_or_default();
            if longest > most {
                return wrong(format!(
                    "workload.tracks: track {:?}: a frame of {longest} bytes doesn't fit into a datagram: at most {most} bytes \
                     with packet_size = {}",
                    track.name, assignment.options.packet_size
                ));
            }
        }
        if let Some(schemes) = &mut assignment.options.schemes {
            schemes.ends = MessageEnds::Noted(NotedEnds::default());
            if let Redundancy::Deadline(within) = &mut schemes.coding.redundancy {
                *within = live.deadline;
            }
        }
        Ok(())
    }

    fn surroundings() -> Result<Surroundings, String> {
        NoqFec::surroundings()
    }

    fn virtual_surroundings(seed: u64, name: &str, logs: Option<&Path>) -> Result<Surroundings, String> {
        NoqFec::virtual_surroundings(seed, name, logs)
    }

    fn check_repeatable(server: &Assignment) -> Result<(), String> {
        NoqFec::check_repeatable(server)
    }

    fn prepare(assignment: Assignment, surroundings: &Surroundings) -> Result<Self::Prepared, String> {
        relay::Prepared::new(assignment, surroundings)
    }

    fn start(prepared: Self::Prepared, host: &mut impl Host) -> Result<Self::Endpoint, String> {
        prepared.start(host)
    }
}
