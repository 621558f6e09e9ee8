//! Connections through a server (RFC 4254 §7.2), and a second client inside one: what a jump host, or what lies behind it,
//! does wrong.

use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use mux_proto::Protocol;
use mux_ssh::client::{
    ChannelFailure, ChannelId, ChannelViolation, Client, ClientConfig, DirectTcpip, Event, Exec, Identity,
    StreamKind,
};
use mux_ssh::server::{self, Act, Authorized, Moment, Plan, Point, Server, ServerConfig, SessionId};
use mux_ssh::{Error, Violation, message};

use super::Run::Alone;
use super::harness::{HOST, USER, drop_ref, feed, payload, transmit};
use super::table_rows;

/// What becomes of the request for a connection.
#[derive(Clone, Copy)]
enum Opens {
    Accepts,
    Refuses(u32),
    Never,
}

/// A client, its server, and another client with a server of its own inside a channel of theirs.
struct Chain {
    now: Instant,
    outer: Client,
    gate: Server,
    inner: Option<Client>,
    target: Server,
    opens: Opens,
    channel: ChannelId,
    session: Option<SessionId>,
    to_outer: BytesMut,
    to_gate: BytesMut,
    to_inner: BytesMut,
    to_target: BytesMut,
    /// The channel carries this many bytes to the inner client and then ends.
    cut: usize,
    carried: usize,
    outer_events: Vec<Event>,
    inner_events: Vec<Event>,
    outer_error: Option<Error>,
    inner_error: Option<Error>,
    takes: bool,
}

fn config() -> ClientConfig {
    ClientConfig {
        user: "u".to_owned(),
        identities: vec![Identity {
            key: USER.public().clone(),
            certificate: None,
            proven: true,
            hardware: false,
        }],
        ..ClientConfig::default()
    }
}

fn server(plan: Plan) -> Server {
    let mut config = ServerConfig::new(
        HOST.host_key().unwrap(),
        Authorized::Keys(vec![USER.public().clone()]),
    );
    config.forwards = true;
    Server::new(Arc::new(config), plan)
}

impl Chain {
    fn new(gate: Plan, target: Plan) -> Self {
        let now = Instant::now();
        let mut outer = Client::new(config());
        let channel = outer.direct_tcpip(
            now,
            DirectTcpip {
                host: "target".to_owned(),
                port: 22,
            },
        );
        Self {
            now,
            outer,
            gate: server(gate),
            inner: None,
            target: server(target),
            opens: Opens::Accepts,
            channel,
            session: None,
            to_outer: BytesMut::new(),
            to_gate: BytesMut::new(),
            to_inner: BytesMut::new(),
            to_target: BytesMut::new(),
            cut: usize::MAX,
            carried: 0,
            outer_events: Vec::new(),
            inner_events: Vec::new(),
            outer_error: None,
            inner_error: None,
            takes: true,
        }
    }

    /// Runs until nothing moves any more.
    fn run(mut self) -> Self {
        for _ in 0..10_000 {
            let moved = self.outer_turn() | self.gate_turn() | self.inner_turn() | self.target_turn();
            if !moved {
                return self;
            }
        }
        panic!("they never come to rest")
    }

    fn outer_turn(&mut self) -> bool {
        let mut moved = read(
            &mut self.outer,
            self.now,
            &mut self.to_outer,
            &mut self.outer_error,
        );
        while let Some(event) = self.outer.poll_event() {
            moved = true;
            answer(&mut self.outer, &event);
            self.carry(&event);
            self.outer_events.push(event);
        }
        let out = transmit(&mut self.outer, self.now);
        self.to_gate.extend_from_slice(&out);
        moved | !out.is_empty()
    }

    /// What the owner of both clients does.
    fn carry(&mut self, event: &Event) {
        match event {
            Event::Opened { channel } if *channel == self.channel => {
                let mut inner = Client::new(config());
                inner.exec(
                    self.now,
                    Exec {
                        command: Bytes::from_static(b"say hello"),
                        ..Exec::default()
                    },
                );
                self.inner = Some(inner);
            }
            Event::Output { channel, data, .. } if *channel == self.channel => {
                let room = self.cut.saturating_sub(self.carried).min(data.len());
                self.carried += room;
                self.to_inner.extend_from_slice(&data[..room]);
                if self.takes {
                    self.outer.consume(*channel, StreamKind::Stdout, data.len());
                }
                if room < data.len() {
                    self.inner_ends();
                }
            }
            Event::Eof { channel } | Event::ChannelClosed { channel } if *channel == self.channel => {
                self.inner_ends();
            }
            Event::ChannelFailed { channel, .. } if *channel == self.channel => self.inner_ends(),
            _ => {}
        }
    }

