//! A relay between peers that are bytes: what it passes on, what it refuses, and what it says when somebody goes.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, and asks for what it is about"
)]

mod common;

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use common::unix_pair;
use mux_core::router::Place;
use mux_core::{Driver, Event, Key, Relay};
use mux_proto::Connection;
use mux_proto::body::{Goodbye, GoodbyeCode, Hello, Log, Reset, ResetCode, Route};
use mux_proto::connection::{self, Config, FlowId, INITIAL_CREDIT, Role};
use mux_proto::frame::{Frame, Header, Kind, MAGIC, MAX_BODY, NodeId};

/// A loop that has not got there after this long never will. Long, because the machine may be busy.
const STUCK: Duration = Duration::from_secs(20);

const RELAY: NodeId = NodeId(10);
/// Above: a parent, or two clients.
const ONE: NodeId = NodeId(1);
const TWO: NodeId = NodeId(2);
/// Below.
const LEFT: NodeId = NodeId(20);
const RIGHT: NodeId = NodeId(30);

/// A neighbour that says whatever a test wants it to.
struct Peer {
    node: NodeId,
    link: Key,
    /// `None` once it is gone.
    socket: Option<UnixStream>,
    input: BytesMut,
    frames: Vec<Frame>,
    is_reading: bool,
    /// The relay has closed the link.
    saw_end: bool,
}

impl Peer {
    fn say(&mut self, bytes: &[u8]) {
        let socket = self.socket.as_mut().expect("it is there");
        socket.set_nonblocking(false).expect("a socket");
        socket.write_all(bytes).expect("the relay reads");
    }

    fn send(&mut self, frame: &Frame) {
        self.say(&frame.header.encode());
        self.say(&frame.body);
    }

    fn read(&mut self) {
        let Some(socket) = self.socket.as_mut().filter(|_| self.is_reading) else {
            return;
        };
        socket.set_nonblocking(true).expect("a socket");
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match socket.read(&mut buffer) {
                Ok(0) => self.saw_end = true,
                Ok(len) => {
                    self.input.extend_from_slice(&buffer[..len]);
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => self.saw_end = true,
            }
            break;
        }
        while let Some(frame) = Frame::take(&mut self.input).expect("the relay speaks well") {
            self.frames.push(frame);
        }
    }

    /// Bytes of this flow that have come.
    fn bytes_of(&self, flow: FlowId) -> usize {
        let data = self.of(flow).filter(|frame| frame.header.kind == Kind::Data);
        data.map(|frame| frame.body.len()).sum()
    }

    fn of(&self, flow: FlowId) -> impl Iterator<Item = &Frame> {
        self.frames
            .iter()
            .filter(move |frame| FlowId::of(&frame.header) == flow)
    }

    /// The reset of this flow, if it has come.
    fn reset_of(&self, flow: FlowId) -> Option<Reset> {
        let frame = self.of(flow).find(|frame| frame.header.kind == Kind::Reset)?;
        Some(Reset::decode(&frame.body).expect("the relay speaks well"))
    }

    fn kinds_of(&self, flow: FlowId) -> Vec<Kind> {
        self.of(flow).map(|frame| frame.header.kind).collect()
    }

    fn link_frame(&self, kind: Kind) -> Option<&Frame> {
        self.frames.iter().find(|frame| frame.header.kind == kind)
    }

    fn lost(&self) -> Option<Route> {
        let routes = self
            .frames
            .iter()
            .filter(|frame| frame.header.kind == Kind::Route);
        let mut routes = routes.map(|frame| Route::decode(&frame.body).expect("the relay speaks well"));
        routes.find(|route| !route.lost.is_empty())
    }
}

/// A relay with neighbours.
struct Scene {
    driver: Driver<Connection>,
    relay: Relay,
    peers: Vec<Peer>,
    /// What was not the relay's.
    events: Vec<(Key, connection::Event)>,
}

impl Scene {
    /// With a parent, and the children left and right.
    fn new() -> Self {
        Self::with(&[(Place::Parent, ONE), (Place::Child, LEFT), (Place::Child, RIGHT)])
    }

    /// A hub with two clients.
    fn hub() -> Self {
        Self::with(&[(Place::Client, ONE), (Place::Client, TWO), (Place::Child, LEFT)])
    }

