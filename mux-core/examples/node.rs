//! A process of a tree: answers calls on its standard input and output, starts children and relays for them. Decides
//! nothing about who calls; ends when its parent goes.
//!
//! ```text
//! node [--window BYTES]
//! ```
//!
//! | kind | what it does |
//! | --- | --- |
//! | `call` | gives its arguments back as the result |
//! | `echo` | sends back what comes; the result follows the end |
//! | `count` | takes what comes; the result is how much it was |
//! | `pour` | sends as many bytes as the argument says |
//! | `child` | starts a child with the argument as its number; the result follows its greeting |
//! | `crash` | ends the process with status 3, without a word |
//!
//! Numbers are unsigned integers of CBOR.

use std::collections::{HashMap, VecDeque};
use std::error::Error;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use bytes::Bytes;
use mux_core::router::Place;
use mux_core::stdio::{Direction, Inherited, inherited};
use mux_core::{Driver, Event, Key, Ready, Relay, Stream};
use mux_proto::Connection;
use mux_proto::body::{Reset, ResetCode};
use mux_proto::connection::{self, ChannelId, Config, Role};
use mux_proto::frame::NodeId;

/// The end of a process comes at nearly the same time as that of its pipes: whoever asks why it is gone waits for it so long.
const PATIENCE: Duration = Duration::from_millis(100);

/// What `pour` sends at a time.
static POURED: [u8; 32 * 1024] = [b'p'; 32 * 1024];

/// The result of what has none.
const NOTHING: &[u8] = b"\xa0";

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            // Whoever started it may have closed that, too.
            let _ = writeln!(io::stderr(), "node: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode, Box<dyn Error>> {
    let mut window = connection::INITIAL_CREDIT;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument != "--window" {
            return Err(format!("unknown argument `{argument}`").into());
        }
        window = arguments.next().ok_or("--window needs a number")?.parse()?;
    }
    let mut node = Node::new(window)?;
    loop {
        let now = node.driver.turn(None)?;
        while let Some(event) = node.driver.poll_event() {
            if let Some(code) = node.handle(now, event)? {
                return Ok(code);
            }
        }
    }
}

/// What runs on a channel.
#[derive(Debug)]
enum Job {
    Echo {
        waiting: VecDeque<(connection::Stream, Bytes)>,
        is_finished: bool,
    },
    Count(u64),
    Pour(u64),
    /// Waits for a child to greet.
    Start(Key),
}

/// A child whose process or whose link has ended, not both.
#[derive(Debug, Default)]
struct Remains {
    status: Option<ExitStatus>,
    /// Why the link ended.
    words: Option<String>,
}

struct Node {
    driver: Driver<Connection>,
    parent: Key,
    window: u32,
    /// Once this node has its number.
    relay: Option<Relay>,
    jobs: HashMap<ChannelId, Job>,
    /// The link of each process.
    children: HashMap<Key, Key>,
    remains: HashMap<Key, Remains>,
    /// Links whose process has not ended yet.
    patience: HashMap<Key, Key>,
}

impl Node {
    fn new(window: u32) -> io::Result<Self> {
        let own = |fd| match fd {
            Inherited::Pollable(fd) => Ok(fd),
            Inherited::Blocking(_) => Err(io::Error::other("standard input and output must be pipes")),
        };
        let stream = Stream::Duplex(
            own(inherited(io::stdin(), Direction::Read)?)?,
            own(inherited(io::stdout(), Direction::Write)?)?,
        );
        let mut driver = Driver::new()?;
        let config = Config {
            software: "node".to_owned(),
            window,
            relays: true,
            ..Config::new(Role::Below)
        };
        let parent = driver.add(stream, Connection::new(Instant::now(), config))?;
        Ok(Self {
            driver,
            parent,
            window,
            relay: None,
            jobs: HashMap::new(),
            children: HashMap::new(),
            remains: HashMap::new(),
            patience: HashMap::new(),
        })
    }

