//! Channels between two other nodes on the link on which their frames leave: when a route is lost behind them, and what
//! is dropped. Decides nothing about who may send what.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;

use super::channel::{Last, Step};
use super::channels::{Channels, LEAVES_LINES, Outgoing, Party};
use super::flow::{Flow, FlowId};
use crate::body::{Reset, Route};
use crate::error::Misuse;
use crate::frame::{Frame, Kind};

/// Flows of a link at a time, which bounds what openings and resets of a sender can claim here that nobody reads.
pub const MAX_FLOWS: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Passing {
    flows: BTreeMap<FlowId, Flow>,
    /// Those with an opening or a reset.
    urgent: VecDeque<FlowId>,
    /// Losses of nodes, each with the flows that leave before it is said.
    parting: Vec<(Bytes, BTreeSet<FlowId>)>,
    /// Bodies of routes that can be said now.
    released: VecDeque<Bytes>,
}

impl Passing {
    pub(super) fn step(&mut self, id: FlowId, max: usize) -> Option<Step> {
        let flow = self.flows.get_mut(&id).expect(LEAVES_LINES);
        let step = flow.step(max);
        flow.is_in_turn = step.is_some();
        step
    }

    pub(super) fn take_credit(&mut self, id: FlowId) -> u32 {
        let flow = self.flows.get_mut(&id).expect(LEAVES_LINES);
        flow.is_in_debt = false;
        flow.take_credit()
    }

    /// A flow is gone: what waited for it may be said.
    fn release(&mut self, id: FlowId) {
        for (_, before) in &mut self.parting {
            before.remove(&id);
        }
        let is_free = |parting: &mut (Bytes, BTreeSet<FlowId>)| parting.1.is_empty();
        let free = self.parting.extract_if(.., is_free).map(|(route, _)| route);
        self.released.extend(free);
    }
}

impl Channels {
    /// Flows that are known.
    pub(super) fn flows(&self) -> usize {
        self.passing.flows.len()
    }

    /// Takes a frame on its way.
    pub(super) fn relay(&mut self, frame: Frame) -> Result<(), Misuse> {
        let id = FlowId::of(&frame.header);
        let is_known = self.passing.flows.contains_key(&id);
        if !is_known && frame.header.kind == Kind::Open && self.passing.flows.len() >= MAX_FLOWS {
            return Err(Misuse::TooManyChannels);
        }
        self.with_flow(id, |flow| flow.push(frame));
        Ok(())
    }

    /// The sender is gone: behind what came from it, `reset`.
    pub(super) fn relay_end(&mut self, id: FlowId, reset: &Reset) {
        self.with_flow(id, |flow| flow.end_with(Last::Reset(reset.encode())));
    }

    /// Drops what waits.
    pub(super) fn forget(&mut self, id: FlowId) {
        if let Some(flow) = self.passing.flows.remove(&id) {
            let party = Party::Other(id);
            if flow.is_in_turn {
                self.leave_turn(party);
            }
            if flow.is_in_debt {
                self.debts.retain(|other| *other != party);
            }
            if flow.is_urgent {
                self.passing.urgent.retain(|other| *other != id);
            }
            self.passing.release(id);
        }
    }

    /// Nodes are gone; said behind the last frame of each.
    pub(super) fn part(&mut self, route: &Route) {
        let lost: BTreeSet<_> = route.lost.iter().copied().collect();
        let of_lost = self
            .passing
            .flows
            .iter()
            .filter(|flow| lost.contains(&flow.0.source));
        let (waiting, idle): (Vec<_>, Vec<_>) = of_lost.partition(|flow| flow.1.is_waiting());
        let before: BTreeSet<FlowId> = waiting.into_iter().map(|flow| *flow.0).collect();
        let idle: Vec<FlowId> = idle.into_iter().map(|flow| *flow.0).collect();
        idle.into_iter().for_each(|id| self.forget(id));
        if before.is_empty() {
            self.passing.released.push_back(route.encode());
        } else {
            self.passing.parting.push((route.encode(), before));
        }
    }

    /// The body of a route that nothing has to precede any more.
    pub(super) fn take_released(&mut self) -> Option<Bytes> {
        self.passing.released.pop_front()
    }

    pub(super) fn next_urgent(&mut self) -> Option<Outgoing> {
        loop {
            let id = *self.passing.urgent.front()?;
            let flow = self.passing.flows.get_mut(&id).expect(LEAVES_LINES);
            if let Some((kind, body)) = flow.take_urgent() {
                return Some(Outgoing {
                    party: Party::Other(id),
                    kind,
                    flags: 0,
                    body,
                });
            }
            flow.is_urgent = false;
            self.passing.urgent.pop_front();
            self.drop_if_over(id);
        }
    }

    pub(super) fn drop_if_over(&mut self, id: FlowId) {
        if self.passing.flows.get(&id).is_some_and(Flow::is_over) {
            self.forget(id);
        }
    }

    /// Runs `change` on a flow, then puts it in the lines that it belongs in.
    fn with_flow(&mut self, id: FlowId, change: impl FnOnce(&mut Flow)) {
        let flow = self.passing.flows.entry(id).or_default();
        change(flow);
        if flow.has_urgent() && !flow.is_urgent {
            flow.is_urgent = true;
            self.passing.urgent.push_back(id);
        }
        if flow.has_credit() && !flow.is_in_debt {
            flow.is_in_debt = true;
            self.debts.push_back(Party::Other(id));
        }
        if flow.has_step() && !flow.is_in_turn {
            flow.is_in_turn = true;
            self.turns.push_back(Party::Other(id));
        }
        if flow.is_over() {
            self.forget(id);
        }
    }
}
