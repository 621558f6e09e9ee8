//! Keywords whose values are more than a word: what each line comes to in the host's configuration.

use std::time::Duration;

use super::super::*;
use super::{World, check_error};

const FILE: &str = "/home/me/.ssh/config";

/// What `pick` sees of a user's file that says `lines`.
fn check<T: PartialEq + std::fmt::Debug>(lines: &str, pick: impl Fn(HostConfig) -> T, expected: T) {
    match World::user(lines).resolve("web1") {
        Ok(config) => assert_eq!(pick(config), expected, "{lines}"),
        Err(error) => panic!("{lines}: {error}"),
    }
}

fn check_bad(line: &str, expected: &str) {
    check_error(&World::user(line), "web1", &format!("{FILE} line 1: {expected}"));
}

fn jump(hops: &[(Option<&str>, &str, Option<u16>)]) -> Option<Proxy> {
    let hops = hops.iter().map(|&(user, host, port)| JumpHost {
        user: user.map(str::to_owned),
        host: host.to_owned(),
        port,
    });
    Some(Proxy::Jump(hops.collect()))
}

fn proxy(config: HostConfig) -> Option<Proxy> {
    config.proxy.map(|proxy| proxy.value)
}

fn command(text: &str) -> Option<Proxy> {
    Some(Proxy::Command(text.to_owned()))
}

#[test]
fn stops_and_commands_are_read_with_their_tokens() {
    check(
        "ProxyJump joe@a:2222, ssh://b\n".replace(", ", ",").as_str(),
        proxy,
        jump(&[(Some("joe"), "a", Some(2222)), (None, "b", None)]),
    );
    check(
        "User root\nProxyJump %r@bastion # why\n",
        proxy,
        jump(&[(Some("root"), "bastion", None)]),
    );
    check(
        "Port 23\nHostName real\nProxyCommand = nc -X \"%h\" %p %n %% $X ~\n",
        proxy,
        command("nc -X \"real\" 23 web1 % $X ~"),
    );
    check_bad("ProxyCommand nc %d\n", "unknown token %d in ProxyCommand");
    check_bad(
        "ProxyJump a,,b\n",
        "bad value \"a,,b\" for ProxyJump: expected [user@]host[:port], separated by commas, or none",
    );
}

#[test]
fn the_first_of_proxy_jump_and_proxy_command_disables_the_other() {
    check("ProxyCommand x\nProxyJump y\n", proxy, command("x"));
    check("ProxyJump y\nProxyCommand x\n", proxy, jump(&[(None, "y", None)]));
    check("ProxyCommand NONE\nProxyJump y\n", proxy, None);
    check("ProxyJump None\nProxyJump y\n", proxy, None);
    // As OpenSSH does it, whatever its manual says.
    check("ProxyJump none\nProxyCommand x\n", proxy, command("x"));
}

#[test]
fn host_keys_may_be_checked_in_four_ways() {
    let policy = |config: HostConfig| config.host_key_policy.value;
    check("StrictHostKeyChecking yes\n", policy, HostKeyPolicy::Strict);
    check("StrictHostKeyChecking ask\n", policy, HostKeyPolicy::Ask);
    check(
        "StrictHostKeyChecking Accept-New\n",
        policy,
        HostKeyPolicy::AcceptNew,
    );
    check("StrictHostKeyChecking no\n", policy, HostKeyPolicy::Off);
    check("StrictHostKeyChecking off\n", policy, HostKeyPolicy::Off);
    check("Port 22\n", policy, HostKeyPolicy::Ask);
}

#[test]
fn files_and_commands_about_keys_are_expanded() {
    let revoked = |config: HostConfig| config.host_keys.revoked_host_keys.value;
    check(
        "RevokedHostKeys ~/revoked /etc/%h\n",
        revoked,
        vec!["/home/me/revoked".to_owned(), "/etc/web1".to_owned()],
    );
    check("RevokedHostKeys none\nRevokedHostKeys x\n", revoked, Vec::new());
    let command = |config: HostConfig| config.host_keys.known_hosts_command.map(|command| command.value);
    let words = |words: &[&str]| Some(words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>());
    check(
        "KnownHostsCommand /bin/keys \"a b\" %r-%H ${NAME}%% %t\n",
        command,
        words(&["/bin/keys", "a b", "me-%H", "value%%", "%t"]),
    );
    check("KnownHostsCommand none\n", command, None);
    check_bad(
        "KnownHostsCommand /bin/keys %q\n",
        "unknown token %q in KnownHostsCommand",
    );
    let certificates = |config: HostConfig| {
        let files = config.login.certificate_files.into_iter();
        files.map(|file| file.value).collect::<Vec<_>>()
    };
    check(
        "CertificateFile ~/a-cert.pub\nCertificateFile /%u\nCertificateFile ~/a-cert.pub\n",
        certificates,
        vec!["/home/me/a-cert.pub".to_owned(), "/me".to_owned()],
    );
}

