//! What frames say: one struct for each kind of body, with `encode` and `decode`. Decides no consequence.

mod cbor;
mod exec;
#[cfg(test)]
mod tests;

use bytes::Bytes;

pub use cbor::{BodyError, MAX_DEPTH, MAX_FIELDS, check_item};
use cbor::{Fields, MapWriter, read_u32};
pub use exec::{Command, Exec, Exit};

pub use crate::codes::{GoodbyeCode, ResetCode};
use crate::frame::{MAX_BODY, NodeId};

/// Names of programs, platforms and kinds of channels: longer ones are nobody's name.
pub const MAX_NAME: usize = 64;

/// Words for a person in a reset, a goodbye, a log line: what is longer is cut by whoever sends it. The rest of
/// [`MAX_NOTE`](crate::frame::MAX_NOTE) is for the map around them.
pub const MAX_TEXT: usize = 4000;

/// Nodes in one route frame: each takes at most five bytes of the body.
pub const MAX_ROUTE_NODES: usize = 4096;

/// The first frame each way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Program and version, for people: `mux 0.1.0`.
    pub software: String,
    /// As `uname -sm` has it: `Linux x86_64`. Empty if it doesn't matter.
    pub platform: String,
    /// Whether the sender is above: opens channels and takes none.
    pub is_above: bool,
    /// Channels that the sender takes at a time; zero from above.
    pub channels: u32,
    /// The sender's number, if it knows one.
    pub node: Option<NodeId>,
    /// The receiver's number, if the sender gives it one.
    pub peer: Option<NodeId>,
}

impl Hello {
    /// As a body.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        MapWriter::new()
            .text("software", cut(&self.software, MAX_NAME))
            .text("platform", cut(&self.platform, MAX_NAME))
            .with("above", |items| items.bool(self.is_above))
            .uint("channels", self.channels)
            .maybe_uint("node", self.node.map(|node| node.0))
            .maybe_uint("peer", self.peer.map(|node| node.0))
            .finish()
    }

    /// From a body.
    ///
    /// # Errors
    /// The body is something else.
    pub fn decode(body: &[u8]) -> Result<Self, BodyError> {
        let fields = Fields::parse(body)?;
        Ok(Self {
            software: name(&fields, "software")?,
            platform: name(&fields, "platform")?,
            is_above: fields.flag("above")?.ok_or(BodyError::Missing("above"))?,
            channels: fields.u32("channels")?.ok_or(BodyError::Missing("channels"))?,
            node: node(&fields, "node")?,
            peer: node(&fields, "peer")?,
        })
    }
}

/// Nodes beneath the sender came or went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// Can be reached from now on; at most [`MAX_ROUTE_NODES`] with those below.
    pub added: Vec<NodeId>,
    /// Can't be reached any more.
    pub lost: Vec<NodeId>,
    /// Why they are lost.
    pub reason: String,
}

impl Route {
    /// As a body.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let list = |writer: MapWriter, key: &str, nodes: &[NodeId]| {
            writer.with(key, |items| {
                let count = u64::try_from(nodes.len()).unwrap_or(u64::MAX);
                nodes
                    .iter()
                    .try_fold(items.array(count)?, |items, node| items.u32(node.0))
            })
        };
        let writer = list(MapWriter::new(), "added", &self.added);
        list(writer, "lost", &self.lost)
            .text("reason", cut(&self.reason, MAX_TEXT))
            .finish()
    }

    /// From a body.
    ///
    /// # Errors
    /// The body is something else.
    pub fn decode(body: &[u8]) -> Result<Self, BodyError> {
        let fields = Fields::parse(body)?;
        let nodes = |key| -> Result<Vec<NodeId>, BodyError> {
            let numbers = fields.list(key, read_u32)?.ok_or(BodyError::Missing(key))?;
            Ok(numbers.into_iter().map(NodeId).collect())
        };
        let (added, lost) = (nodes("added")?, nodes("lost")?);
        if added.len() + lost.len() > MAX_ROUTE_NODES {
            return Err(BodyError::Field("added"));
        }
        Ok(Self {
            added,
            lost,
            reason: words(&fields, "reason")?,
        })
    }
}

/// Words for a person, from below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// As in syslog (RFC 5424 §6.2.1): 3 error, 4 warning, 6 information, 7 debugging.
    pub severity: u16,
    /// One line; foreign text.
    pub text: String,
}

