//! An endpoint of fecbench; quic-impls/README.md has the contract.

use std::process::ExitCode;

use noq_fec::NoqFec;

fn main() -> ExitCode {
    host::program::run::<NoqFec>()
}
