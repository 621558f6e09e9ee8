//! The flight recorder: the last things that happened to one request and its connections, so that what went before an
//! error can be read afterwards. Kinds, times, channels and lengths; what was said is kept nowhere. Decides nothing.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::hash::Hash;
use std::time::{Duration, Instant};

use super::happening::Happening;
use super::job::Job;
use super::{Hub, RequestId};

/// Entries that are kept: 48 bytes each, 1.5 KiB in all. A command from its turn to its end has about twenty.
const MAX_ENTRIES: usize = 32;

/// Output that flows is a wheel of a few kinds: output, consumed, input. One of these is looked for among so many entries
/// before it gets one of its own, so that a gigabyte does not wash away what came before it.
const LOOK_BACK: usize = 4;

/// What was recorded of one request.
#[derive(Clone, Debug)]
pub struct Flight {
    started: Instant,
    entries: VecDeque<Entry>,
    /// How many had to go.
    forgotten: u64,
    /// Something happened since it was last shown by itself.
    is_news: bool,
}

/// One thing, or several of a kind on one channel. Times are microseconds since the beginning.
#[derive(Clone, Copy, Debug)]
struct Entry {
    first: u64,
    last: u64,
    what: Happening,
    times: u32,
}

impl Flight {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            started: now,
            entries: VecDeque::new(),
            forgotten: 0,
            is_news: false,
        }
    }

    /// Writes down what has happened.
    pub(super) fn note(&mut self, now: Instant, what: Happening) {
        let at = now.saturating_duration_since(self.started);
        let at = u64::try_from(at.as_micros()).unwrap_or(u64::MAX);
        self.is_news = true;
        if what.kind.is_bulk() {
            let is_same =
                |entry: &&mut Entry| entry.what.kind == what.kind && entry.what.channel == what.channel;
            let mut latest = self.entries.iter_mut().rev().take(LOOK_BACK);
            if let Some(entry) = latest.find(is_same) {
                entry.last = at;
                entry.times = entry.times.saturating_add(1);
                entry.what.number = entry.what.number.saturating_add(what.number);
                return;
            }
        }
        if self.entries.len() == MAX_ENTRIES {
            self.entries.pop_front();
            self.forgotten += 1;
        } else if self.entries.is_empty() {
            // Once, for grown step by step it would take three allocations a host.
            self.entries.reserve_exact(MAX_ENTRIES);
        }
        self.entries.push_back(Entry {
            first: at,
            last: at,
            what,
            times: 1,
        });
    }

    /// Whether something has happened since this was last asked.
    pub(super) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.is_news)
    }

    /// A line for each entry: seconds since the host's turn came, what happened, on which channel, how much of it.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let forgotten =
            (self.forgotten > 0).then(|| format!("{} earlier ones are forgotten", self.forgotten));
        forgotten
            .into_iter()
            .chain(self.entries.iter().map(Entry::line))
            .collect()
    }
}

impl<K: Copy + Eq + Hash> Hub<K> {
    /// Keeps what was recorded of those that fail, for [`poll_flight`](Self::poll_flight).
    pub fn show_flights(&mut self) {
        self.shared.flights.get_or_insert_default();
    }

    /// Which request has failed, on which host, and what was recorded of it; oldest first.
    pub fn poll_flight(&mut self) -> Option<(RequestId, String, Flight)> {
        self.shared.flights.as_mut()?.pop_front()
    }

    /// The same of everything that is under way, jump hosts included; in the order of the requests.
    #[must_use]
    pub fn flights(&self) -> Vec<(RequestId, &str, &Flight)> {
        let mut jobs: Vec<&Job<K>> = self.jobs.values().collect();
        jobs.sort_unstable_by_key(|job| job.request.id);
        jobs.into_iter()
            .map(|job| (job.request.id, job.request.host.as_str(), &job.flight))
            .collect()
    }
}

impl Entry {
    fn line(&self) -> String {
        let Happening {
            kind,
            channel,
            number,
        } = self.what;
        let mut line = format!("+{} {}", seconds(self.first), kind.name());
        if let Some(channel) = channel {
            add(&mut line, format_args!(" channel={channel}"));
        }
        if !kind.unit().is_empty() {
            add(&mut line, format_args!(" {}={number}", kind.unit()));
        }
        if self.times > 1 {
            let last = seconds(self.last);
            add(&mut line, format_args!(" times={} last=+{last}", self.times));
        }
        line
    }
}

