//! An endpoint of fecbench. Its one argument is the path of the JSON file that says what to do; with `--check`, it tells
//! whether it would take these options; with `--simulate`, it carries out whole trials in virtual time. quic-impls/README.md
//! has the contract.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use noq_fec::contract::{self, Exit};
use noq_fec::{process, simulator};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let exit = match arguments.as_slice() {
        [flag] if flag == "--simulate" => simulate(),
        [path] => run(path),
        [flag, options] if flag == "--check" => match contract::check_options(options.as_encoded_bytes()) {
            Ok(()) => return ExitCode::SUCCESS,
            Err(refused) => refused.into(),
        },
        _ => Exit {
            code: contract::EXIT_BAD_INPUT,
            line: Some("usage: noq-fec ASSIGNMENT.json | --check OPTIONS | --simulate".into()),
        },
    };
    if let Some(line) = exit.line {
        eprintln!("{line}");
    }
    ExitCode::from(exit.code)
}

fn run(path: &OsString) -> Exit {
    match contract::read(path.as_ref()) {
        Ok(assignment) => {
            let role = assignment.role;
            Exit::of(role, process::run(assignment))
        }
        Err(refused) => refused.into(),
    }
}

fn simulate() -> Exit {
    match simulator::run(io::stdin().lock(), io::stdout().lock()) {
        Ok(()) => Exit { code: 0, line: None },
        Err(error) => Exit { code: 1, line: Some(format!("noq-fec: simulator: {error}")) },
    }
}
