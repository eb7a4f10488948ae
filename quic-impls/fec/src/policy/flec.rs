//! The policies of FlEC (Michel et al., IEEE/ACM Transactions on Networking 31, 2023), as its public source has them.
//! There, repair symbols take the place of retransmissions, too; here, data is retransmitted.

use crate::context::{Context, Losses, Slot};
use crate::policy::Policy;
use crate::repair::Sid;
use crate::window::Flight;

/// The share of packets that are lost, and the number that are lost in a run; `None` before the first loss.
fn known(losses: &Losses) -> Option<(f64, f64)> {
    let seen = (losses.lost + losses.arrived) as f64;
    (losses.lost > 0).then(|| (losses.lost as f64 / seen, losses.lost as f64 / losses.runs.max(1) as f64))
}

/// FlEC for bulk downloads: when no data waits, one repair symbol more than a run of losses has packets, or than twice the
/// expected losses of the window if these are more; half of the window before the first loss. It waits for a tenth of a
/// round-trip time of silence, which is left out.
#[derive(Debug, Default)]
pub struct Flec;

impl Policy for Flec {
    fn due(&self, context: &Context, flight: &Flight) -> usize {
        if context.slot != Slot::Idle {
            return 0;
        }
        let symbols = flight.span() as f64;
        let expected = known(&context.losses).map_or(symbols / 2.0, |(share, run)| run.max(2.0 * share * symbols));
        (1 + expected as usize).saturating_sub(flight.repairs().len()).min(flight.most_repairs())
    }
}

/// FlEC for receivers with little memory: in the stream, too, after as many symbols as there are between two losses.
#[derive(Debug, Default)]
pub struct FlecLimited {
    /// Symbols sent since repair symbols were last due.
    unprotected: usize,
    /// Repair symbols that are due for them.
    owed: usize,
}

impl FlecLimited {
    fn owed(&self, context: &Context, flight: &Flight) -> usize {
        let (share, run) = known(&context.losses).unwrap_or((0.0, 1.0));
        let begins = if share > 0.0 { share / run } else { 0.0 }; // of a run of losses
        let enough = if begins > 0.0 { flight.span().min((1.0 / begins) as usize) } else { flight.span() };
        let is_time = self.unprotected >= enough.max(1) || context.slot == Slot::Idle;
        let lost = if run > 1.0 { run } else { 0.0 };
        match self.unprotected > 0 && is_time {
            true => 1 + lost.max(self.unprotected as f64 * share) as usize,
            false => self.owed,
        }
    }
}

impl Policy for FlecLimited {
    fn waits_for_idleness(&self) -> bool {
        false
    }

    fn yields(&self) -> bool {
        false
    }

    fn due(&self, context: &Context, flight: &Flight) -> usize {
        if context.slot == Slot::Probe {
            return 0;
        }
        let share = known(&context.losses).map_or(0.0, |(share, _)| share);
        let most = 2 * (share * flight.span() as f64).max(1.0) as usize;
        self.owed(context, flight).min(most.saturating_sub(flight.repairs().len())).min(flight.most_repairs())
    }

    fn on_sent(&mut self, _sid: Sid) {
        self.unprotected += 1;
    }

    fn on_repair(&mut self, context: &Context, flight: &Flight) {
        self.owed = self.owed(context, flight) - 1;
        self.unprotected = 0;
    }

    fn on_empty(&mut self) {
        *self = FlecLimited::default();
    }
}
