//! What the peer's packets mean to the transport and when each may come. It decides order and floods; key exchange
//! messages go to `exchange.rs`, packets of services are handed out unread.

use std::time::Instant;

use bytes::{Bytes, BytesMut};

use super::ext_info::{self, ExtInfo};
use super::{Incoming, Sending, Transport};
use crate::message::{
    DEBUG, DISCONNECT, EXT_INFO, IGNORE, KEXINIT, NEWKEYS, PING, PONG, SERVICE_ACCEPT, SERVICE_REQUEST,
    UNIMPLEMENTED,
};
use crate::wire::Reader;
use crate::{Error, Violation};

/// A peer's words in DISCONNECT are cut to this many bytes: they go to a terminal and a log.
pub const MAX_DESCRIPTION: usize = 1024;
/// IGNORE, DEBUG and UNIMPLEMENTED before the first NEWKEYS, where strict key exchange does not forbid them: no
/// implementation sends more than a few.
pub const MAX_IGNORED_BEFORE_KEYS: u32 = 64;
/// Under one key. Each unknown message costs us an answer; a peer that is newer than we are has a handful.
pub const MAX_UNKNOWN_MESSAGES: u32 = 1024;

/// Data of a PING that is sent back; what everyone must be able to receive (RFC 4253 §6.1). Honest pings have a few
/// bytes.
pub const MAX_PING: usize = 32 * 1024;
/// No more is read while more than this waits to be sent in answer: a peer that asks and does not read holds up itself.
pub const MAX_OWED: usize = 256 * 1024;

