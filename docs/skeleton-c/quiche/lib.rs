// All that a C program may call is in quiche itself.
pub use quiche;
