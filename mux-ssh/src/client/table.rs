//! The channels of a connection by our numbers for them: who is where. It decides which number a new one gets, the
//! lowest that is free, and nothing else.

use super::channel::{Channel, State};
use super::{ChannelId, DirectTcpip, Exec};

#[derive(Debug, Default)]
pub(crate) struct Table {
    slots: Vec<Option<Box<Channel>>>,
    generation: u32,
}

impl Table {
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The numbers in use, and some that are not.
    pub(crate) fn numbers(&self) -> std::ops::Range<u32> {
        0..u32::try_from(self.slots.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Channel> {
        self.slots.iter().flatten().map(|channel| &**channel)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Channel> {
        self.slots.iter_mut().flatten().map(|channel| &mut **channel)
    }

    /// How many sessions are confirmed. Connections that the server makes count toward no limit on those.
    pub(crate) fn open(&self) -> usize {
        self.iter()
            .filter(|channel| channel.is_session() && matches!(channel.state, State::Open { .. }))
            .count()
    }

    /// The channel of this number.
    pub(crate) fn slot(&mut self, slot: u32) -> Option<&mut Channel> {
        let slot = self.slots.get_mut(usize::try_from(slot).ok()?)?;
        slot.as_deref_mut()
    }

    /// The channel of a command that has not had its final event.
    pub(crate) fn owned(&mut self, id: ChannelId) -> Option<&mut Channel> {
        self.slot(id.slot)
            .filter(|channel| channel.id == id && channel.is_owed())
    }

    pub(crate) fn owned_ref(&self, id: ChannelId) -> Option<&Channel> {
        let slot = self.slots.get(usize::try_from(id.slot).ok()?)?;
        slot.as_deref()
            .filter(|channel| channel.id == id && channel.is_owed())
    }

    pub(crate) fn free(&mut self, slot: u32) -> Option<Box<Channel>> {
        let freed = self.slots.get_mut(usize::try_from(slot).ok()?)?.take();
        while self.slots.last().is_some_and(Option::is_none) {
            self.slots.pop();
        }
        if self.slots.is_empty() {
            // An idle connection holds no table.
            self.slots = Vec::new();
        }
        freed
    }

    pub(crate) fn clear(&mut self) {
        self.slots = Vec::new();
    }

    /// An id that was never given before.
    pub(crate) fn new_id(&mut self, slot: u32) -> ChannelId {
        self.generation = self.generation.wrapping_add(1);
        ChannelId {
            slot,
            generation: self.generation,
        }
    }

    /// Puts a session into the lowest free slot; a spare has no command.
    pub(crate) fn insert(&mut self, exec: Option<Exec>) -> ChannelId {
        self.insert_with(|id| Channel::new(id, exec))
    }

    /// Puts a connection that the server is to make into the lowest free slot.
    pub(crate) fn insert_direct(&mut self, to: DirectTcpip) -> ChannelId {
        self.insert_with(|id| Channel::direct(id, to))
    }

    /// Puts a channel that the server has opened into the lowest free slot.
    pub(crate) fn insert_agent(&mut self, number: u32, window: u32, max_packet: u32) -> ChannelId {
        self.insert_with(|id| Channel::agent(id, number, window, max_packet))
    }

    fn insert_with(&mut self, make: impl FnOnce(ChannelId) -> Channel) -> ChannelId {
        let free = self.slots.iter().position(Option::is_none);
        let index = free.unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        let id =
            self.new_id(u32::try_from(index).expect("channels are bounded by MAX_CHANNELS and MAX_DIRECT"));
        if let Some(slot) = self.slots.get_mut(index) {
            *slot = Some(Box::new(make(id)));
        }
        id
    }
}
