//! A small server of the framed protocol on standard input and output: the channel kinds `echo`, which sends back what
//! comes, and `exec`, which runs a command. Decides nothing about who may; shows how a `Connection` is driven with
//! threads and blocking descriptors. Clients in other languages are tested against it.
//!
//! ```text
//! cargo build -p mux-proto --example serve
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use mux_proto::body::{Command, Exec, Exit, Reset, ResetCode};
use mux_proto::connection::{ChannelId, Config, Event, Role, Stream};
use mux_proto::frame::NodeId;
use mux_proto::{Connection, Protocol, SendQueue};

/// What threads hand to the one that owns the connection. Each waits until there is room: a slow peer slows them all.
enum Message {
    Input(Bytes),
    Eof,
    /// A command wrote this; it goes on reading when it gets the ticket.
    Output(ChannelId, Stream, Bytes),
    /// So much has been written to a command.
    Taken(ChannelId, usize),
    Ended(ChannelId, Exit),
}

/// What runs on a channel.
#[derive(Default)]
struct Job {
    /// Waits for room, with the one who waits for it.
    pending: VecDeque<(Stream, Bytes)>,
    tickets: Vec<(Stream, SyncSender<()>)>,
    stdin: Option<Sender<Bytes>>,
    exit: Option<Bytes>,
    is_echo: bool,
}

struct Server {
    connection: Connection,
    jobs: BTreeMap<ChannelId, Job>,
    messages: SyncSender<Message>,
}

#[cfg_attr(test, expect(dead_code, reason = "tests call `serve` on a socket"))]
fn main() -> io::Result<()> {
    serve(io::stdin(), io::stdout())
}

/// Serves one peer until it goes.
pub(crate) fn serve(input: impl Read + Send + 'static, output: impl Write) -> io::Result<()> {
    let (messages, received) = sync_channel(16);
    let reader = messages.clone();
    thread::spawn(move || {
        read(input, |data| {
            reader.send(data.map_or(Message::Eof, Message::Input)).is_ok()
        })
    });
    let config = Config {
        names: Some((NodeId(1), NodeId(17))),
        platform: "Linux".to_owned(),
        ..Config::new(Role::Below)
    };
    let server = Server {
        connection: Connection::new(Instant::now(), config),
        jobs: BTreeMap::new(),
        messages,
    };
    server.run(&received, output)
}

