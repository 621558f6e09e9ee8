//! Connections that the server makes: opened, refused, both ways with windows, ended from either side.

use bytes::Bytes;

use super::pair::*;
use crate::client::{ChannelFailure, ChannelId, ChannelViolation, DirectTcpip, Event, StreamKind};
use crate::message::*;

fn to(host: &str, port: u16) -> DirectTcpip {
    DirectTcpip {
        host: host.to_owned(),
        port,
    }
}

fn ask(pair: &mut Pair) -> ChannelId {
    let id = pair.client.direct_tcpip(pair.now, to("web07", 22));
    pair.run();
    id
}

/// A connection that stands: our number 0, the server's 5.
fn connected() -> (Pair, ChannelId) {
    let mut pair = Pair::logged_in(OPENSSH);
    let id = ask(&mut pair);
    pair.confirm_with(0, 5, 100, 40);
    pair.take_kinds();
    pair.events.clear();
    (pair, id)
}

/// What the client has sent on the channel.
fn sent(pair: &Pair) -> Vec<u8> {
    let data = pair.received.iter().filter(|payload| payload[0] == CHANNEL_DATA);
    data.flat_map(|payload| payload[9..].to_vec()).collect()
}

fn write(pair: &mut Pair, id: ChannelId, data: &[u8]) {
    pair.client.write_stdin(id, Bytes::copy_from_slice(data)).unwrap();
    pair.run();
}

#[test]
fn the_request_names_the_host_its_port_and_an_originator() {
    let mut pair = Pair::logged_in(OPENSSH);
    ask(&mut pair);
    let mut open = pair.last(CHANNEL_OPEN);
    assert_eq!(open.string().unwrap(), b"direct-tcpip");
    assert_eq!(open.uint32().unwrap(), 0);
    assert_eq!(
        (open.uint32().unwrap(), open.uint32().unwrap()),
        (64 * 1024, 32 * 1024)
    );
    assert_eq!(
        (open.string().unwrap(), open.uint32().unwrap()),
        (&b"web07"[..], 22)
    );
    assert_eq!(
        (open.string().unwrap(), open.uint32().unwrap()),
        (&b"127.0.0.1"[..], 65535)
    );
    open.finish().unwrap();
}

#[test]
fn bytes_pass_both_ways_under_the_numbers_of_either_side() {
    let (mut pair, id) = connected();
    write(&mut pair, id, b"SSH-2.0-us");
    assert_eq!(sent(&pair), b"SSH-2.0-us");
    assert_eq!(pair.last(CHANNEL_DATA).uint32().unwrap(), 5);
    pair.data(0, b"SSH-2.0-them");
    assert_eq!(pair.output(id), b"SSH-2.0-them");
    pair.assert_healthy();
}

#[test]
fn it_stands_once_it_is_confirmed_and_nothing_is_sent_on_it_before() {
    for ident in [OPENSSH, DROPBEAR, PARAMIKO, ASYNCSSH, UNKNOWN] {
        let mut pair = Pair::logged_in(ident);
        let id = ask(&mut pair);
        write(&mut pair, id, b"early");
        assert_eq!(pair.take_kinds(), [CHANNEL_OPEN], "{ident}");
        assert!(!pair.told(&Event::Opened { channel: id }));
        pair.confirm(0, 0);
        assert!(pair.told(&Event::Opened { channel: id }));
        assert_eq!(sent(&pair), b"early");
    }
}

#[test]
fn one_is_opened_in_the_flight_of_the_login_where_a_session_would_be() {
    for (ident, early) in [
        (OPENSSH, true),
        (ASYNCSSH, true),
        (TINYSSH, false),
        (UNKNOWN, false),
    ] {
        let mut pair = Pair::simple(ident);
        ask(&mut pair);
        ask(&mut pair);
        pair.accept_service();
        let opens = pair.kinds().iter().filter(|kind| **kind == CHANNEL_OPEN).count();
        assert_eq!(opens, usize::from(early), "{ident}");
    }
}

