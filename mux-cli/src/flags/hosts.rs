//! `mux hosts`: what can be done about the host keys of a set, without running anything there. Decides what was asked
//! for; letters and options mean what they mean for `mux run`.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use super::fanout::parse_fanout;
use super::{Environment, UsageError, connection, table, targets};
use crate::plan::{
    Action, ColorChoice, DEFAULT_FANOUT, DEFAULT_SPILL_MAX, ExitRule, Format, Learn, MissingStatus,
    OutputPlan, Plan, SavePlan, Sharing, Transport, Variables,
};
use crate::targets::HostsSource;

const LEARN_HELP: &str = "\
A host is asked for each type of key that it has, in a connection each.
With --from each key must be the one that FILE says, in any of these forms:
  web[01-20]: ssh-ed25519 SHA256:ILM...        as this command prints it; the type may be missing
  web01 ssh-ed25519 AAAAC3Nz...                as in known_hosts, and from ssh-keyscan
  256 SHA256:ILM... web01 (ED25519)            as from ssh-keygen -lf

Nobody logs in to the targets. To jump hosts (-J, ProxyJump) somebody has to, as there is no other way: by -F and the
files. -i and -l are taken too, for Match lines and tokens of the configuration.

Examples:
  mux hosts learn 'web[01-20]'                 show the fingerprints, ask once, write them down
  mux hosts learn 'web[01-20]' --from prints   take what prints expects, without a question
  ssh-keyscan web01 | mux hosts learn web01 --from -

Exit status:
  0 all keys are known   2 usage, configuration or empty set   4 unreachable, or a key that is not the right one";

/// What is of no use where nobody logs in. It may stand there all the same, as it decides what the configuration says.
const UNUSED: [&str; 4] = ["login", "identity", "login-timeout", "transport"];

/// The subcommand and those under it.
pub(super) fn command() -> Command {
    Command::new("hosts")
        .about("See and keep host keys")
        .arg_required_else_help(true)
        .subcommand_required(true)
        .subcommand(learn())
}

fn learn() -> Command {
    let set = Arg::new("set")
        .value_name("TARGETS")
        .help("As with -w")
        .num_args(0..);
    let connection = table::connection().map(|arg| {
        let hidden = UNUSED.contains(&arg.get_id().as_str());
        arg.hide(hidden)
    });
    let words = [
        table::switch("quiet", "No summary, no warnings, no progress").short('q'),
        Arg::new("verbose")
            .short('v')
            .help("Say more; may be repeated")
            .action(ArgAction::Count),
    ];
    Command::new("learn")
        .about("Look at the host keys of a set, without logging in, and write them to known_hosts")
        .override_usage("mux hosts learn [OPTIONS] TARGETS...")
        .after_help(LEARN_HELP)
        .args_override_self(true)
        .args(table::targets())
        .args(connection)
        .args(table::headed(
            "Which keys",
            [
                table::valued(
                    "from",
                    "FILE",
                    "Write what FILE (`-`: standard input) says is right, and fail what it does not",
                )
                .long("from")
                .value_parser(value_parser!(PathBuf)),
                table::switch("yes", "Write whatever the hosts show, without a question")
                    .long("yes")
                    .conflicts_with("from"),
            ],
        ))
        .arg(
            table::valued("fanout", "N", "Hosts at once [default: 64]")
                .short('f')
                .allow_negative_numbers(true)
                .value_parser(parse_fanout),
        )
        .args(words)
        .arg(set)
}

/// What `mux hosts` with these arguments is to do.
pub(super) fn plan(hosts: &ArgMatches, environment: &Environment) -> Result<Plan, UsageError> {
    let Some(("learn", learn)) = hosts.subcommand() else {
        return Err(UsageError::NoSubcommand(command().render_help().to_string()));
    };
    let mut targets = targets(learn);
    targets.select.extend(super::texts(learn, "set"));
    let from = learn.get_one::<PathBuf>("from").cloned();
    if from.as_ref().is_some_and(|from| from.as_os_str() == "-")
        && targets.hosts.contains(&HostsSource::Stdin)
    {
        return Err(UsageError::StdinTwiceForKeys);
    }
    let fanout = learn.get_one::<usize>("fanout").copied();
    let connection = connection(learn, environment)?;
    match connection.transport {
        Transport::Ssh if connection.through_openssh.is_empty() => {}
        Transport::Ssh | Transport::Local | Transport::OpenSsh => return Err(UsageError::NoHostKeys),
    }
    Ok(Plan {
        targets,
        action: match learn.get_flag("list-hosts") {
            true => Action::ListHosts,
            false => Action::LearnHosts(Learn {
                from,
                yes: learn.get_flag("yes"),
            }),
        },
        fanout: fanout.or(environment.fanout()?).unwrap_or(DEFAULT_FANOUT),
        timeout: None,
        environment: Variables::default(),
        stdin: None,
        retries: 0,
        missing_status: MissingStatus::default(),
        sharing: Sharing::default(),
        connection,
        output: OutputPlan {
            format: Format::Text,
            prefix: true,
            quiet: learn.get_flag("quiet"),
            color: ColorChoice::default(),
            spill_max: DEFAULT_SPILL_MAX,
            save: SavePlan::default(),
        },
        exit: ExitRule::Fleet,
        verbose: learn.get_count("verbose"),
    })
}
