//! Channels between two honest ends, over a pipe of single bytes.

use super::*;

#[test]
fn bytes_go_both_ways_and_the_result_ends_the_channel() {
    let mut pair = Pair::new(1);
    let channel = pair.open();
    let question = Bytes::from_static(b"question");
    pair.above
        .connection
        .send(channel, Stream::Out, question.clone())
        .expect("there is room");
    pair.above.connection.finish(channel).expect("once");
    pair.settle();
    let asked = Event::Data {
        channel,
        stream: Stream::Out,
        data: question,
    };
    assert_eq!(pair.below.drain(), [asked, Event::Finished(channel)]);

    let words = Bytes::from_static(b"words");
    pair.below
        .connection
        .send(channel, Stream::Err, words.clone())
        .expect("there is room");
    pair.below
        .connection
        .give_result(channel, empty_map())
        .expect("once");
    assert_eq!(pair.below.connection.channels(), 1, "until the result has left");
    pair.settle();
    let answered = Event::Data {
        channel,
        stream: Stream::Err,
        data: words,
    };
    assert_eq!(
        pair.above.drain(),
        [answered, Event::Result(channel, empty_map())]
    );
    assert_eq!(
        pair.above.connection.channels() + pair.below.connection.channels(),
        0
    );
    assert_eq!(
        pair.above.connection.refused() + pair.below.connection.refused(),
        0
    );
}

#[test]
fn a_reset_overtakes_data_and_what_is_late_is_no_fault() {
    for from_above in [true, false] {
        let mut pair = Pair::new(1000);
        let channel = pair.open();
        for side in [&mut pair.above, &mut pair.below] {
            side.connection
                .send(channel, Stream::Out, data(MAX_UNSENT))
                .expect("there is room");
        }
        pair.step();
        let reset = Reset {
            code: ResetCode::Cancelled,
            text: "Ctrl-C".to_owned(),
        };
        let (one, other) = if from_above {
            (&mut pair.above, &mut pair.below)
        } else {
            (&mut pair.below, &mut pair.above)
        };
        one.connection.reset(channel, &reset).expect("it is open");
        assert_eq!(one.connection.reset(channel, &reset), Err(Misuse::UnknownChannel));
        let _ = other.drain();
        pair.settle();
        let other = if from_above {
            &mut pair.below
        } else {
            &mut pair.above
        };
        assert_eq!(other.drain().last(), Some(&Event::Reset(channel, reset)));
        assert_eq!(
            pair.above.connection.channels() + pair.below.connection.channels(),
            0
        );
        assert_eq!(
            pair.above.connection.refused() + pair.below.connection.refused(),
            0
        );
    }
}

#[test]
fn who_does_not_consume_gets_no_more_than_the_window() {
    let mut pair = Pair::new(1000);
    let channel = pair.open();
    pair.below
        .connection
        .send(channel, Stream::Out, data(MAX_UNSENT))
        .expect("there is room");
    pair.settle();
    assert_eq!(bytes_of(&pair.above.drain()), INITIAL_CREDIT as usize);
    pair.above.connection.consume(channel, 1000);
    pair.settle();
    assert_eq!(bytes_of(&pair.above.drain()), 0, "small credit is saved up");
    pair.above.connection.consume(channel, 31_768);
    pair.settle();
    assert_eq!(bytes_of(&pair.above.drain()), 32_768);
}

#[test]
fn a_full_queue_says_when_it_has_room() {
    let mut pair = Pair::new(1000);
    let channel = pair.open();
    pair.below
        .connection
        .send(channel, Stream::Out, data(MAX_UNSENT))
        .expect("there is room");
    assert_eq!(pair.below.connection.room(channel), 0);
    assert_eq!(
        pair.below.connection.send(channel, Stream::Out, data(1)),
        Err(Misuse::QueueFull)
    );
    let (mut came, mut was_told) = (0, false);
    while came < MAX_UNSENT {
        pair.settle();
        let new = bytes_of(&pair.above.drain());
        assert!(new > 0, "stuck after {came} bytes");
        came += new;
        pair.above.connection.consume(channel, new);
        was_told |= pair.below.drain() == [Event::Writable(channel)];
    }
    assert!(was_told);
    assert_eq!(pair.below.connection.room(channel), MAX_UNSENT);
}

