//! What a loop costs: the same four jobs on mux-core, on plain mio, and on tokio, one thread each. Decides what is
//! counted; each contender has a file of its own.
//!
//! ```text
//! loop_bench --contender mux|mio|tokio --what echo|timers|wakeups|events [--seconds N]
//! ```
//!
//! Prints one line of JSON: `{"contender":"mux","what":"echo","count":…,"seconds":…,"per_second":…,"cpu_seconds":…}`.
//!
//! | what | one unit |
//! | --- | --- |
//! | `echo` | a 64-byte message to an echo server and back, over TCP; 100 connections, both ends in the same loop |
//! | `timers` | a timer that fires and is set again; 10,000 of them, 0.1 to 1 ms each |
//! | `wakeups` | a value from another thread to the loop, answered before the next is sent |
//! | `events` | a byte that is read from one socket and written to the next; 1,000 sockets in a ring |

mod ours;
mod plain;
mod theirs;

use std::error::Error;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Connections of the echo job.
const CONNECTIONS: usize = 100;
/// Bytes of one echo message.
const MESSAGE: [u8; 64] = [b'e'; 64];
/// Timers that are set at any time.
const TIMERS: usize = 10_000;
/// Sockets in the ring.
const RING: usize = 1_000;
/// Bytes that go round in it. One: several catch up with each other, and then a contender that is slower reads fewer,
/// larger pieces and seems to do more.
const TOKENS: usize = 1;

/// The times of the `n`th setting of a timer: between 0.1 and 1 ms, in an order that repeats itself late.
fn timer_delay(n: usize) -> Duration {
    Duration::from_micros(100 + (n as u64).wrapping_mul(7_919) % 900)
}

/// What was counted until the time was over.
struct Counted {
    count: usize,
    took: Duration,
}

/// Counts until its time is over.
struct Meter {
    start: Instant,
    until: Instant,
    count: usize,
}

impl Meter {
    fn new(seconds: f64) -> Self {
        let start = Instant::now();
        Self {
            start,
            until: start + Duration::from_secs_f64(seconds),
            count: 0,
        }
    }

    fn is_over(&self, now: Instant) -> bool {
        now >= self.until
    }

    fn read(&self) -> Counted {
        Counted {
            count: self.count,
            took: self.start.elapsed(),
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let (mut contender, mut what, mut seconds) = (String::new(), String::new(), 1.0);
    let mut args = std::env::args().skip(1);
    while let Some(flag) = args.next() {
        let value = args.next().ok_or_else(|| format!("{flag} needs a value"))?;
        match flag.as_str() {
            "--contender" => contender = value,
            "--what" => what = value,
            "--seconds" => seconds = value.parse()?,
            _ => return Err(format!("unknown option {flag}").into()),
        }
    }
    let Counted { count, took } = match (contender.as_str(), what.as_str()) {
        ("mux", "echo") => ours::echo(seconds)?,
        ("mux", "timers") => ours::timers(seconds)?,
        ("mux", "wakeups") => ours::wakeups(seconds)?,
        ("mux", "events") => ours::events(seconds)?,
        ("mio", "echo") => plain::echo(seconds)?,
        ("mio", "timers") => plain::timers(seconds)?,
        ("mio", "wakeups") => plain::wakeups(seconds)?,
        ("mio", "events") => plain::events(seconds)?,
        ("tokio", "echo") => theirs::echo(seconds)?,
        ("tokio", "timers") => theirs::timers(seconds)?,
        ("tokio", "wakeups") => theirs::wakeups(seconds)?,
        ("tokio", "events") => theirs::events(seconds)?,
        _ => {
            return Err(
                "usage: loop_bench --contender mux|mio|tokio --what echo|timers|wakeups|events".into(),
            );
        }
    };
    let seconds = took.as_secs_f64();
    let cpu = Duration::try_from(clock_gettime(ClockId::ProcessCPUTime))?.as_secs_f64();
    writeln!(
        io::stdout(),
        r#"{{"contender":"{contender}","what":"{what}","count":{count},"seconds":{seconds:.3},"per_second":{:.0},"cpu_seconds":{cpu:.3}}}"#,
        count as f64 / seconds
    )?;
    Ok(())
}
