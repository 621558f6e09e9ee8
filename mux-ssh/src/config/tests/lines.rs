//! Which lines apply, and what the first one says.

use super::{World, check, check_error};
use crate::config::{ConfigFiles, Facts, Origin};

#[test]
fn without_files_there_are_defaults() {
    let config = World::default().resolve("Web1").unwrap();
    assert_eq!(config.hostname.value, "web1");
    assert_eq!(config.user.value, "me");
    assert_eq!(config.user.origin, Origin::Default);
    assert_eq!(config.port.value, 22);
    assert_eq!(config.identity_agent.value.as_deref(), Some("/run/agent"));
    let identities: Vec<_> = config
        .identity_files
        .iter()
        .map(|file| file.value.as_str())
        .collect();
    assert_eq!(
        identities,
        [
            "/home/me/.ssh/id_rsa",
            "/home/me/.ssh/id_ecdsa",
            "/home/me/.ssh/id_ecdsa_sk",
            "/home/me/.ssh/id_ed25519",
            "/home/me/.ssh/id_ed25519_sk"
        ]
    );
    let known = ["/home/me/.ssh/known_hosts", "/home/me/.ssh/known_hosts2"];
    assert_eq!(config.user_known_hosts_files.value, known);
}

#[test]
fn the_first_value_wins_across_blocks_and_files() {
    let world = World::user("Host a\n User one\nHost *\n User two\n Port 1\n")
        .with("/etc/ssh/ssh_config", "User three\nPort 2\nLogLevel quiet\n");
    check(&world, "a", &["user one", "port 1", "log Quiet"]);
    check(&world, "b", &["user two", "port 1", "log Quiet"]);
}

#[test]
fn a_negated_pattern_excludes_a_host_wherever_it_stands() {
    let world =
        World::user("Host web* !web1\n User x\nHost !web2 web*\n Port 9\nHost !web*\n LogLevel quiet\n");
    check(&world, "web1", &["port 9"]);
    check(&world, "web2", &["user x"]);
    check(&world, "web3", &["user x", "port 9"]);
    // A line of negated patterns only matches nothing.
    check(&world, "db", &[]);
}

#[test]
fn host_patterns_compare_with_the_typed_name_and_with_case() {
    let world = World::user("Host web\n HostName real\nHost real\n User x\nHost WEB\n Port 9\n");
    check(&world, "web", &["hostname real"]);
    check(&world, "WEB", &["port 9"]);
}

#[test]
fn keywords_have_no_case_and_values_may_follow_an_equals_sign() {
    check(
        &World::user("hOsT=a\n\tuser = \"x y\" # why\n  PORT=7\n"),
        "a",
        &["user x y", "port 7"],
    );
}

#[test]
fn match_all_ends_a_host_block() {
    let world = World::user("Host a\n User x\nMatch all\n Port 9\nHost b\n User y\n");
    check(&world, "a", &["user x", "port 9"]);
    check(&world, "b", &["user y", "port 9"]);
    check(&world, "c", &["port 9"]);
}

#[test]
fn match_final_applies_in_a_second_pass_that_compares_with_the_host_name() {
    let world =
        World::user("Host a\n HostName B.c\nHost b.c\n User x\n HostName late\nMatch final all\n Port 9\n");
    check(&world, "a", &["hostname b.c", "user x", "port 9"]);
    // Without `Match final` there is no second pass.
    let world = World::user("Host a\n HostName b.c\nHost b.c\n User x\n");
    check(&world, "a", &["hostname b.c"]);
}

#[test]
fn a_match_final_asks_for_the_second_pass_even_where_it_does_not_apply() {
    let world = World::user("Host a\n HostName b\nHost b\n User x\nHost other\n Include final\n")
        .with("/home/me/.ssh/final", "Match final\n Port 9\n");
    check(&world, "a", &["hostname b", "user x"]);
}

#[test]
fn an_include_counts_where_it_stands() {
    let world = World::user("Host a\n Include in\n User late\nHost *\n Port 9\n").with(
        "/home/me/.ssh/in",
        "User early\nHost b\n LogLevel quiet\nHost a\n LogLevel error\n",
    );
    check(&world, "a", &["user early", "port 9", "log Error"]);
    // Nothing in a file that was included for another host applies, its own Host blocks included.
    check(&world, "b", &["port 9"]);
}

