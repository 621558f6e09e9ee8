//! From a host's configuration to a request: fills in the defaults of this program where the configuration is
//! silent. Decides values only; reads nothing.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mux_ssh::client::Keepalive;
use mux_ssh::config::{AddressFamily, HostConfig, HostKeyPolicy, Note, Origin, YesNoAsk};
use mux_ssh::known_hosts::HostId;
use mux_ssh::transport::RekeyLimits;

use super::methods::Ways;
use super::profile::Profile;
use super::{forwarding, unsupported};
use crate::hub::{Level, OpenSsh, Request, RequestId, Route, Source, SshOptions, Transport};
use crate::plan::{Action, Connection, Family, Plan};

/// As ssh's default, but for everything up to the first message of authentication.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// As sshd's `LoginGraceTime` was before it was 120 s: no login by key takes longer.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(60);

/// While a command runs a probe every 30 s, ten of them: five minutes of a broken network end no long job.
pub(super) const BUSY: (Duration, u32) = (Duration::from_secs(30), 10);

/// While none runs, a dead connection is of no use to anybody.
const IDLE: (Duration, u32) = (Duration::from_secs(15), 3);

/// A key exchange is some kilobytes itself: with less than this between two of them nothing else would get through.
const MIN_REKEY_BYTES: u64 = 16 * 1024;

/// As OpenSSH: 2^32 blocks under one key are as many as a cipher with blocks of 16 bytes bears (RFC 4344 §3.2).
const MAX_REKEY_BYTES: u64 = 16 << 32;

/// A target, ready to go.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) request: Request,
    pub(crate) host_key_name: HostId,
    pub(crate) profile: Arc<Profile>,
    /// The way there, in words by which it is told from others; empty: directly.
    pub(crate) way: String,
    /// The system's `ssh`, where that may have a way in that we don't.
    pub(crate) other_way: Option<Arc<OpenSsh>>,
    /// What is said with `-v`.
    pub(crate) notes: Vec<String>,
    /// What is said without it.
    pub(crate) warnings: Vec<String>,
}

impl Prepared {
    /// What is to be said about it before it is connected to.
    pub(crate) fn said(&self) -> Vec<(Level, String)> {
        let warnings = self.warnings.iter().map(|text| (Level::Warning, text));
        let notes = self.notes.iter().map(|text| (Level::Verbose, text));
        warnings
            .chain(notes)
            .map(|(level, text)| (level, text.clone()))
            .collect()
    }

    /// Whether a connection to this host is as good as one to the other: everything but names is the same.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let options = |prepared: &Self| match &prepared.request.transport {
            Transport::Ssh(options) => Some(Arc::clone(options)),
            Transport::Local | Transport::OpenSsh(_) => None,
        };
        let times = |prepared: &Self| (prepared.request.connect_timeout, prepared.request.login_timeout);
        self.host_key_name == other.host_key_name
            && self.profile == other.profile
            && options(self) == options(other)
            && times(self) == times(other)
    }
}

/// What a host is to do.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    command: Bytes,
    pub(super) env: Vec<(Bytes, Bytes)>,
}

impl Work {
    /// Nothing: a jump host runs no command.
    pub(crate) fn none() -> Self {
        Self {
            command: Bytes::new(),
            env: Vec::new(),
        }
    }

    /// The command, and the variables that were asked for, for the host of this name, one of `hosts`.
    pub(crate) fn new(command: &Bytes, plan: &Plan, (id, host): (RequestId, &str), hosts: usize) -> Self {
        let text = |text: String| Bytes::from(text.into_bytes());
        let info = [
            ("MUX_HOST", host.to_owned()),
            ("MUX_NODENUM", id.0.to_string()),
            ("MUX_NUMNODES", hosts.to_string()),
        ];
        let variables = &plan.environment;
        // What was given by name wins.
        let info = info
            .into_iter()
            .filter(|(name, _)| variables.info && variables.given.iter().all(|given| given.name != *name))
            .map(|(name, value)| (Bytes::from_static(name.as_bytes()), text(value)));
        let given = variables.given.iter();
        let given = given.map(|given| (text(given.name.clone()), Bytes::copy_from_slice(&given.value)));
        Self {
            command: command.clone(),
            env: info.chain(given).collect(),
        }
    }
}

/// What this machine adds to the configuration of a host.
#[derive(Debug, Default)]
pub(crate) struct Here {
    /// Those that the configuration sends along.
    pub(crate) variables: Vec<(String, String)>,
    /// From where to connect.
    pub(crate) source: Option<Source>,
}

