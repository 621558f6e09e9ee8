//! What can be wrong with targets: said with what, where, and what to do next.

use std::fmt;
use std::ops::Range;

use super::{MAX_NAME, MAX_TARGETS};

/// Something wrong in a target expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetError {
    /// Where the expression was written, if that is known.
    pub place: Option<Place>,
    /// The expression.
    pub text: String,
    /// The bytes of `text` that are wrong.
    pub span: Range<usize>,
    /// What is wrong.
    pub kind: TargetErrorKind,
}

/// Where an expression was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The value of this flag.
    Flag(&'static str),
    /// A line of a hosts file.
    Line {
        /// The file's name, or `-`.
        file: String,
        /// Counted from 1.
        line: usize,
    },
}

/// What is wrong with an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetErrorKind {
    /// An operator without something to work on.
    MissingOperand,
    /// `^file`, as pdsh has it.
    CaretFile,
    /// `-name`, as pdsh has it.
    DashExclusion,
    /// `a:!b`, as Ansible has it.
    AnsiblePattern,
    /// `@group`.
    Group,
    /// `host/method`.
    Method,
    /// A path where a host belongs.
    Path,
    /// Blank inside a target.
    Blank,
    /// Nothing after the user or before the port.
    MissingHost,
    /// A user that no system has, or that a remote shell might take for something else.
    BadUser,
    /// A character that no host name has.
    BadCharacter(char),
    /// A name over [`MAX_NAME`] bytes.
    NameTooLong,
    /// A port that is not a number from 1 to 65535.
    BadPort,
    /// Several colons, but no IPv6 address.
    NotAnAddress,
    /// Something other than a port after an address in brackets.
    AfterAddress,
    /// A bracket that is never closed.
    Unclosed,
    /// A closing bracket without an opening one, or brackets within brackets.
    StrayBracket,
    /// Not a list of numbers and ranges.
    BadRange,
    /// A range that goes down.
    Backwards,
    /// A step of zero.
    ZeroStep,
    /// Ends of different length, one of them padded.
    Padding,
    /// More than [`MAX_TARGETS`].
    TooMany,
    /// A wildcard that matches no known name; whether there were any.
    NoMatch {
        /// How many names were known.
        known: usize,
    },
    /// A line that is not UTF-8.
    NotUtf8,
    /// Nothing is left to run on.
    Empty,
    /// A lone name of a file in the current directory: a shell may have put it in the place of a range.
    Globbed,
}

/// What went wrong in a text that the caller knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) span: Range<usize>,
    pub(super) kind: TargetErrorKind,
}

impl Problem {
    pub(super) fn new(span: Range<usize>, kind: TargetErrorKind) -> Self {
        Self { span, kind }
    }
}

impl TargetError {
    pub(super) fn in_text(text: &str, problem: Problem) -> Self {
        Self {
            place: None,
            text: text.to_owned(),
            span: problem.span,
            kind: problem.kind,
        }
    }

    pub(super) fn empty() -> Self {
        Self {
            place: None,
            text: String::new(),
            span: 0..0,
            kind: TargetErrorKind::Empty,
        }
    }

    /// The error for a lone target that names a file (see [`super::TargetSpec::glob_suspect`]).
    #[must_use]
    pub fn globbed(name: &str) -> Self {
        let place = Some(Place::Flag("-w"));
        Self {
            place,
            text: name.to_owned(),
            span: 0..name.len(),
            kind: TargetErrorKind::Globbed,
        }
    }

