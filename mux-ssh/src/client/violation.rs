//! What a server can do wrong above the transport, one name for each. Decides no consequence.

use std::fmt;

/// What a server did during the login that RFC 4252 forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthViolation {
    /// SERVICE_ACCEPT that was not asked for, or for another service.
    Service,
    /// An answer without a request.
    Unasked,
    /// SUCCESS without any proof of who we are, where that is not allowed.
    SuccessWithoutProof,
    /// PK_OK for a key or an algorithm that was not asked about.
    OtherKey,
    /// More banners, or longer ones, than any honest server sends.
    BannerFlood,
    /// More methods than any honest server offers.
    TooManyMethods,
    /// More questions at a time than any honest server asks, or longer ones.
    TooManyPrompts,
    /// Questions without end.
    PromptFlood,
    /// More methods in a row that were right and not enough than any honest server wants.
    EndlessLogin,
}

/// What a server did on a channel that RFC 4254 forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelViolation {
    /// A message about a channel that is not open.
    UnknownChannel,
    /// An answer to OPEN for a channel that waits for none.
    NotOpening,
    /// The channel has another number than this kind of server always gives, and the command was sent to that one.
    Number,
    /// More bytes than the window allowed.
    Window,
    /// A packet larger than announced, or an announcement of packets without room.
    PacketSize,
    /// The window was raised beyond 2^32 − 1 (RFC 4254 §5.2).
    WindowOverflow,
    /// Output, or a result, before there was a command.
    BeforeCommand,
    /// Output after the end of output.
    DataAfterEof,
    /// Extended data of a type other than stderr.
    DataType(u32),
    /// SUCCESS or FAILURE without a request.
    UnaskedReply,
}

impl fmt::Display for AuthViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Service => "an unasked or wrong SERVICE_ACCEPT",
            Self::Unasked => "an answer to a login that was not asked for",
            Self::SuccessWithoutProof => "login granted without any proof of who we are",
            Self::OtherKey => "acceptance of a key that was not offered",
            Self::BannerFlood => "too much banner text",
            Self::TooManyMethods => "too many authentication methods",
            Self::TooManyPrompts => "too many or too long questions",
            Self::PromptFlood => "questions without end",
            Self::EndlessLogin => "a login without end",
        })
    }
}

impl fmt::Display for ChannelViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::DataType(number) => return write!(f, "output of unknown type {number}"),
            Self::UnknownChannel => "a message about a channel that is not open",
            Self::NotOpening => "an answer for a channel that was not being opened",
            Self::Number => "an unusual channel number",
            Self::Window => "more output than allowed",
            Self::PacketSize => "a wrong packet size on a channel",
            Self::WindowOverflow => "a window beyond its maximum",
            Self::BeforeCommand => "output or a result before the command",
            Self::DataAfterEof => "output after its end",
            Self::UnaskedReply => "an answer to a request that was not made",
        };
        f.write_str(text)
    }
}
