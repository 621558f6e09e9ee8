//! One deadline per key, thousands of keys. Decides how little of that reaches the heap; never reads a clock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use slab::Slab;

use crate::Key;

/// A deadline that moves away (every packet pushes a keepalive further off) costs no heap operation: the entry stays
/// where it is and is put right when it comes up. Only a deadline that moves closer adds an entry, and entries that
/// nobody needs are swept once they outnumber the keys by this factor.
const SWEEP_FACTOR: usize = 2;
/// Below this many entries sweeping is not worth the walk.
const SWEEP_MIN: usize = 64;

/// The part of a slot that belongs to its timer.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    /// When the key's timer is to fire.
    deadline: Option<Instant>,
    /// The heap entry that looks after this slot; entries with another time are left-overs.
    entry: Option<Instant>,
    /// The deadline has passed and was not reported yet.
    due: bool,
}

impl Alarm {
    /// Whether the timer is due and was not set anew meanwhile. Says so once.
    pub(crate) fn take_due(&mut self) -> bool {
        std::mem::take(&mut self.due)
    }
}

/// What a slot of the reactor holds: the key that it stands for now, and its timer.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) key: Key,
    pub(crate) alarm: Alarm,
    /// The key is in the list of those to be reported again.
    pub(crate) again: bool,
}

impl Slot {
    pub(crate) fn new(key: Key) -> Self {
        Self {
            key,
            alarm: Alarm::default(),
            again: false,
        }
    }
}

/// The slot of `key`, unless something else has taken its place.
pub(crate) fn slot_of(slots: &mut Slab<Slot>, key: Key) -> Option<&mut Slot> {
    slots.get_mut(key.slot()).filter(|slot| slot.key == key)
}

#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Instant, Key)>>,
}

impl Timers {
    /// Sets, moves or drops the deadline of `key`.
    pub(crate) fn set(&mut self, slots: &mut Slab<Slot>, key: Key, at: Option<Instant>) {
        let Some(Slot { alarm, .. }) = slot_of(slots, key) else {
            return;
        };
        alarm.deadline = at;
        alarm.due = false;
        let Some(at) = at else { return };
        if alarm.entry.is_none_or(|entry| at < entry) {
            alarm.entry = Some(at);
            self.heap.push(Reverse((at, key)));
            if self.heap.len() > SWEEP_MIN + SWEEP_FACTOR * slots.len() {
                self.sweep(slots);
            }
        }
    }

    /// The next key whose deadline is not after `now`. The deadline is spent by this.
    pub(crate) fn pop_due(&mut self, slots: &mut Slab<Slot>, now: Instant) -> Option<Key> {
        let key = self.settle(slots)?;
        let alarm = &mut slot_of(slots, key)?.alarm;
        if alarm.deadline.is_none_or(|deadline| deadline > now) {
            return None;
        }
        self.heap.pop();
        *alarm = Alarm {
            due: true,
            ..Alarm::default()
        };
        Some(key)
    }

    /// The earliest deadline. May name one that was moved or dropped since the last turn: too early, never too late.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Puts the front of the heap right; returns the key of the earliest true deadline.
    pub(crate) fn settle(&mut self, slots: &mut Slab<Slot>) -> Option<Key> {
        loop {
            let Reverse((at, key)) = *self.heap.peek()?;
            let alarm = slot_of(slots, key)
                .map(|slot| &mut slot.alarm)
                .filter(|alarm| alarm.entry == Some(at));
            match alarm {
                Some(alarm) if alarm.deadline == Some(at) => return Some(key),
                Some(alarm) => {
                    alarm.entry = alarm.deadline;
                    self.heap.pop();
                    self.heap
                        .extend(alarm.deadline.map(|deadline| Reverse((deadline, key))));
                }
                None => {
                    self.heap.pop();
                }
            }
        }
    }

    fn sweep(&mut self, slots: &mut Slab<Slot>) {
        self.heap.clear();
        for (_, Slot { key, alarm, .. }) in slots.iter_mut() {
            alarm.entry = alarm.deadline;
            self.heap
                .extend(alarm.deadline.map(|deadline| Reverse((deadline, *key))));
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::indexing_slicing, reason = "a test fails by panicking")]

