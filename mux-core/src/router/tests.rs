//! A node with a parent or clients above it and two children below, one of which has a node beneath it.

#![expect(clippy::panic, reason = "a test fails by panicking")]

use bytes::Bytes;
use mux_proto::body::ResetCode::{self, *};
use mux_proto::connection::{INITIAL_CREDIT, MAX_CREDIT};
use mux_proto::frame::{Frame, Kind, MAX_BODY};

use super::*;

/// Links: upward, to another client, and to the two children.
const UP: char = 'u';
const UP2: char = 'v';
const LEFT: char = 'l';
const RIGHT: char = 'r';

/// Node 10 with 1 above it, the children 20 and 30, and 21 beneath 20. With a parent, 9 lies above that.
fn tree(place: Place) -> Router<char> {
    let mut router = Router::new(NodeId(10));
    router.add(UP, place, NodeId(1)).expect("it is free");
    if place == Place::Client {
        router.add(UP2, place, NodeId(2)).expect("it is free");
    }
    router.add(LEFT, Place::Child, NodeId(20)).expect("it is free");
    router.add(RIGHT, Place::Child, NodeId(30)).expect("it is free");
    assert_eq!(router.greeted(LEFT), Some(NodeId(20)));
    assert_eq!(router.greeted(LEFT), None, "once");
    router.greeted(RIGHT);
    router.learn(LEFT, &added(&[21])).expect("it is free");
    router
}

fn nodes(numbers: &[u32]) -> Vec<NodeId> {
    numbers.iter().copied().map(NodeId).collect()
}

fn added(numbers: &[u32]) -> Route {
    Route {
        added: nodes(numbers),
        ..Route::default()
    }
}

fn lost(numbers: &[u32]) -> Route {
    Route {
        lost: nodes(numbers),
        ..Route::default()
    }
}

fn frame(kind: Kind, source: u32, destination: u32, number: u32, body: &[u8]) -> Frame {
    let flow = FlowId {
        destination: NodeId(destination),
        source: NodeId(source),
        number,
    };
    flow.frame(kind, 0, Bytes::copy_from_slice(body))
}

fn open(source: u32, destination: u32, number: u32) -> Frame {
    frame(Kind::Open, source, destination, number, b"anything")
}

fn data(source: u32, destination: u32, number: u32, len: usize) -> Frame {
    frame(Kind::Data, source, destination, number, &vec![7; len])
}

fn credit(source: u32, destination: u32, number: u32, more: u32) -> Frame {
    frame(Kind::Credit, source, destination, number, &more.to_be_bytes())
}

fn to(to: char) -> Verdict<char> {
    Verdict::Pass { to, is_last: false }
}

fn last(to: char) -> Verdict<char> {
    Verdict::Pass { to, is_last: true }
}

fn broken(code: ResetCode, other: char) -> Verdict<char> {
    Verdict::Break { code, other }
}

/// In a tree of its own, each of these frames is judged so, one after the other.
fn check(place: Place, steps: &[(char, Frame, Verdict<char>)]) {
    let mut router = tree(place);
    check_on(&mut router, steps);
}

fn check_on(router: &mut Router<char>, steps: &[(char, Frame, Verdict<char>)]) {
    for (step, (link, frame, expected)) in steps.iter().enumerate() {
        let verdict = router.judge(*link, frame);
        assert_eq!(verdict, *expected, "step {step}: {:?} on {link}", frame.header);
    }
}

const PLACES: [Place; 2] = [Place::Parent, Place::Client];

#[test]
fn a_channel_goes_down_to_a_node_beneath_and_back_to_whoever_opened_it() {
    for place in PLACES {
        check(
            place,
            &[
                (UP, open(1, 21, 1), to(LEFT)),
                (UP, open(1, 30, 2), to(RIGHT)),
                (UP, data(1, 21, 1, 100), to(LEFT)),
                (LEFT, data(21, 1, 1, 100), to(UP)),
                (LEFT, frame(Kind::Finish, 21, 1, 1, b""), to(UP)),
                (LEFT, credit(21, 1, 1, 100), to(UP)),
                (LEFT, frame(Kind::Result, 21, 1, 1, b"anything"), last(UP)),
                (RIGHT, frame(Kind::Reset, 30, 1, 2, b"anything"), last(UP)),
                // What is under way is late, in both directions.
                (UP, data(1, 21, 1, 100), Verdict::Drop),
                (LEFT, data(21, 1, 1, 100), Verdict::Drop),
                (RIGHT, frame(Kind::Reset, 30, 1, 2, b"anything"), Verdict::Drop),
            ],
        );
    }
}

#[test]
fn a_source_that_does_not_lie_beneath_its_link_is_refused() {
    let forged = Verdict::Refuse(Forged);
    for source in [30, 1, 10, 0, 99] {
        check(
            Place::Parent,
            &[
                (UP, open(1, 20, 1), to(LEFT)),
                (LEFT, data(source, 1, 1, 10), forged),
                (LEFT, data(20, 1, 1, 10), to(UP)),
            ],
        );
    }
    // A right one, on another node's channel.
    let mut router = tree(Place::Parent);
    let other = [
        (UP, open(1, 20, 1), to(LEFT)),
        (LEFT, data(21, 1, 1, 10), Verdict::Drop),
    ];
    check_on(&mut router, &other);
}

