//! The commands of all connections: starts them, carries their output and ends them. Decides who waits for whom;
//! the bytes on the wire are the server's business.

use std::collections::HashMap;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mux_core::{Driver, Key};
use mux_proto::RawEvent;
use mux_ssh::server::{Event, Exit, Output, Server, SessionId};

use crate::builtin::{self, Builtin};
use crate::options::Reply;
use crate::process::{self, Process};
use crate::wire::Wire;

/// A command's place: its connection and its channel there.
pub(crate) type Place = (Key, SessionId);

/// How soon a child is asked again whether it has taken its input. A pipe says nothing when it drains.
const STDIN_RETRY: Duration = Duration::from_millis(5);
/// Input that may wait for a child before the client has to wait.
const STDIN_WAITING: usize = 64 * 1024;
/// Bytes of output that are made once and sliced for whoever wants output in bulk.
const BULK: usize = 32 * 1024;

/// All commands that run.
#[derive(Debug)]
pub(crate) struct Jobs {
    reply: Reply,
    /// Lines of `y`.
    bulk: Bytes,
    jobs: HashMap<Place, Job>,
    /// Variables that came ahead of their command.
    env: HashMap<Place, Vec<(Bytes, Bytes)>>,
    /// Whose a child's link or a timer is.
    places: HashMap<Key, Place>,
}

#[derive(Debug)]
enum Job {
    Bulk { left: Option<u64> },
    Sleep { timer: Key },
    Cat,
    Process(Box<Process>),
}

impl Jobs {
    /// No commands yet.
    pub(crate) fn new(reply: Reply) -> Self {
        Self {
            reply,
            bulk: Bytes::from(b"y\n".repeat(BULK / 2)),
            jobs: HashMap::new(),
            env: HashMap::new(),
            places: HashMap::new(),
        }
    }

    /// A client said something about a channel, on the target of this name.
    pub(crate) fn handle_ssh(
        &mut self,
        driver: &mut Driver<Wire>,
        now: Instant,
        key: Key,
        name: &str,
        event: Event,
    ) {
        match event {
            Event::Authenticated { .. } | Event::Answer { .. } | Event::Disconnected { .. } => {}
            // Made elsewhere, or not at all.
            Event::DirectTcpip { .. } => {}
            Event::Env { session, name, value } => {
                self.env.entry((key, session)).or_default().push((name, value));
            }
            Event::Exec { session, command } => self.start(driver, now, (key, session), name, &command),
            Event::Stdin { session, data } => self.stdin(driver, now, (key, session), data),
            Event::StdinEof { session } => self.stdin_eof(driver, (key, session)),
            Event::Signal { session, name } => self.signal(driver, (key, session), &name),
            Event::Room { session } => self.room(driver, (key, session)),
            Event::SessionClosed { session } => self.stop(driver, (key, session)),
        }
    }

    /// The connection is gone, and with it everything that ran for it.
    pub(crate) fn connection_closed(&mut self, driver: &mut Driver<Wire>, key: Key) {
        let gone: Vec<Place> = self
            .jobs
            .keys()
            .filter(|(connection, _)| *connection == key)
            .copied()
            .collect();
        for place in gone {
            self.stop(driver, place);
        }
        self.env.retain(|(connection, _), _| *connection != key);
    }

    /// Something came out of a child.
    pub(crate) fn handle_plain(&mut self, driver: &mut Driver<Wire>, key: Key, event: RawEvent) {
        let Some(&place) = self.places.get(&key) else {
            return;
        };
        let Some(Job::Process(process)) = self.jobs.get_mut(&place) else {
            return;
        };
        let (output, flow) = process.flow(key);
        let RawEvent::Data(data) = event else {
            flow.ended = true;
            return self.finish(driver, place);
        };
        let len = data.len();
        let Some(server) = server(driver, place.0) else {
            return;
        };
        match output {
            Output::Stdout => server.stdout(place.1, data),
            Output::Stderr => server.stderr(place.1, data),
        }
        let room = server.room(place.1) > 0;
        flow.owed += len;
        if room {
            flow.give_back(driver, key);
        }
    }

    /// A link to a child is gone: it says no more.
    pub(crate) fn plain_closed(&mut self, driver: &mut Driver<Wire>, key: Key) {
        let Some(place) = self.places.remove(&key) else {
            return;
        };
        if let Some(Job::Process(process)) = self.jobs.get_mut(&place) {
            process.flow(key).1.ended = true;
            self.finish(driver, place);
        }
    }

