//! Output as it comes, in whole lines behind the name of their host. What has not been written yet stays as raw bytes
//! and is rendered only when the writer has room: a prefix can make output several times larger, and a reader that
//! stands still must not make it pile up. It never cuts; a line that is too long is broken, and counted.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use super::escape::neutralise;
use super::pieces::Pieces;
use super::style::{Options, StreamStyle, host_style, trouble_style};
use super::write::{Credit, Destination, Queue};
use crate::hub::{RequestId, StreamKind};
use crate::targets::Target;

/// A line longer than this is broken: whole lines only must not mean memory without bound.
pub(super) const MAX_LINE: usize = 1024 * 1024;

/// What all hosts together may hold back in lines without an end; above, lines are broken early. 10,000 hosts with
/// 1 MiB each would be 10 GiB.
const MAX_HELD: usize = 16 * 1024 * 1024;

/// What is rendered in one go: at most this, plus a prefix for each line in it.
const MAX_RENDERED: usize = 64 * 1024;

/// Names are padded to the longest, unless that is longer than this.
const MAX_ALIGNED: usize = 32;

/// Lines of all hosts.
#[derive(Debug)]
pub(super) struct Lines {
    prefixes: Prefixes,
    stdout: StreamStyle,
    stderr: StreamStyle,
    /// Two streams a host: standard output at `2 * request`, standard error after it.
    streams: Vec<Stream>,
    ready: VecDeque<(RequestId, StreamKind)>,
    held: usize,
}

/// Bytes of one stream that are not rendered yet.
#[derive(Debug, Default)]
struct Stream {
    pieces: Pieces,
    /// Bytes at the front that were given back already.
    credited: usize,
    is_queued: bool,
    broken: bool,
}

/// The names in front of lines.
#[derive(Debug)]
enum Prefixes {
    None,
    Names { names: Vec<String>, width: usize },
}

impl Lines {
    pub(super) fn new(options: &Options, hosts: &[Target]) -> Self {
        let mut streams = Vec::new();
        streams.resize_with(hosts.len() * 2, Stream::default);
        Self {
            prefixes: Prefixes::new(options.prefix, hosts),
            stdout: options.stdout,
            stderr: options.stderr,
            streams,
            ready: VecDeque::new(),
            held: 0,
        }
    }

    fn stream(&mut self, request: RequestId, stream: StreamKind) -> Option<&mut Stream> {
        let offset = match stream {
            StreamKind::Stdout => 0,
            StreamKind::Stderr => 1,
        };
        self.streams
            .get_mut(usize::try_from(request.0).ok()? * 2 + offset)
    }

    /// Takes bytes in. They are given back when they are written, or at once where they wait for the end of a line.
    pub(super) fn push(&mut self, request: RequestId, kind: StreamKind, data: Bytes, queue: &mut Queue) {
        let may_pass_on = self.prefixes.is_raw(self.style(kind));
        let Some(stream) = self.stream(request, kind) else {
            return;
        };
        stream.pieces.push(data, may_pass_on);
        self.settle(request, kind, queue);
    }

    fn style(&self, kind: StreamKind) -> StreamStyle {
        match kind {
            StreamKind::Stdout => self.stdout,
            StreamKind::Stderr => self.stderr,
        }
    }

    fn break_line(&mut self, request: RequestId, kind: StreamKind) {
        let Some(stream) = self.stream(request, kind) else {
            return;
        };
        stream.pieces.complete_all();
        stream.broken = true;
        self.enqueue(request, kind);
    }

    /// The host has ended: its last lines are complete, newline or not.
    pub(super) fn finish(&mut self, request: RequestId) {
        for kind in [StreamKind::Stdout, StreamKind::Stderr] {
            let Some(stream) = self.stream(request, kind) else {
                continue;
            };
            stream.pieces.complete_all();
            if stream.pieces.has_complete() {
                self.enqueue(request, kind);
            }
        }
    }

