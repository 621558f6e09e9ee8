//! Peers that break the protocol. What they do to a channel costs them that channel and is answered; what they do to the
//! link ends it.

use super::*;

/// A connection, and a peer that is bytes.
struct Victim {
    now: Instant,
    side: Side,
}

impl Victim {
    /// Greeted by a peer that knows how.
    fn new(role: Role) -> Self {
        let mut victim = Self::cold(role);
        victim.get(hello(role));
        victim.side.drain();
        victim.answers();
        victim
    }

    fn cold(role: Role) -> Self {
        let now = Instant::now();
        Self {
            now,
            side: Side::new(now, config(role)),
        }
    }

    fn get(&mut self, frame: Frame) {
        self.side.input.extend_from_slice(&frame.header.encode());
        self.side.input.extend_from_slice(&frame.body);
        self.side.take_in(self.now);
    }

    /// All frames that it sends.
    fn answers(&mut self) -> Vec<Frame> {
        let mut wire = BytesMut::new();
        loop {
            let some = self.side.put_out(self.now, usize::MAX);
            if some.is_empty() {
                break;
            }
            wire.extend_from_slice(&some);
        }
        std::iter::from_fn(|| Frame::take(&mut wire).expect("we made it")).collect()
    }
}

fn hello(victim: Role) -> Frame {
    let is_below = victim == Role::Below;
    let hello = Hello {
        software: String::new(),
        platform: String::new(),
        is_above: is_below,
        channels: 10,
        node: Some(NodeId(if is_below { 1 } else { 2 })),
        peer: Some(NodeId(if is_below { 2 } else { 1 })),
    };
    Frame::new(Header::link(Kind::Hello, 0), hello.encode())
}

fn on_channel(kind: Kind, source: u32, number: u32, body: impl Into<Bytes>) -> Frame {
    let header = Header {
        kind,
        source: NodeId(source),
        channel: number,
        ..Header::link(kind, 0)
    };
    Frame::new(header, body.into())
}

fn open_body() -> Bytes {
    let open = Open {
        kind: "echo".to_owned(),
        arguments: empty_map(),
    };
    open.encode().expect("it is well-formed")
}

fn open(number: u32) -> Frame {
    on_channel(Kind::Open, 0, number, open_body())
}

/// After `before`, `frame` is answered with a reset of this code, for whoever sent it; the link lives.
fn check_refused(role: Role, before: &[Frame], frame: Frame, code: ResetCode) {
    let mut victim = Victim::new(role);
    if role == Role::Above {
        for _ in before {
            let id = victim
                .side
                .connection
                .open(NodeId::NEIGHBOUR, "echo", empty_map());
            assert!(id.is_ok());
        }
    } else {
        before.iter().cloned().for_each(|frame| victim.get(frame));
    }
    victim.answers();
    let sent = frame.header;
    victim.get(frame);
    let answers = victim.answers();
    let [answer] = &answers[..] else {
        panic!("{code:?}: one answer, not {answers:?}");
    };
    assert_eq!(answer.header.kind, Kind::Reset, "{code:?}");
    assert_eq!(answer.header.destination, sent.source);
    assert_eq!(answer.header.source, sent.destination);
    assert_eq!(answer.header.channel, sent.channel);
    assert_eq!(Reset::decode(&answer.body).map(|reset| reset.code), Ok(code));
    assert_eq!(victim.side.connection.refused(), 1);
    assert_eq!(victim.side.result, Ok(()), "{code:?}: the link lives");
    victim.get(Frame::new(
        Header::link(Kind::Ping, 0),
        Bytes::from_static(b"12345678"),
    ));
    let still_there = victim.answers();
    assert!(
        matches!(&still_there[..], [frame] if frame.header.kind == Kind::Pong && frame.body == "12345678"),
        "{code:?}"
    );
}

