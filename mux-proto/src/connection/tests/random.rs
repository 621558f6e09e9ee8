//! Seeded random operations on both ends, over a pipe of random pieces, against a model: no byte is lost, added or moved,
//! nothing exceeds its bound, and whatever the order, everything ends.

use std::collections::BTreeMap;

use super::*;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % bound
    }
}

/// One direction of a channel: what went in, what came out, whether an end was said and heard.
#[derive(Default)]
struct Flow {
    sent: usize,
    came: usize,
    unconsumed: usize,
    is_finished: bool,
    end_came: bool,
    is_over: bool,
}

/// The byte at each place of a channel, the same at both ends.
fn byte_at(channel: ChannelId, place: usize) -> u8 {
    u8::try_from((place * 31 + channel.number as usize * 7) % 251).expect("below 256")
}

struct World {
    random: Random,
    pair: Pair,
    /// By channel and whether it goes down.
    flows: BTreeMap<(ChannelId, bool), Flow>,
    results: usize,
    given: usize,
}

impl World {
    fn side(&mut self, is_above: bool) -> &mut Side {
        if is_above {
            &mut self.pair.above
        } else {
            &mut self.pair.below
        }
    }

    fn any(&mut self) -> Option<(ChannelId, bool)> {
        let keys: Vec<_> = self
            .flows
            .iter()
            .filter(|flow| !flow.1.is_over)
            .map(|flow| *flow.0)
            .collect();
        (!keys.is_empty()).then(|| keys[self.random.below(keys.len())])
    }

    fn act(&mut self) {
        let choice = self.random.below(20);
        if choice == 0 {
            let opened = self
                .pair
                .above
                .connection
                .open(NodeId::NEIGHBOUR, "echo", empty_map());
            let id = opened.expect("fewer than the limit are open");
            self.flows.insert((id, true), Flow::default());
            self.flows.insert((id, false), Flow::default());
        }
        let Some((id, down)) = self.any() else { return };
        match choice {
            1..=8 => self.send(id, down),
            9..=14 => self.consume(id, down),
            15 => self.finish(id, down),
            16 => self.end(id, down),
            17 => self.pair.piece = 1 + self.random.below(40_000),
            _ => {
                self.pair.step();
                self.hear();
            }
        }
    }

    fn send(&mut self, id: ChannelId, down: bool) {
        let len = [1, 100, 5000, 100_000][self.random.below(4)];
        let room = self.side(down).connection.room(id);
        let flow = self.flows.get_mut(&(id, down)).expect("it is one of ours");
        let len = len.min(room);
        let data: Vec<u8> = (flow.sent..flow.sent + len)
            .map(|place| byte_at(id, place))
            .collect();
        let stream = if self.random.below(2) == 0 {
            Stream::Out
        } else {
            Stream::Err
        };
        if self.side(down).connection.send(id, stream, data.into()).is_ok() {
            self.flows.get_mut(&(id, down)).expect("it is one of ours").sent += len;
        }
    }

    fn consume(&mut self, id: ChannelId, down: bool) {
        let flow = self.flows.get_mut(&(id, down)).expect("it is one of ours");
        let count = std::mem::take(&mut flow.unconsumed);
        self.side(!down).connection.consume(id, count);
    }

    fn finish(&mut self, id: ChannelId, down: bool) {
        if self.side(down).connection.finish(id).is_ok() {
            self.flows
                .get_mut(&(id, down))
                .expect("it is one of ours")
                .is_finished = true;
        }
    }

    /// A reset, or a result.
    fn end(&mut self, id: ChannelId, is_above: bool) {
        if self.random.below(3) > 0 {
            if self.pair.below.connection.give_result(id, empty_map()).is_ok() {
                self.flows
                    .get_mut(&(id, false))
                    .expect("it is one of ours")
                    .is_finished = true;
                self.given += 1;
            }
        } else if self
            .side(is_above)
            .connection
            .reset(id, &Reset::new(ResetCode::Cancelled))
            .is_ok()
        {
            self.over(id);
        }
    }

