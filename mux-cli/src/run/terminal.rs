//! The terminal that a passphrase is read from, whatever standard input is. Decides how it is asked; never when.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use zeroize::Zeroizing;

/// What a passphrase is cut to: longer lines are not typed by people.
const MAX_PASSPHRASE: usize = 1024;

/// A terminal with its settings as they were.
#[derive(Debug)]
pub(crate) struct Terminal {
    file: File,
    settings: Termios,
}

impl Terminal {
    /// The controlling terminal of the process, if it has one.
    pub(crate) fn open() -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
        let settings = tcgetattr(&file)?;
        Ok(Self { file, settings })
    }

    /// Another handle on the same terminal: one thread reads, another puts the settings back if the process ends.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            file: self.file.try_clone()?,
            settings: self.settings.clone(),
        })
    }

    /// Asks, and reads one line without showing it. Blocks.
    pub(crate) fn ask(&mut self, question: &str) -> io::Result<Zeroizing<String>> {
        let mut silent = self.settings.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        silent
            .local_modes
            .insert(LocalModes::ECHONL | LocalModes::ICANON | LocalModes::ISIG);
        tcsetattr(&self.file, OptionalActions::Flush, &silent)?;
        self.file.write_all(question.as_bytes())?;
        let line = self.line();
        self.restore();
        line
    }

    /// Puts the settings back as they were found.
    pub(crate) fn restore(&self) {
        if let Err(error) = tcsetattr(&self.file, OptionalActions::Now, &self.settings) {
            log::warn!("could not restore the terminal: {error}");
        }
    }

    fn line(&mut self) -> io::Result<Zeroizing<String>> {
        let mut line = Zeroizing::new(Vec::with_capacity(MAX_PASSPHRASE));
        let mut byte = [0];
        while line.len() < MAX_PASSPHRASE {
            match self.file.read(&mut byte) {
                Ok(0) => break,
                Ok(_) if byte == *b"\n" => break,
                Ok(_) => line.extend_from_slice(&byte),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        String::from_utf8(std::mem::take(&mut *line))
            .map(Zeroizing::new)
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
    }
}

/// Columns of the terminal on standard error.
pub(super) fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok()?;
    (size.ws_col > 0).then(|| usize::from(size.ws_col))
}
