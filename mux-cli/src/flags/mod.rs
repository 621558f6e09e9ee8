//! From the command line and the environment to a [`Plan`]. It knows what users of other tools mean by a letter and
//! says so instead of guessing; it reads no file and connects to nothing.

mod config;
mod daemon;
mod duration;
mod env;
mod error;
mod fanout;
mod foreign;
mod hosts;
mod size;
mod table;
#[cfg(test)]
mod tests;
mod transport;
mod variable;

pub use config::ConfigQuery;
pub use duration::{DurationError, MAX_DURATION, MIN_DURATION, parse_duration};
pub use env::Environment;
pub use error::UsageError;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::ArgMatches;
use clap::error::{ContextKind, ErrorKind};

use crate::plan::{
    Action, ColorChoice, Connection, DEFAULT_FANOUT, DEFAULT_SPILL_MAX, ExitRule, Family, Format,
    MissingStatus, OutputPlan, Plan, SavePlan, Sharing, StdinSource, Variable, Variables,
};
use crate::targets::{HostsSource, TargetSpec};

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invocation {
    /// `mux run`, and whatever else connects to hosts.
    Run(Box<Plan>),
    /// `mux config -G`.
    Config(Box<ConfigQuery>),
    /// `mux daemon`, `mux status`.
    Daemon(crate::daemon::Verb),
    /// This text on standard output, and nothing else: help, version.
    Print(String),
}

/// Understands a command line, `args[0]` being the program's own name.
///
/// # Errors
/// [`UsageError`], whose text goes to standard error and whose exit status is 2.
pub fn parse(
    args: impl IntoIterator<Item = OsString>,
    environment: &Environment,
) -> Result<Invocation, UsageError> {
    let matches = match table::command().try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            return Err(UsageError::NoSubcommand(error.render().to_string()));
        }
        Err(mut error) if error.use_stderr() => {
            // The parser's advice is to make an unknown option a word of the command. Options that are nearly right are
            // another kind of advice, and stay.
            if error.kind() == ErrorKind::UnknownArgument {
                error.remove(ContextKind::Suggested);
            }
            return Err(UsageError::Flags(error.render().to_string()));
        }
        Err(error) => return Ok(Invocation::Print(error.render().to_string())),
    };
    match matches.subcommand() {
        Some(("run", run)) => Ok(Invocation::Run(Box::new(plan(run, environment)?))),
        Some(("hosts", hosts)) => Ok(Invocation::Run(Box::new(hosts::plan(hosts, environment)?))),
        Some(("daemon", matches)) => Ok(Invocation::Daemon(daemon::verb(matches)?)),
        Some(("status", matches)) => Ok(Invocation::Daemon(daemon::status_verb(matches))),
        Some(("config", matches)) => Ok(match config::query(matches)? {
            Some(query) => Invocation::Config(Box::new(query)),
            None => Invocation::Print(mux_ssh::config::keywords()),
        }),
        Some((name, _)) => Err(UsageError::NoSuchCommandYet(name.to_owned())),
        None => Err(UsageError::NoSubcommand(
            table::command().render_help().to_string(),
        )),
    }
}

fn plan(run: &ArgMatches, environment: &Environment) -> Result<Plan, UsageError> {
    refuse_foreign(run)?;
    let fanout = run.get_one::<usize>("fanout").copied();
    Ok(Plan {
        targets: targets(run),
        action: action(run)?,
        fanout: fanout.or(environment.fanout()?).unwrap_or(DEFAULT_FANOUT),
        // Zero is how `--timeout 0` takes back what the environment says.
        timeout: seconds(run, "timeout")
            .or(environment.timeout()?)
            .filter(|timeout| !timeout.is_zero()),
        environment: variables(run),
        stdin: stdin(run)?,
        retries: run.get_one("retries").copied().unwrap_or(0),
        missing_status: run
            .get_one::<MissingStatus>("missing-status")
            .copied()
            .unwrap_or_default(),
        connection: connection(run, environment)?,
        sharing: Sharing {
            never: run.get_flag("no-daemon"),
            fresh: run.get_flag("fresh"),
            persist: seconds(run, "persist"),
        },
        output: output(run)?,
        exit: if run.get_flag("status") {
            ExitRule::Largest
        } else {
            ExitRule::Fleet
        },
        verbose: run.get_count("verbose"),
    })
}

/// Letters and options that are known and not to be had come first: whatever else is wrong, this is what helps.
fn refuse_foreign(run: &ArgMatches) -> Result<(), UsageError> {
    if let Some(letter) = foreign::PEER_LETTERS.iter().find(|letter| given(run, letter.id)) {
        return Err(UsageError::PeerLetter {
            letter: letter.short,
            advice: letter.advice,
        });
    }
    match foreign::LATER.iter().find(|option| given(run, option.id())) {
        Some(option) => Err(UsageError::NotSupportedYet(option.shown())),
        None => Ok(()),
    }
}

fn given(run: &ArgMatches, id: &str) -> bool {
    run.value_source(id) == Some(clap::parser::ValueSource::CommandLine)
}

fn texts(run: &ArgMatches, id: &str) -> Vec<String> {
    run.get_many::<String>(id)
        .into_iter()
        .flatten()
        .cloned()
        .collect()
}