#[test]
fn a_host_block_in_an_included_file_does_not_outlive_it() {
    let world = World::user("Include in\nUser x\n").with("/home/me/.ssh/in", "Host never\n Port 9\n");
    check(&world, "a", &["user x"]);
}

#[test]
fn includes_are_relative_to_their_owner_and_globs_come_in_order() {
    let world = World::user("Include d/*.conf ~/b ${MINE}/c\n")
        .with("/home/me/.ssh/d/2.conf", "User two\nPort 2\n")
        .with("/home/me/.ssh/d/1.conf", "User one\n")
        .with("/home/me/b", "LogLevel quiet\n")
        .with("/mine/c", "BatchMode yes\n")
        .with("/etc/ssh/ssh_config", "Include x.conf missing nothing/*\n")
        .with("/etc/ssh/x.conf", "ConnectTimeout 7\n");
    check(
        &world,
        "a",
        &["user one", "port 2", "connect 7", "batch true", "log Quiet"],
    );
}

#[test]
fn options_win_over_files_and_facts_over_options() {
    let world = World::user("Host *\n User file\n Port 1\n LogLevel quiet\n").options(&[
        "User=option",
        "port 2",
        "ConnectTimeout=1m",
        "IgnoreUnknown=Foo*",
    ]);
    check(&world, "a", &["user option", "port 2", "connect 60", "log Quiet"]);
    let facts = Facts {
        host: "a".to_owned(),
        user: Some("fact".to_owned()),
        port: Some(3),
        ..Facts::default()
    };
    let config = world.resolve_with(&mut world.resolver(), &facts).unwrap();
    assert_eq!((config.user.value.as_str(), config.port.value), ("fact", 3));
    assert_eq!(config.user.origin, Origin::CommandLine);
}

#[test]
fn a_named_file_replaces_both_and_must_exist() {
    let mut world = World::user("User user\n")
        .with("/etc/ssh/ssh_config", "Port 9\n")
        .with("/f", "User f\n");
    world.local.files = ConfigFiles::from_flag(Some("/f"));
    check(&world, "a", &["user f"]);
    world.local.files = ConfigFiles::from_flag(Some("NONE"));
    check(&world, "a", &[]);
    world.local.files = ConfigFiles::from_flag(Some("/missing"));
    check_error(&world, "a", "/missing: no such file");
}

#[test]
fn identity_files_add_up_without_repetition() {
    let mut world = World::user(
        "IdentityFile a\nIdentityFile ~/b\nHost x\n IdentityFile c\nMatch final\n IdentityFile a\n",
    );
    check(&world, "x", &["identity a /home/me/b c"]);
    check(&world, "y", &["identity a /home/me/b"]);
    world.local.identity_files = vec!["/i".to_owned()];
    check(&world, "y", &["identity /i a /home/me/b"]);
    check(&World::user("IdentityFile none\n"), "y", &["identity "]);
}

#[test]
fn every_honoured_keyword_arrives() {
    let config = "HostName 10.0.0.1\nUser u\nPort 2222\nIdentityFile /k\nIdentitiesOnly yes\nIdentityAgent /a\n\
        UserKnownHostsFile /u1 \"/u 2\"\nGlobalKnownHostsFile /g\nStrictHostKeyChecking accept-new\n\
        HostKeyAlias al\nConnectTimeout 1m30\nServerAliveInterval 2h\nServerAliveCountMax 5\nBatchMode yes\n\
        PubkeyAuthentication no\nPreferredAuthentications publickey,password\nKexAlgorithms +x\n\
        HostKeyAlgorithms -ssh-*\nCiphers ^a\nMACs m\nPubkeyAcceptedKeyTypes rsa-sha2-512\n\
        RequiredRSASize 3072\nLogLevel DEBUG2\nHashKnownHosts yes\n";
    check(
        &World::user(config),
        "h",
        &[
            "hostname 10.0.0.1",
            "user u",
            "port 2222",
            "identity /k",
            "identitiesonly true",
            "agent /a",
            "known /u1 /u 2",
            "globalknown /g",
            "policy AcceptNew",
            "alias al",
            "connect 90",
            "alive 7200",
            "alivemax 5",
            "batch true",
            "pubkey false",
            "methods publickey,password",
            "kex +x",
            "hostkeys -ssh-*",
            "ciphers ^a",
            "macs m",
            "accepted rsa-sha2-512",
            "rsasize 3072",
            "log Debug2",
            "hash true",
        ],
    );
}

