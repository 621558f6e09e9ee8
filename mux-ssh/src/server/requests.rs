//! What clients ask on and about channels (RFC 4254), read as far as a small server needs it. Decides nothing.

use bytes::{Buf, Bytes};

use super::session::{Due, Exit, Item, Open, Output};
use crate::Violation;
use crate::message;
use crate::wire::{Reader, Writer};

/// `SSH_EXTENDED_DATA_STDERR` (RFC 4254 §5.2).
const STDERR: u32 = 1;

/// A message of the connection protocol.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Message {
    Open {
        kind: Kind,
        open: OpenRequest,
    },
    Adjust {
        channel: u32,
        bytes: u32,
    },
    Data {
        channel: u32,
        data: Bytes,
    },
    Eof {
        channel: u32,
    },
    Close {
        channel: u32,
    },
    Request {
        channel: u32,
        want_reply: bool,
        request: ChannelRequest,
    },
    Global {
        want_reply: bool,
    },
    /// An answer to something that only a plan asks.
    Answer {
        message: u8,
    },
    /// A number that we do not know.
    Unknown,
}

/// What a channel is to be for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Session,
    /// A TCP connection that the server makes (RFC 4254 §7.2). Where it is said to come from is not read.
    DirectTcpip {
        host: String,
        port: u16,
    },
    Other,
}

/// The fields of `SSH_MSG_CHANNEL_OPEN` that every type has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenRequest {
    pub(super) peer: u32,
    pub(super) window: u32,
    pub(super) max_packet: u32,
}

impl From<OpenRequest> for Open {
    fn from(open: OpenRequest) -> Self {
        Self {
            peer: open.peer,
            window: open.window,
            max_packet: open.max_packet,
        }
    }
}

/// The channel requests that have a meaning here.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChannelRequest {
    Exec {
        command: Bytes,
    },
    Env {
        name: Bytes,
        value: Bytes,
    },
    Signal {
        name: String,
    },
    /// pty-req, shell, subsystem and whatever else there is: refused.
    Other,
}

impl Message {
    /// Reads the message in `payload`, whose data it keeps without a copy.
    pub(super) fn parse(payload: &Bytes) -> Result<Self, Violation> {
        let mut reader = Reader::new(payload);
        let parsed = match reader.byte()? {
            message::CHANNEL_OPEN => {
                let kind = reader.string()?;
                let (peer, window, max_packet) = (reader.uint32()?, reader.uint32()?, reader.uint32()?);
                Self::Open {
                    kind: Kind::parse(kind, reader)?,
                    open: OpenRequest {
                        peer,
                        window,
                        max_packet,
                    },
                }
            }
            message::CHANNEL_WINDOW_ADJUST => Self::Adjust {
                channel: reader.uint32()?,
                bytes: reader.uint32()?,
            },
            message::CHANNEL_DATA => Self::Data {
                channel: reader.uint32()?,
                data: payload.slice_ref(reader.string()?),
            },
            message::CHANNEL_EOF => Self::Eof {
                channel: reader.uint32()?,
            },
            message::CHANNEL_CLOSE => Self::Close {
                channel: reader.uint32()?,
            },
            message::CHANNEL_REQUEST => {
                let channel = reader.uint32()?;
                let name = reader.string()?;
                let want_reply = reader.boolean()?;
                Self::Request {
                    channel,
                    want_reply,
                    request: ChannelRequest::parse(payload, name, reader)?,
                }
            }
            message::GLOBAL_REQUEST => {
                reader.string()?;
                Self::Global {
                    want_reply: reader.boolean()?,
                }
            }
            number @ (message::REQUEST_SUCCESS
            | message::REQUEST_FAILURE
            | message::CHANNEL_OPEN_CONFIRMATION
            | message::CHANNEL_OPEN_FAILURE
            | message::CHANNEL_SUCCESS
            | message::CHANNEL_FAILURE) => Self::Answer { message: number },
            _ => Self::Unknown,
        };
        Ok(parsed)
    }
}

impl Kind {
    fn parse(name: &[u8], mut reader: Reader<'_>) -> Result<Self, Violation> {
        Ok(match name {
            b"session" => Self::Session,
            b"direct-tcpip" => {
                let host = reader.text()?.to_owned();
                match u16::try_from(reader.uint32()?) {
                    Ok(port) => Self::DirectTcpip { host, port },
                    Err(_) => Self::Other,
                }
            }
            _ => Self::Other,
        })
    }
}

impl ChannelRequest {
    fn parse(payload: &Bytes, name: &[u8], mut reader: Reader<'_>) -> Result<Self, Violation> {
        Ok(match name {
            b"exec" => Self::Exec {
                command: payload.slice_ref(reader.string()?),
            },
            b"env" => Self::Env {
                name: payload.slice_ref(reader.string()?),
                value: payload.slice_ref(reader.string()?),
            },
            b"signal" => Self::Signal {
                name: reader.text()?.to_owned(),
            },
            _ => Self::Other,
        })
    }
}

/// Says that a channel is open.
pub(super) fn write_confirmation(out: &mut Writer<'_>, peer: u32, number: u32, window: u32, max_packet: u32) {
    out.byte(message::CHANNEL_OPEN_CONFIRMATION)
        .uint32(peer)
        .uint32(number)
        .uint32(window)
        .uint32(max_packet);
}

/// Says that a channel is not to be had (RFC 4254 §5.1).
pub(super) fn write_refusal(out: &mut Writer<'_>, peer: u32, code: u32, text: &str) {
    out.byte(message::CHANNEL_OPEN_FAILURE)
        .uint32(peer)
        .uint32(code)
        .string(text)
        .string("");
}

/// Writes what a channel has to say.
pub(super) fn write_due(out: &mut Writer<'_>, due: &Due) {
    match &due.item {
        Item::Data(Output::Stdout, data) => {
            out.byte(message::CHANNEL_DATA)
                .uint32(due.peer)
                .string(data.chunk());
        }
        Item::Data(Output::Stderr, data) => {
            out.byte(message::CHANNEL_EXTENDED_DATA)
                .uint32(due.peer)
                .uint32(STDERR)
                .string(data.chunk());
        }
        Item::Exit(exit) => write_exit(out, due.peer, exit),
        Item::Eof => {
            out.byte(message::CHANNEL_EOF).uint32(due.peer);
        }
        Item::Close => {
            out.byte(message::CHANNEL_CLOSE).uint32(due.peer);
        }
    }
}

fn write_exit(out: &mut Writer<'_>, peer: u32, exit: &Exit) {
    out.byte(message::CHANNEL_REQUEST).uint32(peer);
    match exit {
        Exit::Status(status) => {
            out.string("exit-status").boolean(false).uint32(*status);
        }
        Exit::Signal {
            name,
            core_dumped,
            message,
        } => {
            out.string("exit-signal")
                .boolean(false)
                .string(name)
                .boolean(*core_dumped)
                .string(message)
                .string("");
        }
    }
}