fn seconds(run: &ArgMatches, id: &str) -> Option<Duration> {
    run.get_one::<Duration>(id).copied()
}

fn targets(run: &ArgMatches) -> TargetSpec {
    let hosts = run.get_many::<PathBuf>("hosts").into_iter().flatten();
    TargetSpec {
        select: texts(run, "where"),
        exclude: texts(run, "exclude"),
        hosts: hosts
            .map(|path| match path.as_os_str().as_bytes() {
                b"-" => HostsSource::Stdin,
                _ => HostsSource::File(path.clone()),
            })
            .collect(),
    }
}

/// The words joined by one space, as ssh does; with `--argv` each quoted for POSIX sh.
fn action(run: &ArgMatches) -> Result<Action, UsageError> {
    if run.get_flag("list-hosts") {
        return Ok(Action::ListHosts);
    }
    let words: Vec<&[u8]> = run
        .get_many::<OsString>("command")
        .into_iter()
        .flatten()
        .map(|word| word.as_bytes())
        .collect();
    let line = if run.get_flag("argv") {
        // Arguments of a process hold no NUL, the one thing that can't be quoted.
        shlex::bytes::try_join(words.iter().copied()).map_err(|_| UsageError::NoCommand)?
    } else {
        words.join(&b' ')
    };
    match line.iter().all(u8::is_ascii_whitespace) {
        true => Err(UsageError::NoCommand),
        false => Ok(Action::Run(line)),
    }
}

fn stdin(run: &ArgMatches) -> Result<Option<StdinSource>, UsageError> {
    let source = run
        .get_one::<PathBuf>("stdin")
        .map(|path| match path.as_os_str().as_bytes() {
            b"-" => StdinSource::Inherited,
            _ => StdinSource::File(path.clone()),
        });
    let names_hosts = targets(run).hosts.contains(&HostsSource::Stdin);
    match source {
        Some(StdinSource::Inherited) if names_hosts => Err(UsageError::StdinTwice),
        source => Ok(source),
    }
}

/// A name that is given twice has its last value, as in a shell.
fn variables(run: &ArgMatches) -> Variables {
    let mut given: Vec<Variable> = Vec::new();
    for variable in run.get_many::<Variable>("env").into_iter().flatten() {
        given.retain(|earlier| earlier.name != variable.name);
        given.push(variable.clone());
    }
    Variables {
        given,
        info: run.get_flag("env-info"),
    }
}

/// A switch that not every subcommand has.
fn is_given(run: &ArgMatches, id: &str) -> bool {
    let given = run.try_get_one::<bool>(id).ok().flatten();
    given.is_some_and(|given| *given)
}

/// `-J` is an option like those of `-o`, and wins over them.
fn jump(run: &ArgMatches) -> impl Iterator<Item = String> {
    let hosts = run.get_one::<String>("jump");
    hosts.into_iter().map(|hosts| format!("ProxyJump={hosts}"))
}

fn connection(run: &ArgMatches, environment: &Environment) -> Result<Connection, UsageError> {
    let family = match (run.get_flag("ipv4"), run.get_flag("ipv6")) {
        (true, _) => Family::V4,
        (_, true) => Family::V6,
        _ => Family::Any,
    };
    let (transport, through_openssh) = transport::choose(run)?;
    Ok(Connection {
        user: run.get_one::<String>("login").cloned(),
        port: run.get_one::<u16>("port").copied(),
        identities: run
            .get_many::<PathBuf>("identity")
            .into_iter()
            .flatten()
            .cloned()
            .collect(),
        config: run.get_one::<PathBuf>("config").cloned(),
        options: jump(run).chain(texts(run, "option")).collect(),
        family,
        connect_timeout: seconds(run, "connect-timeout").or(environment.connect_timeout()?),
        login_timeout: seconds(run, "login-timeout"),
        transport,
        through_openssh,
        forward_agent: is_given(run, "forward-agent"),
        forward_to_all: is_given(run, "forward-agent-to-all"),
    })
}

fn output(run: &ArgMatches) -> Result<OutputPlan, UsageError> {
    let named = run.get_one::<Format>("output").copied();
    let gathered = match (run.get_flag("gather"), run.get_flag("gather-all")) {
        (_, true) => Some(Format::Grouped { with_stderr: true }),
        (true, _) => Some(Format::Grouped { with_stderr: false }),
        _ => None,
    };
    let format = match (named, gathered) {
        (Some(Format::Text | Format::Jsonl), Some(_)) => return Err(UsageError::TwoFormats),
        (_, Some(format)) | (Some(format), None) => format,
        (None, None) => Format::Text,
    };
    Ok(OutputPlan {
        format,
        prefix: !run.get_flag("no-prefix"),
        quiet: run.get_flag("quiet"),
        color: *run.get_one::<ColorChoice>("color").expect("has a default"),
        spill_max: run.get_one("spill-max").copied().unwrap_or(DEFAULT_SPILL_MAX),
        save: SavePlan {
            outdir: run.get_one::<PathBuf>("outdir").cloned(),
            errdir: run.get_one::<PathBuf>("errdir").cloned(),
            is_shown: format != Format::Jsonl && (named.is_some() || gathered.is_some()),
        },
    })
}
