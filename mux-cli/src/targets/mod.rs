//! Which hosts: the target syntax, from what was typed to an ordered set, and back to a short text for people.
//!
//! Pure: hosts files and known names are passed in as values. It never looks a name up, and it never falls back to
//! another host than the one that was written.

mod error;
mod expression;
mod fold;
mod operand;
mod range;
mod select;
mod set;
#[cfg(test)]
mod tests;

pub use error::{Place, TargetError, TargetErrorKind};
pub use fold::{fold, fold_names};
pub use select::{HostsFile, HostsSource, Part, Selection, TargetSpec, part, select};
pub use set::TargetSet;

use std::fmt::Write as _;

/// The most targets that one run may have, at any point of an expression. Ten times the largest fleets that tools of
/// this kind are used on; beyond it a typing error is likelier than a wish (`web[1-99999999]`).
pub const MAX_TARGETS: usize = 200_000;

/// The longest host name, in bytes: RFC 1035, section 2.3.4, gives 255 octets to a name.
pub const MAX_NAME: usize = 255;

/// The most bytes of a hosts file that are worth reading: [`MAX_TARGETS`] names of ordinary length.
pub const MAX_HOSTS_FILE: usize = 16 * 1024 * 1024;

/// One host to run on. Two targets are the same if user, host and port are: never because two names lead to one
/// address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// The user that was written with it.
    pub user: Option<String>,
    /// The name or address, an IPv6 address without brackets but with its zone.
    pub host: String,
    /// The port that was written with it.
    pub port: Option<u16>,
    /// How it is shown, and how it can be typed again: `user@host:port`, as far as given.
    pub text: String,
}

impl Target {
    /// A target of these parts.
    #[must_use]
    pub fn new(user: Option<String>, host: String, port: Option<u16>) -> Self {
        let text = shown(user.as_deref(), &host, port);
        Self {
            user,
            host,
            port,
            text,
        }
    }

    /// Whether `self`, written in an exclusion or an intersection, means `other`: a part that was not written means
    /// any. `root@web1` minus `web1` is nothing; leaving it in would run a command where it was forbidden.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.host == other.host
            && (self.user.is_none() || self.user == other.user)
            && (self.port.is_none() || self.port == other.port)
    }
}

/// The text of a target. Brackets keep an address with a port apart from a longer address.
fn shown(user: Option<&str>, host: &str, port: Option<u16>) -> String {
    let mut text = String::with_capacity(host.len());
    if let Some(user) = user {
        text.push_str(user);
        text.push('@');
    }
    match port {
        Some(port) if host.contains(':') => {
            write!(text, "[{host}]:{port}").expect("writing to a String does not fail");
        }
        Some(port) => write!(text, "{host}:{port}").expect("writing to a String does not fail"),
        None => text.push_str(host),
    }
    text
}

/// The targets of `text`, where wildcards match the names in `known`.
///
/// # Errors
/// The first thing that can't be understood, with its column.
pub fn parse(text: &str, known: &[Target]) -> Result<TargetSet, TargetError> {
    expression::parse(text, known).map_err(|problem| TargetError::in_text(text, problem))
}
