//! What a host's configuration asks for and this program does not do. Decides which of it fails the host, because
//! leaving it out would connect somewhere else, as someone else or less safely, and which is only said; never what a
//! line means.

use mux_ssh::config::{
    AddKeysToAgent, HostConfig, Origin, Proxy, RequestTty, SessionType, Sourced, YesNoAsk,
};

/// # Errors
/// The first line that can't be left out and is not supported: one line of text.
pub(super) fn refuse(config: &HostConfig) -> Result<(), String> {
    match refused(config) {
        None => Ok(()),
        Some((origin, keyword, value)) => Err(format!(
            "{origin}: {keyword}{}{value}: not supported yet",
            if value.is_empty() { "" } else { " " }
        )),
    }
}

/// A line: where, which keyword, and its value for a message.
type Line<'a> = (&'a Origin, &'static str, String);

/// One entry for each keyword. Whoever makes one work takes its entry away.
fn refused(config: &HostConfig) -> Option<Line<'_>> {
    let login = &config.login;
    let lines = [
        proxy(config),
        written("PKCS11Provider", login.pkcs11_provider.as_ref()),
        Some(&login.hostbased_authentication)
            .filter(|flag| flag.value)
            .map(|flag| (&flag.origin, "HostbasedAuthentication", "yes".to_owned())),
        // With an agent it is the agent that asks the device.
        login
            .security_key_provider
            .as_ref()
            .filter(|_| config.identity_agent.value.is_none())
            .and_then(|provider| written("SecurityKeyProvider", Some(provider))),
    ];
    lines.into_iter().flatten().next()
}

fn proxy(config: &HostConfig) -> Option<Line<'_>> {
    let fdpass = &config.session.proxy_use_fdpass;
    match &config.proxy.as_ref()?.value {
        Proxy::Jump(_) => None,
        // A command that hands over a socket can't be used as one that is a pipe.
        Proxy::Command(_) => fdpass
            .value
            .then(|| (&fdpass.origin, "ProxyUseFdpass", "yes".to_owned())),
    }
}

fn written<'a>(keyword: &'static str, text: Option<&'a Sourced<String>>) -> Option<Line<'a>> {
    text.map(|text| (&text.origin, keyword, text.value.clone()))
}

/// The lines that are understood and change nothing, for `-v`. One entry for each keyword, as above.
pub(super) fn without_effect(config: &HostConfig) -> Vec<String> {
    let (login, keys, session) = (&config.login, &config.host_keys, &config.session);
    let named = |keyword, origin| Some((keyword, origin));
    let on = |keyword, flag: &'_ Sourced<bool>| flag.value.then_some((keyword, flag.origin.clone()));
    let lines = [
        (login.add_keys_to_agent.value == AddKeysToAgent::Ask)
            .then(|| ("AddKeysToAgent", login.add_keys_to_agent.origin.clone())),
        (login.security_key_provider.as_ref())
            .and_then(|provider| named("SecurityKeyProvider", provider.origin.clone())),
        // The name's key is verified all the same; an address that is filed under another key ends nothing.
        on("CheckHostIP", &keys.check_host_ip),
        // What the DNS vouches for is asked about like any other: stricter than wanted, never laxer.
        (keys.verify_host_key_dns.value != YesNoAsk::No)
            .then(|| ("VerifyHostKeyDNS", keys.verify_host_key_dns.origin.clone())),
        on("Compression", &session.compression),
        (session.remote_command.as_ref()).and_then(|command| named("RemoteCommand", command.origin.clone())),
        (!matches!(session.request_tty.value, RequestTty::Auto | RequestTty::No))
            .then(|| ("RequestTTY", session.request_tty.origin.clone())),
        (session.session_type.value != SessionType::Default)
            .then(|| ("SessionType", session.session_type.origin.clone())),
        on("PermitLocalCommand", &session.permit_local_command),
        (session.version_addendum.as_ref()).and_then(|text| named("VersionAddendum", text.origin.clone())),
    ];
    let written = lines
        .into_iter()
        .flatten()
        .filter(|(_, origin)| *origin != Origin::Default);
    written
        .map(|(keyword, origin)| format!("{origin}: {keyword} has no effect"))
        .collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use mux_ssh::config::{Facts, Local, Need, Resolver, Step};

    use super::*;

    /// What the user's file says about `host`.
    fn config(text: &str) -> HostConfig {
        let local = Local {
            home: "/home/me".to_owned(),
            user: "me".to_owned(),
            ..Local::default()
        };
        let mut resolver = Resolver::new(local);
        let facts = Facts {
            host: "host".to_owned(),
            ..Facts::default()
        };
        loop {
            match resolver.resolve(&facts).unwrap() {
                Step::Done(config) => return config,
                Step::Need(Need::File(path)) if path == "/home/me/.ssh/config" => {
                    resolver.supply_file(path, Ok(text.as_bytes()));
                }
                Step::Need(need) => resolver.decline(need),
            }
        }
    }

    #[test]
    fn what_decides_where_as_whom_or_how_safely_fails_the_host() {
        for line in [
            "PKCS11Provider /lib/p11.so",
            "HostbasedAuthentication yes",
            "SecurityKeyProvider /lib/sk.so",
        ] {
            assert_eq!(
                refuse(&config(&format!("# first\n{line}\n"))),
                Err(format!("/home/me/.ssh/config line 2: {line}: not supported yet"))
            );
        }
    }

    #[test]
    fn values_that_change_nothing_fail_nobody() {
        for line in [
            "ProxyJump none",
            "ProxyCommand NONE",
            "ProxyUseFdpass yes",
            "AddressFamily inet6",
            "BindAddress 10.0.0.1",
            "BindInterface eth0",
            "CertificateFile none",
            "KnownHostsCommand /bin/keys %H",
            "RevokedHostKeys none",
            "CheckHostIP yes",
            "VerifyHostKeyDNS yes",
            "StrictHostKeyChecking ask",
            "StrictHostKeyChecking off",
            "GSSAPIAuthentication yes",
        ] {
            assert_eq!(refuse(&config(&format!("{line}\n"))), Ok(()), "{line}");
        }
    }

    #[test]
    fn lines_without_effect_are_told_with_their_place() {
        assert_eq!(without_effect(&config("Port 22\n")), [""; 0]);
        let lines = "SessionType none\nCompression no\nPermitLocalCommand yes\n";
        assert_eq!(
            without_effect(&config(lines)),
            [
                "/home/me/.ssh/config line 1: SessionType has no effect",
                "/home/me/.ssh/config line 3: PermitLocalCommand has no effect",
            ]
        );
    }
}
