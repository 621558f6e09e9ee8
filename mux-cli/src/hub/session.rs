//! What is said on a connection: host key, login, output, end. Decides nothing about keys and host keys: it passes
//! the questions on and the answers back.

use std::hash::Hash;

use bytes::Bytes;
use mux_ssh::client::{self, ChannelFailure, ChannelId, Event as Said, QuestionId, Stage as Login};
use mux_ssh::transport::ServerMemory;
use mux_ssh::{Client, Printable};

use super::job::{Ended, Job};
use super::phase::Phase;
use super::shared::Context;
use super::{Action, Event, Judgement, Level, Links, Reason, Stage, Status, StreamKind, outcome};

impl<K: Copy + Eq + Hash> Job<K> {
    /// The client on `key` says something.
    pub(super) fn said<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, key: K, said: Said) {
        match &self.phase {
            Phase::Session(session) if session.key == key => {}
            // A runner's client has nothing to say before it is connected.
            Phase::Session(_) | Phase::Connecting(_) | Phase::Preparing | Phase::Resolving => return,
            Phase::Local(_) | Phase::Parked(_) | Phase::Pausing(_) | Phase::Over => return,
        }
        self.heard(cx);
        match said {
            Said::Opened { channel } if self.is_hop() => self.channel_open(cx, channel),
            Said::ChannelFailed { channel, reason, .. } if self.is_hop() => {
                self.channel_refused(cx, channel, reason);
            }
            Said::ChannelClosed { channel } if self.is_hop() => self.channel_over(channel),
            Said::Stage(login) => self.login_stage(cx, login),
            said @ Said::HostKey { .. } => self.ask_about_host_key(cx, said),
            said @ Said::Sign { .. } => self.wants_signature(cx, said),
            Said::Prompt { id, prompt } => self.prompt(cx, id, prompt),
            Said::MethodRefused { method } => self.method_refused(method),
            Said::PartialSuccess { method, identity } => self.half_way(cx, method, identity),
            Said::PasswordExpired { words } => self.password_expired(&words),
            Said::KeyRefused { identity } => self.key_refused(cx, identity),
            Said::LoginUnanswered { identity } => self.login_unanswered(identity),
            Said::Greeting(text) => self.greeting.extend(text.lines().map(one_line)),
            Said::Banner(text) => self.notice(cx, Level::Verbose, format!("banner: {}", one_line(&text))),
            Said::Authenticated { identity } => self.authenticated(cx, identity),
            Said::Learned(memory) => self.learned(cx, memory),
            Said::HostKeys(keys) => self.host_keys_told(cx, keys),
            Said::HostKeysProven(keys) => self.host_keys_proven(cx, keys),
            Said::Output {
                channel,
                stream,
                data,
            } => self.output(cx, channel, stream, data),
            Said::ExitStatus { channel, status } if self.is_command(channel) => {
                self.command_ended(cx, |ended| {
                    ended.rc = Some(i32::from_ne_bytes(status.to_ne_bytes()))
                });
            }
            Said::ExitSignal { channel, signal, .. } if self.is_command(channel) => {
                let name = signal.chars().filter(char::is_ascii_graphic).collect();
                self.command_ended(cx, |ended| ended.signal = Some(name));
            }
            Said::Opened { channel } if self.is_command(channel) => self.command_begun(cx),
            Said::AgentOpened { channel } => self.agent_opened(cx, key, channel),
            Said::EnvRefused { name, .. } => self.env_refused(cx, &name),
            Said::ChannelFailed {
                channel,
                reason,
                may_have_run,
            } => self.channel_failed(cx, channel, reason, may_have_run),
            Said::ChannelClosed { channel } if self.is_command(channel) => self.command_over(cx),
            Said::ChannelClosed { .. } => self.killer_over(),
            Said::Disconnected { description, .. } => self.farewell = Some(one_line(&description)),
            Said::StdinRoom { channel } if self.is_command(channel) => self.want_stdin(cx),
            // How the command that kills ended matters to nobody, and it reads nothing.
            Said::ExitStatus { .. } | Said::ExitSignal { .. } => {}
            Said::Eof { channel } => self.output_over |= self.is_command(channel),
            Said::Opened { .. } | Said::StdinRoom { .. } => {}
        }
    }

    fn learned<L: Links<Key = K>>(&self, cx: &mut Context<'_, L>, mut memory: ServerMemory) {
        memory.none_first |= self.caution.none_first;
        self.ask(cx, Action::Remember(memory));
    }

    /// The command has ended; output may still follow.
    fn command_ended<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, note: impl FnOnce(&mut Ended)) {
        note(&mut self.ended);
        self.note_unsent(cx);
    }

    /// Its channel is open: from here on the command's own time counts.
    pub(super) fn command_begun<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        self.reach(cx, Stage::Command);
        self.login.stop(cx.now);
        self.command_deadline = self.request.command_timeout.map(|limit| cx.now + limit);
        self.open_stdin(cx);
    }

    /// A key is to sign. The client asks only for keys that it was given.
    fn wants_signature<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, said: Said) {
        let Said::Sign {
            id,
            identity,
            algorithm,
            data,
            binding,
        } = said
        else {
            return;
        };
        if let Some(offer) = self.prepared.keys.get(identity) {
            self.signing = Some(offer.label.clone());
            let action = Action::Sign {
                question: id,
                key: offer.key,
                algorithm,
                data,
                binding,
            };
            self.ask(cx, action);
        }
    }

    fn env_refused<L: Links<Key = K>>(&self, cx: &mut Context<'_, L>, name: &[u8]) {
        if self.request.env.iter().any(|(asked, _)| asked == name) {
            cx.shared.events.push_back(Event::EnvRefused {
                request: self.request.id,
                name: String::from_utf8_lossy(name).into_owned(),
            });
        }
    }

    fn is_command(&self, channel: ChannelId) -> bool {
        matches!(&self.phase, Phase::Session(session) if session.channel == Some(channel))
    }

    fn login_stage<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, login: Login) {
        match login {
            Login::Banner => {
                let waited = self.reach(cx, Stage::Kex);
                self.timings.kex = Some(waited);
                if let Phase::Session(session) = &self.phase {
                    cx.shared.endpoints.answered(session.door);
                }
            }
            Login::Kex => self.kex_time(cx, Stage::HostKey),
            Login::Auth => {
                self.kex_time(cx, Stage::Auth);
                self.connect.stop(cx.now);
                self.login.start(cx.now);
            }
            Login::Ready => {
                // The time for the login goes on until the session is open: a server that lets us in and then says
                // nothing must not hold the run.
                self.timings.auth = Some(self.reach(cx, Stage::Channel));
                if let Phase::Session(session) = &mut self.phase {
                    session.unauthenticated = false;
                    cx.shared.endpoints.pass(session.door);
                }
                if self.is_hop() {
                    self.hop_ready(cx);
                }
            }
        }
    }

    /// Key exchange, as far as timings go, lasts from the connection to the first message of authentication.
    fn kex_time<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, next: Stage) {
        let took = self.reach(cx, next);
        self.timings.kex = Some(self.timings.kex.unwrap_or_default() + took);
    }

    /// The outside has judged the host key.
    pub(super) fn judged<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        question: QuestionId,
        judgement: Judgement,
    ) {
        match (&self.phase, judgement) {
            (Phase::Parked(_), judgement) => self.judged_parked(cx, judgement),
            (_, Judgement::Accept) => {
                self.caution.distrusted = false;
                self.forward_agent(cx);
                self.with_client(cx, |client| client.answer_host_key(question, true));
            }
            (_, Judgement::Distrust) => {
                self.caution.distrusted = true;
                self.withhold_agent(cx);
                self.with_client(cx, |client| {
                    client.distrust_server();
                    client.answer_host_key(question, true);
                });
            }
            (_, Judgement::AskForOthers(types)) => {
                self.prepared.known_host_key_types = types;
                self.start_over(cx);
            }
            (_, Judgement::Later) => self.park(cx),
            (_, judgement @ (Judgement::Enough | Judgement::Refuse(_))) => {
                self.judged_finally(cx, judgement);
            }
        }
    }

    /// A judgement after which nothing follows.
    pub(super) fn judged_finally<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        judgement: Judgement,
    ) {
        match judgement {
            Judgement::Enough => self.finish(cx, Status::Ok, None),
            Judgement::Refuse(message) => self.fail(cx, Status::HostKey, Stage::HostKey, message),
            Judgement::Accept | Judgement::Distrust | Judgement::AskForOthers(_) | Judgement::Later => {}
        }
    }

    /// The outside has signed, or says why it can't.
    pub(super) fn signed<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        question: QuestionId,
        signature: Result<Bytes, String>,
    ) {
        let label = self.signing.take();
        self.heard(cx);
        let signature = signature.map_err(|reason| {
            let label = label.as_deref().unwrap_or("key");
            self.tried.push(format!("{label}: {reason}"));
        });
        self.with_client(cx, |client| client.answer_signature(question, signature.ok()));
    }

    fn key_refused<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, identity: usize) {
        let Some(offer) = self.prepared.keys.get(identity) else {
            return;
        };
        self.tried.push(format!("{}: not accepted", offer.label));
        self.caution.doubted.take_if(|doubted| *doubted == identity);
        if offer.identity.proven {
            self.ask(cx, Action::ForgetKey(offer.key));
        }
    }

    fn login_unanswered(&mut self, identity: usize) {
        if let Phase::Session(session) = &mut self.phase {
            session.unanswered = Some(identity);
        }
    }

    fn authenticated<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, identity: Option<usize>) {
        self.ask(cx, Action::SigningOver);
        if let Some(offer) = identity.and_then(|index| self.prepared.keys.get(index)) {
            self.certificate.clone_from(&offer.identity.certificate);
            self.ask(cx, Action::RememberKey(offer.key));
        }
    }

    fn output<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        channel: ChannelId,
        stream: client::StreamKind,
        data: Bytes,
    ) {
        if !self.is_command(channel) {
            // Of the channel that kills, or of one whose rider has left: nobody wants to read it.
            return self.with_client(cx, |client| client.consume(channel, stream, data.len()));
        }
        let stream = match stream {
            client::StreamKind::Stdout => StreamKind::Stdout,
            client::StreamKind::Stderr => StreamKind::Stderr,
        };
        self.pass_on(cx, stream, data);
    }

    /// The command's channel was closed after all its output.
    pub(super) fn command_over<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        self.timings.run = Some(cx.now.saturating_duration_since(self.stage_since));
        if let Some(killing) = &self.killing {
            let reason = killing.reason;
            return self.finish_killed(cx, reason, true);
        }
        let (status, error) = outcome::ended(&self.ended, self.request.missing_status);
        self.linger(cx);
        self.keep(cx);
        self.finish(cx, status, error);
    }

    fn channel_failed<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        channel: ChannelId,
        reason: ChannelFailure,
        may_have_run: bool,
    ) {
        if !self.is_command(channel) {
            return self.killer_over();
        }
        if reason == ChannelFailure::ConnectionLost {
            // The end of the link follows and says why.
            if let Phase::Session(session) = &mut self.phase {
                session.lost = Some(may_have_run);
            }
            return;
        }
        let is_refusal = matches!(reason, ChannelFailure::Refused { .. });
        if is_refusal && self.leave_kept(cx) {
            return;
        }
        let (status, failure) = outcome::channel_failed(reason, may_have_run);
        match is_refusal {
            true => self.fail_or_retry(cx, status, failure),
            false => self.finish(cx, status, Some(failure)),
        }
    }

    pub(super) fn with_client<L: Links<Key = K>>(
        &self,
        cx: &mut Context<'_, L>,
        act: impl FnOnce(&mut Client),
    ) {
        if let Phase::Session(session) = &self.phase
            && let Some(client) = cx.links.client(session.key)
        {
            act(client);
        }
    }

    /// Whether cancelling has to reach the server: the command may be on its way.
    pub(super) fn may_run(&self) -> bool {
        matches!(self.phase, Phase::Session(_)) && self.stage >= Stage::Auth
    }

    pub(super) fn cancelled<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, reason: Reason) {
        let (status, message) = outcome::cancelled(reason, self.request.command_timeout);
        self.fail(cx, status, self.stage, message);
    }
}

/// What a server says, on one line and without anything that a terminal would act on.
pub(super) fn one_line(text: &str) -> String {
    Printable::new(text.trim()).to_string()
}