    fn with(neighbours: &[(Place, NodeId)]) -> Self {
        let mut scene = Self {
            driver: Driver::new().expect("descriptors are left"),
            relay: Relay::new(RELAY),
            peers: Vec::new(),
            events: Vec::new(),
        };
        for &(place, node) in neighbours {
            scene.add(place, node);
        }
        scene.until(|scene| {
            let is_greeted = |peer: &Peer| peer.link_frame(Kind::Hello).is_some();
            let known = scene.relay.router().known().count();
            let children = neighbours.iter().filter(|(place, _)| *place == Place::Child);
            scene.peers.iter().all(is_greeted) && known == children.count()
        });
        scene
    }

    fn add(&mut self, place: Place, node: NodeId) {
        let role = if place == Place::Child {
            Role::Above
        } else {
            Role::Below
        };
        let config = Config {
            names: Some((RELAY, node)),
            relays: true,
            ..Config::new(role)
        };
        let (stream, socket) = unix_pair();
        let connection = Connection::new(Instant::now(), config);
        let link = self.driver.add(stream, connection).expect("a socket");
        self.relay
            .add(&mut self.driver, link, place, node)
            .expect("it is free");
        let mut peer = Peer {
            node,
            link,
            socket: Some(socket),
            input: BytesMut::new(),
            frames: Vec::new(),
            is_reading: true,
            saw_end: false,
        };
        let hello = Hello {
            software: "test".to_owned(),
            platform: String::new(),
            is_above: place != Place::Child,
            channels: 1024,
            node: None,
            peer: None,
        };
        peer.send(&Frame::new(Header::link(Kind::Hello, 0), hello.encode()));
        self.peers.push(peer);
    }

    fn peer(&mut self, node: NodeId) -> &mut Peer {
        self.peers
            .iter_mut()
            .find(|peer| peer.node == node)
            .expect("it was added")
    }

    fn send(&mut self, from: NodeId, frame: &Frame) {
        self.peer(from).send(frame);
    }

    fn turn(&mut self) {
        self.driver.turn(Some(Duration::from_millis(1))).expect("a turn");
        while let Some(event) = self.driver.poll_event() {
            match event {
                Event::Protocol(key, event) => {
                    let event = self.relay.handle(&mut self.driver, key, event);
                    self.events.extend(event.map(|event| (key, event)));
                }
                Event::Closed(key, _, result) => {
                    let reason = result
                        .err()
                        .map_or("closed".to_owned(), |error| error.to_string());
                    self.relay.lose(&mut self.driver, key, &reason);
                }
                other => panic!("{other:?}"),
            }
        }
        self.peers.iter_mut().for_each(Peer::read);
    }

    fn until(&mut self, is_true: impl Fn(&mut Self) -> bool) {
        let start = Instant::now();
        while !is_true(self) {
            assert!(start.elapsed() < STUCK, "it never came true");
            self.turn();
        }
    }

    /// Opens a channel from one node to another, and waits until it has got there.
    fn open(&mut self, from: NodeId, to: NodeId, number: u32) -> FlowId {
        let flow = flow(from, to, number);
        self.send(from, &flow.frame(Kind::Open, 0, Bytes::from_static(b"anything")));
        self.until(|scene| scene.peer(to).of(flow).next().is_some());
        flow
    }

    /// A channel on which a byte goes down and one comes up: whatever else was sent before, by these two, has been seen.
    fn check_passes(&mut self, from: NodeId, to: NodeId, number: u32) {
        let down = self.open(from, to, number);
        self.send(from, &data(down, 1));
        // A result would overtake it.
        self.until(|scene| scene.peer(to).bytes_of(down) == 1);
        let up = down.reversed();
        self.send(to, &data(up, 1));
        self.send(to, &up.frame(Kind::Result, 0, Bytes::from_static(b"\xa0")));
        self.until(|scene| scene.peer(from).kinds_of(up) == [Kind::Data, Kind::Result]);
    }

    fn connection(&mut self, node: NodeId) -> &mut Connection {
        let link = self.peer(node).link;
        self.driver.protocol(link).expect("the link lives")
    }

    /// The peer goes.
    fn leave(&mut self, node: NodeId) {
        self.peer(node).socket = None;
    }
}

