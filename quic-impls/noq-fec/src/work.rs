//! The work of connections: the trait of what an endpoint serves, and noq-fec's own workloads.

use std::time::Instant;

use host::contract::{Metrics, Workload};
use host::implementation::Host;
use host::messages::{self, Delivery, Messages, Recorded};
use host::times;
use noq_proto::Connection;

use crate::hq_interop::{Answers, Request, Requests};
use crate::messages::Exchange;
use crate::options::Http;
use crate::sent::Progress;
use crate::stack::{Application, Counters, Stack};
use crate::{Assignment, h3};

/// The application of a connection, as an endpoint uses it. Errors are one line.
pub trait Work: Application + Sized + 'static {
    /// The name of the implementation.
    const NAME: &'static str;

    /// `start` is when the endpoint began.
    fn of_client(assignment: &Assignment, start: Instant) -> Self;

    /// `start` is when its connection began.
    fn of_server(assignment: &Assignment, start: Instant) -> Self;

    /// Returns when the handshake was complete.
    fn connected(&self) -> Option<Instant>;

    /// Takes the time of its end and its outcome, if it has ended.
    fn take_outcome(&mut self) -> Option<(Instant, Result<(), String>)>;

    /// Takes the reasons for which requests were refused, a line each.
    fn take_refusals(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Reads what it is asked for in the course of the trial.
    fn read(&mut self, _host: &mut impl Host) -> Result<(), String> {
        Ok(())
    }

    /// Says what has become of that.
    fn say(&mut self, _host: &mut impl Host) -> Result<(), String> {
        Ok(())
    }

    /// Writes the series of its workload, if it was asked for.
    fn leave_series(assignment: &Assignment, stack: &Stack<Self>, host: &impl Host) -> Result<(), String>;

    /// Adds the metrics of its workload.
    fn add_metrics(assignment: &Assignment, stack: &Stack<Self>, counters: &Counters, metrics: &mut Metrics);
}

/// The work of a connection of noq-fec.
pub enum AnyWork {
    Request(Request),
    Answers(Answers),
    Http3Request(Box<h3::Request>),
    Http3Answers(Box<h3::Answers>),
    Requests(Requests),
    Http3Requests(Box<h3::Requests>),
    Exchange(Exchange),
}

impl AnyWork {
    fn application(&mut self) -> &mut dyn Application {
        match self {
            Self::Request(request) => request,
            Self::Answers(answers) => answers,
            Self::Http3Request(request) => request.as_mut(),
            Self::Http3Answers(answers) => answers.as_mut(),
            Self::Requests(requests) => requests,
            Self::Http3Requests(requests) => requests.as_mut(),
            Self::Exchange(exchange) => exchange,
        }
    }

    fn exchange(&self) -> Option<&Exchange> {
        match self {
            Self::Exchange(exchange) => Some(exchange),
            _ => None,
        }
    }
}

impl Work for AnyWork {
    const NAME: &'static str = "noq-fec";

    fn of_client(assignment: &Assignment, start: Instant) -> Self {
        let seed = assignment.content_seed;
        match (&assignment.workload, assignment.options.http) {
            (Workload::Transfer(transfer), Http::Hq) => Self::Request(Request::new(*transfer, seed)),
            (Workload::Transfer(transfer), Http::H3) => {
                Self::Http3Request(Box::new(h3::Request::new(*transfer, seed, &assignment.server_name)))
            }
            (Workload::Requests, Http::Hq) => Self::Requests(Requests(hq::requests::Requests::new(seed))),
            (Workload::Requests, Http::H3) => {
                Self::Http3Requests(Box::new(h3::Requests::new(seed, &assignment.server_name)))
            }
            (Workload::Messages(_) | Workload::Live(_), _) => Self::of_server(assignment, start),
        }
    }

    fn of_server(assignment: &Assignment, _start: Instant) -> Self {
        let seed = assignment.content_seed;
        match (&assignment.workload, assignment.options.http) {
            (Workload::Transfer(_) | Workload::Requests, Http::Hq) => Self::Answers(Answers::new(seed)),
            (Workload::Transfer(_) | Workload::Requests, Http::H3) => {
                Self::Http3Answers(Box::new(h3::Answers::new(seed)))
            }
            (Workload::Messages(messages), _) => Self::Exchange(Exchange::new(assignment.role, messages.clone(), seed)),
            (Workload::Live(_), _) => {
                unreachable!("the contract refuses a workload that an implementation does not name")
            }
        }
    }