impl Log {
    /// As a body.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let text = cut(&self.text, MAX_TEXT);
        MapWriter::new()
            .uint("severity", self.severity)
            .text("text", text)
            .finish()
    }

    /// From a body.
    ///
    /// # Errors
    /// The body is something else.
    pub fn decode(body: &[u8]) -> Result<Self, BodyError> {
        let fields = Fields::parse(body)?;
        let severity = fields.u16("severity")?.ok_or(BodyError::Missing("severity"))?;
        if severity > 7 {
            return Err(BodyError::Field("severity"));
        }
        let text = words(&fields, "text")?;
        Ok(Self { severity, text })
    }
}

/// Why a link ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Goodbye {
    /// For programs.
    pub code: GoodbyeCode,
    /// For people; foreign text.
    pub text: String,
}

impl Goodbye {
    /// As a body.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        reason(self.code.number(), &self.text)
    }

    /// From a body.
    ///
    /// # Errors
    /// The body is something else.
    pub fn decode(body: &[u8]) -> Result<Self, BodyError> {
        let (number, text) = reason_of(body)?;
        let code = GoodbyeCode::from_number(number);
        Ok(Self { code, text })
    }
}

/// Why a channel went no further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reset {
    /// For programs.
    pub code: ResetCode,
    /// For people; foreign text.
    pub text: String,
}

impl Reset {
    /// Without words.
    #[must_use]
    pub fn new(code: ResetCode) -> Self {
        Self {
            code,
            text: String::new(),
        }
    }

    /// As a body.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        reason(self.code.number(), &self.text)
    }

    /// From a body.
    ///
    /// # Errors
    /// The body is something else.
    pub fn decode(body: &[u8]) -> Result<Self, BodyError> {
        let (number, text) = reason_of(body)?;
        let code = ResetCode::from_number(number);
        Ok(Self { code, text })
    }
}

/// What a channel is opened for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// The kind of channel: `exec`.
    pub kind: String,
    /// One item of CBOR, whose meaning belongs to the kind.
    pub arguments: Bytes,
}

impl Open {
    /// As a body.
    ///
    /// # Errors
    /// The kind is longer than [`MAX_NAME`], the arguments are no item of CBOR, or both are too long together.
    pub fn encode(&self) -> Result<Bytes, BodyError> {
        if self.kind.len() > MAX_NAME {
            return Err(BodyError::Field("kind"));
        }
        check_item(&self.arguments)?;
        let body = MapWriter::new()
            .text("kind", &self.kind)
            .item("arguments", &self.arguments)
            .finish();
        if body.len() > MAX_BODY {
            return Err(BodyError::Field("arguments"));
        }
        Ok(body)
    }

    /// From a body.
    ///
    /// # Errors
    /// The body is something else.
    pub fn decode(body: &[u8]) -> Result<Self, BodyError> {
        let fields = Fields::parse(body)?;
        let arguments = fields.item("arguments").ok_or(BodyError::Missing("arguments"))?;
        Ok(Self {
            kind: name(&fields, "kind")?,
            arguments: Bytes::copy_from_slice(arguments),
        })
    }
}

fn reason(code: u16, text: &str) -> Bytes {
    MapWriter::new()
        .uint("code", code)
        .text("text", cut(text, MAX_TEXT))
        .finish()
}

fn reason_of(body: &[u8]) -> Result<(u16, String), BodyError> {
    let fields = Fields::parse(body)?;
    let code = fields.u16("code")?.ok_or(BodyError::Missing("code"))?;
    Ok((code, words(&fields, "text")?))
}

fn name(fields: &Fields<'_>, key: &'static str) -> Result<String, BodyError> {
    let name = fields.text(key)?.ok_or(BodyError::Missing(key))?;
    if name.len() > MAX_NAME {
        Err(BodyError::Field(key))
    } else {
        Ok(name)
    }
}

fn words(fields: &Fields<'_>, key: &'static str) -> Result<String, BodyError> {
    let words = fields.text(key)?.ok_or(BodyError::Missing(key))?;
    if words.len() > MAX_TEXT {
        Err(BodyError::Field(key))
    } else {
        Ok(words)
    }
}

/// A number of a node; zero is nobody's.
fn node(fields: &Fields<'_>, key: &'static str) -> Result<Option<NodeId>, BodyError> {
    let node = fields.u32(key)?.map(NodeId);
    if node == Some(NodeId::NEIGHBOUR) {
        Err(BodyError::Field(key))
    } else {
        Ok(node)
    }
}

/// The longest front of `text` that fits.
fn cut(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or(text)
}
