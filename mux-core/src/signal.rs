//! Signals as events. Decides how they reach the loop; installs a handler for exactly the signals that were asked
//! for, and only when asked.

use std::io;

use mio::Interest;
use mio::net::UnixStream;
use mux_proto::Protocol;
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

use crate::driver::{Driver, What};
use crate::{Event, Key, Reactor};

/// The pipe that the handler writes to.
pub(crate) struct Signals(SignalDelivery<UnixStream, SignalOnly>);

impl Signals {
    pub(crate) fn detach(&mut self, reactor: &mut Reactor) {
        reactor.detach(self.0.get_read_mut());
    }
}

impl<P: Protocol> Driver<P> {
    /// Asks for [`Event::Signal`] in place of the default action of `signals`, for the whole process. Signals of
    /// the same number that arrive before the loop looks are one event.
    ///
    /// After [`remove`](Self::remove) the signals are ignored; the default action does not come back.
    ///
    /// # Errors
    /// A signal that cannot be caught (`SIGKILL`, `SIGSTOP`, faults), or no descriptor left.
    pub fn signals(&mut self, signals: &[i32]) -> io::Result<Key> {
        if let Some(bad) = signals
            .iter()
            .find(|signal| signal_hook::consts::FORBIDDEN.contains(signal))
        {
            log::debug!("signal {bad} cannot be caught");
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let (read, write) = UnixStream::pair()?;
        let mut delivery = SignalDelivery::with_pipe(read, write, SignalOnly, signals)?;
        let key = self
            .reactor
            .register(delivery.get_read_mut(), Interest::READABLE)?;
        self.insert(key, What::Signals(Box::new(Signals(delivery))));
        Ok(key)
    }

    pub(crate) fn deliver_signals(&mut self, key: Key) {
        if let Some(What::Signals(signals)) = self.entry(key) {
            let arrived: Vec<_> = signals.0.pending().collect();
            self.events.extend(arrived.into_iter().map(Event::Signal));
        }
    }
}
