//! Transfers over quiche as it is published; quic-impls/README.md has the contract.

mod options;
mod settings;
mod stack;

use std::path::Path;
use std::process::ExitCode;

use host::contract::{self, Values};
use host::implementation::{Host, Implementation};
use host::records::Records;

use options::Options;
use stack::QuicheStack;

fn main() -> ExitCode {
    host::program::run::<Quiche>()
}

/// The implementation, as impl.toml declares it.
struct Quiche;

type Assignment = contract::Assignment<Options>;

impl Implementation for Quiche {
    const NAME: &'static str = "quiche";
    const DECLARED: &'static str = include_str!("../impl.toml");
    const WORKLOADS: &'static [&'static str] = hq::WORKLOADS;
    const SERIES: &'static [&'static str] = &[];
    const HAS_CERTIFICATES: bool = true;

    type Options = Options;
    type Surroundings = Records;
    type Prepared = (Assignment, quiche::Config, Records);
    type Endpoint = hq::endpoint::Endpoint<QuicheStack>;

    fn options(values: &mut Values) -> contract::Result<Options> {
        Options::parse(values)
    }

    fn settle(_assignment: &mut Assignment) -> contract::Result<()> {
        Ok(())
    }

    fn surroundings() -> Result<Records, String> {
        Records::of_process()
    }

    fn virtual_surroundings(_seed: u64, _name: &str, _logs: Option<&Path>) -> Result<Records, String> {
        Err("quiche reads the machine's clock itself: it has no virtual time".into())
    }

    fn check_repeatable(_server: &Assignment) -> Result<(), String> {
        Ok(())
    }

    fn prepare(assignment: Assignment, records: &Records) -> Result<Self::Prepared, String> {
        let config = settings::config(&assignment)?;
        Ok((assignment, config, records.clone()))
    }

    fn start((assignment, config, records): Self::Prepared, host: &mut impl Host) -> Result<Self::Endpoint, String> {
        let start = host.now();
        let stack = QuicheStack::start(&assignment, config, records)?;
        hq::endpoint::Endpoint::start(&assignment, Self::NAME, stack, start, host)
    }
}
