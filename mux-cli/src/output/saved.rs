//! A file for each host, in directories that were asked for (`--outdir`, `--errdir`): which bytes go to which file, and
//! which hosts lost some. It opens nothing and decides nothing about what is printed besides.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::digest;
use bytes::Bytes;

use super::Output;
use super::write::{Credit, Destination, MAX_WRITE, Payload, Queue, Write};
use crate::hub::{RequestId, StreamKind};
use crate::plan::SavePlan;
use crate::targets::Target;

/// The longest name of a file on the file systems of Linux and macOS, in bytes.
const MAX_NAME: usize = 255;

/// Hexadecimal digits of the digest that stands for the end of a name that is too long.
const DIGEST_DIGITS: usize = 16;

/// The files of a run.
#[derive(Debug)]
pub(super) struct Saved {
    is_shown: bool,
    stdout: Option<Side>,
    stderr: Option<Side>,
    /// Writes of each host that were not reported yet.
    behind: Vec<u32>,
    all_behind: usize,
    /// Hosts that have ended and wait for the last of these reports.
    ended: HashSet<RequestId>,
    lost: BTreeMap<String, HashSet<usize>>,
}

/// The files of one stream.
#[derive(Debug)]
struct Side {
    files: Vec<Arc<Path>>,
    begun: Vec<bool>,
}

impl Saved {
    /// None, if no files were asked for.
    pub(super) fn new(plan: &SavePlan, hosts: &[Target]) -> Option<Self> {
        let names: Vec<String> = hosts.iter().map(|host| file_name(&host.text)).collect();
        let side = |directory: &Option<PathBuf>| {
            let directory = directory.as_ref()?;
            Some(Side {
                files: names.iter().map(|name| directory.join(name).into()).collect(),
                begun: vec![false; names.len()],
            })
        };
        let (stdout, stderr) = (side(&plan.outdir), side(&plan.errdir));
        (stdout.is_some() || stderr.is_some()).then(|| Self {
            is_shown: plan.is_shown,
            stdout,
            stderr,
            behind: vec![0; hosts.len()],
            all_behind: 0,
            ended: HashSet::new(),
            lost: BTreeMap::new(),
        })
    }

    fn side(&mut self, kind: StreamKind) -> Option<&mut Side> {
        match kind {
            StreamKind::Stdout => self.stdout.as_mut(),
            StreamKind::Stderr => self.stderr.as_mut(),
        }
    }

    /// The file of a stream.
    pub(super) fn file(&self, request: RequestId, kind: StreamKind) -> Option<&Path> {
        let side = match kind {
            StreamKind::Stdout => self.stdout.as_ref(),
            StreamKind::Stderr => self.stderr.as_ref(),
        };
        side?.files.get(super::index(request)).map(AsRef::as_ref)
    }

    /// Queues what a host wrote, if it goes to a file. Returns whether it is to be printed too; then the bytes are given
    /// back by whoever prints them.
    pub(super) fn push(
        &mut self,
        request: RequestId,
        kind: StreamKind,
        data: &Bytes,
        queue: &mut Queue,
    ) -> bool {
        let is_shown = self.is_shown;
        let Some(to) = self.destination(request, kind) else {
            return true;
        };
        let credit = Credit {
            request,
            stream: kind,
            bytes: data.len(),
        };
        let mut rest = data.clone();
        while !rest.is_empty() {
            let piece = rest.split_to(rest.len().min(MAX_WRITE));
            let credit = (rest.is_empty() && !is_shown).then_some(credit);
            self.queue(request, &to, piece, credit, queue);
        }
        is_shown
    }

    /// A host has ended. Where it wrote nothing, its file is empty: one of an earlier run would pass for its output.
    /// Returns whether everything of it has reached its files.
    pub(super) fn finish(&mut self, request: RequestId, queue: &mut Queue) -> bool {
        for kind in [StreamKind::Stdout, StreamKind::Stderr] {
            let index = super::index(request);
            let is_missing = self
                .side(kind)
                .is_some_and(|side| side.begun.get(index) == Some(&false));
            if is_missing && let Some(to) = self.destination(request, kind) {
                self.queue(request, &to, Bytes::new(), None, queue);
            }
        }
        if self.is_behind(request) {
            self.ended.insert(request);
            return false;
        }
        true
    }

    fn destination(&mut self, request: RequestId, kind: StreamKind) -> Option<Destination> {
        let side = self.side(kind)?;
        let path = Arc::clone(side.files.get(super::index(request))?);
        *side.begun.get_mut(super::index(request))? = true;
        Some(Destination::Saved { request, path })
    }

