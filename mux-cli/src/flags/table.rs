//! The table of subcommands and flags, from which parsing and help are made. Letters mean what they mean in ssh, clush
//! and pdsh; everything else is a long option.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{
    OsStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser as _, ValueParser,
};
use clap::{Arg, ArgAction, Command, value_parser};

use super::duration::{parse_deadline, parse_duration};
use super::fanout::parse_fanout;
use super::size::parse_size;
use super::variable::parse_variable;
use super::{config, daemon, foreign, hosts};
use crate::plan::{ColorChoice, Format, MAX_RETRIES, MissingStatus};

const EXAMPLES: &str = "\
Examples:
  mux run -w web[01-20] -- uptime
  mux run -b -w 'web*,!web07' --hosts fleet.txt -- uname -r
  mux run --output jsonl -w db1,db2:2222,root@[2001:db8::7] -- df -h /

More: mux help run";

const TARGETS_HELP: &str = "\
Targets:
  [user@]host[:port]  host name or address; IPv6 with a port: [2001:db8::7]:22
  web[01-20]          web01 to web20; [1-9,12] lists, [1-99/2] steps, r[1-4]n[1-9] two dimensions
  web*, db?           wildcards, over the names of --hosts and the `Host` names of the ssh configuration
  a,b  a!b  a&b  a^b  union, minus, and, exclusive or; from left to right

Exit status:
  0 all ok   1 a command failed, or its end is unknown   2 usage, configuration or empty set
  3 killed by --timeout   4 unreachable, authentication or host key   125 internal
  130 SIGINT   131 SIGQUIT   141 the reader of the output left   143 SIGTERM, SIGHUP
  The highest of 4, 3 and 1 counts; with -S: the largest remote status.

Passphrases, passwords and new host keys are asked about once for all hosts, on the terminal; without one by
SSH_ASKPASS if there is a DISPLAY, or SSH_ASKPASS_REQUIRE=force. -o BatchMode=yes: nothing is asked.

Environment: MUX_FANOUT, MUX_TIMEOUT, MUX_CONNECT_TIMEOUT, MUX_CONFIG, MUX_LOG, NO_COLOR, CLICOLOR,
  CLICOLOR_FORCE, TERM, SSH_AUTH_SOCK, SSH_ASKPASS, SSH_ASKPASS_REQUIRE, DISPLAY, WAYLAND_DISPLAY, XDG_CONFIG_HOME,
  XDG_STATE_HOME";

/// The whole command line.
pub(super) fn command() -> Command {
    let mux = Command::new("mux")
        .bin_name("mux")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Runs commands on fleets of machines over SSH, from one event loop.\nThe machines need sshd and nothing else.")
        .after_help(EXAMPLES)
        .arg_required_else_help(true)
        .subcommand_required(true)
        .subcommand(run())
        .subcommand(hosts::command())
        .subcommand(config::command())
        .subcommand(daemon::command())
        .subcommand(daemon::status());
    foreign::LATER_COMMANDS
        .iter()
        .fold(mux, |mux, name| mux.subcommand(foreign::later_command(name)))
}

fn run() -> Command {
    let command = Arg::new("command")
        .value_name("COMMAND")
        .help("Words are joined by one space and given to the login shell, as ssh does")
        .num_args(0..)
        .trailing_var_arg(true)
        .value_parser(value_parser!(OsString));
    Command::new("run")
        .about("Run a command on many hosts")
        .override_usage("mux run [OPTIONS] -w TARGETS [--] COMMAND [ARG]...")
        .after_help(TARGETS_HELP)
        .args_override_self(true)
        .args(targets())
        .args(connection())
        .args(execution())
        .args(surroundings())
        .args(output())
        .args(foreign::args())
        .arg(command)
}

pub(super) fn valued(id: &'static str, name: &'static str, help: &'static str) -> Arg {
    Arg::new(id).value_name(name).help(help)
}

pub(super) fn switch(id: &'static str, help: &'static str) -> Arg {
    Arg::new(id).help(help).action(ArgAction::SetTrue)
}

