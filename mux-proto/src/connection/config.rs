//! What one end of a link is made with. Plain values; decides nothing.

use std::time::Duration;

use super::INITIAL_CREDIT;
#[cfg(doc)]
use super::MAX_CREDIT;
use crate::frame::NodeId;

/// Which end of a link this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Opens channels and takes none: a client of the hub, the hub towards an agent.
    Above,
    /// Takes channels and opens none: the hub towards its clients, an agent.
    Below,
}

/// What a connection is made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Which end this is.
    pub role: Role,
    /// Program and version, for people.
    pub software: String,
    /// As `uname -sm` has it.
    pub platform: String,
    /// The numbers of this node and of the peer, if this side is the one that gives them. One of the two must be.
    pub names: Option<(NodeId, NodeId)>,
    /// Channels at a time: that are taken (below), or opened at most, whatever the peer takes (above).
    pub max_channels: u32,
    /// Bytes that may be under way towards us on a new channel: [`INITIAL_CREDIT`] to [`MAX_CREDIT`].
    pub window: u32,
    /// Ask whether the peer is there when nothing came for so long.
    pub keepalive: Option<Duration>,
    /// How long a hello, and an answer to a ping, may take.
    pub answer_time: Duration,
    /// Frames for other nodes are handed to the owner as [`Event::Transit`](super::Event::Transit) instead of being
    /// refused.
    pub relays: bool,
}

impl Config {
    /// 1,024 channels, windows of 64 KiB, a ping after 15 seconds of silence and 15 seconds for the answer;
    /// relays nothing.
    #[must_use]
    pub fn new(role: Role) -> Self {
        Self {
            role,
            software: concat!("mux ", env!("CARGO_PKG_VERSION")).to_owned(),
            platform: String::new(),
            names: None,
            max_channels: 1024,
            window: INITIAL_CREDIT,
            keepalive: Some(Duration::from_secs(15)),
            answer_time: Duration::from_secs(15),
            relays: false,
        }
    }
}
