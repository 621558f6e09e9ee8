//! What the flight recorder knows of one thing that happened: a kind, a channel, a number. The one place that looks into
//! events for it, so that nothing else of them can get there: no name, no text, no key, no byte of output.

use mux_ssh::client::{Event as Said, Stage as Login};

use super::{Answer, LinkEvent};

/// One thing that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Happening {
    pub(super) kind: Kind,
    pub(super) channel: Option<u32>,
    /// How many or which, of what is for its kind to say.
    pub(super) number: u64,
}

/// Kinds with their words and the unit of their number, which is empty if they have none.
macro_rules! kinds {
    ($($kind:ident $name:literal $unit:literal,)*) => {
        /// What can happen.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Kind {
            $($kind,)*
        }

        impl Kind {
            pub(super) fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }

            pub(super) fn unit(self) -> &'static str {
                match self {
                    $(Self::$kind => $unit,)*
                }
            }
        }
    };
}

kinds! {
    // What the hub does.
    Begin "begin" "",
    Connect "connect" "",
    Ride "ride" "",
    Spawn "spawn" "",
    Consumed "consumed" "bytes",
    Cancel "cancel" "",
    // What it is answered.
    Prepared "prepared" "keys",
    Resolved "resolved" "addresses",
    NotResolved "not-resolved" "",
    Judged "judged" "",
    ProveHostKeys "prove-host-keys" "keys",
    Signed "signed" "",
    Prompted "prompted" "",
    Asking "asking" "",
    Answered "answered" "",
    Fed "fed" "bytes",
    OtherWay "other-way" "",
    // What a link says.
    Connected "connected" "",
    Closed "closed" "",
    Broken "broken" "",
    ProxySaid "proxy-said" "bytes",
    Room "room" "",
    ChildOutput "child-output" "bytes",
    ChildLog "child-log" "bytes",
    KillerOver "killer-over" "",
    Exited "exited" "status",
    Killed "killed" "signal",
    // What a client says.
    ReachedBanner "reached-banner" "",
    ReachedKex "reached-kex" "",
    ReachedAuth "reached-auth" "",
    ReachedReady "reached-ready" "",
    Greeting "greeting" "bytes",
    HostKey "host-key" "",
    Sign "sign" "identity",
    KeyRefused "key-refused" "identity",
    Prompt "prompt" "",
    MethodRefused "method-refused" "",
    PartialSuccess "partial-success" "",
    PasswordExpired "password-expired" "",
    LoginUnanswered "login-unanswered" "identity",
    Banner "banner" "bytes",
    Authenticated "authenticated" "",
    Learned "learned" "",
    HostKeys "host-keys" "keys",
    HostKeysProven "host-keys-proven" "keys",
    Output "output" "bytes",
    Opened "opened" "",
    AgentOpened "agent-opened" "",
    Eof "eof" "",
    ExitStatus "exit-status" "status",
    ExitSignal "exit-signal" "",
    StdinRoom "stdin-room" "",
    EnvRefused "env-refused" "",
    ChannelFailed "channel-failed" "",
    ChannelClosed "channel-closed" "",
    Disconnected "disconnected" "code",
}

impl Kind {
    /// Bulk: many of these follow each other, and their sum says as much.
    pub(super) fn is_bulk(self) -> bool {
        matches!(
            self,
            Self::Output
                | Self::Consumed
                | Self::StdinRoom
                | Self::Fed
                | Self::ChildOutput
                | Self::ChildLog
                | Self::Room
        )
    }

    /// This, with how many or which.
    pub(super) fn of(self, number: impl TryInto<u64>) -> Happening {
        Happening {
            kind: self,
            channel: None,
            number: number.try_into().unwrap_or(u64::MAX),
        }
    }

    /// This, with nothing to count.
    pub(super) fn alone(self) -> Happening {
        self.of(0_u64)
    }
}

