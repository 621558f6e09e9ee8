//! The loop of a run: what the links, the outside and the writer say goes to the hub, what the hub says goes to the
//! output, what the output gives goes to the writer. Decides only when the run is over.

use std::io;
use std::time::{Duration, Instant};

use mux_core::{Key, Mailbox};

use super::far::Far;
use super::flights::Flights;
use super::input::Input;
use super::net::{Heard, Net};
use super::outside::Outside;
use super::recording::Recording;
use super::report;
use super::settings;
use super::stop::Stop;
use crate::exit::{self, Cut};
use crate::hub::{Event, Hub, Level, Reason, Request, RequestId, StreamKind};
use crate::output::{Destination, Output};
use crate::plan::ExitRule;
use crate::targets::Target;
use crate::writer::{Report, Writer};

/// Output is handed to the writer this often, unless there is much of it or it is the last. Each time wakes two threads,
/// which costs as much as half the messages of a login; a tenth of a second is what people take for at once.
const HAND_OVER: Duration = Duration::from_millis(100);

/// Bytes of output that are handed over at the end of a turn: half the smallest window of a channel, so that no host
/// ever waits.
const MUCH: usize = 32 * 1024;

/// A loop that comes round this much later than it was due has been stopped: all that the windows of a thousand hosts
/// hold is decrypted in a fraction of it.
const STANDSTILL: Duration = Duration::from_secs(1);

/// Bytes of output that are handed over within a turn: a quarter of what may wait for the writer, so that it is never
/// without work while the loop is busy.
const VERY_MUCH: usize = 256 * 1024;

/// Everything that a run consists of.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) net: Net,
    pub(super) hub: Hub<Key>,
    /// The daemon, if there is one.
    pub(super) far: Option<Far>,
    pub(super) outside: Outside,
    pub(super) output: Output,
    pub(super) writer: Writer,
    reports: Mailbox<Report>,
    pub(super) stop: Stop,
    pub(super) targets: Vec<Target>,
    asking: bool,
    /// A question stands where output would go: nothing is written behind it until somebody has answered.
    hushed: bool,
    /// Bytes for the output since it was last handed over; what is not output of a host counts as one.
    pub(super) fresh: usize,
    /// Nothing is handed over before, unless there is reason.
    hand_over_next: Option<Instant>,
    /// The writer had no room for everything.
    backlog: bool,
    /// Standard error takes no more. Words of ours are no loss there, words of hosts are.
    pub(super) stderr_failed: bool,
    pub(super) cut: Option<Cut>,
    /// Not waiting for hosts any more, and only until then for the writer.
    pub(super) leave_by: Option<Instant>,
    pub(super) over: bool,
    pub(super) recording: Option<Recording>,
    pub(super) flights: Flights,
}

impl Engine {
    pub(super) fn new(
        net: Net,
        hub: Hub<Key>,
        outside: Outside,
        output: Output,
        (writer, reports): (Writer, Mailbox<Report>),
        stop: Stop,
        targets: Vec<Target>,
    ) -> Self {
        Self {
            net,
            hub,
            far: None,
            outside,
            output,
            writer,
            reports,
            stop,
            targets,
            asking: false,
            hushed: false,
            fresh: 0,
            hand_over_next: None,
            backlog: false,
            stderr_failed: false,
            cut: None,
            leave_by: None,
            over: false,
            recording: None,
            flights: Flights::default(),
        }
    }

    pub(super) fn submit_ssh(&mut self, now: Instant, target: settings::Prepared) {
        let index = usize::try_from(target.request.id.0).unwrap_or(usize::MAX);
        if let Some(shown) = self.targets.get(index) {
            self.outside.add(&target, shown);
        }
        self.output
            .identify(target.request.id, &target.request.user, target.request.port);
        self.hand_in(now, target.request, target.other_way.is_some());
    }

    /// A jump host on the way of targets that are submitted later.
    pub(super) fn add_hop(&mut self, hop: settings::Prepared) {
        self.outside.add_hop(&hop);
        self.hub.add_hop(hop.request);
    }

    pub(super) fn submit_openssh(&mut self, now: Instant, request: Request) {
        // Where ssh alone knows them, there is nothing to say.
        if request.port != 0 {
            self.output.identify(request.id, &request.user, request.port);
        }
        self.submit(now, request);
    }

    pub(super) fn submit(&mut self, now: Instant, request: Request) {
        self.hub.submit(now, &mut self.net, request);
    }

    /// An event that the hub knows nothing of.
    pub(super) fn tell(&mut self, event: Event) {
        self.fresh += match &event {
            Event::Output { data, .. } => data.len(),
            Event::Stage { .. } | Event::EnvRefused { .. } | Event::ViaOpenSsh { .. } => 0,
            Event::Finished { .. } | Event::Notice { .. } => 1,
        };
        self.output.handle(event);
    }