    use std::time::Duration;

    use super::*;

    struct Bench {
        slots: Slab<Slot>,
        timers: Timers,
        start: Instant,
    }

    impl Bench {
        fn new(keys: usize) -> (Self, Vec<Key>) {
            let mut slots = Slab::new();
            let keys = (0..keys)
                .map(|slot| {
                    let key = Key::new(slot, 1);
                    slots.insert(Slot::new(key));
                    key
                })
                .collect();
            (
                Self {
                    slots,
                    timers: Timers::default(),
                    start: Instant::now(),
                },
                keys,
            )
        }

        fn at(&self, seconds: u64) -> Instant {
            self.start + Duration::from_secs(seconds)
        }

        fn set(&mut self, key: Key, seconds: Option<u64>) {
            let at = seconds.map(|seconds| self.at(seconds));
            self.timers.set(&mut self.slots, key, at);
        }

        fn due(&mut self, seconds: u64) -> Vec<Key> {
            let now = self.at(seconds);
            std::iter::from_fn(|| self.timers.pop_due(&mut self.slots, now)).collect()
        }
    }

    #[test]
    fn fires_in_order_and_once() {
        let (mut bench, keys) = Bench::new(3);
        bench.set(keys[0], Some(3));
        bench.set(keys[1], Some(1));
        bench.set(keys[2], Some(2));
        assert_eq!(bench.due(2), [keys[1], keys[2]]);
        assert_eq!(bench.due(2), []);
        assert_eq!(bench.due(3), [keys[0]]);
    }

    #[test]
    fn a_later_deadline_replaces_an_earlier_one_without_a_heap_entry() {
        let (mut bench, keys) = Bench::new(1);
        for seconds in 1..1000 {
            bench.set(keys[0], Some(seconds));
        }
        assert_eq!(bench.timers.heap.len(), 1);
        assert_eq!(bench.due(998), []);
        assert_eq!(bench.timers.next(), Some(bench.at(999)));
        assert_eq!(bench.due(999), [keys[0]]);
    }

    #[test]
    fn an_earlier_deadline_replaces_a_later_one() {
        let (mut bench, keys) = Bench::new(1);
        bench.set(keys[0], Some(9));
        bench.set(keys[0], Some(4));
        assert_eq!(bench.due(4), [keys[0]]);
        assert_eq!(bench.due(9), []);
    }

    #[test]
    fn a_dropped_deadline_does_not_fire() {
        let (mut bench, keys) = Bench::new(1);
        bench.set(keys[0], Some(1));
        bench.set(keys[0], None);
        assert_eq!(bench.due(1), []);
        bench.set(keys[0], Some(5));
        assert_eq!(bench.due(5), [keys[0]]);
    }

    #[test]
    fn a_key_that_is_gone_does_not_fire_for_its_successor() {
        let (mut bench, keys) = Bench::new(1);
        bench.set(keys[0], Some(1));
        bench.slots.remove(0);
        let successor = Key::new(0, 2);
        bench.slots.insert(Slot::new(successor));
        bench.set(successor, Some(2));
        assert_eq!(bench.due(1), []);
        assert_eq!(bench.due(2), [successor]);
    }

    #[test]
    fn setting_a_timer_anew_takes_back_one_that_is_due() {
        let (mut bench, keys) = Bench::new(1);
        bench.set(keys[0], Some(1));
        assert_eq!(bench.due(1), [keys[0]]);
        bench.set(keys[0], Some(7));
        assert!(!bench.slots[0].alarm.take_due());
        assert_eq!(bench.due(7), [keys[0]]);
        assert!(bench.slots[0].alarm.take_due());
    }

    #[test]
    fn ever_earlier_deadlines_do_not_grow_the_heap_without_bound() {
        let (mut bench, keys) = Bench::new(2);
        for seconds in (1..10_000).rev() {
            bench.set(keys[0], Some(seconds));
        }
        assert!(bench.timers.heap.len() <= SWEEP_MIN + SWEEP_FACTOR * 2 + 1);
        assert_eq!(bench.due(1), [keys[0]]);
    }
}
