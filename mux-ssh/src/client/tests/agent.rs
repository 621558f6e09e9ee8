//! The user's agent over a connection: asked for with the command, opened by the server, bounded, and closed to whoever
//! was not let in.

use bytes::Bytes;

use super::pair::*;
use crate::client::{ChannelId, DirectTcpip, Event, StreamKind};
use crate::message::*;

const AGENT: &str = "auth-agent@openssh.com";

/// The server opens a channel of this type under its number.
fn open(pair: &mut Pair, kind: &str, number: u32) {
    pair.say(|w| {
        w.byte(CHANNEL_OPEN)
            .string(kind)
            .uint32(number)
            .uint32(1 << 20)
            .uint32(1 << 15);
    });
}

/// A command that runs, and whose server may reach the agent.
fn running() -> (Pair, ChannelId) {
    let mut pair = Pair::logged_in(OPENSSH);
    let id = pair.client.exec(pair.now, exec("make"));
    pair.client.forward_agent(id);
    pair.run();
    pair.confirm(0, 0);
    pair.take_kinds();
    pair.events.clear();
    (pair, id)
}

fn opened(pair: &Pair) -> Vec<ChannelId> {
    let events = pair.events.iter();
    let opened = events.filter_map(|event| match event {
        Event::AgentOpened { channel } => Some(*channel),
        _ => None,
    });
    opened.collect()
}

#[test]
fn the_request_goes_ahead_of_the_command_and_asks_for_no_reply() {
    let mut pair = Pair::logged_in(OPENSSH);
    let id = pair.client.exec(pair.now, exec("make"));
    pair.client.forward_agent(id);
    pair.run();
    let requests = pair
        .received
        .iter()
        .filter(|payload| payload[0] == CHANNEL_REQUEST);
    let kinds: Vec<String> = requests
        .map(|payload| {
            let mut reader = crate::wire::Reader::new(&payload[5..]);
            let kind = String::from_utf8(reader.string().unwrap().to_vec()).unwrap();
            format!("{kind} {}", reader.boolean().unwrap())
        })
        .collect();
    assert_eq!(kinds, ["auth-agent-req@openssh.com false", "exec true"]);
}

#[test]
fn a_command_that_was_not_to_have_it_asks_for_nothing() {
    let (mut pair, _) = running();
    let other = pair.client.exec(pair.now, exec("true"));
    pair.run();
    pair.confirm(1, 1);
    assert_eq!(pair.take_kinds(), [CHANNEL_OPEN, CHANNEL_REQUEST, CHANNEL_EOF]);
    assert!(pair.client.may_have_run(other));
}

#[test]
fn bytes_pass_both_ways_and_either_side_ends_it() {
    let (mut pair, _) = running();
    open(&mut pair, AGENT, 9);
    let confirmation = pair.last(CHANNEL_OPEN_CONFIRMATION).rest().to_vec();
    assert_eq!(confirmation[..8], [0, 0, 0, 9, 0, 0, 0, 1]);
    let channel = opened(&pair)[0];
    pair.data(1, b"ask");
    assert_eq!(pair.output(channel), b"ask");
    pair.client
        .write_stdin(channel, Bytes::from_static(b"answer"))
        .unwrap();
    pair.run();
    let mut data = pair.last(CHANNEL_DATA);
    assert_eq!(
        (data.uint32().unwrap(), data.string().unwrap()),
        (9, &b"answer"[..])
    );
    pair.client.consume(channel, StreamKind::Stdout, 3);
    pair.client.close_channel(channel);
    pair.run();
    assert_eq!(pair.last(CHANNEL_CLOSE).uint32().unwrap(), 9);
    assert!(pair.events.contains(&Event::ChannelClosed { channel }));
    open(&mut pair, AGENT, 10);
    let channel = opened(&pair)[1];
    pair.tell(CHANNEL_CLOSE, 2);
    assert!(
        pair.events.contains(&Event::ChannelClosed { channel }),
        "{:?}",
        pair.events
    );
    pair.assert_healthy();
}

/// CVE-2023-38408 needed no more than an agent that answers whoever asks.
#[test]
fn a_server_that_was_not_let_in_gets_no_channel_to_the_agent() {
    let mut pair = Pair::logged_in(OPENSSH);
    pair.client.exec(pair.now, exec("make"));
    pair.run();
    pair.confirm(0, 0);
    for number in 1..100 {
        open(&mut pair, AGENT, number);
        assert_eq!(pair.last(CHANNEL_OPEN_FAILURE).uint32().unwrap(), number);
    }
    assert_eq!(opened(&pair), []);
    pair.assert_healthy();
}

#[test]
fn other_channels_of_a_server_are_refused_although_the_agent_is_forwarded() {
    let (mut pair, _) = running();
    for kind in [
        "auth-agent",
        "x11",
        "session",
        "direct-tcpip",
        "forwarded-tcpip",
        "AUTH-AGENT@openssh.com",
    ] {
        open(&mut pair, kind, 9);
        assert_eq!(pair.last(CHANNEL_OPEN_FAILURE).uint32().unwrap(), 9, "{kind}");
    }
    assert_eq!(opened(&pair), []);
    pair.assert_healthy();
}

#[test]
fn there_are_no_more_than_sixteen_at_a_time() {
    let (mut pair, _) = running();
    for number in 1..=17 {
        open(&mut pair, AGENT, number);
    }
    assert_eq!(opened(&pair).len(), 16);
    assert_eq!(pair.last(CHANNEL_OPEN_FAILURE).uint32().unwrap(), 17);
    pair.client.close_channel(opened(&pair)[3]);
    pair.run();
    pair.tell(CHANNEL_CLOSE, 4);
    open(&mut pair, AGENT, 18);
    assert_eq!(opened(&pair).len(), 17);
    pair.assert_healthy();
}

#[test]
fn a_jump_host_on_which_nothing_runs_gets_no_channel_to_the_agent() {
    let mut pair = Pair::logged_in(OPENSSH);
    let to = DirectTcpip {
        host: "web07".to_owned(),
        port: 22,
    };
    let way = pair.client.direct_tcpip(pair.now, to);
    pair.client.forward_agent(way);
    pair.run();
    pair.confirm(0, 0);
    open(&mut pair, AGENT, 9);
    assert_eq!(pair.last(CHANNEL_OPEN_FAILURE).uint32().unwrap(), 9);
    assert_eq!(opened(&pair), []);
    pair.assert_healthy();
}