    pub(super) fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// What to do next.
    fn advice(&self) -> String {
        use TargetErrorKind as Kind;
        let wrong = self.text.get(self.span.clone()).unwrap_or("");
        match &self.kind {
            Kind::MissingOperand => "each of `, ! & ^` stands between two targets".into(),
            Kind::CaretFile => "to read hosts from a file: --hosts FILE".into(),
            Kind::DashExclusion => format!("to leave hosts out: -x {}", wrong.trim_start_matches('-')),
            Kind::AnsiblePattern => {
                "patterns belong to --limit, which is not supported yet; here: web!web3".into()
            }
            Kind::Group => {
                "no group source is configured: name the hosts, or list them in --hosts FILE".into()
            }
            Kind::Method => "methods after a host (host/sudo) are not supported yet".into(),
            Kind::Path => "to read hosts from a file: --hosts FILE".into(),
            Kind::Blank => "between targets write a comma".into(),
            Kind::MissingHost => "write [user@]host[:port]".into(),
            Kind::BadUser => "a user has no blanks or shell characters and does not begin with `-`".into(),
            Kind::BadCharacter(_) => "a host name has letters, digits, `-`, `.` and `_`".into(),
            Kind::NameTooLong => format!("at most {MAX_NAME} bytes"),
            Kind::BadPort => "a port is a number from 1 to 65535; between targets write a comma".into(),
            Kind::NotAnAddress => {
                "write host:port, or [ADDRESS]:port for IPv6; between targets write a comma".into()
            }
            Kind::AfterAddress => "after [ADDRESS] only :port may follow".into(),
            Kind::Unclosed => "close it with `]`".into(),
            Kind::StrayBracket => "brackets come in pairs and don't nest".into(),
            Kind::BadRange => {
                "write numbers and ranges, as in web[1-9,12] or web[1-99/2]; words: web-a,web-b".into()
            }
            Kind::Backwards => "write the smaller number first".into(),
            Kind::ZeroStep => "a step is at least 1".into(),
            Kind::Padding => "write both ends with the same number of digits, as in [01-03]".into(),
            Kind::TooMany => format!("a run has at most {MAX_TARGETS} targets"),
            Kind::NoMatch { known: 0 } => {
                "no names are known: --hosts FILE or `Host` lines of the ssh configuration give them".into()
            }
            Kind::NoMatch { known } => {
                format!("none of the {known} known names matches (--hosts FILE and `Host` lines give them)")
            }
            Kind::NotUtf8 => "a hosts file is UTF-8 text, one target a line".into(),
            Kind::Empty => "name hosts with -w or --hosts".into(),
            Kind::Globbed => {
                format!(
                    "if a range was meant, quote it: -w 'web[1-3]'; for the host itself: -w '{}'",
                    bracketed(wrong)
                )
            }
        }
    }
}

/// `web12` as `web1[2]`: the same host, and no shell can have made it from a range.
fn bracketed(name: &str) -> String {
    match name.rfind(|c: char| c.is_ascii_digit()) {
        Some(at) => {
            let (head, tail) = name.split_at(at);
            let (digit, rest) = tail.split_at(1);
            format!("{head}[{digit}]{rest}")
        }
        None => name.to_owned(),
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => f.write_str(flag),
            Self::Line { file, line } => write!(f, "{file}:{line}"),
        }
    }
}

impl fmt::Display for TargetErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingOperand => f.write_str("a target is missing"),
            Self::CaretFile => f.write_str("`^` does not read a file here"),
            Self::DashExclusion => f.write_str("a target does not begin with `-`"),
            Self::AnsiblePattern => f.write_str("this is a pattern of Ansible"),
            Self::Group => f.write_str("groups can't be looked up"),
            Self::Method => f.write_str("`/` after a host"),
            Self::Path => f.write_str("this is a path, not a host"),
            Self::Blank => f.write_str("blank in a target"),
            Self::MissingHost => f.write_str("the host is missing"),
            Self::BadUser => f.write_str("not a user name"),
            Self::BadCharacter(c) => write!(f, "{c:?} in a host name"),
            Self::NameTooLong => f.write_str("host name too long"),
            Self::BadPort => f.write_str("not a port"),
            Self::NotAnAddress => f.write_str("not an IPv6 address"),
            Self::AfterAddress => f.write_str("unexpected text after an address"),
            Self::Unclosed => f.write_str("`[` without `]`"),
            Self::StrayBracket => f.write_str("stray bracket"),
            Self::BadRange => f.write_str("not a range"),
            Self::Backwards => f.write_str("the range goes down"),
            Self::ZeroStep => f.write_str("a step of zero"),
            Self::Padding => f.write_str("the ends of the range are padded differently"),
            Self::TooMany => f.write_str("too many targets"),
            Self::NoMatch { .. } => f.write_str("the wildcard matches nothing"),
            Self::NotUtf8 => f.write_str("not UTF-8"),
            Self::Empty => f.write_str("no targets: the set is empty"),
            Self::Globbed => {
                f.write_str("the lone target is also a file here, and the shell may have put it there")
            }
        }
    }
}

/// Columns of the expression that are shown: enough to find the place, and no line that wraps.
const SHOWN_COLUMNS: usize = 68;

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        if self.text.is_empty() {
            return write!(f, "{}; {}", self.kind, self.advice());
        }
        let columns = |bytes: usize| self.text.get(..bytes).unwrap_or(&self.text).chars().count();
        let (start, end) = (columns(self.span.start), columns(self.span.end));
        let skip = start.saturating_sub(SHOWN_COLUMNS / 2);
        let shown = self.text.chars().skip(skip).take(SHOWN_COLUMNS);
        let shown: String = shown.map(|c| if c.is_control() { '?' } else { c }).collect();
        let carets = end.min(skip + SHOWN_COLUMNS).saturating_sub(start).max(1);
        let (kind, advice) = (&self.kind, self.advice());
        write!(
            f,
            "column {}: {kind}\n  {shown}\n  {:2$}",
            start + 1,
            "",
            start - skip
        )?;
        write!(f, "{:^<1$} {advice}", "", carets)
    }
}

impl std::error::Error for TargetError {}
