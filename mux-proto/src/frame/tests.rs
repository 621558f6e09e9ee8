//! Golden frames are text files of hexadecimal: what a line says is in `golden/README.md`.

#![expect(clippy::indexing_slicing, reason = "a test fails by panicking")]

use super::*;

fn error_of(input: &[u8]) -> Option<Error> {
    // However the bytes are cut, the same is said about them, and as soon as it can be known.
    let whole = Frame::take(&mut BytesMut::from(input)).err();
    let mut given = BytesMut::new();
    for byte in input {
        given.extend_from_slice(&[*byte]);
        if let Err(error) = Frame::take(&mut given) {
            let seen = matches!(error, Error::Violation(Violation::Magic(_)));
            assert!(
                seen || Some(&error) == whole.as_ref(),
                "{error:?} in pieces, {whole:?} in one"
            );
            return whole;
        }
    }
    assert_eq!(whole, None, "said about the whole, and not about the pieces");
    None
}

fn header(kind: Kind) -> Header {
    let node = if kind.is_link() { 0 } else { 0x0102_0304 };
    Header {
        kind,
        flags: 0,
        destination: NodeId(node),
        source: NodeId(node * 2),
        channel: node * 3,
        len: 0,
    }
}

#[test]
fn a_header_is_twenty_bytes_in_network_order() {
    let header = Header {
        flags: FLAG_STDERR,
        len: 0x1234,
        ..header(Kind::Data)
    };
    let bytes = [
        0xf5, b'm', b'x', 1, 17, 1, 0x12, 0x34, 1, 2, 3, 4, 2, 4, 6, 8, 3, 6, 9, 12,
    ];
    assert_eq!(header.encode(), bytes);
    assert_eq!(Header::decode(&bytes), Ok(Some(header)));
}

#[test]
fn every_kind_goes_there_and_back_at_both_ends_of_its_length() {
    for &(kind, shortest, longest, flags) in KINDS {
        for len in [shortest, longest] {
            let body = Bytes::from(vec![7; len]);
            let frame = Frame::new(
                Header {
                    flags,
                    ..header(kind)
                },
                body,
            );
            let mut bytes = BytesMut::from(&frame.header.encode()[..]);
            bytes.extend_from_slice(&frame.body);
            bytes.extend_from_slice(b"next");
            assert_eq!(Frame::take(&mut bytes), Ok(Some(frame)));
            assert_eq!(bytes, "next");
        }
    }
}

#[test]
fn a_frame_of_which_a_byte_is_missing_waits() {
    let frame = Frame::new(header(Kind::Data), Bytes::from_static(b"abc"));
    let mut bytes = frame.header.encode().to_vec();
    bytes.extend_from_slice(b"abc");
    for len in 0..bytes.len() {
        let mut input = BytesMut::from(&bytes[..len]);
        assert_eq!(Frame::take(&mut input), Ok(None));
        assert_eq!(input, bytes[..len], "stays for the next call");
    }
}

#[test]
fn what_is_no_frame_is_shown_escaped() {
    let error = error_of(b"bash: warning: \x1b[1mno\r\n").expect("it is no frame");
    assert_eq!(
        error.to_string(),
        r#""bash: warning: \x1b[1mno\r\n" came where a frame should begin: does another program write to this stream?"#
    );
    let long = error_of(&[b'x'; 1000]);
    assert_eq!(long, Some(Violation::Magic(Seen::new(&[b'x'; Seen::MAX])).into()));
    assert!(error_of(b"\xf5mux 1\n").is_some(), "the third byte counts too");
}

#[test]
fn another_version_names_both() {
    let error = error_of(b"\xf5mx\x02").expect("before the header is complete");
    assert_eq!(error, Incompatible::Version { theirs: 2 }.into());
    assert!(error.to_string().contains("version 2"), "{error}");
    assert!(error.to_string().contains("this side 1"), "{error}");
}

#[test]
fn a_length_that_its_kind_cannot_have_is_refused_before_the_body_comes() {
    for &(kind, shortest, longest, _) in KINDS {
        let too_long = Header {
            len: longest + 1,
            ..header(kind)
        };
        let len = longest + 1;
        assert_eq!(
            error_of(&too_long.encode()),
            Some(Violation::TooLong { kind, len }.into())
        );
        if let Some(len) = shortest.checked_sub(1) {
            let too_short = Header { len, ..header(kind) };
            assert_eq!(
                error_of(&too_short.encode()),
                Some(Violation::TooShort { kind, len }.into())
            );
        }
    }
}

#[test]
fn flags_and_kinds_that_nobody_knows_are_refused() {
    for &(kind, shortest, _, allowed) in KINDS {
        let flags = !allowed;
        let bad = Header {
            flags,
            len: shortest,
            ..header(kind)
        };
        assert_eq!(
            error_of(&bad.encode()),
            Some(Violation::Flags { kind, flags }.into())
        );
    }
    for number in 0..=u8::MAX {
        let mut bytes = header(Kind::Finish).encode();
        bytes[4] = number;
        let is_known = KINDS.iter().any(|row| row.0.number() == number);
        let error = error_of(&bytes);
        assert_eq!(
            error == Some(Violation::Kind(number).into()),
            !is_known,
            "{number}"
        );
    }
}

#[test]
fn a_frame_about_the_link_names_nobody() {
    for &(kind, len, _, _) in KINDS.iter().filter(|row| row.0.is_link()) {
        let clean = Header::link(kind, len);
        let node = NodeId(1);
        for bad in [
            Header {
                destination: node,
                ..clean
            },
            Header {
                source: node,
                ..clean
            },
            Header { channel: 1, ..clean },
        ] {
            assert_eq!(error_of(&bad.encode()), Some(Violation::Addressed(kind).into()));
        }
    }
}

#[test]
fn a_small_body_does_not_keep_the_read_buffer_alive() {
    let mut scratch = BytesMut::with_capacity(64 * 1024);
    scratch.extend_from_slice(
        &Header {
            len: 3,
            ..header(Kind::Data)
        }
        .encode(),
    );
    scratch.extend_from_slice(b"abc");
    let frame = Frame::take(&mut scratch)
        .expect("it is a frame")
        .expect("complete");
    assert!(scratch.try_reclaim(64 * 1024 - 23), "the body is a copy");
    drop(frame);
}
