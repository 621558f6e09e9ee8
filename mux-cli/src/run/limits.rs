//! What the process may have and which signals it was started with. Raises the limit on descriptors only as far as
//! this run needs it: whatever closes every descriptor it may have would take a minute otherwise.

use std::io::{self, Read as _};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};

use super::locals;
use crate::hub::MAX_AT_ONCE_ABOVE_FANOUT;
use crate::plan::{Plan, Transport};
use crate::pool::MAX_THREADS;

/// What a run opens besides links and what the pool has: epoll, wake-up, signals, two copies of standard streams, agent,
/// terminal, a temporary file, and one file that is being read.
const OWN: usize = 16;

/// What a thread of the pool opens at once: a name lookup has a socket and a file, known_hosts is one file.
const PER_THREAD: usize = 2;

/// More than the kernel says about a process, in bytes.
const STATUS: usize = 8 * 1024;

/// Of few descriptors, this part is for the pool: a host that waits for a name or a lock has no other use for more.
const POOL_PART: usize = 8;

/// What a run may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Descriptors {
    /// Requests at once.
    pub(super) at_once: usize,
    /// Descriptors for links.
    pub(super) links: usize,
    /// Threads of the pool.
    pub(super) threads: usize,
    /// The soft limit as it was, if it has been raised: children get it back.
    pub(super) before: Option<u64>,
    /// The limit, if it allows fewer hosts at once than were asked for.
    pub(super) too_few: Option<u64>,
}

impl Descriptors {
    /// That fewer hosts are served at once than were asked for, and why.
    pub(super) fn warning(&self) -> Option<String> {
        let (limit, at_once) = (self.too_few?, self.at_once);
        Some(format!(
            "only {at_once} hosts at once: open files are limited to {limit} (ulimit -n)"
        ))
    }
}

/// Raises the soft limit on descriptors if this run needs more: for so many targets, and jump hosts beside them.
pub(super) fn descriptors(plan: &Plan, targets: usize, hops: usize) -> Descriptors {
    let asked = targets.min(plan.fanout);
    let wanted = targets.min(plan.fanout.saturating_add(MAX_AT_ONCE_ABOVE_FANOUT));
    let each = match plan.connection.transport {
        Transport::Ssh => 1,
        Transport::Local => locals::DESCRIPTORS,
        Transport::OpenSsh => locals::SSH_DESCRIPTORS,
    };
    let open = open_already();
    let needed = wanted
        .saturating_mul(each)
        .saturating_add(hops)
        .saturating_add(open + OWN + PER_THREAD * MAX_THREADS);
    let (limit, before) = raise(u64::try_from(needed).unwrap_or(u64::MAX));
    let free = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let (links, threads) = share(free.saturating_sub(open));
    let at_once = wanted
        .min(links.saturating_sub(hops.min(links / 2)) / each)
        .max(1);
    Descriptors {
        at_once,
        links: links.max(each),
        threads,
        before,
        too_few: limit.filter(|_| at_once < asked),
    }
}

/// As many descriptors as there may be, and how many of them are for links: a daemon serves whoever comes.
pub(crate) fn for_daemon() -> usize {
    let (limit, _) = raise(u64::MAX);
    let free = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    free.saturating_sub(open_already() + OWN)
}

/// Divides `free` descriptors: how many are for links, how many threads the pool may have.
fn share(free: usize) -> (usize, usize) {
    let rest = free.saturating_sub(OWN);
    let threads = (rest / POOL_PART / PER_THREAD).clamp(1, MAX_THREADS);
    (rest.saturating_sub(PER_THREAD * threads), threads)
}

/// Raises the soft limit as far as `needed`. Returns what it is then, and what it was if that has changed.
fn raise(needed: u64) -> (Option<u64>, Option<u64>) {
    let limit = getrlimit(Resource::Nofile);
    let Some(soft) = limit.current.filter(|soft| *soft < needed) else {
        return (limit.current, None);
    };
    let raised = limit.maximum.map_or(needed, |hard| hard.min(needed));
    let wanted = Rlimit {
        current: Some(raised),
        maximum: limit.maximum,
    };
    match setrlimit(Resource::Nofile, wanted) {
        Ok(()) if raised > soft => (Some(raised), Some(soft)),
        Ok(()) => (Some(soft), None),
        Err(error) => {
            log::warn!("could not raise the limit on descriptors from {soft} to {raised}: {error}");
            (Some(soft), None)
        }
    }
}

/// Descriptors that whoever started this process has left open, standard streams among them.
fn open_already() -> usize {
    // The directory itself is one of them while it is read.
    std::fs::read_dir("/proc/self/fd").map_or(3, |entries| entries.count().saturating_sub(1))
}

/// Why something that a run can't do without was not to be had, and what to do.
pub(super) fn missing(what: &str, error: &io::Error) -> String {
    let advice = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::MFILE) => "; raise ulimit -n",
        Some(Errno::NFILE) => "; the system has too many files open: try again later",
        Some(Errno::AGAIN) => "; too many processes and threads: raise ulimit -u",
        Some(_) | None => "",
    };
    format!("could not {what}: {error}{advice}")
}

/// Lets writes to a file that has become too large (`ulimit -f`) fail and be reported; without it the process would
/// be killed without a word. Installs a handler that does nothing of note, not SIG_IGN: children have the default
/// action again, since no handler outlives exec.
pub(super) fn survive_large_files() {
    for number in not_ignored(&[Signal::XFSZ]) {
        if let Err(error) = signal_hook::flag::register(number, Arc::default()) {
            log::warn!("SIGXFSZ: {error}");
        }
    }
}

/// Those of `signals` that are not ignored: `nohup` and shells that start something in the background ignore some on
/// purpose, and that is to stay so.
pub(crate) fn not_ignored(signals: &[Signal]) -> Vec<i32> {
    // Made anew by the kernel for each read, so it is read at once.
    let mut status = String::with_capacity(STATUS);
    let read = std::fs::File::open("/proc/self/status").and_then(|mut file| file.read_to_string(&mut status));
    if let Err(error) = read {
        log::debug!("/proc/self/status: {error}");
    }
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    let numbers = signals.iter().map(|signal| signal.as_raw());
    numbers
        .filter(|number| mask & 1_u64.wrapping_shl(number.unsigned_abs().wrapping_sub(1)) == 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_descriptors_are_shared_between_links_and_the_pool() {
        for (free, links, threads) in [
            (0, 0, 1),
            (16, 0, 1),
            (24, 6, 1),
            (37, 19, 1),
            (125, 97, 6),
            (1021, 881, 62),
            (1_000_000, 999_856, 64),
        ] {
            assert_eq!(share(free), (links, threads), "of {free}");
        }
    }
}
