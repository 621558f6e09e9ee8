//! Hosts into which the system's `ssh` may have a way that we don't: by a Kerberos ticket. Decides whether it is tried:
//! where the configuration allows it and there is a ticket, about which is asked once a run.

use std::collections::HashMap;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use super::outside::Outside;
use super::task::Task;
use crate::hub::{Answer, OpenSsh, RequestId, Ticket};

/// What is known about other ways.
#[derive(Debug, Default)]
pub(super) struct OtherWays {
    by_request: HashMap<RequestId, Arc<OpenSsh>>,
    /// Whether there is a ticket, once that is known.
    has_ticket: Option<bool>,
    waiting: Vec<Ticket>,
}

impl OtherWays {
    pub(super) fn add(&mut self, request: RequestId, ssh: Arc<OpenSsh>) {
        self.by_request.insert(request, ssh);
    }
}

/// Whether somebody has a valid ticket. Without the program that says so nobody has.
pub(super) fn has_ticket() -> bool {
    let mut klist = Command::new("klist");
    klist.arg("-s").stdin(Stdio::null());
    klist.stdout(Stdio::null()).stderr(Stdio::null());
    klist.status().is_ok_and(|status| status.success())
}

impl Outside {
    /// No login of ours was taken by this host.
    pub(super) fn other_way(&mut self, now: Instant, ticket: Ticket) {
        let is_known = self.other_ways.by_request.contains_key(&ticket.request);
        match self.other_ways.has_ticket {
            Some(true) if is_known => {
                let ssh = self.other_ways.by_request.get(&ticket.request).cloned();
                self.answer(ticket, Answer::OtherWay(ssh));
            }
            None if is_known => {
                self.other_ways.waiting.push(ticket);
                let is_first = self.other_ways.waiting.len() == 1;
                if is_first && self.pool.submit(now, Task::FindTicket).is_err() {
                    self.found_ticket(now, false);
                }
            }
            Some(_) | None => self.answer(ticket, Answer::OtherWay(None)),
        }
    }

    pub(super) fn found_ticket(&mut self, now: Instant, is_there: bool) {
        self.other_ways.has_ticket = Some(is_there);
        for ticket in std::mem::take(&mut self.other_ways.waiting) {
            self.other_way(now, ticket);
        }
    }
}
