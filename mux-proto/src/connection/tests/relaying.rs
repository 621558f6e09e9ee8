//! Frames of others: handed to the owner as they came, passed on whole or in other pieces, in turn, and dropped or ended
//! with their channel.

use super::*;
use crate::frame::FLAG_STDERR;

/// From above to a node beneath the peer.
const DOWN: FlowId = FlowId {
    destination: NodeId(20),
    source: NodeId(1),
    number: 1,
};

/// A link of a relay, and the frames that come out of it.
struct Outlet {
    side: Side,
    now: Instant,
}

impl Outlet {
    fn new(role: Role) -> Self {
        let now = Instant::now();
        let config = Config {
            names: Some((NodeId(2), NodeId(3))),
            relays: true,
            ..config(role)
        };
        let mut outlet = Self {
            side: Side::new(now, config),
            now,
        };
        assert_eq!(outlet.frames().len(), 1, "its hello");
        outlet
    }

    fn relay(&mut self, flow: FlowId, kind: Kind, body: impl Into<Bytes>) {
        let relayed = self.side.connection.relay(flow.frame(kind, 0, body.into()));
        assert_eq!(relayed, Ok(()));
    }

    /// At most what a link asks for at a time.
    fn some_frames(&mut self) -> Vec<Frame> {
        let mut wire = BytesMut::new();
        self.side.connection.poll_transmit(self.now, &mut self.side.out);
        while !self.side.out.is_empty() {
            wire.extend_from_slice(&self.side.out.take(usize::MAX));
        }
        std::iter::from_fn(|| Frame::take(&mut wire).expect("we made it")).collect()
    }

    fn frames(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        loop {
            let some = self.some_frames();
            if some.is_empty() {
                return frames;
            }
            frames.extend(some);
        }
    }
}

fn kinds(frames: &[Frame]) -> Vec<Kind> {
    frames.iter().map(|frame| frame.header.kind).collect()
}

fn other(number: u32) -> FlowId {
    FlowId { number, ..DOWN }
}

fn gone(text: &str) -> Reset {
    Reset {
        code: ResetCode::Gone,
        text: text.to_owned(),
    }
}

#[test]
fn a_frame_for_another_node_reaches_the_owner_as_it_came() {
    let mut pair = Pair::cold(
        config(Role::Above),
        Config {
            relays: true,
            ..config(Role::Below)
        },
    );
    pair.settle();
    pair.below.drain();
    let frame = DOWN.frame(Kind::Open, 0, Bytes::from_static(b"nobody looks at this"));
    assert_eq!(pair.above.connection.relay(frame.clone()), Ok(()));
    pair.settle();
    assert_eq!(pair.below.drain(), [Event::Transit(frame.clone())]);
    assert_eq!(pair.below.connection.refused(), 0);
    pair.below.connection.refuse(frame.header, ResetCode::Gone);
    assert_eq!(pair.below.connection.refused(), 1);
    // For the one who sent it: the one above is the peer, so that it is an end of its own link.
    pair.settle();
    assert_eq!(pair.above.connection.refused(), 1, "a reset of nobody's channel");
}

#[test]
fn frames_keep_their_order_their_streams_and_their_numbers() {
    let mut outlet = Outlet::new(Role::Above);
    outlet.relay(DOWN, Kind::Open, "what");
    outlet.relay(DOWN, Kind::Data, data(10));
    let error = DOWN.frame(Kind::Data, FLAG_STDERR, data(5));
    outlet.side.connection.relay(error).expect("the link lives");
    outlet.relay(DOWN, Kind::Data, data(7));
    outlet.relay(DOWN, Kind::Finish, "");
    let frames = outlet.frames();
    assert_eq!(
        kinds(&frames),
        [Kind::Open, Kind::Data, Kind::Data, Kind::Data, Kind::Finish]
    );
    assert!(frames.iter().all(|frame| FlowId::of(&frame.header) == DOWN));
    let sizes: Vec<_> = frames
        .iter()
        .map(|frame| (frame.header.flags, frame.body.len()))
        .collect();
    assert_eq!(sizes, [(0, 4), (0, 10), (1, 5), (0, 7), (0, 0)]);
}

#[test]
fn small_pieces_and_credit_that_wait_are_joined() {
    let mut outlet = Outlet::new(Role::Above);
    for _ in 0..10_000 {
        outlet.relay(DOWN, Kind::Data, data(1));
        outlet.relay(DOWN, Kind::Credit, 3_u32.to_be_bytes().to_vec());
    }
    let frames = outlet.frames();
    assert_eq!(kinds(&frames), [Kind::Credit, Kind::Data], "credit goes first");
    assert_eq!(frames[0].body[..], 30_000_u32.to_be_bytes());
    assert_eq!(frames[1].body, data(10_000));
}

#[test]
fn channels_of_others_and_of_our_own_take_turns() {
    let mut outlet = Outlet::new(Role::Above);
    let own = outlet
        .side
        .connection
        .open(NodeId::NEIGHBOUR, "echo", empty_map())
        .expect("there is room");
    for _ in 0..8 {
        outlet.relay(other(1), Kind::Data, data(MAX_BODY));
    }
    outlet.relay(other(2), Kind::Data, data(100));
    outlet.relay(other(2), Kind::Data, data(100));
    outlet
        .side
        .connection
        .send(own, Stream::Out, data(50))
        .expect("there is credit");
    let frames = outlet.frames();
    let bulk = |frame: &Frame| frame.header.channel == 1 && frame.header.destination == NodeId(20);
    let behind = frames.iter().rposition(|frame| !bulk(frame)).expect("they left");
    assert_eq!(
        frames[..behind].iter().filter(|frame| bulk(frame)).count(),
        1,
        "one turn of the bulk"
    );
    // A reset does not wait for the rest of the bulk.
    for _ in 0..8 {
        outlet.relay(other(1), Kind::Data, data(MAX_BODY));
    }
    outlet.some_frames();
    outlet.relay(other(3), Kind::Reset, Reset::new(ResetCode::Cancelled).encode());
    assert_eq!(outlet.some_frames()[0].header.kind, Kind::Reset);
}