#[test]
fn keys_may_be_given_to_the_agent_for_a_time_or_with_a_question() {
    let add = |config: HostConfig| config.login.add_keys_to_agent.value;
    let given = |confirm, seconds: Option<u64>| AddKeysToAgent::Add {
        confirm,
        lifetime: seconds.map(Duration::from_secs),
    };
    check("AddKeysToAgent yes\n", add, given(false, None));
    check("AddKeysToAgent 1h\n", add, given(false, Some(3600)));
    check("AddKeysToAgent confirm\n", add, given(true, None));
    check("AddKeysToAgent confirm 5m\n", add, given(true, Some(300)));
    check("AddKeysToAgent ask\n", add, AddKeysToAgent::Ask);
    check("AddKeysToAgent no\n", add, AddKeysToAgent::No);
    check_bad(
        "AddKeysToAgent ask 5m\n",
        "bad value \"5m\" for AddKeysToAgent: expected a time after confirm only",
    );
    check_bad(
        "AddKeysToAgent often\n",
        "bad value \"often\" for AddKeysToAgent: expected yes, no, ask, confirm or a time",
    );
}

#[test]
fn the_agent_may_be_forwarded_from_a_named_socket() {
    let forward = |config: HostConfig| config.login.forward_agent.value;
    let socket = |path: &str| ForwardAgent::Socket(path.to_owned());
    check("ForwardAgent YES\n", forward, ForwardAgent::Yes);
    check("ForwardAgent no\n", forward, ForwardAgent::No);
    check("ForwardAgent ~/agent\n", forward, socket("/home/me/agent"));
    check("ForwardAgent ${MINE}/agent\n", forward, socket("/mine/agent"));
    check(
        "ForwardAgent yes\nForwardAgent /agent\n",
        forward,
        socket("/agent"),
    );
    check(
        "ForwardAgent no\nForwardAgent /agent\n",
        forward,
        ForwardAgent::No,
    );
    check("ForwardAgent $SSH_AUTH_SOCK\n", forward, socket("/run/agent"));
    check_bad(
        "ForwardAgent $NOWHERE\n",
        "environment variable \"NOWHERE\" in ForwardAgent is not set",
    );
}

#[test]
fn variables_add_up_and_are_taken_away_again() {
    let names = |config: HostConfig| {
        let names = config.session.send_env.into_iter();
        names.map(|name| name.value).collect::<Vec<_>>()
    };
    check(
        "SendEnv LANG LC_*\nSendEnv -LC* A\nSendEnv LC_ALL\n",
        names,
        vec!["LANG".to_owned(), "A".to_owned(), "LC_ALL".to_owned()],
    );
    check_bad(
        "SendEnv A=b\n",
        "bad value \"A=b\" for SendEnv: expected names of variables",
    );
    let set = |config: HostConfig| config.session.set_env.value;
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    check(
        "SetEnv A=%h \"B=x y\" A=2 C=${NAME}\nSetEnv D=1\n",
        set,
        vec![pair("A", "web1"), pair("B", "x y"), pair("C", "value")],
    );
    check_bad("SetEnv A\n", "bad value \"A\" for SetEnv: expected NAME=value");
}

#[test]
fn our_own_variables_are_sent_by_pattern_and_set_ones_win() {
    let world = World::user("SendEnv N* EMPTY -NO\nSetEnv NAME=other ZED=%h\n");
    let config = world.resolve("web1").unwrap();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        world.resolver().variables(&config.session),
        [pair("EMPTY", ""), pair("NAME", "other"), pair("ZED", "web1")]
    );
}

#[test]
fn the_halves_of_a_rekey_limit_may_stand_on_two_lines() {
    let limit = |config: HostConfig| config.session.rekey_limit.value;
    let expected = |bytes, seconds: Option<u64>| RekeyLimit {
        bytes,
        interval: seconds.map(Duration::from_secs),
    };
    check("RekeyLimit 1G 1h\n", limit, expected(Some(1 << 30), Some(3600)));
    check(
        "RekeyLimit 1.5k none\nRekeyLimit 2k 10\n",
        limit,
        expected(Some(1536), Some(10)),
    );
    check("RekeyLimit default none\n", limit, expected(None, None));
    check_bad(
        "RekeyLimit 15\n",
        "bad value \"15\" for RekeyLimit: expected default, or at least 16 bytes such as 1G",
    );
}

#[test]
fn further_keys_are_learnt_only_where_openssh_keeps_its_own() {
    let update = |config: HostConfig| config.host_keys.update_host_keys.value;
    check("Port 22\n", update, YesNoAsk::Yes);
    check("UserKnownHostsFile ~/.ssh/known_hosts\n", update, YesNoAsk::Yes);
    check("UserKnownHostsFile ~/other\n", update, YesNoAsk::No);
    check("VerifyHostKeyDNS ask\n", update, YesNoAsk::No);
    check("UpdateHostKeys ask\n", update, YesNoAsk::Ask);
}

#[test]
fn users_names_may_hold_tokens() {
    let user = |config: HostConfig| config.user.value;
    check("User %u-${NAME}\n", user, "me-value".to_owned());
    check_bad("User %C\n", "unknown token %C in User");
    check_bad("User \"%u|x\"\n", "invalid user name \"me|x\"");
}

#[test]
fn commands_for_the_host_are_expanded_but_for_variables() {
    let remote = |config: HostConfig| config.session.remote_command.map(|command| command.value);
    check(
        "RemoteCommand echo \"%h\" ${HOME}  x\n",
        remote,
        Some("echo \"web1\" ${HOME}  x".to_owned()),
    );
    check("RemoteCommand none\nRemoteCommand x\n", remote, None);
}
