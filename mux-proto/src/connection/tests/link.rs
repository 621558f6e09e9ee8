//! The link itself: greeting, names, routes, words, farewell, silence.

use super::*;
use crate::error::Incompatible;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn both_say_hello_and_the_one_without_a_number_gets_one() {
    let mut pair = Pair::cold(config(Role::Above), config(Role::Below));
    pair.settle();
    let hello = |is_above, channels, node, peer| {
        Event::Hello(Hello {
            software: "test 1".to_owned(),
            platform: "Linux x86_64".to_owned(),
            is_above,
            channels,
            node,
            peer,
        })
    };
    let named = hello(true, 0, Some(NodeId(1)), Some(NodeId(2)));
    assert_eq!(pair.below.drain(), [named]);
    assert_eq!(pair.above.drain(), [hello(false, 1024, None, None)]);
    assert_eq!(pair.below.connection.own, Some(NodeId(2)));
    assert_eq!(pair.below.connection.peer, Some(NodeId(1)));
}

fn check_greeting(above: Config, below: Config, expected: Error) {
    let mut pair = Pair::cold(above, below);
    pair.settle();
    assert_eq!(pair.below.result, Err(expected));
    assert_eq!(pair.below.connection.poll_close(), Some(Close::Both));
    let heard = pair.above.drain();
    let said = heard.iter().any(|event| matches!(event, Event::Goodbye(_)));
    assert!(
        said || pair.above.result.is_err(),
        "the other side learns it: {heard:?}"
    );
}

#[test]
fn two_that_do_not_suit_part() {
    let unnamed = |role| Config {
        names: None,
        ..config(role)
    };
    let named = |role, own, peer| Config {
        names: Some((NodeId(own), NodeId(peer))),
        ..config(role)
    };
    let role = Error::Incompatible(Incompatible::Role);
    let names = Error::Incompatible(Incompatible::Names);
    check_greeting(config(Role::Above), config(Role::Above), role.clone());
    check_greeting(config(Role::Below), config(Role::Below), role);
    check_greeting(unnamed(Role::Above), unnamed(Role::Below), names.clone());
    check_greeting(named(Role::Above, 1, 2), named(Role::Below, 3, 1), names.clone());
    check_greeting(named(Role::Above, 1, 2), named(Role::Below, 2, 3), names.clone());
    check_greeting(named(Role::Above, 5, 5), unnamed(Role::Below), names);
}

#[test]
fn channels_need_not_wait_for_the_greeting() {
    let mut pair = Pair::cold(config(Role::Above), config(Role::Below));
    let channel = pair.above.connection.open(NodeId::NEIGHBOUR, "echo", empty_map());
    let channel = channel.expect("before any hello");
    pair.above
        .connection
        .send(channel, Stream::Out, data(100))
        .expect("there is credit");
    pair.settle();
    let events = pair.below.drain();
    assert!(
        matches!(
            events[..],
            [Event::Hello(_), Event::Opened { .. }, Event::Data { .. }]
        ),
        "{events:?}"
    );
}

#[test]
fn a_farewell_is_heard_and_every_channel_ends_with_it() {
    let mut pair = Pair::new(1);
    let channel = pair.open();
    pair.below
        .connection
        .goodbye(GoodbyeCode::Restart, "mux 0.2.0 takes over");
    assert_eq!(pair.below.connection.channels(), 0);
    pair.settle();
    let goodbye = Goodbye {
        code: GoodbyeCode::Restart,
        text: "mux 0.2.0 takes over".to_owned(),
    };
    let events = pair.above.drain();
    assert!(
        matches!(&events[..], [Event::Reset(id, reset), Event::Goodbye(said)]
            if *id == channel && reset.code == ResetCode::Gone && *said == goodbye),
        "{events:?}"
    );
    for side in [&mut pair.above, &mut pair.below] {
        assert_eq!(side.connection.poll_close(), Some(Close::Both));
        assert_eq!(side.connection.handle_eof(pair.now), Ok(()));
        assert_eq!(side.connection.poll_timeout(), None);
    }
    let late = pair.above.connection.open(NodeId::NEIGHBOUR, "echo", empty_map());
    assert_eq!(late, Err(Misuse::Ended));
}

#[test]
fn an_end_without_farewell_is_an_error_and_tells_every_channel() {
    for (mid_frame, expected) in [(false, Error::UnexpectedEof), (true, Violation::Truncated.into())] {
        let mut pair = Pair::new(1);
        let channel = pair.open();
        if mid_frame {
            let mut half = BytesMut::from(&b"\xf5mx"[..]);
            assert_eq!(pair.above.connection.handle_input(pair.now, &mut half), Ok(()));
        }
        assert_eq!(pair.above.connection.handle_eof(pair.now), Err(expected.clone()));
        assert!(matches!(&pair.above.drain()[..], [Event::Reset(id, _)] if *id == channel));
        assert_eq!(
            pair.above.connection.handle_eof(pair.now),
            Err(expected.clone()),
            "sticky"
        );
        assert_eq!(
            pair.above.connection.handle_timeout(pair.now),
            Err(expected),
            "sticky"
        );
    }
}

