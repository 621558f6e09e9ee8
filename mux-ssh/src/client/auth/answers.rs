//! What the server's messages mean for the login. Sends nothing, and leaves what is tried next to the rest of it.

use super::{
    Auth, MAX_BANNER_BYTES, MAX_BANNERS, MAX_METHODS, MAX_PARTIAL, Progress, Refusal, Request, Service, Step,
};
use crate::algorithms::PublicKeyAlgorithm;
use crate::client::events::Events;
use crate::client::incoming::cut;
use crate::client::userauth::USERAUTH;
use crate::client::{AuthMethod, AuthViolation, Event};
use crate::message;
use crate::wire::Reader;
use crate::{Error, Violation};

impl Auth {
    /// Handles one payload; it is not empty.
    pub(crate) fn handle(&mut self, payload: &[u8], events: &mut Events) -> Result<Progress, Error> {
        let mut reader = Reader::new(payload);
        match reader.byte()? {
            message::SERVICE_ACCEPT => self.service_accept(reader)?,
            message::USERAUTH_FAILURE => return Ok(self.refused(reader, events)?),
            message::USERAUTH_SUCCESS => {
                let success = self.success(reader)?;
                return self.if_doubtless(success);
            }
            message::USERAUTH_BANNER => self.banner(reader, events)?,
            message::USERAUTH_PK_OK => return self.of_method(reader, events),
            number => return Err(Violation::UnexpectedMessage(number).into()),
        }
        Ok(Progress::Waits)
    }

    fn service_accept(&mut self, mut reader: Reader<'_>) -> Result<(), Violation> {
        if self.service != Service::Asked || reader.string()? != USERAUTH.as_bytes() {
            return Err(AuthViolation::Service.into());
        }
        self.service = Service::Accepted;
        reader.finish()
    }

    fn refused(&mut self, mut reader: Reader<'_>, events: &mut Events) -> Result<Progress, Violation> {
        let Step::Asked(request) = self.step else {
            return Err(AuthViolation::Unasked.into());
        };
        let list = reader.name_list()?;
        let partial = reader.boolean()?;
        reader.finish()?;
        let methods: Vec<String> = list
            .iter()
            .take(MAX_METHODS + 1)
            .map(|name| cut(name.as_bytes(), 64))
            .collect();
        if methods.len() > MAX_METHODS {
            return Err(AuthViolation::TooManyMethods.into());
        }
        if partial {
            self.half_way(request, events)?;
        } else {
            self.not_accepted(request, events);
        }
        let partial = partial || self.refusal.as_ref().is_some_and(|earlier| earlier.partial);
        self.refusal = Some(Refusal { methods, partial });
        self.step = Step::Choose;
        Ok(Progress::Refused)
    }

    /// The request was right, and not enough (RFC 4252 §5.1). What was refused before may be wanted now: a server that
    /// wants a password first refuses every key until it has one.
    fn half_way(&mut self, request: Request, events: &mut Events) -> Result<(), Violation> {
        self.partial += 1;
        if self.partial > MAX_PARTIAL {
            return Err(AuthViolation::EndlessLogin.into());
        }
        let (method, identity) = match request {
            Request::None => return Ok(()),
            Request::Query { identity, .. } | Request::Signed { identity } => {
                self.accepted.push(identity);
                (AuthMethod::PublicKey, Some(identity))
            }
            Request::Interactive { .. } => (AuthMethod::KeyboardInteractive, None),
            Request::Password => (AuthMethod::Password, None),
        };
        self.next = 0;
        self.refused = None;
        events.push(Event::PartialSuccess { method, identity });
        Ok(())
    }

    fn not_accepted(&mut self, request: Request, events: &mut Events) {
        let method = match request {
            Request::None => return,
            Request::Query { identity, .. } | Request::Signed { identity } => {
                self.refused = Some(identity);
                self.config.doubted.take_if(|doubted| *doubted == identity);
                return events.push(Event::KeyRefused { identity });
            }
            Request::Interactive { .. } => {
                self.exhausted.push(AuthMethod::KeyboardInteractive);
                AuthMethod::KeyboardInteractive
            }
            Request::Password => {
                self.passwords += 1;
                AuthMethod::Password
            }
        };
        events.push(Event::MethodRefused { method });
    }

    fn success(&mut self, reader: Reader<'_>) -> Result<Progress, Violation> {
        reader.finish()?;
        match self.step {
            Step::Asked(Request::Signed { identity }) => Ok(Progress::Success(Some(identity))),
            Step::Asked(Request::Password | Request::Interactive { answered: true }) => {
                Ok(Progress::Success(None))
            }
            Step::Asked(Request::None | Request::Interactive { answered: false })
                if self.config.accept_none =>
            {
                Ok(Progress::Success(None))
            }
            Step::Asked(Request::None | Request::Query { .. } | Request::Interactive { .. }) => {
                Err(AuthViolation::SuccessWithoutProof.into())
            }
            Step::Choose | Step::Send(..) | Step::Signing { .. } | Step::Prompting { .. } => {
                Err(AuthViolation::Unasked.into())
            }
        }
    }

    fn banner(&mut self, mut reader: Reader<'_>, events: &mut Events) -> Result<(), Violation> {
        let text = reader.string()?;
        if self.service == Service::Wanted {
            return Err(Violation::UnexpectedMessage(message::USERAUTH_BANNER));
        }
        self.banners += 1;
        self.banner_bytes += text.len();
        if self.banners > MAX_BANNERS || self.banner_bytes > MAX_BANNER_BYTES {
            return Err(AuthViolation::BannerFlood.into());
        }
        events.push(Event::Banner(String::from_utf8_lossy(text).into_owned()));
        Ok(())
    }

    /// What was sent behind an earlier login may be sent again only once that login is known to have been refused.
    fn if_doubtless(&self, progress: Progress) -> Result<Progress, Error> {
        match self.config.doubted {
            Some(_) => Err(Error::MayHaveRun),
            None => Ok(progress),
        }
    }

    /// What this message means is for the method to say that was asked for last (RFC 4252 §6).
    fn of_method(&mut self, reader: Reader<'_>, events: &mut Events) -> Result<Progress, Error> {
        match self.step {
            Step::Asked(Request::Query { identity, algorithm }) => {
                self.pk_ok(reader, (identity, algorithm), events)
            }
            Step::Asked(Request::Interactive { answered }) => {
                Ok(self.info_request(reader, answered, events)?)
            }
            Step::Asked(Request::Password) => Ok(self.change_request(reader, events)?),
            Step::Asked(Request::None | Request::Signed { .. })
            | Step::Choose
            | Step::Send(..)
            | Step::Signing { .. }
            | Step::Prompting { .. } => Err(Violation::from(AuthViolation::Unasked).into()),
        }
    }

    fn pk_ok(
        &mut self,
        mut reader: Reader<'_>,
        (identity, algorithm): (usize, PublicKeyAlgorithm),
        events: &mut Events,
    ) -> Result<Progress, Error> {
        let (name, blob) = (reader.string()?, reader.string()?);
        reader.finish()?;
        if name != algorithm.name().as_bytes() || blob != self.key(identity) {
            return Err(Violation::from(AuthViolation::OtherKey).into());
        }
        if self.config.doubted == Some(identity) {
            return Err(Error::MayHaveRun);
        }
        self.step = self.sign(identity, algorithm, events);
        Ok(Progress::Waits)
    }
}