    fn over(&mut self, id: ChannelId) {
        for down in [true, false] {
            self.flows
                .get_mut(&(id, down))
                .expect("it is one of ours")
                .is_over = true;
        }
    }

    fn hear(&mut self) {
        for is_above in [true, false] {
            for event in self.side(is_above).drain() {
                self.hear_event(event, !is_above);
            }
        }
    }

    fn hear_event(&mut self, event: Event, down: bool) {
        match event {
            Event::Data { channel, data, .. } => {
                let flow = self
                    .flows
                    .get_mut(&(channel, down))
                    .expect("nothing comes unasked");
                assert!(!flow.end_came, "data after the end");
                for byte in &data {
                    assert_eq!(*byte, byte_at(channel, flow.came));
                    flow.came += 1;
                }
                flow.unconsumed += data.len();
                assert!(flow.unconsumed <= INITIAL_CREDIT as usize, "more than the window");
            }
            Event::Finished(channel) => {
                let flow = self
                    .flows
                    .get_mut(&(channel, down))
                    .expect("nothing comes unasked");
                assert!(
                    flow.is_finished && flow.came == flow.sent,
                    "an end before its time"
                );
                flow.end_came = true;
            }
            Event::Result(channel, _) => {
                let flow = &self.flows[&(channel, false)];
                assert_eq!(flow.came, flow.sent, "a result before the data");
                self.results += 1;
                self.over(channel);
            }
            Event::Reset(channel, reset) => {
                assert_eq!(reset.code, ResetCode::Cancelled);
                self.over(channel);
            }
            Event::Opened { .. } | Event::Writable(_) => {}
            Event::Hello(_) | Event::Route(_) | Event::Log(_) | Event::Goodbye(_) | Event::Transit(_) => {
                panic!("{event:?}")
            }
        }
    }

    /// Everybody consumes, everything is finished, until all is quiet.
    fn wind_up(&mut self) {
        self.pair.piece = self.pair.piece.max(1000);
        self.pair.settle();
        self.hear();
        let ids: Vec<ChannelId> = self.flows.keys().filter(|key| key.1).map(|key| key.0).collect();
        for &id in &ids {
            if !self.flows[&(id, false)].is_over
                && self.pair.below.connection.give_result(id, empty_map()).is_ok()
            {
                self.given += 1;
                self.flows
                    .get_mut(&(id, false))
                    .expect("it is one of ours")
                    .is_finished = true;
            }
        }
        loop {
            let moved = self.pair.step();
            self.hear();
            let keys: Vec<_> = self.flows.keys().copied().collect();
            for (id, down) in keys {
                self.consume(id, down);
            }
            if !moved && !self.pair.step() {
                return;
            }
        }
    }

    fn check(&self) {
        for side in [&self.pair.above, &self.pair.below] {
            assert_eq!(side.result, Ok(()));
            assert_eq!(side.connection.refused(), 0, "honest peers are never refused");
        }
    }
}

fn check(seed: u64) {
    let mut world = World {
        random: Random(seed),
        pair: Pair::new(1 + usize::try_from(seed).expect("it is small") * 37),
        flows: BTreeMap::new(),
        results: 0,
        given: 0,
    };
    for _ in 0..800 {
        world.act();
        world.check();
    }
    world.wind_up();
    world.check();
    assert_eq!(
        world.pair.above.connection.channels(),
        0,
        "seed {seed}: all ended above"
    );
    assert_eq!(
        world.pair.below.connection.channels(),
        0,
        "seed {seed}: all ended below"
    );
    assert!(world.results <= world.given);
    assert!(world.flows.len() > 10, "seed {seed}: the test did something");
}

#[test]
fn whatever_two_honest_ends_do_no_byte_is_lost_and_everything_ends() {
    for seed in 0..24 {
        check(seed);
    }
}