impl Transport {
    /// Reads from the front of `input` until one thing happened. `None`: more bytes are needed, or an answer
    /// ([`Self::waits_for_answer`]). Errors are sticky.
    pub(crate) fn handle_input(
        &mut self,
        now: Instant,
        input: &mut BytesMut,
    ) -> Result<Option<Incoming>, Error> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        self.advance(now, input).map_err(|error| self.fail(error))
    }

    /// Answers the packet that was handed out last with UNIMPLEMENTED.
    ///
    /// # Errors
    /// The peer has sent too many such packets.
    pub(crate) fn reject_packet(&mut self) -> Result<(), Error> {
        self.peer.unknown += 1;
        if self.peer.unknown > MAX_UNKNOWN_MESSAGES {
            return Err(self.fail(Violation::UnknownMessageFlood.into()));
        }
        let sequence = self.inbound.sequence.wrapping_sub(1);
        // It must not overtake the answers to earlier packets (RFC 4253 §11.4), a refused login's among them; a key
        // exchange does not hold it back.
        let queue = match self.sending {
            Sending::Open => &mut self.services,
            Sending::Unstarted | Sending::Exchange | Sending::Over => &mut self.control,
        };
        queue.push(|packet| {
            packet.byte(UNIMPLEMENTED).uint32(sequence);
        });
        Ok(())
    }

    fn advance(&mut self, now: Instant, input: &mut BytesMut) -> Result<Option<Incoming>, Error> {
        if self.peer.ident_reader.is_some() {
            return self.read_ident(input);
        }
        while !self.waits_for_answer() && !self.owes_much() {
            let Some(payload) = self.inbound.open(input)? else {
                break;
            };
            if let Some(incoming) = self.handle_packet(now, payload)? {
                return Ok(Some(incoming));
            }
        }
        Ok(None)
    }

    fn read_ident(&mut self, input: &mut BytesMut) -> Result<Option<Incoming>, Error> {
        let Some(reader) = &mut self.peer.ident_reader else {
            return Ok(None);
        };
        let before = input.len();
        let ident = reader.read(input);
        self.inbound.bytes += (before - input.len()) as u64;
        let Some(ident) = ident? else { return Ok(None) };
        self.peer.ident = Some(ident);
        self.peer.ident_reader = None;
        Ok(Some(Incoming::Ident))
    }

    /// What the peer said instead of its identification, since the last call; with `all` also half a line. Foreign
    /// text, at most [`MAX_GREETING`](super::MAX_GREETING) bytes in all.
    pub(crate) fn take_greeting(&mut self, all: bool) -> Option<String> {
        self.peer.ident_reader.as_mut()?.take_greeting(all)
    }

    fn handle_packet(&mut self, now: Instant, payload: Bytes) -> Result<Option<Incoming>, Error> {
        let number = payload.first().copied().ok_or(Violation::Truncated)?;
        match number {
            DISCONNECT => Err(read_disconnect(&payload)),
            IGNORE | DEBUG | UNIMPLEMENTED => self.handle_ignorable(number, &payload),
            KEXINIT => self.handle_kexinit(now, payload),
            NEWKEYS => self.handle_newkeys(now, &payload),
            30..=49 => self.handle_kex_message(number, &payload),
            _ if self.is_peer_in_exchange() => Err(Violation::UnexpectedMessage(number).into()),
            EXT_INFO => self.handle_ext_info(&payload),
            PING => self.handle_ping(&payload).map(|()| None),
            // We have sent no PING; OpenSSH passes over it too.
            PONG => Ok(None),
            SERVICE_REQUEST | SERVICE_ACCEPT | 50..=127 => Ok(Some(Incoming::Packet(payload))),
            _ => self.reject_packet().map(|()| None),
        }
    }

    /// The peer may send nothing but key exchange: before its first NEWKEYS, and from each KEXINIT to the NEWKEYS
    /// behind it (RFC 4253 §7.1).
    fn is_peer_in_exchange(&self) -> bool {
        !self.peer.keyed
            || self
                .exchange
                .as_ref()
                .is_some_and(|exchange| exchange.has_their_kexinit())
    }

    fn handle_ignorable(&mut self, number: u8, payload: &[u8]) -> Result<Option<Incoming>, Error> {
        if !self.peer.keyed {
            if self.peer.strict {
                return Err(Violation::UnexpectedMessage(number).into());
            }
            self.peer.ignored += 1;
            if self.peer.ignored > MAX_IGNORED_BEFORE_KEYS {
                return Err(Violation::IgnoreFlood.into());
            }
        }
        if number != UNIMPLEMENTED {
            return Ok(None);
        }
        let mut reader = Reader::new(payload);
        reader.byte()?;
        Ok(Some(Incoming::Unimplemented(reader.uint32()?)))
    }

    /// As OpenSSH, a PING is answered after the login only, and not while our own key exchange is under way: answers
    /// that wait for its end could hold up its reading.
    fn handle_ping(&mut self, payload: &[u8]) -> Result<(), Error> {
        let mut reader = Reader::new(payload);
        reader.byte()?;
        let data = reader.string()?;
        reader.finish()?;
        if data.len() > MAX_PING {
            return self.reject_packet();
        }
        if self.peer.logged_in && self.sending == Sending::Open && self.exchange.is_none() {
            self.send(|packet| {
                packet.byte(PONG).string(data);
            });
        }
        Ok(())
    }

    fn handle_ext_info(&mut self, payload: &[u8]) -> Result<Option<Incoming>, Error> {
        self.peer.ext_infos += 1;
        if self.peer.logged_in || self.peer.ext_infos > ext_info::MAX_EXT_INFOS {
            return Err(Violation::ExtInfoUnexpected.into());
        }
        Ok(Some(Incoming::ExtInfo(ExtInfo::parse(payload)?)))
    }
}

/// A peer that says goodbye badly has still said goodbye.
fn read_disconnect(payload: &[u8]) -> Error {
    let mut reader = Reader::new(payload);
    let code = reader.byte().and_then(|_| reader.uint32()).unwrap_or_default();
    let text = reader.string().unwrap_or_default();
    let text = text.get(..MAX_DESCRIPTION).unwrap_or(text);
    Error::Disconnected {
        code,
        description: String::from_utf8_lossy(text).into_owned(),
    }
}
