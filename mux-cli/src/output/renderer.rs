//! The forms of output behind one type: where bytes of a host go, and where they are found again.

use std::collections::VecDeque;

use bytes::Bytes;

use super::groups::Groups;
use super::lines::Lines;
use super::store::{Limits, Overflow, Store};
use super::style::Options;
use super::write::Queue;
use crate::hub::{RequestId, StreamKind};
use crate::plan::Format;
use crate::targets::Target;

/// The forms of output.
#[derive(Debug)]
pub(super) enum Renderer {
    Text(Lines),
    Grouped {
        store: Store,
        as_it_comes: Lines,
        with_stderr: bool,
        groups: Option<Groups>,
    },
    Jsonl {
        store: Store,
        finished: VecDeque<RequestId>,
    },
}

impl Renderer {
    pub(super) fn new(options: &Options, hosts: &[Target], limits: Limits) -> Self {
        let store = |overflow| Store::new(hosts.len(), overflow, limits);
        match options.format {
            Format::Text => Self::Text(Lines::new(options, hosts)),
            Format::Grouped { with_stderr } => Self::Grouped {
                store: store(Overflow::Shared),
                as_it_comes: Lines::new(options, hosts),
                with_stderr,
                groups: None,
            },
            Format::Jsonl => Self::Jsonl {
                store: store(Overflow::Files(options.files.clone())),
                finished: VecDeque::new(),
            },
        }
    }

    pub(super) fn push(&mut self, request: RequestId, stream: StreamKind, data: Bytes, queue: &mut Queue) {
        match self {
            Self::Text(lines) => lines.push(request, stream, data, queue),
            Self::Grouped {
                as_it_comes,
                with_stderr: false,
                ..
            } if stream == StreamKind::Stderr => {
                as_it_comes.push(request, stream, data, queue);
            }
            Self::Grouped { store, .. } | Self::Jsonl { store, .. } => {
                store.push(request, stream, &data, queue)
            }
        }
    }

    pub(super) fn finish_host(&mut self, request: RequestId) {
        match self {
            Self::Text(lines)
            | Self::Grouped {
                as_it_comes: lines, ..
            } => lines.finish(request),
            Self::Jsonl { finished, .. } => finished.push_back(request),
        }
    }

    pub(super) fn lines(&self) -> Option<&Lines> {
        match self {
            Self::Text(lines)
            | Self::Grouped {
                as_it_comes: lines, ..
            } => Some(lines),
            Self::Jsonl { .. } => None,
        }
    }

    pub(super) fn store(&self) -> Option<&Store> {
        match self {
            Self::Text(_) => None,
            Self::Grouped { store, .. } | Self::Jsonl { store, .. } => Some(store),
        }
    }
}
