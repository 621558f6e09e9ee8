//! `mux daemon` and `mux status`: one process that keeps connections for the commands to come, behind a unix socket.
//! Carries out the verbs; where the socket is, who may use it and what is kept is decided in the files beside this one.

mod answering;
pub(crate) mod call;
pub(crate) mod codec;
mod guest;
pub(crate) mod message;
pub(crate) mod place;
mod serve;
mod status;
#[cfg(test)]
mod tests;
mod values;
mod warm;

use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use call::NoDaemon;
use place::{Place, Surroundings};
pub use serve::DEFAULT_IDLE;
use serve::NoStart;
pub use status::Form;

/// How long a daemon may take to begin, and to end what runs.
const BEGIN: Duration = Duration::from_secs(10);
const END: Duration = Duration::from_secs(20);

/// How long one that was started at the same time may take from its lock to its socket.
const OTHER: Duration = Duration::from_secs(1);

/// How often it is looked whether it has.
const LOOK: Duration = Duration::from_millis(5);

/// What `mux daemon` and `mux status` were asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Be the daemon, until it is to end.
    Run(Life),
    /// See to it that there is one.
    Start(Life),
    /// See to it that there is none.
    Stop,
    /// One after the other.
    Restart(Life),
    /// End the connections to these, as `user@host:port`; all, if none is named.
    Drop(Vec<String>),
    /// Say how it is.
    Status(Form),
}

/// How long a daemon stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// Without a client; `None`: for ever.
    pub idle: Option<Duration>,
    /// It leaves the terminal and whoever started it.
    pub detached: bool,
}

/// Where the daemon of this user is.
///
/// # Errors
/// The environment names a place that can't be one; one line.
pub(crate) fn place() -> Result<Place, place::PlaceError> {
    Place::of(&Surroundings::of_process(crate::run::state_home()))
}

/// Carries out a verb.
///
/// # Errors
/// One line: what went wrong.
pub(crate) fn carry_out(verb: &Verb) -> Result<String, String> {
    let place = place().map_err(|error| error.to_string())?;
    match verb {
        Verb::Run(life) => run(place, *life).map(|()| String::new()),
        Verb::Start(life) => match start(&place, *life)? {
            true => Ok(String::new()),
            false => Ok("already running\n".to_owned()),
        },
        Verb::Stop => match stop(&place)? {
            true => Ok(String::new()),
            false => Ok("not running\n".to_owned()),
        },
        Verb::Restart(life) => {
            stop(&place)?;
            start(&place, *life).map(|_| String::new())
        }
        Verb::Drop(names) => {
            let (_, count) =
                call::ask(&place, message::DROP, &codec::encode(names)).map_err(|error| error.to_string())?;
            Ok(format!("{count} connections dropped\n"))
        }
        Verb::Status(form) => status(&place, *form),
    }
}

fn run(place: Place, life: Life) -> Result<(), String> {
    if life.detached {
        // Whoever leads a group of processes already can't lead a session, and needs not.
        let _ = rustix::process::setsid();
        std::env::set_current_dir("/").map_err(|error| format!("/: {error}"))?;
    }
    match serve::serve(place, life.idle) {
        Ok(()) => Ok(()),
        Err(NoStart::Running) => Err("already running".to_owned()),
        Err(NoStart::Failed(text)) => Err(text),
    }
}

/// Starts a daemon, unless there is one; true: it was started.
pub(crate) fn start(place: &Place, life: Life) -> Result<bool, String> {
    match call::reach(place) {
        Ok(_) => return Ok(false),
        Err(NoDaemon::None) => {}
        Err(error) => return Err(error.to_string()),
    }
    place.prepare().map_err(|error| format!("socket: {error}"))?;
    let program = std::env::current_exe().map_err(|error| format!("where this program is: {error}"))?;
    let mut command = Command::new(program);
    command.args(["daemon", "run", "--detached", "--idle"]);
    command.arg(
        life.idle
            .map_or_else(|| "0".to_owned(), |idle| format!("{}ms", idle.as_millis().max(1))),
    );
    let (log, at) = log_file().map_err(|error| format!("log: {error}"))?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    let mut child = command
        .spawn()
        .map_err(|error| format!("could not start it: {error}"))?;
    let (mut waited, mut until) = (Duration::ZERO, BEGIN);
    let mut ended = None;
    while waited < until {
        if call::reach(place).is_ok() {
            return Ok(true);
        }
        // It may have met another one that was started at the same time: that is as good, once it listens.
        if ended.is_none()
            && let Ok(Some(status)) = child.try_wait()
        {
            ended = Some(status);
            until = waited + OTHER;
        }
        std::thread::sleep(LOOK);
        waited += LOOK;
    }
    let at = at.display();
    Err(match ended {
        Some(status) => format!("it ended with {status}; see {at}"),
        None => format!("it does not listen after {BEGIN:?}; see {at}"),
    })
}

/// Where a daemon without a terminal says what it has to say.
fn log_file() -> io::Result<(std::fs::File, PathBuf)> {
    let directory = crate::run::state_home().map_or_else(std::env::temp_dir, |home| home.join("mux"));
    std::fs::create_dir_all(&directory)?;
    let at = directory.join("daemon.log");
    let file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(&at)?;
    Ok((file, at))
}

/// Stops the daemon and waits until it has ended; true: there was one.
fn stop(place: &Place) -> Result<bool, String> {
    match call::ask(place, message::STOP, &codec::encode(&0_u8)) {
        Ok(_) => {}
        Err(NoDaemon::None) => return Ok(false),
        Err(error) => return Err(error.to_string()),
    }
    let mut waited = Duration::ZERO;
    while waited < END {
        match place.lock() {
            Ok(Some(_)) => return Ok(true),
            Ok(None) => {}
            Err(error) => return Err(format!("lock file: {error}")),
        }
        std::thread::sleep(LOOK);
        waited += LOOK;
    }
    Err(format!("it has not ended after {END:?}"))
}

fn status(place: &Place, form: Form) -> Result<String, String> {
    let (text, _) =
        call::ask(place, message::STATUS, &codec::encode(&0_u8)).map_err(|error| error.to_string())?;
    let report: status::Report =
        serde_json::from_slice(&text).map_err(|error| format!("another version's report: {error}"))?;
    Ok(report.show(form))
}
