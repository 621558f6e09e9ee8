//! Which status, which stage and which words: what became of a request, as a person reads it. Pure tables.

use std::hash::Hash;
use std::time::Duration;

use mux_core::LinkError;
use mux_ssh::client::{AuthMethod, ChannelFailure};
use mux_ssh::{Error, Printable};

use super::job::{Ended, Job};
use super::pace::Door;
use super::session::one_line;
use super::{Failure, MissingStatus, NoLink, Reason, Request, Route, Stage, Status, Transport};

/// A name without an address.
pub(super) fn not_resolved(name: &str, reason: &str) -> Failure {
    Failure::new(Stage::Dns, format!("could not resolve {name}: {reason}"))
        .in_general(format!("could not resolve the name: {reason}"))
}

/// A TCP connection that never stood.
pub(super) fn connect_failed(door: Door, why: NoLink) -> Failure {
    match door {
        Door::Address(address) => {
            Failure::new(Stage::Tcp, format!("connect to {address}: {why}")).in_general(why.to_string())
        }
        Door::Behind(_) | Door::Kept => Failure::new(Stage::Tcp, why.to_string()),
        Door::Proxy => Failure::new(Stage::Tcp, format!("could not start the ProxyCommand: {why}")),
    }
}

/// A jump host that would not connect to the target.
pub(super) fn not_forwarded(request: &Request, hop: &str, reason: ChannelFailure) -> Failure {
    let (address, port) = (&request.address, request.port);
    let said = |text: &str| match text.trim() {
        "" => String::new(),
        text => format!(": {}", one_line(text)),
    };
    match reason {
        // RFC 4254, section 5.1: the jump host has tried, and it is about the target.
        ChannelFailure::Refused { code: 2, text } => {
            let said = said(&text);
            let message = format!("{hop} could not connect to {address} port {port}{said}");
            Failure::new(Stage::Tcp, message).in_general(format!("{hop} could not connect to it{said}"))
        }
        ChannelFailure::Refused { code: 1, text } => {
            let said = said(&text);
            let advice = "AllowTcpForwarding, PermitOpen or the key's options on it forbid that";
            let message = format!("may not connect to {address} port {port}{said}; {advice}");
            Failure::new(Stage::Channel, message)
                .in_general(format!("may not connect to it{said}; {advice}"))
                .at_hop(hop)
        }
        ChannelFailure::Refused { text, .. } => {
            let said = said(&text);
            let message = format!("did not connect to {address} port {port}{said}");
            Failure::new(Stage::Channel, message)
                .in_general(format!("did not connect to it{said}"))
                .at_hop(hop)
        }
        ChannelFailure::TooLarge => Failure::new(Stage::Tcp, "the name is longer than a name can be"),
        ChannelFailure::ExecRefused => {
            Failure::new(Stage::Channel, "it knows no forwarding of TCP connections").at_hop(hop)
        }
        ChannelFailure::NoSession => {
            Failure::new(Stage::Channel, "it allows no further channel on this connection").at_hop(hop)
        }
        ChannelFailure::ClosedUnanswered | ChannelFailure::ConnectionLost | ChannelFailure::Cancelled => {
            Failure::new(Stage::Channel, "connection lost").at_hop(hop)
        }
    }
}

/// Time was over before a jump host had come further than this.
pub(super) fn hop_too_late(stage: Stage, limit: Duration) -> Failure {
    let limit = seconds(limit);
    let message = match stage {
        Stage::Dns => format!("no answer about its name within {limit}"),
        Stage::Tcp => format!("no answer within {limit}"),
        Stage::Banner => format!("connected, but no SSH identification within {limit}"),
        Stage::Kex | Stage::HostKey => format!("key exchange not finished within {limit}"),
        Stage::Auth => format!("authentication not finished within {limit}"),
        Stage::Channel | Stage::Command => format!("no channel within {limit}"),
    };
    Failure::new(stage, message)
}

/// A command that ran to its end.
pub(super) fn ended(ended: &Ended, missing: MissingStatus) -> (Status, Option<Failure>) {
    match ended {
        Ended {
            rc: Some(0),
            signal: None,
        } => (Status::Ok, None),
        Ended {
            rc: None,
            signal: None,
        } if missing == MissingStatus::Ok => (Status::Ok, None),
        Ended {
            rc: None,
            signal: None,
        } => {
            let message = "the command ended without an exit status";
            (Status::Unknown, Some(Failure::new(Stage::Command, message)))
        }
        Ended { .. } => (Status::Failed, None),
    }
}