#[test]
fn what_is_wrong_with_a_channel_is_answered_and_costs_no_other() {
    use ResetCode::*;
    let (above, below) = (Role::Above, Role::Below);
    let opened = [open(1)];
    let too_much = on_channel(Kind::Data, 0, 1, data(MAX_BODY));
    let after = [open(1), too_much.clone(), too_much];
    check_refused(
        below,
        &after,
        on_channel(Kind::Data, 0, 1, data(1)),
        CreditExceeded,
    );
    check_refused(
        below,
        &opened,
        on_channel(Kind::Credit, 0, 1, vec![0; 4]),
        BadCredit,
    );
    check_refused(
        below,
        &opened,
        on_channel(Kind::Credit, 0, 1, vec![255; 4]),
        BadCredit,
    );
    check_refused(
        below,
        &opened,
        on_channel(Kind::Result, 0, 1, empty_map()),
        NotAllowed,
    );
    check_refused(below, &opened, open(1), BadNumber);
    check_refused(below, &[], open(0), BadNumber);
    check_refused(below, &[], on_channel(Kind::Open, 0, 1, "what"), Malformed);
    check_refused(below, &[], on_channel(Kind::Data, 0, 1, "x"), UnknownChannel);
    check_refused(below, &opened, on_channel(Kind::Finish, 0, 2, ""), UnknownChannel);
    let end = on_channel(Kind::Finish, 0, 1, "");
    let ended = [open(1), end.clone()];
    check_refused(below, &ended, end, AfterFinish);
    check_refused(below, &ended, on_channel(Kind::Data, 0, 1, "x"), AfterFinish);
    check_refused(above, &opened, open(2), NotAllowed);
    check_refused(
        above,
        &opened,
        on_channel(Kind::Result, 0, 1, "\u{7f}"),
        Malformed,
    );
    check_refused(above, &opened, on_channel(Kind::Data, 0, 2, "x"), UnknownChannel);
    // Our own name, and one that was never announced.
    check_refused(below, &opened, on_channel(Kind::Data, 2, 1, "x"), Forged);
    check_refused(above, &opened, on_channel(Kind::Data, 99, 1, "x"), Forged);
    check_refused(
        above,
        &opened,
        on_channel(Kind::Result, 1, 1, empty_map()),
        Forged,
    );
    let mut elsewhere = open(1);
    elsewhere.header.destination = NodeId(77);
    check_refused(below, &[], elsewhere, NoRoute);
}

#[test]
fn too_many_channels_and_too_many_openers_are_refused() {
    let opened: Vec<Frame> = (1..=1024).map(open).collect();
    check_refused(Role::Below, &opened, open(1025), ResetCode::TooMany);
    let source = |source| on_channel(Kind::Open, source, 1, open_body());
    let opened: Vec<Frame> = (100..164).map(source).collect();
    check_refused(Role::Below, &opened, source(200), ResetCode::TooMany);
}

#[test]
fn openers_may_come_and_go_for_ever() {
    let mut victim = Victim::new(Role::Below);
    for source in 100..300 {
        victim.get(on_channel(Kind::Open, source, 1, open_body()));
        let reset = Reset::new(ResetCode::Cancelled).encode();
        victim.get(on_channel(Kind::Reset, source, 1, reset));
    }
    assert_eq!(victim.answers(), []);
    assert_eq!(victim.side.connection.refused(), 0);
}

#[test]
fn the_owner_learns_which_channel_a_violation_cost() {
    let mut victim = Victim::new(Role::Below);
    victim.get(open(1));
    victim.get(open(2));
    victim.side.drain();
    victim.get(on_channel(Kind::Credit, 0, 1, vec![255; 4]));
    let (node, number) = (NodeId::NEIGHBOUR, 1);
    assert_eq!(
        victim.side.drain(),
        [reset_with(ResetCode::BadCredit, ChannelId { node, number })]
    );
    assert_eq!(victim.side.connection.channels(), 1);
}

