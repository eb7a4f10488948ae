//! When QUIRL sends repair symbols, as its public source has it.

use crate::context::{Context, Losses, Slot};
use crate::policy::Policy;
use crate::repair::Sid;
use crate::window::Flight;

/// Fewer bytes than this get the larger share.
const SHORT: u64 = 15_000;

/// QUIRL's `background`: when no data waits, four fifths of the bytes in flight as repair, and half of them above
/// [`SHORT`]. It waits for 2 ms of silence, which is left out.
#[derive(Debug, Default)]
pub struct Quirl;

impl Policy for Quirl {
    fn due(&self, context: &Context, flight: &Flight) -> usize {
        if context.slot != Slot::Idle || context.in_flight < context.packet_size {
            return 0;
        }
        let most = if context.in_flight < SHORT { context.in_flight * 4 / 5 } else { context.in_flight / 2 };
        let wanted = most.div_ceil(context.packet_size.max(1)) as usize;
        wanted.saturating_sub(flight.repairs().len()).min(flight.most_repairs())
    }
}

/// QUIRL's `bursts`: the same after more than [`SHORT`] bytes without a pause, for what was sent since the last repair
/// symbol: the packets that a round-trip time loses on average and twice their variance, at most half of them.
#[derive(Debug, Default)]
pub struct QuirlBursts {
    /// Symbols sent since no data waited.
    burst: usize,
    /// Symbols of the burst that is being repaired, and its repair symbols so far.
    repaired: usize,
    repairs: usize,
}

/// How many packets a round-trip time loses on average, and twice the variance, as if losses came one by one.
fn lost_in(packets: f64, losses: &Losses) -> f64 {
    let share = losses.lost as f64 / (losses.lost + losses.arrived).max(1) as f64;
    packets * share + 2.0 * (packets * share * (1.0 - share)).ceil()
}

impl QuirlBursts {
    fn wanted(&self, context: &Context, symbols: usize) -> usize {
        let size = context.packet_size.max(1);
        let bytes = context.in_flight.min(symbols as u64 * size);
        if symbols as u64 * size <= SHORT {
            return 0;
        }
        let half = (bytes / 2).div_ceil(size) as usize;
        if context.losses.lost == 0 {
            half
        } else {
            half.min(lost_in(bytes as f64 / size as f64, &context.losses) as usize)
        }
    }
}

impl Policy for QuirlBursts {
    fn due(&self, context: &Context, flight: &Flight) -> usize {
        if context.slot != Slot::Idle {
            return 0;
        }
        let (symbols, sent) = if self.burst > 0 { (self.burst, 0) } else { (self.repaired, self.repairs) };
        self.wanted(context, symbols).saturating_sub(sent).min(flight.most_repairs())
    }

    fn on_sent(&mut self, _sid: Sid) {
        self.burst += 1;
    }

    fn on_repair(&mut self, _context: &Context, _flight: &Flight) {
        if self.burst > 0 {
            (self.repaired, self.repairs, self.burst) = (self.burst, 0, 0);
        }
        self.repairs += 1;
    }

    fn on_empty(&mut self) {
        *self = QuirlBursts::default();
    }
}
