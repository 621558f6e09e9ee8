//! What is known about a target besides what the hub has to know: with which keys, from where, and against which host
//! keys. Decides values only; reads nothing.

use mux_ssh::agent::Keep;
use mux_ssh::algorithms::{PublicKeyAlgorithm, SignatureAlgorithm};
use mux_ssh::config::{AddKeysToAgent, HostConfig, HostKeyPolicy, Sourced, YesNoAsk};

/// What is known about a target besides what the hub has to know: where its keys and host keys are kept. Shared by
/// all targets for which it is the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Profile {
    pub(crate) identity_files: Vec<Sourced<String>>,
    /// Certificates that the configuration names; if it names none, those beside the keys count.
    pub(crate) certificate_files: Vec<Sourced<String>>,
    pub(crate) identities_only: bool,
    pub(crate) agent: Option<String>,
    /// Whether the agent gets keys that are opened here.
    pub(crate) give_to_agent: Option<Keep>,
    /// Nobody may be asked anything.
    pub(crate) batch: bool,
    /// Why no key may be used at all.
    pub(crate) keys_off: Option<String>,
    /// With which algorithms to log in.
    pub(crate) accepted: Vec<PublicKeyAlgorithm>,
    /// The smallest RSA key, in bits, of the server and of the user.
    pub(crate) rsa_bits: usize,
    pub(crate) user_known_hosts: Vec<String>,
    pub(crate) global_known_hosts: Vec<String>,
    pub(crate) policy: HostKeyPolicy,
    /// Whether further keys of a host are kept.
    pub(crate) update: YesNoAsk,
    /// The key of a server on this machine is taken as it is.
    pub(crate) trusts_localhost: bool,
    /// The program that knows further keys, with its arguments.
    pub(crate) key_command: Option<Vec<String>>,
    pub(crate) hash_known_hosts: bool,
    /// Files with keys that no host may show.
    pub(crate) revoked_host_keys: Vec<String>,
    /// What authorities may sign with.
    pub(crate) authority_algorithms: Vec<SignatureAlgorithm>,
}

impl Profile {
    /// # Errors
    /// A list of algorithms that leaves none; one line.
    pub(super) fn new(config: HostConfig) -> Result<Self, String> {
        let accepted = config.signature_algorithms().map_err(|error| error.to_string())?;
        let authority_algorithms = config.authority_algorithms().map_err(|error| error.to_string())?;
        Ok(Self {
            keys_off: keys_off(&config),
            identity_files: config.identity_files,
            certificate_files: config.login.certificate_files,
            identities_only: config.identities_only,
            agent: config.identity_agent.value,
            give_to_agent: give_to_agent(config.login.add_keys_to_agent.value),
            batch: config.batch_mode,
            accepted,
            rsa_bits: usize::try_from(config.required_rsa_size.value).unwrap_or(usize::MAX),
            user_known_hosts: config.user_known_hosts_files.value,
            global_known_hosts: config.global_known_hosts_files.value,
            policy: config.host_key_policy.value,
            update: config.host_keys.update_host_keys.value,
            trusts_localhost: config.host_keys.no_host_authentication_for_localhost.value
                && config.host_key_alias.is_none(),
            key_command: config.host_keys.known_hosts_command.map(|command| command.value),
            hash_known_hosts: config.hash_known_hosts,
            revoked_host_keys: config.host_keys.revoked_host_keys.value,
            authority_algorithms,
        })
    }
}

fn give_to_agent(choice: AddKeysToAgent) -> Option<Keep> {
    match choice {
        AddKeysToAgent::No | AddKeysToAgent::Ask => None,
        AddKeysToAgent::Add { confirm, lifetime } => Some(Keep {
            confirm,
            seconds: lifetime.map(|time| u32::try_from(time.as_secs()).unwrap_or(u32::MAX)),
        }),
    }
}

fn keys_off(config: &HostConfig) -> Option<String> {
    if !config.pubkey_authentication.value {
        return Some(format!(
            "PubkeyAuthentication is off ({})",
            config.pubkey_authentication.origin
        ));
    }
    let methods = config.preferred_authentications.as_ref()?;
    let named = methods
        .value
        .split(',')
        .any(|method| method.trim().eq_ignore_ascii_case("publickey"));
    (!named).then(|| {
        format!(
            "PreferredAuthentications leaves out publickey ({})",
            methods.origin
        )
    })
}
