//! The options of impl.toml.

use host::contract::{Result, Values};

#[derive(Debug, Clone, Copy)]
pub struct Options {
    pub congestion_control: CongestionControl,
    /// Initial window in packets.
    pub initial_window: u64,
    /// The largest QUIC packet in bytes.
    pub packet_size: u16,
    /// Whether datagrams have the ECN codepoints that quinn gives them.
    pub ecn: bool,
}

#[derive(Debug, Clone, Copy)]
pub enum CongestionControl {
    Cubic,
    NewReno,
    Bbr,
}

impl Options {
    pub fn parse(values: &mut Values) -> Result<Self> {
        let controllers = [
            ("cubic", CongestionControl::Cubic),
            ("newreno", CongestionControl::NewReno),
            ("bbr", CongestionControl::Bbr),
        ];
        Ok(Self {
            congestion_control: values.choice("congestion_control", &controllers)?,
            initial_window: values.option("initial_window")?,
            packet_size: values.option("packet_size")? as u16,
            ecn: values.boolean("ecn")?,
        })
    }
}