pub(super) fn headed<const N: usize>(heading: &'static str, args: [Arg; N]) -> [Arg; N] {
    args.map(|arg| arg.help_heading(heading))
}

/// Values that begin with `-` are let through: the target parser knows what was meant by `-w -web3`.
pub(super) fn targets() -> [Arg; 4] {
    let paths = value_parser!(PathBuf);
    headed(
        "Which hosts",
        [
            valued("where", "TARGETS", "Run on these; may be repeated").short('w'),
            valued("exclude", "TARGETS", "But not on these; may be repeated").short('x'),
            valued(
                "hosts",
                "FILE",
                "Run on the targets in FILE (`-`: standard input), one a line; \
                with -w: FILE gives the names that wildcards match",
            )
            .long("hosts")
            .value_parser(paths),
            switch("list-hosts", "Print the targets, one a line, and run nothing").long("list-hosts"),
        ],
    )
    .map(|arg| match arg.get_id().as_str() {
        "where" | "exclude" => arg.action(ArgAction::Append).allow_hyphen_values(true),
        "hosts" => arg.action(ArgAction::Append),
        _ => arg,
    })
}

pub(super) fn connection() -> [Arg; 11] {
    let path = || value_parser!(PathBuf);
    headed(
        "How to get there",
        [
            valued("login", "USER", "User, for targets that name none").short('l'),
            valued("port", "PORT", "Port, for targets that name none")
                .short('p')
                .allow_negative_numbers(true)
                .value_parser(value_parser!(u16).range(1..)),
            valued("identity", "FILE", "Private key; may be repeated")
                .short('i')
                .action(ArgAction::Append)
                .value_parser(path()),
            valued(
                "config",
                "FILE",
                "ssh configuration to read instead of the usual ones (`none`: none)",
            )
            .short('F')
            .value_parser(path()),
            valued(
                "jump",
                "HOSTS",
                "Connect through these, one after the other: [user@]host[:port],...",
            )
            .short('J'),
            valued("option", "KEY=VALUE", "ssh configuration option; may be repeated")
                .short('o')
                .action(ArgAction::Append),
            switch("ipv4", "Use IPv4 only").short('4').overrides_with("ipv6"),
            switch("ipv6", "Use IPv6 only").short('6').overrides_with("ipv4"),
            valued(
                "connect-timeout",
                "TIME",
                "For name, TCP and key exchange [default: 10s]",
            )
            .long("connect-timeout")
            .allow_negative_numbers(true)
            .value_parser(parse_deadline),
            valued("login-timeout", "TIME", "For authentication [default: 60s]")
                .long("login-timeout")
                .allow_negative_numbers(true)
                .value_parser(parse_deadline),
            transport(),
        ],
    )
}

fn transport() -> Arg {
    valued(
        "transport",
        "NAME[=SET]",
        "`native`: our own SSH [default]; `openssh`: through the system's ssh, a process for each target; \
        `openssh=SET`: only for these; `local`: run here, once for each target, without a network",
    )
    .long("transport")
    .action(ArgAction::Append)
    .value_parser(super::transport::parse)
}

fn execution() -> [Arg; 9] {
    headed(
        "How to run",
        [
            valued("fanout", "N", "Hosts at once [default: 64]")
                .short('f')
                .allow_negative_numbers(true)
                .value_parser(parse_fanout),
            valued(
                "timeout",
                "TIME",
                "Kill a command that takes longer (10, 1.5, 500ms, 5m; 0: never)",
            )
            .long("timeout")
            .allow_negative_numbers(true)
            .value_parser(parse_duration),
            switch(
                "argv",
                "Quote each word for a POSIX shell, so that it arrives as one",
            )
            .long("argv"),
            valued(
                "retries",
                "N",
                "Try hosts again whose command can't have started [default: 0]",
            )
            .long("retries")
            .value_parser(value_parser!(u32).range(0..=i64::from(MAX_RETRIES))),
            valued(
                "persist",
                "TIME",
                "See to it that there is a daemon that keeps connections, so long after its last client",
            )
            .long("persist")
            .value_parser(parse_deadline),
            switch("no-daemon", "Don't use connections of the daemon")
                .long("no-daemon")
                .conflicts_with("persist"),
            switch("fresh", "Make new connections in the place of kept ones").long("fresh"),
            switch("status", "Exit with the largest remote status").short('S'),
            valued(
                "missing-status",
                "WHAT",
                "What a command is that ends without a status: unknown or ok [default: unknown]",
            )
            .long("missing-status")
            .hide_possible_values(true)
            .value_parser(choice(&[
                ("unknown", MissingStatus::Unknown),
                ("ok", MissingStatus::Ok),
            ])),
        ],
    )
}

