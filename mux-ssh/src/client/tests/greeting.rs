//! What a server says where its identification should be.

use std::time::Instant;

use bytes::BytesMut;
use mux_proto::Protocol as _;

use crate::client::{Client, ClientConfig, Event};
use crate::transport::{MAX_BANNER_LINE, MAX_GREETING};

/// What is told of these pieces, in the order in which they come, before the server hangs up.
fn greeting(pieces: &[&[u8]]) -> Vec<String> {
    let told = told(pieces, |client, now| {
        let _ = client.handle_eof(now);
    });
    assert_eq!(
        told,
        self::told(pieces, |client, _| client.connection_lost()),
        "the same after a reset"
    );
    told
}

fn told(pieces: &[&[u8]], end: fn(&mut Client, Instant)) -> Vec<String> {
    let (now, mut input) = (Instant::now(), BytesMut::new());
    let mut client = Client::new(ClientConfig::default());
    let mut told = Vec::new();
    for piece in pieces {
        input.extend_from_slice(piece);
        // A refusal is told as an error as well, which is not the point here.
        let _ = client.handle_input(now, &mut input);
        told.extend(std::iter::from_fn(|| client.poll_event()));
    }
    end(&mut client, now);
    told.extend(std::iter::from_fn(|| client.poll_event()));
    let greetings = told.into_iter().filter_map(|event| match event {
        Event::Greeting(text) => Some(text),
        _ => None,
    });
    greetings.collect()
}

#[test]
fn lines_in_place_of_the_identification_are_told_in_part() {
    assert_eq!(greeting(&[]), [""; 0]);
    assert_eq!(greeting(&[b"SSH-2.0-x\r\n"]), [""; 0]);
    assert_eq!(greeting(&[b"Exceeded MaxStartups\r\n"]), ["Exceeded MaxStartups"]);
    assert_eq!(greeting(&[b"one\ntw", b"o\nthr", b"ee"]), ["one", "two", "three"]);
    assert_eq!(greeting(&[b"one\r\n", b"SSH-2.0-x\r\n"]), ["one"]);
    assert_eq!(greeting(&[b"SSH-1.5-x\r\n"]), ["SSH-1.5-x"]);
    assert_eq!(greeting(&[b"SSH-2.0-never"]), ["SSH-2.0-never"]);
    assert_eq!(greeting(&[b"\xff\x1b\r\n"]), ["\u{fffd}\u{1b}"]);
    let long = vec![b'x'; 2 * MAX_GREETING];
    let told: usize = greeting(&[&long, b"\n", &long, b"\n"])
        .iter()
        .map(String::len)
        .sum();
    assert_eq!(told, MAX_GREETING);
    let told: usize = greeting(&[&vec![b'x'; 2 * MAX_BANNER_LINE]])
        .iter()
        .map(String::len)
        .sum();
    assert_eq!(told, MAX_GREETING);
}