impl From<&LinkEvent> for Happening {
    fn from(event: &LinkEvent) -> Self {
        match event {
            LinkEvent::Connected => Kind::Connected.alone(),
            LinkEvent::ProxySaid(line) => Kind::ProxySaid.of(line.len()),
            LinkEvent::Client(said) => said.into(),
            LinkEvent::Closed(Ok(())) => Kind::Closed.alone(),
            LinkEvent::Closed(Err(_)) => Kind::Broken.alone(),
            LinkEvent::Room => Kind::Room.alone(),
            LinkEvent::Output(_, data) => Kind::ChildOutput.of(data.len()),
            LinkEvent::Log { data, .. } => Kind::ChildLog.of(data.len()),
            LinkEvent::KillerOver => Kind::KillerOver.alone(),
            LinkEvent::Exited {
                signal: Some(signal), ..
            } => Kind::Killed.of(*signal),
            LinkEvent::Exited { rc, .. } => Kind::Exited.of(rc.unwrap_or_default()),
        }
    }
}

impl From<&Said> for Happening {
    fn from(said: &Said) -> Self {
        let what = match said {
            Said::Stage(Login::Banner) => Kind::ReachedBanner.alone(),
            Said::Stage(Login::Kex) => Kind::ReachedKex.alone(),
            Said::Stage(Login::Auth) => Kind::ReachedAuth.alone(),
            Said::Stage(Login::Ready) => Kind::ReachedReady.alone(),
            Said::Greeting(text) => Kind::Greeting.of(text.len()),
            Said::HostKey { .. } => Kind::HostKey.alone(),
            Said::Sign { identity, .. } => Kind::Sign.of(*identity),
            Said::KeyRefused { identity } => Kind::KeyRefused.of(*identity),
            // How long a secret or a question is, is nobody's business.
            Said::Prompt { .. } => Kind::Prompt.alone(),
            Said::MethodRefused { .. } => Kind::MethodRefused.alone(),
            Said::PartialSuccess { .. } => Kind::PartialSuccess.alone(),
            Said::PasswordExpired { .. } => Kind::PasswordExpired.alone(),
            Said::LoginUnanswered { identity } => Kind::LoginUnanswered.of(*identity),
            Said::Banner(text) => Kind::Banner.of(text.len()),
            Said::Authenticated { .. } => Kind::Authenticated.alone(),
            Said::Learned(_) => Kind::Learned.alone(),
            Said::HostKeys(keys) => Kind::HostKeys.of(keys.len()),
            Said::HostKeysProven(keys) => Kind::HostKeysProven.of(keys.len()),
            Said::Output { data, .. } => Kind::Output.of(data.len()),
            Said::Opened { .. } => Kind::Opened.alone(),
            Said::AgentOpened { .. } => Kind::AgentOpened.alone(),
            Said::Eof { .. } => Kind::Eof.alone(),
            Said::ExitStatus { status, .. } => Kind::ExitStatus.of(*status),
            Said::ExitSignal { .. } => Kind::ExitSignal.alone(),
            Said::StdinRoom { .. } => Kind::StdinRoom.alone(),
            Said::EnvRefused { .. } => Kind::EnvRefused.alone(),
            Said::ChannelFailed { .. } => Kind::ChannelFailed.alone(),
            Said::ChannelClosed { .. } => Kind::ChannelClosed.alone(),
            Said::Disconnected { code, .. } => Kind::Disconnected.of(*code),
        };
        Self {
            channel: said.channel().map(|channel| channel.number()),
            ..what
        }
    }
}

impl From<&Answer> for Happening {
    fn from(answer: &Answer) -> Self {
        match answer {
            Answer::Prepared(prepared) => Kind::Prepared.of(prepared.keys.len()),
            Answer::Resolved(Ok(addresses)) => Kind::Resolved.of(addresses.len()),
            Answer::Resolved(Err(_)) => Kind::NotResolved.alone(),
            Answer::HostKey { .. } => Kind::Judged.alone(),
            Answer::ProveHostKeys(keys) => Kind::ProveHostKeys.of(keys.len()),
            Answer::Signed { .. } => Kind::Signed.alone(),
            Answer::Prompted { .. } => Kind::Prompted.alone(),
            Answer::OtherWay(_) => Kind::OtherWay.alone(),
            Answer::Fed(data) => Kind::Fed.of(data.len()),
            Answer::Asking(true) => Kind::Asking.alone(),
            Answer::Asking(false) => Kind::Answered.alone(),
        }
    }
}