    fn inner_ends(&mut self) {
        self.inner_turn();
        if let Some(inner) = &mut self.inner
            && self.inner_error.is_none()
        {
            self.inner_error = inner.handle_eof(self.now).err();
            self.inner_turn();
        }
    }

    fn gate_turn(&mut self) -> bool {
        let mut moved = !self.to_gate.is_empty();
        let _ = feed(&mut self.gate, self.now, &mut self.to_gate);
        while let Some(event) = self.gate.poll_event() {
            moved = true;
            match event {
                server::Event::DirectTcpip { session, host, port } => {
                    assert_eq!((host.as_str(), port), ("target", 22));
                    match self.opens {
                        Opens::Accepts => {
                            self.gate.accept(session);
                            self.session = Some(session);
                        }
                        Opens::Refuses(code) => self.gate.refuse(session, code, "\u{1b}[31mno"),
                        Opens::Never => {}
                    }
                }
                server::Event::Stdin { session, data } => {
                    self.gate.consume(session, data.len());
                    self.to_target.extend_from_slice(&data);
                }
                _ => {}
            }
        }
        let out = transmit(&mut self.gate, self.now);
        self.to_outer.extend_from_slice(&out);
        moved | !out.is_empty()
    }

    fn inner_turn(&mut self) -> bool {
        let Some(inner) = &mut self.inner else {
            return false;
        };
        let mut moved = read(inner, self.now, &mut self.to_inner, &mut self.inner_error);
        while let Some(event) = inner.poll_event() {
            moved = true;
            answer(inner, &event);
            self.inner_events.push(event);
        }
        let out = transmit(inner, self.now);
        moved |= !out.is_empty();
        // A channel that is gone takes nothing.
        let _ = self.outer.write_stdin(self.channel, out.freeze());
        moved
    }

    fn target_turn(&mut self) -> bool {
        let mut moved = !self.to_target.is_empty();
        let _ = feed(&mut self.target, self.now, &mut self.to_target);
        while let Some(event) = self.target.poll_event() {
            moved = true;
            if let server::Event::Exec { session, .. } = event {
                self.target.reply(session, Bytes::from_static(b"hello\n"), 0);
            }
        }
        if let Some(session) = self.session {
            let out = transmit(&mut self.target, self.now).freeze();
            moved |= !out.is_empty();
            self.gate.stdout(session, out);
            if self.target.poll_close().is_some() {
                self.gate.eof(session);
                self.gate.close(session);
                self.session = None;
            }
        }
        moved
    }

    fn said_hello(&self) -> bool {
        let said = |event: &Event| matches!(event, Event::Output { data, .. } if &data[..] == b"hello\n");
        self.inner_events.iter().any(said)
    }

    /// How the request for the connection ended.
    fn failure(&self) -> Option<&ChannelFailure> {
        self.outer_events.iter().find_map(|event| match event {
            Event::ChannelFailed {
                channel,
                reason,
                may_have_run,
            } if *channel == self.channel => {
                assert!(!may_have_run, "nothing ran");
                Some(reason)
            }
            _ => None,
        })
    }

    /// The inner client got its one command's end, and whether that may have run.
    fn inner_may_have_run(&self) -> bool {
        let ends: Vec<bool> = self
            .inner_events
            .iter()
            .filter_map(|event| match event {
                Event::ChannelFailed { may_have_run, .. } => Some(*may_have_run),
                _ => None,
            })
            .collect();
        assert_eq!(ends.len(), 1, "{:?}", self.inner_events);
        ends[0]
    }
}

/// Gives a client what has arrived; what it does not take before it is answered waits.
fn read(client: &mut Client, now: Instant, input: &mut BytesMut, error: &mut Option<Error>) -> bool {
    let before = input.len();
    if error.is_none() {
        *error = feed(client, now, input).err();
    }
    if error.is_some() {
        input.clear();
    }
    input.len() != before
}

