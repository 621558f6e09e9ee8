//! Whether there is colour, which, and what the two output streams are: facts about the terminal come in as values.

use anstyle::{AnsiColor, Style};

use crate::plan::{ColorChoice, Format, OutputPlan, SavePlan};

/// What is known about the standard streams and the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Whether standard output is a terminal.
    pub stdout_is_terminal: bool,
    /// Whether standard error is a terminal.
    pub stderr_is_terminal: bool,
    /// Columns of the terminal on standard error, if it is one and says so.
    pub width: Option<usize>,
    /// `NO_COLOR`.
    pub no_color: Option<String>,
    /// `CLICOLOR`.
    pub clicolor: Option<String>,
    /// `CLICOLOR_FORCE`.
    pub clicolor_force: Option<String>,
    /// `TERM`.
    pub term: Option<String>,
}

impl Facts {
    /// The facts of this process's environment; the terminals are left to the caller.
    #[must_use]
    pub fn of_environment() -> Self {
        let read = |name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        Self {
            no_color: read("NO_COLOR"),
            clicolor: read("CLICOLOR"),
            clicolor_force: read("CLICOLOR_FORCE"),
            term: read("TERM"),
            ..Self::default()
        }
    }

    /// Whether a stream gets colour: the flag, then no-color.org, then bixense.com/clicolors, then the terminal.
    #[must_use]
    pub fn color(&self, choice: ColorChoice, is_terminal: bool) -> bool {
        let set = |value: &Option<String>| value.as_deref().is_some_and(|value| !value.is_empty());
        let forced = set(&self.clicolor_force) && self.clicolor_force.as_deref() != Some("0");
        match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto if set(&self.no_color) => false,
            ColorChoice::Auto if forced => true,
            ColorChoice::Auto => is_terminal && self.clicolor.as_deref() != Some("0") && self.is_capable(),
        }
    }

    fn is_capable(&self) -> bool {
        self.term
            .as_deref()
            .is_some_and(|term| !term.is_empty() && term != "dumb")
    }
}

/// How one stream is written to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamStyle {
    pub(crate) is_terminal: bool,
    pub(crate) color: bool,
}

impl StreamStyle {
    /// `text` in `style`, where there is colour.
    pub(crate) fn paint(self, style: Style, text: &str) -> String {
        if self.color {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }
}

/// Everything that decides the form of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub(crate) format: Format,
    pub(crate) prefix: bool,
    pub(crate) quiet: bool,
    pub(crate) verbose: bool,
    pub(crate) stdout: StreamStyle,
    pub(crate) stderr: StreamStyle,
    pub(crate) progress: bool,
    pub(crate) width: usize,
    pub(crate) files: std::path::PathBuf,
    pub(crate) spill_max: u64,
    pub(crate) save: SavePlan,
}

/// Columns of a terminal that does not say how wide it is.
const USUAL_WIDTH: usize = 80;

impl Options {
    /// What the plan asks for, on streams such as these. `files` is a directory that does not exist yet: there the
    /// machine-readable form puts output that is too large for it.
    #[must_use]
    pub fn new(plan: &OutputPlan, verbose: u8, facts: &Facts, files: std::path::PathBuf) -> Self {
        let style = |is_terminal| StreamStyle {
            is_terminal,
            color: facts.color(plan.color, is_terminal),
        };
        Self {
            format: plan.format,
            prefix: plan.prefix,
            quiet: plan.quiet,
            verbose: verbose > 0,
            stdout: style(facts.stdout_is_terminal),
            stderr: style(facts.stderr_is_terminal),
            progress: facts.stderr_is_terminal && facts.is_capable() && !plan.quiet,
            width: facts.width.unwrap_or(USUAL_WIDTH),
            files,
            spill_max: plan.spill_max,
            save: plan.save.clone(),
        }
    }

    /// The same without a progress line: somebody types on the terminal.
    #[must_use]
    pub fn without_progress(self) -> Self {
        Self {
            progress: false,
            ..self
        }
    }
}

/// Colours of host names on standard output. No red: that means trouble.
const HOST_COLORS: [AnsiColor; 5] = [
    AnsiColor::Cyan,
    AnsiColor::Green,
    AnsiColor::Yellow,
    AnsiColor::Blue,
    AnsiColor::Magenta,
];

/// The style of a host's name, the same for all of its lines.
pub(crate) fn host_style(index: usize) -> Style {
    let color = HOST_COLORS
        .get(index % HOST_COLORS.len())
        .copied()
        .unwrap_or(AnsiColor::Cyan);
    color.on_default()
}

/// The style of what went wrong.
pub(crate) fn trouble_style() -> Style {
    AnsiColor::Red.on_default()
}

/// The style of what went well.
pub(crate) fn success_style() -> Style {
    AnsiColor::Green.on_default()
}

/// The style of the names above gathered output.
pub(crate) fn header_style() -> Style {
    AnsiColor::Cyan.on_default().bold()
}