#[test]
fn one_that_was_opened_ahead_of_a_refused_login_is_opened_again() {
    let keys = || keys(2);
    let mut config = config(&keys());
    config.identities[1].proven = false;
    let mut pair = Pair::new(OPENSSH, config, keys());
    let id = ask(&mut pair);
    pair.until_auth();
    pair.accept_service();
    assert!(pair.kinds().contains(&CHANNEL_OPEN));
    let open = pair.sequence_of(CHANNEL_OPEN);
    pair.take_kinds();
    pair.failure("publickey", false);
    pair.unimplemented(open);
    pair.pk_ok(2);
    pair.success();
    assert!(pair.kinds().contains(&CHANNEL_OPEN), "{:?}", pair.kinds());
    pair.confirm(0, 0);
    assert!(pair.told(&Event::Opened { channel: id }));
}

#[test]
fn a_refusal_says_why_and_teaches_nothing_about_sessions() {
    let mut pair = Pair::logged_in(OPENSSH);
    let command = pair.exec(exec("x"));
    pair.confirm(0, 0);
    for code in [1, 2, 3, 4, 77] {
        pair.events.clear();
        let id = ask(&mut pair);
        pair.say(|to| {
            to.byte(CHANNEL_OPEN_FAILURE).uint32(1).uint32(code);
            to.string("no route").string("en");
        });
        let text = "no route".to_owned();
        pair.assert_failed(id, ChannelFailure::Refused { code, text }, false);
    }
    assert_eq!(pair.client.session_limit(), None);
    assert!(pair.client.open_channels() == 1 && !pair.client.is_idle());
    pair.client.close_channel(command);
}

#[test]
fn connections_take_no_place_of_a_session() {
    let mut pair = Pair::logged_in(OPENSSH);
    let id = ask(&mut pair);
    pair.confirm(0, 0);
    let first = pair.exec(exec("x"));
    // Refused although no session is open: the connection is none of them.
    pair.refuse(1);
    assert_eq!(pair.client.session_limit(), None);
    assert!(matches!(pair.last_word(first), Event::ChannelFailed { .. }));
    pair.exec(exec("y"));
    pair.confirm(1, 1);
    pair.exec(exec("z"));
    pair.refuse(2);
    assert_eq!(pair.client.session_limit(), Some(1));
    let other = ask(&mut pair);
    pair.confirm(2, 2);
    for id in [id, other] {
        assert!(pair.told(&Event::Opened { channel: id }));
    }
}

#[test]
fn a_session_beside_a_connection_that_is_being_made_waits_for_its_number() {
    let mut pair = Pair::logged_in(DROPBEAR);
    ask(&mut pair);
    pair.take_kinds();
    pair.exec(exec("x"));
    assert_eq!(pair.take_kinds(), [CHANNEL_OPEN]);
    pair.confirm(1, 4);
    assert_eq!(pair.take_kinds(), [CHANNEL_REQUEST, CHANNEL_EOF]);
    pair.assert_healthy();
}

#[test]
fn what_the_far_side_may_send_grows_only_by_what_was_consumed() {
    let (mut pair, id) = connected();
    pair.consumes = false;
    pair.data(0, &[0; 32 * 1024]);
    pair.data(0, &[0; 32 * 1024]);
    assert_eq!(pair.take_kinds(), []);
    pair.client.consume(id, StreamKind::Stdout, 64 * 1024);
    pair.run();
    assert_eq!(pair.take_kinds(), [CHANNEL_WINDOW_ADJUST]);
    pair.data(0, b"x");
    pair.assert_healthy();
}

#[test]
fn one_byte_beyond_the_window_of_a_connection_is_a_violation() {
    let (mut pair, _) = connected();
    pair.consumes = false;
    pair.data(0, &[0; 32 * 1024]);
    pair.data(0, &[0; 32 * 1024]);
    pair.data(0, b"x");
    pair.assert_violation(ChannelViolation::Window);
}

#[test]
fn what_the_far_side_takes_bounds_what_is_sent() {
    let (mut pair, id) = connected();
    let text: Vec<u8> = (0..250).collect();
    write(&mut pair, id, &text);
    assert_eq!(sent(&pair), text[..100]);
    assert_eq!(pair.take_kinds(), [CHANNEL_DATA; 3], "40, 40 and 20 bytes");
    assert_eq!(pair.client.stdin_unsent(id), 150);
    pair.adjust(0, 1000);
    assert_eq!(sent(&pair), text[100..]);
}

