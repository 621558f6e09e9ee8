//! What the system says and allows: memory, descriptors. Decides nothing.

use std::io;

use rustix::process::{Resource, getrlimit, setrlimit};

/// Each connection is a descriptor, and most systems give few at first.
pub(crate) fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        log::warn!("descriptor limit: {error}");
    }
}

/// What sockets of TCP take for their buffers, in KiB.
pub(crate) fn kernel_memory() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/net/sockstat")?;
    let line = text.lines().find_map(|line| line.strip_prefix("TCP:"));
    let pages = line.and_then(|line| line.rsplit_once(" mem ")?.1.trim().parse::<u64>().ok());
    let pages = pages.ok_or_else(|| io::Error::other("no memory of TCP in /proc/net/sockstat"))?;
    Ok(pages * rustix::param::page_size() as u64 / 1024)
}

/// Resident memory of this process, in KiB.
pub(crate) fn resident() -> io::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| io::Error::other("no VmRSS in /proc/self/status"))
}
