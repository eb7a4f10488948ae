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
use std::collections::{BTreeSet, VecDeque};
use std::io::{self, BufRead, Write};
use std::marker::PhantomData;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;

use crate::content;
use crate::contract::Role;
use crate::implementation::Implementation;
use crate::lane::Lane;
use crate::requests::Reply;
use answer::Answer;
use task::Task;
use trial::{Harness, Trial};

/// The time from 1970 to 2000, when virtual time begins.
pub const VIRTUAL_TIME_BEGINS: Duration = Duration::from_secs(946_684_800);

/// Answers tasks until their end.
pub fn run<I: Implementation>(tasks: impl BufRead, answers: impl Write) -> io::Result<()> {
    content::remember();
    let mut simulator = Simulator::<I>::default();
    let mut wire = Wire { lines: tasks, answers, ahead: VecDeque::new() };
    while let Some(line) = wire.next_task()? {
        let answer = simulator.answer(&line, &mut wire);
        wire.write(&answer)?;
    }
    Ok(())
}

/// The harness, at the other end of our input and output.
struct Wire<R, W> {
    lines: R,
    answers: W,
    /// Tasks that came before the reply that was waited for.
    ahead: VecDeque<Vec<u8>>,
}

impl<R: BufRead, W: Write> Wire<R, W> {
    fn next_task(&mut self) -> io::Result<Option<Vec<u8>>> {
        match self.ahead.pop_front() {
            Some(line) => Ok(Some(line)),
            None => self.next_line(),
        }
    }

    fn next_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        Ok((self.lines.read_until(b'\n', &mut line)? > 0).then_some(line))
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        self.answers.write_all(line.as_bytes())?;
        self.answers.write_all(b"\n")?;
        self.answers.flush()
    }
}

impl<R: BufRead, W: Write> Harness for Wire<R, W> {
    fn ask(&mut self, question: &str) -> Result<Reply, String> {
        self.write(question).map_err(|error| format!("no question can be asked: {error}"))?;
        loop {
            let line = self.next_line().map_err(|error| format!("no reply: {error}"))?;
            let line = line.ok_or("no reply: the input has ended")?;
            match serde_json::from_slice(&line) {
                Ok(reply) => return Ok(reply),
                Err(_) => self.ahead.push_back(line), // a task: it is told what is wrong with it in its turn
            }
        }
    }
}

/// The state that is kept from trial to trial.
pub struct Simulator<I> {
    implementation: PhantomData<I>,
    /// Lanes for each link that a trial has had.
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
    fn answer(&mut self, line: &[u8], harness: &mut dyn Harness) -> String {
        match self.survive(|simulator| simulator.carry_out(line, harness)) {
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
    fn carry_out(&mut self, line: &[u8], harness: &mut dyn Harness) -> Result<Answer, String> {
        let task = Task::<I>::parse(line)?;
        self.check_certificates(&task)?;
        Trial::new(task, &mut self.lanes, self.zero, harness)?.run()
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
        const DECLARED: &'static str = "";
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
        let mut simulator = Simulator::<Idle>::default();
        let error = simulator.survive(|simulator| -> Result<(), String> {
            simulator.lanes.push(Lanes::default());
            simulator.lanes[0].up.begin("rate_bps 1000\ndelay_ns 0\nqueue_packets 1\n")?;
            simulator.lanes[0].up.send(&[0; 100], 0, 0, 0);
            panic!("{} is wrong", 7)
        });
        assert_eq!(error.unwrap_err(), "idle has a bug: 7 is wrong");
        assert!(simulator.lanes.is_empty());
        assert_eq!(simulator.survive(|_| Ok(3)), Ok(3));
    }

    /// Nobody is asked.
    struct Silent;

    impl Harness for Silent {
        fn ask(&mut self, _question: &str) -> Result<Reply, String> {
            Err("nobody answers".into())
        }
    }

    #[test]
    fn a_reply_is_told_from_tasks_that_come_before_it() {
        let input = b"{\"version\": 1}\n{\"number\": 3, \"lines\": [[5, \"x\"], [9, null]]}\n";
        let mut wire = Wire { lines: &input[..], answers: Vec::new(), ahead: VecDeque::new() };
        let reply = wire.ask("what now?").unwrap();
        assert_eq!((reply.number, reply.lines), (3, vec![(5, Some("x".into())), (9, None)]));
        assert_eq!(wire.next_task().unwrap().as_deref(), Some(&b"{\"version\": 1}\n"[..]));
        assert_eq!((wire.next_task().unwrap(), &wire.answers[..]), (None, &b"what now?\n"[..]));
        assert!(wire.ask("and now?").unwrap_err().contains("has ended"));
    }

    #[test]
    fn an_error_has_the_number_of_its_task_if_that_has_one() {
        let mut simulator = Simulator::<Idle>::default();
        assert!(simulator.answer(br#"{"number": 5}"#, &mut Silent).starts_with(r#"{"number":5,"error":"no task"#));
        assert!(simulator.answer(b"five", &mut Silent).starts_with(r#"{"number":null,"error":"no task"#));
    }
}
