//! Requests that go through the system's `ssh`: because that was asked for, or because a host's configuration asks for
//! something that only it can do. Decides what it is told; reads nothing but `PATH`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use mux_ssh::config::{ConfigError, ForwardAgent, HostConfig, HostKeyPolicy, Origin, Problem, Proxy};

use super::forwarding;
use super::openssh::{self, quoted};
use super::settings::{self, BUSY, Work};
use crate::hub::{OpenSsh, Request, RequestId, Transport};
use crate::plan::{Action, Family, Plan};
use crate::targets::Target;

/// Whether ssh understands what we don't.
pub(super) fn can_take(error: &ConfigError) -> bool {
    matches!(
        error.problem,
        Problem::NotSupported { .. } | Problem::NoAlgorithmLeft { .. } | Problem::OtherHome { .. }
    )
}

/// What is said of lines that only ssh understands, to whom it is not used for.
const NOT_SUPPORTED: &str = ": not supported yet";

/// Builds requests for it.
#[derive(Debug)]
pub(super) struct Fallback<'a> {
    plan: &'a Plan,
    /// Looked for once, when the first host needs it.
    program: Option<Option<PathBuf>>,
    /// Whether there is a program that knows of tickets.
    klist: Option<bool>,
    /// What was typed and is the same for all.
    typed: Vec<OsString>,
    /// How many hosts there are.
    hosts: usize,
}

impl<'a> Fallback<'a> {
    pub(super) fn new(plan: &'a Plan, hosts: usize) -> Self {
        Self {
            plan,
            program: None,
            klist: None,
            typed: typed(plan),
            hosts,
        }
    }

    /// A request for this target, which ssh is used for because of `reason`; `config` is what we know about it.
    ///
    /// # Errors
    /// There is no such program; one line.
    pub(super) fn request(
        &mut self,
        id: RequestId,
        target: &Target,
        work: Work,
        config: Option<&HostConfig>,
        reason: String,
    ) -> Result<Request, String> {
        // It logs in; host keys are to be seen before anybody does.
        if matches!(self.plan.action, Action::LearnHosts(_)) {
            let reason = reason.trim_end_matches(NOT_SUPPORTED);
            return Err(format!(
                "{reason}: only ssh can do that, and its host keys are not seen here; connect once with ssh by hand"
            ));
        }
        let ssh = self.ssh(target, &work, config, reason)?;
        let connection = &self.plan.connection;
        let mut request = settings::local(id, self.plan, &target.host, work);
        request.transport = Transport::OpenSsh(Arc::new(ssh));
        request.retries = self.plan.retries;
        request.connect_timeout = connection
            .connect_timeout
            .or(config.and_then(|config| config.connect_timeout.value))
            .unwrap_or(request.connect_timeout);
        request.login_timeout = connection.login_timeout.unwrap_or(request.login_timeout);
        request.address.clone_from(&target.host);
        if let Some(config) = config {
            request.address.clone_from(&config.hostname.value);
            request.user.clone_from(&config.user.value);
            request.port = config.port.value;
        }
        Ok(request)
    }

    /// How ssh is called for this target by a Kerberos ticket, if the configuration allows that and the programs for it
    /// are there. It tries nothing else: whatever else there is has been refused already.
    pub(super) fn by_ticket(
        &mut self,
        target: &Target,
        work: &Work,
        config: &HostConfig,
    ) -> Option<Arc<OpenSsh>> {
        let gssapi = &config.login.gssapi_authentication;
        let mut has_program = || *self.klist.get_or_insert_with(|| openssh::find("klist").is_some());
        if !gssapi.value || !has_program() {
            return None;
        }
        let reason = format!("{}: GSSAPIAuthentication, after all other methods", gssapi.origin);
        let mut ssh = self.ssh(target, work, Some(config), reason).ok()?;
        let only = "PreferredAuthentications=gssapi-keyex,gssapi-with-mic";
        ssh.options.splice(0..0, ["-o".into(), only.into()]);
        // There is nothing to ask for.
        ssh.asks_nobody = false;
        Some(Arc::new(ssh))
    }

