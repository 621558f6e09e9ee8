//! The terminal that answers are read from, whatever standard input is. Decides how it is asked, and how the
//! terminal is left when the process is stopped, continued or told not to wait; never whether to ask.
//!
//! Two ends: an [`Asker`] on a thread, which waits for the line, and the loop's [`Prompt`], which hears the signals.
//! A byte between them means "ask again" or "the terminal is free", the end of it "nobody wants to know any more".

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;

use mux_ssh::Secret;
use nix::sys::signal::{Signal as Raised, raise};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{getpgid, getpgrp, getppid, getsid};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};
use zeroize::Zeroizing;

/// What a passphrase is cut to: longer lines are not typed by people.
const MAX_PASSPHRASE: usize = 1024;

/// A question waits this long for the terminal to be free of the loop's own words. Those may stand behind output that
/// nobody reads, and a question that never comes is worse than one that is written over.
const FREE_WITHIN: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 500_000_000,
};

/// The question is to be asked again, unless it still stands.
const AGAIN: u8 = b'a';

/// The question may be shown.
const FREE: u8 = b'f';

/// The loop's end: while it is kept, somebody is being asked.
#[derive(Debug)]
pub(crate) struct Prompt {
    terminal: Terminal,
    asker: UnixStream,
    /// The thread has not been told that the terminal is free.
    waits: bool,
}

/// The thread's end.
#[derive(Debug)]
pub(crate) struct Asker {
    terminal: Terminal,
    /// What is typed. It never blocks: what made it readable may have gone to a shell while the process was stopped.
    keys: File,
    owner: UnixStream,
}

/// A terminal with its settings as they were.
#[derive(Debug)]
struct Terminal {
    file: File,
    settings: Termios,
}

/// Whether what is typed can be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Echo {
    /// By everybody.
    Shown,
    /// By nobody.
    Hidden,
}

/// Whether there is a terminal to ask on.
pub(crate) fn is_there() -> bool {
    OpenOptions::new().read(true).write(true).open("/dev/tty").is_ok()
}

/// Both ends, on the controlling terminal of the process, if it has one.
pub(crate) fn open() -> io::Result<(Prompt, Asker)> {
    let file = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    let settings = tcgetattr(&file)?;
    let theirs = Terminal {
        file: file.try_clone()?,
        settings: settings.clone(),
    };
    // An open file of its own: whoever shares the other one keeps its flags.
    let keys = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open("/dev/tty")?;
    let (asker, owner) = UnixStream::pair()?;
    asker.set_nonblocking(true)?;
    let terminal = Terminal { file, settings };
    Ok((
        Prompt {
            terminal,
            asker,
            waits: true,
        },
        Asker {
            terminal: theirs,
            keys,
            owner,
        },
    ))
}

impl Prompt {
    /// The loop has nothing of its own on the terminal any more: the question may be shown.
    pub(crate) fn may_show(&mut self) {
        if std::mem::take(&mut self.waits) {
            self.tell(FREE);
        }
    }

    /// Gives the terminal back as it was: the process is about to stop or to end.
    pub(crate) fn restore(&self) {
        self.terminal.restore();
    }

    /// The process goes on: asks again, unless the question still stands.
    pub(crate) fn ask_again(&self) {
        self.tell(AGAIN);
    }

    fn tell(&self, what: u8) {
        // Full or closed: the thread has been told, or is done.
        let _ = (&self.asker).write(&[what]);
    }

    /// Nobody waits for the answer any more.
    pub(crate) fn give_up(mut self) {
        self.terminal.restore();
        // What follows does not stand behind the question.
        let _ = self.terminal.file.write_all(b"\n");
    }
}

impl Asker {
    /// Waits until the loop has taken its own words off the terminal. To be called before the first question.
    pub(crate) fn wait_until_free(&mut self) -> io::Result<()> {
        free(&mut self.owner)
    }

    /// Asks, and reads one line. Blocks.
    pub(crate) fn ask(&mut self, question: &str, echo: Echo) -> io::Result<Secret> {
        self.terminal.show(question, echo)?;
        let line = self.line(question, echo);
        self.terminal.restore();
        line
    }