fn add(line: &mut String, text: std::fmt::Arguments<'_>) {
    line.write_fmt(text).expect("writing to a String does not fail");
}

fn seconds(micros: u64) -> String {
    format!("{:.6}", Duration::from_micros(micros).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use mux_ssh::client::Event as Said;

    use super::super::happening::Kind;
    use super::super::{Answer, LinkEvent, StreamKind};
    use super::*;

    /// What happened after so many milliseconds gives these lines.
    fn check(happened: &[(u64, Happening)], lines: &[&str]) {
        let started = Instant::now();
        let mut flight = Flight::new(started);
        for (at, what) in happened {
            flight.note(started + Duration::from_millis(*at), *what);
        }
        assert_eq!(flight.lines(), lines);
    }

    #[test]
    fn a_line_has_time_kind_channel_and_number() {
        check(
            &[
                (0, Kind::Begin.alone()),
                (1, Kind::Prepared.of(2_u64)),
                (
                    61_234,
                    (&Said::Disconnected {
                        code: 11,
                        description: "secret".to_owned(),
                    })
                        .into(),
                ),
            ],
            &[
                "+0.000000 begin",
                "+0.001000 prepared keys=2",
                "+61.234000 disconnected code=11",
            ],
        );
    }

    #[test]
    fn bulk_takes_a_line_of_each_kind_however_much_it_is() {
        let output: Happening =
            (&LinkEvent::Output(StreamKind::Stdout, Bytes::from_static(b"payload"))).into();
        let mut happened = vec![(0, Kind::Begin.alone())];
        for at in 1..=1000 {
            happened.extend([(at, output), (at, Kind::Consumed.of(7_u64))]);
        }
        happened.push((1001, Kind::Exited.of(0_u64)));
        check(
            &happened,
            &[
                "+0.000000 begin",
                "+0.001000 child-output bytes=7000 times=1000 last=+1.000000",
                "+0.001000 consumed bytes=7000 times=1000 last=+1.000000",
                "+1.001000 exited status=0",
            ],
        );
    }

    #[test]
    fn the_last_entries_are_kept_in_a_room_that_does_not_grow() {
        let started = Instant::now();
        let mut flight = Flight::new(started);
        for at in 0..100_000_u64 {
            flight.note(started + Duration::from_millis(at), Kind::KeyRefused.of(at));
        }
        let lines = flight.lines();
        assert_eq!(lines.len(), MAX_ENTRIES + 1);
        assert_eq!(
            lines.first().map(String::as_str),
            Some("99968 earlier ones are forgotten")
        );
        assert_eq!(
            lines.last().map(String::as_str),
            Some("+99.999000 key-refused identity=99999")
        );
        assert_eq!(flight.entries.capacity(), MAX_ENTRIES);
        assert_eq!(size_of::<Entry>(), 48);
    }

    #[test]
    fn nothing_that_was_said_can_be_read_in_it() {
        const SECRET: &str = "hunter2";
        let link = [
            LinkEvent::ProxySaid(SECRET.to_owned()),
            LinkEvent::Output(StreamKind::Stderr, Bytes::from_static(SECRET.as_bytes())),
            LinkEvent::Log {
                pid: 1,
                data: Bytes::from_static(SECRET.as_bytes()),
            },
            LinkEvent::Client(Said::Greeting(SECRET.to_owned())),
            LinkEvent::Client(Said::Banner(SECRET.to_owned())),
            LinkEvent::Client(Said::PasswordExpired {
                words: SECRET.to_owned(),
            }),
        ];
        let answers = [
            Answer::Resolved(Err(SECRET.to_owned())),
            Answer::Fed(Bytes::from_static(SECRET.as_bytes())),
        ];
        let started = Instant::now();
        let mut flight = Flight::new(started);
        let link = link.iter().map(Happening::from);
        for what in link.chain(answers.iter().map(Happening::from)) {
            flight.note(started, what);
        }
        let kept = format!("{flight:?} {:?}", flight.lines());
        assert!(!kept.contains(SECRET), "{kept}");
        assert_eq!(flight.lines().len(), 8);
    }
}
