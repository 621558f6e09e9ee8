//! What each kind of server is known to bear, as one table. It sends nothing itself.
//!
//! Every entry was measured against the server that it names. An unknown server gets what RFC 4252 and 4254 promise
//! and nothing more.

use crate::transport::Family;

/// When the first channel of a connection may be opened and used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstChannel {
    /// Open and exec in one write with the signed request.
    Gambled,
    /// Open with the signed request; exec after the confirmation, for a request on a channel that is still being
    /// opened ends the connection.
    OpenAhead,
    /// Open and exec in one write, but only after the login: earlier packets are left lying until later ones come.
    PairLater,
    /// Open after the login, exec after the confirmation.
    StepByStep,
}

/// What number the server gives to a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbering {
    /// 0 to the first one; later ones can't be known, because a number is freed at an unknown time.
    FirstIsZero,
    /// Always the lowest that is free, and a number is free as soon as both sides have closed.
    LowestFree,
    /// The one that the client chose for its own side.
    CopiesOurs,
    /// Not to be relied on.
    Unknown,
}

/// What a kind of server bears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Habits {
    pub(crate) first_channel: FirstChannel,
    pub(crate) numbering: Numbering,
    /// After a refused login, packets that were sent ahead are answered UNIMPLEMENTED and the login goes on. The
    /// others end the connection.
    pub(crate) survives_refusal: bool,
    /// An idle channel may stay open beside running commands.
    pub(crate) spare: bool,
    /// Gives one channel in the life of a connection.
    pub(crate) one_channel: bool,
}

impl Habits {
    pub(crate) const fn of(family: Family) -> Self {
        match family {
            Family::OpenSsh | Family::Mux => Self {
                first_channel: FirstChannel::Gambled,
                numbering: Numbering::FirstIsZero,
                survives_refusal: true,
                spare: true,
                one_channel: false,
            },
            // When any command ends, it closes idle channels, and a command sent to one of those runs while the
            // connection dies: no spare, ever. Its numbering makes up for it.
            Family::Dropbear => Self {
                first_channel: FirstChannel::Gambled,
                numbering: Numbering::LowestFree,
                survives_refusal: false,
                spare: false,
                one_channel: false,
            },
            Family::Paramiko => Self {
                first_channel: FirstChannel::Gambled,
                numbering: Numbering::FirstIsZero,
                survives_refusal: false,
                spare: true,
                one_channel: false,
            },
            // A command in one read with the opening of its channel is a protocol error to it, at any time.
            Family::AsyncSsh => Self {
                first_channel: FirstChannel::OpenAhead,
                numbering: Numbering::Unknown,
                survives_refusal: false,
                spare: true,
                one_channel: false,
            },
            Family::TinySsh => Self {
                first_channel: FirstChannel::PairLater,
                numbering: Numbering::CopiesOurs,
                survives_refusal: false,
                spare: false,
                one_channel: true,
            },
            Family::Unknown => Self {
                first_channel: FirstChannel::StepByStep,
                numbering: Numbering::Unknown,
                survives_refusal: false,
                spare: true,
                one_channel: false,
            },
        }
    }
}
