//! Messages over plain UDP, with erasure codes or without; quic-impls/README.md has the contract, README.md the protocol.

mod endpoint;
mod receiving;
mod sending;
mod session;
mod wire;

use std::path::Path;
use std::process::ExitCode;

use fec::Code;
use host::coding::Coding;
use host::contract::{self, Refused, Values, Workload};
use host::implementation::{Host, Implementation};
use host::messages::Delivery;

use endpoint::Endpoint;

fn main() -> ExitCode {
    host::program::run::<Udp>()
}

/// The implementation, as impl.toml declares it.
struct Udp;

/// The protection of datagrams, if there is any.
type Options = Option<Coding>;

type Assignment = contract::Assignment<Options>;

impl Implementation for Udp {
    const NAME: &'static str = "udp";
    const DECLARED: &'static str = include_str!("../impl.toml");
    const WORKLOADS: &'static [&'static str] = &[host::messages::NAME];
    const SERIES: &'static [&'static str] = &[host::messages::NAME];
    const HAS_CERTIFICATES: bool = false;

    type Options = Options;
    type Surroundings = ();
    type Prepared = Assignment;
    type Endpoint = Endpoint;

    fn options(values: &mut Values) -> contract::Result<Options> {
        let codes =
            [("none", None), ("xor", Some(Code::Xor)), ("rs", Some(Code::ReedSolomon)), ("rlc", Some(Code::RLC))];
        let code = values.choice("scheme", &codes)?;
        let coding = Coding::parse(values, code.unwrap_or(Code::RLC))?;
        code.map_or(Ok(()), |_| coding.check())?;
        Ok(code.map(|_| coding))
    }

    fn settle(assignment: &mut Assignment) -> contract::Result<()> {
        match &assignment.workload {
            Workload::Messages(messages) if messages.delivery != Delivery::Datagram => {
                Err(Refused::Unsupported(format!("workload.delivery: \"{}\"", messages.delivery)))
            }
            _ => Ok(()),
        }
    }

    fn surroundings() -> Result<(), String> {
        Ok(())
    }

    fn virtual_surroundings(_seed: u64, _name: &str, _logs: Option<&Path>) -> Result<(), String> {
        Ok(())
    }

    fn check_repeatable(_server: &Assignment) -> Result<(), String> {
        Ok(())
    }

    fn prepare(assignment: Assignment, _surroundings: &()) -> Result<Assignment, String> {
        Ok(assignment)
    }

    fn start(assignment: Assignment, host: &mut impl Host) -> Result<Endpoint, String> {
        Endpoint::start(assignment, host)
    }
}
