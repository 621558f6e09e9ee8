//! A router and the connections of a loop: carries out what the table decides. Decides nothing itself, and keeps no frame:
//! what waits, waits in the connection over which it leaves.

use mux_proto::body::{GoodbyeCode, MAX_ROUTE_NODES, Reset, ResetCode, Route};
use mux_proto::connection::{Event, FlowId};
use mux_proto::error::Misuse;
use mux_proto::frame::{Frame, Kind, NodeId};
use mux_proto::{Connection, Protocol};

use crate::router::{Ended, Loss, Misplaced, Place, Router, Verdict};
use crate::{Driver, Key};

/// A protocol that may be a [`Connection`]: the closed enum of an application that has others beside it.
pub trait Framed: Protocol {
    /// The connection, if it is one.
    fn connection(&mut self) -> Option<&mut Connection>;
}

impl Framed for Connection {
    fn connection(&mut self) -> Option<&mut Connection> {
        Some(self)
    }
}

/// Passes frames between the links of a [`Driver`].
///
/// The application adds links to the driver and [here](Self::add), hands each event of a connection to
/// [`handle`](Self::handle) and gets back what concerns itself, and says with [`lose`](Self::lose) why a link is gone.
/// Connections have to be made with `relays` in their configuration.
#[derive(Debug)]
pub struct Relay {
    router: Router<Key>,
}

impl Relay {
    /// The relay of node `own`.
    #[must_use]
    pub fn new(own: NodeId) -> Self {
        Self {
            router: Router::new(own),
        }
    }

    /// The table, to look at.
    #[must_use]
    pub fn router(&self) -> &Router<Key> {
        &self.router
    }

    /// A number that no node has or had: see [`Router::allot`].
    pub fn allot(&mut self) -> Option<NodeId> {
        self.router.allot()
    }

    /// Makes the link to `node` one of the tree. A parent or client is told at once what can be reached.
    ///
    /// # Errors
    /// As [`Router::add`].
    pub fn add<P: Framed>(
        &mut self,
        driver: &mut Driver<P>,
        link: Key,
        place: Place,
        node: NodeId,
    ) -> Result<(), Misplaced> {
        self.router.add(link, place, node)?;
        if place != Place::Child {
            let known: Vec<NodeId> = self.router.known().collect();
            announce(driver, &[link], &known, &[], "");
        }
        Ok(())
    }

    /// Takes what is the relay's: frames for other nodes and words that go further up. Everything else is given back, routes
    /// and greetings after they were noted.
    pub fn handle<P: Framed>(&mut self, driver: &mut Driver<P>, link: Key, event: Event) -> Option<Event> {
        match event {
            Event::Transit(frame) => {
                self.pass(driver, link, frame);
                None
            }
            Event::Hello(hello) => {
                if let Some(node) = self.router.greeted(link) {
                    self.announce(driver, &[node], &[], "");
                }
                Some(Event::Hello(hello))
            }
            Event::Route(route) => {
                self.learn(driver, link, &route);
                Some(Event::Route(route))
            }
            Event::Goodbye(goodbye) => {
                let words = if goodbye.text.is_empty() {
                    goodbye.code.to_string()
                } else {
                    goodbye.text.clone()
                };
                self.lose(driver, link, &words);
                Some(Event::Goodbye(goodbye))
            }
            Event::Log(log) => {
                let parent = self.parent().and_then(|parent| connection(driver, parent));
                let was_passed_on = parent.is_some_and(|parent| parent.log(&log).is_ok());
                (!was_passed_on).then_some(Event::Log(log))
            }
            Event::Opened { .. }
            | Event::Data { .. }
            | Event::Finished(_)
            | Event::Writable(_)
            | Event::Result(..)
            | Event::Reset(..) => Some(event),
        }
    }

    /// The link is gone: every channel that ran over it ends, at both ends, for `reason`.
    pub fn lose<P: Framed>(&mut self, driver: &mut Driver<P>, link: Key, reason: &str) {
        let loss = self.router.lose(link);
        self.settle(driver, &loss, reason);
    }

    fn parent(&self) -> Option<Key> {
        let mut above = self.router.above();
        above.find(|link| self.router.place(*link) == Some(Place::Parent))
    }

