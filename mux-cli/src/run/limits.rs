//! What the process may have and which signals it was started with. Raises the limit on descriptors only as far as
//! this run needs it: whatever closes every descriptor it may have would take a minute otherwise.

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};

use crate::hub::MAX_AT_ONCE_ABOVE_FANOUT;
use crate::plan::{Plan, Transport};

/// Standard streams, epoll, signals, files, agent sockets, and room for what libraries open.
const OTHERS: u64 = 128;

/// Raises the soft limit on descriptors if this run needs more. Returns the limit as it was, for children.
pub(super) fn raise_descriptors(plan: &Plan, targets: usize) -> Option<u64> {
    let at_once = targets.min(plan.fanout.saturating_add(MAX_AT_ONCE_ABOVE_FANOUT));
    let each = match plan.connection.transport {
        Transport::Ssh => 1,
        // Two pipes and a handle on the process.
        Transport::Local => 3,
    };
    let needed = u64::try_from(at_once)
        .unwrap_or(u64::MAX)
        .saturating_mul(each)
        .saturating_add(OTHERS);
    let limit = getrlimit(Resource::Nofile);
    let soft = limit.current?;
    if soft >= needed {
        return None;
    }
    let raised = limit.maximum.map_or(needed, |hard| hard.min(needed));
    match setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(raised),
            maximum: limit.maximum,
        },
    ) {
        Ok(()) => Some(soft),
        Err(error) => {
            log::warn!("could not raise the limit on descriptors from {soft} to {raised}: {error}");
            None
        }
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
