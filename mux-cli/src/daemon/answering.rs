//! What a client may ask of the daemon: to run things, a report, to drop connections, to stop. Decides what is answered;
//! what is run is for `guest.rs`.

use std::time::Instant;

use bytes::Bytes;
use mux_core::Key;
use mux_proto::body::{Reset, ResetCode};
use mux_proto::connection::{ChannelId, Stream};

use super::codec;
use super::guest::Guest;
use super::message::{DROP, HUB, STATUS, STOP, Terms};
use super::serve::Daemon;
use super::status::{Line, Report};
use crate::hub::Stage;

/// An answer on its way: text, then how many connections it is about.
#[derive(Debug)]
pub(super) struct Letter {
    rest: Bytes,
    count: u32,
}

impl Daemon {
    pub(super) fn opened(&mut self, now: Instant, at: (Key, ChannelId), kind: &str, arguments: &[u8]) {
        match kind {
            HUB => self.begin(at, arguments),
            STATUS => {
                let report = self.report(now).show(super::status::Form::Json);
                self.answer(at, report, self.common.warm.len());
            }
            STOP => {
                self.answer(at, String::new(), 0);
                self.stop(now);
            }
            DROP => match codec::decode::<Vec<String>>(arguments) {
                Ok(names) => {
                    let keys = self
                        .common
                        .warm
                        .drain(|connection| names.is_empty() || names.contains(&connection.kept.name));
                    self.common.close(&keys);
                    self.answer(at, String::new(), keys.len());
                }
                Err(_) => self.refuse(at, ResetCode::BadArguments, "no list of names"),
            },
            _ => self.refuse(at, ResetCode::UnknownKind, "another version of mux"),
        }
    }

    fn begin(&mut self, (key, channel): (Key, ChannelId), arguments: &[u8]) {
        if self.stopping.is_some() {
            return self.refuse((key, channel), ResetCode::Refused, "it is being stopped");
        }
        match codec::decode::<Terms>(arguments) {
            Ok(_) if self.guests.contains_key(&key) => {
                self.refuse((key, channel), ResetCode::TooMany, "one run a client");
            }
            Ok(terms) => {
                self.guests.insert(key, Guest::new(key, channel, terms));
            }
            Err(_) => self.refuse((key, channel), ResetCode::BadArguments, "no terms of a run"),
        }
    }

    fn refuse(&mut self, (key, channel): (Key, ChannelId), code: ResetCode, text: &str) {
        if let Some(connection) = self.common.net.node(key) {
            let text = text.to_owned();
            // A channel that is gone meanwhile needs no refusal.
            let _ = connection.reset(channel, &Reset { code, text });
        }
    }

    fn answer(&mut self, (key, channel): (Key, ChannelId), text: String, count: usize) {
        let letter = Letter {
            rest: text.into(),
            count: u32::try_from(count).unwrap_or(u32::MAX),
        };
        self.letters.insert((key, channel), letter);
        self.write(key, channel);
    }

    /// Goes on with an answer.
    pub(super) fn write(&mut self, key: Key, channel: ChannelId) {
        let (Some(letter), Some(connection)) =
            (self.letters.get_mut(&(key, channel)), self.common.net.node(key))
        else {
            return;
        };
        let room = connection.room(channel).min(letter.rest.len());
        let piece = letter.rest.split_to(room);
        let sent = connection.send(channel, Stream::Out, piece);
        let is_over = sent.is_err() || letter.rest.is_empty();
        if is_over {
            // Either fails only if the channel is gone, and then nobody waits for it.
            let _ = connection.give_result(channel, codec::encode(&letter.count).into());
            self.letters.remove(&(key, channel));
        }
    }

    pub(super) fn report(&self, now: Instant) -> Report {
        let since = |then: Instant| now.saturating_duration_since(then).as_secs_f64();
        let idle = self.common.warm.iter().map(|connection| Line {
            name: connection.kept.name.clone(),
            state: "idle".to_owned(),
            state_seconds: since(connection.idle_since),
            age_seconds: Some(since(connection.born)),
            rtt_seconds: connection.kept.rtt.map(|rtt| rtt.as_secs_f64()),
            uses: connection.uses,
            waits_for: "a command".to_owned(),
            ..self.traffic(Some(connection.kept.key))
        });
        let busy = self.guests.values().flat_map(|guest| {
            guest.running().map(|(name, stage, began, link)| {
                let lent = link.and_then(|link| self.common.warm.lent(link));
                Line {
                    name: name.to_owned(),
                    state: stage.name().to_owned(),
                    state_seconds: since(began),
                    age_seconds: lent.map(|(born, _)| since(born)),
                    uses: lent.map_or(0, |(_, uses)| uses),
                    waits_for: waits_for(stage).to_owned(),
                    ..self.traffic(link)
                }
            })
        });
        let mut connections: Vec<Line> = idle.chain(busy).collect();
        connections.sort_by(|one, other| one.name.cmp(&other.name));
        Report {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            age_seconds: since(self.born),
            clients: self.guests.len(),
            queued: self.guests.values().map(Guest::queued).sum(),
            finished: self.common.finished,
            reused: self.common.reused,
            stopping: self.stopping.is_some(),
            connections,
        }
    }

    /// What has gone over a link.
    fn traffic(&self, link: Option<Key>) -> Line {
        let client = link.and_then(|link| self.common.net.peek_client(link));
        client.map_or_else(Line::default, |client| Line {
            channels: client.open_channels(),
            bytes_sent: client.stats().bytes_sent,
            bytes_received: client.stats().bytes_received,
            ..Line::default()
        })
    }
}

fn waits_for(stage: Stage) -> &'static str {
    match stage {
        Stage::Dns => "the name",
        Stage::Tcp => "the TCP connection",
        Stage::Banner => "the server's identification",
        Stage::Kex => "the key exchange",
        Stage::HostKey => "a judgement of the host key",
        Stage::Auth => "the login",
        Stage::Channel => "the session",
        Stage::Command => "the command",
    }
}