    fn handle(&mut self, now: Instant, event: Event<Connection>) -> Result<Option<ExitCode>, Box<dyn Error>> {
        match event {
            Event::Protocol(key, event) => {
                let event = match &mut self.relay {
                    Some(relay) => relay.handle(&mut self.driver, key, event),
                    None => Some(event),
                };
                if let Some(event) = event {
                    return self.hear(key, event);
                }
            }
            Event::Closed(key, _, result) if key == self.parent => {
                use mux_core::LinkError::Protocol;
                use mux_proto::error::Error::UnexpectedEof;
                return match result {
                    // A parent that was killed says nothing, and there is nobody to tell.
                    Ok(()) | Err(Protocol(UnexpectedEof)) => Ok(Some(ExitCode::SUCCESS)),
                    Err(error) => Err(error.into()),
                };
            }
            Event::Closed(key, _, result) => {
                let words = result.map_or_else(|error| error.to_string(), |()| "closed".to_owned());
                self.remains.entry(key).or_default().words = Some(words);
                self.patience.insert(self.driver.timer(now + PATIENCE), key);
                self.bury(key, false);
            }
            Event::Exited(process, status) => {
                if let Some(link) = self.children.remove(&process) {
                    self.remains.entry(link).or_default().status = status;
                    self.bury(link, false);
                }
            }
            Event::Ready(Ready::Timer(timer)) => {
                if let Some(link) = self.patience.remove(&timer) {
                    self.bury(link, true);
                }
            }
            Event::Connected(_)
            | Event::Outgoing(_)
            | Event::Finished(_)
            | Event::Consumed(..)
            | Event::Accepted(..)
            | Event::Signal(_)
            | Event::Ready(Ready::Io(..) | Ready::Again(_) | Ready::Woken) => {}
        }
        Ok(None)
    }

    /// A link has ended and its process, too, or was given its time to.
    fn bury(&mut self, link: Key, is_late: bool) {
        let is_complete =
            |remains: &Remains| remains.words.is_some() && (is_late || remains.status.is_some());
        let Some(remains) = self.remains.get(&link).filter(|remains| is_complete(remains)) else {
            return;
        };
        let words = remains.words.clone().unwrap_or_default();
        let reason = match remains.status {
            Some(status) => format!("{words} ({})", ended(status)),
            None => words,
        };
        self.remains.remove(&link);
        self.patience.retain(|_, other| *other != link);
        if let Some(relay) = &mut self.relay {
            relay.lose(&mut self.driver, link, &reason);
        }
        self.answer_start(link, Err(&reason));
    }

    /// What is about this node itself.
    fn hear(&mut self, key: Key, event: connection::Event) -> Result<Option<ExitCode>, Box<dyn Error>> {
        use connection::Event::*;
        match event {
            Hello(_) if key == self.parent => {
                let names = self.driver.peek(key).and_then(Connection::names);
                let (own, parent) = names.ok_or("no number was given")?;
                let mut relay = Relay::new(own);
                relay.add(&mut self.driver, key, Place::Parent, parent)?;
                self.relay = Some(relay);
            }
            Hello(_) => self.answer_start(key, Ok(())),
            Opened {
                channel,
                kind,
                arguments,
            } => {
                if kind == "crash" {
                    return Ok(Some(ExitCode::from(3)));
                }
                self.open(channel, &kind, arguments);
            }
            Data {
                channel,
                stream,
                data,
            } => self.take(channel, stream, data),
            Finished(channel) => {
                match self.jobs.get_mut(&channel) {
                    Some(Job::Echo { is_finished, .. }) => *is_finished = true,
                    Some(Job::Count(count)) => {
                        let count = number(*count);
                        self.end(channel, Ok(count));
                    }
                    Some(Job::Pour(_) | Job::Start(_)) | None => {}
                }
                self.go_on(channel);
            }
            Writable(channel) => self.go_on(channel),
            Reset(channel, _) => {
                self.jobs.remove(&channel);
            }
            Result(..) | Route(_) | Log(_) | Goodbye(_) | Transit(_) => {}
        }
        Ok(None)
    }

    fn open(&mut self, channel: ChannelId, kind: &str, arguments: Bytes) {
        let job = match (kind, number_of(&arguments)) {
            ("call", _) => return self.end(channel, Ok(arguments)),
            ("echo", _) => Job::Echo {
                waiting: VecDeque::new(),
                is_finished: false,
            },
            ("count", _) => Job::Count(0),
            ("pour", Some(count)) => Job::Pour(count),
            ("child", Some(node)) => match self.start(NodeId(u32::try_from(node).unwrap_or(0))) {
                Ok(link) => Job::Start(link),
                Err(error) => {
                    let (code, text) = (ResetCode::Failed, error.to_string());
                    return self.end(channel, Err(mux_proto::body::Reset { code, text }));
                }
            },
            ("pour" | "child", None) => return self.end(channel, Err(Reset::new(ResetCode::BadArguments))),
            _ => return self.end(channel, Err(Reset::new(ResetCode::UnknownKind))),
        };
        self.jobs.insert(channel, job);
        self.go_on(channel);
    }