#[test]
fn who_says_nothing_is_given_its_time_and_no_more() {
    let now = Instant::now();
    let mut side = Side::new(now, config(Role::Below));
    let deadline = side.connection.poll_timeout().expect("somebody is waited for");
    assert_eq!(deadline, now + 15 * SECOND);
    // Half a frame is nothing.
    side.input.extend_from_slice(b"\xf5m");
    side.take_in(now + 14 * SECOND);
    assert_eq!(side.connection.handle_timeout(deadline - SECOND), Ok(()), "early");
    assert_eq!(side.connection.handle_timeout(deadline), Err(Error::NoHello));
}

#[test]
fn a_quiet_link_is_asked_and_a_dead_one_given_up() {
    let mut pair = Pair::new(1);
    pair.now += 15 * SECOND;
    assert_eq!(pair.above.connection.poll_timeout(), Some(pair.now));
    assert_eq!(pair.above.connection.handle_timeout(pair.now), Ok(()));
    let asked = pair.above.put_out(pair.now, 100);
    pair.now += SECOND;
    pair.below.input.extend_from_slice(&asked);
    pair.settle();
    assert_eq!(pair.above.connection.rtt(), Some(SECOND));
    assert_eq!(pair.above.connection.poll_timeout(), Some(pair.now + 15 * SECOND));

    pair.now += 15 * SECOND;
    assert_eq!(pair.above.connection.handle_timeout(pair.now), Ok(()));
    pair.now += 15 * SECOND;
    assert_eq!(pair.above.connection.handle_timeout(pair.now), Err(Error::Silent));
    assert!(
        !pair.above.put_out(pair.now, 1000).is_empty(),
        "a goodbye, for who wakes up"
    );
}

#[test]
fn who_does_not_read_blames_nobody_for_silence() {
    let mut pair = Pair::new(1000);
    let channel = pair.open();
    pair.above.connection.set_window(channel, MAX_CREDIT);
    pair.settle();
    pair.above.is_stalled = true;
    for _ in 0..2 {
        pair.below
            .connection
            .send(channel, Stream::Out, data(MAX_UNSENT))
            .expect("there is room");
        pair.settle();
    }
    assert!(!pair.above.connection.wants_input());
    for _ in 0..10 {
        pair.now += 15 * SECOND;
        assert_eq!(pair.above.connection.handle_timeout(pair.now), Ok(()));
    }
}

#[test]
fn words_and_routes_come_from_below_alone() {
    let mut pair = Pair::new(1);
    let log = Log {
        severity: 4,
        text: "disk is full".to_owned(),
    };
    let route = Route {
        added: vec![NodeId(3), NodeId(4)],
        ..Route::default()
    };
    pair.below.connection.log(&log).expect("this is below");
    pair.below.connection.announce(&route).expect("this is below");
    pair.settle();
    assert_eq!(
        pair.above.drain(),
        [Event::Log(log.clone()), Event::Route(route.clone())]
    );
    assert_eq!(pair.above.connection.log(&log), Err(Misuse::WrongSide));
    assert_eq!(pair.above.connection.announce(&route), Err(Misuse::WrongSide));
    assert_eq!(
        pair.below.connection.open(NodeId::NEIGHBOUR, "echo", empty_map()),
        Err(Misuse::WrongSide)
    );
}

#[test]
fn a_lost_node_takes_its_channels_along_and_no_others() {
    let mut pair = Pair::new(1);
    let near = pair.open();
    let node = NodeId(3);
    assert_eq!(
        pair.above.connection.open(node, "echo", empty_map()),
        Err(Misuse::UnknownNode)
    );
    let added = Route {
        added: vec![node],
        ..Route::default()
    };
    pair.below.connection.announce(&added).expect("this is below");
    pair.settle();
    let far = pair
        .above
        .connection
        .open(node, "echo", empty_map())
        .expect("it was announced");
    assert_eq!(far.node, node);
    let lost = Route {
        lost: vec![node],
        reason: "killed".to_owned(),
        ..Route::default()
    };
    pair.below.connection.announce(&lost).expect("this is below");
    pair.settle();
    let reset = Reset {
        code: ResetCode::Gone,
        text: "killed".to_owned(),
    };
    assert_eq!(
        pair.above.drain(),
        [Event::Route(added), Event::Reset(far, reset), Event::Route(lost)]
    );
    assert_eq!(pair.above.connection.channels(), 1);
    assert!(pair.above.connection.room(near) > 0);
}
