//! What came of a command, and how it is compared with what should have. It decides nothing.

use aws_lc_rs::digest::{Context, SHA256};
use bytes::Bytes;
use mux_ssh::Error;
use mux_ssh::client::ChannelFailure;
use mux_ssh::keys::PublicKey;
use mux_ssh::transport::{Counters, ServerMemory};

/// How much of a stream is kept for whoever reads why a test failed.
const SHOWN: usize = 64;

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Status(u32),
    Signal(String),
    /// Without a word about it.
    Closed,
    Failed {
        reason: ChannelFailure,
        may_have_run: bool,
        error: Option<Error>,
    },
}

/// What came of a visit.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) end: Option<End>,
    pub(crate) stdout: Stream,
    pub(crate) stderr: Stream,
    /// Identities that the server let in, or did not.
    pub(crate) accepted: Option<usize>,
    pub(crate) refused: Vec<usize>,
    /// Signed, with the command behind it, and was not answered before the end.
    pub(crate) unanswered: Option<usize>,
    pub(crate) memory: Option<ServerMemory>,
    pub(crate) host_key: Option<PublicKey>,
    /// Why further connections were made.
    pub(crate) detours: Vec<Error>,
    /// Packets sent in the last connection before anything was read, and before the host key was known.
    pub(crate) first_flight: u64,
    pub(crate) before_host_key: u64,
    pub(crate) counters: Counters,
}

/// What came on a stream; compared by all of it, shown by its beginning.
#[derive(Clone)]
pub(crate) struct Stream {
    length: u64,
    hash: Context,
    start: Vec<u8>,
}

impl Told {
    pub(crate) fn new() -> Self {
        Self {
            end: None,
            stdout: Stream::of(b""),
            stderr: Stream::of(b""),
            accepted: None,
            refused: Vec::new(),
            unanswered: None,
            memory: None,
            host_key: None,
            detours: Vec::new(),
            first_flight: 0,
            before_host_key: 0,
            counters: Counters::default(),
        }
    }

    /// Why the command has no result.
    pub(crate) fn error(&self) -> Option<&Error> {
        match &self.end {
            Some(End::Failed { error, .. }) => error.as_ref(),
            Some(End::Status(_) | End::Signal(_) | End::Closed) | None => None,
        }
    }

    /// The command ran, got and gave all of this, and ended with this status.
    pub(crate) fn check(&self, status: u32, stdout: &[u8], stderr: &[u8], context: impl FnOnce() -> String) {
        let expected = (Some(End::Status(status)), Stream::of(stdout), Stream::of(stderr));
        let found = (self.end.clone(), self.stdout.clone(), self.stderr.clone());
        assert!(
            found == expected,
            "{found:?} instead of {expected:?}\n{self:?}\n{}",
            context()
        );
    }
}

impl Stream {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut stream = Self {
            length: 0,
            hash: Context::new(&SHA256),
            start: Vec::new(),
        };
        stream.push(bytes);
        stream
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        self.hash.update(bytes);
        let room = SHOWN - self.start.len();
        self.start.extend(bytes.iter().take(room));
    }
}

impl PartialEq for Stream {
    fn eq(&self, other: &Self) -> bool {
        let [ours, theirs] = [self, other].map(|stream| stream.hash.clone().finish());
        self.length == other.length && ours.as_ref() == theirs.as_ref()
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes: {}", self.length, self.start.escape_ascii())
    }
}

/// Bytes that repeat with a period which is no multiple of any packet's or window's size, so that none can be lost or
/// change places unseen.
pub(crate) fn noise(length: usize) -> Bytes {
    const PERIOD: usize = (1 << 20) + 17;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = std::iter::repeat_with(move || {
        // xorshift64 (Marsaglia 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    let block: Vec<u8> = words.flatten().take(PERIOD.min(length)).collect();
    let mut bytes = block.repeat(length.div_ceil(PERIOD));
    bytes.truncate(length);
    bytes.into()
}
