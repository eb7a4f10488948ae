//! Laws of connections with FEC in virtual time, over links that lose packets as told. The world of all of them is compiled once.

mod congestion;
mod datagrams;
mod hostile;
mod http3;
mod messages;
mod paths;
mod reassembly;
mod recovery;
mod restraint;
mod schedulers;
mod series;
mod traits;
mod vectors;
#[path = "../world/mod.rs"]
mod world;
