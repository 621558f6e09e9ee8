//! A plan that is being carried out: what leaves instead of, before or after each packet. Decides which steps are due
//! and what becomes of a packet; never encrypts one.

use std::ops::ControlFlow;

use bytes::Bytes;

use super::plan::{Act, Moment, Plan, Point, Step};

/// What leaves in place of one packet, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Emission {
    /// Outside of any packet.
    Raw(Bytes),
    /// A packet with this payload.
    Packet(Bytes),
    /// The packet itself, with these changes.
    Itself(Changes),
}

/// What is done to one packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Another payload.
    pub(crate) replaced: Option<Bytes>,
    /// What the length field says.
    pub(crate) length: Option<u32>,
    /// What the padding field says.
    pub(crate) padding: Option<u8>,
    /// A bit that is flipped behind the encryption.
    pub(crate) flip: Option<usize>,
    /// How many of its bytes leave.
    pub(crate) cut: Option<usize>,
    /// It leaves twice.
    pub(crate) replay: bool,
}

/// A running plan. The transport asks it about every packet that is about to be sealed.
#[derive(Debug)]
pub(crate) struct Tap {
    pending: Vec<Step>,
    output: u64,
    flood: Option<(Bytes, u32)>,
    silence: Option<Silence>,
}

/// Why nothing leaves any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    Stall,
    NeverRead,
    Close,
    HalfClose,
}

impl Tap {
    /// `None` for an empty plan, so that a server that behaves pays nothing.
    pub(crate) fn new(plan: Plan) -> Option<Box<Self>> {
        let running = Self {
            pending: plan.steps,
            output: 0,
            flood: None,
            silence: None,
        };
        (!running.pending.is_empty()).then(|| Box::new(running))
    }

    /// Whether and why nothing leaves any more.
    pub(crate) fn silence(&self) -> Option<Silence> {
        self.silence
    }

    /// Whether a flood is under way.
    pub(crate) fn is_flooding(&self) -> bool {
        self.flood.is_some() && self.silence.is_none()
    }

    /// The next packet of a flood that is under way. While there is one, nothing else should leave.
    pub(crate) fn flood(&mut self) -> Option<Bytes> {
        if self.silence.is_some() {
            return None;
        }
        let (payload, times) = self.flood.as_mut()?;
        let next = payload.clone();
        *times -= 1;
        if *times == 0 {
            self.flood = None;
        }
        Some(next)
    }

    /// What leaves instead of the identification line.
    pub(crate) fn ident(&mut self, line: &[u8]) -> Vec<Emission> {
        self.emissions(Moment::Ident, line, 0)
    }

    /// What leaves instead of the packet with this payload.
    pub(crate) fn packet(&mut self, payload: &[u8]) -> Vec<Emission> {
        let moment = Moment::of_message(payload.first().copied().unwrap_or(0));
        let output = if moment == Moment::Output {
            output_len(payload)
        } else {
            0
        };
        self.emissions(moment, payload, output)
    }

    fn emissions(&mut self, moment: Moment, payload: &[u8], output: u64) -> Vec<Emission> {
        let mut leaving = Leaving {
            payload,
            list: Vec::new(),
            changes: Changes::default(),
            dropped: false,
        };
        if self.silence.is_some() {
            return leaving.list;
        }
        let before = self.due(|point| match point {
            Point::Before(at, nth) => at == &moment && count_down(nth),
            Point::After(..) | Point::OutputBytes(_) => false,
        });
        if self.perform(before, &mut leaving).is_break() {
            return leaving.list;
        }
        leaving.itself();
        self.output += output;
        let sent = self.output;
        let after = self.due(|point| match point {
            Point::Before(..) => false,
            Point::After(at, nth) => at == &moment && count_down(nth),
            Point::OutputBytes(bytes) => sent >= *bytes,
        });
        // After the packet there is nothing left to change; a step that tries is without effect.
        let _ = self.perform(after, &mut leaving);
        leaving.list
    }

    fn due(&mut self, mut is_due: impl FnMut(&mut Point) -> bool) -> Vec<Act> {
        self.pending
            .extract_if(.., |step| is_due(&mut step.at))
            .map(|step| step.act)
            .collect()
    }

    fn perform(&mut self, acts: Vec<Act>, leaving: &mut Leaving<'_>) -> ControlFlow<()> {
        for act in acts {
            match act {
                Act::Raw(bytes) => leaving.list.push(Emission::Raw(bytes)),
                Act::Packet(payload) => leaving.list.push(Emission::Packet(payload)),
                Act::Flood { payload, times } => self.flood = (times > 0).then_some((payload, times)),
                Act::Drop => leaving.dropped = true,
                Act::Lose => leaving.changes.cut = Some(0),
                Act::Replace(payload) => leaving.changes.replaced = Some(payload),
                Act::Patch { from_end, mask } => leaving.patch(from_end, mask),
                Act::FlipBit(bit) => leaving.changes.flip = Some(bit),
                Act::Length(length) => leaving.changes.length = Some(length),
                Act::Padding(padding) => leaving.changes.padding = Some(padding),
                Act::Replay => leaving.changes.replay = true,
                Act::Cut(bytes) => {
                    leaving.changes.cut = Some(bytes);
                    leaving.itself();
                    return self.fall_silent(Silence::Stall);
                }
                Act::Stall => return self.fall_silent(Silence::Stall),
                Act::NeverRead => return self.fall_silent(Silence::NeverRead),
                Act::Close => return self.fall_silent(Silence::Close),
                Act::HalfClose => return self.fall_silent(Silence::HalfClose),
            }
        }
        ControlFlow::Continue(())
    }