    /// A child ended.
    pub(crate) fn exited(&mut self, driver: &mut Driver<Wire>, key: Key, status: Option<ExitStatus>) {
        let Some(place) = self.places.remove(&key) else {
            return;
        };
        if let Some(Job::Process(process)) = self.jobs.get_mut(&place) {
            // Collected by someone else: nothing is known, so say failure.
            process.status = Some(status.unwrap_or_else(|| ExitStatus::from_raw(255 << 8)));
            self.finish(driver, place);
        }
    }

    /// A timer of ours came due.
    pub(crate) fn timer(&mut self, driver: &mut Driver<Wire>, now: Instant, key: Key) {
        let Some(place) = self.places.remove(&key) else {
            return;
        };
        match self.jobs.get(&place) {
            Some(Job::Sleep { .. }) => self.answer(driver, place, Bytes::new(), 0),
            Some(Job::Process(_)) => self.drain_stdin(driver, now, place),
            Some(Job::Bulk { .. } | Job::Cat) | None => {}
        }
    }

    fn start(&mut self, driver: &mut Driver<Wire>, now: Instant, place: Place, name: &str, command: &Bytes) {
        let env = self.env.remove(&place).unwrap_or_default();
        match self.reply {
            Reply::Builtin => self.start_builtin(driver, now, place, builtin::parse(command, name)),
            Reply::Shell => match process::spawn(driver, command, &env) {
                Ok(child) => {
                    let keys = [Some(child.process), Some(child.stdio), child.stderr];
                    self.places
                        .extend(keys.into_iter().flatten().map(|key| (key, place)));
                    self.jobs
                        .insert(place, Job::Process(Box::new(Process::new(child))));
                }
                Err(error) => {
                    let text = Bytes::from(format!("targets: {error}\n"));
                    self.start_builtin(driver, now, place, Builtin::Complain(text, 126));
                }
            },
        }
    }

    fn start_builtin(&mut self, driver: &mut Driver<Wire>, now: Instant, place: Place, builtin: Builtin) {
        match builtin {
            Builtin::Print(text, status) => self.answer(driver, place, text, status),
            Builtin::Complain(text, status) => {
                if let Some(server) = server(driver, place.0) {
                    server.stderr(place.1, text);
                }
                self.answer(driver, place, Bytes::new(), status);
            }
            Builtin::Bulk(left) => {
                self.jobs.insert(place, Job::Bulk { left });
                self.room(driver, place);
            }
            Builtin::Sleep(time) => {
                let timer = driver.timer(now + time);
                self.places.insert(timer, place);
                self.jobs.insert(place, Job::Sleep { timer });
            }
            Builtin::Cat => {
                self.jobs.insert(place, Job::Cat);
            }
        }
    }

    fn answer(&mut self, driver: &mut Driver<Wire>, place: Place, stdout: Bytes, status: u32) {
        self.jobs.remove(&place);
        if let Some(server) = server(driver, place.0) {
            server.reply(place.1, stdout, status);
        }
    }

    fn stdin(&mut self, driver: &mut Driver<Wire>, now: Instant, place: Place, data: Bytes) {
        let len = data.len();
        match self.jobs.get_mut(&place) {
            Some(Job::Process(process)) => {
                process.stdin += len;
                if let Some(raw) = driver.protocol(process.child.stdio).and_then(Wire::as_plain) {
                    raw.send(data);
                }
                return self.drain_stdin(driver, now, place);
            }
            Some(Job::Cat) => {
                if let Some(server) = server(driver, place.0) {
                    server.stdout(place.1, data);
                }
            }
            Some(Job::Bulk { .. } | Job::Sleep { .. }) | None => {}
        }
        if let Some(server) = server(driver, place.0) {
            server.consume(place.1, len);
        }
    }

    fn stdin_eof(&mut self, driver: &mut Driver<Wire>, place: Place) {
        match self.jobs.get_mut(&place) {
            Some(Job::Process(process)) => {
                process.stdin_ended = true;
                if let Some(raw) = driver.protocol(process.child.stdio).and_then(Wire::as_plain) {
                    raw.finish();
                }
            }
            Some(Job::Cat) => self.answer(driver, place, Bytes::new(), 0),
            Some(Job::Bulk { .. } | Job::Sleep { .. }) | None => {}
        }
    }

