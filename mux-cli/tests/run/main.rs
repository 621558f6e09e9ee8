//! `mux run` against a real sshd: exactly what it prints and with which status it exits.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod agents;
mod asking;
mod audit;
mod certificates;
mod configuration;
mod directories;
mod environment;
mod failures;
mod forwarding;
mod further_keys;
mod host_keys;
mod inputs;
mod key_command;
mod keys;
mod learning;
mod learning_all;
mod limits;
mod login_matrix;
mod odd_targets;
mod openssh;
mod passwords;
mod prompts;
mod results;
mod retries;
#[path = "../rig/mod.rs"]
mod rig;
mod security_keys;
mod signatures;
mod stdin;
mod stopping;
mod streams;
mod tickets;
mod user_certificates;
