//! `Match`: each criterion, alone, negated and with others, and what the lines above have already said by then.

use super::super::*;
use super::{World, check, check_error};

const FILE: &str = "/home/me/.ssh/config";

/// Whether a block behind this `Match` line applies to a question.
fn check_facts(line: &str, facts: &Facts, expected: bool) {
    let mut world = World::user(&format!("Match {line}\n Port 77\n"));
    world.succeeding = vec!["true", "on here for web1 as me", "%"];
    let config = world.resolve_with(&mut world.resolver(), facts);
    match config {
        Ok(config) => assert_eq!(config.port.value == 77, expected, "Match {line} for {facts:?}"),
        Err(error) => panic!("Match {line}: {error}"),
    }
}

fn check_line(line: &str, expected: bool) {
    let facts = Facts {
        host: "web1".to_owned(),
        ..Facts::default()
    };
    check_facts(line, &facts, expected);
}

#[test]
fn each_criterion_matches_what_it_names() {
    for (line, expected) in [
        ("all", true),
        ("!all", false),
        ("host web1", true),
        ("host WEB*", true),
        ("host web*,!web1", false),
        ("host db", false),
        ("!host db", true),
        ("host=web1", true),
        ("originalhost web?", true),
        ("user me", true),
        ("user ME", false),
        ("user root,m?", true),
        ("localuser me", true),
        ("localuser !me,*", false),
        ("exec true", true),
        ("exec false", false),
        ("!exec false", true),
        ("exec=true", true),
        ("exec \"on %L for %h as %r\"", true),
        ("exec %%", true),
        ("localnetwork 192.168.7.0/24", true),
        ("localnetwork 10.0.0.0/8,2001:db8::/32", true),
        ("localnetwork 10.0.0.0/8", false),
        ("version OpenSSH_9.*", true),
        ("version OpenSSH_10.*", false),
        ("sessiontype shell", true),
        ("sessiontype exec,none", false),
        ("command \"\"", true),
        ("command *", false),
        ("tagged \"\"", true),
        ("tagged x", false),
        ("host web1 user me", true),
        ("host web1 !user me", false),
        ("HOST web1 User me # why", true),
        ("final", true),
        ("canonical", false),
        ("!canonical", true),
        ("host web1 all", true),
    ] {
        check_line(line, expected);
    }
}

#[test]
fn what_the_question_says_counts() {
    let facts = Facts {
        host: "web1".to_owned(),
        user: Some("root".to_owned()),
        port: None,
        purpose: Purpose::Command("uptime -p".into()),
    };
    check_facts("user root", &facts, true);
    check_facts("sessiontype exec", &facts, true);
    check_facts("command \"uptime *\"", &facts, true);
    check_facts("command \"\"", &facts, false);
    let proxy = Facts {
        purpose: Purpose::Proxy,
        ..facts
    };
    check_facts("sessiontype none command \"\"", &proxy, true);
}

#[test]
fn what_stands_above_counts_and_what_stands_below_does_not() {
    check(
        &World::user(
            "Match user root\n Port 1\nHost *\n User root\nMatch user root\n User x\n ServerAliveCountMax 9\n",
        ),
        "a",
        &["user root", "alivemax 9"],
    );
    let world =
        World::user("HostName %h.example.org\nUser root\nMatch host *.example.org user root\n Port 1\n");
    check(&world, "a", &["hostname a.example.org", "user root", "port 1"]);
    let world = World::user("Tag blue\nTag red\nMatch tagged red\n Port 1\nMatch tagged b*\n User root\n");
    check(&world, "a", &["user root"]);
    let world = World::user("SessionType none\nMatch sessiontype none\n User root\n");
    check(&world, "a", &["user root"]);
    let mut world = World::user(
        "Host a\n HostName real\n Port 23\n User root\nMatch exec \"up %h %n %p %r %k %%\"\n BatchMode yes\n",
    );
    world.succeeding = vec!["up real a 23 root real %"];
    check(
        &world,
        "a",
        &["hostname real", "user root", "port 23", "batch true"],
    );
}

