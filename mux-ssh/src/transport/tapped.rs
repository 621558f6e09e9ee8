//! Where a server that misbehaves on purpose gets at its packets: between their payloads and their encryption. It
//! decides nothing; the plan behind [`Tap`] does.

use std::sync::Arc;

use bytes::BytesMut;
use mux_proto::SendQueue;

use super::packet::Outbound;
use super::{HostKey, Role, Transport};
use crate::server::tap::{Changes, Emission, Silence, Tap};
use crate::wire::Writer;

impl Outbound {
    /// Seals what the plan makes of the payload.
    pub(super) fn seal_tapped(
        &mut self,
        mut tap: Box<Tap>,
        out: &mut BytesMut,
        write: impl FnOnce(&mut Writer<'_>),
    ) {
        let mut payload = BytesMut::new();
        write(&mut Writer::new(&mut payload));
        let emissions = tap.packet(&payload);
        for emission in emissions {
            match emission {
                Emission::Raw(bytes) => out.extend_from_slice(&bytes),
                Emission::Packet(payload) => self.seal_in_place(out, |packet| {
                    packet.raw(&payload);
                }),
                Emission::Itself(changes) => self.seal_changed(out, &payload, &changes),
            }
        }
        self.tap = Some(tap);
    }

    /// Seals one packet, with these changes before and after its encryption.
    fn seal_changed(&mut self, out: &mut BytesMut, payload: &[u8], changes: &Changes) {
        let start = self.lay_out(out, |packet| {
            packet.raw(changes.replaced.as_deref().unwrap_or(payload));
        });
        let header = out.get_mut(start..).and_then(|packet| packet.first_chunk_mut());
        let [length @ .., padding]: &mut [u8; 5] = header.expect("every packet has its two fields");
        if let Some(claimed) = changes.length {
            *length = claimed.to_be_bytes();
        }
        *padding = changes.padding.unwrap_or(*padding);
        self.encrypt(out, start);
        mangle(out, start, changes);
    }

    /// Appends what the plan makes of the identification.
    pub(super) fn put_ident_tapped(&mut self, out: &mut BytesMut, line: &[u8]) {
        let Some(mut tap) = self.tap.take() else {
            return out.extend_from_slice(line);
        };
        for emission in tap.ident(line) {
            match emission {
                Emission::Raw(bytes) | Emission::Packet(bytes) => out.extend_from_slice(&bytes),
                Emission::Itself(changes) => {
                    let start = out.len();
                    out.extend_from_slice(changes.replaced.as_deref().unwrap_or(line));
                    mangle(out, start, &changes);
                }
            }
        }
        self.tap = Some(tap);
    }
}

impl Transport {
    /// Misbehaves by this plan from now on.
    pub(crate) fn set_tap(&mut self, tap: Option<Box<Tap>>) {
        self.outbound.tap = tap;
    }

    /// Why nothing leaves any more.
    pub(crate) fn silence(&self) -> Option<Silence> {
        self.outbound.tap.as_ref().and_then(|tap| tap.silence())
    }

    /// Whether a flood is under way, behind which everything else has to wait.
    pub(crate) fn is_flooding(&self) -> bool {
        self.outbound.tap.as_ref().is_some_and(|tap| tap.is_flooding())
    }

    /// Seals as much of a flood as there is room for.
    pub(crate) fn flush_flood(&mut self, out: &mut SendQueue) {
        while out.has_room()
            && let Some(payload) = self.outbound.tap.as_mut().and_then(|tap| tap.flood())
        {
            self.outbound.seal_in_place(out.tail(), |packet| {
                packet.raw(&payload);
            });
        }
    }

    /// Uses these host keys in the key exchanges to come.
    pub(crate) fn replace_host_keys(&mut self, keys: Arc<[HostKey]>) {
        if let Role::Server { host_keys, .. } = &mut self.role {
            *host_keys = keys;
        }
    }
}

/// What happens to bytes on their way.
fn mangle(out: &mut BytesMut, start: usize, changes: &Changes) {
    let sent = out.get_mut(start..).unwrap_or_default();
    let bits = sent.len() * 8;
    if let Some(bit) = changes.flip.filter(|_| bits > 0).map(|bit| bit % bits)
        && let Some(byte) = sent.get_mut(bit / 8)
    {
        *byte ^= 1 << (bit % 8);
    }
    if let Some(bytes) = changes.cut {
        out.truncate(start.saturating_add(bytes));
    }
    if changes.replay {
        out.extend_from_within(start..);
    }
}