impl Server {
    fn run(mut self, received: &Receiver<Message>, mut output: impl Write) -> io::Result<()> {
        let mut input = BytesMut::new();
        loop {
            self.flush(&mut output)?;
            if self.connection.poll_close().is_some() {
                return Ok(());
            }
            let now = Instant::now();
            let wait = self
                .connection
                .poll_timeout()
                .map(|at| at.saturating_duration_since(now));
            let message = received.recv_timeout(wait.unwrap_or(Duration::MAX));
            let now = Instant::now();
            let result = match message {
                Ok(Message::Input(data)) => {
                    input.extend_from_slice(&data);
                    self.take_in(now, &mut input)
                }
                Ok(Message::Eof) => {
                    let result = self.connection.handle_eof(now);
                    self.flush(&mut output)?;
                    return result.map_err(io::Error::other);
                }
                Ok(message) => {
                    self.hear(message);
                    Ok(())
                }
                Err(RecvTimeoutError::Timeout) => self.connection.handle_timeout(now),
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            if let Err(error) = result {
                self.flush(&mut output)?;
                return Err(io::Error::other(error));
            }
        }
    }

    fn take_in(&mut self, now: Instant, input: &mut BytesMut) -> Result<(), mux_proto::error::Error> {
        loop {
            let before = input.len();
            self.connection.handle_input(now, input)?;
            while let Some(event) = self.connection.poll_event() {
                self.handle(event);
            }
            if input.len() == before {
                return Ok(());
            }
        }
    }

    fn flush(&mut self, output: &mut impl Write) -> io::Result<()> {
        let mut out = SendQueue::new();
        loop {
            self.connection.poll_transmit(Instant::now(), &mut out);
            // What was sent may have made room.
            let ids: Vec<ChannelId> = self.jobs.keys().copied().collect();
            ids.into_iter().for_each(|id| self.advance(id));
            if out.is_empty() {
                return output.flush();
            }
            while !out.is_empty() {
                output.write_all(&out.take(usize::MAX))?;
            }
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Opened {
                channel,
                kind,
                arguments,
            } => {
                if let Err(reset) = self.start(channel, &kind, &arguments) {
                    // It is open: it was just opened.
                    let _ = self.connection.reset(channel, &reset);
                }
            }
            Event::Data {
                channel,
                stream,
                data,
            } => self.give(channel, stream, data),
            Event::Finished(channel) => {
                if let Some(job) = self.jobs.get_mut(&channel) {
                    job.stdin = None;
                    if job.is_echo {
                        job.exit = Some(Bytes::from_static(b"\xa0"));
                    }
                }
                self.advance(channel);
            }
            Event::Reset(channel, _) => {
                // Its pipes close, which a command that reads or writes notices.
                self.jobs.remove(&channel);
            }
            Event::Hello(_)
            | Event::Writable(_)
            | Event::Result(..)
            | Event::Route(_)
            | Event::Transit(_)
            | Event::Log(_)
            | Event::Goodbye(_) => {}
        }
    }

    fn start(&mut self, channel: ChannelId, kind: &str, arguments: &Bytes) -> Result<(), Reset> {
        let mut job = Job::default();
        match kind {
            "echo" => job.is_echo = true,
            Exec::KIND => {
                let refuse = |code, error: &dyn std::fmt::Display| Reset {
                    code,
                    text: error.to_string(),
                };
                let exec =
                    Exec::decode(arguments).map_err(|error| refuse(ResetCode::BadArguments, &error))?;
                let child = spawn(&exec).map_err(|error| refuse(ResetCode::Failed, &error))?;
                self.attend(channel, child, &mut job);
            }
            _ => return Err(Reset::new(ResetCode::UnknownKind)),
        }
        self.jobs.insert(channel, job);
        Ok(())
    }

    /// Threads that read, write and wait for a command.
    fn attend(&self, channel: ChannelId, mut child: Child, job: &mut Job) {
        if let Some(stdin) = child.stdin.take() {
            job.stdin = Some(feeder(channel, stdin, self.messages.clone()));
        }
        let outputs: [(Stream, Option<Box<dyn Read + Send>>); 2] = [
            (Stream::Out, child.stdout.take().map(|pipe| Box::new(pipe) as _)),
            (Stream::Err, child.stderr.take().map(|pipe| Box::new(pipe) as _)),
        ];
        let mut readers = Vec::new();
        for (stream, pipe) in outputs {
            let Some(pipe) = pipe else { continue };
            let (ticket, may_go_on) = sync_channel(1);
            job.tickets.push((stream, ticket));
            let messages = self.messages.clone();
            readers.push(thread::spawn(move || {
                read(pipe, |data| match data {
                    Some(data) => {
                        messages.send(Message::Output(channel, stream, data)).is_ok()
                            && may_go_on.recv().is_ok()
                    }
                    None => true,
                });
            }));
        }
        let messages = self.messages.clone();
        thread::spawn(move || {
            // The result comes behind all output; `Err` is a reader that panicked.
            readers.into_iter().for_each(|reader| drop(reader.join()));
            let exit = child.wait().map_or(Exit::Status(255), exit_of);
            drop(messages.send(Message::Ended(channel, exit)));
        });
    }

    fn give(&mut self, channel: ChannelId, stream: Stream, data: Bytes) {
        let Some(job) = self.jobs.get_mut(&channel) else {
            return;
        };
        let len = data.len();
        if job.is_echo {
            job.pending.push_back((stream, data));
            self.advance(channel);
        } else if job.stdin.as_ref().is_none_or(|stdin| stdin.send(data).is_err()) {
            // Nobody reads it any more.
            self.connection.consume(channel, len);
        }
    }

    fn hear(&mut self, message: Message) {
        match message {
            Message::Output(channel, stream, data) => {
                if let Some(job) = self.jobs.get_mut(&channel) {
                    job.pending.push_back((stream, data));
                }
                self.advance(channel);
            }
            Message::Taken(channel, len) => self.connection.consume(channel, len),
            Message::Ended(channel, exit) => {
                if let Some(job) = self.jobs.get_mut(&channel) {
                    job.exit = Some(exit.encode());
                }
                self.advance(channel);
            }
            Message::Input(_) | Message::Eof => {}
        }
    }

    /// Sends what there is room for, and the result behind it.
    fn advance(&mut self, channel: ChannelId) {
        let Some(job) = self.jobs.get_mut(&channel) else {
            return;
        };
        while let Some((stream, data)) = job.pending.pop_front() {
            let len = data.len();
            if len > self.connection.room(channel) {
                job.pending.push_front((stream, data));
                return;
            }
            if self.connection.send(channel, stream, data).is_ok() && job.is_echo {
                self.connection.consume(channel, len);
            }
            for (_, ticket) in job.tickets.iter().filter(|ticket| ticket.0 == stream) {
                let _ = ticket.try_send(());
            }
        }
        if let Some(exit) = job.exit.take() {
            self.jobs.remove(&channel);
            // Only a channel that is gone refuses it.
            let _ = self.connection.give_result(channel, exit);
        }
    }
}

/// Hands on what `source` gives, and `None` at its end, until `take` wants no more.
fn read(mut source: impl Read, mut take: impl FnMut(Option<Bytes>) -> bool) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(len @ 1..) = source.read(&mut buffer) {
        if !take(buffer.get(..len).map(Bytes::copy_from_slice)) {
            return;
        }
    }
    take(None);
}

fn feeder(
    channel_id: ChannelId,
    mut stdin: impl Write + Send + 'static,
    messages: SyncSender<Message>,
) -> Sender<Bytes> {
    let (sender, queue) = channel::<Bytes>();
    thread::spawn(move || {
        for data in queue {
            let is_lost = stdin.write_all(&data).is_err();
            if messages.send(Message::Taken(channel_id, data.len())).is_err() || is_lost {
                return;
            }
        }
    });
    sender
}

fn spawn(exec: &Exec) -> io::Result<Child> {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let text = |bytes: &Bytes| OsStr::from_bytes(bytes).to_owned();
    let words = match &exec.command {
        Command::Shell(line) => vec!["/bin/sh".into(), "-c".into(), text(line)],
        Command::Argv(argv) => argv.iter().map(text).collect(),
    };
    let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = std::process::Command::new(program);
    command
        .args(arguments)
        .envs(exec.env.iter().map(|(name, value)| (text(name), text(value))))
        .stdin(if exec.stdin { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(cwd) = &exec.cwd {
        command.current_dir(text(cwd));
    }
    command.spawn()
}

fn exit_of(status: ExitStatus) -> Exit {
    match (status.code().map(u32::try_from), status.signal()) {
        (Some(Ok(code)), _) => Exit::Status(code),
        (_, Some(9)) => Exit::Signal("KILL".to_owned()),
        (_, Some(15)) => Exit::Signal("TERM".to_owned()),
        (_, Some(other)) => Exit::Signal(other.to_string()),
        (_, None) => Exit::Status(255),
    }
}