fn answer(client: &mut Client, event: &Event) {
    match event {
        Event::HostKey { id, .. } => client.answer_host_key(*id, true),
        Event::Sign {
            id, algorithm, data, ..
        } => client.answer_signature(*id, USER.sign(*algorithm, data).ok()),
        _ => {}
    }
}

fn gate(point: Point, act: Act) -> Chain {
    Chain::new(Plan::new().with(point, act), Plan::new())
}

fn target(point: Point, act: Act) -> Chain {
    Chain::new(Plan::new(), Plan::new().with(point, act))
}

fn data(len: usize) -> Bytes {
    payload(|w| drop_ref(w.byte(message::CHANNEL_DATA).uint32(0).string(vec![b'x'; len])))
}

table_rows! { Connection:

a_client_inside_a_channel_works, Harmless, "a good jump host before a good target" =>
    Alone(|| {
        let chain = Chain::new(Plan::new(), Plan::new()).run();
        assert!(chain.said_hello());
        assert_eq!((chain.outer_error, chain.inner_error), (None, None));
    });
a_connection_refused_for_every_reason, Type, "reasons 1 to 4, and two that nobody knows, with escapes in the words" =>
    Alone(|| {
        for code in [1, 2, 3, 4, 0, u32::MAX] {
            let mut chain = Chain::new(Plan::new(), Plan::new());
            chain.opens = Opens::Refuses(code);
            let chain = chain.run();
            let text = "\u{1b}[31mno".to_owned();
            assert_eq!(chain.failure(), Some(&ChannelFailure::Refused { code, text }));
            // Others may still be asked for on the same connection.
            assert_eq!((chain.outer_error, chain.outer.session_limit()), (None, None));
        }
    });
a_connection_that_is_never_answered, Stall, "a request for a connection without an answer: its owner's deadline ends it" =>
    Alone(|| {
        let mut chain = Chain::new(Plan::new(), Plan::new());
        chain.opens = Opens::Never;
        let mut chain = chain.run();
        assert_eq!((chain.failure(), &chain.outer_error), (None, &None));
        let channel = chain.channel;
        chain.outer.close_channel(channel);
        let chain = chain.run();
        assert_eq!(chain.failure(), Some(&ChannelFailure::Cancelled));
    });
a_jump_host_that_sends_more_than_the_window, Length, "96 KiB through a connection whose window is 64" =>
    Alone(|| {
        let flood = Act::Flood { payload: data(32 * 1024), times: 3 };
        let mut chain = gate(Point::After(Moment::OpenConfirmation, 1), flood);
        chain.takes = false;
        let chain = chain.run();
        let beyond = Error::Violation(Violation::Channel(ChannelViolation::Window));
        assert_eq!(chain.outer_error, Some(beyond));
        // To the client inside it is noise, and then the end.
        assert!(chain.inner_error.is_some());
    });
a_jump_host_that_talks_before_the_connection_stands, Time, "data on a connection that was not confirmed" =>
    Alone(|| {
        let chain = gate(Point::Before(Moment::OpenConfirmation, 1), Act::Packet(data(1))).run();
        let unknown = Error::Violation(Violation::Channel(ChannelViolation::UnknownChannel));
        assert_eq!(chain.outer_error, Some(unknown));
        assert_eq!(chain.failure(), Some(&ChannelFailure::ConnectionLost));
    });
a_connection_with_a_second_stream, Type, "extended data on a connection, which has no standard error" =>
    Alone(|| {
        let extended = payload(|w| drop_ref(
            w.byte(message::CHANNEL_EXTENDED_DATA).uint32(0).uint32(1).string("x")));
        let chain = gate(Point::After(Moment::OpenConfirmation, 1), Act::Packet(extended)).run();
        let kind = Error::Violation(Violation::Channel(ChannelViolation::DataType(1)));
        assert_eq!(chain.outer_error, Some(kind));
    });
results_on_a_connection, Harmless, "an exit status and a request with a wish for an answer, on a connection" =>
    Alone(|| {
        let status = payload(|w| drop_ref(w.byte(message::CHANNEL_REQUEST).uint32(0).string("exit-status").boolean(false).uint32(1)));
        let asks = payload(|w| drop_ref(w.byte(message::CHANNEL_REQUEST).uint32(0).string("keepalive@openssh.com").boolean(true)));
        let plan = Plan::new()
            .with(Point::After(Moment::OpenConfirmation, 1), Act::Packet(status))
            .with(Point::After(Moment::OpenConfirmation, 1), Act::Packet(asks));
        let chain = Chain::new(plan, Plan::new()).run();
        assert!(chain.said_hello());
    });
a_connection_that_ends_at_every_byte_of_the_inner_handshake, Order, "EOF after each 37th byte of what the target says" =>
    Alone(|| {
        let whole = Chain::new(Plan::new(), Plan::new()).run().carried;
        for cut in (0..whole).step_by(37) {
            let mut chain = Chain::new(Plan::new(), Plan::new());
            chain.cut = cut;
            let chain = chain.run();
            assert!(chain.inner_error.is_some() || chain.said_hello(), "{cut} of {whole}");
            assert_eq!(chain.outer_error, None, "the jump host has done nothing wrong: {cut} of {whole}");
        }
    });
a_target_that_hangs_up_in_its_key_exchange, Time, "a target that closes behind its identification, its KEXINIT and its half of the exchange" =>
    Alone(|| {
        for moment in [Moment::Ident, Moment::KexInit, Moment::KexReply] {
            let chain = target(Point::After(moment, 1), Act::Close).run();
            assert_eq!(chain.inner_error, Some(Error::UnexpectedEof), "{moment:?}");
            // With the target's half of the exchange in hand the login leaves, and the command with it.
            assert_eq!(chain.inner_may_have_run(), moment == Moment::KexReply, "{moment:?}");
            assert_eq!(chain.outer_error, None);
        }
    });
a_jump_host_that_hangs_up_in_the_inner_key_exchange, Time, "a jump host that closes with the first bytes that it carries" =>
    Alone(|| {
        let chain = gate(Point::After(Moment::Output, 1), Act::Close).run();
        // The link tells the outer client, whose owner tells the one inside.
        let mut chain = chain;
        let _ = chain.outer.handle_eof(chain.now);
        let chain = chain.run();
        assert_eq!(chain.inner_error, Some(Error::UnexpectedEof));
        assert!(!chain.inner_may_have_run());
    });
a_jump_host_that_changes_what_it_carries, Forgery, "one bit of the target's half of the key exchange turned over on the way" =>
    Alone(|| {
        // The jump host is somebody in the middle like any other: what passes through it is proven inside.
        let mut chain = Chain::new(Plan::new(), Plan::new().with(
            Point::Before(Moment::KexReply, 1), Act::Patch { from_end: 0, mask: 1 }));
        chain.opens = Opens::Accepts;
        let chain = chain.run();
        assert!(matches!(chain.inner_error, Some(Error::Violation(_))), "{:?}", chain.inner_error);
        assert!(!chain.inner_may_have_run());
        assert_eq!(chain.outer_error, None);
    });
a_jump_host_that_closes_and_talks_on, Order, "data and EOF behind CLOSE of a connection" =>
    Alone(|| {
        let close = payload(|w| drop_ref(w.byte(message::CHANNEL_CLOSE).uint32(0)));
        let plan = Plan::new()
            .with(Point::After(Moment::OpenConfirmation, 1), Act::Packet(close))
            .with(Point::After(Moment::OpenConfirmation, 1), Act::Packet(data(1)));
        let chain = Chain::new(plan, Plan::new()).run();
        let unknown = Error::Violation(Violation::Channel(ChannelViolation::UnknownChannel));
        assert_eq!(chain.outer_error, Some(unknown));
        assert_eq!(chain.inner_error, Some(Error::UnexpectedEof));
    });
a_connection_that_was_asked_for_and_is_given_up, Order, "a confirmation that comes after nobody wants it any more" =>
    Alone(|| {
        let mut chain = Chain::new(Plan::new(), Plan::new());
        let channel = chain.channel;
        chain.outer.close_channel(channel);
        let chain = chain.run();
        assert_eq!(chain.failure(), Some(&ChannelFailure::Cancelled));
        assert!(chain.inner.is_none() && chain.outer_error.is_none());
    });
}
