//! Laws that hold for every code and every controller.

mod policies;
mod quirl;
mod recovery;
mod redundancy;
mod refusal;
mod transfer;
