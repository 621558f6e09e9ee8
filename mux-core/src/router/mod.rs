//! Who lies where, and which frame may pass: the table behind a relay. Decides what becomes of every frame for another
//! node, of every route and every loss; holds no frame, no connection and no link.
//!
//! A node has neighbours above it (its parent; a hub has its clients) and below it (children). Authority goes down:
//!
//! ```text
//!            parent, or clients            opens channels to any node beneath
//!                  │
//!                this node                 passes on, judges, counts credit
//!              ┌───┴───┐
//!           child    child                 answer on channels that were opened from above, and never reach each other
//!             │
//!           nodes beneath it, announced by it
//! ```
//!
//! There is no route upward. A frame from below names a channel that was opened from above and goes to where its opening
//! came from, so that it cannot bounce, circle or reach anybody who did not ask.

mod judge;
mod passage;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use mux_proto::body::Route;
use mux_proto::connection::{FlowId, MAX_ROUTES};
use mux_proto::frame::NodeId;

pub use judge::Verdict;
use passage::Passage;

/// Nodes that are gone and remembered, so that whoever still writes to them hears that they are gone, and so that
/// nobody takes their numbers. Beyond that the lowest numbers are forgotten, which are the oldest.
const MAX_RETIRED: usize = 65_536;

/// Openers above whose last numbers are remembered, beyond those with channels.
const MAX_OPENERS: usize = 1024;

/// Where a neighbour is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Above, and it speaks for nodes above it.
    Parent,
    /// Above, and it speaks for itself alone.
    Client,
    /// Below.
    Child,
}

/// Why a neighbour or a route cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misplaced {
    /// The number is somebody's, or was.
    Taken(NodeId),
    /// No such node lies beneath that link.
    Unknown(NodeId),
    /// More nodes than [`MAX_ROUTES`].
    TooMany,
}

/// A channel between two other nodes that has ended because one of them is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended<L> {
    /// The link to whoever opened it.
    pub above: L,
    /// The link to the other end.
    pub below: L,
    /// Its direction upward.
    pub up: FlowId,
}

/// What a loss brings with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss<L> {
    /// Channels whose lower end is gone: behind what came from it, whoever opened them gets a reset.
    pub answerless: Vec<Ended<L>>,
    /// Channels whose opener is gone: their lower end gets a reset, at once.
    pub ownerless: Vec<Ended<L>>,
    /// Nodes whose loss is to be announced above.
    pub lost: Vec<NodeId>,
}

