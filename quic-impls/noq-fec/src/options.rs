//! The options of impl.toml. Options that don't fit together are refused.

use fec::Code;
use host::coding::{Coding, Redundancy};
use host::contract::{Result, Values, wrong};
use noq_proto::AckPath;
use noq_proto::fec::RepairPath;

use crate::ends::MessageEnds;
use crate::paths;
use crate::scheduler::Scheduling;
use crate::schemes::{Complaints, Schemes, SourceSymbols};

/// In quarters of a congestion window per round-trip time: RFC 9002, section 7.7.
const DEFAULT_PACING: u32 = 5;

/// Source symbols that a decoder looks back over between several paths: 100 ms at 100 Mbps, and more than twice any
/// window.
const BETWEEN_PATHS: usize = 1024;

/// The options of impl.toml.
#[derive(Debug, Clone)]
pub struct Options {
    /// Number of paths of a connection, each from an address of the client's own.
    pub paths: usize,
    pub scheduler: Scheduling,
    pub ack_path: AckPath,
    /// None turns FEC off.
    pub schemes: Option<Schemes>,
    pub congestion_control: CongestionControl,
    /// In bytes.
    pub initial_window: u64,
    /// Quarters of a congestion window per round-trip time.
    pub slow_start_pacing: u32,
    pub http: Http,
    pub packet_size: u16,
    /// Whether datagrams can be marked, and marks count as losses for congestion control.
    pub ecn: bool,
}

/// The application protocol of transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Http {
    /// hq-interop.
    Hq,
    /// HTTP/3.
    H3,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CongestionControl {
    Cubic,
    /// Cubic that answers for two connections: a loss takes half as much of the window.
    CubicOfTwo,
    NewReno,
    /// For L4S: it answers to the share of packets that queues mark.
    Prague,
    Bbr3,
    /// Coupled: the paths of a connection have it in common.
    Olia,
    /// Neither a window nor pacing.
    None,
}

