//! How hosts ended: counted, put into words for people, and what else must be said at the end. The summary is silent
//! where all is well and nobody watches.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::time::Duration;

use super::style::{StreamStyle, success_style, trouble_style};
use crate::hub::{Failure, Outcome, RequestId, Status};
use crate::targets::{Target, fold};
use crate::words;

/// All statuses, in the order of the summary.
const STATUSES: [Status; 9] = [
    Status::Ok,
    Status::Failed,
    Status::Timeout,
    Status::Unreachable,
    Status::Auth,
    Status::HostKey,
    Status::Unknown,
    Status::Skipped,
    Status::Cancelled,
];

/// The outcomes of a run so far.
#[derive(Debug)]
pub struct Tally {
    outcomes: Vec<Option<Outcome>>,
    finished: usize,
    not_ok: usize,
}

impl Tally {
    pub(super) fn new(hosts: usize) -> Self {
        Self {
            outcomes: vec![None; hosts],
            finished: 0,
            not_ok: 0,
        }
    }

    pub(super) fn finish(&mut self, index: usize, outcome: Outcome) {
        let Some(slot @ None) = self.outcomes.get_mut(index) else {
            return;
        };
        self.finished += 1;
        self.not_ok += usize::from(outcome.status != Status::Ok);
        *slot = Some(outcome);
    }

    /// How many hosts there are.
    #[must_use]
    pub fn hosts(&self) -> usize {
        self.outcomes.len()
    }

    /// How many of them have ended.
    #[must_use]
    pub fn finished(&self) -> usize {
        self.finished
    }

    /// How many of those have ended in another way than well.
    #[must_use]
    pub fn not_ok(&self) -> usize {
        self.not_ok
    }

    /// How hosts ended; `None` has not.
    pub fn outcomes(&self) -> impl Iterator<Item = Option<&Outcome>> {
        self.outcomes.iter().map(Option::as_ref)
    }

    /// How this host ended, if it has.
    #[must_use]
    pub fn outcome(&self, request: RequestId) -> Option<&Outcome> {
        self.outcomes.get(usize::try_from(request.0).ok()?)?.as_ref()
    }

    /// How many hosts ended this way. One that has not ended when this is asked counts as cancelled.
    #[must_use]
    pub fn count(&self, status: Status) -> usize {
        self.outcomes
            .iter()
            .filter(|outcome| status_of(outcome.as_ref()) == status)
            .count()
    }

    /// How many hosts ended in each way in which some did, in the order of the summary.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (Status, usize)> {
        let counts = STATUSES.map(|status| (status, self.count(status)));
        counts.into_iter().filter(|(_, count)| *count > 0)
    }

    /// The summary: a line of counts, then a line for each kind of failure and reason.
    pub(super) fn summary(&self, hosts: &[Target], took: Duration, style: StreamStyle) -> String {
        let mut counts = Vec::new();
        for status in STATUSES {
            let count = self.count(status);
            let color = if status == Status::Ok {
                success_style()
            } else {
                trouble_style()
            };
            let text = format!("{status}={count}");
            if count > 0 {
                counts.push(style.paint(color, &text));
            } else if status == Status::Ok {
                counts.push(text);
            }
        }
        let mut out = format!("{} in {}\n", counts.join(" "), shown_duration(took));
        for (status, reason, group) in self.reasons(hosts) {
            let names = fold(group.iter().copied());
            let status = style.paint(trouble_style(), status.name());
            writeln!(out, "{status}: {names}: {reason}").expect("writing to a String does not fail");
        }
        for (times, group) in self.retried(hosts) {
            let times = if times == 1 {
                "once".to_owned()
            } else {
                format!("{times} times")
            };
            let names = fold(group);
            writeln!(out, "retried: {names}: {times}").expect("writing to a String does not fail");
        }
        out
    }

    /// The hosts that were tried again, by how often.
    fn retried<'a>(&self, hosts: &'a [Target]) -> BTreeMap<u32, Vec<&'a Target>> {
        let mut by_times: BTreeMap<u32, Vec<&Target>> = BTreeMap::new();
        for (outcome, host) in self.outcomes.iter().zip(hosts) {
            if let Some(times) = outcome
                .as_ref()
                .map(|outcome| outcome.retries)
                .filter(|times| *times > 0)
            {
                by_times.entry(times).or_default().push(host);
            }
        }
        by_times
    }

    /// Failures by kind and reason. Reasons that differ only in the name or address of their host are one.
    fn reasons<'a>(&self, hosts: &'a [Target]) -> Vec<(Status, String, Vec<&'a Target>)> {
        let mut groups: Vec<(Status, Reason, Vec<&Target>)> = Vec::new();
        let mut places: HashMap<(Status, String), usize> = HashMap::new();
        for (outcome, host) in self.outcomes.iter().zip(hosts) {
            let status = status_of(outcome.as_ref());
            if status == Status::Ok {
                continue;
            }
            let reason = Reason::of(outcome.as_ref(), status, host);
            let place = *places
                .entry((status, reason.general.clone()))
                .or_insert(groups.len());
            match groups.get_mut(place) {
                Some((_, _, group)) => group.push(host),
                None => groups.push((status, reason, vec![host])),
            }
        }
        groups.sort_by_key(|(status, _, _)| *status);
        let shown = |(status, reason, group): (Status, Reason, Vec<&'a Target>)| {
            let reason = if group.len() == 1 {
                reason.own
            } else {
                reason.general
            };
            (status, reason, group)
        };
        groups.into_iter().map(shown).collect()
    }
}