/// Builds requests; keeps what the last one had in common with the next.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// How many hosts there are.
    hosts: usize,
    profile: Option<Arc<Profile>>,
    options: Option<Arc<SshOptions>>,
}

impl Settings {
    pub(crate) fn new(hosts: usize) -> Self {
        Self {
            hosts,
            ..Self::default()
        }
    }

    /// # Errors
    /// A line that is not supported, or a list of algorithms that leaves none; one line.
    pub(crate) fn prepare(
        &mut self,
        id: RequestId,
        plan: &Plan,
        work: Work,
        config: HostConfig,
        here: Here,
    ) -> Result<Prepared, String> {
        let connection = &plan.connection;
        let forwarding = forwarding::decide(&config, connection, self.hosts);
        let mut options = ssh_options(&config, connection, self.hosts, forwarding.socket)?;
        options.source = here.source;
        let options = shared(&mut self.options, options);
        let host_key_name = match &config.host_key_alias {
            Some(alias) => HostId::alias(&alias.value),
            None => HostId::new(&config.hostname.value, config.port.value),
        };
        let (passed_over, without_effect): (Vec<&Note>, Vec<&Note>) =
            config.notes.iter().partition(|note| note.problem.is_some());
        let mut notes: Vec<String> = without_effect.iter().map(ToString::to_string).collect();
        notes.extend(unsupported::without_effect(&config));
        let unknown = config.unknown_algorithms();
        let warnings = unknown.iter().map(ToString::to_string);
        let passed_over = passed_over.iter().map(ToString::to_string);
        let warnings = passed_over.chain(warnings).chain(forwarding.warning).collect();
        let request = Request {
            id,
            host: config.host.clone(),
            address: config.hostname.value.clone(),
            port: config.port.value,
            user: config.user.value.clone(),
            transport: Transport::Ssh(options),
            route: Route::Direct,
            command: work.command,
            env_by_habit: by_habit(here.variables, &work.env),
            env: work.env,
            stdin: plan.stdin.is_some(),
            retries: plan.retries,
            missing_status: plan.missing_status,
            connect_timeout: connection
                .connect_timeout
                .or(config.connect_timeout.value)
                .unwrap_or(CONNECT_TIMEOUT),
            login_timeout: connection.login_timeout.unwrap_or(LOGIN_TIMEOUT),
            command_timeout: plan.timeout,
            like: None,
        };
        let mut profile = Profile::new(config)?;
        profile.policy = policy(plan, profile.policy);
        let profile = shared(&mut self.profile, profile);
        Ok(Prepared {
            request,
            host_key_name,
            profile,
            way: String::new(),
            other_way: None,
            notes,
            warnings,
        })
    }
}

/// Whatever is new is written down where host keys are learned, unless somebody has to look at it first.
fn policy(plan: &Plan, configured: HostKeyPolicy) -> HostKeyPolicy {
    match &plan.action {
        Action::Run(_) | Action::ListHosts => configured,
        Action::LearnHosts(learn) if learn.yes || learn.from.is_some() => HostKeyPolicy::AcceptNew,
        Action::LearnHosts(_) => HostKeyPolicy::Ask,
    }
}

/// The last value again if the new one is equal.
fn shared<T: PartialEq>(last: &mut Option<Arc<T>>, new: T) -> Arc<T> {
    match last {
        Some(last) if **last == new => Arc::clone(last),
        Some(_) | None => Arc::clone(last.insert(Arc::new(new))),
    }
}

/// A request that runs here. There is nothing in its way that a second try could help with.
pub(crate) fn local(id: RequestId, plan: &Plan, host: &str, work: Work) -> Request {
    Request {
        id,
        host: host.to_owned(),
        address: String::new(),
        port: 0,
        user: String::new(),
        transport: Transport::Local,
        route: Route::Direct,
        command: work.command,
        env: work.env,
        env_by_habit: Vec::new(),
        stdin: plan.stdin.is_some(),
        retries: 0,
        missing_status: plan.missing_status,
        connect_timeout: CONNECT_TIMEOUT,
        login_timeout: LOGIN_TIMEOUT,
        command_timeout: plan.timeout,
        like: None,
    }
}