#[test]
fn a_parent_vouches_for_those_above_it_and_a_client_for_itself() {
    let forged = Verdict::Refuse(Forged);
    for (source, from_parent, from_client) in [
        (1, to(LEFT), to(LEFT)),
        (9, to(LEFT), forged),
        (2, to(LEFT), forged),
        (0, forged, forged),
        (10, forged, forged),
        (30, forged, forged),
    ] {
        check(Place::Parent, &[(UP, open(source, 20, 1), from_parent)]);
        check(Place::Client, &[(UP, open(source, 20, 1), from_client)]);
    }
    // Another client's channel is not one's own.
    check(
        Place::Client,
        &[
            (UP, open(1, 20, 1), to(LEFT)),
            (UP2, data(1, 20, 1, 10), forged),
            (UP2, data(2, 20, 1, 10), Verdict::Refuse(UnknownChannel)),
        ],
    );
}

#[test]
fn nodes_below_open_nothing_and_never_reach_each_other() {
    let not_allowed = Verdict::Refuse(NotAllowed);
    for place in PLACES {
        for destination in [30, 21] {
            check(place, &[(LEFT, data(20, destination, 1, 10), not_allowed)]);
            check(place, &[(LEFT, open(20, destination, 1), not_allowed)]);
        }
        check(place, &[(LEFT, open(20, 1, 1), not_allowed)]);
        check(
            place,
            &[
                (UP, open(1, 20, 1), to(LEFT)),
                (UP, frame(Kind::Result, 1, 20, 1, b"x"), broken(NotAllowed, LEFT)),
                (LEFT, data(20, 1, 1, 10), Verdict::Drop),
            ],
        );
    }
}

#[test]
fn who_is_not_there_is_said_and_who_is_gone_never_comes_back() {
    let gone = Verdict::Refuse(Gone);
    let mut router = tree(Place::Parent);
    check_on(
        &mut router,
        &[
            (UP, open(1, 77, 1), Verdict::Refuse(NoRoute)),
            (UP, open(1, 21, 1), to(LEFT)),
            (LEFT, data(20, 77, 1, 10), Verdict::Refuse(NoRoute)),
        ],
    );
    router.learn(LEFT, &lost(&[21])).expect("it lies there");
    check_on(
        &mut router,
        &[
            (UP, data(1, 21, 1, 10), gone),
            (UP, open(1, 21, 2), gone),
            // Nor upward: it is no longer beneath its link.
            (LEFT, data(21, 1, 1, 10), Verdict::Refuse(Forged)),
        ],
    );
    for number in [21, 20, 30, 10, 1, 0] {
        let taken = Err(Misplaced::Taken(NodeId(number)));
        assert_eq!(router.learn(RIGHT, &added(&[number])), taken);
        assert_eq!(
            router.add('x', Place::Child, NodeId(number)),
            Err(Misplaced::Taken(NodeId(number)))
        );
    }
    assert_eq!(
        router.learn(RIGHT, &lost(&[20])),
        Err(Misplaced::Unknown(NodeId(20))),
        "another child's"
    );
}

#[test]
fn an_opener_is_nobody_beneath() {
    let mut router = tree(Place::Parent);
    check_on(&mut router, &[(UP, open(9, 20, 1), to(LEFT))]);
    assert_eq!(
        router.learn(RIGHT, &added(&[9])),
        Err(Misplaced::Taken(NodeId(9)))
    );
}

#[test]
fn numbers_rise_and_what_was_never_opened_is_unknown() {
    for place in PLACES {
        check(
            place,
            &[
                (UP, open(1, 20, 5), to(LEFT)),
                (UP, open(1, 20, 5), Verdict::Refuse(BadNumber)),
                (UP, open(1, 30, 4), Verdict::Refuse(BadNumber)),
                (UP, data(1, 20, 4, 10), Verdict::Drop),
                (UP, data(1, 20, 6, 10), Verdict::Refuse(UnknownChannel)),
                (LEFT, data(20, 1, 6, 10), Verdict::Refuse(UnknownChannel)),
                (LEFT, data(20, 1, 0, 10), Verdict::Refuse(UnknownChannel)),
                (UP, open(1, 20, 0), Verdict::Refuse(BadNumber)),
                (UP, data(1, 20, 5, 10), to(LEFT)),
            ],
        );
    }
}