#[test]
fn a_reset_is_never_answered() {
    let mut victim = Victim::new(Role::Below);
    for source in [0, 2] {
        let reset = Reset::new(ResetCode::Cancelled).encode();
        victim.get(on_channel(Kind::Reset, source, 1, reset));
    }
    assert_eq!(victim.answers(), []);
    assert_eq!(victim.side.connection.refused(), 2);
    victim.get(open(1));
    victim.side.drain();
    victim.get(on_channel(Kind::Reset, 0, 1, "no map"));
    assert!(
        matches!(&victim.side.drain()[..], [Event::Reset(_, reset)] if reset.code == ResetCode::Malformed)
    );
    assert_eq!(victim.answers(), []);
}

/// `frames` end the link with this error, which stays, and is said in a goodbye.
fn check_violation(mut victim: Victim, frames: Vec<Frame>, expected: Violation) {
    let open = victim.side.connection.channels();
    frames.into_iter().for_each(|frame| victim.get(frame));
    let expected = Err(Error::Violation(expected));
    assert_eq!(victim.side.result, expected);
    let mut more = BytesMut::from("more");
    assert_eq!(
        victim.side.connection.handle_input(victim.now, &mut more),
        expected,
        "sticky"
    );
    assert_eq!(more, "more");
    assert_eq!(victim.side.connection.poll_close(), Some(Close::Both));
    let answers = victim.answers();
    let goodbye = answers.last().expect("a goodbye");
    let goodbye = Goodbye::decode(&goodbye.body).expect("it is well-formed");
    assert_eq!(goodbye.code, GoodbyeCode::Violation);
    let events = victim.side.drain();
    let resets = events
        .iter()
        .filter(|event| matches!(event, Event::Reset(..)))
        .count();
    assert_eq!(resets, open, "each channel is told");
}

#[test]
fn what_is_wrong_with_the_link_ends_it() {
    let link = |kind, body: &'static [u8]| Frame::new(Header::link(kind, 0), Bytes::from_static(body));
    let above = || {
        let mut victim = Victim::new(Role::Above);
        victim
            .side
            .connection
            .open(NodeId::NEIGHBOUR, "echo", empty_map())
            .expect("there is room");
        victim
    };
    let below = || Victim::new(Role::Below);
    let ping = || link(Kind::Ping, b"12345678");
    let cold = || Victim::cold(Role::Below);
    check_violation(cold(), vec![ping()], Violation::BeforeHello(Kind::Ping));
    check_violation(cold(), vec![open(1)], Violation::BeforeHello(Kind::Open));
    check_violation(above(), vec![hello(Role::Above)], Violation::SecondHello);
    check_violation(above(), vec![link(Kind::Pong, b"12345678")], Violation::Pong);
    check_violation(
        below(),
        vec![link(Kind::Log, b"\xa0")],
        Violation::FromAbove(Kind::Log),
    );
    check_violation(
        below(),
        vec![link(Kind::Route, b"\xa0")],
        Violation::FromAbove(Kind::Route),
    );
    for kind in [Kind::Log, Kind::Route, Kind::Goodbye] {
        let error = BodyError::NotFields;
        check_violation(
            above(),
            vec![link(kind, b"\x00")],
            Violation::Body { kind, error },
        );
    }
    let (kind, error) = (Kind::Hello, BodyError::Truncated);
    check_violation(cold(), vec![link(kind, b"\xa1")], Violation::Body { kind, error });
    let route = |added: &[u32], lost: &[u32]| {
        let nodes = |numbers: &[u32]| numbers.iter().copied().map(NodeId).collect();
        let route = Route {
            added: nodes(added),
            lost: nodes(lost),
            reason: String::new(),
        };
        Frame::new(Header::link(Kind::Route, 0), route.encode())
    };
    for (added, lost, bad) in [
        (&[0][..], &[][..], 0),
        (&[1], &[], 1),
        (&[2], &[], 2),
        (&[], &[9], 9),
        (&[9, 9], &[], 9),
    ] {
        check_violation(above(), vec![route(added, lost)], Violation::Route(NodeId(bad)));
    }
    let crowd: Vec<u32> = (10..10 + u32::try_from(MAX_ROUTES).expect("it is small")).collect();
    let mut frames: Vec<Frame> = crowd
        .chunks(MAX_ROUTE_NODES)
        .map(|nodes| route(nodes, &[]))
        .collect();
    frames.push(route(&[5], &[]));
    check_violation(above(), frames, Violation::Route(NodeId(5)));
    let mut ping_to_a_node = ping();
    ping_to_a_node.header.destination = NodeId(2);
    check_violation(below(), vec![ping_to_a_node], Violation::Addressed(Kind::Ping));
}

