//! Runs commands on fleets of machines: the parts that the `mux` binary is made of.

pub mod exit;
pub mod flags;
pub mod hub;
pub mod output;
pub mod plan;
pub mod targets;
pub mod writer;
