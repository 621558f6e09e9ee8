//! What the process may have and which signals it was started with. Raises the limit on descriptors only as far as
//! this run needs it: whatever closes every descriptor it may have would take a minute otherwise.

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};

use crate::hub::MAX_AT_ONCE_ABOVE_FANOUT;
use crate::plan::{Plan, Transport};

/// Standard streams, epoll, signals, files, agent sockets, and room for what libraries open.
const OTHERS: u64 = 128;

/// What a run may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Descriptors {
    /// Requests at once.
    pub(super) at_once: usize,
    /// The soft limit as it was, if it has been raised: children get it back.
    pub(super) before: Option<u64>,
}

/// Raises the soft limit on descriptors if this run needs more.
pub(super) fn descriptors(plan: &Plan, targets: usize) -> Descriptors {
    let wanted = targets.min(plan.fanout.saturating_add(MAX_AT_ONCE_ABOVE_FANOUT));
    let each = match plan.connection.transport {
        Transport::Ssh => 1,
        // Two pipes and a handle on the process.
        Transport::Local => 3,
    };
    let needed = u64::try_from(wanted)
        .unwrap_or(u64::MAX)
        .saturating_mul(each)
        .saturating_add(OTHERS);
    let limit = getrlimit(Resource::Nofile);
    let Some(soft) = limit.current.filter(|soft| *soft < needed) else {
        return Descriptors {
            at_once: wanted,
            before: None,
        };
    };
    let raised = limit.maximum.map_or(needed, |hard| hard.min(needed));
    let (now, before) = match setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(raised),
            maximum: limit.maximum,
        },
    ) {
        Ok(()) => (raised, Some(soft)),
        Err(error) => {
            log::warn!("could not raise the limit on descriptors from {soft} to {raised}: {error}");
            (soft, None)
        }
    };
    let at_once = usize::try_from(now.saturating_sub(OTHERS) / each).unwrap_or(usize::MAX);
    Descriptors {
        at_once: at_once.max(1),
        before,
    }
}

/// Those of `signals` that are not ignored: `nohup` and shells that start something in the background ignore some on
/// purpose, and that is to stay so.
pub(super) fn not_ignored(signals: &[Signal]) -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    let numbers = signals.iter().map(|signal| signal.as_raw());
    numbers
        .filter(|number| mask & 1_u64.wrapping_shl(number.unsigned_abs().wrapping_sub(1)) == 0)
        .collect()
}