    /// Starts this program again, beneath this process.
    fn start(&mut self, node: NodeId) -> Result<Key, Box<dyn Error>> {
        let relay = self.relay.as_mut().ok_or("no number was given")?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--window", &self.window.to_string()]);
        let config = Config {
            names: Some((relay.router().own(), node)),
            relays: true,
            ..Config::new(Role::Above)
        };
        let connection = Connection::new(Instant::now(), config);
        let child = self.driver.piped_child(command, connection, None)?;
        if let Err(misplaced) = relay.add(&mut self.driver, child.stdio, Place::Child, node) {
            self.driver.abort(child.stdio);
            return Err(misplaced.into());
        }
        self.children.insert(child.process, child.stdio);
        Ok(child.stdio)
    }

    fn answer_start(&mut self, link: Key, outcome: Result<(), &str>) {
        let mut waiting = self.jobs.iter();
        let waiting = waiting.find(|(_, job)| matches!(job, Job::Start(of) if *of == link));
        if let Some((&channel, _)) = waiting {
            let failed = |text: &str| Reset {
                code: ResetCode::Failed,
                text: text.to_owned(),
            };
            let result = outcome.map(|()| Bytes::from_static(NOTHING));
            self.end(channel, result.map_err(failed));
        }
    }

    fn take(&mut self, channel: ChannelId, stream: connection::Stream, data: Bytes) {
        let len = data.len();
        match self.jobs.get_mut(&channel) {
            Some(Job::Echo { waiting, .. }) => {
                waiting.push_back((stream, data));
                return self.go_on(channel);
            }
            Some(Job::Count(count)) => *count += u64::try_from(len).unwrap_or(u64::MAX),
            Some(Job::Pour(_) | Job::Start(_)) | None => {}
        }
        if let Some(parent) = self.driver.protocol(self.parent) {
            parent.consume(channel, len);
        }
    }

    /// Sends what there is room for.
    fn go_on(&mut self, channel: ChannelId) {
        let Some(parent) = self.driver.protocol(self.parent) else {
            return;
        };
        match self.jobs.get_mut(&channel) {
            Some(Job::Echo { waiting, is_finished }) => {
                while let Some((stream, data)) = waiting.pop_front() {
                    let len = data.len();
                    if parent.send(channel, stream, data.clone()).is_err() {
                        // It is told when there is room.
                        waiting.push_front((stream, data));
                        return;
                    }
                    parent.consume(channel, len);
                }
                if *is_finished {
                    self.end(channel, Ok(Bytes::from_static(NOTHING)));
                }
            }
            Some(Job::Pour(left)) => {
                while *left > 0 {
                    let len = POURED.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    let data = Bytes::from_static(&POURED).slice(..len);
                    if parent.send(channel, connection::Stream::Out, data).is_err() {
                        return;
                    }
                    *left -= u64::try_from(len).unwrap_or(*left);
                }
                self.end(channel, Ok(Bytes::from_static(NOTHING)));
            }
            Some(Job::Count(_) | Job::Start(_)) | None => {}
        }
    }

    fn end(&mut self, channel: ChannelId, outcome: Result<Bytes, Reset>) {
        self.jobs.remove(&channel);
        let Some(parent) = self.driver.protocol(self.parent) else {
            return;
        };
        let ended = match outcome {
            Ok(result) => parent.give_result(channel, result),
            Err(reset) => parent.reset(channel, &reset),
        };
        if let Err(misuse) = ended {
            log::debug!("{channel:?}: {misuse}");
        }
    }
}

fn ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

/// As an item of CBOR.
pub(crate) fn number(value: u64) -> Bytes {
    let mut item = vec![0x1b];
    item.extend_from_slice(&value.to_be_bytes());
    item.into()
}

/// Of an item of CBOR as [`number`] makes it.
pub(crate) fn number_of(item: &[u8]) -> Option<u64> {
    let (0x1b, rest) = item.split_first().map(|(first, rest)| (*first, rest))? else {
        return None;
    };
    rest.try_into().ok().map(u64::from_be_bytes)
}
