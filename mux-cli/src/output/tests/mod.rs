//! The output of whole runs, byte for byte. Terminals are parameters.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod escapes;
mod grouped;
mod json;
mod saved;
mod small;
mod text;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::store::Limits;
use super::*;
use crate::hub::{Failure, Stage};
use crate::plan::{ColorChoice, DEFAULT_SPILL_MAX, Format, OutputPlan, SavePlan};

const OUT: StreamKind = StreamKind::Stdout;
const ERR: StreamKind = StreamKind::Stderr;

/// A run whose writer is this test.
struct Run {
    output: Output,
    now: Instant,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    progress: Vec<String>,
    spill: Vec<u8>,
    files: HashMap<std::path::PathBuf, Vec<u8>>,
    given: usize,
    consumed: usize,
    /// The writer does not report what it wrote into hosts' files.
    slow: bool,
    unreported: Vec<RequestId>,
}

/// A terminal or none, for both streams.
fn facts(terminal: bool) -> Facts {
    Facts {
        stdout_is_terminal: terminal,
        stderr_is_terminal: terminal,
        width: Some(60),
        term: Some("xterm".into()),
        ..Facts::default()
    }
}

fn options(format: Format, facts: &Facts) -> Options {
    let plan = OutputPlan {
        format,
        prefix: true,
        quiet: false,
        color: ColorChoice::Auto,
        spill_max: DEFAULT_SPILL_MAX,
        save: SavePlan::default(),
    };
    Options::new(&plan, 0, facts, "/nowhere/mux-1".into())
}

fn plain(format: Format) -> Options {
    options(format, &facts(false))
}

impl Run {
    fn new(options: Options, hosts: &[&str]) -> Self {
        Self::with_limits(options, hosts, Limits::default())
    }

    fn with_limits(options: Options, hosts: &[&str], limits: Limits) -> Self {
        let hosts = hosts
            .iter()
            .flat_map(|host| crate::targets::parse(host, &[]).unwrap().into_vec())
            .collect();
        let now = Instant::now();
        Self {
            output: Output::with_limits(now, options, hosts, limits),
            now,
            stdout: Vec::new(),
            stderr: Vec::new(),
            progress: Vec::new(),
            spill: Vec::new(),
            files: HashMap::new(),
            given: 0,
            consumed: 0,
            slow: false,
            unreported: Vec::new(),
        }
    }

    /// A host prints something, which is not fetched yet.
    fn feed(&mut self, host: u32, stream: StreamKind, data: &[u8]) {
        self.given += data.len();
        let data = Bytes::copy_from_slice(data);
        self.output.handle(Event::Output {
            request: RequestId(host),
            stream,
            data,
        });
        self.consume();
    }

    /// A host prints something, and the writer keeps up.
    fn print(&mut self, host: u32, stream: StreamKind, data: &[u8]) {
        self.feed(host, stream, data);
        self.drain();
    }

    fn end(&mut self, host: u32, outcome: Outcome) {
        self.output.handle(Event::Finished {
            request: RequestId(host),
            outcome,
        });
        self.drain();
    }

    fn exit(&mut self, host: u32, rc: i32) {
        self.end(host, exited(rc));
    }

    fn consume(&mut self) {
        while let Some(credit) = self.output.poll_consumed() {
            self.consumed += credit.bytes;
        }
    }

    fn drain(&mut self) {
        while self.step() {}
        self.consume();
    }

    fn step(&mut self) -> bool {
        let Some(write) = self.output.poll_write() else {
            return false;
        };
        self.consumed += write.credit.map_or(0, |credit| credit.bytes);
        let bytes = match &write.payload {
            Payload::Bytes(bytes) => bytes.to_vec(),
            Payload::Spilled { extents, neutralise } => {
                let place = |extent: &Extent| {
                    let start = usize::try_from(extent.offset).unwrap();
                    &self.spill[start..start + usize::try_from(extent.len).unwrap()]
                };
                let bytes: Vec<u8> = extents.iter().flat_map(place).copied().collect();
                if *neutralise {
                    escape::neutralise(&bytes).into_bytes()
                } else {
                    bytes
                }
            }
        };
        match write.to {
            Destination::Stdout => self.stdout.extend(bytes),
            Destination::Stderr => self.stderr.extend(bytes),
            Destination::Progress => self.progress.push(String::from_utf8(bytes).unwrap()),
            Destination::Spill => self.spill.extend(bytes),
            Destination::File(path) => self.files.entry(path.to_path_buf()).or_default().extend(bytes),
            Destination::Saved { request, path } => {
                self.files.entry(path.to_path_buf()).or_default().extend(bytes);
                match self.slow {
                    true => self.unreported.push(request),
                    false => {
                        self.output.saved(request);
                    }
                }
            }
        }
        true
    }

    /// Ends the run after 1.4 s. Every byte that was given must have been given back.
    fn finish(&mut self) {
        self.output.finish(self.now + Duration::from_millis(1400));
        self.drain();
        assert!(self.output.is_done());
        assert_eq!(self.consumed, self.given, "bytes consumed");
    }

    /// Ends the run and compares all of its output.
    fn check(mut self, stdout: &str, stderr: &str) {
        self.finish();
        assert_eq!(String::from_utf8(self.stdout).unwrap(), stdout, "standard output");
        assert_eq!(String::from_utf8(self.stderr).unwrap(), stderr, "standard error");
    }
}

fn outcome(status: Status, rc: Option<i32>) -> Outcome {
    Outcome {
        status,
        rc,
        signal: None,
        error: None,
        timings: Timings::default(),
        attempts: 1,
        retries: 0,
    }
}

fn exited(rc: i32) -> Outcome {
    outcome(if rc == 0 { Status::Ok } else { Status::Failed }, Some(rc))
}

fn failed(status: Status, stage: Stage, message: &str) -> Outcome {
    let error = Some(Failure::new(stage, message));
    Outcome {
        error,
        ..outcome(status, None)
    }
}
