//! From which address of this machine a connection starts. Decides which one suits a server; never whether it is ours,
//! which the system knows.

use std::collections::VecDeque;
use std::net::SocketAddr;

use super::{Failure, NoLink, Stage};

/// The addresses that a connection may start from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Source {
    /// The line that names them, with its place: a failure is its fault.
    pub line: String,
    /// One of each family is enough. Ports are 0.
    pub addresses: Vec<SocketAddr>,
}

impl Source {
    /// The one that can reach `to`.
    pub(super) fn toward(&self, to: SocketAddr) -> Option<SocketAddr> {
        let mut suitable = self.addresses.iter();
        suitable.find(|from| from.is_ipv4() == to.is_ipv4()).copied()
    }

    /// What of a server's addresses can be reached; of a server that has others only, nothing can.
    pub(super) fn reachable(&self, addresses: VecDeque<SocketAddr>) -> Result<VecDeque<SocketAddr>, Failure> {
        let count = addresses.len();
        let mut reachable = addresses;
        reachable.retain(|to| self.toward(*to).is_some());
        if reachable.is_empty() && count > 0 {
            let (ours, theirs) = match self.addresses.first() {
                Some(SocketAddr::V4(_)) => ("IPv4", "IPv6"),
                Some(SocketAddr::V6(_)) | None => ("IPv6", "IPv4"),
            };
            let message = format!("{}: {ours} only, and the server has {theirs} only", self.line);
            return Err(Failure::new(Stage::Tcp, message));
        }
        Ok(reachable)
    }

    /// The system does not let a connection start there.
    pub(super) fn refused(&self, why: NoLink) -> Failure {
        let message = format!("{}: {why}", self.line);
        Failure::new(Stage::Tcp, message)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn check(ours: &[&str], theirs: &[&str], expected: Result<&[&str], &str>) {
        let source = Source {
            line: "line 1: BindAddress x".to_owned(),
            addresses: addresses(ours),
        };
        let found = source.reachable(addresses(theirs).into());
        let expected = expected.map(|texts| addresses(texts).into());
        assert_eq!(
            found.map_err(|failure| failure.message),
            expected.map_err(str::to_owned)
        );
    }

    #[test]
    fn only_servers_of_the_same_family_are_reached() {
        let (v4, v6) = ("10.0.0.1:22", "[2001:db8::1]:22");
        check(&["10.0.0.9:0"], &[v4, v6], Ok(&[v4]));
        check(&["10.0.0.9:0", "[::9]:0"], &[v4, v6], Ok(&[v4, v6]));
        check(
            &["[::9]:0"],
            &[v4],
            Err("line 1: BindAddress x: IPv6 only, and the server has IPv4 only"),
        );
        check(&["10.0.0.9:0"], &[], Ok(&[]));
    }
}
