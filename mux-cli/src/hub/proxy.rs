//! What a process that is a connection (`ProxyCommand`) says beside it: kept for the case that the connection fails.
//! Bounded; whether and when it is shown is decided in `outcome`.

use std::hash::Hash;

use super::job::Job;
use super::session::one_line;
use super::shared::Context;
use super::{Level, Links};

/// Lines that are kept, the last ones: programs say at the end why they end.
const MAX_LINES: usize = 4;

impl<K: Copy + Eq + Hash> Job<K> {
    /// A line on its standard error.
    pub(super) fn proxy_says<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, line: &str) {
        let line = one_line(line);
        if line.is_empty() {
            return;
        }
        self.notice(cx, Level::Verbose, format!("ProxyCommand: {line}"));
        if self.proxy_said.len() >= MAX_LINES {
            self.proxy_said.remove(0);
        }
        self.proxy_said.push(line);
    }
}
