//! The base of all endpoints of fecbench in Rust: the contract, a socket with the machine's clock, and lanes in virtual
//! time. It knows no transport.
//!
//! | module | its one job |
//! |---|---|
//! | [`implementation`] | what an implementation has, and its endpoints do |
//! | [`contract`] | assignments, events, exit codes |
//! | [`content`] | the content of a transfer, its hash, and its check on arrival |
//! | [`transfer`] | the bytes that a transfer sends, and the body of an upload |
//! | [`answer`] | the answer to a client's request |
//! | [`messages`] | the workload `messages`: timetable, and the parts that arrive |
//! | [`live`] | the workload `live`: tracks of frames in groups, and the frames that arrive |
//! | [`times`] | the times of what a timetable has, as a series |
//! | [`requests`] | the workload `requests`: a client's input, requests and output |
//! | [`coding`] | the options of erasure codes, and their controllers and decoders |
//! | [`program`] | the command line |
//! | [`process`] | an endpoint over a socket, by the machine's clock |
//! | [`socket`] | the UDP socket, waiting, signals |
//! | [`lane`] | one direction of the link in virtual time |
//! | [`capture`] | the datagrams that a host sends and receives, as a file |
//! | [`simulator`] | whole trials: endpoints over lanes |
//! | [`surroundings`] | the source of randomness, and the date |
//! | [`records`] | where qlog and TLS secrets go |
//! | `tls` | TLS by rustls, with the feature of this name |

pub mod answer;
pub mod capture;
pub mod coding;
pub mod content;
pub mod contract;
pub mod implementation;
pub mod lane;
pub mod live;
pub mod messages;
pub mod process;
pub mod program;
pub mod records;
pub mod requests;
pub mod simulator;
pub mod socket;
pub mod surroundings;
pub mod times;
#[cfg(feature = "rustls")]
pub mod tls;
pub mod transfer;