    fn fall_silent(&mut self, silence: Silence) -> ControlFlow<()> {
        self.silence = Some(silence);
        ControlFlow::Break(())
    }
}

/// One packet on its way through the steps.
struct Leaving<'a> {
    payload: &'a [u8],
    list: Vec<Emission>,
    changes: Changes,
    dropped: bool,
}

impl Leaving<'_> {
    fn itself(&mut self) {
        if !self.dropped {
            self.list
                .push(Emission::Itself(std::mem::take(&mut self.changes)));
        }
    }

    fn patch(&mut self, from_end: usize, mask: u8) {
        let mut patched = self
            .changes
            .replaced
            .take()
            .map_or_else(|| self.payload.to_vec(), |bytes| bytes.to_vec());
        if let Some(byte) = patched.iter_mut().rev().nth(from_end) {
            *byte ^= mask;
        }
        self.changes.replaced = Some(patched.into());
    }
}

/// Counts one occurrence; true on the one that was meant.
fn count_down(nth: &mut u32) -> bool {
    *nth = nth.saturating_sub(1);
    *nth == 0
}

/// Bytes of output in a data packet: what follows number, channel and length, and the type in extended data.
fn output_len(payload: &[u8]) -> u64 {
    let header = if payload.first() == Some(&95) { 13 } else { 9 };
    payload.len().saturating_sub(header) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(plan: Plan, packets: &[&'static [u8]], expected: &[Emission]) {
        let mut tap = Tap::new(plan).expect("the plan has steps");
        let left: Vec<Emission> = packets.iter().flat_map(|payload| tap.packet(payload)).collect();
        assert_eq!(left, expected);
    }

    const ITSELF: Emission = Emission::Itself(Changes {
        replaced: None,
        length: None,
        padding: None,
        flip: None,
        cut: None,
        replay: false,
    });

    #[test]
    fn an_empty_plan_costs_nothing() {
        assert!(Tap::new(Plan::new()).is_none());
    }

    #[test]
    fn inserts_before_and_after_the_nth_occurrence() {
        let plan = Plan::new()
            .with(
                Point::Before(Moment::KexInit, 2),
                Act::Raw(Bytes::from_static(b"raw")),
            )
            .with(
                Point::After(Moment::KexInit, 2),
                Act::Packet(Bytes::from_static(b"\x02")),
            );
        let inserted = [
            ITSELF,
            ITSELF,
            Emission::Raw(Bytes::from_static(b"raw")),
            ITSELF,
            Emission::Packet(Bytes::from_static(b"\x02")),
            ITSELF,
        ];
        check(plan, &[b"\x14", b"\x15", b"\x14", b"\x14"], &inserted);
    }

    #[test]
    fn drops_replaces_and_patches_a_packet() {
        let plan = Plan::new()
            .with(Point::Before(Moment::NewKeys, 1), Act::Drop)
            .with(
                Point::Before(Moment::Eof, 1),
                Act::Replace(Bytes::from_static(b"x")),
            )
            .with(
                Point::Before(Moment::KexReply, 1),
                Act::Patch {
                    from_end: 1,
                    mask: 0x80,
                },
            )
            .with(Point::Before(Moment::KexReply, 1), Act::FlipBit(7));
        let changed = [
            Emission::Itself(Changes {
                replaced: Some(Bytes::from_static(b"x")),
                ..Changes::default()
            }),
            Emission::Itself(Changes {
                replaced: Some(Bytes::from_static(b"\x1f\x81\x02")),
                flip: Some(7),
                ..Changes::default()
            }),
        ];
        check(plan, &[b"\x15", b"\x60", b"\x1f\x01\x02"], &changed);
    }

    #[test]
    fn nothing_leaves_behind_a_packet_that_is_cut() {
        let plan = Plan::new().with(Point::Before(Moment::Eof, 1), Act::Cut(3));
        let cut = Emission::Itself(Changes {
            cut: Some(3),
            ..Changes::default()
        });
        check(plan, &[b"\x15", b"\x60", b"\x61"], &[ITSELF, cut]);
    }

    #[test]
    fn stalls_in_the_middle_of_output() {
        let plan = Plan::new().with(Point::OutputBytes(3), Act::Stall);
        let data = b"\x5e\0\0\0\0\0\0\0\x02ab";
        check(plan, &[data, data, data], &[ITSELF, ITSELF]);
    }

    #[test]
    fn a_flood_ends_after_its_count() {
        let flood = Act::Flood {
            payload: Bytes::from_static(b"\x02"),
            times: 2,
        };
        let mut tap =
            Tap::new(Plan::new().with(Point::After(Moment::NewKeys, 1), flood)).expect("the plan has steps");
        assert_eq!(tap.flood(), None);
        assert_eq!(tap.packet(b"\x15"), [ITSELF]);
        assert_eq!(std::iter::from_fn(|| tap.flood()).count(), 2);
    }
}
