//! QUIC with forward erasure correction inside, over noq-proto: the endpoint of fecbench.
//!
//! | module | its one job |
//! |---|---|
//! | [`contract`] | assignments, events, exit codes |
//! | [`content`] | the content of a transfer |
//! | [`hq`] | hq-interop: requests and answers, without a socket or a clock |
//! | [`stack`] | noq-proto's endpoint with its connections: datagrams and time in, datagrams out |
//! | [`schemes`] | codes and controllers as FEC schemes of noq-proto |
//! | [`series`] | congestion windows over time |
//! | [`surroundings`] | what is around an endpoint: randomness, what day it is, what it records |
//! | [`settings`] | how QUIC and TLS are set up |
//! | [`endpoint`] | client and server: joins these |
//! | [`socket`] | the UDP socket, waiting, signals |
//! | [`process`] | an endpoint over a socket |
//! | [`lane`] | one direction of the link in virtual time |
//! | [`capture`] | what a host sends and receives, as a file |
//! | [`simulator`] | whole trials: endpoints over lanes |

pub mod capture;
pub mod content;
pub mod contract;
pub mod endpoint;
pub mod hq;
pub mod lane;
pub mod process;
pub mod schemes;
pub mod series;
pub mod settings;
pub mod simulator;
pub mod socket;
pub mod stack;
pub mod surroundings;
