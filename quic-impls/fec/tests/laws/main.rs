//! Laws that hold for every code and every controller.

mod recovery;
mod redundancy;
mod refusal;
mod transfer;
