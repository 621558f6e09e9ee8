//! The messages that a client sends above the transport: what each looks like on the wire, and nothing about when.

use bytes::Bytes;

use super::DirectTcpip;
use super::host_keys::PROVE;
use super::userauth::USERAUTH;
use super::window::{INITIAL_WINDOW, MAX_PACKET};
use crate::Secret;
use crate::message::{self, open_failure};
use crate::wire::Writer;

/// More than padding and tag take: growing for them would leave a copy of a secret behind.
const SEALING: usize = 128;
/// Where the bytes of a direct-tcpip channel are said to come from (RFC 4254 §7.2): they come from no socket, and some
/// servers refuse what is no address. The same as OpenSSH's for `-W`.
const ORIGINATOR: (&str, u32) = ("127.0.0.1", 65535);

/// One outgoing message. `number` is the server's number of the channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Packet {
    /// SERVICE_REQUEST for the login.
    ServiceRequest,
    /// A whole USERAUTH_REQUEST; it has to exist as bytes before, because it is what gets signed.
    Userauth(Bytes),
    /// The same with what a person typed, or the answer to a server's questions.
    Secret(Secret),
    /// CHANNEL_OPEN of a session, under our number `ours`.
    Open {
        ours: u32,
    },
    /// CHANNEL_OPEN of a TCP connection that the server makes, under our number `ours`.
    OpenDirect {
        ours: u32,
        to: DirectTcpip,
    },
    Env {
        number: u32,
        name: Bytes,
        value: Bytes,
    },
    Exec {
        number: u32,
        command: Bytes,
    },
    /// The command on this channel may reach the user's agent (OpenSSH PROTOCOL.agent §2).
    AgentRequest {
        number: u32,
    },
    /// CHANNEL_OPEN_CONFIRMATION, under our number `ours`.
    OpenConfirmed {
        number: u32,
        ours: u32,
    },
    Signal {
        number: u32,
        name: Box<str>,
    },
    Adjust {
        number: u32,
        bytes: u32,
    },
    Data {
        number: u32,
        data: Bytes,
    },
    Eof {
        number: u32,
    },
    Close {
        number: u32,
    },
    /// REQUEST_FAILURE: no global request of a server is granted.
    GlobalRefused,
    /// CHANNEL_FAILURE: no request of a server on a channel is granted.
    RequestRefused {
        number: u32,
    },
    /// CHANNEL_OPEN_FAILURE: a server may open nothing here but what it was allowed to.
    OpenRefused {
        number: u32,
    },
    /// A global request that no server grants and every server answers (OpenSSH PROTOCOL, `keepalive@openssh.com`).
    Keepalive,
    /// A global request for a proof that the server holds these keys.
    ProveHostKeys {
        keys: Vec<Bytes>,
    },
}

impl Packet {
    pub(crate) fn write(&self, to: &mut Writer<'_>) {
        match self {
            Self::ServiceRequest => to.byte(message::SERVICE_REQUEST).string(USERAUTH),
            Self::Userauth(payload) => to.raw(payload),
            Self::Secret(payload) => to.reserve(payload.expose().len() + SEALING).raw(payload.expose()),
            Self::Open { ours } => to
                .byte(message::CHANNEL_OPEN)
                .string("session")
                .uint32(*ours)
                .uint32(INITIAL_WINDOW)
                .uint32(MAX_PACKET),
            Self::OpenDirect { ours, to: target } => to
                .byte(message::CHANNEL_OPEN)
                .string("direct-tcpip")
                .uint32(*ours)
                .uint32(INITIAL_WINDOW)
                .uint32(MAX_PACKET)
                .string(&target.host)
                .uint32(target.port.into())
                .string(ORIGINATOR.0)
                .uint32(ORIGINATOR.1),
            Self::Env { number, name, value } => request(to, *number, "env", true).string(name).string(value),
            Self::Exec { number, command } => request(to, *number, "exec", true).string(command),
            // As OpenSSH sends it: what a server refuses shows where the agent is missed.
            Self::AgentRequest { number } => request(to, *number, "auth-agent-req@openssh.com", false),
            Self::OpenConfirmed { number, ours } => to
                .byte(message::CHANNEL_OPEN_CONFIRMATION)
                .uint32(*number)
                .uint32(*ours)
                .uint32(INITIAL_WINDOW)
                .uint32(MAX_PACKET),
            // RFC 4254 §6.9: a signal has no reply.
            Self::Signal { number, name } => request(to, *number, "signal", false).string(name.as_bytes()),
            Self::Adjust { number, bytes } => to
                .byte(message::CHANNEL_WINDOW_ADJUST)
                .uint32(*number)
                .uint32(*bytes),
            Self::Data { number, data } => to.byte(message::CHANNEL_DATA).uint32(*number).string(data),
            Self::Eof { number } => to.byte(message::CHANNEL_EOF).uint32(*number),
            Self::Close { number } => to.byte(message::CHANNEL_CLOSE).uint32(*number),
            Self::GlobalRefused => to.byte(message::REQUEST_FAILURE),
            Self::RequestRefused { number } => to.byte(message::CHANNEL_FAILURE).uint32(*number),
            Self::OpenRefused { number } => to
                .byte(message::CHANNEL_OPEN_FAILURE)
                .uint32(*number)
                .uint32(open_failure::ADMINISTRATIVELY_PROHIBITED)
                .string("")
                .string(""),
            Self::Keepalive => to
                .byte(message::GLOBAL_REQUEST)
                .string("keepalive@openssh.com")
                .boolean(true),
            Self::ProveHostKeys { keys } => {
                let to = to.byte(message::GLOBAL_REQUEST).string(PROVE).boolean(true);
                keys.iter().fold(to, |to, key| to.string(key))
            }
        };
    }
}

fn request<'w, 'a>(to: &'w mut Writer<'a>, number: u32, kind: &str, want_reply: bool) -> &'w mut Writer<'a> {
    to.byte(message::CHANNEL_REQUEST)
        .uint32(number)
        .string(kind)
        .boolean(want_reply)
}
