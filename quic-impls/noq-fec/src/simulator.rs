//! Whole trials in virtual time: a task is a line of JSON, and so is its answer. quic-impls/README.md has both.
//!
//! The same line has the same answer, to the byte: nothing of the real clock, of the system's randomness or of the
//! tasks before reaches one.
//!
//! | module | its one job |
//! |---|---|
//! | [`task`] | what a trial is asked for |
//! | [`trial`] | carries it out: endpoints over two lanes |
//! | [`guest`] | an endpoint in its host |
//! | [`processor`] | the time that an endpoint takes to send |
//! | [`filling`] | when a transfer has filled the link |
//! | [`answer`] | what happened |

mod answer;
mod filling;
mod guest;
mod processor;
mod task;
mod trial;

use std::any::Any;
use std::io::{self, BufRead, Write};
use std::panic::{self, AssertUnwindSafe};
use std::time::Instant;

use serde::Serialize;
use serde_json::Value;

use crate::lane::Lane;
use answer::Answer;
use task::Task;
use trial::Trial;

/// Answers tasks until their end.
pub fn run(mut tasks: impl BufRead, mut answers: impl Write) -> io::Result<()> {
    let mut simulator = Simulator::default();
    let mut line = Vec::new();
    while tasks.read_until(b'\n', &mut line)? > 0 {
        let mut answer = simulator.answer(&line);
        answer.push('\n');
        answers.write_all(answer.as_bytes())?;
        answers.flush()?;
        line.clear();
    }
    Ok(())
}

/// What is kept from trial to trial.
pub struct Simulator {
    lanes: Lanes,
    /// The instant 0 of virtual time. Only differences to it are ever used.
    zero: Instant,
}

/// The link's two directions.
#[derive(Default)]
struct Lanes {
    up: Lane,
    down: Lane,
}

impl Default for Simulator {
    fn default() -> Self {
        Self { lanes: Lanes::default(), zero: Instant::now() }
    }
}

#[derive(Serialize)]
struct Refusal {
    number: Value,
    error: String,
}

impl Simulator {
    /// The answer to the line of a task, as a line without its end.
    pub fn answer(&mut self, line: &[u8]) -> String {
        let ended = panic::catch_unwind(AssertUnwindSafe(|| self.carry_out(line)));
        let error = match ended {
            Ok(Ok(answer)) => return json(&answer),
            Ok(Err(error)) => error,
            Err(panic) => {
                self.lanes = Lanes::default();
                format!("noq-fec has a bug: {}", message(panic.as_ref()))
            }
        };
        let error = error.split_whitespace().collect::<Vec<_>>().join(" ");
        json(&Refusal { number: number(line), error })
    }

    /// An error is why there can be no such trial.
    fn carry_out(&mut self, line: &[u8]) -> Result<Answer, String> {
        let task = Task::parse(line)?;
        Ok(Trial::new(task, &mut self.lanes, self.zero)?.run())
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("an answer is JSON")
}

/// The number of a task, as far as it has one.
fn number(line: &[u8]) -> Value {
    let task: Value = serde_json::from_slice(line).unwrap_or_default();
    task.get("number").filter(|number| number.is_u64()).cloned().unwrap_or_default()
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it panicked")
}