fn status_of(outcome: Option<&Outcome>) -> Status {
    outcome.map_or(Status::Cancelled, |outcome| outcome.status)
}

/// Why a host failed.
struct Reason {
    /// In its own words.
    own: String,
    /// With `HOST` in the place of its name, to be compared with others.
    general: String,
}

impl Reason {
    fn of(outcome: Option<&Outcome>, status: Status, host: &Target) -> Self {
        let own = outcome.map_or_else(|| "it had not ended".to_owned(), |outcome| words(outcome, status));
        let error = outcome.and_then(|outcome| outcome.error.as_ref());
        let general = error.and_then(Failure::general_words);
        // A server's own words end up here; one line each, and nothing for a terminal to obey.
        let own = words::printable(&own);
        let general = general.map_or_else(|| own.clone(), |general| words::printable(&general));
        let general = replace_name(&general, &host.text);
        let general = if host.text == host.host {
            general
        } else {
            replace_name(&general, &host.host)
        };
        Self { own, general }
    }
}

/// As help texts have it: what remains here is mostly a command to type. Not inside another word: a host called `a` is
/// no part of `refused`.
fn replace_name(text: &str, name: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(name) {
        let (before, found) = rest.split_at(at);
        let after = found.get(name.len()..).unwrap_or("");
        let in_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '-' || c == '_');
        let inside = in_word(before.chars().next_back()) || in_word(after.chars().next());
        out.push_str(before);
        out.push_str(if inside { name } else { "HOST" });
        rest = after;
    }
    out.push_str(rest);
    out
}

fn words(outcome: &Outcome, status: Status) -> String {
    if let Some(error) = &outcome.error {
        return error.words();
    }
    match (status, outcome.rc, outcome.signal.as_deref()) {
        (Status::Timeout, _, _) => "took longer than --timeout".to_owned(),
        (Status::Cancelled, _, _) => "stopped on request".to_owned(),
        (Status::Skipped, _, _) => "never tried".to_owned(),
        (_, _, Some(signal)) => format!("killed by SIG{signal}"),
        (_, Some(rc), None) => format!("exit status {rc}"),
        (_, None, None) => "ended without an exit status".to_owned(),
    }
}

/// `0.4s`, `1.4s`, `2m05s`, `1h02m`.
pub(super) fn shown_duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{:.1}s", time.as_secs_f64()),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// `512 B`, `1.5 MiB`, `2.0 GiB`.
pub(super) fn shown_size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    // Sizes of output are far below 2^53, where a float is exact.
    #[expect(clippy::cast_precision_loss, reason = "rounded to one digit anyway")]
    let mut amount = bytes as f64 / 1024.0;
    let mut units = UNITS.iter();
    let mut unit = units.next().copied().unwrap_or_default();
    while amount >= 1024.0
        && let Some(next) = units.next()
    {
        amount /= 1024.0;
        unit = next;
    }
    format!("{amount:.1} {unit}")
}

/// The tally of a run with these outcomes.
#[cfg(test)]
pub(crate) fn tally_of(outcomes: impl IntoIterator<Item = Outcome>) -> Tally {
    let outcomes: Vec<Outcome> = outcomes.into_iter().collect();
    let mut tally = Tally::new(outcomes.len());
    outcomes
        .into_iter()
        .enumerate()
        .for_each(|(index, outcome)| tally.finish(index, outcome));
    tally
}