fn flow(source: NodeId, destination: NodeId, number: u32) -> FlowId {
    FlowId {
        destination,
        source,
        number,
    }
}

fn data(flow: FlowId, len: usize) -> Frame {
    flow.frame(Kind::Data, 0, Bytes::from(vec![7; len]))
}

fn credit(flow: FlowId, more: u32) -> Frame {
    flow.frame(Kind::Credit, 0, Bytes::copy_from_slice(&more.to_be_bytes()))
}

fn link_frame(kind: Kind, body: Bytes) -> Frame {
    Frame::new(Header::link(kind, 0), body)
}

#[test]
fn a_channel_passes_in_both_directions_and_leaves_nothing_behind() {
    let mut scene = Scene::new();
    for number in 1..50 {
        let to = if number % 2 == 0 { LEFT } else { RIGHT };
        scene.check_passes(ONE, to, number);
    }
    assert_eq!(scene.relay.router().passages(), 0);
    for node in [ONE, LEFT, RIGHT] {
        assert_eq!(scene.connection(node).flows(), 0, "{node}");
        assert_eq!(scene.connection(node).refused(), 0, "{node}");
    }
}

#[test]
fn those_above_learn_what_can_be_reached() {
    let mut scene = Scene::new();
    let added = Route {
        added: vec![NodeId(21)],
        ..Route::default()
    };
    scene.send(LEFT, &link_frame(Kind::Route, added.encode()));
    let is_known = |scene: &mut Scene, node| {
        let routes = scene.peer(ONE).frames.iter();
        routes
            .filter(|frame| frame.header.kind == Kind::Route)
            .any(|frame| Route::decode(&frame.body).is_ok_and(|route| route.added.contains(&node)))
    };
    for node in [LEFT, RIGHT, NodeId(21)] {
        scene.until(|scene| is_known(scene, node));
    }
    let down = flow(ONE, NodeId(21), 1);
    scene.send(ONE, &down.frame(Kind::Open, 0, Bytes::from_static(b"anything")));
    scene.until(|scene| scene.peer(LEFT).of(down).next().is_some());
}

#[test]
fn words_go_up_to_the_parent() {
    let mut scene = Scene::new();
    let log = Log {
        severity: 4,
        text: "disk full".to_owned(),
    };
    scene.send(LEFT, &link_frame(Kind::Log, log.encode()));
    scene.until(|scene| scene.peer(ONE).link_frame(Kind::Log).is_some());
}

#[test]
fn a_forged_source_is_answered_counted_and_costs_nobody_else_anything() {
    let mut scene = Scene::new();
    let down = scene.open(ONE, LEFT, 1);
    let up = down.reversed();
    let forged = FlowId { source: RIGHT, ..up };
    scene.send(LEFT, &data(forged, 10));
    scene.until(|scene| scene.peer(LEFT).reset_of(forged.reversed()).is_some());
    let answer = scene.peer(LEFT).reset_of(forged.reversed());
    assert_eq!(answer, Some(Reset::new(ResetCode::Forged)));
    assert_eq!(scene.connection(LEFT).refused(), 1);
    scene.send(LEFT, &data(up, 10));
    scene.until(|scene| scene.peer(ONE).bytes_of(up) == 10);
    assert_eq!(scene.peer(ONE).of(forged).count(), 0);
}

#[test]
fn siblings_and_openings_from_below_are_answered() {
    let mut scene = Scene::new();
    for to in [RIGHT, ONE] {
        let down = flow(LEFT, to, 1);
        scene.send(LEFT, &down.frame(Kind::Open, 0, Bytes::from_static(b"anything")));
        scene.until(|scene| scene.peer(LEFT).reset_of(down.reversed()).is_some());
        let answer = scene.peer(LEFT).reset_of(down.reversed()).expect("it came");
        assert_eq!(answer.code, ResetCode::NotAllowed);
        assert_eq!(scene.peer(to).of(down).count(), 0);
    }
}