/// All that one side sends now: channel, kind and length of each frame.
fn frames(pair: &mut Pair) -> Vec<(u32, Kind, usize)> {
    let mut wire = BytesMut::new();
    loop {
        let some = pair.below.put_out(pair.now, usize::MAX);
        if some.is_empty() {
            break;
        }
        wire.extend_from_slice(&some);
    }
    std::iter::from_fn(|| Frame::take(&mut wire).expect("we made it"))
        .map(|frame| (frame.header.channel, frame.header.kind, frame.body.len()))
        .collect()
}

#[test]
fn a_call_waits_for_one_turn_of_a_bulk_and_no_more() {
    let mut pair = Pair::new(1000);
    let (bulk, call) = (pair.open(), pair.open());
    pair.below
        .connection
        .send(bulk, Stream::Out, data(MAX_UNSENT))
        .expect("there is room");
    pair.below
        .connection
        .send(call, Stream::Out, data(10))
        .expect("there is room");
    pair.below
        .connection
        .give_result(call, empty_map())
        .expect("once");
    let (bulk, call) = (bulk.number, call.number);
    assert_eq!(
        frames(&mut pair),
        [
            (bulk, Kind::Data, 32_768),
            (call, Kind::Data, 10),
            (call, Kind::Result, 1),
            (bulk, Kind::Data, 32_768),
        ]
    );
}

#[test]
fn channels_take_turns_of_one_quantum() {
    let mut pair = Pair::new(1000);
    let channels: Vec<ChannelId> = (0..3).map(|_| pair.open()).collect();
    for channel in &channels {
        pair.below
            .connection
            .send(*channel, Stream::Out, data(60_000))
            .expect("there is room");
    }
    let order: Vec<(u32, usize)> = frames(&mut pair).iter().map(|frame| (frame.0, frame.2)).collect();
    assert_eq!(
        order,
        [
            (1, 32_768),
            (2, 32_768),
            (3, 32_768),
            (1, 27_232),
            (2, 27_232),
            (3, 27_232)
        ]
    );
}

#[test]
fn no_more_channels_than_the_peer_takes() {
    let below = Config {
        max_channels: 2,
        ..config(Role::Below)
    };
    let mut pair = Pair::cold(config(Role::Above), below);
    // Before the hello nobody knows: the third is refused by the other side.
    let open = |pair: &mut Pair| pair.above.connection.open(NodeId::NEIGHBOUR, "echo", empty_map());
    let ids: Vec<ChannelId> = (0..3)
        .map(|_| open(&mut pair).expect("nothing is known yet"))
        .collect();
    pair.settle();
    assert_eq!(
        pair.above.drain().last(),
        Some(&reset_with(ResetCode::TooMany, ids[2]))
    );
    assert_eq!(open(&mut pair), Err(Misuse::TooManyChannels));
    pair.above
        .connection
        .reset(ids[0], &Reset::new(ResetCode::Cancelled))
        .expect("it is open");
    assert_eq!(
        open(&mut pair).map(|id| id.number),
        Ok(4),
        "numbers are not used again"
    );
    pair.settle();
    assert_eq!(pair.below.connection.channels(), 2);
}

#[test]
fn misuse_is_said_and_does_nothing() {
    let mut pair = Pair::new(1);
    let channel = pair.open();
    let (above, below) = (&mut pair.above.connection, &mut pair.below.connection);
    let node = NodeId::NEIGHBOUR;
    let not_cbor = Bytes::from_static(b"\xff");
    let unsupported = Misuse::Body(BodyError::Unsupported);
    assert_eq!(above.open(node, "echo", not_cbor.clone()), Err(unsupported));
    assert_eq!(below.give_result(channel, not_cbor), Err(unsupported));
    assert_eq!(above.give_result(channel, empty_map()), Err(Misuse::WrongSide));
    let unknown = ChannelId { node, number: 77 };
    assert_eq!(
        above.send(unknown, Stream::Out, data(1)),
        Err(Misuse::UnknownChannel)
    );
    assert_eq!(above.room(unknown), 0);
    assert_eq!(above.finish(channel), Ok(()));
    assert_eq!(above.finish(channel), Err(Misuse::Finished));
    assert_eq!(above.send(channel, Stream::Out, data(1)), Err(Misuse::Finished));
    assert_eq!(below.give_result(channel, empty_map()), Ok(()));
    assert_eq!(below.give_result(channel, empty_map()), Err(Misuse::Finished));
    pair.settle();
    assert_eq!(pair.above.result, Ok(()));
    assert_eq!(pair.below.result, Ok(()));
}
