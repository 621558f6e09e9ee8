//! Certificates of hosts on a real sshd, made by `ssh-keygen`: which are enough, which are as good as none, and what is
//! said then.

use std::fs;
use std::process::Command;

use crate::rig::{Rig, write_key};

/// Has an authority of this name sign the server's key, with further arguments; the server shows it from now on.
fn certify(rig: &Rig, authority: &str, args: &[&str]) {
    let host_key = rig.path("host_key.pub");
    sign(
        rig,
        authority,
        &[&["-h", "-I", "host", "-V", "always:forever"], args].concat(),
        host_key.to_str().unwrap(),
    );
}

fn sign(rig: &Rig, authority: &str, args: &[&str], key: &str) {
    let signed = Command::new("ssh-keygen")
        .args(["-q", "-s", &rig.text(authority)])
        .args(args)
        .arg(key)
        .status();
    assert!(
        signed
            .expect("no ssh-keygen: apt-get install openssh-client")
            .success()
    );
}

/// A server that shows a certificate of its key, made by the authority `ca` with these arguments.
fn rig(args: &[&str]) -> Rig {
    let mut rig = Rig::new();
    write_key(&rig.path("ca"));
    write_key(&rig.path("other"));
    certify(&rig, "ca", args);
    let line = format!("HostCertificate {}", rig.text("host_key-cert.pub"));
    rig.restart(&line);
    trust(&rig, "");
    rig
}

fn public(rig: &Rig, name: &str) -> String {
    fs::read_to_string(rig.path(&format!("{name}.pub")))
        .unwrap()
        .trim()
        .to_owned()
}

/// known_hosts trusts the authority for this host, and has these lines behind.
fn trust(rig: &Rig, more: &str) {
    let line = format!("@cert-authority 127.0.0.1 {}\n{more}", public(rig, "ca"));
    fs::write(rig.path("known_hosts"), line).unwrap();
}

fn fingerprint(rig: &Rig, name: &str) -> String {
    let line = public(rig, name);
    mux_ssh::keys::PublicKey::parse_line(&line)
        .unwrap()
        .key
        .fingerprint_sha256()
}

const NAMED: &[&str] = &["-n", "127.0.0.1"];

fn works(rig: &Rig) {
    rig.check(&["-w", "web1", "--", "echo hello"], 0, "web1: hello\n", "");
}

/// The host is refused; in the message, `HOST` is its key and `{CA}` its authority.
fn refused(rig: &Rig, why: &str) {
    let advice = "to look at it and keep it: mux hosts learn web1; to take it as it is: -o StrictHostKeyChecking=accept-new";
    let why = why
        .replace("HOST", &fingerprint(rig, "host_key"))
        .replace("{CA}", &fingerprint(rig, "ca"))
        .replace("ADVICE", advice);
    let expected = format!("ok=0 hostkey=1 in TIME\nhostkey: web1: hostkey: {why}\n");
    rig.check(&["-w", "web1", "--", "echo hello"], 4, "", &expected);
}

#[test]
fn a_certificate_by_an_authority_of_known_hosts_is_enough() {
    let rig = rig(NAMED);
    works(&rig);
    // A second time, with what was remembered of the server.
    works(&rig);
    trust(
        &rig,
        &format!("[127.0.0.1]:{} {}\n", rig.port, public(&rig, "other")),
    );
    works(&rig);
}

#[test]
fn a_host_that_is_known_by_a_certificate_brings_no_keys_and_takes_none_away() {
    let rig = rig(NAMED);
    rig.configure("UpdateHostKeys yes");
    let line = format!("[127.0.0.1]:{} {}\n", rig.port, public(&rig, "other"));
    trust(&rig, &line);
    let before = fs::read_to_string(rig.path("known_hosts")).unwrap();
    works(&rig);
    assert_eq!(fs::read_to_string(rig.path("known_hosts")).unwrap(), before);
}

#[test]
fn names_in_it_may_be_patterns_and_an_alias_is_what_it_has_to_name() {
    works(&rig(&["-n", "web*.example.org,127.0.0.?"]));
    let rig = rig(&["-n", "web7.example.org"]);
    rig.configure("HostKeyAlias web7.example.org");
    fs::write(
        rig.path("known_hosts"),
        format!("@cert-authority *.example.org {}\n", public(&rig, "ca")),
    )
    .unwrap();
    works(&rig);
}

