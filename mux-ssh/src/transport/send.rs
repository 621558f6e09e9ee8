//! What leaves, and in which order: identification, key exchange, packets of services, DISCONNECT. It decides what a key
//! exchange holds back (RFC 4253 §7.1); it never decides which service speaks next.

use std::time::Instant;

use bytes::BytesMut;
use mux_proto::SendQueue;

use super::{MAX_OWED, Sending, Transport};
use crate::message::{self, KEXINIT, NEWKEYS};
use crate::wire::Writer;

impl Transport {
    /// Encrypts what is queued, as far as the key exchange allows.
    pub(crate) fn poll_transmit(&mut self, now: Instant, out: &mut SendQueue) {
        if self.sending == Sending::Over {
            return;
        }
        if self.sending == Sending::Unstarted {
            self.start(now, out);
        }
        if self.rekey_due(now) {
            self.start_rekey(now);
        }
        self.flush_control(out);
        while self.sending == Sending::Open && out.has_room() {
            let Some(frame) = self.services.front() else { break };
            self.outbound.seal(out.tail(), |packet| {
                packet.raw(frame);
            });
            self.services.pop();
            if self.rekey_due(now) {
                self.start_rekey(now);
                self.flush_control(out);
            }
        }
        let done = self.services.is_empty() || self.sending == Sending::Exchange;
        if let Some(goodbye) = self.goodbye.take_if(|_| done) {
            self.outbound.seal(out.tail(), |packet| {
                packet.raw(&goodbye);
            });
            self.sending = Sending::Over;
            self.services.clear();
        }
    }

    /// Queues a packet of a service. It leaves with [`Self::poll_transmit`], behind NEWKEYS if a key exchange is
    /// under way. The caller bounds its size: 256 KiB is what OpenSSH accepts, 32 KiB what everyone must.
    pub(crate) fn send(&mut self, write: impl FnOnce(&mut Writer<'_>)) {
        if self.error.is_none() && self.goodbye.is_none() && self.sending != Sending::Over {
            self.services.push(write);
        }
    }

    /// Encrypts a packet of a service straight into `out`, without a copy, where [`Self::can_send_now`] says so;
    /// queues it otherwise.
    pub(crate) fn send_now(&mut self, out: &mut SendQueue, write: impl FnOnce(&mut Writer<'_>)) {
        if self.can_send_now() {
            self.outbound.seal(out.tail(), write);
        } else {
            self.send(write);
        }
    }

    /// Whether packets of services leave now: no key exchange is under way or due, nothing is queued before them.
    pub(crate) fn can_send_now(&self) -> bool {
        self.sending == Sending::Open
            && self.control.is_empty()
            && self.services.is_empty()
            && self.goodbye.is_none()
            && self.error.is_none()
            && !self.is_used_up()
    }

    /// Whether so much waits that reading has to stop. Never during a key exchange, whose end must be read before
    /// anything leaves.
    pub(crate) fn owes_much(&self) -> bool {
        let held_back = self.exchange.is_some() || self.sending != Sending::Open;
        !held_back && self.services.len() > MAX_OWED
    }

    /// Bytes of packets that are queued and not yet encrypted. A client writes its packets when there is room instead.
    #[cfg(any(test, feature = "server"))]
    pub(crate) fn queued(&self) -> usize {
        self.control.len() + self.services.len()
    }

    /// Queues DISCONNECT, which leaves behind what is queued. Nothing is sent after it.
    pub(crate) fn disconnect(&mut self, code: u32, description: &str) {
        let mut goodbye = BytesMut::with_capacity(1 + 3 * 4 + description.len());
        Writer::new(&mut goodbye)
            .byte(message::DISCONNECT)
            .uint32(code)
            .string(description)
            .string("");
        self.goodbye.get_or_insert(goodbye.freeze());
    }

    /// The sequence number that the next packet given to [`Self::send`] will have, for matching
    /// [`Incoming::Unimplemented`]. Right from the answer about the host key on, until a key exchange comes between.
    pub(crate) fn next_send_sequence(&self) -> u32 {
        let behind_control = self
            .control
            .iter()
            .fold(self.outbound.sequence, |sequence, frame| {
                let reset = self.peer.strict && frame.first() == Some(&NEWKEYS);
                if reset { 0 } else { sequence.wrapping_add(1) }
            });
        behind_control.wrapping_add(self.services.count())
    }

    /// The first flight: it leaves before anything was read.
    fn start(&mut self, now: Instant, out: &mut SendQueue) {
        let ident = format!("{}\r\n", self.our_ident);
        self.outbound.put_ident(out.tail(), ident.as_bytes());
        self.sending = Sending::Exchange;
        if self.exchange.is_none()
            && self.error.is_none()
            && let Err(error) = self.begin_exchange(now)
        {
            self.fail(error);
        }
    }

    fn flush_control(&mut self, out: &mut SendQueue) {
        while let Some(frame) = self.control.front() {
            let number = frame.first().copied();
            self.outbound.seal(out.tail(), |packet| {
                packet.raw(frame);
            });
            self.control.pop();
            if number == Some(KEXINIT) {
                self.sending = Sending::Exchange;
            }
            if let Some(sealer) = self.next_sealer.take_if(|_| number == Some(NEWKEYS)) {
                self.outbound.rekey(sealer, self.peer.strict);
                self.sending = Sending::Open;
            }
        }
    }
}
