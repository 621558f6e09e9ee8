//! What the jobs of a hub share, and what the steps of one may touch besides it. Holds it all and decides nothing.

use std::collections::{BTreeSet, VecDeque};
use std::time::Instant;

use super::children::Children;
use super::hop::{Hop, Note};
use super::ids::IdMap;
use super::linger::Lingering;
use super::pace::{Endpoints, Fanout};
use super::parked::Parking;
use super::{Action, Event, Flight, Links, NoLink, RequestId, Ticket};

/// What the steps of a job may touch besides the job.
#[derive(Debug)]
pub(super) struct Context<'a, L: Links> {
    pub(super) now: Instant,
    pub(super) links: &'a mut L,
    pub(super) shared: &'a mut Shared<L::Key>,
}

/// What all jobs of a hub share.
#[derive(Debug)]
pub(super) struct Shared<K> {
    pub(super) fanout: Fanout,
    pub(super) endpoints: Endpoints,
    pub(super) children: Children,
    pub(super) by_link: IdMap<K, RequestId>,
    pub(super) timers: BTreeSet<(Instant, RequestId)>,
    /// Something of ours was lacking for a link: nothing is started before.
    pub(super) short: Option<(NoLink, Instant)>,
    pub(super) actions: VecDeque<(Ticket, Action)>,
    pub(super) events: VecDeque<Event>,
    pub(super) left_running: Vec<RequestId>,
    pub(super) hops: IdMap<RequestId, Hop>,
    /// What jobs have to say to each other; passed on before anything else happens.
    pub(super) notes: VecDeque<(RequestId, Note<K>)>,
    pub(super) parking: Parking,
    pub(super) lingering: Lingering<K>,
    pub(super) max_window: u32,
    /// Nothing more is to start, not even once more.
    pub(super) held: bool,
    /// What was recorded of those that failed, and the names of their hosts, if anybody wants to know.
    pub(super) flights: Option<VecDeque<(RequestId, String, Flight)>>,
}