#[test]
fn more_than_the_credit_costs_the_channel_at_both_ends() {
    let mut scene = Scene::new();
    let down = scene.open(ONE, LEFT, 1);
    for _ in 0..3 {
        scene.send(ONE, &data(down, MAX_BODY));
    }
    scene.until(|scene| {
        let back = scene.peer(ONE).reset_of(down.reversed());
        back.is_some() && scene.peer(LEFT).reset_of(down).is_some()
    });
    let expected = Some(Reset::new(ResetCode::CreditExceeded));
    assert_eq!(scene.peer(ONE).reset_of(down.reversed()), expected);
    assert_eq!(scene.peer(LEFT).reset_of(down), expected);
    scene.check_passes(ONE, LEFT, 2);
}

/// The left child does `last`, after which its link is over; the parent hears why, on the channel and as a route.
fn check_child_ends(last: impl FnOnce(&mut Peer), why: &str) -> Scene {
    let mut scene = Scene::new();
    let up = scene.open(ONE, LEFT, 1).reversed();
    last(scene.peer(LEFT));
    scene.until(|scene| scene.peer(ONE).lost().is_some());
    let reset = scene.peer(ONE).reset_of(up).expect("it comes before the route");
    assert_eq!(reset.code, ResetCode::Gone);
    assert!(reset.text.contains(why), "{} has no {why}", reset.text);
    let route = scene.peer(ONE).lost().expect("it came");
    assert_eq!(route.lost, [LEFT]);
    assert!(route.reason.contains(why), "{}", route.reason);
    // Nobody comes back, and the other child lives.
    let late = flow(ONE, LEFT, 2);
    scene.send(ONE, &late.frame(Kind::Open, 0, Bytes::from_static(b"anything")));
    scene.until(|scene| scene.peer(ONE).reset_of(late.reversed()).is_some());
    let answer = scene.peer(ONE).reset_of(late.reversed()).expect("it came");
    assert_eq!(answer.code, ResetCode::Gone);
    scene.check_passes(ONE, RIGHT, 3);
    assert_eq!(scene.relay.router().passages(), 0);
    scene
}

fn says_goodbye(scene: &mut Scene, code: GoodbyeCode) {
    scene.until(|scene| scene.peer(LEFT).saw_end);
    let goodbye = scene
        .peer(LEFT)
        .link_frame(Kind::Goodbye)
        .expect("it was told why");
    assert_eq!(
        Goodbye::decode(&goodbye.body).map(|goodbye| goodbye.code),
        Ok(code)
    );
}

#[test]
fn half_a_frame_is_said_to_those_who_waited_for_the_rest() {
    check_child_ends(
        |child| {
            child.say(&data(flow(LEFT, ONE, 1), 100).header.encode()[..13]);
            child.socket = None;
        },
        "ends within a frame",
    );
    check_child_ends(
        |child| {
            child.say(&data(flow(LEFT, ONE, 1), 100).header.encode());
            child.say(b"half of the body");
            child.socket = None;
        },
        "ends within a frame",
    );
}

#[test]
fn a_wrong_magic_is_shown_escaped_to_those_above() {
    let mut scene = check_child_ends(
        |child| child.say(b"\x1b[31mLast login: Mon\n"),
        r#""\x1b[31mLast login: Mon\n""#,
    );
    scene.until(|scene| scene.peer(LEFT).saw_end);
    assert!(
        scene.peer(LEFT).link_frame(Kind::Goodbye).is_none(),
        "it is no peer"
    );
}

#[test]
fn an_oversize_frame_is_refused_before_its_body() {
    let mut scene = check_child_ends(
        |child| {
            let mut header = data(flow(LEFT, ONE, 1), 100).header.encode();
            header[6..8].copy_from_slice(&u16::try_from(MAX_BODY + 1).expect("it fits").to_be_bytes());
            child.say(&header);
        },
        "Data with 32769 bytes",
    );
    says_goodbye(&mut scene, GoodbyeCode::Violation);
}

#[test]
fn a_route_that_takes_somebody_elses_number_ends_the_link() {
    for taken in [RIGHT, ONE, RELAY] {
        let mut scene = check_child_ends(
            |child| {
                let added = Route {
                    added: vec![taken],
                    ..Route::default()
                };
                child.send(&link_frame(Kind::Route, added.encode()));
            },
            "route",
        );
        says_goodbye(&mut scene, GoodbyeCode::Violation);
    }
}

