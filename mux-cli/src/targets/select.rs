//! From `-w`, `-x` and `--hosts` to the set of a run. Files are passed in as bytes; an empty set is an error, because
//! nothing may ever fall back to something else.

use super::error::{Place, TargetError};
use super::set::Cover;
use super::{Target, TargetErrorKind, TargetSet, expression};

/// Which targets were asked for, as typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetSpec {
    /// The values of `-w`.
    pub select: Vec<String>,
    /// The values of `-x`.
    pub exclude: Vec<String>,
    /// The values of `--hosts`.
    pub hosts: Vec<HostsSource>,
}

/// Where a list of hosts is read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostsSource {
    /// A file.
    File(std::path::PathBuf),
    /// Standard input (`-`).
    Stdin,
}

/// A hosts file that was read.
#[derive(Clone, Copy, Debug)]
pub struct HostsFile<'a> {
    /// Its name in messages: the path as typed, or `-`.
    pub label: &'a str,
    /// What is in it.
    pub bytes: &'a [u8],
}

/// The set of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The targets, never empty.
    pub targets: TargetSet,
    /// Values of `-x` that left nothing out, worth a warning: `-x web7` does not mean `web07`.
    pub idle_exclusions: Vec<String>,
}

impl TargetSpec {
    /// The lone target that a shell may have made from an unquoted range: bracket-free, with a digit, one name. If a
    /// file of this name is in the current directory, the run is to stop with [`TargetError::globbed`].
    #[must_use]
    pub fn glob_suspect(&self) -> Option<&str> {
        let [only] = self.select.as_slice() else {
            return None;
        };
        let plain =
            only.bytes().any(|b| b.is_ascii_digit()) && !only.contains(['[', ',', '!', '&', '^', '/']);
        (plain && self.hosts.is_empty()).then_some(only)
    }
}

/// The targets of `spec`. With `-w` the entries of hosts files are what its wildcards match; without, they are the
/// set itself. `config_names` are the literal `Host` names of the ssh configuration.
///
/// # Errors
/// The first expression that can't be understood, or that nothing is left.
pub fn select(
    spec: &TargetSpec,
    files: &[HostsFile<'_>],
    config_names: &[String],
) -> Result<Selection, TargetError> {
    let config: Vec<Target> = config_names
        .iter()
        .map(|name| Target::new(None, name.clone(), None))
        .collect();
    let mut listed = TargetSet::default();
    for file in files {
        listed = hosts_file(listed, *file, &config)?;
    }
    let known = known_names(&listed, config);
    let chosen = if spec.select.is_empty() {
        listed
    } else {
        all_of("-w", &spec.select, &known)?
    };
    exclude(chosen, &spec.exclude, known)
}

/// Entries of hosts files first: a name that they give with a user or port has it from there.
fn known_names(listed: &TargetSet, config: Vec<Target>) -> Vec<Target> {
    let hosts: std::collections::HashSet<&str> = listed
        .as_slice()
        .iter()
        .map(|target| target.host.as_str())
        .collect();
    let rest = config
        .into_iter()
        .filter(|target| !hosts.contains(target.host.as_str()));
    listed.as_slice().iter().cloned().chain(rest).collect()
}

fn all_of(flag: &'static str, texts: &[String], known: &[Target]) -> Result<TargetSet, TargetError> {
    let mut set = TargetSet::default();
    for text in texts {
        set = add(set, text, known).map_err(|error| error.at(Place::Flag(flag)))?;
    }
    Ok(set)
}

fn add(set: TargetSet, text: &str, known: &[Target]) -> Result<TargetSet, TargetError> {
    let new = super::parse(text, known)?;
    let set = set.union(new);
    if set.is_too_large() {
        let problem = super::error::Problem::new(0..text.len(), TargetErrorKind::TooMany);
        return Err(TargetError::in_text(text, problem));
    }
    Ok(set)
}

fn exclude(chosen: TargetSet, texts: &[String], known: Vec<Target>) -> Result<Selection, TargetError> {
    let mut idle_exclusions = Vec::new();
    // What was chosen is known by now, so that `-x 'web*'` needs no list.
    let known: Vec<Target> = if texts.is_empty() {
        known
    } else {
        chosen.as_slice().iter().cloned().chain(known).collect()
    };
    let mut targets = chosen;
    for text in texts {
        let out = expression::parse(text, &known)
            .map_err(|problem| TargetError::in_text(text, problem).at(Place::Flag("-x")))?;
        let cover = Cover::of(&out);
        if !targets.as_slice().iter().any(|target| cover.covers(target)) {
            idle_exclusions.push(text.clone());
        }
        targets = targets.minus(&out);
    }
    if targets.is_empty() {
        return Err(TargetError::empty());
    }
    Ok(Selection {
        targets,
        idle_exclusions,
    })
}

/// Which of a run's targets an option is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// For each target the first expression that means it.
    pub chosen_by: Vec<Option<String>>,
    /// Expressions that mean none, worth a warning: `web7` does not mean `web07`.
    pub idle: Vec<String>,
}

/// What the expressions behind `flag` mean of `targets`, which are also what wildcards match.
///
/// # Errors
/// The first expression that can't be understood.
pub fn part(flag: &'static str, texts: &[String], targets: &[Target]) -> Result<Part, TargetError> {
    let mut part = Part {
        chosen_by: vec![None; targets.len()],
        idle: Vec::new(),
    };
    for text in texts {
        let set = super::parse(text, targets).map_err(|error| error.at(Place::Flag(flag)))?;
        let cover = Cover::of(&set);
        let mut is_idle = true;
        for (target, chosen_by) in targets.iter().zip(&mut part.chosen_by) {
            if cover.covers(target) {
                is_idle = false;
                chosen_by.get_or_insert_with(|| text.clone());
            }
        }
        if is_idle {
            part.idle.push(text.clone());
        }
    }
    Ok(part)
}

/// Adds the targets of a hosts file: one target or expression a line, `#` starts a comment at the beginning of a line
/// or after a blank.
fn hosts_file(mut set: TargetSet, file: HostsFile<'_>, known: &[Target]) -> Result<TargetSet, TargetError> {
    let bytes = file.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file.bytes);
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let place = || Place::Line {
            file: file.label.to_owned(),
            line: index + 1,
        };
        let Ok(line) = str::from_utf8(line) else {
            let text = String::from_utf8_lossy(line).into_owned();
            let problem = super::error::Problem::new(0..text.len(), TargetErrorKind::NotUtf8);
            return Err(TargetError::in_text(&text, problem).at(place()));
        };
        let line = without_comment(line).trim();
        if !line.is_empty() {
            set = add(set, line, known).map_err(|error| error.at(place()))?;
        }
    }
    Ok(set)
}

fn without_comment(line: &str) -> &str {
    let mut after_blank = true;
    for (at, c) in line.char_indices() {
        if c == '#' && after_blank {
            return line.get(..at).expect("`#` starts a character");
        }
        after_blank = c.is_whitespace();
    }
    line
}
