//! The last words of a run: the summary, and what happened to output that was too large.

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;

use super::lines::{self, Lines};
use super::renderer::Renderer;
use super::store::Store;
use super::write::Destination;
use super::{Output, jsonl, tally};
use crate::hub::Status;
use crate::targets::fold;

impl Output {
    /// The summary, and what else must be said.
    pub(super) fn close(&mut self, took: Duration) {
        let (spilled, spilled_bytes) = self.renderer.store().map(Store::spilled).unwrap_or_default();
        let (cut, cut_bytes) = self.renderer.store().map(Store::cut).unwrap_or_default();
        if matches!(self.renderer, Renderer::Jsonl { .. }) {
            let mut summary = jsonl::Counts::new(self.hosts.len(), |status| self.tally.count(status));
            summary.seconds = (took.as_secs_f64() * 1e3).round() / 1e3;
            (summary.spilled_bytes, summary.cut_bytes) = (spilled_bytes, cut_bytes);
            summary.via_openssh = self.via.count();
            let line = jsonl::line(&jsonl::SummaryObject { summary });
            self.queue
                .push_bytes(&Destination::Stdout, Bytes::from(line), None);
        }
        // That output is missing is no chatter.
        self.say_cut(&cut, cut_bytes);
        self.say_lost();
        if self.options.quiet {
            return;
        }
        self.say_refused();
        self.say_sizes(&spilled, spilled_bytes);
        if self.options.stderr.is_terminal || self.tally.count(Status::Ok) < self.tally.hosts() {
            let summary = self.tally.summary(&self.hosts, took, self.options.stderr);
            self.queue
                .push_bytes(&Destination::Stderr, Bytes::from(summary), None);
            self.say_via();
        }
    }

    fn say_sizes(&mut self, spilled: &HashSet<usize>, spilled_bytes: u64) {
        let broken: HashSet<usize> = self
            .renderer
            .lines()
            .into_iter()
            .flat_map(Lines::broken)
            .collect();
        if !broken.is_empty() {
            let names = self.names(&broken);
            self.complain(&format!(
                "{names}: lines without an end were broken into pieces of {}",
                tally::shown_size(lines::MAX_LINE as u64)
            ));
        }
        if !spilled.is_empty() {
            let (names, size) = (self.names(spilled), tally::shown_size(spilled_bytes));
            let place = match self.renderer {
                Renderer::Jsonl { .. } => "is in files that are named in its lines",
                Renderer::Text(_) | Renderer::Grouped { .. } if self.spill_failed => {
                    "was for a temporary file, which failed: what is missing above is lost"
                }
                Renderer::Text(_) | Renderer::Grouped { .. } => "went through a temporary file",
            };
            self.complain(&format!("{names}: large output, {size} of it {place}"));
        }
    }

    fn say_cut(&mut self, cut: &HashSet<usize>, cut_bytes: u64) {
        if !cut.is_empty() {
            let (names, size) = (self.names(cut), tally::shown_size(cut_bytes));
            let limit = tally::shown_size(self.renderer.store().map_or(0, Store::spill_max));
            self.complain(&format!(
                "{names}: the last {size} of output were cut: over {limit} in all (--spill-max)"
            ));
        }
    }

    pub(super) fn names(&self, wanted: &HashSet<usize>) -> String {
        let hosts = self.hosts.iter().enumerate();
        fold(
            hosts
                .filter(|(index, _)| wanted.contains(index))
                .map(|(_, host)| host),
        )
    }
}