#[test]
fn no_more_than_the_credit_passes_in_either_direction() {
    let initial = INITIAL_CREDIT as usize;
    let ways = [(UP, LEFT, 1, 20), (LEFT, UP, 20, 1)];
    for (from, into, source, destination) in ways {
        check(
            Place::Parent,
            &[
                (UP, open(1, 20, 1), to(LEFT)),
                (from, data(source, destination, 1, MAX_BODY), to(into)),
                (from, data(source, destination, 1, initial - MAX_BODY), to(into)),
                (into, credit(destination, source, 1, 5), to(from)),
                (from, data(source, destination, 1, 5), to(into)),
                (
                    from,
                    data(source, destination, 1, 1),
                    broken(CreditExceeded, into),
                ),
                (into, credit(destination, source, 1, 5), Verdict::Drop),
            ],
        );
        for bad in [0, MAX_CREDIT - INITIAL_CREDIT + 1, u32::MAX] {
            check(
                Place::Parent,
                &[
                    (UP, open(1, 20, 1), to(LEFT)),
                    (into, credit(destination, source, 1, bad), broken(BadCredit, from)),
                ],
            );
        }
        let end = frame(Kind::Finish, source, destination, 1, b"");
        for behind in [end.clone(), data(source, destination, 1, 1)] {
            check(
                Place::Parent,
                &[
                    (UP, open(1, 20, 1), to(LEFT)),
                    (from, end.clone(), to(into)),
                    (into, data(destination, source, 1, 1), to(from)),
                    (from, behind, broken(AfterFinish, into)),
                ],
            );
        }
    }
}

#[test]
fn a_lost_child_ends_the_channels_that_ran_over_it_and_no_others() {
    let mut router = tree(Place::Parent);
    let opened = [
        (UP, open(1, 20, 1), to(LEFT)),
        (UP, open(9, 21, 7), to(LEFT)),
        (UP, open(1, 30, 2), to(RIGHT)),
    ];
    check_on(&mut router, &opened);
    let loss = router.lose(LEFT);
    let ended = |source, destination, number| Ended {
        above: UP,
        below: LEFT,
        up: FlowId {
            destination: NodeId(destination),
            source: NodeId(source),
            number,
        },
    };
    assert_eq!(loss.answerless, [ended(20, 1, 1), ended(21, 9, 7)]);
    assert_eq!(loss.ownerless, []);
    assert_eq!(loss.lost, nodes(&[20, 21]));
    assert_eq!(router.passages(), 1);
    let after = [
        (UP, data(1, 20, 1, 10), Verdict::Refuse(Gone)),
        (UP, data(1, 30, 2, 10), to(RIGHT)),
    ];
    check_on(&mut router, &after);
    assert_eq!(router.lose(LEFT), Loss::default(), "once");
}

#[test]
fn a_child_that_never_greeted_is_lost_without_a_word() {
    let mut router = tree(Place::Parent);
    router.add('x', Place::Child, NodeId(40)).expect("it is free");
    check_on(&mut router, &[(UP, open(1, 40, 1), to('x'))]);
    let loss = router.lose('x');
    assert_eq!(loss.lost, []);
    assert_eq!(loss.answerless.len(), 1);
}

#[test]
fn a_lost_client_ends_what_it_had_opened_and_its_number_is_nobodys() {
    let mut router = tree(Place::Client);
    let opened = [(UP, open(1, 20, 1), to(LEFT)), (UP2, open(2, 20, 1), to(LEFT))];
    check_on(&mut router, &opened);
    let loss = router.lose(UP);
    let [ended] = loss.ownerless[..] else {
        panic!("one, not {loss:?}");
    };
    assert_eq!(ended.below, LEFT);
    assert_eq!(ended.up.reversed().destination, NodeId(20));
    assert_eq!((loss.lost, loss.answerless), (Vec::new(), Vec::new()));
    let after = [
        (LEFT, data(20, 1, 1, 10), Verdict::Refuse(Gone)),
        (LEFT, data(20, 2, 1, 10), to(UP2)),
    ];
    check_on(&mut router, &after);
    let again = router.add(UP, Place::Client, NodeId(1));
    assert_eq!(again, Err(Misplaced::Taken(NodeId(1))));
}

#[test]
fn an_opening_that_could_not_be_sent_on_is_withdrawn() {
    let mut router = tree(Place::Parent);
    check_on(&mut router, &[(UP, open(1, 20, 1), to(LEFT))]);
    router.withdraw(FlowId::of(&open(1, 20, 1).header));
    assert_eq!(router.passages(), 0);
    check_on(&mut router, &[(UP, data(1, 20, 1, 10), Verdict::Drop)]);
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut router = tree(Place::Parent);
    for opener in 100..5000 {
        let short = [
            (UP, open(opener, 20, 1), to(LEFT)),
            (UP, frame(Kind::Reset, opener, 20, 1, b""), last(LEFT)),
        ];
        check_on(&mut router, &short);
    }
    assert!(router.last.len() <= MAX_OPENERS);
    for number in 10_000..10_000 + 70_000 {
        router.learn(LEFT, &added(&[number])).expect("it is free");
        router.learn(LEFT, &lost(&[number])).expect("it lies there");
    }
    assert!(router.retired.len() <= MAX_RETIRED);
}

#[test]
fn numbers_are_given_once() {
    let mut router: Router<char> = Router::new(NodeId(1));
    let given: Vec<_> = (0..3).map_while(|_| router.allot()).collect();
    assert_eq!(given, nodes(&[2, 3, 4]));
    let mut router: Router<char> = Router::new(NodeId(u32::MAX - 1));
    assert_eq!(router.allot(), Some(NodeId(u32::MAX)));
    assert_eq!(router.allot(), None);
}