impl<L> Default for Loss<L> {
    fn default() -> Self {
        Self {
            answerless: Vec::new(),
            ownerless: Vec::new(),
            lost: Vec::new(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Neighbour {
    place: Place,
    node: NodeId,
    /// A child has greeted: those above know of it.
    is_known: bool,
}

/// A channel is named by whoever opened it, and the number that it gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Opened {
    opener: NodeId,
    number: u32,
}

/// The table. `L` names a link.
#[derive(Debug)]
pub struct Router<L> {
    own: NodeId,
    next: Option<u32>,
    neighbours: BTreeMap<L, Neighbour>,
    /// Every node beneath this one, and the link that leads to it.
    nodes: BTreeMap<NodeId, L>,
    retired: BTreeSet<NodeId>,
    passages: BTreeMap<Opened, Passage<L>>,
    /// The last number that each node above has opened with.
    last: BTreeMap<NodeId, u32>,
}

impl<L: Copy + Ord> Router<L> {
    /// The table of node `own`, which knows nobody yet.
    #[must_use]
    pub fn new(own: NodeId) -> Self {
        Self {
            own,
            next: own.0.checked_add(1),
            neighbours: BTreeMap::new(),
            nodes: BTreeMap::new(),
            retired: BTreeSet::new(),
            passages: BTreeMap::new(),
            last: BTreeMap::new(),
        }
    }

    /// This node.
    #[must_use]
    pub fn own(&self) -> NodeId {
        self.own
    }

    /// A number that no node has or had: for the one that gives all numbers of a tree, the hub. `None` once they are used
    /// up, after four thousand million.
    pub fn allot(&mut self) -> Option<NodeId> {
        let number = self.next?;
        self.next = number.checked_add(1);
        Some(NodeId(number))
    }

    /// A neighbour. A child can be reached from now on; those above learn of it when it [is known](Self::greeted).
    ///
    /// # Errors
    /// The number is another node's or was one's, or there are too many.
    pub fn add(&mut self, link: L, place: Place, node: NodeId) -> Result<(), Misplaced> {
        self.check_free(node)?;
        if place == Place::Child {
            self.nodes.insert(node, link);
        }
        let neighbour = Neighbour {
            place,
            node,
            is_known: place != Place::Child,
        };
        self.neighbours.insert(link, neighbour);
        Ok(())
    }

    /// A child has said hello. Gives its number, which is to be announced above, the first time.
    pub fn greeted(&mut self, link: L) -> Option<NodeId> {
        let neighbour = self.neighbours.get_mut(&link)?;
        let was_known = std::mem::replace(&mut neighbour.is_known, true);
        (!was_known).then_some(neighbour.node)
    }

    /// A child tells what lies beneath it. What it says is to be announced above as it is.
    ///
    /// # Errors
    /// It says something that cannot be: the link is to be ended. Part of it may have been taken, which losing the link
    /// undoes.
    pub fn learn(&mut self, link: L, route: &Route) -> Result<Loss<L>, Misplaced> {
        for &node in &route.added {
            self.check_free(node)?;
            self.nodes.insert(node, link);
        }
        for node in &route.lost {
            if self.nodes.get(node) != Some(&link) {
                return Err(Misplaced::Unknown(*node));
            }
        }
        Ok(self.lose_nodes(route.lost.clone()))
    }

    /// The link is gone, and all that lies behind it.
    pub fn lose(&mut self, link: L) -> Loss<L> {
        let Some(neighbour) = self.neighbours.remove(&link) else {
            return Loss::default();
        };
        if neighbour.place == Place::Child {
            let beneath = self.nodes.iter().filter(|(_, to)| **to == link);
            let beneath = beneath.map(|(node, _)| *node).collect();
            let mut loss = self.lose_nodes(beneath);
            if !neighbour.is_known {
                loss.lost.clear();
            }
            return loss;
        }
        self.retire(neighbour.node);
        if neighbour.place == Place::Client {
            self.last.remove(&neighbour.node);
        }
        let ownerless = self.passages.extract_if(.., |_, passage| passage.above == link);
        Loss {
            ownerless: ownerless.map(|(opened, passage)| passage.ended(opened)).collect(),
            ..Loss::default()
        }
    }

    /// Nodes beneath this one that those above know of.
    pub fn known(&self) -> impl Iterator<Item = NodeId> {
        let is_known = |link: &L| self.neighbours.get(link).is_some_and(|link| link.is_known);
        let known = self.nodes.iter().filter(move |(_, link)| is_known(link));
        known.map(|(node, _)| *node)
    }

    /// Links to those above.
    pub fn above(&self) -> impl Iterator<Item = L> {
        let above = self.neighbours.iter();
        above
            .filter(|(_, neighbour)| neighbour.place != Place::Child)
            .map(|(link, _)| *link)
    }

    /// The link that leads to a node beneath this one.
    #[must_use]
    pub fn way(&self, node: NodeId) -> Option<L> {
        self.nodes.get(&node).copied()
    }

    /// Where a link leads.
    #[must_use]
    pub fn place(&self, link: L) -> Option<Place> {
        self.neighbours.get(&link).map(|neighbour| neighbour.place)
    }

    /// Channels that pass through.
    #[must_use]
    pub fn passages(&self) -> usize {
        self.passages.len()
    }

    fn check_free(&self, node: NodeId) -> Result<(), Misplaced> {
        let is_above = |neighbour: &Neighbour| neighbour.place != Place::Child && neighbour.node == node;
        let is_taken = node == NodeId::NEIGHBOUR
            || node == self.own
            || self.nodes.contains_key(&node)
            || self.retired.contains(&node)
            || self.last.contains_key(&node)
            || self.neighbours.values().any(is_above);
        if is_taken {
            return Err(Misplaced::Taken(node));
        }
        if self.nodes.len() >= MAX_ROUTES {
            return Err(Misplaced::TooMany);
        }
        Ok(())
    }

    fn lose_nodes(&mut self, lost: Vec<NodeId>) -> Loss<L> {
        if lost.is_empty() {
            return Loss::default();
        }
        let gone: BTreeSet<NodeId> = lost.iter().copied().collect();
        let answerless = self
            .passages
            .extract_if(.., |_, passage| gone.contains(&passage.far));
        let answerless = answerless
            .map(|(opened, passage)| passage.ended(opened))
            .collect();
        for &node in &lost {
            self.nodes.remove(&node);
            self.retire(node);
        }
        Loss {
            answerless,
            lost,
            ..Loss::default()
        }
    }

    fn retire(&mut self, node: NodeId) {
        self.retired.insert(node);
        if self.retired.len() > MAX_RETIRED {
            self.retired.pop_first();
        }
    }
}

impl fmt::Display for Misplaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken(node) => write!(f, "{node} is taken, or was"),
            Self::Unknown(node) => write!(f, "{node} does not lie beneath this link"),
            Self::TooMany => write!(f, "more than {MAX_ROUTES} nodes"),
        }
    }
}

impl std::error::Error for Misplaced {}
