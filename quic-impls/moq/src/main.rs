//! An endpoint of fecbench; quic-impls/README.md has the contract.

use std::process::ExitCode;

use moq_noq_fec::Moq;

fn main() -> ExitCode {
    host::program::run::<Moq>()
}
