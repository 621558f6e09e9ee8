//! How a server misbehaves, as values: a [`Plan`] is a list of steps, each an act at a point of the server's own
//! output. The plan decides what leaves instead of, before or after a packet; it never looks at what the client
//! sends, because every point that matters to a client is one at which it waits for bytes of the server.

use std::ops::ControlFlow;

use bytes::Bytes;

/// A kind of thing that the server sends, whatever its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The identification line (RFC 4253 §4.2); not a packet.
    Ident,
    /// `SSH_MSG_KEXINIT`. The second one belongs to the first rekey.
    KexInit,
    /// `SSH_MSG_KEX_ECDH_REPLY` and its namesakes.
    KexReply,
    /// `SSH_MSG_NEWKEYS`.
    NewKeys,
    /// `SSH_MSG_EXT_INFO`.
    ExtInfo,
    /// `SSH_MSG_SERVICE_ACCEPT`.
    ServiceAccept,
    /// `SSH_MSG_USERAUTH_PK_OK`.
    PkOk,
    /// `SSH_MSG_USERAUTH_FAILURE`.
    AuthFailure,
    /// `SSH_MSG_USERAUTH_SUCCESS`.
    AuthSuccess,
    /// `SSH_MSG_CHANNEL_OPEN_CONFIRMATION`.
    OpenConfirmation,
    /// `SSH_MSG_CHANNEL_OPEN_FAILURE`.
    OpenFailure,
    /// `SSH_MSG_CHANNEL_SUCCESS`, which answers an exec.
    ChannelSuccess,
    /// `SSH_MSG_CHANNEL_WINDOW_ADJUST`.
    WindowAdjust,
    /// `SSH_MSG_CHANNEL_DATA` or `SSH_MSG_CHANNEL_EXTENDED_DATA`.
    Output,
    /// `SSH_MSG_CHANNEL_REQUEST`: exit-status or exit-signal.
    ExitReport,
    /// `SSH_MSG_CHANNEL_EOF`.
    Eof,
    /// `SSH_MSG_CHANNEL_CLOSE`.
    ChannelClose,
    /// Everything else.
    Other,
}

impl Moment {
    /// The moment that a packet with this message number is.
    #[must_use]
    pub fn of_message(number: u8) -> Self {
        match number {
            6 => Self::ServiceAccept,
            7 => Self::ExtInfo,
            20 => Self::KexInit,
            21 => Self::NewKeys,
            31 => Self::KexReply,
            51 => Self::AuthFailure,
            52 => Self::AuthSuccess,
            60 => Self::PkOk,
            91 => Self::OpenConfirmation,
            92 => Self::OpenFailure,
            93 => Self::WindowAdjust,
            94 | 95 => Self::Output,
            96 => Self::Eof,
            97 => Self::ChannelClose,
            98 => Self::ExitReport,
            99 => Self::ChannelSuccess,
            _ => Self::Other,
        }
    }
}

/// When a step is due. Counts start at 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Before the given occurrence of this moment leaves.
    Before(Moment, u32),
    /// Directly behind it, in the same write.
    After(Moment, u32),
    /// Behind the data packet with which this many bytes of output have left.
    OutputBytes(u64),
}

/// What happens at a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// These bytes leave as they are, outside of any packet.
    Raw(Bytes),
    /// A packet with this payload leaves under the keys of that point, whatever the phase forbids.
    Packet(Bytes),
    /// The same payload this many times, made as the client takes it: a flood costs the server no memory.
    Flood {
        /// Payload of each packet.
        payload: Bytes,
        /// How many of them.
        times: u32,
    },
    /// The packet (or identification) at a [`Point::Before`] does not leave; its sequence number is not used up.
    Drop,
    /// The packet at a [`Point::Before`] is encrypted and then lost on its way: its sequence number is used up.
    Lose,
    /// Another payload leaves in place of the one at a [`Point::Before`].
    Replace(Bytes),
    /// Flips bits of the payload at a [`Point::Before`], before it is encrypted.
    Patch {
        /// Which byte, counted from the end: 0 is the last one. A signature or a tag is at the end.
        from_end: usize,
        /// The bits.
        mask: u8,
    },
    /// Flips one bit of the packet at a [`Point::Before`] after it was encrypted; counted modulo its length.
    FlipBit(usize),
    /// Nothing leaves any more. The server goes on reading.
    Stall,
    /// Nothing leaves any more and nothing is read any more.
    NeverRead,
    /// What is queued leaves, then both directions close.
    Close,
    /// What is queued leaves, then the sending direction closes.
    HalfClose,
}

/// One act at one point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// When.
    pub at: Point,
    /// What.
    pub act: Act,
}

/// What a server does beside its duty. Empty: nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The steps; several may share a point and then happen in this order.
    pub steps: Vec<Step>,
}

impl Plan {
    /// A plan without steps: the server behaves.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The plan with one more step.
    #[must_use]
    pub fn with(mut self, at: Point, act: Act) -> Self {
        self.steps.push(Step { at, act });
        self
    }
}

/// What leaves in place of one packet, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Emission {
    /// Outside of any packet.
    Raw(Bytes),
    /// A packet with this payload.
    Packet(Bytes),
    /// The packet itself, with these changes.
    Itself {
        replaced: Option<Bytes>,
        flip: Option<usize>,
        lost: bool,
    },
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
            replaced: None,
            flip: None,
            dropped: false,
            lost: false,
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
                Act::Lose => leaving.lost = true,
                Act::Replace(payload) => leaving.replaced = Some(payload),
                Act::Patch { from_end, mask } => leaving.patch(from_end, mask),
                Act::FlipBit(bit) => leaving.flip = Some(bit),
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
    replaced: Option<Bytes>,
    flip: Option<usize>,
    dropped: bool,
    lost: bool,
}

impl Leaving<'_> {
    fn itself(&mut self) {
        if !self.dropped {
            self.list.push(Emission::Itself {
                replaced: self.replaced.take(),
                flip: self.flip.take(),
                lost: self.lost,
            });
        }
    }

    fn patch(&mut self, from_end: usize, mask: u8) {
        let mut patched = self
            .replaced
            .take()
            .map_or_else(|| self.payload.to_vec(), |bytes| bytes.to_vec());
        if let Some(byte) = patched.iter_mut().rev().nth(from_end) {
            *byte ^= mask;
        }
        self.replaced = Some(patched.into());
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

    const ITSELF: Emission = Emission::Itself {
        replaced: None,
        flip: None,
        lost: false,
    };

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
            Emission::Itself {
                replaced: Some(Bytes::from_static(b"x")),
                flip: None,
                lost: false,
            },
            Emission::Itself {
                replaced: Some(Bytes::from_static(b"\x1f\x81\x02")),
                flip: Some(7),
                lost: false,
            },
        ];
        check(plan, &[b"\x15", b"\x60", b"\x1f\x01\x02"], &changed);
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
