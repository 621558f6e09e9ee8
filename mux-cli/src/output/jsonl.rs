//! The machine-readable form: one object a host, then one with the summary, each on a line of its own. The fields are
//! those of `schema/run.v1.schema.json`; a change that takes one away makes a new version.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter};

use super::store::Gathered;
use crate::hub::{Outcome, Timings};

/// The version of the schema, the `v` of each object.
const VERSION: u32 = 1;

/// What is known about a host beside its output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity<'a> {
    pub(super) host: &'a str,
    pub(super) user: Option<&'a str>,
    pub(super) port: Option<u16>,
    /// Why the system's `ssh` was used, where it was.
    pub(super) via: Option<&'a str>,
}

#[derive(Serialize)]
struct HostObject<'a> {
    v: u32,
    host: &'a str,
    user: Option<&'a str>,
    port: Option<u16>,
    status: &'static str,
    rc: Option<i32>,
    signal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout_b64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout_file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr_b64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr_file: Option<&'a str>,
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    via_openssh: Option<&'a str>,
    attempts: u32,
    timings: TimingsObject,
    error: Option<ErrorObject<'a>>,
}

/// Seconds.
#[derive(Serialize)]
struct TimingsObject {
    dns: Option<f64>,
    tcp: Option<f64>,
    kex: Option<f64>,
    auth: Option<f64>,
    run: Option<f64>,
}

#[derive(Serialize)]
struct ErrorObject<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    via: Option<&'a str>,
    stage: &'static str,
    message: &'a str,
}

/// The last object.
#[derive(Serialize)]
pub(super) struct SummaryObject {
    pub(super) summary: Counts,
}

/// Hosts by how they ended, and what happened to the output.
#[derive(Serialize)]
pub(super) struct Counts {
    v: u32,
    pub(super) hosts: usize,
    pub(super) ok: usize,
    pub(super) failed: usize,
    pub(super) timeout: usize,
    pub(super) unreachable: usize,
    pub(super) auth: usize,
    pub(super) hostkey: usize,
    pub(super) unknown: usize,
    pub(super) skipped: usize,
    pub(super) cancelled: usize,
    pub(super) seconds: f64,
    pub(super) spilled_bytes: u64,
    pub(super) cut_bytes: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) via_openssh: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Counts {
    pub(super) fn new(hosts: usize, count: impl Fn(crate::hub::Status) -> usize) -> Self {
        use crate::hub::Status;
        Self {
            v: VERSION,
            hosts,
            ok: count(Status::Ok),
            failed: count(Status::Failed),
            timeout: count(Status::Timeout),
            unreachable: count(Status::Unreachable),
            auth: count(Status::Auth),
            hostkey: count(Status::HostKey),
            unknown: count(Status::Unknown),
            skipped: count(Status::Skipped),
            cancelled: count(Status::Cancelled),
            seconds: 0.0,
            spilled_bytes: 0,
            cut_bytes: 0,
            via_openssh: 0,
        }
    }
}

/// A stream of a host, and the file that was asked for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream<'a> {
    gathered: &'a Gathered,
    file: Option<&'a str>,
}

impl<'a> Stream<'a> {
    pub(super) fn new(gathered: &'a Gathered, file: Option<&'a str>) -> Self {
        Self { gathered, file }
    }
}

/// The one form in which a stream is given.
struct Form<'a> {
    text: Option<&'a str>,
    base64: Option<String>,
    file: Option<&'a str>,
}

impl<'a> Form<'a> {
    fn of(stream: Stream<'a>) -> Self {
        let (_, memory) = stream.gathered.parts();
        let spilled = stream.gathered.file.as_deref().and_then(|file| file.to_str());
        match (stream.file.or(spilled), str::from_utf8(memory)) {
            (Some(file), _) => Self {
                text: None,
                base64: None,
                file: Some(file),
            },
            (None, Ok(text)) => Self {
                text: Some(text),
                base64: None,
                file: None,
            },
            (None, Err(_)) => Self {
                text: None,
                base64: Some(STANDARD.encode(memory)),
                file: None,
            },
        }
    }
}

/// The line for a host.
pub(super) fn host_line(
    identity: Identity<'_>,
    outcome: &Outcome,
    (stdout, stderr): (Stream<'_>, Stream<'_>),
    has_lost: bool,
) -> Vec<u8> {
    let truncated = has_lost || stdout.gathered.cut > 0 || stderr.gathered.cut > 0;
    let (stdout, stderr) = (Form::of(stdout), Form::of(stderr));
    let error = outcome.error.as_ref();
    line(&HostObject {
        v: VERSION,
        host: identity.host,
        user: identity.user,
        port: identity.port,
        status: outcome.status.name(),
        rc: outcome.rc,
        signal: outcome.signal.as_deref(),
        stdout: stdout.text,
        stdout_b64: stdout.base64,
        stdout_file: stdout.file,
        stderr: stderr.text,
        stderr_b64: stderr.base64,
        stderr_file: stderr.file,
        truncated,
        via_openssh: identity.via,
        attempts: outcome.attempts,
        timings: TimingsObject::of(outcome.timings),
        error: error.map(|error| ErrorObject {
            via: error.via.as_deref(),
            stage: error.stage.name(),
            message: &error.message,
        }),
    })
}

/// An object as a line.
pub(super) fn line(object: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, Terminalproof(CompactFormatter));
    object
        .serialize(&mut serializer)
        .expect("strings and numbers into a Vec");
    out.push(b'\n');
    out
}

impl TimingsObject {
    fn of(timings: Timings) -> Self {
        // Microseconds are all that a clock across a network means, and keep the numbers short.
        let seconds =
            |time: Option<std::time::Duration>| time.map(|time| (time.as_secs_f64() * 1e6).round() / 1e6);
        Self {
            dns: seconds(timings.dns),
            tcp: seconds(timings.tcp),
            kex: seconds(timings.kex),
            auth: seconds(timings.auth),
            run: seconds(timings.run),
        }
    }
}

/// JSON in which no control character is left: RFC 8259 lets DEL and C1 pass, and terminals obey the latter.
struct Terminalproof(CompactFormatter);

impl Formatter for Terminalproof {
    fn write_string_fragment<W: io::Write + ?Sized>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(|c| ('\u{7f}'..='\u{9f}').contains(&c)) {
            let (plain, tail) = rest.split_at(at);
            let mut tail_chars = tail.chars();
            let control = tail_chars.next().map_or(0, u32::from);
            self.0.write_string_fragment(writer, plain)?;
            write!(writer, "\\u{control:04x}")?;
            rest = tail_chars.as_str();
        }
        self.0.write_string_fragment(writer, rest)
    }
}