#[test]
fn no_command_runs_that_cannot_matter() {
    let world = World::user("Match host b exec x\n Port 1\nHost b\n Include more\nMatch exec y host a\n")
        .with("/home/me/.ssh/more", "Match exec z\n");
    let mut resolver = world.resolver();
    let facts = Facts {
        host: "a".to_owned(),
        ..Facts::default()
    };
    let mut commands = Vec::new();
    while let Ok(Step::Need(need)) = resolver.resolve(&facts) {
        if let Need::Exec(command) = &need {
            commands.push(command.clone());
        }
        world.answer(&mut resolver, need);
    }
    assert_eq!(commands, ["y"]);
}

#[test]
fn a_command_is_asked_for_once_for_all_hosts_unless_its_tokens_differ() {
    let world =
        World::user("Match exec \"same\"\n Port 1\nMatch exec \"for %h\"\n User root\nMatch exec same\n");
    let mut resolver = world.resolver();
    let mut commands = Vec::new();
    for host in ["a", "b", "a"] {
        let facts = Facts {
            host: host.to_owned(),
            ..Facts::default()
        };
        while let Ok(Step::Need(need)) = resolver.resolve(&facts) {
            if let Need::Exec(command) = &need {
                commands.push(command.clone());
            }
            world.answer(&mut resolver, need);
        }
    }
    assert_eq!(commands, ["same", "for a", "for b"]);
}

#[test]
fn the_final_pass_sees_the_host_name_and_what_the_first_one_set() {
    let world = World::user(
        "Host a\n HostName real.example.org\nMatch final host real*\n Port 1\nHost real*\n User root\n",
    );
    check(&world, "a", &["hostname real.example.org", "user root", "port 1"]);
    let world =
        World::user("Match !final host a\n Port 1\nMatch final originalhost a\n Port 2\n User root\n");
    check(&world, "a", &["user root", "port 1"]);
}

#[test]
fn what_is_wrong_with_a_line_is_told_for_every_host() {
    for (line, expected) in [
        ("Match", "match needs an argument"),
        ("Match host", "Match host needs an argument"),
        (
            "Match all host a",
            "bad value \"all\" for Match: expected all to stand alone",
        ),
        (
            "Match hosts a",
            "bad value \"hosts\" for Match: expected all, canonical, final, or one of host, originalhost, user, \
             localuser, localnetwork, version, tagged, sessiontype, command, exec",
        ),
        (
            "Match localnetwork 10.0.0.1/8",
            "bad value \"10.0.0.1/8\" for Match: expected addresses or ranges such as 10.0.0.0/8 after localnetwork",
        ),
    ] {
        let world = World::user(&format!("Host other\n{line}\n"));
        check_error(&world, "a", &format!("{FILE} line 2: {expected}"));
    }
}

#[test]
fn a_command_of_which_nobody_knows_whether_it_succeeds_fails_its_hosts() {
    let world = World::user("Match host a exec \"kill -9 $$\"\n Port 1\n");
    check(&world, "b", &[]);
    check_error(
        &world,
        "a",
        &format!("{FILE} line 1: Match exec \"kill -9 $$\": ended by a signal"),
    );
    check_error(
        &World::user("Match exec \"x %z\"\n"),
        "a",
        &format!("{FILE} line 1: unknown token %z in Match exec"),
    );
}

#[test]
fn includes_may_depend_on_the_host_and_lie_in_the_homes_of_others() {
    let world = World::user("Include ~joe/%n.conf conf.d/${NAME}-%u\n")
        .with("/home/joe/a.conf", "Port 1\n")
        .with("/home/me/.ssh/conf.d/value-me", "User root\n");
    check(&world, "a", &["user root", "port 1"]);
    check(&world, "b", &["user root"]);
    check(
        &World::user("IdentityFile ~joe/key\n"),
        "a",
        &["identity /home/joe/key"],
    );
    check_error(
        &World::user("IdentityFile ~nobody/key\n"),
        "a",
        &format!("{FILE} line 1: ~nobody in IdentityFile: no such user"),
    );
    check_error(
        &World::default().with("/etc/ssh/ssh_config", "Include ~/x\n"),
        "a",
        "/etc/ssh/ssh_config line 1: bad value \"~/x\" for Include: expected a path without ~ in a file of the system",
    );
}
