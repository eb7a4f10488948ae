//! What a trial is asked for. A task that is wrong is refused with the key, its value and what would be right.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, de};
use serde_json::Value;

use super::filling::Filling;
use super::processor::Costs;
use crate::contract::{self, Assignment, Refused, Role};
use crate::implementation::Implementation;
use crate::lane::{Jitter, Losses, Outage, Pattern, Queue, Schedule, Settings};

/// Their names are in order as long as they have one digit.
const MOST_LINKS: usize = 9;

/// A task that can be carried out.
pub struct Task<I: Implementation> {
    pub number: u64,
    /// The first is measured; a second one fills the link before.
    pub pairs: Vec<Pair<I>>,
    /// In the order of their names: one, or those of paths 1, 2 and so on.
    pub links: Vec<Link>,
    pub timeout: Duration,
    pub seed: u64,
    /// When the link counts as full; there for two pairs.
    pub filling: Option<Filling>,
    pub costs: Costs,
    /// Where packets are recorded, if they are; QUIC's log and TLS secrets are then, too.
    pub capture: Option<PathBuf>,
}

pub struct Link {
    pub name: String,
    pub up: Direction,
    pub down: Direction,
}

pub struct Direction {
    pub settings: Settings,
    pub outage: Option<Outage>,
}

/// What the ends of a pair are told; one that refuses it ends with that.
pub struct Pair<I: Implementation> {
    pub client: Result<Assignment<I::Options>, Refused>,
    pub server: Result<Assignment<I::Options>, Refused>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u64,
    number: u64,
    pairs: Vec<PairDocument>,
    links: BTreeMap<String, LinkDocument>,
    /// The end of our clients is their report, whichever of its metrics is asked for.
    #[serde(rename = "completion")]
    _completion: String,
    timeout_s: f64,
    seed: u64,
    filling: Option<Filling>,
    #[serde(default)]
    processor: Costs,
    capture: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PairDocument {
    client: Value,
    server: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkDocument {
    up: DirectionDocument,
    down: DirectionDocument,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DirectionDocument {
    rate_bps: u64,
    delay_ns: u64,
    queue_bytes: Option<u64>,
    queue_packets: Option<u64>,
    queue_ns: Option<u64>,
    schedule: Option<Schedule>,
    jitter: Option<Jitter>,
    #[serde(default)]
    reorder: bool,
    #[serde(default)]
    queue: QueueKind,
    outage_ns: Option<[u64; 2]>,
    losses: LossesDocument,
}

/// How a queue drops.
#[derive(Deserialize, Default, PartialEq)]
#[serde(rename_all = "lowercase")]
enum QueueKind {
    #[default]
    Droptail,
    Codel,
}

struct LossesDocument(Losses);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PatternDocument {
    pattern: String,
    packets: u64,
    repeats: bool,
    #[serde(default)]
    slot_ns: u64,
    #[serde(default)]
    seed: u64,
}

impl<'de> Deserialize<'de> for LossesDocument {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        if value.get("pattern").is_none() {
            return serde_json::from_value(value).map(|model| Self(Losses::Model(model))).map_err(de::Error::custom);
        }
        let document: PatternDocument = serde_json::from_value(value).map_err(de::Error::custom)?;
        let PatternDocument { pattern, packets, repeats, slot_ns, seed } = document;
        let bits = BASE64_STANDARD.decode(pattern).map_err(|error| de::Error::custom(format!("pattern: {error}")))?;
        Ok(Self(Losses::Pattern(Pattern { bits, packets, repeats, slot_ns, seed })))
    }
}

impl<I: Implementation> Task<I> {
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        let document: Document = serde_json::from_slice(line).map_err(|error| format!("no task: {error}"))?;
        if document.version != 1 {
            return Err(format!("version: {}; this program knows version 1", document.version));
        }
        if !(document.timeout_s > 0.0 && document.timeout_s <= 1e6) {
            return Err(format!("timeout_s: {} is not above 0 and up to 1000000", document.timeout_s));
        }
        let count = document.pairs.len();
        match (count, &document.filling) {
            (1, None) => {}
            (2, Some(filling)) => filling.check()?,
            _ => return Err(format!("pairs: {count}; there is one without filling, or two with")),
        }
        check_links(&document.links, count)?;
        let pairs: Vec<Pair<I>> = document.pairs.into_iter().map(PairDocument::pair).collect::<Result<_, _>>()?;
        check_addresses(&pairs, document.links.len())?;
        Ok(Self {
            number: document.number,
            pairs,
            links: document.links.into_iter().map(LinkDocument::link).collect::<Result<_, _>>()?,
            timeout: Duration::from_secs_f64(document.timeout_s),
            seed: document.seed,
            filling: document.filling,
            costs: document.processor,
            capture: document.capture,
        })
    }
}

/// Refuses names and numbers of links that no topology has.
fn check_links(links: &BTreeMap<String, LinkDocument>, pairs: usize) -> Result<(), String> {
    let names: Vec<_> = links.keys().map(String::as_str).collect();
    let are_paths = !names.is_empty()
        && names.len() <= MOST_LINKS
        && names.iter().zip(1..).all(|(name, n)| *name == format!("path{n}"));
    match names.len() {
        1 => Ok(()),
        _ if !are_paths => {
            Err(format!("links: {names:?}; there is one, or they are path1 to path{MOST_LINKS} at most"))
        }
        _ if pairs > 1 => Err(format!("links: {names:?}; two pairs share one")),
        _ => Ok(()),
    }
}

/// Refuses clients whose addresses are not those of the links.
fn check_addresses<I: Implementation>(pairs: &[Pair<I>], links: usize) -> Result<(), String> {
    for client in pairs.iter().filter_map(|pair| pair.client.as_ref().ok()) {
        let addresses = &client.local_addresses;
        // A client that doesn't know its addresses uses one path.
        if links > 1 && !addresses.is_empty() && addresses.len() != links {
            return Err(format!("pairs: the client has {} local_addresses, of {links} links", addresses.len()));
        }
        if let Some(address) = addresses.iter().find(|address| address.is_ipv6()) {
            return Err(format!("pairs: local_addresses: {address}: links are ones for IPv4"));
        }
    }
    Ok(())
}

impl LinkDocument {
    fn link((name, Self { up, down }): (String, Self)) -> Result<Link, String> {
        let up = up.direction().map_err(|why| format!("links.{name}.up: {why}"))?;
        let down = down.direction().map_err(|why| format!("links.{name}.down: {why}"))?;
        Ok(Link { name, up, down })
    }
}

impl PairDocument {
    fn pair<I: Implementation>(self) -> Result<Pair<I>, String> {
        let pair =
            Pair { client: contract::parse_value::<I>(self.client), server: contract::parse_value::<I>(self.server) };
        for (role, assignment) in [(Role::Client, &pair.client), (Role::Server, &pair.server)] {
            if let Ok(assignment) = assignment
                && assignment.role != role
            {
                return Err(format!("pairs: the {role} is told that it is a {}", assignment.role));
            }
        }
        if let (Ok(client), Ok(server)) = (&pair.client, &pair.server) {
            if client.address != server.address {
                return Err(format!(
                    "pairs: the client connects to {}, its server listens at {}",
                    client.address, server.address
                ));
            }
            if client.address.is_ipv6() {
                return Err(format!("pairs: address {}: the link is one for IPv4", client.address));
            }
        }
        Ok(pair)
    }
}

impl DirectionDocument {
    fn direction(self) -> Result<Direction, String> {
        let queue = match (self.queue_bytes, self.queue_packets, self.queue_ns) {
            (Some(bytes), None, None) => Queue::Bytes(bytes),
            (None, Some(packets), None) => Queue::Packets(packets),
            (None, None, Some(time_ns)) => Queue::Time(time_ns),
            given => return Err(format!("queue_bytes, queue_packets and queue_ns: {given:?}; a queue has one limit")),
        };
        let settings = Settings {
            rate_bps: self.rate_bps,
            delay_ns: self.delay_ns,
            queue,
            codel: self.queue == QueueKind::Codel,
            losses: self.losses.0,
            schedule: self.schedule,
            jitter: self.jitter,
            reorder: self.reorder,
        };
        settings.check()?;
        let outage = self.outage_ns.map(|[from_ns, to_ns]| Outage { from_ns, to_ns });
        outage.map_or(Ok(()), Outage::check)?;
        Ok(Direction { settings, outage })
    }
}
