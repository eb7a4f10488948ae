//! QUIC with forward erasure correction inside, over noq-proto: the endpoint of fecbench.
//!
//! | module | its one job |
//! |---|---|
//! | [`options`] | the options of impl.toml |
//! | [`hq_interop`] | hq-interop, as the crate `hq` has it, over one connection |
//! | [`h3`] | the same over HTTP/3 |
//! | [`measured`] | congestion control that knows the slowest link |
//! | [`messages`] | the workload `messages`: its protocol, sender and receiver |
//! | [`stack`] | noq-proto's endpoint with its connections: datagrams and time in, datagrams out |
//! | [`paths`] | the paths of a connection: their opening, and their counters |
//! | [`scheduler`] | the choice of the path that takes the next packet of data |
//! | [`schemes`] | codes and controllers as FEC schemes of noq-proto |
//! | [`ends`] | the ends of messages in source symbols |
//! | [`series`] | congestion windows and repair over time |
//! | [`sent`] | the datagrams that have content |
//! | [`surroundings`] | the surroundings of an endpoint: randomness, date, records |
//! | [`olia`] | congestion control that paths have in common |
//! | [`prague`] | congestion control for L4S |
//! | [`unlimited`] | no congestion control |
//! | [`settings`] | the settings of QUIC and TLS |
//! | [`work`] | the work of connections: its trait, and that of noq-fec's workloads |
//! | [`endpoint`] | client and server, for any work: joins these |

pub mod endpoint;
pub mod ends;
pub mod h3;
pub mod hq_interop;
pub mod measured;
pub mod messages;
pub mod olia;
pub mod options;
pub mod paths;
pub mod prague;
pub mod scheduler;
pub mod schemes;
pub mod sent;
pub mod series;
pub mod settings;
pub mod stack;
pub mod surroundings;
pub mod unlimited;
pub mod work;

use std::path::Path;

use host::coding::Redundancy;
use host::contract::{self, Refused, Values, Workload};
use host::implementation::{Host, Implementation};
use host::messages::Delivery;
use host::records::Records;
use host::surroundings::Seed;
use host::tls;

use endpoint::{Endpoint, Prepared};
use ends::MessageEnds;
use options::{Http, Options};
use scheduler::Scheduling;
use series::{Congestion, Repair, Values as _};
use surroundings::Surroundings;
use work::AnyWork;

/// The implementation, as impl.toml declares it.
#[derive(Debug)]
pub struct NoqFec;

pub type Assignment = contract::Assignment<Options>;

impl Implementation for NoqFec {
    const NAME: &'static str = "noq-fec";
    const DECLARED: &'static str = include_str!("../impl.toml");
    const WORKLOADS: &'static [&'static str] = &["download", "upload", "messages", host::requests::NAME];
    const SERIES: &'static [&'static str] = &[Congestion::NAME, Repair::NAME, sent::NAME, host::messages::NAME];
    const HAS_CERTIFICATES: bool = true;

    type Options = Options;
    type Surroundings = Surroundings;
    type Prepared = Prepared;
    type Endpoint = Endpoint<AnyWork>;

    fn options(values: &mut Values) -> contract::Result<Options> {
        Options::parse(values)
    }

    fn paths(options: &Options) -> usize {
        options.paths
    }

    fn settle(assignment: &mut Assignment) -> contract::Result<()> {
        let Workload::Messages(messages) = &assignment.workload else {
            return Ok(());
        };
        if assignment.options.http == Http::H3 {
            return Err(Refused::Unsupported("workload.name: \"messages\" with http = \"h3\"".into()));
        }
        if messages.delivery == Delivery::Datagram {
            if assignment.options.scheduler == Scheduling::Redundant {
                return contract::wrong(
                    "options.scheduler: \"redundant\" repeats what streams carry, and messages travel in datagrams: another \
                     scheduler, or delivery = \"stream\" or \"deadline\"",
                );
            }
            let most = messages::longest_part(&assignment.options);
            let longest = messages.longest_part();
            if longest > most {
                return contract::wrong(format!(
                    "workload.part_bytes: a part of {longest} bytes doesn't fit into a datagram: at most {most} bytes \
                     with packet_size = {}",
                    assignment.options.packet_size
                ));
            }
        }
        if let Some(schemes) = &mut assignment.options.schemes {
            schemes.ends = MessageEnds::Messages(messages.clone());
            if let (Redundancy::Deadline(within), Delivery::Deadline(deadline)) =
                (&mut schemes.coding.redundancy, messages.delivery)
            {
                *within = deadline;
            }
        }
        Ok(())
    }

    fn surroundings() -> Result<Surroundings, String> {
        Ok(Surroundings::of_process(Records::of_process()?))
    }

    fn virtual_surroundings(seed: u64, name: &str, logs: Option<&Path>) -> Result<Surroundings, String> {
        let records = logs.map_or_else(|| Ok(Records::default()), Records::in_folder)?;
        Ok(Surroundings::virtual_time(Seed::of(seed, name), records))
    }

    fn check_repeatable(server: &Assignment) -> Result<(), String> {
        tls::check_same_length(server)
    }

    fn prepare(assignment: Assignment, surroundings: &Surroundings) -> Result<Prepared, String> {
        Prepared::new(assignment, surroundings)
    }

    fn start(prepared: Prepared, host: &mut impl Host) -> Result<Self::Endpoint, String> {
        prepared.start(host)
    }
}
