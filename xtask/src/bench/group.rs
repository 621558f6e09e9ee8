//! What a server and everything that it starts has used of the processors, counted by the kernel: sshd's children are
//! their own children's parents and wait for nobody, so that no other sum is complete.
//!
//! A control group is made for it where that is possible, and removed with the value. Never limits anything.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// Where the two versions of control groups are mounted, with the file that counts. The second also where it is
/// mounted beside the first.
const PLACES: [(&str, Count); 3] = [
    ("/sys/fs/cgroup", Count::Stat),
    ("/sys/fs/cgroup/unified", Count::Stat),
    ("/sys/fs/cgroup/cpuacct", Count::Usage),
];

/// How the time is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Count {
    /// Version 2: `usage_usec N` in `cpu.stat`.
    Stat,
    /// Version 1: nanoseconds in `cpuacct.usage`.
    Usage,
}

/// A control group.
#[derive(Debug)]
pub(super) struct Group {
    path: PathBuf,
    count: Count,
}

impl Group {
    /// Moves a process that has no children yet into a group of its own.
    pub(super) fn of(process: u32) -> Result<Self> {
        let mut errors = Vec::new();
        for (place, count) in PLACES {
            let path = Path::new(place).join(format!("mux-bench-{process}"));
            if !Path::new(place).join("cgroup.procs").exists() {
                continue;
            }
            let group = Self { path, count };
            match group.set_up(process) {
                Ok(()) => return Ok(group),
                Err(error) => errors.push(format!("{place}: {error:#}")),
            }
        }
        bail!(
            "the processor time of sshd's children can't be counted without a control group: {}; \
             run as root where one is mounted",
            errors.join("; ")
        )
    }

    fn set_up(&self, process: u32) -> Result<()> {
        fs::create_dir(&self.path)?;
        fs::write(self.path.join("cgroup.procs"), process.to_string())?;
        self.used().map(drop)
    }

    /// Since the group was made, by processes that have ended, too.
    pub(super) fn used(&self) -> Result<Duration> {
        let read = |name: &str| fs::read_to_string(self.path.join(name));
        match self.count {
            Count::Stat => {
                let text = read("cpu.stat")?;
                let line = text.lines().find_map(|line| line.strip_prefix("usage_usec "));
                let micros = line.context("no usage_usec in cpu.stat")?.trim().parse()?;
                Ok(Duration::from_micros(micros))
            }
            Count::Usage => Ok(Duration::from_nanos(read("cpuacct.usage")?.trim().parse()?)),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // What still runs in it goes back to the root of the hierarchy, or the directory could not be removed.
        if let (Ok(processes), Some(root)) = (
            fs::read_to_string(self.path.join("cgroup.procs")),
            self.path.parent(),
        ) {
            for process in processes.lines() {
                let _ = fs::write(root.join("cgroup.procs"), process);
            }
        }
        let _ = fs::remove_dir(&self.path);
    }
}
