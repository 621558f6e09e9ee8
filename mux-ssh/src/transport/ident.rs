//! The identification line (RFC 4253 §4.2) and what it tells about the implementation behind it. It decides how much
//! text may come before; it never decides what follows from an implementation's habits.

use bytes::{Buf, Bytes, BytesMut};

use crate::{Error, Incompatible, Violation};

/// What this build calls itself.
pub const OUR_IDENT: &str = concat!("SSH-2.0-mux_", env!("CARGO_PKG_VERSION"));

/// RFC 4253 §4.2: 255 bytes with CR and LF.
pub const MAX_IDENT: usize = 255;
/// A line before the identification may be as long as OpenSSH allows (sshd's notices are far shorter).
pub const MAX_BANNER_LINE: usize = 8 * 1024;
/// OpenSSH gives up after as many lines.
pub const MAX_BANNER_LINES: u32 = 1024;
/// What is kept of the text before the identification, in bytes: the reason why a server hangs up is its first words.
pub const MAX_GREETING: usize = 1024;

/// A peer's identification, without CR and LF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ident(Bytes);

/// An implementation whose habits are known, by its identification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// OpenSSH, portable or not.
    OpenSsh,
    /// Dropbear.
    Dropbear,
    /// AsyncSSH.
    AsyncSsh,
    /// TinySSH.
    TinySsh,
    /// Paramiko.
    Paramiko,
    /// The server role of this crate.
    Mux,
    /// Anything else: nothing is taken for granted.
    Unknown,
}

impl Ident {
    /// The line as it was sent; foreign bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The part by which a server is recognised: up to the first space, since what follows is a comment (TinySSH puts
    /// a random word there).
    #[must_use]
    pub fn stable(&self) -> String {
        let line = self.0.split(|&byte| byte == b' ').next().unwrap_or_default();
        String::from_utf8_lossy(line).into_owned()
    }

    /// The implementation behind it.
    #[must_use]
    pub fn family(&self) -> Family {
        const PREFIXES: [(&[u8], Family); 6] = [
            (b"OpenSSH_", Family::OpenSsh),
            (b"dropbear_", Family::Dropbear),
            (b"AsyncSSH_", Family::AsyncSsh),
            (b"tinyssh_", Family::TinySsh),
            (b"paramiko_", Family::Paramiko),
            (b"mux_", Family::Mux),
        ];
        let software = self.0.splitn(3, |&byte| byte == b'-').nth(2).unwrap_or_default();
        let known = PREFIXES.iter().find(|(prefix, _)| software.starts_with(prefix));
        known.map_or(Family::Unknown, |&(_, family)| family)
    }

    /// Reads a line without its line end.
    pub(super) fn parse(line: &[u8]) -> Result<Self, Error> {
        if line.contains(&0) {
            return Err(Violation::IdentMalformed.into());
        }
        // RFC 4253 §5.1: 1.99 is a server that speaks 2.0 as well.
        if !line.starts_with(b"SSH-2.0-") && !line.starts_with(b"SSH-1.99-") {
            return Err(Incompatible::ProtocolVersion.into());
        }
        Ok(Self(Bytes::copy_from_slice(line)))
    }
}

/// Waits for the identification.
#[derive(Debug)]
pub(super) struct IdentReader {
    lines_left: u32,
    /// Text that was not the identification and that nobody has been told yet.
    said: Vec<u8>,
    /// How much more of it is kept.
    room: usize,
    /// The beginning of a line whose end has not come.
    partial: Vec<u8>,
}

impl IdentReader {
    /// A server may send lines of text first.
    pub(super) fn of_server() -> Self {
        Self::with(MAX_BANNER_LINES)
    }

    /// A client may not.
    pub(super) fn of_client() -> Self {
        Self::with(0)
    }

    fn with(lines_left: u32) -> Self {
        Self {
            lines_left,
            said: Vec::new(),
            room: MAX_GREETING,
            partial: Vec::new(),
        }
    }

    /// What the peer said instead of its identification, since the last call: whole lines, and if `all`, the beginning
    /// of the one that never ended.
    pub(super) fn take_greeting(&mut self, all: bool) -> Option<String> {
        if all {
            let partial = std::mem::take(&mut self.partial);
            keep(&mut self.said, &mut self.room, &partial);
        }
        let said = std::mem::take(&mut self.said);
        let said = String::from_utf8_lossy(&said).trim().to_owned();
        (!said.is_empty()).then_some(said)
    }

    /// Consumes whole lines up to and including the identification.
    pub(super) fn read(&mut self, input: &mut BytesMut) -> Result<Option<Ident>, Error> {
        loop {
            let is_ident = input.starts_with(b"SSH-");
            let limit = if is_ident { MAX_IDENT } else { MAX_BANNER_LINE };
            let Some(end) = input.iter().take(limit).position(|&byte| byte == b'\n') else {
                self.partial = input
                    .get(..input.len().min(self.room))
                    .unwrap_or_default()
                    .to_vec();
                return if input.len() < limit {
                    Ok(None)
                } else {
                    Err(too_long(is_ident))
                };
            };
            self.partial = Vec::new();
            let line = input.get(..end).unwrap_or_default();
            if is_ident {
                let ident = Ident::parse(line.strip_suffix(b"\r").unwrap_or(line)).inspect_err(|_| {
                    keep(&mut self.said, &mut self.room, line);
                })?;
                input.advance(end + 1);
                return Ok(Some(ident));
            }
            keep(&mut self.said, &mut self.room, line);
            self.lines_left = self.lines_left.checked_sub(1).ok_or(Violation::BannerTooLong)?;
            input.advance(end + 1);
        }
    }
}

/// Keeps a line, as far as there is room.
fn keep(said: &mut Vec<u8>, room: &mut usize, line: &[u8]) {
    let kept = line.get(..line.len().min(*room)).unwrap_or_default();
    *room -= kept.len();
    said.extend_from_slice(kept);
    said.push(b'\n');
}

fn too_long(is_ident: bool) -> Error {
    if is_ident {
        Violation::IdentTooLong.into()
    } else {
        Violation::BannerTooLong.into()
    }
}
