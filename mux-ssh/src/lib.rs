//! mux-ssh

pub mod config;
mod pattern;
