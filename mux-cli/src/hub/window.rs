//! What the channels of a run may have in flight: arithmetic on how many there are. Never grants anything itself.

/// All windows of a run together: what the hosts may have sent and we not yet written.
const MAX_WINDOWS: usize = 32 * 1024 * 1024;

/// No channel needs more: 2 MiB in flight are 80 MB/s at 25 ms.
const MAX_WINDOW: usize = 2 * 1024 * 1024;

/// Every channel has this much, whatever the sum: it is what OpenSSH starts with for a terminal session.
const MIN_WINDOW: usize = 64 * 1024;

/// What a channel may have in flight when so many share the memory: within the sum, or the minimum.
pub(super) fn fair(channels: usize) -> u32 {
    let fair = (MAX_WINDOWS / channels.max(1)).clamp(MIN_WINDOW, MAX_WINDOW);
    u32::try_from(fair).expect("at most 2 MiB")
}
