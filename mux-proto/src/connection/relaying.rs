//! Frames of others: what passes over this link on its way from one node to another. Hands them on and refuses them, as
//! it is told; whether they may pass is judged by whoever knows all links.

use super::flow::FlowId;
use super::{Connection, Phase};
use crate::body::{Reset, ResetCode};
use crate::error::Misuse;
use crate::frame::{Frame, Header, Kind};

impl Connection {
    /// Sends a frame of another node, whose source and destination stay as they are. Openings, resets and credit go before
    /// data; data takes turns with that of all other channels of this link, and may be cut or joined. Bytes need no
    /// credit of this link: the two ends have agreed on it, and whoever relays has counted it.
    ///
    /// # Errors
    /// The link has ended, or it is an opening and [`MAX_FLOWS`](super::MAX_FLOWS) are under way.
    pub fn relay(&mut self, frame: Frame) -> Result<(), Misuse> {
        self.alive()?;
        self.channels.relay(frame)
    }

    /// The node that `flow` comes from is gone: what came from it before still leaves, and this reset behind it.
    ///
    /// # Errors
    /// The link has ended.
    pub fn relay_end(&mut self, flow: FlowId, reset: &Reset) -> Result<(), Misuse> {
        self.alive()?;
        self.channels.relay_end(flow, reset);
        Ok(())
    }

    /// Drops what waits of a flow, because its channel has ended the other way.
    pub fn forget(&mut self, flow: FlowId) {
        self.channels.forget(flow);
    }

    /// Flows that pass over this link and have not ended.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.channels.flows()
    }

    /// Sends a frame of the peer back as a reset, from whom it was for to whom it was from, and counts it. Resets are not
    /// answered: two ends that refuse each other would never stop.
    pub fn refuse(&mut self, header: Header, code: ResetCode) {
        self.refused += 1;
        if header.kind == Kind::Reset || self.alive().is_err() {
            return;
        }
        let answer = FlowId::of(&header).reversed();
        self.owe(answer.frame(Kind::Reset, 0, Reset::new(code).encode()));
    }

    fn alive(&self) -> Result<(), Misuse> {
        match self.phase {
            Phase::Parted | Phase::Failed(_) => Err(Misuse::Ended),
            Phase::Greeting | Phase::Open => Ok(()),
        }
    }
}
