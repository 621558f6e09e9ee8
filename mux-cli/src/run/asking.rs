//! Whoever is asked: a person at the terminal, or a program in their place. Decides which of the two; how each is asked
//! is theirs.

use std::io;
use std::os::unix::net::UnixStream;

use mux_ssh::Secret;

use super::askpass::{self, Way};
use super::terminal::{self, Echo};

/// The loop's end: while it is kept, somebody is being asked.
#[derive(Debug)]
pub(crate) enum Prompt {
    Terminal(terminal::Prompt),
    /// The program ends with it.
    Program(UnixStream),
}

/// The thread's end.
#[derive(Debug)]
pub(crate) enum Asker {
    Terminal(terminal::Asker),
    Program(askpass::Asker),
}

fn way() -> Way {
    askpass::way(|name| std::env::var_os(name), terminal::is_there)
}

/// Whether there is anybody to ask.
pub(crate) fn is_possible() -> bool {
    way() != Way::Nobody
}

/// Both ends.
pub(crate) fn open() -> io::Result<(Prompt, Asker)> {
    match way() {
        Way::Program(program) => {
            let (ours, theirs) = UnixStream::pair()?;
            let asker = askpass::Asker::new(program, theirs);
            Ok((Prompt::Program(ours), Asker::Program(asker)))
        }
        // Where there is none, opening it says so.
        Way::Terminal | Way::Nobody => {
            let (prompt, asker) = terminal::open()?;
            Ok((Prompt::Terminal(prompt), Asker::Terminal(asker)))
        }
    }
}

impl Prompt {
    /// The loop has nothing of its own on the terminal any more: the question may be shown.
    pub(crate) fn may_show(&mut self) {
        match self {
            Self::Terminal(prompt) => prompt.may_show(),
            Self::Program(_) => {}
        }
    }

    /// Gives the terminal back as it was: the process is about to stop or to end.
    pub(crate) fn restore(&self) {
        match self {
            Self::Terminal(prompt) => prompt.restore(),
            Self::Program(_) => {}
        }
    }

    /// The process goes on: asks again, unless the question still stands.
    pub(crate) fn ask_again(&self) {
        match self {
            Self::Terminal(prompt) => prompt.ask_again(),
            Self::Program(_) => {}
        }
    }

    /// Nobody waits for the answer any more.
    pub(crate) fn give_up(self) {
        match self {
            Self::Terminal(prompt) => prompt.give_up(),
            Self::Program(owner) => drop(owner),
        }
    }
}

impl Asker {
    /// Waits until the loop has taken its own words off the terminal. To be called before the first question.
    pub(crate) fn wait_until_free(&mut self) -> io::Result<()> {
        match self {
            Self::Terminal(asker) => asker.wait_until_free(),
            Self::Program(_) => Ok(()),
        }
    }

    /// Asks, and reads one line. Blocks.
    pub(crate) fn ask(&mut self, question: &str, echo: Echo) -> io::Result<Secret> {
        let answer = match self {
            Self::Terminal(asker) => asker.ask(question, echo),
            Self::Program(asker) => asker.ask(question),
        }?;
        without_nul(answer)
    }
}

/// A zero byte ends a string for everything that would look at the answer. `ssh` sends what stands before it, some servers
/// hang up on all of it: neither is what was meant, so it is said instead.
fn without_nul(answer: Secret) -> io::Result<Secret> {
    match answer.expose().contains(&0) {
        true => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "there is a zero byte in it, which no password, passphrase or answer can have",
        )),
        false => Ok(answer),
    }
}