#[test]
fn a_farewell_tells_its_reason() {
    let goodbye = Goodbye {
        code: GoodbyeCode::Idle,
        text: "nothing to do".to_owned(),
    };
    check_child_ends(
        |child| child.send(&link_frame(Kind::Goodbye, goodbye.encode())),
        "nothing to do",
    );
}

#[test]
fn what_a_child_sent_before_it_went_arrives() {
    let mut scene = Scene::new();
    let done = scene.open(ONE, LEFT, 1).reversed();
    let half = scene.open(ONE, LEFT, 2).reversed();
    scene.peer(ONE).is_reading = false;
    let left = scene.peer(LEFT);
    for flow in [done, half] {
        left.send(&data(flow, MAX_BODY));
        left.send(&data(flow, MAX_BODY));
    }
    left.send(&done.frame(Kind::Result, 0, Bytes::from_static(b"\xa0")));
    left.socket = None;
    scene.until(|scene| scene.relay.router().known().count() == 1);
    scene.peer(ONE).is_reading = true;
    scene.until(|scene| scene.peer(ONE).lost().is_some());
    assert_eq!(scene.peer(ONE).bytes_of(done), 2 * MAX_BODY);
    assert_eq!(scene.peer(ONE).kinds_of(done).last(), Some(&Kind::Result));
    assert_eq!(scene.peer(ONE).bytes_of(half), 2 * MAX_BODY);
    let reset = scene.peer(ONE).reset_of(half).expect("it was not over");
    assert_eq!(reset.code, ResetCode::Gone);
    let place = |kind| {
        scene.peers[0]
            .frames
            .iter()
            .rposition(|frame| frame.header.kind == kind)
    };
    assert!(
        place(Kind::Route) > place(Kind::Data),
        "its loss is said behind it"
    );
}

#[test]
fn a_client_that_goes_takes_its_own_channels_along() {
    let mut scene = Scene::hub();
    let gone = scene.open(ONE, LEFT, 1);
    let kept = scene.open(TWO, LEFT, 1);
    scene.send(ONE, &data(gone, MAX_BODY));
    scene.leave(ONE);
    scene.until(|scene| scene.peer(LEFT).reset_of(gone).is_some());
    let reset = scene.peer(LEFT).reset_of(gone).expect("it came");
    assert_eq!(reset.code, ResetCode::Gone);
    assert!(reset.text.contains("without a goodbye"), "{}", reset.text);
    scene.send(LEFT, &data(kept.reversed(), 5));
    scene.until(|scene| scene.peer(TWO).bytes_of(kept.reversed()) == 5);
    assert!(scene.peer(LEFT).reset_of(kept).is_none());
    assert_eq!(scene.relay.router().passages(), 1);
}

#[test]
fn a_client_is_told_of_nodes_that_were_there_before_it() {
    let mut scene = Scene::hub();
    scene.add(Place::Client, NodeId(3));
    scene.until(|scene| scene.peer(NodeId(3)).link_frame(Kind::Route).is_some());
    let route = scene
        .peer(NodeId(3))
        .link_frame(Kind::Route)
        .map(|frame| Route::decode(&frame.body).expect("the relay speaks well"));
    assert_eq!(route.map(|route| route.added), Some(vec![LEFT]));
}

#[test]
fn a_child_that_reads_nothing_holds_its_own_windows_and_nobody_up() {
    let mut scene = Scene::new();
    scene.peer(LEFT).is_reading = false;
    let window = INITIAL_CREDIT as usize;
    let channels = 1..=100;
    for number in channels.clone() {
        let down = flow(ONE, LEFT, number);
        scene.send(ONE, &down.frame(Kind::Open, 0, Bytes::from_static(b"anything")));
        for _ in 0..2 {
            scene.send(ONE, &data(down, MAX_BODY));
            scene.turn();
        }
    }
    scene.check_passes(ONE, RIGHT, 1000);
    // Its death frees all of it.
    assert!(scene.connection(LEFT).flows() >= 90);
    scene.leave(LEFT);
    scene.until(|scene| scene.peer(ONE).lost().is_some());
    for number in channels {
        let up = flow(LEFT, ONE, number);
        assert!(scene.peer(ONE).reset_of(up).is_some());
    }
    assert_eq!(scene.relay.router().passages(), 0);
    // A transfer of many windows through the same link.
    let down = scene.open(ONE, RIGHT, 1001);
    for sent in 1..=50 {
        scene.send(ONE, &data(down, MAX_BODY));
        scene.until(|scene| scene.peer(RIGHT).bytes_of(down) == sent * MAX_BODY);
        scene.send(
            RIGHT,
            &credit(down.reversed(), u32::try_from(MAX_BODY).expect("it is small")),
        );
        scene.until(|scene| scene.peer(ONE).kinds_of(down.reversed()).len() == sent);
    }
    assert!(50 * MAX_BODY > 20 * window);
}

