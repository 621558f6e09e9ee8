//! `BindAddress` and `BindInterface`: from which address of this machine connections to a host start. Decides which
//! addresses a line means, as OpenSSH does: of an interface the first one of each family, those that lead nowhere last.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};

use mux_ssh::Printable;
use mux_ssh::config::{HostConfig, Sourced};

use super::outward;
use crate::hub::Source;

/// What lines mean, each found out once a run.
#[derive(Debug, Default)]
pub(super) struct Bound {
    by_address: HashMap<String, Result<Vec<SocketAddr>, String>>,
    by_interface: HashMap<String, Result<Vec<SocketAddr>, String>>,
}

impl Bound {
    /// The address wins over the interface.
    ///
    /// # Errors
    /// A line that names no address of ours; one line of text.
    pub(super) fn source(&mut self, config: &HostConfig) -> Result<Option<Source>, String> {
        let (keyword, written, found) = match (&config.bind_address, &config.bind_interface) {
            (Some(address), _) => (
                "BindAddress",
                address,
                find(&mut self.by_address, address, of_name),
            ),
            (None, Some(interface)) => {
                let found = find(&mut self.by_interface, interface, of_interface);
                ("BindInterface", interface, found)
            }
            (None, None) => return Ok(None),
        };
        let line = format!("{}: {keyword} {}", written.origin, Printable::new(&written.value));
        match found {
            Ok(addresses) => Ok(Some(Source { line, addresses })),
            Err(why) => Err(format!("{line}: {why}")),
        }
    }
}

type Found = Result<Vec<SocketAddr>, String>;

fn find(known: &mut HashMap<String, Found>, text: &Sourced<String>, find: fn(&str) -> Found) -> Found {
    let found = known.entry(text.value.clone());
    found.or_insert_with_key(|text| find(text)).clone()
}

fn of_name(name: &str) -> Found {
    if let Ok(address) = name.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, 0)]);
    }
    match (name, 0).to_socket_addrs() {
        Ok(addresses) => Ok(addresses.collect()),
        Err(_) => Err("neither an address nor a name that leads to one".to_owned()),
    }
}

fn of_interface(name: &str) -> Found {
    let all = outward::interfaces();
    let mut own = all.iter().filter(|interface| interface.name == name).peekable();
    if own.peek().is_none() {
        return Err(match all.is_empty() {
            true => "the system does not tell which interfaces there are".to_owned(),
            false => "no interface of this name is up".to_owned(),
        });
    }
    let addresses = by_preference(&own.filter_map(|interface| interface.address).collect::<Vec<_>>());
    match addresses.is_empty() {
        true => Err("it has no address".to_owned()),
        false => Ok(addresses),
    }
}

/// In the order of the interface, but those that reach nobody, or only neighbours, last.
fn by_preference(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let is_local = |address: &SocketAddr| match address {
        SocketAddr::V4(v4) => *v4.ip() == Ipv4Addr::LOCALHOST,
        SocketAddr::V6(v6) => v6.ip().is_loopback() || v6.ip().is_unicast_link_local(),
    };
    let mut sorted = addresses.to_vec();
    sorted.sort_by_key(is_local);
    sorted
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_leads_somewhere_comes_first() {
        let addresses = |texts: [&str; 4]| texts.map(|text| text.parse::<SocketAddr>().unwrap());
        assert_eq!(
            by_preference(&addresses([
                "127.0.0.1:0",
                "[fe80::1]:0",
                "10.0.0.1:0",
                "[2001:db8::1]:0"
            ])),
            addresses(["10.0.0.1:0", "[2001:db8::1]:0", "127.0.0.1:0", "[fe80::1]:0"]),
        );
    }

    #[test]
    fn names_and_interfaces_of_this_machine_have_addresses() {
        let local = "127.0.0.1:0".parse().unwrap();
        assert!(
            of_name("localhost")
                .unwrap()
                .iter()
                .all(|found| found.ip().is_loopback())
        );
        assert_eq!(of_name("127.0.0.1"), Ok(vec![local]));
        assert!(of_interface("lo").unwrap().contains(&local));
        assert_eq!(
            of_interface("no-such0"),
            Err("no interface of this name is up".to_owned())
        );
        assert!(of_name("no-such-name.invalid").is_err());
    }
}
