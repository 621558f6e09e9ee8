//! Who is shown what the flight recorder has: standard error with `-vv`, else the log. What is recorded is the hub's.

use super::engine::Engine;
use crate::hub::{Flight, Level, RequestId};

/// Who is shown it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum To {
    /// Whoever reads the log, if anybody does.
    #[default]
    Log,
    /// Whoever reads standard error.
    Stderr,
}

/// How much was asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flights(To);

impl Flights {
    /// With so many `-v`.
    pub(super) fn new(verbose: u8) -> Self {
        Self(if verbose > 1 { To::Stderr } else { To::Log })
    }

    /// Whether anybody reads it.
    pub(super) fn are_read(self) -> bool {
        self.0 == To::Stderr || log::log_enabled!(log::Level::Info)
    }
}

impl Engine {
    /// Those that fail are shown to whoever asked for so much.
    pub(super) fn watch_flights(&mut self, flights: Flights) {
        self.flights = flights;
        if flights.are_read() {
            self.hub.show_flights();
        }
    }

    /// What went before something failed. A jump host is no target, and goes by its own name.
    pub(super) fn show_flight(&mut self, request: RequestId, host: &str, flight: &Flight) {
        let index = usize::try_from(request.0).unwrap_or(usize::MAX);
        let target = self.targets.get(index);
        let name = target.map_or(host, |target| target.text.as_str()).to_owned();
        for line in flight.lines() {
            match self.flights.0 {
                To::Log => log::info!("{name}: {line}"),
                To::Stderr => self.say(Level::Verbose, format!("{name}: {line}")),
            }
        }
    }

    /// What has happened on everything that is under way.
    pub(super) fn show_flights(&mut self) {
        if !self.flights.are_read() {
            return;
        }
        let flights = self.hub.flights().into_iter();
        let flights: Vec<(RequestId, String, Flight)> = flights
            .map(|(request, host, flight)| (request, host.to_owned(), flight.clone()))
            .collect();
        for (request, host, flight) in flights {
            self.show_flight(request, &host, &flight);
        }
    }
}
