//! A channel between two other nodes, as a relay sees it: headers and credit. Decides whether a frame fits what came
//! before; never where it goes.

use mux_proto::body::ResetCode;
use mux_proto::connection::{FlowId, INITIAL_CREDIT, MAX_CREDIT};
use mux_proto::frame::{Frame, Kind, NodeId};

use super::{Ended, Opened};

/// The direction of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Down,
    Up,
}

/// One direction.
#[derive(Clone, Copy, Debug)]
struct Half {
    /// Bytes that its sender may still send. What waits here is never more than was granted.
    credit: u32,
    is_finished: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Passage<L> {
    /// The link that its opening came in on.
    pub(super) above: L,
    pub(super) below: L,
    /// The node at its lower end.
    pub(super) far: NodeId,
    down: Half,
    up: Half,
}

impl<L: Copy> Passage<L> {
    pub(super) fn new(above: L, below: L, far: NodeId) -> Self {
        let half = Half {
            credit: INITIAL_CREDIT,
            is_finished: false,
        };
        Self {
            above,
            below,
            far,
            down: half,
            up: half,
        }
    }

    /// Takes a frame into account. `true` if it ends the channel.
    pub(super) fn take(&mut self, way: Way, frame: &Frame) -> Result<bool, ResetCode> {
        let (this, back) = match way {
            Way::Down => (&mut self.down, &mut self.up),
            Way::Up => (&mut self.up, &mut self.down),
        };
        match frame.header.kind {
            Kind::Data => this.send(frame.body.len())?,
            Kind::Credit => back.grant(&frame.body)?,
            Kind::Finish if this.is_finished => return Err(ResetCode::AfterFinish),
            Kind::Finish => this.is_finished = true,
            Kind::Result if way == Way::Down => return Err(ResetCode::NotAllowed),
            Kind::Result | Kind::Reset => return Ok(true),
            Kind::Open | Kind::Hello | Kind::Ping | Kind::Pong | Kind::Route | Kind::Log | Kind::Goodbye => {}
        }
        Ok(false)
    }

    pub(super) fn ended(self, opened: Opened) -> Ended<L> {
        let up = FlowId {
            destination: opened.opener,
            source: self.far,
            number: opened.number,
        };
        Ended {
            above: self.above,
            below: self.below,
            up,
        }
    }
}

impl Half {
    fn send(&mut self, len: usize) -> Result<(), ResetCode> {
        if self.is_finished {
            return Err(ResetCode::AfterFinish);
        }
        let len = u32::try_from(len).map_err(|_| ResetCode::CreditExceeded)?;
        self.credit = self.credit.checked_sub(len).ok_or(ResetCode::CreditExceeded)?;
        Ok(())
    }

    fn grant(&mut self, body: &[u8]) -> Result<(), ResetCode> {
        let more = body.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
        let credit = self
            .credit
            .checked_add(more)
            .filter(|credit| *credit <= MAX_CREDIT);
        self.credit = credit.filter(|_| more > 0).ok_or(ResetCode::BadCredit)?;
        Ok(())
    }
}
