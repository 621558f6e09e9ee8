//! A server of the simulated network, and those that it connects to for its clients: they lie right behind it, at no
//! distance. Decides nothing; every test says how addresses behave.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use mux_proto::{Close, Protocol};
use mux_ssh::server::{Event, Exit, Plan, Server, ServerConfig, SessionId};

use super::sim::{Behaviour, Commands, drive, transmit};

/// What a server can see of the rest of the world.
pub(crate) struct World<'a> {
    pub(crate) behaviours: &'a HashMap<SocketAddr, Behaviour>,
    /// Commands that servers were given, in order.
    pub(crate) commands: &'a mut Vec<Bytes>,
    /// Connections that servers made for their clients.
    pub(crate) forwarded: &'a mut Vec<SocketAddr>,
}

/// One connection of a server.
pub(crate) struct Far {
    pub(crate) server: Server,
    pub(crate) commands: Commands,
    pub(crate) input: BytesMut,
    pub(crate) sessions: Vec<SessionId>,
    behind: HashMap<SessionId, Far>,
}

impl Far {
    pub(crate) fn new(config: Arc<ServerConfig>, plan: Plan, commands: Commands) -> Self {
        Self {
            server: Server::new(config, plan),
            commands,
            input: BytesMut::new(),
            sessions: Vec::new(),
            behind: HashMap::new(),
        }
    }

    /// Reads what has arrived and acts on it. Whether a client has logged in just now.
    pub(crate) fn drive(&mut self, now: Instant, world: &mut World<'_>) -> bool {
        let mut authenticated = false;
        loop {
            drive(&mut self.server, now, &mut self.input);
            let mut any = false;
            while let Some(event) = self.server.poll_event() {
                any = true;
                authenticated |= matches!(event, Event::Authenticated { .. });
                self.obey(now, event, world);
            }
            if !any {
                break;
            }
        }
        let behind: Vec<SessionId> = self.behind.keys().copied().collect();
        for session in behind {
            let far = self.behind.get_mut(&session).unwrap();
            far.drive(now, world);
            let out = transmit(&mut far.server, now);
            let closes = far.server.poll_close() == Some(Close::Both) || far.breaks();
            self.server.stdout(session, out);
            if closes {
                self.behind.remove(&session);
                self.server.eof(session);
                self.server.close(session);
            }
        }
        authenticated
    }

    /// Whether the connection is to break.
    pub(crate) fn breaks(&self) -> bool {
        self.commands == Commands::Breaks && !self.sessions.is_empty()
    }

    /// Does what a client wants.
    fn obey(&mut self, now: Instant, event: Event, world: &mut World<'_>) {
        let server = &mut self.server;
        match event {
            Event::Exec { session, command } => {
                self.sessions.push(session);
                match self.commands {
                    Commands::Echo(status) => server.reply(session, command.clone(), status),
                    Commands::Print(count) => server.reply(session, vec![b'x'; count].into(), 0),
                    Commands::NoStatus => {
                        server.eof(session);
                        server.close(session);
                    }
                    Commands::UntilSecond if self.sessions.len() > 1 => {
                        killed(server, self.sessions[0], "KILL");
                        server.reply(session, Bytes::new(), 0);
                    }
                    Commands::Forever if self.sessions.len() > 1 => server.reply(session, Bytes::new(), 0),
                    Commands::UntilTerm | Commands::UntilSecond | Commands::Forever | Commands::Breaks => {}
                }
                world.commands.push(command);
            }
            Event::Signal { session, name } if self.commands == Commands::UntilTerm && name == "TERM" => {
                killed(server, session, "TERM");
            }
            Event::DirectTcpip { session, host, port } => {
                let address = SocketAddr::new(host.parse().unwrap(), port);
                world.forwarded.push(address);
                match world.behaviours.get(&address) {
                    None | Some(Behaviour::Dropping) => {}
                    Some(Behaviour::Refusing) => server.refuse(session, 2, "Connection refused"),
                    Some(Behaviour::Mute) => server.accept(session),
                    Some(Behaviour::Serving(config, plan, commands)) => {
                        server.accept(session);
                        let mut far = Self::new(Arc::clone(config), plan.clone(), *commands);
                        server.stdout(session, transmit(&mut far.server, now));
                        self.behind.insert(session, far);
                    }
                }
            }
            Event::Stdin { session, data } => {
                server.consume(session, data.len());
                if let Some(far) = self.behind.get_mut(&session) {
                    far.input.extend_from_slice(&data);
                }
            }
            Event::StdinEof { session } => {
                if let Some(far) = self.behind.get_mut(&session) {
                    let _ = far.server.handle_eof(now);
                }
            }
            Event::SessionClosed { session } => {
                self.behind.remove(&session);
            }
            _ => {}
        }
    }
}

fn killed(server: &mut Server, session: SessionId, signal: &str) {
    let exit = Exit::Signal {
        name: signal.to_owned(),
        core_dumped: false,
        message: String::new(),
    };
    server.exit(session, exit);
    server.eof(session);
    server.close(session);
}