    /// Something about the run as a whole.
    pub(super) fn say(&mut self, level: Level, text: String) {
        self.tell(Event::Notice {
            request: None,
            level,
            text,
        });
    }

    /// Runs until everything is finished and written, and returns the exit status.
    pub(super) fn run(mut self, rule: ExitRule) -> io::Result<u8> {
        let ran = self.run_to_end();
        let status = match ran {
            Ok(()) => exit::status(self.output.tally(), rule, self.cut),
            Err(_) => exit::INTERNAL,
        };
        self.record_end(status);
        ran.map(|()| status)
    }

    fn run_to_end(&mut self) -> io::Result<()> {
        let mut now = self.net.turn(Some(Duration::ZERO))?;
        loop {
            self.settle(now);
            while let Some(heard) = self.net.poll() {
                self.heard(now, heard);
                self.settle(now);
            }
            self.hand_over(now, MUCH);
            self.on_time(now);
            if self.is_over(now) {
                break;
            }
            now = self.turn(now)?;
        }
        self.say_last_words();
        self.part_from_far();
        // What was said last, goodbyes among it, leaves before the process does.
        self.net.turn(Some(Duration::ZERO))?;
        self.net.end();
        if let Err(error) = self.outside.close() {
            log::warn!("could not keep what was learned about hosts: {error}");
        }
        self.net.log_packets();
        Ok(())
    }

    /// Waits for the next thing. Time for which the process stood still is nobody's.
    fn turn(&mut self, now: Instant) -> io::Result<Instant> {
        self.flush_far();
        let wait = self.wait(now);
        let then = self.net.turn(wait)?;
        let late = wait.map_or(Duration::ZERO, |wait| then.saturating_duration_since(now + wait));
        if late >= STANDSTILL {
            log::info!("stood still for {late:?}");
            self.hub.stood_still(then, &mut self.net, late);
            self.outside.stood_still(late);
        }
        Ok(then)
    }

    /// How long to wait if nothing happens: until the first thing that is due.
    fn wait(&self, now: Instant) -> Option<Duration> {
        let due = [
            self.hub.poll_timeout(),
            self.outside.poll_timeout(),
            self.output.poll_timeout(),
            self.hand_over_at(),
            self.leave_by,
        ];
        due.into_iter()
            .flatten()
            .min()
            .map(|at| at.saturating_duration_since(now))
    }

    fn on_time(&mut self, now: Instant) {
        if self.hub.poll_timeout().is_some_and(|at| at <= now) {
            self.hub.handle_timeout(now, &mut self.net);
        }
        if self.outside.poll_timeout().is_some_and(|at| at <= now) {
            self.outside.handle_timeout(now, &mut self.net);
        }
        if self.output.poll_timeout().is_some_and(|at| at <= now) {
            self.output.handle_timeout(now);
            self.fresh += 1;
        }
        self.settle(now);
    }

    fn heard(&mut self, now: Instant, heard: Heard) {
        match heard {
            Heard::Link(key, event) => self.hub.handle_link(now, &mut self.net, key, event),
            Heard::Signal(number) => self.signal(now, number),
            Heard::Woken => {
                while let Some(report) = self.reports.take() {
                    self.reported(now, report);
                }
                self.outside.heard(now, &mut self.net, Heard::Woken);
            }
            Heard::Node(_, said) => self.heard_far(now, said),
            Heard::NodeClosed(_, why) => self.lost_far(&why),
            // Nobody is listened for.
            Heard::Accepted(_) => {}
            Heard::Agent(..) | Heard::AgentClosed(..) => self.outside.heard(now, &mut self.net, heard),
        }
    }

