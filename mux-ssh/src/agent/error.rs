//! What an agent can do wrong.

use std::fmt;

use super::codec::{MAX_FRAME, MAX_IDENTITIES};

/// Why the conversation with an agent failed. The first error is the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentError {
    /// The agent broke the protocol.
    Violation(AgentViolation),
    /// The agent hung up while it owed an answer.
    UnexpectedEof,
}

/// What the agent did that the protocol forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentViolation {
    /// A frame of no byte, or of more than [`MAX_FRAME`].
    FrameLength(u32),
    /// An answer ends before its last field does.
    Truncated,
    /// An answer goes on after its last field.
    TrailingBytes,
    /// More identities than [`MAX_IDENTITIES`].
    TooManyIdentities(u32),
    /// An answer that does not belong to the question: its number.
    UnexpectedAnswer(u8),
    /// An answer without a question.
    Unasked,
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Violation(violation) => write!(f, "the agent broke its protocol: {violation}"),
            Self::UnexpectedEof => f.write_str("the agent hung up"),
        }
    }
}

impl fmt::Display for AgentViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FrameLength(length) => write!(f, "a frame of {length} bytes, outside 1 to {MAX_FRAME}"),
            Self::Truncated => f.write_str("an answer is cut short"),
            Self::TrailingBytes => f.write_str("an answer has bytes left over"),
            Self::TooManyIdentities(count) => write!(f, "{count} identities, more than {MAX_IDENTITIES}"),
            Self::UnexpectedAnswer(number) => write!(f, "answer {number} to another question"),
            Self::Unasked => f.write_str("an answer without a question"),
        }
    }
}

impl std::error::Error for AgentError {}
impl std::error::Error for AgentViolation {}

impl From<AgentViolation> for AgentError {
    fn from(violation: AgentViolation) -> Self {
        Self::Violation(violation)
    }
}
