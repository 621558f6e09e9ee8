//! The commands' input on its way to them: a piece that is here is given at once, one in a file is read by the pool, and
//! one that has not come yet is waited for. Decides nothing about where a piece is.

use std::io;
use std::time::Instant;

use bytes::Bytes;

use super::input::{Input, Piece};
use super::outside::Outside;
use super::source::Arrival;
use super::task::Task;
use crate::hub::{Answer, Ticket, Wish};

impl Outside {
    /// A command's next piece, as soon as there is one.
    pub(super) fn feed(&mut self, now: Instant, ticket: Ticket, wish: Wish) {
        let Some(input) = &mut self.input else { return };
        match input.wish(ticket, wish) {
            Piece::Here(bytes) => self.answer(ticket, Answer::Fed(bytes)),
            Piece::InFile(part) => {
                if let Err(error) = self.pool.submit(now, Task::Read { ticket, part }) {
                    input.was_read(Err(error));
                }
            }
            Piece::Later => {}
        }
    }

    /// A piece was read from a file, or not.
    pub(super) fn fed(&mut self, ticket: Ticket, result: io::Result<Bytes>) {
        if let Some(bytes) = self.input.as_mut().and_then(|input| input.was_read(result)) {
            self.answer(ticket, Answer::Fed(bytes));
        }
    }

    /// The reading thread has something.
    pub(super) fn arrived(&mut self, now: Instant, arrival: Arrival) {
        let wishes = self.input.as_mut().map(|input| input.arrived(arrival));
        for (ticket, wish) in wishes.unwrap_or_default() {
            self.feed(now, ticket, wish);
        }
    }

    /// An attempt reads no more.
    pub(super) fn feed_over(&mut self, ticket: Ticket, taken: u64, whole: bool) {
        if let Some(input) = &mut self.input {
            input.over(ticket.request, taken, whole);
        }
    }

    /// The commands' input, if they have any.
    pub(crate) fn input(&mut self) -> Option<&mut Input> {
        self.input.as_mut()
    }
}
