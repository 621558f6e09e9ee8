//! What the server says once the login is complete (RFC 4254): each message read, checked against the state of its
//! channel, and turned into events and owed replies.

use std::time::Instant;

use bytes::Bytes;

use super::channel::{Channel, Command, Replied, State};
use super::channels::Channels;
use super::events::Events;
use super::host_keys::{self, HostKeys};
use super::replies::{Replies, Reply};
use super::{ChannelFailure, ChannelId, ChannelViolation, Event, StreamKind};
use crate::message;
use crate::wire::Reader;
use crate::{Error, Violation};

/// A server's words are cut to this many bytes: they go to a terminal and a log.
pub(crate) const MAX_TEXT: usize = 1024;

/// The name of a signal. The longest in RFC 4254 §6.10 has four letters; local ones carry a domain.
const MAX_SIGNAL: usize = 64;

/// RFC 4254 §5.2: the only type of extended data.
const STDERR: u32 = 1;

/// What a message changed beside its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    None,
    /// The server allows one session at a time.
    OneSession,
    /// A global request of ours was answered.
    GlobalReply,
    /// A message number that means nothing here.
    Unknown,
}

/// The parts of a connection that a message may change.
#[derive(Debug)]
pub(crate) struct Connection<'a> {
    pub(crate) now: Instant,
    pub(crate) channels: &'a mut Channels,
    pub(crate) events: &'a mut Events,
    pub(crate) replies: &'a mut Replies,
    pub(crate) host_keys: &'a mut HostKeys,
}