    fn enqueue(&mut self, request: RequestId, kind: StreamKind) {
        let Some(stream) = self.stream(request, kind) else {
            return;
        };
        if !std::mem::replace(&mut stream.is_queued, true) {
            self.ready.push_back((request, kind));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// Renders some of what is complete; the hosts take turns.
    pub(super) fn render(&mut self, queue: &mut Queue) {
        let Some((request, kind)) = self.ready.pop_front() else {
            return;
        };
        let Some(stream) = self.stream(request, kind) else {
            return;
        };
        stream.is_queued = false;
        let raw = stream.pieces.take(MAX_RENDERED);
        let len = raw.iter().map(Bytes::len).sum();
        let credited = stream.credited.min(len);
        stream.credited -= credited;
        self.held -= credited;
        self.settle(request, kind, queue);
        let credit = Credit {
            request,
            stream: kind,
            bytes: len - credited,
        };
        let to = match kind {
            StreamKind::Stdout => Destination::Stdout,
            StreamKind::Stderr => Destination::Stderr,
        };
        let mut text = self.prefixes.apply(request, kind, self.style(kind), raw);
        // What was taken is given back when the last of it is written.
        let last = text.pop().unwrap_or_default();
        for piece in text {
            queue.push_bytes(&to, piece, None);
        }
        queue.push_bytes(&to, last, Some(credit));
    }

    /// What is left of a stream after rendering: more lines, or the beginning of one, which now waits.
    fn settle(&mut self, request: RequestId, kind: StreamKind, queue: &mut Queue) {
        let may_hold = self.held < MAX_HELD;
        let Some(stream) = self.stream(request, kind) else {
            return;
        };
        let rest = stream.pieces.len();
        if stream.pieces.has_complete() {
            self.enqueue(request, kind);
        } else if rest >= MAX_LINE || (rest > 0 && !may_hold) {
            self.break_line(request, kind);
        } else {
            let bytes = rest - std::mem::replace(&mut stream.credited, rest);
            self.held += bytes;
            queue.give_back(Credit {
                request,
                stream: kind,
                bytes,
            });
        }
    }

    /// The hosts whose lines had to be broken.
    pub(super) fn broken(&self) -> impl Iterator<Item = usize> {
        self.streams
            .chunks(2)
            .enumerate()
            .filter(|(_, pair)| pair.iter().any(|stream| stream.broken))
            .map(|(i, _)| i)
    }
}

impl Prefixes {
    fn new(wanted: bool, hosts: &[Target]) -> Self {
        if !wanted {
            return Self::None;
        }
        let names: Vec<String> = hosts.iter().map(|host| host.text.clone()).collect();
        let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        Self::Names {
            names,
            width: if width > MAX_ALIGNED { 0 } else { width },
        }
    }

    fn text(&self, request: RequestId, kind: StreamKind, style: StreamStyle) -> String {
        let Self::Names { names, width } = self else {
            return String::new();
        };
        let index = usize::try_from(request.0).unwrap_or(usize::MAX);
        let name = names.get(index).map_or("", String::as_str);
        let padding = if style.is_terminal {
            width.saturating_sub(name.chars().count())
        } else {
            0
        };
        let color = match kind {
            StreamKind::Stdout => host_style(index),
            StreamKind::Stderr => trouble_style(),
        };
        format!("{}{:padding$} ", style.paint(color, &format!("{name}:")), "")
    }

    /// Whether bytes are printed as they are.
    fn is_raw(&self, style: StreamStyle) -> bool {
        matches!(self, Self::None) && !style.is_terminal
    }

    /// `raw` with the prefix before each line, ending in a newline.
    fn apply(
        &self,
        request: RequestId,
        kind: StreamKind,
        style: StreamStyle,
        mut raw: Vec<Bytes>,
    ) -> Vec<Bytes> {
        if self.is_raw(style) {
            if !raw.last().is_some_and(|piece| piece.ends_with(b"\n")) {
                raw.push(Bytes::from_static(b"\n"));
            }
            return raw;
        }
        let prefix = self.text(request, kind, style);
        // Each line lies in one piece: nothing is passed on where lines are changed.
        let prefixed = raw.iter().map(|piece| prefix_lines(&prefix, style, piece));
        prefixed.collect()
    }
}

fn prefix_lines(prefix: &str, style: StreamStyle, raw: &[u8]) -> Bytes {
    let lines = memchr::memchr_iter(b'\n', raw).count() + 1;
    let mut out = BytesMut::with_capacity(raw.len() + prefix.len() * lines + 1);
    let mut rest = raw;
    while !rest.is_empty() {
        let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        let (line, behind) = rest.split_at(end);
        out.extend_from_slice(prefix.as_bytes());
        if style.is_terminal {
            out.extend_from_slice(neutralise(line).as_bytes());
        } else {
            out.extend_from_slice(line);
        }
        rest = behind;
    }
    if !raw.ends_with(b"\n") {
        out.extend_from_slice(b"\n");
    }
    out.freeze()
}
