//! The binary packet protocol (RFC 4253 §6): one payload into one packet and back, in place. It decides which lengths
//! are possible before anything is waited for, and looks at nothing before its tag was verified.

use bytes::{Buf, Bytes, BytesMut};

use super::cipher::{LENGTH, Opener, Sealer};
use crate::Violation;
use crate::wire::Writer;

/// What OpenSSH accepts too (`PACKET_MAX_SIZE`): a packet has to be whole before its tag can be verified, so this is
/// what a peer can make us hold.
pub const MAX_PACKET: usize = 256 * 1024;
/// Before the first NEWKEYS: what RFC 4253 §6.1 requires everyone to accept. No key exchange comes near it.
pub const MAX_PLAIN_PACKET: usize = 35_000;
/// RFC 4253 §6: at least this much padding.
const MIN_PADDING: usize = 4;
/// `packet_length` and `padding_length`.
const HEADER: usize = LENGTH + 1;
/// Payloads below this size are copied out of the input: a slice of it would keep the whole read buffer alive.
const COPY_BELOW: usize = 4 * 1024;

/// What went through one direction under its present key.
#[derive(Debug, Default)]
pub(super) struct Usage {
    pub(super) packets: u32,
    pub(super) bytes: u64,
}

/// The packets that we send.
#[derive(Debug)]
pub(super) struct Outbound {
    sealer: Sealer,
    pub(super) sequence: u32,
    pub(super) usage: Usage,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// A server that misbehaves has its way with every packet.
    #[cfg(feature = "server")]
    pub(super) tap: Option<Box<crate::server::tap::Tap>>,
}

impl Outbound {
    pub(super) fn new() -> Self {
        Self {
            sealer: Sealer::Plain,
            sequence: 0,
            usage: Usage::default(),
            packets: 0,
            bytes: 0,
            #[cfg(feature = "server")]
            tap: None,
        }
    }

    /// Appends the identification to `out`.
    pub(super) fn put_ident(&mut self, out: &mut BytesMut, line: &[u8]) {
        let start = out.len();
        #[cfg(feature = "server")]
        self.put_ident_tapped(out, line);
        #[cfg(not(feature = "server"))]
        out.extend_from_slice(line);
        self.bytes += (out.len() - start) as u64;
    }