    fn queue(
        &mut self,
        request: RequestId,
        to: &Destination,
        bytes: Bytes,
        credit: Option<Credit>,
        queue: &mut Queue,
    ) {
        if let Some(behind) = self.behind.get_mut(super::index(request)) {
            *behind += 1;
            self.all_behind += 1;
        }
        queue.push(Write {
            to: to.clone(),
            payload: Payload::Bytes(bytes),
            credit,
        });
    }

    fn is_behind(&self, request: RequestId) -> bool {
        self.behind
            .get(super::index(request))
            .is_some_and(|behind| *behind > 0)
    }

    /// Whether writes are under way: what is lost is known once they are over.
    pub(super) fn is_any_behind(&self) -> bool {
        self.all_behind > 0
    }

    /// A write is over. Returns the host if it has ended and this was the last.
    pub(super) fn written(&mut self, request: RequestId) -> bool {
        if let Some(behind) = self.behind.get_mut(super::index(request)) {
            *behind = behind.saturating_sub(1);
            self.all_behind = self.all_behind.saturating_sub(1);
        }
        !self.is_behind(request) && self.ended.remove(&request)
    }

    /// Whether some of a host's output could not be written.
    pub(super) fn has_lost(&self, request: RequestId) -> bool {
        self.lost
            .values()
            .any(|hosts| hosts.contains(&super::index(request)))
    }
}

impl Output {
    /// A write to a host's file was reported. Returns whether there is something to fetch because of that.
    pub fn saved(&mut self, request: RequestId) -> bool {
        let Some(saved) = &mut self.saved else {
            return false;
        };
        let is_over = saved.written(request);
        let is_last = !saved.is_any_behind();
        if is_over {
            self.renderer.finish_host(request);
        }
        is_over || is_last
    }

    /// A host's file takes no more, for this reason. The first one is worth a line of its own at once; the others are
    /// said together at the end. Returns whether this is the first.
    pub fn lose_saved(&mut self, request: RequestId, reason: String) -> bool {
        let Some(saved) = &mut self.saved else { return true };
        let is_first = saved.lost.is_empty();
        saved
            .lost
            .entry(reason)
            .or_default()
            .insert(super::index(request));
        is_first
    }

    /// Whose output was lost, if it was said of one host only.
    pub(super) fn say_lost(&mut self) {
        let lost = self.saved.as_mut().map(|saved| std::mem::take(&mut saved.lost));
        let lost = lost.unwrap_or_default();
        if lost.values().map(HashSet::len).sum::<usize>() < 2 {
            return;
        }
        for (reason, hosts) in lost {
            let names = self.names(&hosts);
            self.complain(&format!("{names}: output lost: {reason}"));
        }
    }
}

/// The name of the file for a target: the target's own name, with everything in it that a path or a shell would take
/// for something else written as `%` and two hexadecimal digits. Different targets have different names.
fn file_name(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let is_special = matches!(c, '/' | '%' | '~' | '\\') || c.is_control() || c.is_whitespace();
        if is_special || (at == 0 && matches!(c, '.' | '-')) {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                write!(name, "%{byte:02X}").expect("writing to a String does not fail");
            }
        } else {
            name.push(c);
        }
    }
    if name.len() <= MAX_NAME {
        return name;
    }
    let digest = digest::digest(&digest::SHA256, name.as_bytes());
    let kept = name.floor_char_boundary(MAX_NAME - DIGEST_DIGITS - 1);
    name.truncate(kept);
    name.push('~');
    for byte in digest.as_ref().iter().take(DIGEST_DIGITS / 2) {
        write!(name, "{byte:02x}").expect("writing to a String does not fail");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_is_a_name_keeps_it() {
        for name in ["web1", "root@web1:2222", "[2001:db8::7]:22", "fe80::1%eth0"] {
            assert_eq!(file_name(name), name.replace('%', "%25"));
        }
    }

    #[test]
    fn what_a_path_would_take_for_something_else_is_written_out() {
        for (text, name) in [
            ("..", "%2E."),
            (".bashrc", "%2Ebashrc"),
            ("-rf", "%2Drf"),
            ("a/../../etc/passwd", "a%2F..%2F..%2Fetc%2Fpasswd"),
            ("a\n\u{7f}\0b", "a%0A%7F%00b"),
            ("a b\u{a0}", "a%20b%C2%A0"),
            ("ü", "ü"),
        ] {
            assert_eq!(file_name(text), name);
        }
    }

    #[test]
    fn names_that_are_too_long_are_cut_and_still_differ() {
        let names: HashSet<String> = ["a", "b", "ü", "/"]
            .iter()
            .map(|last| file_name(&format!("{}{last}", "ü".repeat(200))))
            .collect();
        assert_eq!(names.len(), 4);
        assert!(names.iter().all(|name| name.len() <= MAX_NAME), "{names:?}");
        assert_eq!(file_name(&"a".repeat(MAX_NAME)), "a".repeat(MAX_NAME));
    }
}