#[test]
fn lines_without_effect_are_noted_once_with_their_place() {
    let world = World::user("EscapeChar ~\nMatch final\n Tunnel no\nHost other\n IPQoS ef\n");
    let notes: Vec<String> = world
        .resolve("a")
        .unwrap()
        .notes
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        notes,
        [
            "/home/me/.ssh/config line 1: EscapeChar has no effect",
            "/home/me/.ssh/config line 3: Tunnel has no effect"
        ]
    );
}

#[test]
fn names_of_algorithms_that_nobody_knows_are_told_with_their_place() {
    let check = |line: &str, expected: &[&str]| {
        let unknown = World::user(line).resolve("a").unwrap().unknown_algorithms();
        let unknown: Vec<String> = unknown.iter().map(ToString::to_string).collect();
        let expected: Vec<String> = expected
            .iter()
            .map(|said| format!("/home/me/.ssh/config line 1: {said}"))
            .collect();
        assert_eq!(unknown, expected, "{line}");
    };
    check("Ciphers foo,aes128-ctr", &["Ciphers: no algorithm is called foo"]);
    check("Ciphers +foo", &["Ciphers: no algorithm is called foo"]);
    check(
        "Ciphers -aes128-crt",
        &["Ciphers: no algorithm is called aes128-crt"],
    );
    check(
        "KexAlgorithms ^bogus,curve25519-sha256,worse",
        &[
            "KexAlgorithms: no algorithm is called bogus",
            "KexAlgorithms: no algorithm is called worse",
        ],
    );
    check(
        "HostKeyAlgorithms xx,ssh-ed25519",
        &["HostKeyAlgorithms: no algorithm is called xx"],
    );
    check("MACs aes128-ctr", &["MACs: no algorithm is called aes128-ctr"]);
    check(
        "PubkeyAcceptedKeyTypes AES,ssh-rsa",
        &["PubkeyAcceptedAlgorithms: no algorithm is called AES"],
    );
    check("Ciphers -*cbc,arcfour?,aes*", &[]);
    check("Ciphers aes128-ctr,3des-cbc,arcfour", &[]);
    check(
        "KexAlgorithms +diffie-hellman-group-exchange-sha1,gss-gex-sha1-",
        &[],
    );
    check("MACs +hmac-sha1,umac-64@openssh.com", &[]);
    check(
        "HostKeyAlgorithms +ssh-dss,sk-ssh-ed25519@openssh.com,ssh-rsa-cert-v01@openssh.com",
        &[],
    );
    check("Compression yes", &[]);
}

#[test]
fn the_agent_is_a_path_a_variable_or_none() {
    for (value, expected) in [
        ("/x", &["agent /x"][..]),
        ("none", &["agent none"]),
        ("SSH_AUTH_SOCK", &[]),
        ("$MINE", &["agent /mine"]),
        ("$UNSET", &["agent none"]),
        ("$EMPTY", &["agent none"]),
        ("${MINE}/s", &["agent /mine/s"]),
        ("~/s", &["agent /home/me/s"]),
    ] {
        check(&World::user(&format!("IdentityAgent {value}\n")), "a", expected);
    }
}

#[test]
fn comments_and_values_in_other_encodings_do_not_disturb_each_other() {
    let world = World::default().with(
        "/home/me/.ssh/config",
        b"# gr\xfc\xdfe\nUser x\n\tPort 7\r\n".as_slice(),
    );
    check(&world, "a", &["user x", "port 7"]);
}

#[test]
fn a_time_of_none_leaves_the_keyword_to_later_lines() {
    let world = World::user(
        "ConnectTimeout none\nServerAliveInterval none\nConnectTimeout 7\nServerAliveInterval 8\n",
    );
    check(&world, "a", &["connect 7", "alive 8"]);
    check(&World::user("ConnectTimeout 0\nConnectTimeout 7\n"), "a", &[]);
}
