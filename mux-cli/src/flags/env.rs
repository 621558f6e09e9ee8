//! The environment variables that stand in for flags. Read once, here; the rest of the program sees values.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use super::UsageError;
use super::duration::{parse_deadline, parse_duration};
use super::fanout::parse_fanout;

/// Variables that stand in for flags. An empty one counts as not set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// `MUX_FANOUT`, for `-f`.
    pub fanout: Option<OsString>,
    /// `MUX_CONNECT_TIMEOUT`, for `--connect-timeout`.
    pub connect_timeout: Option<OsString>,
    /// `MUX_TIMEOUT`, for `--timeout`.
    pub timeout: Option<OsString>,
    /// `MUX_LOG`: the filter of the log, in the syntax of `env_logger`.
    pub log: Option<OsString>,
}

impl Environment {
    /// The variables of this process.
    #[must_use]
    pub fn of_process() -> Self {
        let read = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        Self {
            fanout: read("MUX_FANOUT"),
            connect_timeout: read("MUX_CONNECT_TIMEOUT"),
            timeout: read("MUX_TIMEOUT"),
            log: read("MUX_LOG"),
        }
    }

    pub(super) fn fanout(&self) -> Result<Option<usize>, UsageError> {
        value(self.fanout.as_deref(), "MUX_FANOUT", |text| {
            parse_fanout(text).map_err(|error| error.to_string())
        })
    }

    pub(super) fn connect_timeout(&self) -> Result<Option<Duration>, UsageError> {
        value(self.connect_timeout.as_deref(), "MUX_CONNECT_TIMEOUT", |text| {
            parse_deadline(text).map_err(|error| error.to_string())
        })
    }

    pub(super) fn timeout(&self) -> Result<Option<Duration>, UsageError> {
        value(self.timeout.as_deref(), "MUX_TIMEOUT", |text| {
            parse_duration(text).map_err(|error| error.to_string())
        })
    }
}

fn value<T>(
    given: Option<&OsStr>,
    name: &'static str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, UsageError> {
    let Some(given) = given.filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let text = given.to_string_lossy();
    let parsed = parse(&text);
    parsed.map(Some).map_err(|advice| UsageError::Environment {
        name,
        value: text.into_owned(),
        advice,
    })
}
