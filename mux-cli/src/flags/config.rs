//! `mux config`: what the ssh configuration says about a host. Decides what was asked for; letters and options mean
//! what they mean for `ssh -G`.

use clap::{Arg, ArgMatches, Command};

use super::{UsageError, jump, table, texts};
use crate::plan::{Connection, Family, Transport};

const EXAMPLES: &str = "\
Printed is what ssh -G prints, as this program will have it: lists of algorithms hold those that it has, and keywords
that change nothing here are left out; --keywords says which.

Examples:
  mux config -G web1                                     what applies to web1, in the form of ssh -G
  mux config -G --origin -J gate deploy@web1:2222        the same, with the file and line of each value
  mux config -G '[2001:db8::7]:22'                       an address with a port
  mux config --keywords                                  which keywords of ssh_config are honoured";

/// What `mux config` was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigQuery {
    /// `[user@]host[:port]`, as for `-w`.
    pub host: String,
    /// How to get there, as far as flags say.
    pub connection: Connection,
    /// Whether to say where each value stands.
    pub origin: bool,
}

/// Flags that decide what the configuration says.
const DECISIVE: [&str; 8] = [
    "login", "port", "identity", "config", "jump", "option", "ipv4", "ipv6",
];

/// The subcommand.
pub(super) fn command() -> Command {
    let connection = table::connection()
        .into_iter()
        .filter(|arg| DECISIVE.contains(&arg.get_id().as_str()));
    Command::new("config")
        .about("Show what the ssh configuration says about a host")
        .override_usage("mux config -G [OPTIONS] HOST\n       mux config --keywords")
        .after_help(EXAMPLES)
        .args_override_self(true)
        .args(connection)
        .arg(
            table::switch(
                "effective",
                "Print the host's configuration, in the form of ssh -G",
            )
            .short('G')
            .requires("host"),
        )
        .arg(table::switch("origin", "Add where each value stands").long("origin"))
        .arg(
            table::switch(
                "keywords",
                "Print what becomes of each keyword of ssh_config, in Markdown",
            )
            .long("keywords")
            .conflicts_with("effective"),
        )
        .arg(
            Arg::new("host")
                .value_name("HOST")
                .help("[user@]host[:port], one, as with -w"),
        )
        .arg_required_else_help(true)
}

/// What was asked for; `None`: the table of keywords.
pub(super) fn query(matches: &ArgMatches) -> Result<Option<ConfigQuery>, UsageError> {
    if matches.get_flag("keywords") {
        return Ok(None);
    }
    let Some(host) = matches
        .get_one::<String>("host")
        .filter(|_| matches.get_flag("effective"))
    else {
        return Err(UsageError::Flags(command().render_help().to_string()));
    };
    Ok(Some(ConfigQuery {
        host: host.clone(),
        connection: Connection {
            user: matches.get_one::<String>("login").cloned(),
            port: matches.get_one::<u16>("port").copied(),
            identities: matches
                .get_many("identity")
                .into_iter()
                .flatten()
                .cloned()
                .collect(),
            config: matches.get_one("config").cloned(),
            options: family(matches)
                .chain(jump(matches))
                .chain(texts(matches, "option"))
                .collect(),
            family: Family::Any,
            transport: Transport::Ssh,
            ..Connection::default()
        },
        origin: matches.get_flag("origin"),
    }))
}

/// `-4` and `-6` win over what is written, as in ssh.
fn family(matches: &ArgMatches) -> impl Iterator<Item = String> {
    let of = |id, value: &str| matches.get_flag(id).then(|| format!("AddressFamily={value}"));
    of("ipv4", "inet").or_else(|| of("ipv6", "inet6")).into_iter()
}
