//! What a run prints: events of the hub go in, writes for the writer thread come out. Pulled, not pushed: nothing is
//! rendered before there is room for it, so that a reader that stands still slows hosts down and costs no memory.
//!
//! Drain order: after [`Output::handle`] and after each report of the writer, call [`Output::poll_consumed`] until it is
//! empty, and [`Output::poll_write`] while the writer has room. It never writes, and never reads a clock.

mod closing;
mod escape;
mod groups;
mod jsonl;
mod lines;
mod pieces;
mod progress;
mod refused;
mod renderer;
mod saved;
mod store;
mod style;
mod tally;
#[cfg(test)]
mod tests;
mod via;
mod write;

pub(crate) use escape::Neutraliser;
pub use style::{Facts, Options};
pub use tally::Tally;
#[cfg(test)]
pub(crate) use tally::tally_of;
pub use write::{Credit, Destination, Extent, Payload, Write};

use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;

use self::groups::Groups;
use self::progress::Progress;
use self::refused::Refused;
use self::renderer::Renderer;
use self::saved::Saved;
use self::store::Limits;
use self::via::Via;
use self::write::Queue;
use crate::hub::{Event, Level, Outcome, RequestId, Status, StreamKind, Timings};
use crate::targets::Target;
use crate::words;

/// The output of a run.
#[derive(Debug)]
pub struct Output {
    options: Options,
    hosts: Vec<Target>,
    /// User and port that were really used.
    identities: Vec<Option<(String, u16)>>,
    started: Instant,
    renderer: Renderer,
    queue: Queue,
    tally: Tally,
    progress: Option<Progress>,
    end: End,
    spill_failed: bool,
    refused: Refused,
    via: Via,
    saved: Option<Saved>,
}

/// How the end of the output is coming along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// More events may come.
    Open,
    /// None will; what is left is being rendered.
    Draining { took: Duration },
    /// The summary is queued.
    Closed,
}

impl Output {
    /// Output for these hosts, in the order of their [`RequestId`]s.
    #[must_use]
    pub fn new(now: Instant, options: Options, hosts: Vec<Target>) -> Self {
        let limits = Limits {
            spilled: options.spill_max,
            ..Limits::default()
        };
        Self::with_limits(now, options, hosts, limits)
    }

    fn with_limits(now: Instant, options: Options, hosts: Vec<Target>, limits: Limits) -> Self {
        Self {
            renderer: Renderer::new(&options, &hosts, limits),
            identities: vec![None; hosts.len()],
            started: now,
            queue: Queue::default(),
            tally: Tally::new(hosts.len()),
            progress: options
                .progress
                .then(|| Progress::new(now, hosts.len(), options.width)),
            end: End::Open,
            spill_failed: false,
            refused: Refused::default(),
            via: Via::default(),
            saved: Saved::new(&options.save, &hosts),
            options,
            hosts,
        }
    }

    /// The user and port that a target resolved to, for the machine-readable form.
    pub fn identify(&mut self, request: RequestId, user: &str, port: u16) {
        if let Some(slot) = self.identities.get_mut(index(request)) {
            *slot = Some((user.to_owned(), port));
        }
    }

    /// Takes in what happened.
    pub fn handle(&mut self, event: Event) {
        match event {
            Event::Stage { request, .. } => self.set_running(request, true),
            Event::Output {
                request,
                stream,
                data,
            } => {
                let is_shown = match &mut self.saved {
                    Some(saved) => saved.push(request, stream, &data, &mut self.queue),
                    None => true,
                };
                if is_shown {
                    self.renderer.push(request, stream, data, &mut self.queue);
                }
            }
            Event::EnvRefused { request, name } => self.refused.add(request, name),
            Event::ViaOpenSsh { request, reason } => self.via.add(request, reason),
            Event::Finished { request, outcome } => {
                self.set_running(request, false);
                self.tally.finish(index(request), outcome);
                self.finish_host(request);
            }
            Event::Notice { request, level, text } => self.notice(request, level, &text),
        }
    }

    fn finish_host(&mut self, request: RequestId) {
        let is_written = match &mut self.saved {
            Some(saved) => saved.finish(request, &mut self.queue),
            None => true,
        };
        if is_written {
            self.renderer.finish_host(request);
        }
    }

    fn set_running(&mut self, request: RequestId, running: bool) {
        if let Some(progress) = &mut self.progress {
            progress.set_running(index(request), running);
        }
    }

    fn notice(&mut self, request: Option<RequestId>, level: Level, text: &str) {
        let wanted = match level {
            Level::Warning => !self.options.quiet,
            Level::Verbose => self.options.verbose,
        };
        if wanted {
            let host = request.and_then(|request| self.hosts.get(index(request)));
            let name = host.map(|host| format!("{}: ", host.text)).unwrap_or_default();
            self.complain(&format!("{name}{text}"));
        }
    }

    /// Says something on standard error even where `-q` was asked for: why output is missing, or why the run ends.
    pub fn complain(&mut self, text: &str) {
        self.queue
            .push_bytes(&Destination::Stderr, Bytes::from(words::line(text)), None);
    }

    /// A line of our own on standard output: what the whole run was for.
    pub fn print(&mut self, text: &str) {
        self.queue
            .push_bytes(&Destination::Stdout, Bytes::from(format!("{text}\n")), None);
    }

    /// The temporary file takes no more, or gives back no more: what was sent there can't be counted on.
    pub fn lose_spilled(&mut self) {
        self.spill_failed = true;
    }

