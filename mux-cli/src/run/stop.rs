//! What a signal means: stop starting, stop what runs, or leave at once. Decides only; who stops what is the hub's.

use crate::exit::Cut;

/// A signal that asks for an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    Interrupt,
    /// Ctrl-\ on a terminal: the key for what does not end by Ctrl-C.
    Quit,
    Terminate,
    Hangup,
}

/// What is to be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// No new hosts; say what is running where.
    Hold,
    /// Stop what runs.
    Kill,
    /// Don't wait for it.
    Leave,
}

/// Counts the signals of a run.
#[derive(Debug)]
pub(crate) struct Stop {
    terminal: bool,
    last: Option<Order>,
    first_signal: Option<Signal>,
}

impl Stop {
    /// On a terminal a person may have pressed the key by mistake or wants to know first; off it nobody can press it
    /// again.
    pub(crate) fn new(terminal: bool) -> Self {
        Self {
            terminal,
            last: None,
            first_signal: None,
        }
    }

    /// Whether somebody may be there to press the key again.
    pub(crate) fn on_terminal(&self) -> bool {
        self.terminal
    }

    pub(crate) fn on_signal(&mut self, signal: Signal) -> Order {
        self.first_signal.get_or_insert(signal);
        let order = match (self.last, signal) {
            (None, Signal::Interrupt) if self.terminal => Order::Hold,
            (None | Some(Order::Hold), _) => Order::Kill,
            (Some(Order::Kill | Order::Leave), _) => Order::Leave,
        };
        self.last = Some(order);
        order
    }

    /// The first signal already stops: there is nothing that a person would want to know first.
    pub(crate) fn kill_at_once(&mut self) {
        self.last = Some(Order::Kill);
    }

    /// What the exit status says about it.
    pub(crate) fn cut(&self) -> Option<Cut> {
        self.first_signal.map(|signal| match signal {
            Signal::Interrupt => Cut::Interrupt,
            Signal::Quit => Cut::Quit,
            Signal::Terminate | Signal::Hangup => Cut::Terminate,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(terminal: bool, signals: &[(Signal, Order)], cut: Cut) {
        let mut stop = Stop::new(terminal);
        for (signal, order) in signals {
            assert_eq!(stop.on_signal(*signal), *order);
        }
        assert_eq!(stop.cut(), Some(cut));
    }

    #[test]
    fn on_a_terminal_the_second_interrupt_kills_and_the_third_leaves() {
        use Signal::Interrupt;
        check(
            true,
            &[
                (Interrupt, Order::Hold),
                (Interrupt, Order::Kill),
                (Interrupt, Order::Leave),
            ],
            Cut::Interrupt,
        );
    }

    #[test]
    fn off_a_terminal_the_first_interrupt_kills() {
        check(
            false,
            &[
                (Signal::Interrupt, Order::Kill),
                (Signal::Interrupt, Order::Leave),
            ],
            Cut::Interrupt,
        );
    }

    #[test]
    fn a_termination_always_kills() {
        check(true, &[(Signal::Terminate, Order::Kill)], Cut::Terminate);
        check(
            true,
            &[(Signal::Interrupt, Order::Hold), (Signal::Terminate, Order::Kill)],
            Cut::Interrupt,
        );
        check(false, &[(Signal::Hangup, Order::Kill)], Cut::Terminate);
        check(
            true,
            &[(Signal::Quit, Order::Kill), (Signal::Interrupt, Order::Leave)],
            Cut::Quit,
        );
    }

    #[test]
    fn without_a_signal_the_status_is_that_of_the_run() {
        assert_eq!(Stop::new(true).cut(), None);
    }
}
