//! Every line that fails a host, with the words that name it.

use std::io::ErrorKind;

use super::super::Step;
use super::{World, check, check_error};
use crate::Printable;

const FILE: &str = "/home/me/.ssh/config";

/// The error of a user's file with `line` as its second line, for a host on whose path it is.
fn check_line(line: &str, expected: &str) {
    check_error(
        &World::user(&format!("# first\n{line}\n")),
        "a",
        &format!("{FILE} line 2: {expected}"),
    );
}

#[test]
fn a_host_whose_connection_is_refused_fails_with_the_reason_and_others_do_not() {
    let world =
        World::user("Host far\n RefuseConnection \"in repair\"\nHost far2\n Include more\nHost *\n User x\n")
            .with("/home/me/.ssh/more", "RefuseConnection x\nMatch exec y\n");
    check(&world, "near", &["user x"]);
    check_error(
        &world,
        "far",
        &format!("{FILE} line 2: RefuseConnection: in repair"),
    );
    check_error(&world, "far2", "/home/me/.ssh/more line 1: RefuseConnection: x");
}

#[test]
fn unknown_keywords_are_errors_for_every_host_unless_ignored() {
    check_line("Foo bar", "Bad configuration option: foo");
    let world = World::user("Host other\n UseKeychain yes\nHost *\n IgnoreUnknown x\n");
    check_error(
        &world,
        "a",
        &format!("{FILE} line 2: Bad configuration option: usekeychain"),
    );
    check(
        &World::user("IgnoreUnknown UseKey*,foo\nUseKeychain yes\nFOO bar\n"),
        "a",
        &[],
    );
    check_error(
        &World::user("IgnoreUnknown bar,!foo\nFoo 1\n"),
        "a",
        &format!("{FILE} line 2: Bad configuration option: foo"),
    );
    check_error(
        &World::default().options(&["Foo=1"]),
        "a",
        "command line: Bad configuration option: foo",
    );
}

#[test]
fn wrong_values_are_errors_for_every_host_as_in_openssh() {
    let expected = "a port between 1 and 65535";
    for value in ["0", "65536", "-1", "x", "+22", "99999999999999999999"] {
        check_line(
            &format!("Port {value}"),
            &format!("bad value {value:?} for Port: expected {expected}"),
        );
    }
    check_line("User", "user needs an argument");
    check_line("User \"\"", "User needs an argument");
    check_line("User a b", "extra arguments after User");
    check_line("User \"a", "a quote is not closed");
    check_line("Host \"\"", "Host needs an argument");
    check_line(
        "BatchMode maybe",
        "bad value \"maybe\" for BatchMode: expected yes or no",
    );
    check_line(
        "LogLevel loud",
        "bad value \"loud\" for LogLevel: expected a log level",
    );
    check_line(
        "Ciphers a,,b",
        "bad value \"a,,b\" for Ciphers: expected algorithm names separated by commas",
    );
    check_line(
        "RequiredRSASize x",
        "bad value \"x\" for RequiredRSASize: expected a number",
    );
    for value in ["x", "1x", "1m-1", "99999999999", "-1", "1 "] {
        let value = value.trim();
        if value != "1" {
            check_line(
                &format!("ConnectTimeout {value}"),
                &format!("bad value {value:?} for ConnectTimeout: expected a time such as 90 or 1m30s"),
            );
        }
    }
    check_line(
        "IdentityAgent $A-B",
        "bad value \"$A-B\" for IdentityAgent: expected a path, $NAME, SSH_AUTH_SOCK or none",
    );
    let world = World::user("Host other\n Port x\n");
    check_error(
        &world,
        "a",
        &format!("{FILE} line 2: bad value \"x\" for Port: expected {expected}"),
    );
}

#[test]
fn files_that_cannot_be_read_fail_the_hosts_that_need_them() {
    let world = World::default().without(FILE, ErrorKind::PermissionDenied);
    check_error(
        &world,
        "a",
        &format!("{FILE}: not readable for us, or writable for others (chmod go-w)"),
    );
    let world =
        World::user("Host a\n Include secret\n").without("/home/me/.ssh/secret", ErrorKind::PermissionDenied);
    check_error(
        &world,
        "a",
        &format!(
            "{FILE} line 2: Include /home/me/.ssh/secret: not readable for us, or writable for others (chmod go-w)"
        ),
    );
    check(&world, "b", &[]);
}

#[test]
fn an_include_that_leads_nowhere_is_passed_over_with_a_word() {
    let world = World::user("Include ${UNSET}/x ~stranger/y\nPort 5\nHost other\n  Include ${UNSET}/z\n");
    let mut resolver = world.resolver();
    let config = world.resolve("web").unwrap();
    let notes: Vec<String> = config.notes.iter().map(ToString::to_string).collect();
    assert_eq!(config.port.value, 5);
    assert_eq!(
        notes,
        [
            "/home/me/.ssh/config line 1: environment variable \"UNSET\" in Include is not set; passed over",
            "/home/me/.ssh/config line 1: ~stranger in Include: no such user; passed over",
        ]
    );
    let names = loop {
        match resolver.literal_names().unwrap() {
            Step::Done(names) => break names,
            Step::Need(need) => world.answer(&mut resolver, need),
        }
    };
    assert!(names.contains("other"), "{names:?}");
    // What is wrong whatever the environment says stays an error.
    let error = World::user("Include /a/%z\n").resolve("web").unwrap_err();
    assert_eq!(
        error.to_string().split(": ").next(),
        Some("/home/me/.ssh/config line 1")
    );
}