/// The word and the sentence for a stopped request.
pub(super) fn cancelled(reason: Reason, limit: Option<Duration>) -> (Status, String) {
    match (reason, limit) {
        (Reason::TimedOut, Some(limit)) => {
            (Status::Timeout, format!("not finished within {}", seconds(limit)))
        }
        (Reason::TimedOut, None) => (Status::Timeout, "out of time".to_owned()),
        (Reason::Interrupted, _) => (Status::Cancelled, "stopped".to_owned()),
    }
}

/// Connect or login timeout. `ran`: the command had been sent ahead and may have run.
pub(super) fn out_of_time<K: Copy + Eq + Hash>(job: &Job<K>, ran: bool) -> (Status, Failure) {
    let connect = seconds(job.request.connect_timeout);
    let login = seconds(job.request.login_timeout);
    let mut general = None;
    let message = match job.stage {
        Stage::Dns if is_openssh(job) => return (Status::Unreachable, ssh_hangs(&connect)),
        Stage::Dns => {
            general = Some(format!("no answer about the name within {connect}"));
            format!(
                "no answer about the name {} within {connect}",
                job.request.address
            )
        }
        Stage::Tcp => match job.lacking {
            Some((what, _)) => format!("could not connect within {connect}: {what}"),
            // ssh alone knows which port its configuration names.
            None if job.request.port == 0 => format!("no answer within {connect}"),
            None => {
                general = Some(format!("no answer within {connect}"));
                format!(
                    "no answer from {} port {} within {connect}",
                    job.request.address, job.request.port
                )
            }
        },
        Stage::Banner if is_proxied(job) => format!(
            "no SSH identification through the ProxyCommand within {connect}{}{}",
            said(&job.greeting),
            proxy_said(job)
        ),
        Stage::Banner => format!(
            "connected, but no SSH identification within {connect}{}",
            said(&job.greeting)
        ),
        Stage::Kex | Stage::HostKey => format!("key exchange not finished within {connect}"),
        Stage::Auth => match &job.signing {
            Some(label) => format!("{label} did not sign within {login}"),
            None => format!("authentication not finished within {login}"),
        },
        Stage::Channel | Stage::Command if ran => format!("session not opened within {login}, may have run"),
        Stage::Channel | Stage::Command => format!("session not opened within {login}"),
    };
    let status = match job.stage {
        Stage::Auth => Status::Auth,
        Stage::Channel | Stage::Command if ran => Status::Unknown,
        Stage::Dns | Stage::Tcp | Stage::Banner | Stage::Kex | Stage::HostKey => Status::Unreachable,
        Stage::Channel | Stage::Command => Status::Unreachable,
    };
    let stage = job.stage;
    (
        status,
        Failure {
            via: None,
            stage,
            message,
            general,
        },
    )
}

fn is_openssh<K: Copy + Eq + Hash>(job: &Job<K>) -> bool {
    matches!(job.request.transport, Transport::OpenSsh(_))
}

/// The system's `ssh` has said nothing: whether it looks for the name, runs something first or does neither, only it knows.
fn ssh_hangs(limit: &str) -> Failure {
    let message =
        format!("ssh has not begun to connect within {limit}: see by hand where it hangs, with ssh -v");
    Failure::new(Stage::Tcp, message)
}

/// The server would not run the command, or did not say how it ended.
pub(super) fn channel_failed(reason: ChannelFailure, may_have_run: bool) -> (Status, Failure) {
    let message = match reason {
        ChannelFailure::Refused { text, .. } if text.trim().is_empty() => "session refused".to_owned(),
        ChannelFailure::Refused { text, .. } => format!("session refused: {}", one_line(&text)),
        ChannelFailure::ExecRefused => "the server refused to run the command".to_owned(),
        ChannelFailure::ClosedUnanswered => "the server closed the session without an answer".to_owned(),
        ChannelFailure::ConnectionLost => "connection lost".to_owned(),
        ChannelFailure::Cancelled => "stopped before the command was sent".to_owned(),
        ChannelFailure::TooLarge => "the command is longer than a server has to accept (32 KiB)".to_owned(),
        ChannelFailure::NoSession => "the server allows no further session on this connection".to_owned(),
    };
    if may_have_run {
        return (
            Status::Unknown,
            Failure::new(Stage::Command, format!("{message}, may have run")),
        );
    }
    (Status::Unreachable, Failure::new(Stage::Channel, message))
}