    fn ssh(
        &mut self,
        target: &Target,
        work: &Work,
        config: Option<&HostConfig>,
        reason: String,
    ) -> Result<OpenSsh, String> {
        let Some(program) = self.program.get_or_insert_with(|| openssh::find("ssh")) else {
            let reason = reason.trim_end_matches(NOT_SUPPORTED);
            return Err(format!(
                "{reason}: there is no ssh in PATH, which would be used for it"
            ));
        };
        let program = program.clone();
        let mut options = self.typed.clone();
        let connection = &self.plan.connection;
        if let Some(user) = target.user.as_ref().or(connection.user.as_ref()) {
            options.extend(["-l".into(), user.into()]);
        }
        if let Some(port) = target.port.or(connection.port) {
            options.extend(["-p".into(), port.to_string().into()]);
        }
        options.extend(ours(config));
        options.extend(environment(&work.env, config));
        options.push(self.agent(config).into());
        Ok(OpenSsh {
            program,
            options,
            door: door(config),
            reason: reason.trim_end_matches(NOT_SUPPORTED).to_owned(),
            asks_nobody: openssh::asks_nobody(),
        })
    }

    /// What is to be said about what a target's configuration asks for and does not get, as over our own transport.
    pub(super) fn warning(&self, config: &HostConfig) -> Option<String> {
        forwarding::decide(config, &self.plan.connection, self.hosts).warning
    }

    /// Whether ssh forwards the agent: it looks at the host's key by itself before it does.
    fn agent(&self, config: Option<&HostConfig>) -> &'static str {
        let connection = &self.plan.connection;
        let is_allowed = self.hosts == 1 || connection.forward_to_all;
        // One that we can't read says for itself.
        let is_wanted = config.is_none_or(|config| config.login.forward_agent.value != ForwardAgent::No);
        match is_allowed && (connection.forward_agent || is_wanted) {
            true if connection.forward_agent => "-A",
            // The configuration says which one.
            true => "-T",
            false => "-a",
        }
    }
}

/// The options of the command line, in ssh's own words.
fn typed(plan: &Plan) -> Vec<OsString> {
    let connection = &plan.connection;
    let mut options: Vec<OsString> = Vec::new();
    if let Some(file) = &connection.config {
        options.extend(["-F".into(), file.into()]);
    }
    for option in &connection.options {
        options.extend(["-o".into(), option.into()]);
    }
    for file in &connection.identities {
        options.extend(["-i".into(), file.into()]);
    }
    match connection.family {
        Family::Any => {}
        Family::V4 => options.push("-4".into()),
        Family::V6 => options.push("-6".into()),
    }
    options
}

/// Where ours are other defaults than ssh's.
fn ours(config: Option<&HostConfig>) -> Vec<OsString> {
    let is_default = |origin: Option<&Origin>| origin.is_none_or(|origin| *origin == Origin::Default);
    let mut options: Vec<OsString> = Vec::new();
    let interval = config.map(|config| &config.server_alive_interval.origin);
    let count = config.map(|config| &config.server_alive_count_max.origin);
    if is_default(interval) && is_default(count) {
        let (every, times) = BUSY;
        options.extend([
            "-o".into(),
            format!("ServerAliveInterval={}", every.as_secs()).into(),
        ]);
        options.extend(["-o".into(), format!("ServerAliveCountMax={times}").into()]);
    }
    // Nobody can be asked, and then this has the better words.
    if config.is_some_and(|config| config.host_key_policy.value == HostKeyPolicy::Ask) {
        options.extend(["-o".into(), "StrictHostKeyChecking=yes".into()]);
    }
    options
}

/// All in one option: of several, only the first would count, and none of the configuration's own.
fn environment(variables: &[(Bytes, Bytes)], config: Option<&HostConfig>) -> Vec<OsString> {
    if variables.is_empty() {
        return Vec::new();
    }
    let mut option = OsString::from("SetEnv=");
    let own = config.map(|config| config.session.set_env.value.as_slice());
    let own = own.unwrap_or_default().iter();
    let own = own.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let own = own.filter(|(name, _)| variables.iter().all(|(known, _)| known != name));
    let given = variables.iter().map(|(name, value)| (&name[..], &value[..]));
    for (name, value) in given.chain(own) {
        let pair = [name, b"=", value].concat();
        option.push(quoted(&pair));
        option.push(" ");
    }
    vec!["-o".into(), option]
}

/// The server that is connected to first. Of hosts whose configuration we can't read nobody knows: they share one.
fn door(config: Option<&HostConfig>) -> Arc<str> {
    let Some(config) = config else {
        return Arc::from("");
    };
    match config.proxy.as_ref().map(|proxy| &proxy.value) {
        Some(Proxy::Jump(hops)) => hops.first().map_or_else(
            || Arc::from(config.hostname.value.as_str()),
            |hop| Arc::from(hop.host.as_str()),
        ),
        Some(Proxy::Command(command)) => Arc::from(command.as_str()),
        None => Arc::from(format!("{}:{}", config.hostname.value, config.port.value)),
    }
}
