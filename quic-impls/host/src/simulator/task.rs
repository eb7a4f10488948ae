//! The task of a trial. A wrong task is refused with the key, its value and what would be right.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::filling::Filling;
use super::processor::Costs;
use crate::contract::{self, Assignment, Refused};
use crate::implementation::Implementation;

/// Their names are in order as long as they have one digit.
const MOST_LINKS: usize = 9;

/// The links beside a relay: from the client to it, and from it to the server.
const HOPS: [&str; 2] = ["access", "backbone"];

/// Version of the contract with simulators.
const VERSION: u64 = 2;

/// A task that can be carried out.
pub struct Task<I: Implementation> {
    pub number: u64,
    /// The first is measured; a second one fills the link before.
    pub pairs: Vec<Pair<I>>,
    /// The links in the order of their names: one link, those of paths 1, 2 and so on, or the two hops beside a relay, that of
    /// the client first.
    pub links: Vec<Link>,
    pub timeout: Duration,
    pub seed: u64,
    /// The condition for a full link; present for two pairs.
    pub filling: Option<Filling>,
    pub costs: Costs,
    /// Folder for captures, if packets are recorded; it then gets qlog and TLS secrets, too.
    pub capture: Option<PathBuf>,
}

pub struct Link {
    pub name: String,
    pub directions: Directions,
}

/// The texts of both directions for [`crate::lane::Lane::begin`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Directions {
    pub up: String,
    pub down: String,
}

/// Assignments of the ends of a pair; an end that refuses its own ends with that.
pub struct Pair<I: Implementation> {
    pub client: Result<Assignment<I::Options>, Refused>,
    /// The relay between both, if there is one.
    pub relay: Option<Result<Assignment<I::Options>, Refused>>,
    pub server: Result<Assignment<I::Options>, Refused>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u64,
    number: u64,
    pairs: Vec<PairDocument>,
    links: BTreeMap<String, Directions>,
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
    relay: Option<Value>,
    server: Value,
}

impl<I: Implementation> Task<I> {
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        let document: Document = serde_json::from_slice(line)
            .map_err(|error| check_version(line).err().unwrap_or_else(|| format!("no task: {error}")))?;
        require_version(document.version)?;
        if !(document.timeout_s > 0.0 && document.timeout_s <= 1e6) {
            return Err(format!("timeout_s: {} is not above 0 and up to 1000000", document.timeout_s));
        }
        let count = document.pairs.len();
        match (count, &document.filling) {
            (1, None) => {}
            (2, Some(filling)) => filling.check()?,
            _ => return Err(format!("pairs: {count}; there is one without filling, or two with")),
        }
        let is_relayed = document.pairs.iter().any(|pair| pair.relay.is_some());
        if is_relayed && count > 1 {
            return Err("pairs: there is a relay in one of two pairs; it needs one alone".into());
        }
        check_links(&document.links, count, is_relayed)?;
        let pairs: Vec<Pair<I>> = document.pairs.into_iter().map(PairDocument::pair).collect::<Result<_, _>>()?;
        check_addresses(&pairs, if is_relayed { 1 } else { document.links.len() })?;
        Ok(Self {
            number: document.number,
            pairs,
            links: document.links.into_iter().map(|(name, directions)| Link { name, directions }).collect(),
            timeout: Duration::from_secs_f64(document.timeout_s),
            seed: document.seed,
            filling: document.filling,
            costs: document.processor,
            capture: document.capture,
        })
    }
}

/// A task of another version has other fields, too: its version is wrong, not these.
fn check_version(line: &[u8]) -> Result<(), String> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u64,
    }
    serde_json::from_slice(line).map_or(Ok(()), |Versioned { version }| require_version(version))
}

fn require_version(version: u64) -> Result<(), String> {
    match version {
        VERSION => Ok(()),
        _ => Err(format!("version: {version}; this program knows version {VERSION}")),
    }
}

/// Refuses names and numbers of links that no topology has.
fn check_links(links: &BTreeMap<String, Directions>, pairs: usize, is_relayed: bool) -> Result<(), String> {
    let names: Vec<_> = links.keys().map(String::as_str).collect();
    if is_relayed {
        let are_hops = names == HOPS;
        return are_hops.then_some(()).ok_or_else(|| format!("links: {names:?}; beside a relay they are {HOPS:?}"));
    }
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
        if let Some(address) = addresses.iter().find(|address| address.is_ipv6() != client.address.is_ipv6()) {
            let server = client.address;
            return Err(format!("pairs: local_addresses: {address}: the server, {server}, is of another family"));
        }
    }
    Ok(())
}

impl PairDocument {
    fn pair<I: Implementation>(self) -> Result<Pair<I>, String> {
        let pair = Pair::<I> {
            client: contract::parse_value::<I>(self.client),
            relay: self.relay.map(contract::parse_value::<I>),
            server: contract::parse_value::<I>(self.server),
        };
        let (client, relay) = (pair.client.as_ref().ok(), pair.relay.as_ref().and_then(|relay| relay.as_ref().ok()));
        let server = pair.server.as_ref().ok();
        for (place, assignment) in [("client", client), (contract::RELAY, relay), ("server", server)] {
            if let Some(assignment) = assignment
                && assignment.place() != place
            {
                return Err(format!("pairs: the {place} is told that it is a {}", assignment.place()));
            }
        }
        let hops = match &pair.relay {
            None => vec![("client", client, "server", server)],
            Some(_) => {
                let upstream = relay.and_then(|relay| relay.upstream.as_deref());
                vec![("client", client, "relay", relay), ("relay", upstream, "server", server)]
            }
        };
        for (from, dialling, to, listening) in hops {
            if let (Some(dialling), Some(listening)) = (dialling, listening)
                && dialling.address != listening.address
            {
                return Err(format!(
                    "pairs: the {from} connects to {}, its {to} listens at {}",
                    dialling.address, listening.address
                ));
            }
        }
        Ok(pair)
    }
}