    /// Passes everything on until nobody has anything to say. Runs after every event, so that the answer to a
    /// question leaves in the same flight as what it makes possible.
    fn settle(&mut self, now: Instant) {
        loop {
            if let Some((ticket, action)) = self.hub.poll_action() {
                self.outside.act(now, &mut self.net, ticket, action);
            } else if let Some((ticket, answer)) = self.outside.poll_answer() {
                self.answer(now, ticket, answer);
            } else if let Some(event) = self.hub.poll_event() {
                self.tell(event);
            } else if let Some((request, host, flight)) = self.hub.poll_flight() {
                self.show_flight(request, &host, &flight);
            } else if !self.settle_far(now) {
                break;
            }
        }
        if self.waits_for_judgements() {
            self.outside.ask_about_host_keys(now, &mut self.net);
        }
        if self.outside.is_asking() != self.asking {
            self.asking = !self.asking;
            if let Some(input) = self.outside.input() {
                input.hold(self.asking);
            }
            self.output.hold_progress(self.asking);
            if self.asking {
                // Before whatever still waits for room: a line that is drawn when that is written would stay.
                self.writer.take_progress_away();
            }
            self.hushed = false;
            self.fresh += VERY_MUCH;
        }
        for (level, text) in self.outside.notices() {
            self.say(level, text);
        }
        if let Some(fault) = self.outside.input().and_then(Input::fault) {
            // Half of an input must not pass for all of it: no command sees its end.
            self.fail(&fault);
            self.cancel_all(now, Reason::Interrupted);
            return self.settle(now);
        }
        if self.is_idle() && !self.outside.is_writing() {
            self.finish(now);
        }
        self.hand_over(now, VERY_MUCH);
        self.hushed = self.asking && self.outside.asks_on_terminal() && self.output.is_on_terminal();
        // The progress line was taken away above, and whoever asks writes to the terminal by itself.
        if self.writer.is_idle() {
            self.outside.terminal_is_free();
        }
        while let Some(credit) = self.output.poll_consumed() {
            self.consume(now, credit);
        }
    }

    /// Gives the writer what there is to write, as far as it has room.
    fn hand_over(&mut self, now: Instant, much: usize) {
        let at_once = self.over || self.backlog || self.fresh >= much;
        let early = self.hand_over_next.is_some_and(|at| at > now);
        if (self.hushed && !self.over) || !at_once && (early || self.fresh == 0) {
            return;
        }
        while self.writer.has_room()
            && let Some(write) = self.output.poll_write()
        {
            self.writer.send(write);
        }
        self.writer.flush();
        self.backlog = !self.writer.has_room();
        self.hand_over_next = Some(now + HAND_OVER);
        self.fresh = 0;
    }

    /// When output that waits is handed over.
    fn hand_over_at(&self) -> Option<Instant> {
        self.hand_over_next.filter(|_| self.fresh > 0 && !self.hushed)
    }

    /// No more output will come.
    fn finish(&mut self, now: Instant) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        for text in self
            .outside
            .input()
            .map(|input| input.last_words())
            .unwrap_or_default()
        {
            self.say(Level::Warning, text);
        }
        if let Some(learning) = &mut self.outside.learning {
            for line in learning.lines(&self.targets) {
                self.output.print(&line);
            }
        }
        let left = self.left_running();
        self.say_left_running(left);
        self.output.finish(now);
    }

    pub(super) fn say_left_running(&mut self, mut left: Vec<RequestId>) {
        if !left.is_empty() {
            left.sort_unstable();
            left.dedup();
            let names = report::names(&left, &self.targets);
            self.output.complain(&format!("may still be running on {names}"));
        }
    }

    fn is_over(&self, now: Instant) -> bool {
        let written = self.over && self.output.is_done() && self.writer.is_idle();
        written || self.leave_by.is_some_and(|at| at <= now)
    }

    fn reported(&mut self, now: Instant, report: Report) {
        self.writer.handle(&report);
        match report {
            Report::Written { credits, saved, .. } => {
                for credit in credits {
                    if self.stderr_failed && credit.stream == StreamKind::Stderr {
                        // Gone, and there is no place left to say it.
                        self.cut.get_or_insert(Cut::Internal);
                    }
                    self.consume(now, credit);
                }
                for (request, credit) in saved {
                    if let Some(credit) = credit {
                        self.consume(now, credit);
                    }
                    self.fresh += usize::from(self.output.saved(request));
                }
            }
            Report::Failed(error) if error.is_broken_pipe() => {
                // Nobody reads: the hosts are told to stop, nobody waits for them, and there is nothing to say.
                self.cut = Some(Cut::BrokenPipe);
                self.cancel_all(now, Reason::Interrupted);
                self.leave_by = Some(now);
            }
            Report::Failed(error) => match error.to {
                Destination::Stderr => self.stderr_failed = true,
                Destination::Progress => {}
                Destination::Stdout => {
                    self.cancel_all(now, Reason::Interrupted);
                    self.fail(&error.to_string());
                }
                Destination::Spill => {
                    self.output.lose_spilled();
                    self.fail(&error.to_string());
                }
                Destination::File(_) => self.fail(&error.to_string()),
                Destination::Saved { request, .. } => {
                    self.cut.get_or_insert(Cut::Internal);
                    if self.output.lose_saved(request, error.fault.to_string()) {
                        self.fail(&error.to_string());
                    }
                }
            },
        }
    }

    fn fail(&mut self, text: &str) {
        self.fresh += 1;
        self.cut.get_or_insert(Cut::Internal);
        self.output.complain(text);
    }
}
