//! Which ways to log in a host's configuration allows, in which order, and why others are left out. Values only.

use mux_ssh::client::{AuthMethod, Methods};
use mux_ssh::config::{ConfigError, HostConfig, Origin, Sourced};

/// The ways to log in, and those that are left out, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ways {
    pub(super) methods: Methods,
    pub(super) left_out: Vec<(AuthMethod, String)>,
}

impl Ways {
    /// Those of a host that is the only one of its run, or not: a wrong password of many hosts is not asked for host by
    /// host.
    ///
    /// # Errors
    /// A list of algorithms that leaves none.
    pub(super) fn new(config: &HostConfig, alone: bool) -> Result<Self, ConfigError> {
        let algorithms = config.signature_algorithms()?;
        let login = &config.login;
        let prompts = &login.number_of_password_prompts;
        let mut order = Vec::new();
        let mut left_out = Vec::new();
        for method in preferred(config) {
            match against(config, method) {
                None => order.push(method),
                Some(reason) => left_out.push((method, reason)),
            }
        }
        if let Some(list) = &config.preferred_authentications {
            for method in AuthMethod::ALL {
                if !preferred(config).contains(&method) {
                    let reason = format!("not among PreferredAuthentications ({})", list.origin);
                    left_out.push((method, reason));
                }
            }
        }
        let devices = login.kbd_interactive_devices.as_ref();
        Ok(Self {
            methods: Methods {
                order,
                algorithms,
                passwords: if alone {
                    prompts.value
                } else {
                    prompts.value.min(1)
                },
                devices: devices.map(|devices| devices.value.clone()).unwrap_or_default(),
            },
            left_out,
        })
    }
}

/// What is preferred, as far as it is known here; ssh's order by default.
fn preferred(config: &HostConfig) -> Vec<AuthMethod> {
    let Some(list) = &config.preferred_authentications else {
        return AuthMethod::ALL.to_vec();
    };
    let names = list.value.split(',').map(|name| name.trim().to_ascii_lowercase());
    let mut order: Vec<AuthMethod> = Vec::new();
    for method in names.filter_map(|name| AuthMethod::from_name(&name)) {
        if !order.contains(&method) {
            order.push(method);
        }
    }
    order
}

/// Why a method is off, if it is.
fn against(config: &HostConfig, method: AuthMethod) -> Option<String> {
    let login = &config.login;
    let off = |keyword: &str, flag: &Sourced<bool>| {
        (!flag.value).then(|| format!("{keyword} is off ({})", flag.origin))
    };
    let flag = match method {
        AuthMethod::PublicKey => return off("PubkeyAuthentication", &config.pubkey_authentication),
        AuthMethod::KeyboardInteractive => off(
            "KbdInteractiveAuthentication",
            &login.kbd_interactive_authentication,
        ),
        AuthMethod::Password => off("PasswordAuthentication", &login.password_authentication),
    };
    let prompts = &login.number_of_password_prompts;
    let none = (prompts.value == 0 && prompts.origin != Origin::Default)
        .then(|| format!("NumberOfPasswordPrompts is 0 ({})", prompts.origin));
    let batch = config.batch_mode.then(|| "BatchMode forbids to ask".to_owned());
    flag.or(batch).or(none)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

    use mux_ssh::config::{ConfigFiles, Facts, Local, Resolver, Step};

    use super::*;

    fn ways(options: &[&str], alone: bool) -> Ways {
        let resolver = Resolver::new(Local {
            user: "me".to_owned(),
            files: ConfigFiles::None,
            options: options.iter().map(|option| (*option).to_owned()).collect(),
            ..Local::default()
        });
        let facts = Facts {
            host: "host".to_owned(),
            ..Facts::default()
        };
        match resolver.resolve(&facts) {
            Ok(Step::Done(config)) => Ways::new(&config, alone).unwrap(),
            other => panic!("{options:?}: {other:?}"),
        }
    }

    #[track_caller]
    fn check(options: &[&str], order: &[AuthMethod], reasons: &[&str]) {
        let ways = ways(options, false);
        assert_eq!(ways.methods.order, order);
        let left_out = ways.left_out.iter();
        let told: Vec<String> = left_out
            .map(|(method, reason)| format!("{}: {reason}", method.name()))
            .collect();
        assert_eq!(told, reasons);
    }

    #[test]
    fn the_order_is_that_of_ssh_or_of_the_configuration() {
        use AuthMethod::{KeyboardInteractive, Password, PublicKey};
        check(&[], &AuthMethod::ALL, &[]);
        check(
            &["PreferredAuthentications=Password,publickey,hostbased,password"],
            &[Password, PublicKey],
            &["keyboard-interactive: not among PreferredAuthentications (command line)"],
        );
        check(
            &["PasswordAuthentication=no", "KbdInteractiveAuthentication=no"],
            &[PublicKey],
            &[
                "keyboard-interactive: KbdInteractiveAuthentication is off (command line)",
                "password: PasswordAuthentication is off (command line)",
            ],
        );
        check(
            &["PubkeyAuthentication=no"],
            &[KeyboardInteractive, Password],
            &["publickey: PubkeyAuthentication is off (command line)"],
        );
    }

    #[test]
    fn nobody_is_asked_where_that_is_forbidden() {
        for (option, reason) in [
            ("BatchMode=yes", "BatchMode forbids to ask"),
            (
                "NumberOfPasswordPrompts=0",
                "NumberOfPasswordPrompts is 0 (command line)",
            ),
        ] {
            let reasons = ["keyboard-interactive", "password"].map(|name| format!("{name}: {reason}"));
            check(
                &[option],
                &[AuthMethod::PublicKey],
                &reasons.each_ref().map(String::as_str),
            );
        }
    }

    #[test]
    fn one_host_may_be_wrong_as_often_as_with_ssh_and_many_once() {
        for (options, alone, many) in [(&[][..], 3, 1), (&["NumberOfPasswordPrompts=5"], 5, 1)] {
            assert_eq!(ways(options, true).methods.passwords, alone);
            assert_eq!(ways(options, false).methods.passwords, many);
        }
    }
}