#[test]
fn one_that_does_not_hold_is_as_good_as_none_and_the_reason_is_said() {
    for (args, why) in [
        (
            &["-n", "127.0.0.1", "-V", "20200101:20210101"][..],
            "host certificate expired 2021-01-01 00:00 UTC",
        ),
        (
            &["-n", "127.0.0.1", "-V", "20900101:20910101"],
            "host certificate not valid before 2090-01-01 00:00 UTC",
        ),
        (&["-n", "db1"], "host certificate does not name 127.0.0.1"),
        (&[], "host certificate without principals"),
        (
            &["-n", "127.0.0.1", "-O", "critical:x@example.org=1"],
            "host certificate with unknown critical option x@example.org",
        ),
    ] {
        let rig = rig(args);
        let line = "DIR/known_hosts:1";
        refused(
            &rig,
            &format!(
                "{why} (authority of {line}); host key not known (ssh-ed25519 HOST); no certificate by the authority of \
                 {line} vouches for it; ADVICE"
            ),
        );
        // As with ssh, the key in it counts as if it had been shown alone.
        trust(&rig, &format!("[127.0.0.1]:{} {}\n", rig.port, rig.host_key));
        works(&rig);
    }
}

#[test]
fn a_users_certificate_in_its_place_is_as_good_as_none() {
    let mut rig = Rig::new();
    write_key(&rig.path("ca"));
    // sshd itself shows no such certificate.
    sign(
        &rig,
        "ca",
        &["-I", "user", "-n", "127.0.0.1"],
        &rig.text("host_key.pub"),
    );
    rig.restart(&format!("HostCertificate {}", rig.text("host_key-cert.pub")));
    trust(&rig, "");
    let ran = rig.run(&["-w", "web1", "--", "true"]);
    assert_eq!(ran.status, 4, "{ran:?}");
}

#[test]
fn an_authority_that_is_not_known_for_the_host_vouches_for_nothing() {
    let rig = rig(NAMED);
    let other = public(&rig, "other");
    fs::write(rig.path("known_hosts"), format!("@cert-authority * {other}\n")).unwrap();
    refused(
        &rig,
        "host showed a certificate by an authority that is not known for it ({CA}); host key not known (ssh-ed25519 HOST); \
         no certificate by the authority of DIR/known_hosts:1 vouches for it; ADVICE",
    );
}

#[test]
fn a_revoked_authority_and_a_revoked_key_are_refused_although_the_key_is_known() {
    let rig = rig(NAMED);
    let known = format!("[127.0.0.1]:{} {}\n", rig.port, rig.host_key);
    for name in ["ca", "host_key"] {
        trust(&rig, &format!("{known}@revoked * {}\n", public(&rig, name)));
        refused(
            &rig,
            "host certificate revoked (DIR/known_hosts:3 names its key HOST or its authority {CA})",
        );
    }
}

#[test]
fn an_authority_signs_with_any_type_of_key_but_never_with_sha_1() {
    let mut rig = rig(NAMED);
    for key_type in [&["ecdsa"][..], &["ecdsa", "-b", "521"], &["rsa", "-b", "2048"]] {
        fs::remove_file(rig.path("ca")).unwrap();
        let made = Command::new("ssh-keygen")
            .args(["-q", "-N", "", "-f", &rig.text("ca"), "-t"])
            .args(key_type)
            .status();
        assert!(made.unwrap().success());
        certify(&rig, "ca", NAMED);
        let line = format!("HostCertificate {}", rig.text("host_key-cert.pub"));
        rig.restart(&line);
        trust(&rig, "");
        works(&rig);
    }
    certify(&rig, "ca", &[NAMED, &["-t", "ssh-rsa"]].concat());
    let line = format!(
        "CASignatureAlgorithms +ssh-rsa\nHostCertificate {}",
        rig.text("host_key-cert.pub")
    );
    rig.restart(&line);
    refused(
        &rig,
        "host showed a certificate signed with ssh-rsa, which is not supported; host key not known (ssh-ed25519 HOST); \
         no certificate by the authority of DIR/known_hosts:1 vouches for it; ADVICE",
    );
}

#[test]
fn every_type_of_host_key_may_have_a_certificate() {
    for key_type in [
        &["ecdsa"][..],
        &["ecdsa", "-b", "384"],
        &["ecdsa", "-b", "521"],
        &["rsa", "-b", "2048"],
    ] {
        let mut rig = rig(NAMED);
        let made = Command::new("ssh-keygen")
            .args(["-q", "-N", "", "-f", &rig.text("extra"), "-t"])
            .args(key_type)
            .status();
        assert!(made.unwrap().success());
        sign(
            &rig,
            "ca",
            &["-h", "-I", "extra", "-n", "127.0.0.1"],
            &rig.text("extra.pub"),
        );
        rig.restart(&format!(
            "HostKey {}\nHostCertificate {}",
            rig.text("extra"),
            rig.text("extra-cert.pub")
        ));
        works(&rig);
    }
}

