//! Client and server: a stack over a socket, in one thread.

use std::fs::File;
use std::io::{self, BufWriter};
use std::time::Instant;

use noq_proto::{EndpointConfig, ServerConfig, VarInt};

use crate::contract::{self, Assignment, Metrics, Role};
use crate::hq::{Answers, Request};
use crate::settings;
use crate::socket::{Socket, Woken};
use crate::stack::{Application, Stack};

/// Datagrams that are received before others are sent.
const BATCH: usize = 64;

/// Does what an assignment says, and writes the contract's events. A server serves until a signal
/// ends it; a client fails then. An error is one line.
pub fn run(assignment: &Assignment) -> Result<(), String> {
    match assignment.role {
        Role::Client => fetch(assignment),
        Role::Server => serve(assignment),
    }
}

fn fetch(assignment: &Assignment) -> Result<(), String> {
    let config = settings::client(assignment)?;
    let mut socket = Socket::towards(assignment.address).map_err(|error| format!("no socket: {error}"))?;
    let mut stack = stack_of(assignment, None);
    let request = Request::new(assignment.workload, assignment.content_seed);
    let start = Instant::now();
    stack
        .connect(start, config, assignment.address, &assignment.server_name, request)
        .map_err(|error| format!("cannot connect to {}: {error}", assignment.address))?;
    let deadline = start + assignment.deadline;
    let outcome = loop {
        transmit(&mut stack, &mut socket)?;
        if let Some((end, outcome)) = stack.applications().find_map(|request| request.outcome.take()) {
            break outcome.map(|()| end);
        }
        let now = Instant::now();
        if now >= deadline {
            let limit = assignment.deadline.as_secs_f64();
            break Err(format!("{}: not done within the deadline of {limit} s", assignment.workload));
        }
        let until = stack.timeout().map_or(deadline, |timeout| timeout.min(deadline));
        if wait(&socket, until)? == Woken::Signal {
            break Err(format!("{}: ended by a signal", assignment.workload));
        }
        receive(&mut stack, &mut socket, || unreachable!("a client accepts no connection"))?;
    };
    stack.close(Instant::now(), VarInt::from_u32(0), "");
    let connected = stack.applications().find_map(|request| request.connected);
    transmit(&mut stack, &mut socket)?;
    let reported = outcome.and_then(|end| {
        let mut metrics = metrics(&mut stack, &socket);
        let connected = connected.expect("a transfer ends after its handshake");
        metrics.insert("dct_s", (end - start).as_secs_f64());
        metrics.insert("handshake_s", (connected - start).as_secs_f64());
        on_standard_output(contract::done(&mut io::stdout(), &metrics))
    });
    // A transfer that failed leaves its series, too.
    reported.and(leave_series(assignment, &stack))
}

fn serve(assignment: &Assignment) -> Result<(), String> {
    let config = settings::server(assignment)?;
    let mut socket = Socket::listen(assignment.address)
        .map_err(|error| format!("cannot listen at {}: {error}", assignment.address))?;
    let mut stack = stack_of(assignment, Some(config));
    on_standard_output(contract::ready(&mut io::stdout()))?;
    loop {
        transmit(&mut stack, &mut socket)?;
        let woken = match stack.timeout() {
            Some(timeout) => wait(&socket, timeout)?,
            None => socket.wait(None).map_err(|error| format!("cannot wait: {error}"))?,
        };
        // What arrived before a signal counts.
        receive(&mut stack, &mut socket, || Answers::new(assignment.content_seed))?;
        for answers in stack.applications() {
            for refusal in answers.refusals.drain(..) {
                eprintln!("noq-fec: {refusal}");
            }
        }
        if woken == Woken::Signal {
            break;
        }
    }
    stack.close(Instant::now(), VarInt::from_u32(0), "server stopped");
    transmit(&mut stack, &mut socket)?;
    let metrics = metrics(&mut stack, &socket);
    on_standard_output(contract::done(&mut io::stdout(), &metrics))?;
    leave_series(assignment, &stack)
}

fn stack_of<A: Application>(assignment: &Assignment, server: Option<ServerConfig>) -> Stack<A> {
    let mut stack = Stack::new(EndpointConfig::default(), server);
    if assignment.cwnd_series.is_some() {
        stack.record_congestion();
    }
    stack
}

/// Writes the series that was asked for, if any.
fn leave_series<A: Application>(assignment: &Assignment, stack: &Stack<A>) -> Result<(), String> {
    let (Some(path), Some(series)) = (&assignment.cwnd_series, stack.congestion()) else {
        return Ok(());
    };
    let written = File::create(path).and_then(|file| series.write(&mut BufWriter::new(file)));
    written.map_err(|error| format!("series cwnd: {}: {error}", path.display()))
}

fn wait(socket: &Socket, until: Instant) -> Result<Woken, String> {
    socket.wait(Some(until)).map_err(|error| format!("cannot wait: {error}"))
}

/// Takes in what has arrived, and what time has brought.
fn receive<A: Application>(stack: &mut Stack<A>, socket: &mut Socket, accept: impl Fn() -> A) -> Result<(), String> {
    for _ in 0..BATCH {
        let received = socket.receive().map_err(|error| format!("cannot receive: {error}"))?;
        let Some((from, datagram)) = received else {
            break;
        };
        // Each has its own time: the last one of a batch may be what ends the transfer.
        stack.receive(Instant::now(), from, datagram, &accept);
    }
    stack.on_timeout(Instant::now());
    Ok(())
}

fn transmit<A: Application>(stack: &mut Stack<A>, socket: &mut Socket) -> Result<(), String> {
    let mut buffer = Vec::new();
    while let Some(to) = stack.transmit(Instant::now(), &mut buffer) {
        socket.send(&buffer, to).map_err(|error| format!("cannot send to {to}: {error}"))?;
    }
    Ok(())
}

fn on_standard_output(result: io::Result<()>) -> Result<(), String> {
    result.map_err(|error| format!("standard output: {error}"))
}

/// Those of the contract that both roles have. Bytes are all UDP payload that passed the socket.
fn metrics<A: Application>(stack: &mut Stack<A>, socket: &Socket) -> Metrics {
    let counters = stack.counters();
    let never_came = counters.recovered - counters.recovered_spurious;
    Metrics::from([
        ("packets_sent", counters.packets_sent as f64),
        ("packets_lost", counters.packets_lost as f64),
        ("packets_received", (counters.packets_received + never_came) as f64),
        ("bytes_sent", socket.bytes_sent as f64),
        ("bytes_received", socket.bytes_received as f64),
        ("smoothed_rtt_ms", counters.smoothed_rtt_ms),
        ("spurious_losses", counters.spurious_losses as f64),
        ("window_reductions", counters.window_reductions as f64),
        ("window_restorations", counters.window_restorations as f64),
        ("congestion_window_bytes", counters.congestion_window as f64),
        ("source_sent", counters.source_sent as f64),
        ("repair_sent", counters.repair_sent as f64),
        ("source_received", counters.source_received as f64),
        ("repair_received", counters.repair_received as f64),
        ("packets_recovered", never_came as f64),
        ("recovered_spurious", counters.recovered_spurious as f64),
        // Each symbol recovered took one repair symbol: one equation for one unknown.
        ("repair_useless", (counters.repair_received - counters.recovered) as f64),
        ("recovered_late", counters.recovered_late as f64),
        ("recovered_by_peer", counters.recovered_by_peer as f64),
        ("useless_retransmissions", counters.useless_retransmissions as f64),
    ])
}