    fn line(&mut self, question: &str, echo: Echo) -> io::Result<Secret> {
        let mut line = Zeroizing::new(Vec::with_capacity(MAX_PASSPHRASE));
        let mut byte = Zeroizing::new([0]);
        while line.len() < MAX_PASSPHRASE {
            if self.is_told()? {
                if self.owner.read(&mut *byte)? == 0 {
                    return Err(given_up());
                }
                // It was not waited for: asking again would take away what has been typed since.
                if *byte == [FREE] {
                    continue;
                }
                // Stopped without a warning, with the question still there and nothing shown: nothing to repeat.
                if echo == Echo::Shown || !self.terminal.is_silent()? {
                    line.clear();
                    self.terminal.show(question, echo)?;
                }
                continue;
            }
            match self.keys.read(&mut *byte) {
                Ok(0) => {
                    // Ctrl-D moves no cursor: what follows does not stand behind the question.
                    self.terminal.file.write_all(b"\n")?;
                    break;
                }
                Ok(_) if *byte == *b"\n" => break,
                Ok(_) => line.extend_from_slice(&*byte),
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Secret::from(line))
    }

    /// Waits for the terminal or the loop; true: the loop has something to say.
    fn is_told(&self) -> io::Result<bool> {
        let mut ends = [
            PollFd::new(&self.owner, PollFlags::IN),
            PollFd::new(&self.keys, PollFlags::IN),
        ];
        match poll(&mut ends, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [owner, terminal] = &ends;
        match (owner.revents().is_empty(), terminal.revents().is_empty()) {
            (true, true) => self.is_told(),
            (told, _) => Ok(!told),
        }
    }
}

/// Whoever owns the question says that it may be shown, or says nothing for long enough.
fn free(owner: &mut UnixStream) -> io::Result<()> {
    let mut ends = [PollFd::new(&*owner, PollFlags::IN)];
    match poll(&mut ends, Some(&FREE_WITHIN)) {
        Ok(0) | Err(Errno::INTR) => Ok(()),
        Ok(_) => match owner.read(&mut [0])? {
            0 => Err(given_up()),
            _ => Ok(()),
        },
        Err(error) => Err(error.into()),
    }
}

fn given_up() -> io::Error {
    io::Error::new(ErrorKind::Interrupted, "given up")
}

impl Terminal {
    /// What was typed before does not count. In the background this stops the process, as any use of the terminal does,
    /// until it is brought to the front.
    fn show(&mut self, question: &str, echo: Echo) -> io::Result<()> {
        let mut settings = self.settings.clone();
        let modes = LocalModes::ECHONL | LocalModes::ICANON | LocalModes::ISIG;
        settings.local_modes.insert(modes);
        settings.local_modes.set(LocalModes::ECHO, echo == Echo::Shown);
        while let Err(error) = tcsetattr(&self.file, OptionalActions::Flush, &settings) {
            if error != Errno::INTR {
                return Err(error.into());
            }
        }
        self.file.write_all(question.as_bytes())
    }

    fn is_silent(&self) -> io::Result<bool> {
        Ok(!tcgetattr(&self.file)?.local_modes.contains(LocalModes::ECHO))
    }

    /// Puts the settings back as they were found. In the background the terminal is somebody else's.
    fn restore(&self) {
        if tcgetpgrp(&self.file).is_ok_and(|front| front != getpgrp()) {
            return;
        }
        if let Err(error) = tcsetattr(&self.file, OptionalActions::Now, &self.settings) {
            log::warn!("could not restore the terminal: {error}");
        }
    }
}

/// Stops the process, as SIGTSTP does if nobody catches it; returns when it is continued.
///
/// A process that no shell watches is not to stop: nobody could continue it. Where the parent is such a shell it is
/// plain; elsewhere the kernel knows, and applies the rule to SIGTTIN, which nobody catches, as to SIGTSTP.
pub(super) fn suspend() {
    let shell = getppid().is_some_and(|parent| {
        getsid(Some(parent)).ok() == getsid(None).ok()
            && getpgid(Some(parent)).is_ok_and(|group| group != getpgrp())
    });
    // To this thread, so that it does not run on before it stops.
    let stopped = raise(if shell { Raised::SIGSTOP } else { Raised::SIGTTIN });
    if let Err(error) = stopped {
        log::warn!("could not stop: {error}");
    }
}

/// Columns of the terminal on standard error.
pub(super) fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok()?;
    (size.ws_col > 0).then(|| usize::from(size.ws_col))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn a_question_waits_for_the_loop_but_not_for_ever() {
        let (mut loops, mut askers) = UnixStream::pair().unwrap();
        free(&mut askers).unwrap();
        loops.write_all(b".").unwrap();
        free(&mut askers).unwrap();
        // What was said once does not count twice.
        askers.set_nonblocking(true).unwrap();
        assert_eq!(askers.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
        askers.set_nonblocking(false).unwrap();
        drop(loops);
        assert_eq!(free(&mut askers).unwrap_err().kind(), ErrorKind::Interrupted);
    }
}
