//! What a run does on threads of the pool, because it blocks: name lookups, writing known_hosts, asking for
//! passphrases, reading files for commands. Decides nothing about what follows.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use bytes::Bytes;
use mux_ssh::Secret;
use mux_ssh::keys::{KeyFile, KeyFileError, PrivateKey};
use mux_ssh::known_hosts::Scanned;

use super::asking::Asker;
use super::gathering::Wording;
use super::host_keys::ShownKey;
use super::in_file::InFile;
use super::key_command;
use super::lessons::{Batch, Written};
use super::other_ways;
use super::prompting::{Asked, Subject};
use super::searches::{self, Search};
use super::source::Arrival;
use super::terminal::Echo;
use crate::files::FileError;
use crate::hub::{KeyId, Ticket};
use crate::pool::Work;

/// As ssh's `NumberOfPasswordPrompts`.
const TRIES: u32 = 3;

/// Something that blocks.
#[derive(Debug)]
pub(crate) enum Task {
    Resolve {
        ticket: Ticket,
        host: String,
        port: u16,
    },
    Learn(Batch),
    Read {
        ticket: Ticket,
        part: InFile,
    },
    Unlock {
        key: KeyId,
        label: Arc<str>,
        file: Arc<KeyFile>,
        asker: Asker,
    },
    /// Ask for what servers want to know.
    Ask {
        subject: Subject,
        asked: Asked,
        asker: Asker,
    },
    /// Run a `KnownHostsCommand`.
    AskForKeys {
        shown: Box<ShownKey>,
        arguments: Vec<String>,
        /// Until nobody waits for the answer.
        wanted: key_command::Wanted,
    },
    /// Look for a Kerberos ticket.
    FindTicket,
    /// Search known_hosts line by line.
    Search(Vec<Search>),
    /// Ask about host keys.
    Confirm {
        wording: Wording,
        asker: Asker,
    },
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum Done {
    Resolved {
        ticket: Ticket,
        result: Result<Vec<SocketAddr>, String>,
    },
    Learned {
        batch: Batch,
        result: Result<Written, FileError>,
    },
    /// Part of the commands' input.
    Read {
        ticket: Ticket,
        result: io::Result<Bytes>,
    },
    /// Some of the commands' input has come.
    Arrived(Arrival),
    Unlocked {
        key: KeyId,
        result: Result<PrivateKey, String>,
    },
    /// What servers wanted to know.
    Answered {
        subject: Subject,
        answers: Result<Vec<Secret>, String>,
    },
    /// What a `KnownHostsCommand` printed.
    KeysTold {
        shown: Box<ShownKey>,
        printed: Result<Vec<u8>, String>,
    },
    /// Whether host keys are right.
    Confirmed(bool),
    /// Whether there is a Kerberos ticket.
    FoundTicket(bool),
    /// What is known of hosts under hashed names.
    Searched(Vec<(Search, Scanned)>),
}

impl Work for Task {
    type Done = Done;

    fn run(self) -> Done {
        match self {
            Self::Resolve { ticket, host, port } => Done::Resolved {
                ticket,
                result: resolve(&host, port),
            },
            Self::Learn(batch) => {
                let result = batch.write();
                Done::Learned { batch, result }
            }
            Self::Read { ticket, part } => Done::Read {
                ticket,
                result: part.read(),
            },
            Self::Unlock {
                key,
                label,
                file,
                asker,
            } => Done::Unlocked {
                key,
                result: unlock(&label, &file, asker),
            },
            Self::Ask {
                subject,
                asked,
                asker,
            } => {
                let answers = answers(&asked, asker);
                Done::Answered { subject, answers }
            }
            Self::AskForKeys {
                shown,
                arguments,
                wanted,
            } => Done::KeysTold {
                shown,
                printed: key_command::run(&arguments, &wanted),
            },
            Self::Search(searches) => Done::Searched(searches::run(searches)),
            Self::FindTicket => Done::FoundTicket(other_ways::has_ticket()),
            Self::Confirm { wording, asker } => Done::Confirmed(confirm(&wording, asker)),
        }
    }
}

fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    match (host, port).to_socket_addrs() {
        Ok(addresses) => Ok(addresses.collect()),
        Err(error) => {
            let text = error.to_string();
            // What std puts in front says nothing that the caller does not say better.
            Err(text
                .strip_prefix("failed to lookup address information: ")
                .unwrap_or(&text)
                .to_owned())
        }
    }
}

fn unlock(label: &str, file: &KeyFile, mut asker: Asker) -> Result<PrivateKey, String> {
    let mut question = format!("Enter passphrase for key '{label}': ");
    let failed = |error| format!("no passphrase: {error}");
    asker.wait_until_free().map_err(failed)?;
    for _ in 0..TRIES {
        let passphrase = asker.ask(&question, Echo::Hidden).map_err(failed)?;
        if passphrase.is_empty() {
            return Err("no passphrase given".to_owned());
        }
        match file.unlock(Some(passphrase.expose())) {
            Ok(key) => return Ok(key),
            Err(KeyFileError::WrongPassphrase) => {
                question = format!("Wrong. Enter passphrase for key '{label}': ")
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    Err(KeyFileError::WrongPassphrase.to_string())
}

/// Asks one after the other. An empty answer is one, to a question of a server; no password is no answer.
fn answers(asked: &Asked, mut asker: Asker) -> Result<Vec<Secret>, String> {
    let failed = |error: io::Error| format!("no answer: {error}");
    asker.wait_until_free().map_err(failed)?;
    let mut answers = Vec::with_capacity(asked.fields.len());
    for (question, echo) in &asked.fields {
        answers.push(asker.ask(question, *echo).map_err(failed)?);
    }
    match answers.as_slice() {
        [password] if asked.is_password && password.is_empty() => Err("none given".to_owned()),
        _ => Ok(answers),
    }
}

/// Asks until there is an answer. One that can't be read is none, and means no.
fn confirm(wording: &Wording, mut asker: Asker) -> bool {
    let mut question = wording.question.as_str();
    let mut ask = || {
        asker.wait_until_free()?;
        loop {
            let answer = asker.ask(question, Echo::Shown)?;
            match wording.understand(&String::from_utf8_lossy(answer.expose())) {
                Ok(answer) => return Ok(answer),
                Err(again) => question = again,
            }
        }
    };
    ask().unwrap_or_else(|error: io::Error| {
        log::warn!("no answer about host keys: {error}");
        false
    })
}
