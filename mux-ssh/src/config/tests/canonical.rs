//! Names that are completed and followed before the configuration is read a second time.

use super::{World, check, check_error};

const FILE: &str = "/home/me/.ssh/config";

/// A machine that knows two hosts by their full names, one of them an alias.
fn world(config: &str) -> World {
    let mut world = World::user(config);
    world.names = [
        ("web1.example.org.", "web1.example.org"),
        ("www.example.org.", "web1.cdn.example.net"),
        ("a.b.example.org.", "a.b.example.org"),
        ("full.example.com.", "full.example.com"),
        ("short", "short.cdn.example.net"),
    ]
    .into();
    world
}

const ON: &str = "CanonicalizeHostname yes\nCanonicalDomains example.com example.org.\n";

#[test]
fn a_name_is_completed_by_the_first_domain_that_has_it() {
    check(&world(ON), "web1", &["hostname web1.example.org"]);
    check(&world(ON), "WEB1", &["hostname web1.example.org"]);
    check(&world(ON), "unknown", &[]);
    check(&world(ON), "full.example.com.", &["hostname full.example.com"]);
    check(
        &world(&format!("{ON}HostName 10.1\n")),
        "a",
        &["hostname 10.0.0.1"],
    );
    check(&world(ON), "fe80::1%eth0", &[]);
    check(&world("CanonicalDomains example.org\n"), "web1", &[]);
    check(
        &world("CanonicalizeHostname yes\nCanonicalDomains none\n"),
        "web1",
        &[],
    );
}

#[test]
fn names_with_more_dots_than_allowed_are_complete() {
    check(&world(ON), "a.b", &["hostname a.b.example.org"]);
    check(&world(&format!("{ON}CanonicalizeMaxDots 0\n")), "a.b", &[]);
    check(
        &world(&format!("{ON}CanonicalizeMaxDots 0\n")),
        "web1",
        &["hostname web1.example.org"],
    );
}

#[test]
fn lines_for_the_full_name_count_in_the_second_reading() {
    let config = format!("{ON}Host *.example.org\n User root\nMatch canonical host web1.*\n Port 7\n");
    check(
        &world(&config),
        "web1",
        &["hostname web1.example.org", "user root", "port 7"],
    );
    let config = format!("{ON}HostName web1\nHost web1.example.org\n User root\n");
    check(
        &world(&config),
        "anything",
        &["hostname web1.example.org", "user root"],
    );
    // Whether or not a name was found: the files are read again.
    check(
        &world(&format!("{ON}Match canonical\n Port 7\n")),
        "unknown",
        &["port 7"],
    );
}

#[test]
fn aliases_are_followed_where_that_is_permitted() {
    let permitted = format!("{ON}CanonicalizePermittedCNAMEs *.example.org:*.example.net\n");
    check(&world(&permitted), "www", &["hostname web1.cdn.example.net"]);
    check(&world(&permitted), "web1", &["hostname web1.example.org"]);
    check(&world(ON), "www", &["hostname www.example.org"]);
    let elsewhere = format!("{ON}CanonicalizePermittedCNAMEs *.example.org:*.example.com\n");
    check(&world(&elsewhere), "www", &["hostname www.example.org"]);
    let any = format!("{ON}CanonicalizePermittedCNAMEs *\n");
    check(&world(&any), "short", &["hostname short.cdn.example.net"]);
    let none = format!("{ON}CanonicalizePermittedCNAMEs none\n");
    check(&world(&none), "www", &["hostname www.example.org"]);
}

#[test]
fn behind_a_proxy_names_are_completed_only_on_request() {
    let proxied = format!("{ON}ProxyCommand nc %h %p\n");
    check(&world(&proxied), "web1", &[]);
    let always = proxied.replace("CanonicalizeHostname yes", "CanonicalizeHostname always");
    check(&world(&always), "web1", &["hostname web1.example.org"]);
    check(
        &world(&format!("{ON}ProxyJump none\n")),
        "web1",
        &["hostname web1.example.org"],
    );
}

#[test]
fn a_name_that_no_domain_has_fails_the_host_if_it_may_be_tried_no_other_way() {
    let strict = format!("{ON}CanonicalizeFallbackLocal no\n");
    check(&world(&strict), "web1", &["hostname web1.example.org"]);
    check_error(
        &world(&strict),
        "unknown",
        &format!("{FILE} line 1: no address for unknown in CanonicalDomains"),
    );
}

#[test]
fn what_is_no_domain_and_no_rule_is_wrong() {
    check_error(
        &world("CanonicalDomains a..b\n"),
        "a",
        &format!(
            "{FILE} line 1: bad value \"a..b\" for CanonicalDomains: expected names of domains, or none"
        ),
    );
    check_error(
        &world("CanonicalizePermittedCNAMEs a\n"),
        "a",
        &format!(
            "{FILE} line 1: bad value \"a\" for CanonicalizePermittedCNAMEs: \
             expected *, pairs such as *.example.org:*.example.net, or none alone"
        ),
    );
}