#[test]
fn a_wrong_pong_ends_the_link() {
    let mut victim = Victim::new(Role::Below);
    victim.side.connection.ping(victim.now);
    assert_eq!(victim.answers().len(), 1);
    let pong = Frame::new(Header::link(Kind::Pong, 0), Bytes::from_static(b"whatever"));
    check_violation(victim, vec![pong], Violation::Pong);
}

#[test]
fn nothing_is_said_to_what_is_no_peer() {
    let mut victim = Victim::new(Role::Below);
    victim.side.input.extend_from_slice(b"Last login: today\n");
    victim.side.take_in(victim.now);
    assert!(
        matches!(&victim.side.result, Err(Error::Violation(Violation::Magic(seen))) if seen.bytes() == b"Last login: today\n")
    );
    assert_eq!(victim.answers(), []);
}

/// Feeds copies of what `frame` makes for as long as input is wanted; gives their number.
fn flood(victim: &mut Victim, mut frame: impl FnMut(u32) -> Frame) -> u32 {
    for number in 1..200_000 {
        if !victim.side.connection.wants_input() {
            return number;
        }
        victim.get(frame(number));
        assert_eq!(victim.side.result, Ok(()));
    }
    panic!("nothing stops the flood");
}

#[test]
fn a_flood_of_questions_without_reading_is_not_listened_to() {
    let ping = |_| Frame::new(Header::link(Kind::Ping, 0), Bytes::from_static(b"12345678"));
    let mut victim = Victim::new(Role::Below);
    assert!(flood(&mut victim, ping) <= 1100);
    let forged = |number| on_channel(Kind::Data, 2, number, "x");
    let mut victim = Victim::new(Role::Below);
    assert!(flood(&mut victim, forged) <= 1100);
    victim.answers();
    assert!(
        victim.side.connection.wants_input(),
        "answers that have left are forgotten"
    );
}

#[test]
fn a_flood_of_channels_stops_at_a_slow_owner() {
    let mut victim = Victim::new(Role::Below);
    victim.side.is_stalled = true;
    let opened_and_reset = |number: u32| {
        let id = number.div_ceil(2);
        if number % 2 == 1 {
            open(id)
        } else {
            on_channel(Kind::Reset, 0, id, Reset::new(ResetCode::Cancelled).encode())
        }
    };
    assert!(flood(&mut victim, opened_and_reset) <= 5000);
    assert!(!victim.side.connection.wants_input());
    assert!(victim.side.drain().is_empty());
    victim.side.is_stalled = false;
    assert!(!victim.side.drain().is_empty());
    assert!(victim.side.connection.wants_input());
}

#[test]
fn opening_and_resetting_leaves_nothing_behind() {
    let mut pair = Pair::new(usize::MAX);
    for _ in 0..5000 {
        let id = pair
            .above
            .connection
            .open(NodeId::NEIGHBOUR, "echo", empty_map())
            .expect("there is room");
        pair.above
            .connection
            .send(id, Stream::Out, data(100))
            .expect("there is room");
        pair.above
            .connection
            .reset(id, &Reset::new(ResetCode::Cancelled))
            .expect("it is open");
    }
    assert_eq!(pair.above.connection.channels.lines(), 0);
    pair.settle();
    assert_eq!(pair.below.connection.channels(), 0);
    assert_eq!(pair.below.connection.channels.lines(), 0);
}
