//! Transfers over quinn-proto as it is published; quic-impls/README.md has the contract.

mod options;
mod settings;
mod stack;
mod surroundings;

use std::path::Path;
use std::process::ExitCode;

use host::contract::{self, Values};
use host::implementation::{Host, Implementation};
use host::records::Records;
use host::surroundings::Seed;
use host::tls;

use options::{CongestionControl, Options};
use settings::Configuration;
use stack::QuinnStack;
use surroundings::Surroundings;

fn main() -> ExitCode {
    host::program::run::<Quinn>()
}

/// The implementation, as impl.toml declares it.
struct Quinn;

type Assignment = contract::Assignment<Options>;

impl Implementation for Quinn {
    const NAME: &'static str = "quinn";
    const DECLARED: &'static str = include_str!("../impl.toml");
    const WORKLOADS: &'static [&'static str] = hq::WORKLOADS;
    const SERIES: &'static [&'static str] = &[];
    const HAS_CERTIFICATES: bool = true;

    type Options = Options;
    type Surroundings = Surroundings;
    type Prepared = (Assignment, Configuration);
    type Endpoint = hq::endpoint::Endpoint<QuinnStack>;

    fn options(values: &mut Values) -> contract::Result<Options> {
        Options::parse(values)
    }

    fn settle(_assignment: &mut Assignment) -> contract::Result<()> {
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
        match server.options.congestion_control {
            CongestionControl::Bbr => {
                Err("options.congestion_control: \"bbr\" of quinn draws from the system's randomness; \
                     it has no virtual time"
                    .into())
            }
            CongestionControl::Cubic | CongestionControl::NewReno => tls::check_same_length(server),
        }
    }

    fn prepare(assignment: Assignment, surroundings: &Surroundings) -> Result<Self::Prepared, String> {
        let configuration = Configuration::of(&assignment, surroundings)?;
        Ok((assignment, configuration))
    }

    fn start((assignment, configuration): Self::Prepared, host: &mut impl Host) -> Result<Self::Endpoint, String> {
        let start = host.now();
        let stack = QuinnStack::start(&assignment, configuration, start)?;
        let begin = match assignment.options.ecn {
            true => hq::endpoint::Endpoint::start_marking,
            false => hq::endpoint::Endpoint::start,
        };
        begin(&assignment, Self::NAME, stack, start, host)
    }
}
