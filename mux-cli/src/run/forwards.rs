//! Channels to the user's agent and the sockets that they are connected with: what is said on one goes to the other, at
//! the pace of whoever is slower. Decides nothing about who may; looks at no byte.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::Path;

use bytes::Bytes;
use mux_core::{Driver, Key};
use mux_ssh::Client;
use mux_ssh::agent::{AgentTunnel, TunnelEvent};
use mux_ssh::client::{ChannelId, Event, StreamKind};

use super::wire::Wire;

/// Sockets at once, of all hosts together: agents fail when about a thousand come.
const MAX_TUNNELS: usize = 64;

/// A socket of the agent, and the channel that it serves.
#[derive(Debug)]
struct Tunnel {
    link: Key,
    channel: ChannelId,
    /// Given to the agent, and not given back to the server yet.
    owed: usize,
    /// What the agent said and the channel had no room for.
    held: VecDeque<Bytes>,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Forwards {
    by_socket: HashMap<Key, Tunnel>,
    by_channel: HashMap<(Key, ChannelId), Key>,
}

impl Forwards {
    /// Connects a channel with the agent that listens on `socket`.
    pub(super) fn open(
        &mut self,
        driver: &mut Driver<Wire>,
        (link, channel): (Key, ChannelId),
        socket: &str,
    ) -> io::Result<()> {
        if self.by_socket.len() >= MAX_TUNNELS {
            return Err(io::Error::other("too many connections to the agent"));
        }
        let binding = client(driver, link).and_then(|client| client.session_binding());
        let tunnel = AgentTunnel::new(binding.as_ref());
        let key = driver.connect_unix(Path::new(socket), Wire::Tunnel(Box::new(tunnel)))?;
        let tunnel = Tunnel {
            link,
            channel,
            owed: 0,
            held: VecDeque::new(),
        };
        self.by_socket.insert(key, tunnel);
        self.by_channel.insert((link, channel), key);
        Ok(())
    }

    /// The server says something on a channel. Returns what is not about one of these.
    pub(super) fn on_said(&mut self, driver: &mut Driver<Wire>, link: Key, said: Event) -> Option<Event> {
        let Some(channel) = said.channel() else {
            return Some(said);
        };
        let Some(&socket) = self.by_channel.get(&(link, channel)) else {
            return Some(said);
        };
        if let Event::Output { data, .. } = said {
            self.tell_agent(driver, socket, data);
        } else if let Event::StdinRoom { .. } = said {
            self.tell_server(driver, socket);
        } else if let Event::Eof { .. } = said {
            if let Some(tunnel) = tunnel(driver, socket) {
                tunnel.finish();
            }
        } else {
            // Nobody is there who would hear the agent.
            self.by_channel.remove(&(link, channel));
            self.by_socket.remove(&socket);
            if let Some(tunnel) = tunnel(driver, socket) {
                tunnel.close();
            }
        }
        None
    }

    fn tell_agent(&mut self, driver: &mut Driver<Wire>, socket: Key, data: Bytes) {
        if let Some(entry) = self.by_socket.get_mut(&socket)
            && let Some(tunnel) = tunnel(driver, socket)
        {
            entry.owed += data.len();
            tunnel.send(data);
        }
        self.give_back(driver, socket);
    }

    /// Lets the server say more, as far as the agent has taken what it said before.
    fn give_back(&mut self, driver: &mut Driver<Wire>, socket: Key) {
        let has_room = tunnel(driver, socket).is_some_and(|tunnel| tunnel.room() > 0);
        if let Some(entry) = self.by_socket.get_mut(&socket)
            && has_room
            && let Some(client) = client(driver, entry.link)
        {
            client.consume(entry.channel, StreamKind::Stdout, std::mem::take(&mut entry.owed));
        }
    }

    /// Something on a socket of the agent.
    pub(super) fn on_socket(&mut self, driver: &mut Driver<Wire>, socket: Key, said: TunnelEvent) {
        match said {
            TunnelEvent::Data(data) => {
                if let Some(entry) = self.by_socket.get_mut(&socket) {
                    entry.held.push_back(data);
                }
                self.tell_server(driver, socket);
            }
            TunnelEvent::Room => self.give_back(driver, socket),
            // The agent has hung up, and the link closes next.
            TunnelEvent::Eof => {
                if let Some(tunnel) = tunnel(driver, socket) {
                    tunnel.close();
                }
            }
        }
    }

    /// Passes on what the agent said, as far as there is room.
    fn tell_server(&mut self, driver: &mut Driver<Wire>, socket: Key) {
        let Some(entry) = self.by_socket.get_mut(&socket) else {
            return;
        };
        let mut passed = 0;
        while let Some(data) = entry.held.pop_front()
            && let Some(client) = client(driver, entry.link)
        {
            let mut data = data;
            let piece = data.split_to(data.len().min(client.stdin_room(entry.channel)));
            if piece.is_empty() {
                entry.held.push_front(data);
                break;
            }
            passed += piece.len();
            if let Err(error) = client.write_stdin(entry.channel, piece) {
                log::debug!("a channel to the agent: {error}");
            }
            if !data.is_empty() {
                entry.held.push_front(data);
            }
        }
        if let Some(tunnel) = tunnel(driver, socket) {
            tunnel.consume(passed);
        }
    }

    /// A socket is gone: so is what it was for, once all was said.
    pub(super) fn on_socket_closed(&mut self, driver: &mut Driver<Wire>, socket: Key) {
        self.tell_server(driver, socket);
        let Some(entry) = self.by_socket.remove(&socket) else {
            return;
        };
        self.by_channel.remove(&(entry.link, entry.channel));
        if let Some(client) = client(driver, entry.link) {
            client.close_channel(entry.channel);
        }
    }

    /// A connection is gone, and with it its sockets. Returns how many.
    pub(super) fn on_link_closed(&mut self, driver: &mut Driver<Wire>, link: Key) -> usize {
        let sockets: Vec<Key> = self
            .by_socket
            .iter()
            .filter(|(_, entry)| entry.link == link)
            .map(|(socket, _)| *socket)
            .collect();
        for socket in &sockets {
            if let Some(entry) = self.by_socket.remove(socket) {
                self.by_channel.remove(&(entry.link, entry.channel));
            }
            driver.abort(*socket);
        }
        sockets.len()
    }
}

fn client(driver: &mut Driver<Wire>, key: Key) -> Option<&mut Client> {
    match driver.protocol(key)? {
        Wire::Ssh(client) => Some(client),
        Wire::Agent(_) | Wire::Pipe(_) | Wire::Tunnel(_) | Wire::Node(_) => None,
    }
}

fn tunnel(driver: &mut Driver<Wire>, key: Key) -> Option<&mut AgentTunnel> {
    match driver.protocol(key)? {
        Wire::Tunnel(tunnel) => Some(tunnel),
        Wire::Ssh(_) | Wire::Agent(_) | Wire::Pipe(_) | Wire::Node(_) => None,
    }
}