#[test]
fn either_side_may_end_its_direction_alone() {
    let (mut pair, id) = connected();
    pair.tell(CHANNEL_EOF, 0);
    assert_eq!(pair.events, [Event::Eof { channel: id }]);
    write(&mut pair, id, b"still");
    pair.client.finish_stdin(id);
    pair.run();
    assert_eq!(pair.take_kinds(), [CHANNEL_DATA, CHANNEL_EOF]);
    pair.tell(CHANNEL_CLOSE, 0);
    assert_eq!(*pair.last_word(id), Event::ChannelClosed { channel: id });
    assert_eq!(pair.take_kinds(), [CHANNEL_CLOSE]);
}

#[test]
fn closing_one_sends_its_last_words_as_far_as_they_are_taken() {
    let (mut pair, id) = connected();
    write(&mut pair, id, &[1; 90]);
    pair.take_kinds();
    pair.client.write_stdin(id, Bytes::from_static(&[2; 20])).unwrap();
    pair.client.close_channel(id);
    pair.run();
    assert_eq!(*pair.last_word(id), Event::ChannelClosed { channel: id });
    assert_eq!(sent(&pair), [2; 10]);
    assert_eq!(pair.take_kinds(), [CHANNEL_DATA, CHANNEL_CLOSE]);
    // What was under way to us matters to nobody.
    pair.data(0, b"late");
    pair.tell(CHANNEL_CLOSE, 0);
    assert_eq!(pair.output(id), b"");
    pair.assert_healthy();
    assert!(pair.client.is_idle());
}

#[test]
fn one_that_is_given_up_before_it_stands_is_closed_once_it_does() {
    let mut pair = Pair::logged_in(OPENSSH);
    let id = ask(&mut pair);
    pair.client.close_channel(id);
    pair.run();
    pair.assert_failed(id, ChannelFailure::Cancelled, false);
    pair.take_kinds();
    pair.confirm(0, 5);
    assert_eq!(pair.take_kinds(), [CHANNEL_CLOSE]);
    assert!(!pair.told(&Event::Opened { channel: id }));
    // One that was never asked for is simply forgotten.
    let mut pair = Pair::simple(UNKNOWN);
    let id = ask(&mut pair);
    pair.client.close_channel(id);
    pair.until_auth();
    pair.accept_service();
    pair.success();
    pair.assert_failed(id, ChannelFailure::Cancelled, false);
    assert!(!pair.kinds().contains(&CHANNEL_OPEN));
}

#[test]
fn a_lost_connection_takes_all_along_and_ran_nothing() {
    let (mut pair, id) = connected();
    let other = ask(&mut pair);
    pair.eof();
    pair.assert_failed(id, ChannelFailure::ConnectionLost, false);
    pair.assert_failed(other, ChannelFailure::ConnectionLost, false);
}

#[test]
fn requests_on_it_are_refused_and_results_mean_nothing() {
    let (mut pair, _) = connected();
    pair.say(|to| {
        to.byte(CHANNEL_REQUEST).uint32(0);
        to.string("keepalive@openssh.com").boolean(true);
    });
    assert_eq!(pair.take_kinds(), [CHANNEL_FAILURE]);
    pair.exit_status(0, 1);
    assert_eq!(pair.events, []);
    pair.assert_healthy();
}

#[test]
fn a_connection_has_no_second_stream() {
    let (mut pair, _) = connected();
    pair.stderr(0, 1, b"x");
    pair.assert_violation(ChannelViolation::DataType(1));
}

#[test]
fn a_name_that_no_host_can_have_is_not_asked_for() {
    let mut pair = Pair::logged_in(OPENSSH);
    let id = pair.client.direct_tcpip(pair.now, to(&"x".repeat(256), 22));
    pair.run();
    pair.assert_failed(id, ChannelFailure::TooLarge, false);
    assert_eq!(pair.take_kinds(), []);
}
