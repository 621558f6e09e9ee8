//! Runs commands on fleets of machines: the parts that the `mux` binary is made of.

pub mod audit;
pub mod daemon;
pub mod exit;
pub mod files;
pub mod flags;
pub mod hub;
pub mod keyring;
pub mod output;
pub mod plan;
pub mod pool;
pub mod preferences;
pub mod run;
pub mod state;
pub mod targets;
mod words;
pub mod writer;
