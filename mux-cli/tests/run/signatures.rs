//! What an RSA key signs with on a real sshd: what the configuration allows, also where the server would take more, and
//! whoever signs.

use std::fs;

use crate::rig::{Rig, wait_for};
use crate::user_certificates::{agent, make, sign_for_us};

/// A server that trusts the key and the authority `ca`, and writes down as what it is shown keys.
fn rig() -> Rig {
    let mut rig = Rig::new();
    crate::rig::write_key(&rig.path("ca"));
    make(&rig, "id", &["rsa", "-b", "2048"]);
    fs::copy(rig.path("id.pub"), rig.path("authorized_keys")).unwrap();
    rig.restart(&format!(
        "TrustedUserCAKeys {}\nLogLevel DEBUG2",
        rig.text("ca.pub")
    ));
    rig
}

/// One login, and the algorithm under which the key was shown.
#[track_caller]
fn check(rig: &Rig, config: &str, expected: &str) {
    rig.configure(config);
    let log = || fs::read_to_string(rig.path("sshd_log")).unwrap();
    let before = log().len();
    let ran = rig.run(&["-w", "web1", "--", "echo hello"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "web1: hello\n"), "{ran:?}");
    // What the server writes down at this level it writes to the command's standard error as well.
    assert!(!ran.stderr.contains("mux: "), "{}", ran.stderr);
    let shown = |log: &str| -> Vec<String> {
        let lines = log.lines().filter_map(|line| line.split_once(" pkalg "));
        lines
            .map(|(_, rest)| rest.split(' ').next().unwrap_or_default().to_owned())
            .collect()
    };
    wait_for("the server to say what it was shown", || {
        !shown(&log()[before..]).is_empty()
    });
    let log = log();
    let shown = shown(&log[before..]);
    assert!(
        shown.iter().all(|name| name == expected),
        "{config}: {shown:?} {}",
        &log[before..]
    );
}

#[test]
fn a_key_signs_with_what_is_allowed_and_not_with_the_best_that_the_server_takes() {
    let rig = rig();
    for algorithm in ["rsa-sha2-256", "rsa-sha2-512"] {
        check(&rig, &format!("PubkeyAcceptedAlgorithms {algorithm}"), algorithm);
    }
    check(&rig, "PubkeyAcceptedAlgorithms -rsa-sha2-512", "rsa-sha2-256");
    check(
        &rig,
        "PubkeyAcceptedAlgorithms rsa-sha2-256,rsa-sha2-512",
        "rsa-sha2-256",
    );
}

#[test]
fn so_does_one_in_an_agent() {
    let rig = rig();
    let _agent = agent(&rig, &[]);
    fs::remove_file(rig.path("id")).unwrap();
    for algorithm in ["rsa-sha2-256", "rsa-sha2-512"] {
        let config = format!(
            "IdentityAgent {}\nPubkeyAcceptedAlgorithms {algorithm}",
            rig.text("agent")
        );
        check(&rig, &config, algorithm);
    }
}

#[test]
fn so_does_one_with_a_certificate() {
    let rig = rig();
    sign_for_us(&rig, "id");
    fs::write(rig.path("authorized_keys"), "").unwrap();
    for algorithm in ["rsa-sha2-256", "rsa-sha2-512"] {
        let name = format!("{algorithm}-cert-v01@openssh.com");
        check(&rig, &format!("PubkeyAcceptedAlgorithms {name}"), &name);
    }
}