/// A connection that ended before its command did. `ran` is what the client said about the command.
pub(super) fn lost<K: Copy + Eq + Hash>(
    job: &Job<K>,
    ran: Option<bool>,
    result: &Result<(), LinkError<Error>>,
) -> (Status, Failure) {
    let why = match result {
        // What it rode on is to blame, and has said why.
        Ok(()) | Err(LinkError::Protocol(Error::UnexpectedEof)) if job.carrier_lost.is_some() => {
            job.carrier_lost.clone().unwrap_or_default()
        }
        Ok(()) | Err(LinkError::Protocol(Error::UnexpectedEof)) if is_proxied(job) => {
            format!("the ProxyCommand ended{}", proxy_said(job))
        }
        Ok(()) | Err(LinkError::Protocol(Error::UnexpectedEof)) => "closed by the server".to_owned(),
        Err(LinkError::Io(kind)) => kind.to_string(),
        Err(LinkError::Protocol(error)) => error.to_string(),
    };
    let why = match &job.farewell {
        Some(text) if !text.is_empty() && !why.contains(text.as_str()) => format!("{why} ({text})"),
        Some(_) | None => why,
    };
    match job.stage {
        Stage::Channel | Stage::Command if job.is_hop() => (
            Status::Unreachable,
            Failure::new(Stage::Channel, format!("connection lost: {why}")),
        ),
        Stage::Dns | Stage::Tcp => (Status::Unreachable, Failure::new(Stage::Tcp, why)),
        Stage::Banner => (
            Status::Unreachable,
            Failure::new(
                Stage::Banner,
                format!("before its SSH identification: {why}{}", said(&job.greeting)),
            ),
        ),
        Stage::Kex | Stage::HostKey => (Status::Unreachable, Failure::new(Stage::Kex, why)),
        // It left behind a login whose answer never came: nobody knows whether that was a yes.
        Stage::Auth if ran == Some(true) => {
            let (status, failure) = in_doubt(Status::Auth, Some(denied(job, result, &why)));
            (
                status,
                failure.unwrap_or_else(|| Failure::new(Stage::Command, why)),
            )
        }
        Stage::Auth => (Status::Auth, denied(job, result, &why)),
        Stage::Channel | Stage::Command if ran == Some(false) => (
            Status::Unreachable,
            Failure::new(
                Stage::Channel,
                format!("connection lost before the command was sent: {why}"),
            ),
        ),
        Stage::Channel | Stage::Command => (
            Status::Unknown,
            Failure::new(Stage::Command, format!("connection lost, may have run: {why}")),
        ),
    }
}

/// The command was sent behind a login that had no answer, and what came after has not shown that it was refused.
pub(super) fn in_doubt(status: Status, error: Option<Failure>) -> (Status, Option<Failure>) {
    match status {
        Status::Unreachable | Status::Auth | Status::HostKey => {
            let error = error.unwrap_or_else(|| Failure::new(Stage::Command, ""));
            let lost = |why: &str| format!("connection lost, may have run: {why}");
            let failure = Failure {
                via: error.via.clone(),
                stage: Stage::Command,
                message: lost(&error.message),
                general: error.general.as_deref().map(lost),
            };
            (Status::Unknown, Some(failure))
        }
        Status::Ok
        | Status::Failed
        | Status::Unknown
        | Status::Timeout
        | Status::Cancelled
        | Status::Skipped => (status, error),
    }
}

/// What sshd says in place of its identification where it has enough logins.
const TOO_MANY: &str = "Exceeded MaxStartups";

/// What to do about that.
const TOO_MANY_ADVICE: &str = "too many logins at once for it: wait, or raise its MaxStartups";

/// Whether the server said that it has enough logins.
pub(super) fn says_too_many(greeting: &[String]) -> bool {
    greeting.iter().any(|line| line.starts_with(TOO_MANY))
}

impl Failure {
    /// The same with what to do about too many logins, if it does not say so yet.
    pub(super) fn too_many_logins(mut self) -> Self {
        if !self.message.contains(TOO_MANY_ADVICE) {
            let general = self.general.iter_mut();
            for message in general.chain([&mut self.message]) {
                message.push_str("; ");
                message.push_str(TOO_MANY_ADVICE);
            }
        }
        self
    }
}

/// What the server said instead of its identification, and what that means where it is known.
fn said(greeting: &[String]) -> String {
    /// The beginning of a line, and what to do about it. The first two are sshd's (OpenSSH 9.8 and before).
    const KNOWN: [(&str, &str); 3] = [
        (
            "Not allowed at this time",
            "it bans this address for a while after failed logins (PerSourcePenalties): wait, and look at what failed",
        ),
        (TOO_MANY, TOO_MANY_ADVICE),
        ("HTTP/", "it is no SSH server: check the port"),
    ];
    let lines: Vec<&str> = greeting
        .iter()
        .map(String::as_str)
        .filter(|line| !line.is_empty())
        .collect();
    if lines.is_empty() {
        return String::new();
    }
    let known = KNOWN
        .iter()
        .find(|(start, _)| lines.iter().any(|line| line.starts_with(start)));
    let advice = known.map(|(_, advice)| format!("; {advice}")).unwrap_or_default();
    let words = lines.join("; ");
    format!(" (it said: {}){advice}", Printable::new(&words))
}

