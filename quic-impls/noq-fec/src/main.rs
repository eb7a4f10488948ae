//! An endpoint of fecbench. Its one argument is the path of the JSON file that says what to do; with `--check`, it tells
//! whether it would take these options. quic-impls/README.md has the contract.

use std::ffi::OsString;
use std::process::ExitCode;

use noq_fec::contract::{self, Refused};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    match arguments.as_slice() {
        [path] => run(path),
        [flag, options] if flag == "--check" => match contract::check_options(options.as_encoded_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(refused) => refuse(&refused),
        },
        _ => {
            eprintln!("usage: noq-fec ASSIGNMENT.json | --check OPTIONS");
            ExitCode::from(contract::EXIT_BAD_INPUT)
        }
    }
}

fn run(path: &OsString) -> ExitCode {
    let assignment = match contract::read(path.as_ref()) {
        Ok(assignment) => assignment,
        Err(refused) => return refuse(&refused),
    };
    match noq_fec::endpoint::run(&assignment) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("noq-fec: {}: {error}", assignment.role);
            ExitCode::FAILURE
        }
    }
}

fn refuse(refused: &Refused) -> ExitCode {
    eprintln!("noq-fec: {refused}");
    ExitCode::from(match refused {
        Refused::Wrong(_) => contract::EXIT_BAD_INPUT,
        Refused::Unsupported(_) => contract::EXIT_UNSUPPORTED,
    })
}