impl Options {
    /// Takes them out of the values.
    pub fn parse(values: &mut Values) -> Result<Self> {
        let codes = [
            ("none", None),
            ("xor", Some(Code::Xor)),
            ("rs", Some(Code::ReedSolomon)),
            ("rlc", Some(Code::RLC)),
            ("vandermonde", Some(Code::Vandermonde)),
            ("tetrys", Some(Code::Vandermonde)), // its older name
        ];
        let code = values.choice("scheme", &codes)?;
        let coding = Coding::parse(values, code.unwrap_or(Code::RLC))?;
        let window_trim = values.boolean("window_trim")?;
        let redundancy = values.choice("controller", &Redundancy::choices())?;
        let recovered = [
            ("notify", (false, false, false)),
            ("notify_at_once", (false, true, false)),
            ("notify_until_acknowledged", (false, true, true)),
            ("mask", (true, false, false)),
        ];
        let (masks_losses, tells_losses_at_once, repeats_until_acknowledged) =
            values.choice("recovered", &recovered)?;
        let paths = values.integer("paths", 1, paths::MOST as u64)? as usize;
        let source_symbols = values.choice(
            "source_symbols",
            &[
                ("auto", None),
                ("implicit", Some(SourceSymbols::Implicit)),
                ("explicit", Some(SourceSymbols::Explicit)),
                ("short", Some(SourceSymbols::Short)),
            ],
        )?;
        let repair_path = values.choice("repair_path", &[("any", RepairPath::Any), ("other", RepairPath::Other)])?;
        let look_back = look_back(values, paths, coding.span().max(coding.window))?;
        let packet_size = values.option("packet_size")? as u16;
        let options = Self {
            paths,
            scheduler: values.choice(
                "scheduler",
                &[
                    ("lowest-id", Scheduling::LowestId),
                    ("round-robin", Scheduling::RoundRobin),
                    ("lowest-rtt", Scheduling::LowestRtt),
                    ("highrb", Scheduling::HighRb),
                    ("redundant", Scheduling::Redundant),
                    ("ecf", Scheduling::Ecf),
                ],
            )?,
            ack_path: values.choice(
                "ack_path",
                &[("same", AckPath::Same), ("lowest-rtt", AckPath::LowestRtt), ("any", AckPath::Any)],
            )?,
            schemes: code.map(|_| Schemes {
                coding: Coding { window_trim, redundancy, ..coding },
                ends: MessageEnds::default(),
                masks_losses,
                tells_losses_at_once,
                repeats_until_acknowledged,
                repair_path,
                source_symbols: source_symbols.unwrap_or(match redundancy.is_ours() {
                    true => SourceSymbols::Implicit,
                    false => SourceSymbols::Explicit,
                }),
                look_back,
                complaints: Complaints::default(),
            }),
            congestion_control: values.choice(
                "congestion_control",
                &[
                    ("cubic", CongestionControl::Cubic),
                    ("cubic2", CongestionControl::CubicOfTwo),
                    ("newreno", CongestionControl::NewReno),
                    ("prague", CongestionControl::Prague),
                    ("bbr3", CongestionControl::Bbr3),
                    ("olia", CongestionControl::Olia),
                    ("none", CongestionControl::None),
                ],
            )?,
            initial_window: initial_window(values, packet_size)?,
            slow_start_pacing: values.choice("slow_start_pacing", &[("1.25", DEFAULT_PACING), ("2", 8)])?,
            http: values.choice("http", &[("hq", Http::Hq), ("h3", Http::H3)])?,
            packet_size,
            ecn: values.boolean("ecn")?,
        };
        let paces_itself = match options.congestion_control {
            CongestionControl::Bbr3 => Some("bbr3 has a pace of its own"),
            CongestionControl::Prague => Some("prague has a pace of its own"),
            CongestionControl::None => Some("without congestion control there is no slow start"),
            CongestionControl::Cubic
            | CongestionControl::CubicOfTwo
            | CongestionControl::NewReno
            | CongestionControl::Olia => None,
        };
        if let Some(why) = paces_itself
            && options.slow_start_pacing != DEFAULT_PACING
        {
            return wrong(format!("options: slow_start_pacing = \"2\": {why}, so it must be \"1.25\""));
        }
        if let Some(schemes) = &options.schemes {
            if options.paths > 1 && schemes.masks_losses {
                return wrong(
                    "options: recovered = \"mask\": with several paths, a packet that was recovered may still be on its way, so \
                     it must be \"notify\" or \"notify_at_once\"",
                );
            }
            schemes.coding.check()?;
        }
        Ok(options)
    }
}

/// Over how many source symbols a decoder looks back if that is not twice its window. Between several paths, symbols are late.
fn look_back(values: &mut Values, paths: usize, window: usize) -> Result<Option<usize>> {
    let look_back = values.integer("look_back", 0, fec::MAX_LOOK_BACK as u64)? as usize;
    let least = 2 * window;
    match look_back {
        0 => Ok((paths > 1).then_some(BETWEEN_PATHS)),
        _ if look_back < least => wrong(format!(
            "options.look_back: {look_back} is neither 0 nor {least} or more, which is twice the packets that a repair symbol \
             protects"
        )),
        _ => Ok(Some(look_back)),
    }
}

/// In bytes, whichever of its two options says it.
fn initial_window(values: &mut Values, packet_size: u16) -> Result<u64> {
    let packets = values.option("initial_window")?;
    let bytes = values.option("initial_window_bytes")?;
    let packet_size = u64::from(packet_size);
    match bytes {
        0 => Ok(packets * packet_size),
        // Room for the end of the handshake, some data and its repair symbol.
        _ if bytes < 4 * packet_size => {
            let least = 4 * packet_size;
            wrong(format!(
                "options.initial_window_bytes: {bytes} is neither 0 nor {least} or more, which is four packets"
            ))
        }
        _ => Ok(bytes),
    }
}