fn surroundings() -> [Arg; 6] {
    headed(
        "What the command gets",
        [
            valued(
                "stdin",
                "FILE",
                "Give every command FILE to read, or our own standard input, which is not read otherwise",
            )
            .long("stdin")
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("-")
            .overrides_with("no-stdin")
            .value_parser(value_parser!(PathBuf)),
            switch("no-stdin", "Don't read standard input: so it is without --stdin")
                .short('n')
                .overrides_with("stdin"),
            valued(
                "env",
                "NAME=VALUE",
                "Ask servers to set a variable (AcceptEnv decides); may be repeated",
            )
            .long("env")
            .action(ArgAction::Append)
            .value_parser(OsStringValueParser::new().try_map(|word| parse_variable(&word))),
            switch(
                "env-info",
                "The same for MUX_HOST, MUX_NODENUM (from 0), MUX_NUMNODES",
            )
            .long("env-info"),
            switch("forward-agent", "Let the command use our agent")
                .short('A')
                .long("forward-agent"),
            switch(
                "forward-agent-to-all",
                "Let -A and ForwardAgent apply to more than one host",
            )
            .long("forward-agent-to-all"),
        ],
    )
}

fn output() -> [Arg; 10] {
    let formats = [
        ("text", Format::Text),
        ("grouped", Format::Grouped { with_stderr: false }),
        ("jsonl", Format::Jsonl),
    ];
    let colors = [
        ("auto", ColorChoice::Auto),
        ("always", ColorChoice::Always),
        ("never", ColorChoice::Never),
    ];
    headed(
        "What to print",
        [
            switch("gather", "Gather identical output under its hosts, at the end")
                .short('b')
                .overrides_with("gather-all"),
            switch("gather-all", "The same, standard error included")
                .short('B')
                .overrides_with("gather"),
            switch("no-prefix", "Don't name hosts").short('N'),
            valued("output", "FORM", "text, grouped or jsonl (one object a host)")
                .long("output")
                .hide_possible_values(true)
                .value_parser(choice(&formats)),
            valued("color", "WHEN", "auto, always or never")
                .long("color")
                .default_value("auto")
                .hide_default_value(true)
                .hide_possible_values(true)
                .value_parser(choice(&colors)),
            valued(
                "outdir",
                "DIR",
                "Standard output into a file for each host, in the place of printing it; \
                with -b, -B or --output text besides that",
            )
            .long("outdir")
            .value_parser(value_parser!(PathBuf)),
            valued("errdir", "DIR", "The same for standard error")
                .long("errdir")
                .value_parser(value_parser!(PathBuf)),
            valued(
                "spill-max",
                "SIZE",
                "What temporary files for large output may hold; more is cut [default: 4G]",
            )
            .long("spill-max")
            .value_parser(parse_size),
            switch("quiet", "No summary, no warnings, no progress").short('q'),
            Arg::new("verbose")
                .short('v')
                .help("Say more; may be repeated")
                .action(ArgAction::Count),
        ],
    )
}

/// Names for values.
fn choice<T: Clone + Send + Sync + 'static>(names: &[(&'static str, T)]) -> ValueParser {
    let names = names.to_vec();
    let parser = PossibleValuesParser::new(names.iter().map(|(name, _)| PossibleValue::new(*name)));
    ValueParser::new(parser.map(move |given| {
        let found = names.iter().find(|(name, _)| *name == given);
        found
            .map(|(_, value)| value.clone())
            .expect("the parser lets only these names through")
    }))
}
