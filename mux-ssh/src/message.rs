//! The numbers of SSH messages, the reasons of DISCONNECT and of refused channels, with the document that assigns
//! each. It decides nothing.

// RFC 4253 §12.
/// The sender ends the connection.
pub const DISCONNECT: u8 = 1;
/// No meaning; may be sent at any time outside a strict key exchange.
pub const IGNORE: u8 = 2;
/// The receiver of a packet did not know its message number.
pub const UNIMPLEMENTED: u8 = 3;
/// Text for a log.
pub const DEBUG: u8 = 4;
/// Asks for a service by name.
pub const SERVICE_REQUEST: u8 = 5;
/// The service is there.
pub const SERVICE_ACCEPT: u8 = 6;
/// RFC 8308: extension names and values.
pub const EXT_INFO: u8 = 7;
/// Opens a key exchange with lists of algorithms.
pub const KEXINIT: u8 = 20;
/// Everything after it goes under the new keys.
pub const NEWKEYS: u8 = 21;
/// RFC 5656 §7.1: the client's half of the key exchange; the hybrids use the same number.
pub const KEX_ECDH_INIT: u8 = 30;
/// RFC 5656 §7.1: the server's half, its host key and its signature.
pub const KEX_ECDH_REPLY: u8 = 31;

// OpenSSH PROTOCOL §1.8.
/// Asks for [`PONG`] with the same data.
pub const PING: u8 = 192;
/// The answer to [`PING`].
pub const PONG: u8 = 193;

// RFC 4252 §6.
/// Asks for a login.
pub const USERAUTH_REQUEST: u8 = 50;
/// The login was refused or is not complete.
pub const USERAUTH_FAILURE: u8 = 51;
/// The login is complete.
pub const USERAUTH_SUCCESS: u8 = 52;
/// Text for the person who logs in.
pub const USERAUTH_BANNER: u8 = 53;
// The numbers from 60 to 79 mean what the method that was asked for last says (RFC 4252 §6).
/// RFC 4252 §7, `publickey`: the key would be accepted.
pub const USERAUTH_PK_OK: u8 = 60;
/// RFC 4252 §8, `password`: it has expired.
pub const USERAUTH_PASSWD_CHANGEREQ: u8 = 60;
/// RFC 4256 §3.2, `keyboard-interactive`: questions.
pub const USERAUTH_INFO_REQUEST: u8 = 60;
/// RFC 4256 §3.4, `keyboard-interactive`: answers.
pub const USERAUTH_INFO_RESPONSE: u8 = 61;

// RFC 4254 §9.
/// A request about the whole connection.
pub const GLOBAL_REQUEST: u8 = 80;
/// It was granted.
pub const REQUEST_SUCCESS: u8 = 81;
/// It was not.
pub const REQUEST_FAILURE: u8 = 82;
/// Asks for a channel.
pub const CHANNEL_OPEN: u8 = 90;
/// The channel is open.
pub const CHANNEL_OPEN_CONFIRMATION: u8 = 91;
/// The channel was refused.
pub const CHANNEL_OPEN_FAILURE: u8 = 92;
/// More may be sent on the channel.
pub const CHANNEL_WINDOW_ADJUST: u8 = 93;
/// Bytes of the channel.
pub const CHANNEL_DATA: u8 = 94;
/// Bytes of a second stream of the channel, such as stderr.
pub const CHANNEL_EXTENDED_DATA: u8 = 95;
/// The sender has sent its last byte.
pub const CHANNEL_EOF: u8 = 96;
/// The channel is over.
pub const CHANNEL_CLOSE: u8 = 97;
/// A request about the channel.
pub const CHANNEL_REQUEST: u8 = 98;
/// It was granted.
pub const CHANNEL_SUCCESS: u8 = 99;
/// It was not.
pub const CHANNEL_FAILURE: u8 = 100;

/// Reason codes of DISCONNECT (RFC 4253 §11.1).
pub mod disconnect {
    /// The peer broke the protocol.
    pub const PROTOCOL_ERROR: u32 = 2;
    /// No key exchange came about.
    pub const KEY_EXCHANGE_FAILED: u32 = 3;
    /// A tag did not match.
    pub const MAC_ERROR: u32 = 5;
    /// The service asked for is not there.
    pub const SERVICE_NOT_AVAILABLE: u32 = 7;
    /// The version is not supported.
    pub const PROTOCOL_VERSION_NOT_SUPPORTED: u32 = 8;
    /// The host key could not be trusted.
    pub const HOST_KEY_NOT_VERIFIABLE: u32 = 9;
    /// The application is done.
    pub const BY_APPLICATION: u32 = 11;
    /// Nothing is left to log in with.
    pub const NO_MORE_AUTH_METHODS_AVAILABLE: u32 = 14;
}

/// Reason codes of CHANNEL_OPEN_FAILURE (RFC 4254 §5.1).
pub mod open_failure {
    /// Policy forbids it.
    pub const ADMINISTRATIVELY_PROHIBITED: u32 = 1;
    /// The far end could not be reached.
    pub const CONNECT_FAILED: u32 = 2;
    /// The type is unknown.
    pub const UNKNOWN_CHANNEL_TYPE: u32 = 3;
    /// No room.
    pub const RESOURCE_SHORTAGE: u32 = 4;
}
