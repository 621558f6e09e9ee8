//! Who may start a process of the system's `ssh`, and when: so many at once in all, and so many logins at each door.
//! Never starts anything itself.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::RequestId;
use super::pace::{Company, HANDSHAKES_PER_ENDPOINT};

/// Processes at once. Each takes 62 ms of CPU to log in and 1.5 MB while it lives: these are 100 MB, and more would
/// only wait for the processor.
pub(super) const MAX_CHILDREN: usize = 64;

/// The children of a run.
#[derive(Debug, Default)]
pub(super) struct Children {
    running: usize,
    /// Those that have not logged in yet, by the first server on their way: a host, or the jump host of many.
    logging_in: HashMap<Arc<str>, usize>,
    company: HashMap<Arc<str>, Company>,
    waiting: VecDeque<(RequestId, Arc<str>)>,
}

impl Children {
    /// Takes a place, or queues for one; a queued request is named by [`granted`](Self::granted) once it has its place.
    pub(super) fn enter(&mut self, request: RequestId, door: &Arc<str>) -> bool {
        self.company.entry(Arc::clone(door)).or_default().visit(request);
        if self.has_room(door) {
            self.take(door);
            return true;
        }
        self.waiting.push_back((request, Arc::clone(door)));
        false
    }

    fn has_room(&self, door: &str) -> bool {
        let at_door = self.logging_in.get(door).copied().unwrap_or_default();
        self.running < MAX_CHILDREN && at_door < HANDSHAKES_PER_ENDPOINT
    }

    fn take(&mut self, door: &Arc<str>) {
        self.running += 1;
        *self.logging_in.entry(Arc::clone(door)).or_default() += 1;
    }

    /// A child is known to its server.
    pub(super) fn logged_in(&mut self, door: &str) {
        if let Some(count) = self.logging_in.get_mut(door) {
            *count -= 1;
            if *count == 0 {
                self.logging_in.remove(door);
            }
        }
    }

    /// The server of a child has sent its identification.
    pub(super) fn answered(&mut self, door: &str) {
        if let Some(company) = self.company.get_mut(door) {
            company.answered();
        }
    }

    /// Whether one that is turned away at `door` may be one too many there.
    pub(super) fn is_crowded(&self, door: &str, says_so: bool, times: u32) -> bool {
        self.company
            .get(door)
            .is_some_and(|company| company.is_crowd(says_so, times))
    }

    /// A child is gone.
    pub(super) fn leave(&mut self) {
        self.running -= 1;
    }

    /// Leaves the queue without having had a place.
    pub(super) fn give_up(&mut self, request: RequestId) {
        self.waiting.retain(|(waiting, _)| *waiting != request);
    }

    /// The next one whose turn has come; it has its place now.
    pub(super) fn granted(&mut self) -> Option<RequestId> {
        let at = self.waiting.iter().position(|(_, door)| self.has_room(door))?;
        let (request, door) = self.waiting.remove(at)?;
        self.take(&door);
        Some(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door(name: &str) -> Arc<str> {
        Arc::from(name)
    }

    #[test]
    fn a_door_admits_eight_logins_and_another_door_is_not_held_up() {
        let mut children = Children::default();
        let admitted = (0..10).filter(|id| children.enter(RequestId(*id), &door("jump")));
        assert_eq!(admitted.count(), 8);
        assert!(children.enter(RequestId(12), &door("other")));
        assert_eq!(children.granted(), None);
        children.logged_in("jump");
        assert_eq!(children.granted(), Some(RequestId(8)));
        assert_eq!(children.granted(), None);
        children.give_up(RequestId(9));
        children.logged_in("jump");
        assert_eq!(children.granted(), None);
    }

    #[test]
    fn in_all_there_are_no_more_than_the_limit() {
        let mut children = Children::default();
        for id in 0..100 {
            children.enter(RequestId(id), &door(&id.to_string()));
        }
        assert_eq!(children.running, MAX_CHILDREN);
        children.logged_in("0");
        assert_eq!(children.granted(), None);
        children.leave();
        assert_eq!(children.granted(), Some(RequestId(64)));
    }
}
