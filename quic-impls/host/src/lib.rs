//! The base of all endpoints of fecbench in Rust: the contract, a socket with the machine's clock, and lanes in virtual
//! time. It knows no transport.
//!
//! | module | its one job |
//! |---|---|
//! | [`implementation`] | what an implementation has, and its endpoints do |
//! | [`contract`] | assignments, events, exit codes |
//! | [`content`] | the content of a transfer, its hash, and whether what comes is right |
//! | [`transfer`] | what a transfer sends, and the body of an upload |
//! | [`answer`] | what a client's request is answered with |
//! | [`messages`] | the workload `messages`: timetable, what has arrived, the series |
//! | [`requests`] | the workload `requests`: what a client reads, asks for and says |
//! | [`coding`] | the options of erasure codes, and what they make |
//! | [`program`] | the command line |
//! | [`process`] | an endpoint over a socket, by the machine's clock |
//! | [`socket`] | the UDP socket, waiting, signals |
//! | [`lane`] | one direction of the link in virtual time |
//! | [`capture`] | what a host sends and receives, as a file |
//! | [`simulator`] | whole trials: endpoints over lanes |
//! | [`surroundings`] | where randomness comes from, and what day it is |
//! | [`records`] | where qlog and TLS secrets go |
//! | `tls` | TLS by rustls, with the feature of this name |

pub mod answer;
pub mod capture;
pub mod coding;
pub mod content;
pub mod contract;
pub mod implementation;
pub mod lane;
pub mod messages;
pub mod process;
pub mod program;
pub mod records;
pub mod requests;
pub mod simulator;
pub mod socket;
pub mod surroundings;
#[cfg(feature = "rustls")]
pub mod tls;
pub mod transfer;