    /// Lets the client send more input, unless the child has yet to take what came.
    fn drain_stdin(&mut self, driver: &mut Driver<Wire>, now: Instant, place: Place) {
        let Some(Job::Process(process)) = self.jobs.get_mut(&place) else {
            return;
        };
        if process.stdin == 0 || process.stdin_ended {
            return;
        }
        let unsent = driver
            .protocol(process.child.stdio)
            .and_then(Wire::as_plain)
            .map_or(0, |raw| raw.unsent());
        if unsent > STDIN_WAITING {
            let timer = driver.timer(now + STDIN_RETRY);
            self.places.insert(timer, place);
            return;
        }
        let taken = std::mem::take(&mut process.stdin);
        if let Some(server) = server(driver, place.0) {
            server.consume(place.1, taken);
        }
    }

    /// The client takes more: whoever waited goes on.
    fn room(&mut self, driver: &mut Driver<Wire>, place: Place) {
        let Some(server) = server(driver, place.0) else {
            return;
        };
        match self.jobs.get_mut(&place) {
            Some(Job::Bulk { left }) => {
                if send_bulk(server, place.1, &self.bulk, left) {
                    self.answer(driver, place, Bytes::new(), 0);
                }
            }
            Some(Job::Process(process)) => {
                if server.room(place.1) > 0 {
                    process.stdout.give_back(driver, process.child.stdio);
                    if let Some(stderr) = process.child.stderr {
                        process.stderr.give_back(driver, stderr);
                    }
                }
            }
            Some(Job::Sleep { .. } | Job::Cat) | None => {}
        }
    }

    fn signal(&mut self, driver: &mut Driver<Wire>, place: Place, name: &str) {
        match self.jobs.get(&place) {
            Some(Job::Process(process)) => {
                if let Some((number, _)) = process::SIGNALS.iter().find(|(_, known)| *known == name) {
                    process::kill(driver, process, *number);
                }
            }
            Some(Job::Bulk { .. } | Job::Sleep { .. } | Job::Cat) => {
                let exit = Exit::Signal {
                    name: name.to_owned(),
                    core_dumped: false,
                    message: String::new(),
                };
                self.stop(driver, place);
                self.end(driver, place, exit);
            }
            None => {}
        }
    }

    /// Ends a command whose client is gone, as sshd does: with a hangup.
    fn stop(&mut self, driver: &mut Driver<Wire>, place: Place) {
        self.env.remove(&place);
        match self.jobs.remove(&place) {
            Some(Job::Sleep { timer }) => {
                self.places.remove(&timer);
                driver.cancel_timer(timer);
            }
            Some(Job::Process(process)) => {
                process::kill(driver, &process, 1);
                for key in [Some(process.child.stdio), process.child.stderr]
                    .into_iter()
                    .flatten()
                {
                    self.places.remove(&key);
                    driver.abort(key);
                }
            }
            Some(Job::Bulk { .. } | Job::Cat) | None => {}
        }
    }

    /// Reports the end of a child once its streams have ended too.
    fn finish(&mut self, driver: &mut Driver<Wire>, place: Place) {
        let Some(Job::Process(process)) = self.jobs.get(&place) else {
            return;
        };
        let ended = process.stdout.ended && process.stderr.ended;
        let Some(status) = process.status.filter(|_| ended) else {
            return;
        };
        for key in [Some(process.child.stdio), process.child.stderr]
            .into_iter()
            .flatten()
        {
            self.places.remove(&key);
            driver.abort(key);
        }
        self.jobs.remove(&place);
        self.end(driver, place, process::exit_of(status));
    }

    fn end(&mut self, driver: &mut Driver<Wire>, place: Place, exit: Exit) {
        if let Some(server) = server(driver, place.0) {
            server.exit(place.1, exit);
            server.eof(place.1);
            server.close(place.1);
        }
    }
}

fn server(driver: &mut Driver<Wire>, key: Key) -> Option<&mut Server> {
    driver.protocol(key).and_then(Wire::as_server)
}

/// Sends as much as the client takes; whether that was all.
fn send_bulk(server: &mut Server, session: SessionId, bulk: &Bytes, left: &mut Option<u64>) -> bool {
    loop {
        let wanted = left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
        let len = server.room(session).min(bulk.len()).min(wanted);
        if len == 0 {
            return wanted == 0;
        }
        server.stdout(session, bulk.slice(..len));
        *left = left.map(|left| left - len as u64);
    }
}