fn ssh_options(
    config: &HostConfig,
    connection: &Connection,
    hosts: usize,
    forward_agent: Option<Arc<str>>,
) -> Result<SshOptions, String> {
    let Ways { methods, left_out } = Ways::new(config, hosts <= 1).map_err(|error| error.to_string())?;
    Ok(SshOptions {
        algorithms: config.algorithms().map_err(|error| error.to_string())?,
        keepalive: keepalive(config),
        methods,
        left_out,
        family: family(config, connection),
        source: None,
        forward_agent,
        rekey: rekey(config),
        further_host_keys: config.host_keys.update_host_keys.value != YesNoAsk::No
            && !config.user_known_hosts_files.value.is_empty(),
    })
}

/// The variables that the configuration sends along, but for those that were asked for by name.
fn by_habit(variables: Vec<(String, String)>, asked: &[(Bytes, Bytes)]) -> Vec<(Bytes, Bytes)> {
    let variables = variables
        .into_iter()
        .map(|(name, value)| (Bytes::from(name), Bytes::from(value)));
    variables
        .filter(|(name, _)| asked.iter().all(|(known, _)| known != name))
        .collect()
}

/// What the configuration says wins over our habits, where a connection stays usable with it.
fn rekey(config: &HostConfig) -> RekeyLimits {
    let limit = config.session.rekey_limit.value;
    let default = RekeyLimits::default();
    RekeyLimits {
        bytes: limit.bytes.map_or(default.bytes, |bytes| {
            bytes.clamp(MIN_REKEY_BYTES, MAX_REKEY_BYTES)
        }),
        time: limit.interval.unwrap_or(default.time),
        ..default
    }
}

/// `-4` and `-6` win over the configuration.
fn family(config: &HostConfig, connection: &Connection) -> Family {
    match (connection.family, config.address_family.value) {
        (Family::V4, _) | (Family::Any, AddressFamily::Inet) => Family::V4,
        (Family::V6, _) | (Family::Any, AddressFamily::Inet6) => Family::V6,
        (Family::Any, AddressFamily::Any) => Family::Any,
    }
}

/// What the configuration says about a silent server wins over both of our habits.
fn keepalive(config: &HostConfig) -> Keepalive {
    let interval = &config.server_alive_interval;
    let count = &config.server_alive_count_max;
    let with = |(every, times): (Duration, u32)| {
        let every = if interval.origin == Origin::Default {
            every
        } else {
            interval.value
        };
        let times = if count.origin == Origin::Default && interval.origin == Origin::Default {
            times
        } else {
            count.value
        };
        (every, times)
    };
    Keepalive {
        idle: with(IDLE),
        busy: with(BUSY),
    }
}

#[cfg(test)]
#[expect(clippy::panic, reason = "a test fails by panicking")]
mod tests {
    use mux_ssh::config::{ConfigFiles, Facts, Local, Resolver, Step};

    use super::*;

    /// What one option makes of a host.
    fn config(option: &str) -> HostConfig {
        let resolver = Resolver::new(Local {
            user: "me".to_owned(),
            files: ConfigFiles::None,
            options: vec![option.to_owned()],
            ..Local::default()
        });
        let facts = Facts {
            host: "host".to_owned(),
            ..Facts::default()
        };
        match resolver.resolve(&facts) {
            Ok(Step::Done(config)) => config,
            other => panic!("{option}: {other:?}"),
        }
    }

    #[test]
    fn keys_are_changed_as_the_configuration_says_within_what_works() {
        let default = RekeyLimits::default();
        for (option, bytes, time) in [
            ("Port=22", default.bytes, default.time),
            ("RekeyLimit=1M", 1 << 20, default.time),
            ("RekeyLimit=default 10", default.bytes, Duration::from_secs(10)),
            ("RekeyLimit=16", MIN_REKEY_BYTES, default.time),
            ("RekeyLimit=1E 1w", MAX_REKEY_BYTES, Duration::from_secs(604_800)),
        ] {
            let limits = rekey(&config(option));
            assert_eq!((limits.bytes, limits.time), (bytes, time), "{option}");
        }
    }

    #[test]
    fn flags_for_a_family_win_over_the_configuration() {
        let with = |family, option| {
            let connection = Connection {
                family,
                ..Connection::default()
            };
            super::family(&config(option), &connection)
        };
        assert_eq!(with(Family::Any, "AddressFamily=inet6"), Family::V6);
        assert_eq!(with(Family::V4, "AddressFamily=inet6"), Family::V4);
        assert_eq!(with(Family::Any, "AddressFamily=any"), Family::Any);
    }
}