#[test]
fn a_reset_takes_the_place_of_what_waits() {
    let mut outlet = Outlet::new(Role::Above);
    outlet.relay(DOWN, Kind::Open, "what");
    outlet.frames();
    outlet.relay(DOWN, Kind::Data, data(1000));
    outlet.relay(DOWN, Kind::Credit, 3_u32.to_be_bytes().to_vec());
    outlet.relay(DOWN, Kind::Finish, "");
    outlet.relay(DOWN, Kind::Reset, Reset::new(ResetCode::Cancelled).encode());
    outlet.relay(DOWN, Kind::Data, data(1000));
    assert_eq!(kinds(&outlet.frames()), [Kind::Reset]);
    assert_eq!(outlet.side.connection.flows(), 0);
}

#[test]
fn nobody_hears_of_a_channel_that_was_reset_before_its_opening_left() {
    let mut outlet = Outlet::new(Role::Above);
    for number in 1..10_000 {
        outlet.relay(other(number), Kind::Open, data(MAX_BODY));
        outlet.relay(
            other(number),
            Kind::Reset,
            Reset::new(ResetCode::Cancelled).encode(),
        );
    }
    assert_eq!(outlet.side.connection.flows(), 0);
    assert_eq!(outlet.frames(), []);
}

#[test]
fn openings_that_nobody_reads_are_bounded() {
    let mut outlet = Outlet::new(Role::Above);
    let mut open = |number| {
        let frame = other(number).frame(Kind::Open, 0, data(10));
        outlet.side.connection.relay(frame)
    };
    let full = (1..)
        .find(|&number| open(number).is_err())
        .expect("it is bounded");
    assert_eq!(full as usize, MAX_FLOWS + 1);
    assert_eq!(open(full), Err(Misuse::TooManyChannels));
    outlet.side.connection.forget(other(1));
    let frame = other(full).frame(Kind::Open, 0, data(10));
    assert_eq!(outlet.side.connection.relay(frame), Ok(()));
}

#[test]
fn what_a_lost_node_had_sent_leaves_before_its_loss_is_said() {
    let mut outlet = Outlet::new(Role::Below);
    let up = |number| other(number).reversed();
    outlet.relay(up(1), Kind::Data, data(100));
    outlet.relay(up(1), Kind::Result, empty_map());
    outlet.relay(up(2), Kind::Data, data(200));
    let connection = &mut outlet.side.connection;
    connection
        .relay_end(up(2), &gone("it crashed"))
        .expect("the link lives");
    let route = Route {
        added: Vec::new(),
        lost: vec![NodeId(20)],
        reason: "it crashed".to_owned(),
    };
    connection.announce(&route).expect("from below");
    let frames = outlet.frames();
    assert_eq!(
        kinds(&frames),
        [Kind::Data, Kind::Result, Kind::Data, Kind::Reset, Kind::Route]
    );
    assert_eq!(Route::decode(&frames[4].body), Ok(route.clone()));
    assert_eq!(outlet.side.connection.flows(), 0);
    // With nothing under way it is said at once.
    outlet.side.connection.announce(&route).expect("from below");
    assert_eq!(kinds(&outlet.frames()), [Kind::Route]);
}

#[test]
fn a_flow_that_is_forgotten_holds_nothing_back() {
    let mut outlet = Outlet::new(Role::Below);
    outlet.relay(DOWN.reversed(), Kind::Data, data(100));
    let route = Route {
        lost: vec![NodeId(20)],
        ..Route::default()
    };
    outlet.side.connection.announce(&route).expect("from below");
    outlet.side.connection.forget(DOWN.reversed());
    assert_eq!(kinds(&outlet.frames()), [Kind::Route]);
}

#[test]
fn an_ended_link_takes_nothing_and_answers_nothing() {
    let mut outlet = Outlet::new(Role::Above);
    outlet.relay(DOWN, Kind::Data, data(100));
    outlet.side.connection.goodbye(GoodbyeCode::Done, "");
    let frame = DOWN.frame(Kind::Data, 0, data(1));
    assert_eq!(outlet.side.connection.relay(frame.clone()), Err(Misuse::Ended));
    let end = outlet.side.connection.relay_end(DOWN, &gone(""));
    assert_eq!(end, Err(Misuse::Ended));
    outlet.side.connection.refuse(frame.header, ResetCode::Gone);
    assert_eq!(kinds(&outlet.frames()), [Kind::Goodbye]);
}

#[test]
fn words_and_routes_that_nobody_reads_are_bounded() {
    let mut outlet = Outlet::new(Role::Below);
    let log = Log {
        severity: 6,
        text: "again".to_owned(),
    };
    let said = (0..).find(|_| outlet.side.connection.log(&log).is_err());
    assert!(said.expect("it is bounded") <= 1024);
    let added = |node| Route {
        added: vec![NodeId(node)],
        ..Route::default()
    };
    let refused = outlet.side.connection.announce(&added(20));
    assert_eq!(refused, Err(Misuse::QueueFull));
    outlet.frames();
    assert_eq!(outlet.side.connection.announce(&added(20)), Ok(()));
    assert_eq!(outlet.side.connection.log(&log), Ok(()));
}
