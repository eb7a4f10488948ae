//! The command line of an implementation. The one argument is the path of the JSON file that says what to do; with `--check`,
//! it tells whether an endpoint would take these options; with `--simulate`, it carries out whole trials in virtual time.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use crate::contract::{self, Exit};
use crate::implementation::Implementation;
use crate::{process, simulator};

pub fn run<I: Implementation>() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let exit = match arguments.as_slice() {
        [flag] if flag == "--simulate" => simulate::<I>(),
        [path] => carry_out::<I>(path),
        [flag, options] if flag == "--check" => match contract::check_options::<I>(options.as_encoded_bytes()) {
            Ok(()) => return ExitCode::SUCCESS,
            Err(refused) => Exit::refusing::<I>(refused),
        },
        _ => Exit {
            code: contract::EXIT_BAD_INPUT,
            line: Some(format!("usage: {} ASSIGNMENT.json | --check OPTIONS | --simulate", I::NAME)),
        },
    };
    if let Some(line) = exit.line {
        eprintln!("{line}");
    }
    ExitCode::from(exit.code)
}

fn carry_out<I: Implementation>(path: &OsString) -> Exit {
    match contract::read::<I>(path.as_ref()) {
        Ok(assignment) => {
            let place = assignment.place();
            Exit::of::<I>(place, process::run::<I>(assignment))
        }
        Err(refused) => Exit::refusing::<I>(refused),
    }
}

fn simulate<I: Implementation>() -> Exit {
    match simulator::run::<I>(io::stdin().lock(), io::stdout().lock()) {
        Ok(()) => Exit { code: 0, line: None },
        Err(error) => Exit { code: 1, line: Some(format!("{}: simulator: {error}", I::NAME)) },
    }
}