fn is_proxied<K>(job: &Job<K>) -> bool {
    matches!(job.request.route, Route::Command(_))
}

/// The last words of the process that was the connection.
fn proxy_said<K>(job: &Job<K>) -> String {
    match job.proxy_said.is_empty() {
        true => String::new(),
        false => format!(" (it said: {})", job.proxy_said.join("; ")),
    }
}

/// Why a host gets nothing that it could use against us.
const WITHHELD: &str = "withheld, as the host key is not the one that is known";

/// Why the server did not let us in, with everything that was tried.
fn denied<K: Copy + Eq + Hash>(job: &Job<K>, result: &Result<(), LinkError<Error>>, why: &str) -> Failure {
    let left_out = left_out(job, result);
    let untried = untried(job, result);
    let reasons = job
        .tried
        .iter()
        .chain(&job.prepared.skipped)
        .chain(&left_out)
        .chain(&untried);
    let reasons: Vec<&str> = reasons.map(String::as_str).collect();
    let tried = match reasons.is_empty() {
        true if job.prepared.keys.is_empty() => "; no key to offer".to_owned(),
        true => String::new(),
        false => format!("; {}", reasons.join("; ")),
    };
    match result {
        Err(LinkError::Protocol(Error::AuthFailed { .. })) => {
            let user = Printable::new(&job.request.user);
            let message = format!("{user}@{}: {why}{tried}", job.request.host);
            Failure::new(Stage::Auth, message).in_general(format!("as {user}: {why}{tried}"))
        }
        _ => Failure::new(Stage::Auth, format!("during authentication: {why}{tried}")),
    }
}

/// What to do about a server that hung up before all keys were shown to it. One that speaks of failures has had enough of
/// them, even where the last key was the last straw.
fn untried<K: Copy + Eq + Hash>(job: &Job<K>, result: &Result<(), LinkError<Error>>) -> Option<String> {
    let Err(LinkError::Protocol(Error::AuthFailed { methods, .. })) = result else {
        return None;
    };
    let was_tried = |label: &str| {
        let rest = job.tried.iter().filter_map(|tried| tried.strip_prefix(label));
        rest.into_iter().any(|rest| rest.starts_with(": "))
    };
    let left = job
        .prepared
        .keys
        .iter()
        .filter(|offer| !was_tried(&offer.label))
        .count();
    let takes_keys = methods
        .iter()
        .any(|method| method == AuthMethod::PublicKey.name());
    let count = match left {
        0 => return None,
        _ if !takes_keys => return None,
        1 => "1 key was".to_owned(),
        several => format!("{several} keys were"),
    };
    Some(format!(
        "{count} not tried before it hung up: name the right one (-i FILE, or IdentityFile; of an agent's key the .pub \
         file) with IdentitiesOnly=yes"
    ))
}

/// Ways in that the server offers and that are not for it: the configuration forbids them, or its key is not the one that
/// is known. Why keys are left out was said with the keys.
fn left_out<K: Copy + Eq + Hash>(job: &Job<K>, result: &Result<(), LinkError<Error>>) -> Vec<String> {
    let (Err(LinkError::Protocol(Error::AuthFailed { methods, .. })), Transport::Ssh(options)) =
        (result, &job.request.transport)
    else {
        return Vec::new();
    };
    let withheld = options.methods.order.iter().filter(|_| job.caution.distrusted);
    let withheld = withheld.map(|method| (*method, WITHHELD));
    let forbidden = options
        .left_out
        .iter()
        .map(|(method, reason)| (*method, reason.as_str()));
    let is_offered = |(method, _): &(AuthMethod, &str)| {
        *method != AuthMethod::PublicKey && methods.iter().any(|offered| offered == method.name())
    };
    let left_out = withheld.chain(forbidden).filter(is_offered);
    left_out
        .map(|(method, reason)| format!("{}: {reason}", method.name()))
        .collect()
}

/// The name of a signal without `SIG`, as the wire has it (RFC 4254, section 6.10).
pub(super) fn signal_name(number: i32) -> String {
    let name = match number {
        1 => "HUP",
        2 => "INT",
        3 => "QUIT",
        4 => "ILL",
        6 => "ABRT",
        8 => "FPE",
        9 => "KILL",
        11 => "SEGV",
        13 => "PIPE",
        14 => "ALRM",
        15 => "TERM",
        other => return other.to_string(),
    };
    name.to_owned()
}

/// `10s`, `1.5s`.
fn seconds(duration: Duration) -> String {
    format!("{}s", duration.as_secs_f64())
}
