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
use crate::lane::{Losses, Pattern, Queue, Settings};

/// A task that can be carried out.
pub struct Task<I: Implementation> {
    pub number: u64,
    /// The first is measured; a second one fills the link before.
    pub pairs: Vec<Pair<I>>,
    pub link: String,
    pub up: Settings,
    pub down: Settings,
    pub timeout: Duration,
    pub seed: u64,
    /// When the link counts as full; there for two pairs.
    pub filling: Option<Filling>,
    pub costs: Costs,
    /// Where packets are recorded, if they are; QUIC's log and TLS secrets are then, too.
    pub capture: Option<PathBuf>,
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
    #[serde(default)]
    queue: QueueKind,
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
}

impl<'de> Deserialize<'de> for LossesDocument {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        if value.get("pattern").is_none() {
            return serde_json::from_value(value).map(|model| Self(Losses::Model(model))).map_err(de::Error::custom);
        }
        let document: PatternDocument = serde_json::from_value(value).map_err(de::Error::custom)?;
        let PatternDocument { pattern, packets, repeats } = document;
        let bits = BASE64_STANDARD.decode(pattern).map_err(|error| de::Error::custom(format!("pattern: {error}")))?;
        Ok(Self(Losses::Pattern(Pattern { bits, packets, repeats })))
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
        let names: Vec<_> = document.links.keys().map(String::as_str).collect();
        if names.len() != 1 {
            return Err(format!("links: {names:?}; all pairs share one"));
        }
        let (link, LinkDocument { up, down }) = document.links.into_iter().next().expect("there is one");
        Ok(Self {
            number: document.number,
            pairs: document.pairs.into_iter().map(PairDocument::pair).collect::<Result<_, _>>()?,
            up: up.settings().map_err(|why| format!("links.{link}.up: {why}"))?,
            down: down.settings().map_err(|why| format!("links.{link}.down: {why}"))?,
            link,
            timeout: Duration::from_secs_f64(document.timeout_s),
            seed: document.seed,
            filling: document.filling,
            costs: document.processor,
            capture: document.capture,
        })
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
    fn settings(self) -> Result<Settings, String> {
        let queue = match (self.queue_bytes, self.queue_packets) {
            (Some(bytes), None) => Queue::Bytes(bytes),
            (None, Some(packets)) => Queue::Packets(packets),
            given => return Err(format!("queue_bytes and queue_packets: {given:?}; a queue has one limit")),
        };
        let settings = Settings {
            rate_bps: self.rate_bps,
            delay_ns: self.delay_ns,
            queue,
            codel: self.queue == QueueKind::Codel,
            losses: self.losses.0,
        };
        settings.check()?;
        Ok(settings)
    }
}
