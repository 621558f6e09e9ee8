//! What is known and not to be had: letters that other tools give several meanings, options and subcommands that are
//! planned. Each gets an answer that helps; none is guessed at.

use std::ffi::OsString;

use clap::{Arg, ArgAction, Command, value_parser};

/// A letter with several meanings in other tools: guessing one would run something else than was meant.
pub(super) struct PeerLetter {
    pub(super) short: char,
    pub(super) id: &'static str,
    pub(super) advice: &'static str,
}

pub(super) const PEER_LETTERS: &[PeerLetter] = &[
    PeerLetter {
        short: 'u',
        id: "peer-u",
        advice: "a timeout in clush and pdsh, a user in ansible; write --timeout SECONDS or -l USER",
    },
    PeerLetter {
        short: 't',
        id: "peer-t",
        advice: "a timeout in clush, pdsh and pssh, a terminal in ssh; write --connect-timeout or --timeout SECONDS",
    },
    PeerLetter {
        short: 'r',
        id: "peer-r",
        advice: "copying of trees in clush and scp; that will be `mux put --recursive`, which is not supported yet",
    },
];

/// An option that is planned: known, so that the answer is better than "unexpected argument".
pub(super) struct Later {
    short: Option<char>,
    long: &'static str,
}

impl Later {
    pub(super) fn id(&self) -> &'static str {
        self.long
    }

    pub(super) fn shown(&self) -> String {
        match self.short {
            Some(short) => format!("-{short} (--{})", self.long),
            None => format!("--{}", self.long),
        }
    }
}

const fn letter(short: char, long: &'static str) -> Later {
    Later {
        short: Some(short),
        long,
    }
}

const fn long(long: &'static str) -> Later {
    Later { short: None, long }
}

pub(super) const LATER: &[Later] = &[
    letter('g', "group"),
    letter('a', "all"),
    letter('K', "ask-become-password"),
    long("inventory"),
    long("limit"),
    long("pick"),
    long("failed"),
    long("sudo"),
    long("become-password-command"),
    long("subst"),
    long("agent"),
    long("raw-output"),
    long("diff"),
    long("regroup"),
    long("fail-fast"),
    long("max-fail"),
];

/// Subcommands that are planned.
pub(super) const LATER_COMMANDS: &[&str] = &[
    "script",
    "put",
    "get",
    "ssh",
    "shell",
    "nodes",
    "ping",
    "forward",
    "completion",
    "man",
    "ansible",
];

/// Arguments for all of them, so that they are recognised.
pub(super) fn args() -> impl Iterator<Item = Arg> {
    let letters = PEER_LETTERS
        .iter()
        .map(|letter| hidden(letter.id).short(letter.short));
    letters.chain(LATER.iter().map(later))
}

pub(super) fn later_command(name: &'static str) -> Command {
    let anything = Arg::new("anything")
        .num_args(0..)
        .allow_hyphen_values(true)
        .trailing_var_arg(true)
        .value_parser(value_parser!(OsString));
    Command::new(name)
        .hide(true)
        .disable_help_flag(true)
        .arg(anything)
}

fn hidden(id: &'static str) -> Arg {
    Arg::new(id).hide(true).action(ArgAction::SetTrue)
}

/// They may come with a value, which is not looked at.
fn later(option: &Later) -> Arg {
    let arg = match option.short {
        Some(short) => Arg::new(option.id()).short(short),
        None => Arg::new(option.id()),
    };
    let with_any_value = arg.long(option.long).num_args(0..=1).default_missing_value("");
    with_any_value
        .hide(true)
        .action(ArgAction::Append)
        .value_parser(value_parser!(OsString))
}
