//! Gathered output of many large hosts, through the real writer thread and spill file: every byte is printed, and the
//! process stays small. A test binary of its own, because the peak of memory belongs to the whole process.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use bytes::Bytes;
use mux_cli::hub::{Event, Outcome, RequestId, Status, StreamKind, Timings};
use mux_cli::output::{Credit, Facts, Options, Output};
use mux_cli::plan::{ColorChoice, DEFAULT_SPILL_MAX, Format, OutputPlan, SavePlan};
use mux_cli::targets::Target;
use mux_cli::writer::{Report, Streams, Writer};

const HOSTS: u32 = 20;

/// What each host prints; together more than twice of what is allowed.
const EACH: usize = 10 * 1024 * 1024;

/// What a channel's window lets a host send before some of it is consumed.
const WINDOW: usize = 1024 * 1024;

/// The peak that the whole process may have.
const MAX_RESIDENT: u64 = 96 * 1024 * 1024;

struct Feed {
    output: Output,
    writer: Writer,
    reports: Receiver<Report>,
    sent: Vec<usize>,
    unconsumed: Vec<usize>,
}

impl Feed {
    fn credit(&mut self, credit: Credit) {
        self.unconsumed[usize::try_from(credit.request.0).unwrap()] -= credit.bytes;
    }

    fn pump(&mut self) {
        while self.writer.has_room()
            && let Some(write) = self.output.poll_write()
        {
            self.writer.send(write);
        }
        self.writer.flush();
        while let Some(credit) = self.output.poll_consumed() {
            self.credit(credit);
        }
        while let Ok(report) = self.reports.try_recv() {
            self.take(report);
        }
    }

    fn take(&mut self, report: Report) {
        self.writer.handle(&report);
        match report {
            Report::Written { credits, .. } => credits.into_iter().for_each(|credit| self.credit(credit)),
            Report::Failed(error) => assert_eq!(error.to_string(), ""),
        }
    }

    /// Lets a host print as much as its window allows; whether it did.
    fn print(&mut self, host: u32) -> bool {
        let index = usize::try_from(host).unwrap();
        let room = WINDOW - self.unconsumed[index];
        let size = (32 * 1024).min(room).min(EACH - self.sent[index]);
        if size == 0 {
            return false;
        }
        let mut data = vec![b'A' + u8::try_from(host).unwrap(); size];
        if self.sent[index] + size == EACH {
            *data.last_mut().unwrap() = b'\n';
        }
        self.sent[index] += size;
        self.unconsumed[index] += size;
        let (request, stream) = (RequestId(host), StreamKind::Stdout);
        self.output.handle(Event::Output {
            request,
            stream,
            data: Bytes::from(data),
        });
        true
    }

    fn wait(&mut self) {
        let report = self.reports.recv().unwrap();
        self.take(report);
    }
}

fn peak_resident() -> u64 {
    let mut status = String::new();
    std::fs::File::open("/proc/self/status")
        .unwrap()
        .read_to_string(&mut status)
        .unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

fn ended(request: RequestId) -> Event {
    let (status, timings) = (Status::Ok, Timings::default());
    let outcome = Outcome {
        status,
        rc: Some(0),
        signal: None,
        error: None,
        timings,
        attempts: 1,
        retries: 0,
    };
    Event::Finished { request, outcome }
}

/// How many bytes each host printed, by its letter. Headers are three lines before the one line of output.
fn count(pipe: io::PipeReader) -> HashMap<u8, usize> {
    let mut counts = HashMap::new();
    let mut reader = BufReader::with_capacity(64 * 1024, pipe);
    let mut lines = 0;
    loop {
        let bytes = reader.fill_buf().unwrap();
        if bytes.is_empty() {
            return counts;
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let output = piece.strip_suffix(b"\n").unwrap_or(piece);
            if let (3, Some(letter)) = (lines % 4, output.first()) {
                assert!(output == vec![*letter; output.len()], "hosts are mixed");
                *counts.entry(*letter).or_default() += output.len();
            }
            lines += usize::from(piece.len() > output.len());
        }
        let len = bytes.len();
        reader.consume(len);
    }
}

#[test]
fn large_outputs_of_many_hosts_are_printed_whole_in_little_memory() {
    let plan = OutputPlan {
        format: Format::Grouped { with_stderr: false },
        prefix: true,
        quiet: true,
        color: ColorChoice::Never,
        spill_max: DEFAULT_SPILL_MAX,
        save: SavePlan::default(),
    };
    let options = Options::new(&plan, 0, &Facts::default(), "/nowhere".into());
    let hosts = (0..HOSTS)
        .map(|host| Target::new(None, format!("h{host}"), None))
        .collect();
    let (pipe, stdout) = io::pipe().unwrap();
    let reader = std::thread::spawn(move || count(pipe));
    let stderr = OpenOptions::new().write(true).open("/dev/null").unwrap();
    let streams = Streams {
        stdout: Some(stdout.into()),
        stderr: Some(stderr.into()),
        stdout_is_terminal: false,
        stderr_is_terminal: false,
    };
    let (sender, reports) = channel();
    let mut feed = Feed {
        output: Output::new(Instant::now(), options, hosts),
        writer: Writer::start(streams, sender).unwrap(),
        reports,
        sent: vec![0; usize::try_from(HOSTS).unwrap()],
        unconsumed: vec![0; usize::try_from(HOSTS).unwrap()],
    };
    let mut stalled = 0;
    while feed.sent.iter().any(|sent| *sent < EACH) {
        let printed = (0..HOSTS).filter(|host| feed.print(*host)).count();
        feed.pump();
        stalled = if printed == 0 { stalled + 1 } else { 0 };
        if printed == 0 && !feed.writer.is_idle() {
            feed.wait();
        }
        // Each round without output takes a report in, and far fewer than this can be on their way.
        assert!(
            stalled < 100_000,
            "everything is written and nothing was given back"
        );
    }
    (0..HOSTS).for_each(|host| feed.output.handle(ended(RequestId(host))));
    feed.output.finish(Instant::now());
    while !(feed.output.is_done() && feed.writer.is_idle()) {
        feed.pump();
        if !feed.writer.is_idle() {
            feed.wait();
        }
    }
    assert_eq!(feed.unconsumed, vec![0; usize::try_from(HOSTS).unwrap()]);
    drop(feed);
    let counts = reader.join().unwrap();
    for host in 0..u8::try_from(HOSTS).unwrap() {
        assert_eq!(counts.get(&(b'A' + host)), Some(&(EACH - 1)), "host {host}");
    }
    let peak = peak_resident();
    assert!(peak <= MAX_RESIDENT, "peak of {} MiB", peak >> 20);
}
