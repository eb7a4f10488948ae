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
//! | [`settings`] | how QUIC and TLS are set up |
//! | [`socket`] | the UDP socket, waiting, signals |
//! | [`endpoint`] | client and server: joins these |

pub mod content;
pub mod contract;
pub mod endpoint;
pub mod hq;
pub mod schemes;
pub mod series;
pub mod settings;
pub mod socket;
pub mod stack;
