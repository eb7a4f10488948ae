//! The options of impl.toml.

use host::contract::{Result, Values};
use quiche::CongestionControlAlgorithm;

#[derive(Debug, Clone, Copy)]
pub struct Options {
    pub congestion_control: CongestionControlAlgorithm,
    /// Initial window in packets.
    pub initial_window: usize,
    /// The largest QUIC packet in bytes.
    pub packet_size: usize,
}

impl Options {
    pub fn parse(values: &mut Values) -> Result<Self> {
        let controllers = [
            ("cubic", CongestionControlAlgorithm::CUBIC),
            ("reno", CongestionControlAlgorithm::Reno),
            ("bbr2", CongestionControlAlgorithm::Bbr2Gcongestion),
        ];
        Ok(Self {
            congestion_control: values.choice("congestion_control", &controllers)?,
            initial_window: values.option("initial_window")? as usize,
            packet_size: values.option("packet_size")? as usize,
        })
    }
}