impl Connection<'_> {
    /// Handles one payload; it is not empty.
    pub(crate) fn handle(&mut self, payload: &Bytes) -> Result<Effect, Error> {
        let mut reader = Reader::new(payload);
        match reader.byte()? {
            message::GLOBAL_REQUEST => self.global_request(reader)?,
            message::REQUEST_SUCCESS | message::REQUEST_FAILURE => return Ok(Effect::GlobalReply),
            message::CHANNEL_OPEN => self.open(reader)?,
            message::CHANNEL_OPEN_CONFIRMATION => self.confirmation(reader)?,
            message::CHANNEL_OPEN_FAILURE => return Ok(self.open_failure(reader)?),
            message::CHANNEL_WINDOW_ADJUST => self.adjust(reader)?,
            message::CHANNEL_DATA => self.data(payload, reader, StreamKind::Stdout)?,
            message::CHANNEL_EXTENDED_DATA => self.data(payload, reader, StreamKind::Stderr)?,
            message::CHANNEL_EOF => self.eof(reader)?,
            message::CHANNEL_CLOSE => self.close(reader)?,
            message::CHANNEL_REQUEST => self.request(reader)?,
            message::CHANNEL_SUCCESS => self.reply(reader, true)?,
            message::CHANNEL_FAILURE => self.reply(reader, false)?,
            number @ ..message::GLOBAL_REQUEST => return Err(Violation::UnexpectedMessage(number).into()),
            _ => return Ok(Effect::Unknown),
        }
        Ok(Effect::None)
    }

    /// Keepalives, whatever else: nothing that a server can ask of the whole connection is granted. The body is not
    /// read, unless it tells the host's keys and somebody wants to hear of them; so its size costs nothing.
    fn global_request(&mut self, mut reader: Reader<'_>) -> Result<(), Violation> {
        let kind = reader.string()?;
        if reader.boolean()? {
            self.replies.push(Reply::GlobalRefused);
        }
        if kind == host_keys::TOLD
            && let Some(keys) = self.host_keys.told(reader)
        {
            self.events.push(Event::HostKeys(keys));
        }
        Ok(())
    }

    /// Nothing is opened from the far side but a channel to the user's agent, where that was offered: a server that is
    /// let in unasked could use every key in it.
    fn open(&mut self, mut reader: Reader<'_>) -> Result<(), Violation> {
        let is_agent = reader.string()? == b"auth-agent@openssh.com";
        let number = reader.uint32()?;
        let (window, packet) = (reader.uint32()?, reader.uint32()?);
        let wanted = is_agent.then_some((number, window, packet));
        let ours = wanted.and_then(|wanted| self.channels.open_agent(wanted, self.events));
        self.replies.push(match ours {
            Some(ours) => Reply::OpenConfirmed { number, ours },
            None => Reply::OpenRefused { number },
        });
        Ok(())
    }

    /// The confirmed channel that a message is about.
    fn channel(&mut self, reader: &mut Reader<'_>) -> Result<&mut Channel, Violation> {
        let slot = reader.uint32()?;
        self.channels
            .slot(slot)
            .filter(|channel| matches!(channel.state, State::Open { .. }))
            .ok_or(Violation::Channel(ChannelViolation::UnknownChannel))
    }

    /// The channel that an answer to OPEN is about.
    fn opening(&mut self, reader: &mut Reader<'_>) -> Result<&mut Channel, Violation> {
        let slot = reader.uint32()?;
        let channel = self.channels.slot(slot).ok_or(ChannelViolation::UnknownChannel)?;
        match channel.state {
            State::Opening { .. } => Ok(channel),
            State::Wanted | State::Open { .. } => Err(ChannelViolation::NotOpening.into()),
        }
    }

    fn confirmation(&mut self, mut reader: Reader<'_>) -> Result<(), Violation> {
        let channel = self.opening(&mut reader)?;
        let (number, window, max_packet) = (reader.uint32()?, reader.uint32()?, reader.uint32()?);
        channel.confirm(number, window, max_packet)?;
        let is_session = channel.is_session();
        if channel.is_owed() {
            let event = Event::Opened { channel: channel.id };
            self.events.push(event);
        }
        if is_session {
            self.channels.opening.confirm();
        }
        Ok(())
    }

    fn open_failure(&mut self, mut reader: Reader<'_>) -> Result<Effect, Violation> {
        let slot = self.opening(&mut reader)?.id.slot;
        let code = reader.uint32()?;
        let text = cut(reader.string()?, MAX_TEXT);
        // The language tag that follows is missing in some old servers; it is of no use.
        let refusal = ChannelFailure::Refused { code, text };
        let one_session = self.channels.refuse(self.now, slot, refusal, self.events);
        Ok(if one_session {
            Effect::OneSession
        } else {
            Effect::None
        })
    }

    fn adjust(&mut self, mut reader: Reader<'_>) -> Result<(), Violation> {
        let channel = self.channel(&mut reader)?;
        let bytes = reader.uint32()?;
        reader.finish()?;
        channel.adjust(bytes)?;
        Ok(())
    }

    fn data(&mut self, payload: &Bytes, mut reader: Reader<'_>, stream: StreamKind) -> Result<(), Violation> {
        let max_window = self.channels.max_window();
        let channel = self.channel(&mut reader)?;
        if stream == StreamKind::Stderr {
            let number = reader.uint32()?;
            // RFC 4254 §7 knows no second stream of a TCP connection.
            if number != STDERR || !channel.is_session() {
                return Err(ChannelViolation::DataType(number).into());
            }
        }
        let data = reader.string()?;
        reader.finish()?;
        if channel.receive(data.len(), max_window)? {
            let event = Event::Output {
                channel: channel.id,
                stream,
                data: payload.slice_ref(data),
            };
            self.events.push(event);
        }
        Ok(())
    }

    /// A second EOF says nothing new, and OpenSSH ignores it too.
    fn eof(&mut self, mut reader: Reader<'_>) -> Result<(), Violation> {
        let channel = self.channel(&mut reader)?;
        reader.finish()?;
        let first = !std::mem::replace(&mut channel.eof_received, true);
        let id = channel.id;
        if first && channel.is_owed() {
            self.events.push(Event::Eof { channel: id });
        }
        Ok(())
    }

    fn close(&mut self, mut reader: Reader<'_>) -> Result<(), Violation> {
        let slot = self.channel(&mut reader)?.id.slot;
        reader.finish()?;
        self.channels.closed(slot, self.events, self.replies);
        Ok(())
    }

    fn request(&mut self, mut reader: Reader<'_>) -> Result<(), Violation> {
        let channel = self.channel(&mut reader)?;
        let kind = reader.string()?;
        let want_reply = reader.boolean()?;
        let result = result_of(channel.id, kind, reader)?;
        // A TCP connection has no result; what is asked on it is whether we are alive: OpenSSH picks any channel for that.
        let result = result.filter(|_| channel.is_session());
        let wanted = match channel.command {
            Command::None | Command::Waiting if result.is_some() => {
                return Err(ChannelViolation::BeforeCommand.into());
            }
            Command::None | Command::Waiting | Command::Over => false,
            // The first result counts; a second one must not change what was reported.
            Command::Sent { .. } | Command::Running if result.is_some() => {
                channel.prove_running();
                !std::mem::replace(&mut channel.result_known, true)
            }
            Command::Sent { .. } | Command::Running => false,
        };
        let number = channel.number().filter(|_| want_reply && !channel.close_sent());
        self.replies
            .extend(number.map(|number| Reply::RequestRefused { number }));
        if let Some(result) = result.filter(|_| wanted) {
            self.events.push(result);
        }
        Ok(())
    }

    fn reply(&mut self, mut reader: Reader<'_>, success: bool) -> Result<(), Violation> {
        let slot = reader.uint32()?;
        reader.finish()?;
        let channel = self
            .channels
            .slot(slot)
            .filter(|channel| channel.unanswered() > 0);
        let Some(channel) = channel.filter(|channel| matches!(channel.state, State::Open { .. })) else {
            return self.late_reply(slot);
        };
        let id = channel.id;
        let owed = channel.is_owed();
        match channel.reply(success)? {
            Replied::EnvRefused(name) if owed => self.events.push(Event::EnvRefused { channel: id, name }),
            Replied::ExecRefused => self.events.push(Event::ChannelFailed {
                channel: id,
                reason: ChannelFailure::ExecRefused,
                may_have_run: false,
            }),
            Replied::Nothing | Replied::EnvRefused(_) => {}
        }
        Ok(())
    }

    /// A reply that no open channel waits for: it may be one that a closed channel still did.
    fn late_reply(&mut self, slot: u32) -> Result<(), Violation> {
        if self.channels.take_late_reply(slot) {
            return Ok(());
        }
        let open = |channel: &mut Channel| matches!(channel.state, State::Open { .. });
        Err(match self.channels.slot(slot).is_some_and(open) {
            true => ChannelViolation::UnaskedReply.into(),
            false => ChannelViolation::UnknownChannel.into(),
        })
    }
}

/// The result of a command, if a channel request is one (RFC 4254 §6.10).
fn result_of(channel: ChannelId, kind: &[u8], mut reader: Reader<'_>) -> Result<Option<Event>, Violation> {
    Ok(match kind {
        b"exit-status" => Some(Event::ExitStatus {
            channel,
            status: reader.uint32()?,
        }),
        b"exit-signal" => Some(Event::ExitSignal {
            channel,
            signal: cut(reader.string()?, MAX_SIGNAL),
            core_dumped: reader.boolean()?,
            message: cut(reader.string()?, MAX_TEXT),
        }),
        _ => None,
    })
}

/// Foreign text, bounded and made UTF-8.
pub(crate) fn cut(text: &[u8], max: usize) -> String {
    String::from_utf8_lossy(text.get(..max).unwrap_or(text)).into_owned()
}
