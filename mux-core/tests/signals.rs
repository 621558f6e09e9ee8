//! Signals concern the whole process, so that this file has one test and a process of its own.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, also on an event that it does not expect"
)]

mod common;

use common::{idle, run};
use mux_core::{Driver, Event};
use mux_proto::Raw;
use rustix::process::{Signal, getpid, kill_process};
use signal_hook::consts::{SIGHUP, SIGKILL, SIGUSR1, SIGUSR2};

/// The signals that this process catches, as the system counts them.
fn caught() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("SigCgt:"))
        .unwrap();
    u64::from_str_radix(line.trim(), 16).unwrap()
}

fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

#[test]
fn exactly_the_signals_that_were_asked_for_become_events() {
    let before = caught();
    let mut driver: Driver<Raw> = Driver::new().unwrap();
    idle(&mut driver, 1, |_, event| panic!("{event:?}"));
    assert_eq!(caught(), before, "a loop that was not asked to catches nothing");

    driver.signals(&[SIGUSR1, SIGHUP]).unwrap();
    assert_eq!(caught(), before | bit(SIGUSR1) | bit(SIGHUP));
    driver.signals(&[SIGUSR2]).unwrap();
    assert!(driver.signals(&[SIGKILL]).is_err(), "nobody can catch that");

    for (signal, number) in [
        (Signal::USR1, SIGUSR1),
        (Signal::HUP, SIGHUP),
        (Signal::USR2, SIGUSR2),
    ] {
        kill_process(getpid(), signal).unwrap();
        run(&mut driver, |_, _, event| match event {
            Event::Signal(arrived) => {
                assert_eq!(arrived, number);
                true
            }
            event => panic!("{event:?}"),
        });
    }
    idle(&mut driver, 2, |_, event| panic!("{event:?}"));
}
