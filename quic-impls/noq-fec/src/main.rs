//! An endpoint of fecbench. Its one argument is the path of the JSON file that says what to do;
//! quic-impls/README.md has the contract.

use std::process::ExitCode;

use noq_fec::contract::{self, Refused};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [path] = arguments.as_slice() else {
        eprintln!("usage: noq-fec ASSIGNMENT.json");
        return ExitCode::from(contract::EXIT_BAD_INPUT);
    };
    let assignment = match contract::read(path.as_ref()) {
        Ok(assignment) => assignment,
        Err(refused) => {
            eprintln!("noq-fec: {refused}");
            return ExitCode::from(match refused {
                Refused::Wrong(_) => contract::EXIT_BAD_INPUT,
                Refused::Unsupported(_) => contract::EXIT_UNSUPPORTED,
            });
        }
    };
    match noq_fec::endpoint::run(&assignment) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("noq-fec: {}: {error}", assignment.role);
            ExitCode::FAILURE
        }
    }
}
