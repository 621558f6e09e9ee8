//! `--transport`: for all targets, or for some of them. Decides what was meant; not which targets a set names.

use std::fmt;

use clap::ArgMatches;
use mux_ssh::Printable;

use super::UsageError;
use crate::plan::Transport;

/// One `--transport`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// For every target.
    All(Transport),
    /// The system's `ssh` for the targets of this expression.
    ThroughOpenSsh(String),
}

/// A value that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChoiceError {
    NoSuchName,
    /// Whose ssh, ours or the system's?
    Ambiguous,
    NoSet,
    NotForSome,
}

impl fmt::Display for ChoiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSuchName => "expected native, openssh, local, or openssh=SET for some of the targets",
            Self::Ambiguous => {
                "the system's ssh is openssh; our own, which is used without this option, is native"
            }
            Self::NoSet => "which targets? as in openssh=old[1-9]; `openssh` alone is for all",
            Self::NotForSome => "only openssh can be for some of the targets, as in openssh=old[1-9]",
        })
    }
}

impl std::error::Error for ChoiceError {}

const NAMES: [(&str, Transport); 3] = [
    ("native", Transport::Ssh),
    ("openssh", Transport::OpenSsh),
    ("local", Transport::Local),
];

pub(super) fn parse(text: &str) -> Result<Choice, ChoiceError> {
    let (name, set) = match text.split_once('=') {
        Some((name, set)) => (name, Some(set)),
        None => (text, None),
    };
    if name == "ssh" {
        return Err(ChoiceError::Ambiguous);
    }
    let found = NAMES.iter().find(|(known, _)| *known == name);
    let (_, transport) = found.ok_or(ChoiceError::NoSuchName)?;
    match (transport, set) {
        (transport, None) => Ok(Choice::All(*transport)),
        (Transport::OpenSsh, Some(set)) if set.trim().is_empty() => Err(ChoiceError::NoSet),
        (Transport::OpenSsh, Some(set)) => Ok(Choice::ThroughOpenSsh(set.to_owned())),
        (Transport::Ssh | Transport::Local, Some(_)) => Err(ChoiceError::NotForSome),
    }
}

/// The transport of all targets but those of the sets.
pub(super) fn choose(matches: &ArgMatches) -> Result<(Transport, Vec<String>), UsageError> {
    let (mut all, mut some) = (None, Vec::new());
    for choice in matches.get_many::<Choice>("transport").into_iter().flatten() {
        match choice {
            Choice::All(transport) => match all.replace(*transport) {
                None => {}
                Some(earlier) if earlier == *transport => {}
                Some(_) => return Err(UsageError::TwoTransports),
            },
            Choice::ThroughOpenSsh(set) => some.push(set.clone()),
        }
    }
    match (all.unwrap_or_default(), some.first()) {
        (Transport::OpenSsh | Transport::Local, Some(set)) => {
            Err(UsageError::NoOthers(Printable::new(set).to_string()))
        }
        (transport, _) => Ok((transport, some)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_for_openssh_alone() {
        let some = |set: &str| Ok(Choice::ThroughOpenSsh(set.to_owned()));
        assert_eq!(parse("openssh=old[1-9],a=b"), some("old[1-9],a=b"));
        assert_eq!(parse("openssh"), Ok(Choice::All(Transport::OpenSsh)));
        assert_eq!(parse("local"), Ok(Choice::All(Transport::Local)));
        assert_eq!(parse("native"), Ok(Choice::All(Transport::Ssh)));
        for whose in ["ssh", "ssh=web1"] {
            assert_eq!(parse(whose), Err(ChoiceError::Ambiguous), "{whose}");
        }
        assert_eq!(parse("openssh= "), Err(ChoiceError::NoSet));
        assert_eq!(parse("local=web1"), Err(ChoiceError::NotForSome));
        for unknown in ["", "OpenSSH", "=web1", "telnet", "telnet=web1"] {
            assert_eq!(parse(unknown), Err(ChoiceError::NoSuchName), "{unknown}");
        }
    }
}
