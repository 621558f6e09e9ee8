//! Unknown host keys, gathered into one question: a hundred new hosts are no reason to ask a hundred times. Decides when
//! to ask, in which words, and what an answer means; never whether a key needs asking, and it writes nothing.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use mux_ssh::client::QuestionId;
use mux_ssh::keys::PublicKey;

use crate::hub::{RequestId, Ticket};

/// Nobody has come for so long: whoever else comes is late. Hosts that start together show their keys within a few round
/// trips of each other.
pub(super) const QUIET: Duration = Duration::from_millis(500);

/// Nobody waits longer than this for others, so that a large fleet can't put off the first question for good.
pub(super) const MOST: Duration = Duration::from_secs(5);

/// What a wrong answer is answered with; as ssh.
const AGAIN: &str = "Please type 'yes' or 'no': ";
const AGAIN_OR_FINGERPRINT: &str = "Please type 'yes', 'no' or the fingerprint: ";

/// Keys of a host that nobody knows, and who showed them.
#[derive(Clone, Debug)]
pub(crate) struct Unknown {
    pub(crate) ticket: Ticket,
    pub(crate) question: QuestionId,
    pub(crate) keys: Vec<PublicKey>,
}

/// The keys of the next question.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    waiting: Vec<Unknown>,
    /// When the first and the last of them came.
    came: Option<(Instant, Instant)>,
    /// The set is to be asked about as a whole, however long that takes.
    for_all: bool,
    /// Others can't go on before these have been judged.
    urgent: bool,
}

/// A question as it stands on the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wording {
    pub(crate) question: String,
    /// The fingerprint that is as good as a yes, where there is only one key.
    fingerprint: Option<String>,
}

impl Gathering {
    /// One question for all, at the very end.
    pub(crate) fn for_all() -> Self {
        Self {
            for_all: true,
            ..Self::default()
        }
    }

    /// Somebody whose key is to be asked about; `urgent`: others wait for that.
    pub(crate) fn add(&mut self, now: Instant, unknown: Unknown, urgent: bool) {
        self.urgent |= urgent;
        let first = self.came.map_or(now, |(first, _)| first);
        self.came = Some((first, now));
        self.waiting.push(unknown);
    }

