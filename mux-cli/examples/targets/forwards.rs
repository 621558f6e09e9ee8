//! The connections that a target makes for its clients, as a bastion does: to addresses only. Carries bytes both ways and
//! the end of either; decides nothing about who may connect where.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use mux_core::{Driver, Key};
use mux_proto::{Raw, RawEvent};
use mux_ssh::server::{Event, Server};

use crate::jobs::Place;
use crate::wire::Wire;

/// `SSH_OPEN_CONNECT_FAILED` (RFC 4254, section 5.1).
const CONNECT_FAILED: u32 = 2;

/// All connections, by both of their ends.
#[derive(Debug, Default)]
pub(crate) struct Forwards {
    by_place: HashMap<Place, Key>,
    by_link: HashMap<Key, Forward>,
}

#[derive(Debug)]
struct Forward {
    place: Place,
    stands: bool,
    /// Bytes that the client does not take yet.
    owed: usize,
}

impl Forwards {
    /// Whether this link is one of ours.
    pub(crate) fn has_link(&self, link: Key) -> bool {
        self.by_link.contains_key(&link)
    }

    /// A client says something: what is not about a connection of ours.
    pub(crate) fn handle_ssh(&mut self, driver: &mut Driver<Wire>, key: Key, event: Event) -> Option<Event> {
        match event {
            Event::DirectTcpip { session, host, port } => {
                self.connect(driver, (key, session), &host, port);
                None
            }
            Event::Stdin { session, data } if let Some(&link) = self.by_place.get(&(key, session)) => {
                // What lies behind is on this machine and reads what it is sent.
                if let Some(server) = server(driver, key) {
                    server.consume(session, data.len());
                }
                if let Some(raw) = driver.protocol(link).and_then(Wire::as_plain) {
                    raw.send(data);
                }
                None
            }
            Event::StdinEof { session } if let Some(&link) = self.by_place.get(&(key, session)) => {
                if let Some(raw) = driver.protocol(link).and_then(Wire::as_plain) {
                    raw.finish();
                }
                None
            }
            Event::Room { session } if let Some(&link) = self.by_place.get(&(key, session)) => {
                self.give_back(driver, link);
                None
            }
            Event::SessionClosed { session } if let Some(link) = self.by_place.remove(&(key, session)) => {
                self.by_link.remove(&link);
                driver.abort(link);
                None
            }
            other @ (Event::Authenticated { .. }
            | Event::Env { .. }
            | Event::Exec { .. }
            | Event::Stdin { .. }
            | Event::StdinEof { .. }
            | Event::Signal { .. }
            | Event::Room { .. }
            | Event::SessionClosed { .. }
            | Event::Answer { .. }
            | Event::Disconnected { .. }) => Some(other),
        }
    }

    fn connect(&mut self, driver: &mut Driver<Wire>, place: Place, host: &str, port: u16) {
        let address = host.parse::<IpAddr>().ok();
        let link =
            address.map(|address| driver.connect(SocketAddr::new(address, port), Wire::Plain(Raw::new())));
        match link {
            Some(Ok(link)) => {
                self.by_place.insert(place, link);
                let forward = Forward {
                    place,
                    stands: false,
                    owed: 0,
                };
                self.by_link.insert(link, forward);
            }
            Some(Err(error)) => refuse(driver, place, &error.to_string()),
            None => refuse(driver, place, "only addresses are connected to"),
        }
    }

    /// A connection stands.
    pub(crate) fn connected(&mut self, driver: &mut Driver<Wire>, link: Key) {
        let Some(forward) = self.by_link.get_mut(&link) else {
            return;
        };
        forward.stands = true;
        if let Some(server) = server(driver, forward.place.0) {
            server.accept(forward.place.1);
        }
    }

    /// Something came from what was connected to.
    pub(crate) fn handle_plain(&mut self, driver: &mut Driver<Wire>, link: Key, event: RawEvent) {
        let Some(forward) = self.by_link.get_mut(&link) else {
            return;
        };
        let (key, session) = forward.place;
        let Some(server) = server(driver, key) else { return };
        match event {
            RawEvent::Data(data) => {
                forward.owed += data.len();
                server.stdout(session, data);
                self.give_back(driver, link);
            }
            RawEvent::Eof => server.eof(session),
        }
    }

    /// Lets more come once the client takes more.
    fn give_back(&mut self, driver: &mut Driver<Wire>, link: Key) {
        let Some(forward) = self.by_link.get_mut(&link) else {
            return;
        };
        let (key, session) = forward.place;
        if server(driver, key).is_some_and(|server| server.room(session) > 0)
            && let Some(raw) = driver.protocol(link).and_then(Wire::as_plain)
        {
            raw.consume(std::mem::take(&mut forward.owed));
        }
    }

    /// A connection is gone, or never stood.
    pub(crate) fn closed(&mut self, driver: &mut Driver<Wire>, link: Key, why: &str) {
        let Some(forward) = self.by_link.remove(&link) else {
            return;
        };
        self.by_place.remove(&forward.place);
        if !forward.stands {
            return refuse(driver, forward.place, why);
        }
        let (key, session) = forward.place;
        if let Some(server) = server(driver, key) {
            server.eof(session);
            server.close(session);
        }
    }

    /// A client is gone, and with it all that was made for it.
    pub(crate) fn client_closed(&mut self, driver: &mut Driver<Wire>, key: Key) {
        self.by_place.retain(|(client, _), link| {
            let gone = *client == key;
            if gone {
                self.by_link.remove(link);
                driver.abort(*link);
            }
            !gone
        });
    }
}

fn refuse(driver: &mut Driver<Wire>, (key, session): Place, why: &str) {
    if let Some(server) = server(driver, key) {
        server.refuse(session, CONNECT_FAILED, why);
    }
}

fn server(driver: &mut Driver<Wire>, key: Key) -> Option<&mut Server> {
    driver.protocol(key).and_then(Wire::as_server)
}