#[test]
fn new_keys_in_mid_command_show_the_same_certificate() {
    let mut rig = rig(NAMED);
    rig.restart(&format!(
        "RekeyLimit 100K\nHostCertificate {}",
        rig.text("host_key-cert.pub")
    ));
    let ran = rig.run(&[
        "-w",
        "web1",
        "-N",
        "--",
        "head -c 1000000 /dev/zero | tr '\\0' x; echo",
    ]);
    assert_eq!(
        (ran.status, ran.stdout.len(), ran.stderr.as_str()),
        (0, 1_000_001, "")
    );
}

#[test]
fn what_authorities_may_sign_with_is_the_configurations_to_say() {
    let rig = rig(NAMED);
    rig.configure("CASignatureAlgorithms rsa-sha2-512,ecdsa-sha2-*");
    refused(
        &rig,
        "host certificate signed with ssh-ed25519, which CASignatureAlgorithms leaves out (authority of \
         DIR/known_hosts:1); host key not known (ssh-ed25519 HOST); no certificate by the authority of \
         DIR/known_hosts:1 vouches for it; ADVICE",
    );
    rig.configure("CASignatureAlgorithms -rsa-*");
    works(&rig);
}

#[test]
fn what_a_key_revocation_list_names_is_refused_and_its_other_hosts_are_not() {
    let rig = rig(&["-n", "127.0.0.1", "-z", "7"]);
    rig.configure(&format!("RevokedHostKeys {}", rig.text("krl")));
    let list = |lines: &str| {
        fs::write(rig.path("spec"), lines).unwrap();
        let keygen = Command::new("ssh-keygen")
            .args(["-q", "-k", "-f", &rig.text("krl"), "-s", &rig.text("ca.pub")])
            .arg(rig.path("spec"))
            .status();
        assert!(keygen.unwrap().success());
    };
    list("serial: 8-1000\nid: another\n");
    works(&rig);
    list("serial: 1-7\n");
    refused(
        &rig,
        "host certificate revoked (RevokedHostKeys DIR/krl names its serial number 7)",
    );
    list("id: host\n");
    refused(
        &rig,
        "host certificate revoked (RevokedHostKeys DIR/krl names its key id \"host\")",
    );
    list(&format!("sha256: {}\n", public(&rig, "ca")));
    refused(
        &rig,
        "authority of the host certificate revoked (RevokedHostKeys DIR/krl names {CA})",
    );
    list(&format!("sha1: {}\n", public(&rig, "host_key")));
    refused(&rig, "host key revoked (RevokedHostKeys DIR/krl names HOST)");
}

#[test]
fn keys_that_are_on_a_list_of_revoked_ones_are_refused_and_so_is_everything_if_the_list_is_unreadable() {
    let rig = rig(NAMED);
    let known = format!("[127.0.0.1]:{} {}\n", rig.port, rig.host_key);
    rig.configure(&format!("RevokedHostKeys {}", rig.text("revoked")));
    let list = |content: &[u8]| fs::write(rig.path("revoked"), content).unwrap();
    list(format!("# none of ours\n{}\n", public(&rig, "other")).as_bytes());
    works(&rig);
    list(format!("{}\n", public(&rig, "ca")).as_bytes());
    refused(
        &rig,
        "authority of the host certificate revoked (RevokedHostKeys DIR/revoked names {CA})",
    );
    list(format!("{}\n", public(&rig, "host_key")).as_bytes());
    refused(&rig, "host key revoked (RevokedHostKeys DIR/revoked names HOST)");
    fs::write(rig.path("known_hosts"), &known).unwrap();
    refused(&rig, "host key revoked (RevokedHostKeys DIR/revoked names HOST)");
    list(b"SSHKRL\n\0\0\0\0\x01");
    refused(
        &rig,
        "host key can't be checked: RevokedHostKeys DIR/revoked: key revocation list that is cut short or damaged; \
         ssh-keygen -Q -l -f shows what is in one",
    );
    list(b"\nssh-ed25519 AAAA\n");
    refused(
        &rig,
        "host key can't be checked: RevokedHostKeys DIR/revoked: line 2 is no public key",
    );
    fs::remove_file(rig.path("revoked")).unwrap();
    refused(
        &rig,
        "host key can't be checked: RevokedHostKeys DIR/revoked: no such file",
    );
}