    fn connected(&self) -> Option<Instant> {
        match self {
            Self::Request(Request(request)) => request.connected,
            Self::Http3Request(request) => request.connected,
            Self::Requests(Requests(requests)) => requests.list.connected,
            Self::Http3Requests(requests) => requests.list.connected,
            Self::Answers(_) | Self::Http3Answers(_) => None,
            Self::Exchange(exchange) => exchange.connected,
        }
    }

    fn take_outcome(&mut self) -> Option<(Instant, Result<(), String>)> {
        match self {
            Self::Request(Request(request)) => request.outcome.take(),
            Self::Http3Request(request) => request.outcome.take(),
            Self::Requests(Requests(requests)) => requests.list.outcome(),
            Self::Http3Requests(requests) => requests.list.outcome(),
            Self::Answers(_) | Self::Http3Answers(_) => None,
            Self::Exchange(exchange) => exchange.outcome.take(),
        }
    }

    fn take_refusals(&mut self) -> Vec<String> {
        match self {
            Self::Answers(answers) => std::mem::take(&mut answers.refusals),
            Self::Http3Answers(answers) => std::mem::take(&mut answers.refusals),
            _ => Vec::new(),
        }
    }

    fn read(&mut self, host: &mut impl Host) -> Result<(), String> {
        match self {
            Self::Requests(Requests(requests)) => requests.list.read(host),
            Self::Http3Requests(requests) => requests.list.read(host),
            _ => Ok(()),
        }
    }

    fn say(&mut self, host: &mut impl Host) -> Result<(), String> {
        match self {
            Self::Requests(Requests(requests)) => requests.list.say(host),
            Self::Http3Requests(requests) => requests.list.say(host),
            _ => Ok(()),
        }
    }

    fn leave_series(assignment: &Assignment, stack: &Stack<Self>, host: &impl Host) -> Result<(), String> {
        let Some(path) = assignment.series(messages::NAME) else {
            return Ok(());
        };
        let recorded = stack.numbered().filter_map(|(connection, work)| {
            let (log, begun) = work.exchange()?.log();
            Some(Recorded { connection, begun, log })
        });
        let recorded: Vec<_> = recorded.collect();
        let start = stack.start().unwrap_or_else(|| host.now());
        let messages: Option<&Messages> = assignment.workload.messages();
        times::write_series(&path, assignment.role, messages, start, &recorded, |time| host.monotonic(time))
    }

    fn add_metrics(assignment: &Assignment, stack: &Stack<Self>, counters: &Counters, metrics: &mut Metrics) {
        let Some(messages) = assignment.workload.messages() else {
            return;
        };
        let exchanges = || stack.numbered().filter_map(|(_, work)| work.exchange());
        match messages.delivery {
            Delivery::Deadline(_) => {
                let reset: u64 = exchanges().map(Exchange::messages_reset).sum();
                metrics.insert("messages_reset", reset as f64);
            }
            Delivery::Datagram if messages.sender() == assignment.role => {
                let handed_over: u64 = exchanges().map(|exchange| exchange.log().0.parts()).sum();
                metrics.insert("datagrams_unsent", handed_over as f64 - counters.datagrams_sent as f64);
            }
            _ => {}
        }
    }
}

impl Application for AnyWork {
    fn on_event(&mut self, now: Instant, connection: &mut Connection, event: noq_proto::Event) {
        self.application().on_event(now, connection, event);
    }

    fn content(&self, connection: &mut Connection) -> Progress {
        match self {
            Self::Request(request) => request.content(connection),
            Self::Answers(answers) => answers.content(connection),
            Self::Http3Request(request) => request.content(connection),
            Self::Http3Answers(answers) => answers.content(connection),
            Self::Requests(_) | Self::Http3Requests(_) | Self::Exchange(_) => Progress::Nothing,
        }
    }

    fn timeout(&self) -> Option<Instant> {
        match self {
            Self::Requests(requests) => requests.timeout(),
            Self::Http3Requests(requests) => requests.timeout(),
            _ => self.exchange().and_then(Exchange::timeout),
        }
    }

    fn on_timeout(&mut self, now: Instant, connection: &mut Connection) {
        self.application().on_timeout(now, connection);
    }
}