    /// When to ask, unless somebody says before that [nobody else can come](Self::take).
    pub(crate) fn due(&self) -> Option<Instant> {
        let (first, last) = self.came.filter(|_| !self.for_all || self.urgent)?;
        Some((first + MOST).min(last + QUIET))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Those who wait.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Unknown> {
        self.waiting.iter()
    }

    /// The question is asked, or nobody is to be asked any more.
    pub(crate) fn take(&mut self) -> Vec<Unknown> {
        self.came = None;
        self.urgent = false;
        std::mem::take(&mut self.waiting)
    }

    /// So long nobody could come.
    pub(crate) fn stood_still(&mut self, late: Duration) {
        if let Some((first, last)) = &mut self.came {
            *first += late;
            *last += late;
        }
    }
}

/// How to ask about these: equal keys once, with the folded names of their hosts.
pub(crate) fn wording(
    unknown: &[Unknown],
    names: impl Fn(&[RequestId]) -> String,
    connects: bool,
) -> Wording {
    let mut by_text: HashMap<String, Vec<RequestId>> = HashMap::new();
    for one in unknown {
        for key in &one.keys {
            let text = format!("{} {}", key.algorithm(), key.fingerprint_sha256());
            by_text.entry(text).or_default().push(one.ticket.request);
        }
    }
    let mut keys: Vec<(String, Vec<RequestId>)> = by_text.into_iter().collect();
    keys.iter_mut().for_each(|(_, same)| same.sort_unstable());
    keys.sort_unstable_by(|(one, its), (other, others)| (its.first(), one).cmp(&(others.first(), other)));
    let go = if connects { "Connect, and write" } else { "Write" };
    if let [(text, same)] = keys.as_slice() {
        return Wording {
            question: format!(
                "The host key of {} is not known: {text}\n{go} it down (yes/no/[fingerprint])? ",
                names(same)
            ),
            fingerprint: unknown
                .first()
                .and_then(|one| Some(one.keys.first()?.fingerprint_sha256())),
        };
    }
    let lines: Vec<String> = keys
        .iter()
        .map(|(text, same)| format!("  {}: {text}\n", names(same)))
        .collect();
    Wording {
        question: format!(
            "The host keys of {} are not known:\n{}{go} them down (yes/no)? ",
            match unknown {
                [_] => "a host".to_owned(),
                several => format!("{} hosts", several.len()),
            },
            lines.concat()
        ),
        fingerprint: None,
    }
}

impl Wording {
    /// What an answer means; an error: it is to be asked again, like this.
    pub(crate) fn understand(&self, answer: &str) -> Result<bool, &'static str> {
        let answer = answer.trim();
        let is_no = answer.is_empty() || answer.eq_ignore_ascii_case("no");
        let is_fingerprint = self.fingerprint.as_deref() == Some(answer);
        match (is_no, is_fingerprint || answer.eq_ignore_ascii_case("yes")) {
            (true, _) => Ok(false),
            (false, true) => Ok(true),
            (false, false) if self.fingerprint.is_some() => Err(AGAIN_OR_FINGERPRINT),
            (false, false) => Err(AGAIN),
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti";
    const OTHER: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";

    fn unknown(request: u32, key: &str) -> Unknown {
        Unknown {
            ticket: Ticket {
                request: RequestId(request),
                attempt: 1,
            },
            question: QuestionId::default(),
            keys: vec![PublicKey::parse_line(key).unwrap().key],
        }
    }

    /// How these are asked about, their names being their numbers.
    fn check(unknown: &[Unknown], connects: bool, question: &str) -> Wording {
        let names = |requests: &[RequestId]| {
            let names: Vec<String> = requests.iter().map(|request| request.0.to_string()).collect();
            names.join("+")
        };
        let wording = wording(unknown, names, connects);
        assert_eq!(wording.question, question);
        wording
    }

    #[test]
    fn hosts_that_come_together_are_asked_about_together() {
        let start = Instant::now();
        let mut gathering = Gathering::default();
        assert_eq!(gathering.due(), None);
        gathering.add(start, unknown(0, KEY), false);
        assert_eq!(gathering.due(), Some(start + QUIET));
        let mut last = start;
        for request in 1..100 {
            last += QUIET / 4;
            gathering.add(last, unknown(request, KEY), false);
        }
        // A stream that never ends is cut.
        assert_eq!(gathering.due(), Some(start + MOST));
        gathering.stood_still(MOST);
        assert_eq!(gathering.due(), Some(start + 2 * MOST));
        assert_eq!(gathering.take().len(), 100);
        assert_eq!((gathering.due(), gathering.is_empty()), (None, true));
        gathering.add(last, unknown(100, KEY), false);
        assert_eq!(gathering.due(), Some(last + QUIET));
        let mut for_all = Gathering::for_all();
        for_all.add(start, unknown(0, KEY), false);
        assert_eq!(for_all.due(), None);
        // A jump host is on the way to others.
        for_all.add(start, unknown(1, KEY), true);
        assert_eq!(for_all.due(), Some(start + QUIET));
    }

    #[test]
    fn equal_keys_are_shown_once_with_their_hosts() {
        let print = |key: &str| PublicKey::parse_line(key).unwrap().key.fingerprint_sha256();
        let (key, other) = (print(KEY), print(OTHER));
        check(
            &[unknown(2, KEY), unknown(1, OTHER), unknown(0, KEY)],
            true,
            &format!(
                "The host keys of 3 hosts are not known:\n  0+2: ssh-ed25519 {key}\n  1: ssh-ed25519 {other}\n\
                 Connect, and write them down (yes/no)? "
            ),
        );
        let one = format!("The host key of 0+1 is not known: ssh-ed25519 {key}\n");
        let asked = check(
            &[unknown(0, KEY), unknown(1, KEY)],
            true,
            &(one.clone() + "Connect, and write it down (yes/no/[fingerprint])? "),
        );
        assert_eq!(asked.understand(&format!(" {key}\n")), Ok(true));
        assert_eq!(asked.understand(&other), Err(AGAIN_OR_FINGERPRINT));
        check(
            &[unknown(0, KEY), unknown(1, KEY)],
            false,
            &(one + "Write it down (yes/no/[fingerprint])? "),
        );
    }

    #[test]
    fn only_yes_means_yes_and_nothing_at_all_means_no() {
        let asked = Wording {
            question: String::new(),
            fingerprint: None,
        };
        for (answer, expected) in [
            ("yes", Ok(true)),
            (" YES ", Ok(true)),
            ("no", Ok(false)),
            ("", Ok(false)),
            ("y", Err(AGAIN)),
            ("SHA256:x", Err(AGAIN)),
        ] {
            assert_eq!(asked.understand(answer), expected, "{answer:?}");
        }
    }
}