    /// Appends one packet to `out`.
    pub(super) fn seal(&mut self, out: &mut BytesMut, write: impl FnOnce(&mut Writer<'_>)) {
        #[cfg(feature = "server")]
        if let Some(tap) = self.tap.take() {
            return self.seal_tapped(tap, out, write);
        }
        self.seal_in_place(out, write);
    }

    /// Appends one packet to `out`: written, padded and encrypted where it stands.
    pub(super) fn seal_in_place(&mut self, out: &mut BytesMut, write: impl FnOnce(&mut Writer<'_>)) {
        let start = self.lay_out(out, write);
        self.encrypt(out, start);
    }

    /// Appends one packet to `out` as it is before its encryption. Returns where it starts.
    pub(super) fn lay_out(&self, out: &mut BytesMut, write: impl FnOnce(&mut Writer<'_>)) -> usize {
        let start = out.len();
        out.extend_from_slice(&[0; HEADER]);
        write(&mut Writer::new(out));
        let payload = out.len() - start - HEADER;
        let alignment = self.sealer.alignment();
        let unpadded = alignment.counted + 1 + payload + MIN_PADDING;
        let padding = MIN_PADDING + unpadded.next_multiple_of(alignment.block) - unpadded;
        // Zeros do: the padding is encrypted, and says nothing before there are keys.
        out.resize(out.len() + padding, 0);
        let length = u32::try_from(1 + payload + padding).expect("callers bound what they send");
        let packet = out.get_mut(start..).expect("the packet was just written");
        let (header, _) = packet.split_at_mut(HEADER);
        let (length_field, padding_field) = header.split_at_mut(LENGTH);
        length_field.copy_from_slice(&length.to_be_bytes());
        padding_field.fill(u8::try_from(padding).expect("less than 4 + 16"));
        start
    }

    /// Encrypts the packet that starts at `start`, and appends its tag.
    pub(super) fn encrypt(&mut self, out: &mut BytesMut, start: usize) {
        self.sealer.seal(self.sequence, out, start);
        self.count(out.len() - start);
    }

    /// What follows goes under a new key. Under strict key exchange the sequence starts again.
    pub(super) fn rekey(&mut self, sealer: Sealer, strict: bool) {
        self.sealer = sealer;
        self.usage = Usage::default();
        if strict {
            self.sequence = 0;
        }
    }

    fn count(&mut self, bytes: usize) {
        self.sequence = self.sequence.wrapping_add(1);
        self.usage.packets = self.usage.packets.saturating_add(1);
        self.usage.bytes += bytes as u64;
        self.packets += 1;
        self.bytes += bytes as u64;
    }
}

/// The packets that we receive.
#[derive(Debug)]
pub(super) struct Inbound {
    opener: Opener,
    /// The number of the next packet.
    pub(super) sequence: u32,
    /// The length of the packet at the front, once its first bytes are there.
    length: Option<usize>,
    pub(super) usage: Usage,
    /// Times that new keys took over.
    pub(super) rekeyed: u64,
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

impl Inbound {
    pub(super) fn new() -> Self {
        Self {
            opener: Opener::Plain,
            sequence: 0,
            length: None,
            usage: Usage::default(),
            rekeyed: 0,
            packets: 0,
            bytes: 0,
        }
    }

    /// Takes one packet from the front of `input`, if it is all there. The payload is never empty.
    pub(super) fn open(&mut self, input: &mut BytesMut) -> Result<Option<Bytes>, Violation> {
        let length = match self.length {
            Some(length) => length,
            None => {
                let Some(first) = input.first_chunk() else {
                    return Ok(None);
                };
                let length = self.checked_length(self.opener.packet_length(self.sequence, *first)?)?;
                *self.length.insert(length)
            }
        };
        let whole = LENGTH + length + self.opener.tag_length();
        let Some(packet) = input.get_mut(..whole) else {
            return Ok(None);
        };
        self.opener.open(self.sequence, packet)?;
        let payload = payload_length(packet, length)?;
        self.length = None;
        self.count(whole)?;
        Ok(Some(take_payload(input, whole, payload)))
    }

    /// What follows is under a new key. Under strict key exchange the sequence starts again.
    pub(super) fn rekey(&mut self, opener: Opener, strict: bool) {
        self.opener = opener;
        self.usage = Usage::default();
        self.rekeyed += 1;
        if strict {
            self.sequence = 0;
        }
    }

    fn checked_length(&self, length: u32) -> Result<usize, Violation> {
        let alignment = self.opener.alignment();
        let max = if self.opener.is_plain() {
            MAX_PLAIN_PACKET
        } else {
            MAX_PACKET
        };
        // The smallest packet: padding length, one byte of payload, four of padding.
        let min = 1 + 1 + MIN_PADDING;
        let bytes = usize::try_from(length).map_err(|_| Violation::PacketLength(length))?;
        let aligned = (alignment.counted + bytes % alignment.block).is_multiple_of(alignment.block);
        if (min..=max).contains(&bytes) && aligned {
            Ok(bytes)
        } else {
            Err(Violation::PacketLength(length))
        }
    }

    fn count(&mut self, bytes: usize) -> Result<(), Violation> {
        self.sequence = self.sequence.wrapping_add(1);
        self.packets += 1;
        self.bytes += bytes as u64;
        self.usage.bytes += bytes as u64;
        // A peer that ignores our KEXINIT for 2^32 packets repeats nonces: nothing that follows can be believed.
        self.usage.packets = self.usage.packets.checked_add(1).ok_or(Violation::KeyExhausted)?;
        Ok(())
    }
}

/// The length of the payload in an opened packet.
fn payload_length(packet: &[u8], length: usize) -> Result<usize, Violation> {
    let padding = packet.get(LENGTH).copied().ok_or(Violation::Truncated)?;
    let payload = (length - 1).saturating_sub(usize::from(padding));
    if usize::from(padding) < MIN_PADDING || payload == 0 {
        return Err(Violation::PaddingLength(padding));
    }
    Ok(payload)
}

fn take_payload(input: &mut BytesMut, whole: usize, payload: usize) -> Bytes {
    if payload < COPY_BELOW {
        let copy = Bytes::copy_from_slice(input.get(HEADER..HEADER + payload).unwrap_or_default());
        input.advance(whole);
        return copy;
    }
    let mut packet = input.split_to(whole);
    packet.advance(HEADER);
    packet.truncate(payload);
    packet.freeze()
}
