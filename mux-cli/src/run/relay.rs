//! Bytes between a link without a descriptor and the channel of another link that carries them. Moves as much as either
//! side has room for, and passes their ends on; decides nothing about who rides on what.

use std::collections::HashMap;
use std::io;

use bytes::Bytes;
use mux_core::{Driver, Key, Stream};
use mux_ssh::Client;
use mux_ssh::client::{ChannelId, Event as Said, StreamKind};

use super::wire::Wire;

/// Who rides on which channel of which link.
#[derive(Debug, Default)]
pub(super) struct Relays {
    by_rider: HashMap<Key, (Key, ChannelId)>,
    by_channel: HashMap<(Key, ChannelId), Key>,
}

impl Relays {
    /// Adds a link inside a channel that is open.
    pub(super) fn add(
        &mut self,
        driver: &mut Driver<Wire>,
        (carrier, channel): (Key, ChannelId),
        wire: Wire,
    ) -> io::Result<Key> {
        let rider = driver.add(Stream::Memory, wire)?;
        self.by_rider.insert(rider, (carrier, channel));
        self.by_channel.insert((carrier, channel), rider);
        Ok(rider)
    }

    /// A client has said something: what is not for a link inside one of its channels alone.
    pub(super) fn heard(&mut self, driver: &mut Driver<Wire>, carrier: Key, said: Said) -> Option<Said> {
        let place = said.channel().map(|channel| (carrier, channel));
        let Some((place, rider)) = place.and_then(|place| Some((place, *self.by_channel.get(&place)?)))
        else {
            return Some(said);
        };
        if let Said::Output { data, .. } = said {
            driver.deliver(rider, data);
            return None;
        }
        let is_over = matches!(said, Said::ChannelClosed { .. } | Said::ChannelFailed { .. });
        if is_over {
            self.by_channel.remove(&place);
        }
        if is_over || matches!(said, Said::Eof { .. }) {
            driver.deliver_eof(rider);
        } else if matches!(said, Said::StdinRoom { .. }) {
            self.outgoing(driver, rider);
        }
        is_over.then_some(said)
    }

    /// A rider has something to send.
    pub(super) fn outgoing(&self, driver: &mut Driver<Wire>, rider: Key) {
        let Some(&(carrier, channel)) = self.by_rider.get(&rider) else {
            return;
        };
        loop {
            let room = client(driver, carrier).map_or(0, |client| client.stdin_room(channel));
            if room == 0 {
                // The channel says when there is more room.
                return;
            }
            let data: Bytes = driver.take_outgoing(rider, room);
            if data.is_empty() {
                return;
            }
            if let Some(client) = client(driver, carrier)
                && let Err(error) = client.write_stdin(channel, data)
            {
                log::debug!("{rider:?} on {carrier:?}: {error}");
            }
        }
    }

    /// A rider will send nothing more.
    pub(super) fn finished(&self, driver: &mut Driver<Wire>, rider: Key) {
        self.outgoing(driver, rider);
        if let Some(&(carrier, channel)) = self.by_rider.get(&rider)
            && let Some(client) = client(driver, carrier)
        {
            client.finish_stdin(channel);
        }
    }

    /// A rider has seen `count` bytes more of what was delivered.
    pub(super) fn consumed(&self, driver: &mut Driver<Wire>, rider: Key, count: usize) {
        if let Some(&(carrier, channel)) = self.by_rider.get(&rider)
            && let Some(client) = client(driver, carrier)
        {
            client.consume(channel, StreamKind::Stdout, count);
        }
    }

    /// A link is gone. Returns whether it was a rider; its channel goes with it.
    pub(super) fn closed(&mut self, driver: &mut Driver<Wire>, link: Key) -> bool {
        let Some((carrier, channel)) = self.by_rider.remove(&link) else {
            return false;
        };
        if self.by_channel.remove(&(carrier, channel)).is_some()
            && let Some(client) = client(driver, carrier)
        {
            client.close_channel(channel);
        }
        true
    }

    /// A link was dropped without a word: those that ride on it hear that it is gone.
    pub(super) fn dropped(&mut self, driver: &mut Driver<Wire>, carrier: Key) {
        self.by_channel.retain(|(key, _), rider| {
            let is_gone = *key == carrier;
            if is_gone {
                driver.deliver_eof(*rider);
            }
            !is_gone
        });
    }
}

fn client(driver: &mut Driver<Wire>, key: Key) -> Option<&mut Client> {
    match driver.protocol(key)? {
        Wire::Ssh(client) => Some(client),
        Wire::Agent(_) | Wire::Tunnel(_) | Wire::Pipe(_) | Wire::Node(_) => None,
    }
}
