//! `mux daemon` and `mux status`: decides what was asked for.

use std::time::Duration;

use clap::{ArgAction, ArgMatches, Command};

use super::duration::parse_duration;
use super::{UsageError, seconds, table, texts};
use crate::daemon::{DEFAULT_IDLE, Form, Life, Verb};

const HELP: &str = "\
mux run uses the daemon when it is there; mux run --persist 10m starts it. The socket is in $XDG_RUNTIME_DIR/mux, or in
/tmp/mux-UID where there is no such directory; MUX_SOCKET names another.

A connection is kept up to 10 minutes after its last command and up to 8 hours in all, not beyond its certificate and
its agent's socket. One for which somebody typed something is not kept.

Where processes end with the login session (KillUserProcesses of systemd-logind), or a job is all that cron leaves,
the daemon ends with them, and the next command does without.";

/// `mux daemon`.
pub(super) fn command() -> Command {
    let run = Command::new("run")
        .about("Be the daemon, in the foreground")
        .arg(idle())
        .arg(
            table::switch("detached", "Leave the terminal")
                .long("detached")
                .hide(true),
        );
    Command::new("daemon")
        .about("Keep connections for the commands to come")
        .after_help(HELP)
        .arg_required_else_help(true)
        .subcommand_required(true)
        .subcommand(run)
        .subcommand(Command::new("start").about("Start it").arg(idle()))
        .subcommand(Command::new("stop").about("Let what runs end, or stop it, and leave"))
        .subcommand(Command::new("restart").about("Stop it and start it").arg(idle()))
        .subcommand(
            Command::new("drop")
                .about("Close connections that nobody uses")
                .arg(
                    table::valued(
                        "where",
                        "NAMES",
                        "These (user@host:port, as mux status shows them); all without it",
                    )
                    .short('w')
                    .action(ArgAction::Append)
                    .value_delimiter(','),
                ),
        )
}

fn idle() -> clap::Arg {
    table::valued(
        "idle",
        "TIME",
        "Leave after so long without a client (0: never) [default: 10m]",
    )
    .long("idle")
    .value_parser(parse_duration)
}

/// `mux status`.
pub(super) fn status() -> Command {
    Command::new("status")
        .about("Show the daemon and its connections")
        .arg(
            table::switch("json", "One JSON object")
                .long("json")
                .conflicts_with("metrics"),
        )
        .arg(table::switch("metrics", "The text format of Prometheus").long("metrics"))
}

pub(super) fn status_verb(matches: &ArgMatches) -> Verb {
    Verb::Status(match (matches.get_flag("json"), matches.get_flag("metrics")) {
        (true, _) => Form::Json,
        (_, true) => Form::Metrics,
        _ => Form::Text,
    })
}

pub(super) fn verb(matches: &ArgMatches) -> Result<Verb, UsageError> {
    Ok(match matches.subcommand() {
        Some(("run", run)) => Verb::Run(life(run, run.get_flag("detached"))),
        Some(("start", start)) => Verb::Start(life(start, true)),
        Some(("stop", _)) => Verb::Stop,
        Some(("restart", restart)) => Verb::Restart(life(restart, true)),
        Some(("drop", drop)) => Verb::Drop(texts(drop, "where")),
        Some(_) | None => return Err(UsageError::NoSubcommand(command().render_help().to_string())),
    })
}

fn life(matches: &ArgMatches, detached: bool) -> Life {
    let idle: Duration = seconds(matches, "idle").unwrap_or(DEFAULT_IDLE);
    Life {
        idle: (!idle.is_zero()).then_some(idle),
        detached,
    }
}
