//! Every decoder of the workspace behind libFuzzer, in one binary: the target is named by `MUX_FUZZ_TARGET`.
//!
//! One binary because instrumented builds are slow and the targets share all their code. `cargo xtask fuzz` builds it
//! with the right flags and runs it. A target decides nothing: it hands bytes to a decoder, which must not panic.

#![no_main]

mod command_line;
mod framed;
mod misbehaviour;

use std::sync::OnceLock;
use std::time::Instant;

use mux_ssh::fuzzing as ssh;

type Decoder = fn(&[u8]);

/// Every target. `cargo xtask fuzz` learns the names from here.
const TARGETS: &[(&str, Decoder)] = &[
    ("canary", canary),
    ("identification", ssh::identification),
    ("packet", ssh::packet),
    ("sealed_packet", ssh::sealed_packet),
    ("kexinit", ssh::kexinit),
    ("kex_reply", |data| ssh::kex_reply(Instant::now(), data)),
    ("kex_value", ssh::kex_value),
    ("ext_info", ssh::ext_info),
    ("transport", |data| ssh::transport(Instant::now(), data)),
    ("public_key", ssh::public_key),
    ("auth", |data| ssh::auth(Instant::now(), data)),
    ("channel", |data| ssh::channel(Instant::now(), data)),
    ("known_hosts", ssh::known_hosts),
    ("ssh_config", ssh::ssh_config),
    ("key_file", ssh::key_file),
    ("key_der", ssh::key_der),
    ("certificate", ssh::certificate),
    ("revoked_keys", ssh::revoked_keys),
    ("agent", |data| ssh::agent(Instant::now(), data)),
    ("target_syntax", command_line::target_syntax),
    ("hosts_file", command_line::hosts_file),
    ("host_memory", command_line::host_memory),
    ("output", command_line::output),
    ("misbehaviour", misbehaviour::misbehaviour),
    ("frame", framed::frame),
    ("frame_body", framed::frame_body),
    ("connection", |data| framed::connection(Instant::now(), data)),
];

static TARGET: OnceLock<Decoder> = OnceLock::new();

libfuzzer_sys::fuzz_target!(
    init: choose(),
    |data: &[u8]| {
        if let Some(target) = TARGET.get() {
            target(data);
        }
    }
);

/// Without a target's name, prints all names and leaves.
fn choose() {
    let wanted = std::env::var("MUX_FUZZ_TARGET").unwrap_or_default();
    match TARGETS.iter().find(|(name, _)| *name == wanted) {
        Some((_, target)) => {
            TARGET.get_or_init(|| *target);
        }
        None => {
            TARGETS.iter().for_each(|(name, _)| println!("{name}"));
            std::process::exit(i32::from(!wanted.is_empty()));
        }
    }
}

/// Panics on four bytes that no one guesses: it is found in seconds if, and only if, comparisons are traced,
/// coverage is counted and a panic counts as a finding. `cargo xtask fuzz` runs it first.
fn canary(data: &[u8]) {
    if let Some(word) = data.first_chunk() {
        assert_ne!(u32::from_be_bytes(*word), 0x172a_9901, "the canary was found");
    }
}
