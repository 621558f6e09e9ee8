//! The configuration of `mux` itself: `config.toml` of the machine, of the user, and what `MUX_CONFIG` names. Decides
//! which of them wins; what ssh's own configuration says is read elsewhere.
//!
//! Later files win key by key. `[policy]` stands in the machine's file alone, and what it says is final.

mod error;
mod table;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

pub use error::{PreferenceError, Problem};

use crate::files;
use table::{AuditTable, File};

/// The machine's file.
const SYSTEM: &str = "/etc/mux/config.toml";

/// A file of this size was not meant to be one of ours.
const MAX_FILE: u64 = 1024 * 1024;

/// What was set, with defaults for the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preferences {
    /// Who is told about each run.
    pub audit: AuditPreferences,
}

/// `[audit]`: the record of each run in the log of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditPreferences {
    /// Which log.
    pub to: AuditLog,
    /// Where it listens; none: where it usually does.
    pub socket: Option<PathBuf>,
    /// Nothing is run that can't be recorded.
    pub required: bool,
}

/// Which log a run is recorded in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AuditLog {
    /// None.
    #[default]
    None,
    /// The journal where there is one, else syslog.
    Auto,
    /// systemd's journal, field by field.
    Journal,
    /// Whoever listens on `/dev/log`.
    Syslog,
}

/// Where a file of ours may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The machine's, the only one with a `[policy]`.
    pub system: PathBuf,
    /// The user's, if there is a home for it.
    pub user: Option<PathBuf>,
    /// What `MUX_CONFIG` names; has to be there.
    pub named: Option<PathBuf>,
}

impl Places {
    /// The places of this process (XDG Base Directory Specification).
    #[must_use]
    pub fn of_process() -> Self {
        let absolute = |path: PathBuf| path.is_absolute().then_some(path);
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let home = || Some(std::env::home_dir().and_then(absolute)?.join(".config"));
        let directory = set("XDG_CONFIG_HOME").map(PathBuf::from).and_then(absolute);
        Self {
            system: SYSTEM.into(),
            user: directory.or_else(home).map(|path| path.join("mux/config.toml")),
            named: set("MUX_CONFIG").map(PathBuf::from),
        }
    }

    /// Reads what is there.
    ///
    /// # Errors
    /// A file can't be read or says what we don't know.
    pub fn read(&self) -> Result<Preferences, PreferenceError> {
        let mut audit = AuditTable::default();
        let mut policy = None;
        if let Some(mut file) = read(&self.system, true)? {
            policy = file.policy().audit;
            audit = file.audit.unwrap_or_default();
        }
        for (path, optional) in [(&self.user, true), (&self.named, false)] {
            if let Some(path) = path
                && let Some(file) = read(path, optional)?
            {
                file.without_policy(path)?;
                audit = audit.under(file.audit.unwrap_or_default());
            }
        }
        // Taken key by key, a policy could be led astray by the keys that it leaves open: a socket of the user's own.
        let audit = policy.unwrap_or(audit).settled();
        Ok(Preferences { audit })
    }
}

/// One file; none: there is none, and it need not be there.
fn read(path: &Path, optional: bool) -> Result<Option<File>, PreferenceError> {
    let content = match files::read(path, MAX_FILE) {
        Err(error) if optional && is_missing(error.kind()) => return Ok(None),
        Err(error) => {
            return Err(PreferenceError::new(
                path,
                None,
                Problem::Unreadable(error.to_string()),
            ));
        }
        Ok(content) => content,
    };
    File::parse(path, &content).map(Some)
}

/// A home that is a file is no reason to run nothing.
fn is_missing(kind: ErrorKind) -> bool {
    kind == ErrorKind::NotFound || kind == ErrorKind::NotADirectory
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::fs;

    use super::*;

    /// What three files say together, each missing if it is empty; `DIR` in the answer is where they are.
    fn read(texts: [&str; 3]) -> Result<AuditPreferences, String> {
        let dir = tempfile::Builder::new().prefix("mux-config").tempdir().unwrap();
        let [system, user, named] = ["system", "user", "named"].map(|name| dir.path().join(name));
        for (path, text) in [&system, &user, &named].into_iter().zip(texts) {
            if !text.is_empty() {
                fs::write(path, text).unwrap();
            }
        }
        let [_, _, has_named] = texts.map(|text| !text.is_empty());
        let places = Places {
            system,
            user: Some(user),
            named: has_named.then_some(named),
        };
        let preferences = places.read();
        let shown = |error: PreferenceError| error.to_string().replace(dir.path().to_str().unwrap(), "DIR");
        preferences.map(|preferences| preferences.audit).map_err(shown)
    }

    fn check(texts: [&str; 3], to: AuditLog, socket: Option<&str>, required: bool) {
        let expected = AuditPreferences {
            to,
            socket: socket.map(PathBuf::from),
            required,
        };
        assert_eq!(read(texts), Ok(expected), "{texts:?}");
    }

    fn check_refused(texts: [&str; 3], words: &str) {
        assert_eq!(read(texts).unwrap_err(), words, "{texts:?}");
    }

    #[test]
    fn without_a_file_nothing_is_recorded() {
        check(["", "", ""], AuditLog::None, None, false);
        check(["# nothing\n", "", ""], AuditLog::None, None, false);
    }

    #[test]
    fn later_files_win_key_by_key() {
        let system = "[audit]\nto = 'auto'\nrequired = true\n";
        check([system, "", ""], AuditLog::Auto, None, true);
        check(
            [system, "[audit]\nto = 'syslog'\n", ""],
            AuditLog::Syslog,
            None,
            true,
        );
        let named = "[audit]\nsocket = '/run/log'\nrequired = false\n";
        check(
            [system, "[audit]\nto = 'journal'\n", named],
            AuditLog::Journal,
            Some("/run/log"),
            false,
        );
    }

    #[test]
    fn a_policy_of_the_machine_is_final_in_all_its_keys() {
        let system = "[policy.audit]\nto = 'journal'\n";
        let user = "[audit]\nto = 'none'\nsocket = '/tmp/mine'\n";
        check([system, user, user], AuditLog::Journal, None, false);
    }

    #[test]
    fn a_policy_elsewhere_is_refused_by_file_and_line() {
        check_refused(
            ["", "# mine\n\n[policy.audit]\nto = 'none'\n", ""],
            "DIR/user:3: [policy] is for /etc/mux/config.toml alone; write [audit] instead",
        );
    }

    #[test]
    fn what_nobody_knows_is_refused_by_file_and_line() {
        check_refused(
            ["", "[audit]\nto = 'auto'\ntoo = 'auto'\n", ""],
            "DIR/user:3: unknown field `too`, expected one of `to`, `socket`, `required`",
        );
        check_refused(
            ["", "", "\n[audits]\n"],
            "DIR/named:2: unknown field `audits`, expected `audit` or `policy`",
        );
        check_refused(
            ["[audit]\nto = 'file'\n", "", ""],
            "DIR/system:2: unknown variant `file`, expected one of `none`, `auto`, `journal`, `syslog`",
        );
        check_refused(
            ["[audit]\n\nrequired = 1\n", "", ""],
            "DIR/system:3: invalid type: integer `1`, expected a boolean",
        );
        check_refused(
            ["", "[audit]\nsocket = 'log'\n", ""],
            "DIR/user:2: socket = 'log': a path has to begin with /",
        );
    }

    #[test]
    fn what_is_no_toml_is_refused_by_file_and_line() {
        check_refused(
            ["[audit]\nto = auto\n", "", ""],
            "DIR/system:2: string values must be quoted, expected literal string",
        );
    }
}