#[test]
fn data_of_one_channel_does_not_hold_up_another() {
    let mut scene = Scene::new();
    let bulk = scene.open(ONE, LEFT, 1).reversed();
    let other = scene.open(ONE, LEFT, 2).reversed();
    scene.send(ONE, &credit(bulk.reversed(), 8 * 1024 * 1024));
    scene.until(|scene| {
        scene.connection(LEFT).refused() == 0 && scene.peer(LEFT).kinds_of(bulk.reversed()).len() == 2
    });
    scene.peer(ONE).is_reading = false;
    for _ in 0..64 {
        scene.send(LEFT, &data(bulk, MAX_BODY));
        scene.turn();
    }
    scene.send(LEFT, &data(other, 10));
    scene.turn();
    scene.peer(ONE).is_reading = true;
    scene.until(|scene| scene.peer(ONE).bytes_of(bulk) == 64 * MAX_BODY);
    let frames = &scene.peer(ONE).frames;
    let small = frames
        .iter()
        .position(|frame| FlowId::of(&frame.header) == other)
        .expect("it came");
    let behind = frames[small..]
        .iter()
        .filter(|frame| FlowId::of(&frame.header) == bulk);
    assert!(behind.count() > 40, "it overtook what waited");
}

/// A small generator: the same seed gives the same bytes on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        u32::try_from(self.0 >> 33).expect("31 bits")
    }

    /// A frame with a header that may be and hardly fits: the rest is chance.
    fn frame(&mut self) -> Frame {
        let kinds = [
            Kind::Open,
            Kind::Data,
            Kind::Credit,
            Kind::Finish,
            Kind::Result,
            Kind::Reset,
        ];
        let nodes = [0, 1, 10, 20, 21, 30, 77];
        let mut pick = |of: usize| self.next() as usize % of;
        let kind = kinds[pick(kinds.len())];
        let flow = FlowId {
            destination: NodeId(nodes[pick(nodes.len())]),
            source: NodeId(nodes[pick(nodes.len())]),
            number: u32::try_from(pick(6)).expect("it is small"),
        };
        let len = match kind {
            Kind::Credit => 4,
            Kind::Finish => 0,
            _ => 1 + pick(300),
        };
        let body: Vec<u8> = (0..len).map(|_| self.next().to_be_bytes()[3]).collect();
        flow.frame(kind, 0, body.into())
    }
}

#[test]
fn random_frames_of_everybody_at_once_break_nothing() {
    for seed in 1..6 {
        let mut random = Random(seed);
        let mut scene = Scene::new();
        for _ in 0..1500 {
            let from = [ONE, LEFT, RIGHT][random.next() as usize % 3];
            let frame = random.frame();
            scene.send(from, &frame);
            scene.turn();
        }
        let alive = |scene: &mut Scene, node| !scene.peer(node).saw_end;
        assert!(alive(&mut scene, ONE) && alive(&mut scene, LEFT) && alive(&mut scene, RIGHT));
        scene.check_passes(ONE, RIGHT, 1000);
        scene.check_passes(ONE, LEFT, 1001);
    }
}

#[test]
fn random_bytes_end_the_link_that_they_come_on_and_no_other() {
    for seed in 1..30 {
        let mut random = Random(seed);
        let mut bytes: Vec<u8> = (0..random.next() % 200)
            .map(|_| random.next().to_be_bytes()[3])
            .collect();
        // Half of them look like a frame for a while.
        if seed % 2 == 0 {
            bytes.splice(..0, MAGIC.into_iter().chain([1, 0xff]));
        }
        bytes.push(0);
        check_child_ends(
            |child| {
                child.say(&bytes);
                child.socket = None;
            },
            "",
        );
    }
}