    fn pass<P: Framed>(&mut self, driver: &mut Driver<P>, link: Key, frame: Frame) {
        let header = frame.header;
        match self.router.judge(link, &frame) {
            Verdict::Pass { to, is_last } => {
                let kind = header.kind;
                let sent = match connection(driver, to) {
                    Some(next) => next.relay(frame),
                    None => Err(Misuse::Ended),
                };
                if let Err(misuse) = sent
                    && kind == Kind::Open
                {
                    self.router.withdraw(FlowId::of(&header));
                    let code = if misuse == Misuse::TooManyChannels {
                        ResetCode::TooMany
                    } else {
                        ResetCode::Gone
                    };
                    with(driver, link, |sender| sender.refuse(header, code));
                }
                if is_last {
                    with(driver, link, |sender| {
                        sender.forget(FlowId::of(&header).reversed())
                    });
                }
            }
            Verdict::Refuse(code) => with(driver, link, |sender| sender.refuse(header, code)),
            Verdict::Break { code, other } => {
                let flow = FlowId::of(&header);
                with(driver, link, |sender| {
                    sender.forget(flow.reversed());
                    sender.refuse(header, code);
                });
                with(driver, other, |other| reset(other, flow, &Reset::new(code)));
            }
            Verdict::Drop => {}
        }
    }

    fn learn<P: Framed>(&mut self, driver: &mut Driver<P>, link: Key, route: &Route) {
        match self.router.learn(link, route) {
            Ok(loss) => {
                if self.announce(driver, &route.added, &[], "") {
                    self.settle(driver, &loss, &route.reason);
                } else {
                    self.part(driver, link, "more routes than are read above");
                }
            }
            Err(misplaced) => self.part(driver, link, &format!("a route that cannot be: {misplaced}")),
        }
    }

    fn part<P: Framed>(&mut self, driver: &mut Driver<P>, link: Key, words: &str) {
        with(driver, link, |sender| {
            sender.goodbye(GoodbyeCode::Violation, words)
        });
        self.lose(driver, link, words);
    }

    fn settle<P: Framed>(&mut self, driver: &mut Driver<P>, loss: &Loss<Key>, reason: &str) {
        let gone = Reset {
            code: ResetCode::Gone,
            text: reason.to_owned(),
        };
        for &Ended { above, below, up } in &loss.answerless {
            with(driver, below, |below| below.forget(up.reversed()));
            with(driver, above, |above| {
                // A link that has ended has told its owner so.
                let _ = above.relay_end(up, &gone);
            });
        }
        for &Ended { below, up, .. } in &loss.ownerless {
            with(driver, below, |below| reset(below, up.reversed(), &gone));
        }
        if !loss.lost.is_empty() {
            self.announce(driver, &[], &loss.lost, reason);
        }
    }

    fn announce<P: Framed>(
        &self,
        driver: &mut Driver<P>,
        added: &[NodeId],
        lost: &[NodeId],
        reason: &str,
    ) -> bool {
        let above: Vec<Key> = self.router.above().collect();
        announce(driver, &above, added, lost, reason)
    }
}

/// `false` if somebody above has not read so many announcements that no more are taken.
fn announce<P: Framed>(
    driver: &mut Driver<P>,
    above: &[Key],
    added: &[NodeId],
    lost: &[NodeId],
    reason: &str,
) -> bool {
    let mut is_taken = true;
    let added = added.chunks(MAX_ROUTE_NODES).map(|nodes| (nodes, &[][..]));
    let lost = lost.chunks(MAX_ROUTE_NODES).map(|nodes| (&[][..], nodes));
    for (added, lost) in added.chain(lost) {
        let route = Route {
            added: added.to_vec(),
            lost: lost.to_vec(),
            reason: reason.to_owned(),
        };
        for &link in above {
            with(driver, link, |above| {
                // A link that has ended needs no news.
                is_taken &= above.announce(&route) != Err(Misuse::QueueFull);
            });
        }
    }
    is_taken
}

fn reset(connection: &mut Connection, flow: FlowId, reset: &Reset) {
    // A link that has ended has ended its channels.
    let _ = connection.relay(flow.frame(Kind::Reset, 0, reset.encode()));
}

fn connection<P: Framed>(driver: &mut Driver<P>, link: Key) -> Option<&mut Connection> {
    driver.protocol(link)?.connection()
}

fn with<P: Framed>(driver: &mut Driver<P>, link: Key, act: impl FnOnce(&mut Connection)) {
    if let Some(connection) = connection(driver, link) {
        act(connection);
    }
}