    /// No more events will come: what was gathered so far is printed, then the summary.
    pub fn finish(&mut self, now: Instant) {
        if self.end != End::Open {
            return;
        }
        self.end = End::Draining {
            took: now.saturating_duration_since(self.started),
        };
        if self.progress.take().is_some() {
            self.queue.push(Write::bytes(Destination::Progress, Bytes::new()));
        }
        let unfinished: Vec<u32> = (0_u32..)
            .zip(self.tally.outcomes())
            .filter(|(_, outcome)| outcome.is_none())
            .map(|(request, _)| request)
            .collect();
        unfinished
            .into_iter()
            .for_each(|request| self.finish_host(RequestId(request)));
        if let Renderer::Grouped {
            store,
            with_stderr,
            groups,
            ..
        } = &mut self.renderer
        {
            *groups = Some(Groups::new(store, self.hosts.len(), *with_stderr, &self.options));
        }
    }

    /// The next thing to write. Call it while the writer has room.
    pub fn poll_write(&mut self) -> Option<Write> {
        while self.queue.is_empty() && self.render() {}
        self.queue.pop()
    }

    /// The next bytes that the hub may consume although they are not written: they are stored.
    pub fn poll_consumed(&mut self) -> Option<Credit> {
        self.queue.pop_consumed()
    }

    /// When [`Output::handle_timeout`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.progress.as_ref().and_then(Progress::due)
    }

    /// Somebody is asked something on the terminal (`true`), or has answered: no progress line in between, it would
    /// be drawn over the question.
    pub fn hold_progress(&mut self, held: bool) {
        let Some(progress) = &mut self.progress else {
            return;
        };
        progress.hold(held);
        if held {
            self.queue.push(Write::bytes(Destination::Progress, Bytes::new()));
        }
    }

    /// Whether what is printed appears on a terminal.
    #[must_use]
    pub fn is_on_terminal(&self) -> bool {
        self.options.stdout.is_terminal
    }

    /// Brings the progress line up to date.
    pub fn handle_timeout(&mut self, now: Instant) {
        let Some(progress) = &mut self.progress else {
            return;
        };
        if let Some(line) = progress.line(now, &self.tally, &self.hosts)
            && self.queue.is_empty()
        {
            self.queue.push(Write::bytes(Destination::Progress, line));
        }
    }

    /// The terminal has this many columns now.
    pub fn resize(&mut self, width: usize) {
        if let Some(progress) = &mut self.progress {
            progress.resize(width);
        }
    }

    /// How the hosts ended so far.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Whether everything has been fetched after [`Output::finish`].
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.end == End::Closed && self.queue.is_empty()
    }

    /// Renders the next piece; false: there is nothing to render.
    fn render(&mut self) -> bool {
        let queue = &mut self.queue;
        match &mut self.renderer {
            Renderer::Text(lines)
            | Renderer::Grouped {
                as_it_comes: lines, ..
            } if !lines.is_empty() => {
                lines.render(queue);
                return true;
            }
            Renderer::Grouped {
                store,
                groups: Some(groups),
                ..
            } if !groups.is_empty() => {
                groups.render(store, &self.hosts, queue);
                return true;
            }
            Renderer::Jsonl { finished, .. } if !finished.is_empty() => {
                self.render_object();
                return true;
            }
            Renderer::Text(_) | Renderer::Grouped { .. } | Renderer::Jsonl { .. } => {}
        }
        let is_written = !self.saved.as_ref().is_some_and(Saved::is_any_behind);
        if let End::Draining { took } = self.end
            && is_written
        {
            self.end = End::Closed;
            self.close(took);
            return true;
        }
        false
    }

    fn render_object(&mut self) {
        let Renderer::Jsonl { store, finished } = &mut self.renderer else {
            return;
        };
        let Some(request) = finished.pop_front() else {
            return;
        };
        let Some(host) = self.hosts.get(index(request)) else {
            return;
        };
        let streams = [StreamKind::Stdout, StreamKind::Stderr];
        streams
            .iter()
            .for_each(|kind| store.complete(request, *kind, &mut self.queue));
        let unfinished = cancelled();
        let outcome = self
            .tally
            .outcomes()
            .nth(index(request))
            .flatten()
            .unwrap_or(&unfinished);
        let resolved = self.identities.get(index(request)).and_then(Option::as_ref);
        let identity = jsonl::Identity {
            host: &host.host,
            user: resolved.map(|(user, _)| user.as_str()).or(host.user.as_deref()),
            port: resolved.map(|(_, port)| *port).or(host.port),
            via: self.via.of(request),
        };
        if let (Some(stdout), Some(stderr)) = (
            store.get(request, StreamKind::Stdout),
            store.get(request, StreamKind::Stderr),
        ) {
            let saved = self.saved.as_ref();
            let file = |kind| {
                saved
                    .and_then(|saved| saved.file(request, kind))
                    .map(Path::to_string_lossy)
            };
            let (out_file, err_file) = (file(StreamKind::Stdout), file(StreamKind::Stderr));
            let stdout = jsonl::Stream::new(stdout, out_file.as_deref());
            let stderr = jsonl::Stream::new(stderr, err_file.as_deref());
            let has_lost = saved.is_some_and(|saved| saved.has_lost(request));
            let line = jsonl::host_line(identity, outcome, (stdout, stderr), has_lost);
            self.queue
                .push_bytes(&Destination::Stdout, Bytes::from(line), None);
        }
        streams.iter().for_each(|kind| store.release(request, *kind));
    }
}

fn index(request: RequestId) -> usize {
    usize::try_from(request.0).unwrap_or(usize::MAX)
}

/// The outcome of a host that had not ended when the run did.
fn cancelled() -> Outcome {
    Outcome {
        status: Status::Cancelled,
        rc: None,
        signal: None,
        error: None,
        timings: Timings::default(),
        attempts: 0,
        retries: 0,
    }
}