#[test]
fn a_cycle_of_includes_ends() {
    let world = World::user("Include config\n");
    check_error(
        &world,
        "a",
        &format!("{FILE} line 1: too many nested Include files"),
    );
    let world = World::user("Host never\n Include b\n").with("/home/me/.ssh/b", "Include b b b b b b b b\n");
    check_error(
        &world,
        "a",
        "/home/me/.ssh/b line 1: too many nested Include files",
    );
}

#[test]
fn sixteen_levels_of_includes_are_enough_and_a_tree_that_doubles_is_not_walked() {
    let nested = |last: u32| {
        (0..last).fold(World::user("Include f0\n"), |world, i| {
            world.with(&format!("/home/me/.ssh/f{i}"), format!("Include f{}\n", i + 1))
        })
    };
    let deep = nested(15).with("/home/me/.ssh/f15", "User x\n");
    check(&deep, "a", &["user x"]);
    let deeper = nested(16).with("/home/me/.ssh/f16", "User x\n");
    check_error(
        &deeper,
        "a",
        "/home/me/.ssh/f15 line 1: too many nested Include files",
    );
    let doubling = (0..15).fold(World::user("Include f0\n"), |world, i| {
        world.with(
            &format!("/home/me/.ssh/f{i}"),
            format!("Include f{0}\nInclude f{0}\n", i + 1),
        )
    });
    let doubling = doubling.with("/home/me/.ssh/f15", "User x\n");
    assert!(doubling.resolve("a").is_err());
}

#[test]
fn blocks_and_includes_are_no_options() {
    for option in ["Host=a", "Match=all", "Include=/x"] {
        let (keyword, value) = option.split_once('=').unwrap();
        let world = World::default().options(&[option]);
        check_error(
            &world,
            "a",
            &format!("command line: {keyword} {value}: not supported yet"),
        );
    }
}

#[test]
fn names_that_could_be_taken_for_something_else_are_refused() {
    for name in [
        "-oProxyCommand=x",
        "a b",
        "a;b",
        "$(x)",
        "a`b`",
        "a\u{0}b",
        "a\nb",
        "",
        "a|b",
        "a'b",
        &"a".repeat(256),
    ] {
        check_error(
            &World::default(),
            name,
            &format!("command line: invalid host name \"{}\"", Printable::new(name)),
        );
    }
    check_error(
        &World::user("HostName -x\n"),
        "a",
        &format!("{FILE} line 1: invalid host name \"-x\""),
    );
    for user in ["-x", "a;b", "a`b", "a\\\\", "a -b", "x|y"] {
        let written = format!("User \"{user}\"\n");
        let shown = user.replace("\\\\", "\\");
        check_error(
            &World::user(&written),
            "h",
            &format!("{FILE} line 1: invalid user name \"{shown}\""),
        );
    }
    check(&World::user("User DOMAIN\\\\joe\n"), "h", &["user DOMAIN\\joe"]);
    check_line("User %r", "unknown token %r in User");
}

#[test]
fn somebody_without_a_name_is_told_to_give_one() {
    let resolve = |user: Option<&str>| {
        let nobody = super::Local {
            uid: 54321,
            files: super::ConfigFiles::None,
            ..super::Local::default()
        };
        let facts = super::Facts {
            host: "h".to_owned(),
            user: user.map(str::to_owned),
            ..super::Facts::default()
        };
        super::Resolver::new(nobody).resolve(&facts).map(drop)
    };
    let error = resolve(None).unwrap_err();
    assert_eq!(error.to_string(), "no user name for uid 54321; give -l USER");
    assert_eq!(resolve(Some("me")), Ok(()));
}

#[test]
fn lists_of_algorithms_that_leave_nothing_name_their_line() {
    let config = World::user("Ciphers 3des-cbc\nKexAlgorithms +nothing\n")
        .resolve("a")
        .unwrap();
    assert_eq!(
        config.algorithms().unwrap_err().to_string(),
        format!("{FILE} line 1: Ciphers 3des-cbc leaves no algorithm that is supported")
    );
    let config = World::user("PubkeyAcceptedAlgorithms -rsa-*,ecdsa-*,sk-*,*-cert-*\n")
        .resolve("a")
        .unwrap();
    let names: Vec<_> = config
        .signature_algorithms()
        .unwrap()
        .iter()
        .map(|a| a.name())
        .collect();
    assert_eq!(names, ["ssh-ed25519"]);
}

#[test]
fn more_identities_than_openssh_takes_are_an_error() {
    let hundred: String = (0..100).map(|i| format!("IdentityFile k{i}\n")).collect();
    assert_eq!(
        World::user(&hundred).resolve("a").unwrap().identity_files.len(),
        100
    );
    check_error(
        &World::user(&format!("{hundred}IdentityFile one-more\n")),
        "a",
        &format!("{FILE} line 101: more than 100 values for IdentityFile"),
    );
}

#[test]
fn rsa_keys_below_the_required_size_are_refused_with_the_line_that_says_so() {
    let blob = |bytes: usize| {
        let mut modulus = vec![0x80; bytes];
        modulus.push(1);
        let mut blob = bytes::BytesMut::new();
        crate::wire::Writer::new(&mut blob)
            .string("ssh-rsa")
            .mpint(&[1, 0, 1])
            .mpint(&modulus);
        crate::keys::PublicKey::parse(&blob).unwrap()
    };
    let config = World::user("RequiredRSASize 3072\n").resolve("a").unwrap();
    assert_eq!(config.admits(&blob(383)), Ok(()));
    assert_eq!(
        config.admits(&blob(382)).unwrap_err().to_string(),
        format!("{FILE} line 1: an RSA key of 3064 bits, and RequiredRSASize asks for 3072")
    );
    assert_eq!(World::default().resolve("a").unwrap().admits(&blob(255)), Ok(()));
}
