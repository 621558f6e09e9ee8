//! Tokens, `~` and variables.

use super::{World, check, check_error};
use crate::config::Facts;

const FILE: &str = "/home/me/.ssh/config";

#[test]
fn each_token_stands_for_its_value() {
    let world = |path: &str| {
        World::user(&format!(
            "Host web\n HostName %h.Example.org\n User joe\n Port 7\n IdentityFile {path}\n"
        ))
    };
    for (path, expected) in [
        ("%%", "%"),
        ("%d/k", "/home/me/k"),
        ("%h", "web.example.org"),
        ("%n", "web"),
        ("%k", "web"),
        ("%p", "7"),
        ("%r", "joe"),
        ("%u", "me"),
        ("%i", "1000"),
        ("%l", "here.example.org"),
        ("%L", "here"),
        ("x%jy", "xy"),
        // sha1("here.example.org" "web.example.org" "7" "joe")
        ("%C", "HASH"),
        ("~/%n_%p", "/home/me/web_7"),
        ("~me/x", "/home/me/x"),
        ("~", "/home/me"),
        ("${NAME}/x", "value/x"),
        ("$NAME", "$NAME"),
        ("a$", "a$"),
        ("${NAME}%%{NAME}", "value%{NAME}"),
    ] {
        let expected = expected.replace("HASH", "af6fc4061bc8a185c1ef4844eb4e9de88d20544a");
        check(
            &world(path),
            "web",
            &[
                "hostname web.example.org",
                "user joe",
                "port 7",
                &format!("identity {expected}"),
            ],
        );
    }
}

#[test]
fn an_alias_is_the_key_token_and_known_hosts_take_tokens_too() {
    let world = World::user("HostKeyAlias al\nUserKnownHostsFile ~/%k ${MINE}/%h\nIdentityAgent %d/%n\n");
    check(
        &world,
        "h",
        &["agent /home/me/h", "known /home/me/al /mine/h", "alias al"],
    );
}

#[test]
fn tokens_follow_the_command_line() {
    let world = World::user("IdentityFile %r@%h:%p\nUser file\n");
    let facts = Facts {
        host: "h".to_owned(),
        user: Some("joe".to_owned()),
        port: Some(9),
        ..Facts::default()
    };
    let config = world.resolve_with(&mut world.resolver(), &facts).unwrap();
    assert_eq!(config.identity_files.first().unwrap().value, "joe@h:9");
}

#[test]
fn what_cannot_be_expanded_fails_the_host() {
    for (line, expected) in [
        ("IdentityFile %z", "unknown token %z in IdentityFile"),
        ("IdentityFile a%", "unknown token % in IdentityFile"),
        ("HostName %n", "unknown token %n in HostName"),
        ("HostName x%", "unknown token % in HostName"),
        (
            "IdentityFile ${UNSET}",
            "environment variable \"UNSET\" in IdentityFile is not set",
        ),
        (
            "IdentityFile ${NAME",
            "environment variable \"NAME\" in IdentityFile is not set",
        ),
        (
            "IdentityFile ${}",
            "environment variable \"\" in IdentityFile is not set",
        ),
        ("IdentityFile ~other/k", "~other in IdentityFile: no such user"),
    ] {
        check_error(&World::user(line), "h", &format!("{FILE} line 1: {expected}"));
    }
}

#[test]
fn the_value_of_a_variable_is_not_expanded_again() {
    let mut world = World::user("IdentityFile ${A}\n");
    world.local.variables = [("A".to_owned(), "%z${B}".to_owned())].into();
    let mut resolver = crate::config::Resolver::new(world.local.clone());
    let facts = Facts {
        host: "h".to_owned(),
        ..Facts::default()
    };
    resolver.supply_file("/.ssh/config".to_owned(), Ok(b"User x\nIdentityFile ${A}\n"));
    let config = world.resolve_with(&mut resolver, &facts).unwrap();
    assert_eq!(config.identity_files.first().unwrap().value, "%z${B}");
}

#[test]
fn addresses_keep_their_case_and_zone() {
    check(&World::user("HostName FE80::1\n"), "h", &["hostname FE80::1"]);
    check(
        &World::user("HostName fe80::1%%eth0\n"),
        "h",
        &["hostname fe80::1%eth0"],
    );
}
