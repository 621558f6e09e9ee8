//! Arguments and result of the channel kind `exec`: run a command. Decides what is a command; never how it is run.

use bytes::Bytes;

use super::MAX_NAME;
use super::cbor::{BodyError, Fields, MapWriter, Written, read_bytes, read_pair};

/// A command to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exec {
    /// What to run.
    pub command: Command,
    /// Variables to set before: names and values.
    pub env: Vec<(Bytes, Bytes)>,
    /// The directory to run in; the account's own otherwise.
    pub cwd: Option<Bytes>,
    /// Whether it reads what the channel carries; nothing otherwise.
    pub stdin: bool,
}

/// The two ways to say what to run. Bytes, not text: a command need not be UTF-8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A line for the account's shell.
    Shell(Bytes),
    /// A program and its arguments, for no shell. Not empty.
    Argv(Vec<Bytes>),
}

impl Exec {
    /// The name of the channel kind.
    pub const KIND: &str = "exec";

    /// As arguments of an `Open`.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let writer = match &self.command {
            Command::Shell(line) => MapWriter::new().with("shell", |items| items.bytes(line)),
            Command::Argv(argv) => MapWriter::new().with("argv", |items| {
                argv.iter()
                    .try_fold(items.array(count(argv))?, |items, word| items.bytes(word))
            }),
        };
        let writer = writer.with("env", |items| self.encode_env(items));
        let writer = match &self.cwd {
            Some(cwd) => writer.with("cwd", |items| items.bytes(cwd)),
            None => writer,
        };
        writer.with("stdin", |items| items.bool(self.stdin)).finish()
    }

    fn encode_env<'e>(&self, items: &'e mut minicbor::Encoder<Vec<u8>>) -> Written<'e> {
        let items = items.array(count(&self.env))?;
        self.env.iter().try_fold(items, |items, (name, value)| {
            items.array(2)?.bytes(name)?.bytes(value)
        })
    }

    /// From the arguments of an `Open`.
    ///
    /// # Errors
    /// They are something else.
    pub fn decode(arguments: &[u8]) -> Result<Self, BodyError> {
        let fields = Fields::parse(arguments)?;
        let command = match (fields.bytes("shell")?, fields.list("argv", read_bytes)?) {
            (Some(line), None) => Command::Shell(line),
            (None, Some(argv)) if !argv.is_empty() => Command::Argv(argv),
            (None, None) => return Err(BodyError::Missing("argv")),
            (Some(_) | None, Some(_)) => return Err(BodyError::Field("argv")),
        };
        Ok(Self {
            command,
            env: fields.list("env", read_pair)?.unwrap_or_default(),
            cwd: fields.bytes("cwd")?,
            stdin: fields.flag("stdin")?.unwrap_or_default(),
        })
    }
}

/// How a command ended: the result of `exec`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself.
    Status(u32),
    /// By a signal: its name without `SIG`, as SSH has it (RFC 4254 §6.10).
    Signal(String),
}

impl Exit {
    /// As the body of a `Result`.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        match self {
            Self::Status(status) => MapWriter::new().uint("status", *status).finish(),
            Self::Signal(name) => MapWriter::new().text("signal", name).finish(),
        }
    }

    /// From the body of a `Result`.
    ///
    /// # Errors
    /// It is something else.
    pub fn decode(body: &[u8]) -> Result<Self, BodyError> {
        let fields = Fields::parse(body)?;
        match (fields.u32("status")?, fields.text("signal")?) {
            (Some(status), None) => Ok(Self::Status(status)),
            (None, Some(name)) if name.len() <= MAX_NAME => Ok(Self::Signal(name)),
            (None, None) => Err(BodyError::Missing("status")),
            (Some(_) | None, Some(_)) => Err(BodyError::Field("signal")),
        }
    }
}

fn count<T>(list: &[T]) -> u64 {
    u64::try_from(list.len()).unwrap_or(u64::MAX)
}
