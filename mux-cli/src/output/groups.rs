//! Gathered output: hosts that wrote the same are shown once, under clush's header. Standard output and standard error
//! are compared each for itself, so that their order in time makes no difference.

use std::collections::HashMap;
use std::collections::VecDeque;

use bytes::Bytes;

use super::escape::neutralise;
use super::store::{Gathered, Store};
use super::style::{Options, StreamStyle, header_style};
use super::write::{Destination, Payload, Queue, Write};
use crate::hub::{RequestId, StreamKind};
use crate::targets::{Target, fold};

/// The line above and below the names.
const RULE: &str = "---------------";

/// The groups that are still to be written.
#[derive(Debug)]
pub(super) struct Groups {
    waiting: VecDeque<Vec<u32>>,
    streams: &'static [StreamKind],
    header: bool,
    style: StreamStyle,
}

impl Groups {
    /// Groups the hosts of `store` by what they wrote. Hosts that wrote nothing are in none.
    pub(super) fn new(store: &Store, hosts: usize, with_stderr: bool, options: &Options) -> Self {
        let streams: &[StreamKind] = match with_stderr {
            true => &[StreamKind::Stdout, StreamKind::Stderr],
            false => &[StreamKind::Stdout],
        };
        let mut groups: Vec<Vec<u32>> = Vec::new();
        let mut places = HashMap::new();
        for request in 0..u32::try_from(hosts).unwrap_or(u32::MAX) {
            let written: Vec<&Gathered> = streams
                .iter()
                .filter_map(|kind| store.get(RequestId(request), *kind))
                .collect();
            if written.iter().all(|stream| stream.len == 0 && stream.cut == 0) {
                continue;
            }
            let key: Vec<_> = written.iter().map(|stream| stream.fingerprint()).collect();
            let place = *places.entry(key).or_insert(groups.len());
            match groups.get_mut(place) {
                Some(group) => group.push(request),
                None => groups.push(vec![request]),
            }
        }
        Self {
            waiting: groups.into(),
            streams,
            header: options.prefix,
            style: options.stdout,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Queues the next group. One at a time: the whole of it may be larger than memory.
    pub(super) fn render(&mut self, store: &mut Store, hosts: &[Target], queue: &mut Queue) {
        let Some(group) = self.waiting.pop_front() else {
            return;
        };
        if self.header {
            let header = self.header(&group, hosts);
            queue.push_bytes(&Destination::Stdout, Bytes::from(header), None);
        }
        let Some(first) = group.first() else { return };
        for kind in self.streams {
            store.complete(RequestId(*first), *kind, queue);
            if let Some(stream) = store.get(RequestId(*first), *kind) {
                self.body(stream, queue);
            }
        }
        for request in group {
            self.streams
                .iter()
                .for_each(|kind| store.release(RequestId(request), *kind));
        }
    }

    fn header(&self, group: &[u32], hosts: &[Target]) -> String {
        let members = group
            .iter()
            .filter_map(|request| hosts.get(usize::try_from(*request).ok()?));
        let names = fold(members);
        let names = match group.len() {
            1 => names,
            count => format!("{names} ({count})"),
        };
        format!("{RULE}\n{}\n{RULE}\n", self.style.paint(header_style(), &names))
    }

    fn body(&self, stream: &Gathered, queue: &mut Queue) {
        let (extents, memory) = stream.parts();
        if !extents.is_empty() {
            let payload = Payload::Spilled {
                extents: extents.to_vec(),
                neutralise: self.style.is_terminal,
            };
            queue.push(Write {
                to: Destination::Stdout,
                payload,
                credit: None,
            });
        }
        let memory = match self.style.is_terminal {
            true => Bytes::from(neutralise(memory)),
            false => Bytes::copy_from_slice(memory),
        };
        queue.push_bytes(&Destination::Stdout, memory, None);
        if stream.len > 0 && !stream.ends_with_newline {
            queue.push_bytes(&Destination::Stdout, Bytes::from_static(b"\n"), None);
        }
    }
}
