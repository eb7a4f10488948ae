//! Whole trials in virtual time: a task is a line of JSON, and so is its answer. quic-impls/README.md has both.
//!
//! The same line has the same answer, to the byte: nothing of the real clock, of the system's randomness or of the
//! tasks before reaches one.
//!
//! | module | its one job |
//! |---|---|
//! | [`task`] | what a trial is asked for |
//! | [`trial`] | carries it out: endpoints over the lanes of links |
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
use std::collections::BTreeSet;
use std::io::{self, BufRead, Write};
use std::marker::PhantomData;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;

use crate::contract::Role;
use crate::implementation::Implementation;
use crate::lane::Lane;
use answer::Answer;
use task::Task;
use trial::Trial;

/// From 1970 to 2000, when virtual time begins.
pub const VIRTUAL_TIME_BEGINS: Duration = Duration::from_secs(946_684_800);

/// Answers tasks until their end.
pub fn run<I: Implementation>(mut tasks: impl BufRead, mut answers: impl Write) -> io::Result<()> {
    let mut simulator = Simulator::<I>::default();
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
pub struct Simulator<I> {
    implementation: PhantomData<I>,
    /// One for each link that a trial has had.
    lanes: Vec<Lanes>,
    /// The instant 0 of virtual time. Only differences to it are ever used.
    zero: Instant,
    /// Certificates and keys that were found good.
    checked: BTreeSet<[PathBuf; 2]>,
}

/// A link's two directions.
#[derive(Default)]
struct Lanes {
    up: Lane,
    down: Lane,
}

impl Lanes {
    /// The direction in which one end sends.
    fn of_sender(&mut self, role: Role) -> &mut Lane {
        match role {
            Role::Client => &mut self.up,
            Role::Server => &mut self.down,
        }
    }
}

impl<I> Default for Simulator<I> {
    fn default() -> Self {
        Self { implementation: PhantomData, lanes: Vec::new(), zero: Instant::now(), checked: BTreeSet::new() }
    }
}

#[derive(Serialize)]
struct Refusal {
    number: Value,
    error: String,
}

impl<I: Implementation> Simulator<I> {
    /// The answer to the line of a task, as a line without its end.
    pub fn answer(&mut self, line: &[u8]) -> String {
        match self.survive(|simulator| simulator.carry_out(line)) {
            Ok(answer) => json(&answer),
            Err(error) => {
                let error = error.split_whitespace().collect::<Vec<_>>().join(" ");
                json(&Refusal { number: number(line), error })
            }
        }
    }

    /// Does some work; a panic becomes its error, and nothing that it leaves is used again.
    fn survive<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        panic::catch_unwind(AssertUnwindSafe(|| work(self))).unwrap_or_else(|panic| {
            self.lanes.clear();
            Err(format!("{} has a bug: {}", I::NAME, message(panic.as_ref())))
        })
    }

    /// An error is why there can be no such trial.
    fn carry_out(&mut self, line: &[u8]) -> Result<Answer, String> {
        let task = Task::<I>::parse(line)?;
        self.check_certificates(&task)?;
        Trial::new(task, &mut self.lanes, self.zero)?.run()
    }

    /// Refuses servers that would differ from run to run. The files stay as they are while we run.
    fn check_certificates(&mut self, task: &Task<I>) -> Result<(), String> {
        for server in task.pairs.iter().filter_map(|pair| pair.server.as_ref().ok()) {
            let files = [&server.certificate, &server.private_key].map(PathBuf::clone);
            if !self.checked.contains(&files) {
                I::check_repeatable(server)?;
                self.checked.insert(files);
            }
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::contract::{self, Assignment, Values};
    use crate::implementation::{Endpoint, Host, Turn};
    use crate::lane::{Losses, Queue, Settings};

    /// An implementation whose endpoints do nothing.
    struct Idle;

    impl Endpoint for Idle {
        fn turn(&mut self, _host: &mut impl Host) -> Result<Turn, String> {
            Ok(Turn::Ended)
        }

        fn interrupt(&mut self) {}
    }

    impl Implementation for Idle {
        const NAME: &'static str = "idle";
        const WORKLOADS: &'static [&'static str] = &[];
        const SERIES: &'static [&'static str] = &[];
        const HAS_CERTIFICATES: bool = false;

        type Options = ();
        type Surroundings = ();
        type Prepared = ();
        type Endpoint = Self;

        fn options(_values: &mut Values) -> contract::Result<()> {
            Ok(())
        }

        fn settle(_assignment: &mut Assignment<()>) -> contract::Result<()> {
            Ok(())
        }

        fn surroundings() -> Result<(), String> {
            Ok(())
        }

        fn virtual_surroundings(_seed: u64, _name: &str, _logs: Option<&Path>) -> Result<(), String> {
            Ok(())
        }

        fn check_repeatable(_server: &Assignment<()>) -> Result<(), String> {
            Ok(())
        }

        fn prepare(_assignment: Assignment<()>, _surroundings: &()) -> Result<(), String> {
            Ok(())
        }

        fn start(_prepared: (), _host: &mut impl Host) -> Result<Self, String> {
            Ok(Self)
        }
    }

    #[test]
    fn a_panic_is_an_error_in_one_line_and_leaves_nothing_behind() {
        let settings =
            Settings { rate_bps: 1, delay_ns: 0, queue: Queue::Packets(1), codel: false, losses: Losses::NONE };
        let mut simulator = Simulator::<Idle>::default();
        let error = simulator.survive(|simulator| -> Result<(), String> {
            simulator.lanes.push(Lanes::default());
            simulator.lanes[0].up.begin(&settings)?;
            simulator.lanes[0].up.send(&[0; 100], 0, 0);
            panic!("{} is wrong", 7)
        });
        assert_eq!(error.unwrap_err(), "idle has a bug: 7 is wrong");
        assert!(simulator.lanes.is_empty());
        assert_eq!(simulator.survive(|_| Ok(3)), Ok(3));
    }

    #[test]
    fn an_error_has_the_number_of_its_task_if_that_has_one() {
        let mut simulator = Simulator::<Idle>::default();
        assert!(simulator.answer(br#"{"number": 5}"#).starts_with(r#"{"number":5,"error":"no task"#));
        assert!(simulator.answer(b"five").starts_with(r#"{"number":null,"error":"no task"#));
    }
}
