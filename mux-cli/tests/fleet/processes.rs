//! What /proc tells about processes: who descends from whom, who is alive, how much memory one has needed.

use std::collections::HashMap;
use std::fs;

/// Processes of this name below `ancestor`.
pub(crate) fn descendants(ancestor: u32, name: &str) -> Vec<u32> {
    let all: HashMap<u32, (String, u32)> = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok())
        .filter_map(|pid| Some((pid, stat(pid)?)))
        .collect();
    let below = |mut pid| {
        while let Some((_, parent)) = all.get(&pid) {
            if *parent == ancestor {
                return true;
            }
            pid = *parent;
        }
        false
    };
    let named = all.iter().filter(|(_, (comm, _))| comm == name);
    named.map(|(pid, _)| *pid).filter(|pid| below(*pid)).collect()
}

/// Name and parent of a process that is no zombie.
fn stat(pid: u32) -> Option<(String, u32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (head, tail) = text.rsplit_once(") ")?;
    let mut fields = tail.split(' ');
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    (state != "Z").then(|| {
        (
            head.split_once('(').map_or("", |(_, name)| name).to_owned(),
            parent,
        )
    })
}

/// Those that run this program still; an id that went to someone else meanwhile is not counted.
pub(crate) fn alive(pids: &[u32], name: &str) -> Vec<u32> {
    let runs = |pid: &u32| stat(*pid).is_some_and(|(comm, _)| comm == name);
    pids.iter().copied().filter(runs).collect()
}

/// The most memory that a process has had so far, in bytes; none when it has ended.
pub(crate) fn peak_resident(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}
