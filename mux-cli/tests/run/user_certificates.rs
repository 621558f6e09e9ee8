//! The user's certificates on a real sshd that trusts an authority and no key, security keys, and agents that sign for
//! one host only.

use std::fs;
use std::process::{Child, Command, Stdio};

use crate::keys::denied;
use crate::rig::{Ran, Rig, wait_for, write_key};

/// A server that lets in whom the authority `ca` has signed, and nobody else.
fn rig() -> Rig {
    let mut rig = Rig::new();
    write_key(&rig.path("ca"));
    fs::write(rig.path("authorized_keys"), "").unwrap();
    fs::write(rig.path("void"), "").unwrap();
    rig.restart(&format!(
        "TrustedUserCAKeys {}\nRevokedKeys {}\nAuthenticationMethods publickey\nPasswordAuthentication no\n\
         KbdInteractiveAuthentication no\nLogLevel VERBOSE",
        rig.text("ca.pub"),
        rig.text("void")
    ));
    rig
}

fn user() -> String {
    let user = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(user.stdout).unwrap().trim().to_owned()
}

/// Has the authority sign the public half in `NAME.pub`, with further arguments.
pub(crate) fn sign(rig: &Rig, name: &str, args: &[&str]) {
    let signed = Command::new("ssh-keygen")
        .args(["-q", "-s", &rig.text("ca"), "-I", name])
        .args(args)
        .arg(rig.path(&format!("{name}.pub")))
        .status();
    assert!(
        signed
            .expect("no ssh-keygen: apt-get install openssh-client")
            .success()
    );
}

pub(crate) fn sign_for_us(rig: &Rig, name: &str) {
    sign(rig, name, &["-n", &user()]);
}

pub(crate) fn make(rig: &Rig, name: &str, key_type: &[&str]) {
    let _old = fs::remove_file(rig.path(name));
    let made = Command::new("ssh-keygen")
        .args(["-q", "-N", "", "-f", &rig.text(name), "-t"])
        .args(key_type)
        .status();
    assert!(made.unwrap().success());
}

fn run(rig: &Rig) -> Ran {
    rig.run(&["-w", "web1", "--", "echo hello"])
}

fn works(rig: &Rig) {
    rig.check(&["-w", "web1", "--", "echo hello"], 0, "web1: hello\n", "");
}

fn refused(rig: &Rig, why: &str) {
    let ran = run(rig);
    assert_eq!((ran.status, ran.stderr), (4, denied(rig, why)));
}

/// What the server says about whom it has let in.
fn log(rig: &Rig) -> String {
    fs::read_to_string(rig.path("sshd_log")).unwrap()
}

#[test]
fn the_certificate_beside_a_key_of_any_type_logs_in() {
    let rig = rig();
    for key_type in [
        &["ed25519"][..],
        &["ecdsa", "-b", "256"],
        &["ecdsa", "-b", "384"],
        &["ecdsa", "-b", "521"],
        &["rsa", "-b", "2048"],
    ] {
        make(&rig, "id", key_type);
        sign_for_us(&rig, "id");
        works(&rig);
        // Again, with what was remembered: it signs without asking.
        works(&rig);
    }
    assert_eq!(log(&rig).matches("-CERT SHA256:").count(), 10, "{}", log(&rig));
    assert_eq!(log(&rig).matches("ssh2: RSA-CERT").count(), 2, "{}", log(&rig));
}

#[test]
fn a_certificate_that_the_configuration_names_goes_first_and_those_beside_keys_are_not_looked_for() {
    let rig = rig();
    write_key(&rig.path("other"));
    sign_for_us(&rig, "id");
    fs::rename(rig.path("id-cert.pub"), rig.path("named.pub")).unwrap();
    sign_for_us(&rig, "other");
    rig.configure(&format!(
        "CertificateFile {}\nIdentityFile {}",
        rig.text("named"),
        rig.text("other")
    ));
    works(&rig);
    assert!(log(&rig).contains("ID id (serial 0)"), "{}", log(&rig));
    assert!(!log(&rig).contains("ID other"), "{}", log(&rig));
    assert!(!log(&rig).contains("Failed publickey"), "{}", log(&rig));
}

#[test]
fn one_of_no_use_is_named_with_the_line_that_names_it() {
    let rig = rig();
    sign(&rig, "id", &["-h", "-n", "web1"]);
    rig.configure(&format!("CertificateFile {}", rig.text("id-cert.pub")));
    let why = "certificate of a host, not of a user";
    let ran = run(&rig);
    let expected = denied(&rig, &format!("DIR/id: not accepted; DIR/id-cert.pub: {why}"));
    let warning = format!("mux: DIR/config line 1: certificate DIR/id-cert.pub not used: {why}\n");
    assert_eq!((ran.status, ran.stderr), (4, warning + &expected));
    // Somebody else's: nothing here can sign for it.
    write_key(&rig.path("other"));
    sign_for_us(&rig, "other");
    rig.configure(&format!("CertificateFile {}", rig.text("other-cert.pub")));
    refused(
        &rig,
        "DIR/id: not accepted; DIR/other-cert.pub: no key that can sign for this certificate",
    );
}

#[test]
fn one_that_the_server_does_not_take_is_named_and_so_is_one_out_of_its_time() {
    let rig = rig();
    sign(&rig, "id", &["-n", "nobody-else"]);
    refused(&rig, "DIR/id: not accepted; DIR/id-cert.pub: not accepted");
    sign(&rig, "id", &["-n", &user(), "-V", "20200101:20210101"]);
    refused(
        &rig,
        "DIR/id: not accepted; DIR/id-cert.pub (certificate expired 2021-01-01 00:00 UTC): not accepted",
    );
    sign(&rig, "id", &["-n", &user(), "-V", "20900101:20910101"]);
    refused(
        &rig,
        "DIR/id: not accepted; DIR/id-cert.pub (certificate not valid before 2090-01-01 00:00 UTC): not accepted",
    );
    sign_for_us(&rig, "id");
    works(&rig);
    fs::copy(rig.path("ca.pub"), rig.path("void")).unwrap();
    // What worked last goes first.
    refused(&rig, "DIR/id-cert.pub: not accepted; DIR/id: not accepted");
}

#[test]
fn one_signed_with_sha_1_is_said_and_not_offered() {
    let rig = rig();
    make(&rig, "ca", &["rsa", "-b", "2048"]);
    sign(&rig, "id", &["-n", &user(), "-t", "ssh-rsa"]);
    let why = "certificate signed with ssh-rsa, which is not supported";
    let ran = run(&rig);
    assert!(
        ran.stderr
            .starts_with(&format!("mux: DIR/id-cert.pub not used: {why}\n")),
        "{ran:?}"
    );
}

#[test]
fn renewed_keys_and_certificates_are_read_anew_at_each_connection() {
    let rig = rig();
    sign_for_us(&rig, "id");
    write_key(&rig.path("id2"));
    sign_for_us(&rig, "id2");
    let moves = ["id", "id.pub", "id-cert.pub"].map(|name| {
        format!(
            "mv {} {}",
            rig.text(&name.replacen("id", "id2", 1)),
            rig.text(name)
        )
    });
    // The first host renews them, as an agent of an authority would; then the others come.
    let command = format!(
        "test -f {} && {{ {}; }}; true",
        rig.text("id2"),
        moves.join(" && ")
    );
    rig.check(&["-f", "1", "-w", "web[1-3]", "--", &command], 0, "", "");
    let log = log(&rig);
    let accepted: Vec<&str> = log
        .lines()
        .filter(|line| line.starts_with("Accepted publickey"))
        .collect();
    assert_eq!(accepted.len(), 3, "{log}");
    assert!(accepted[0].contains("ID id (serial"), "{log}");
    assert!(
        accepted[1].contains("ID id2 (serial") && accepted[2].contains("ID id2 (serial"),
        "{log}"
    );
}

pub(crate) struct Agent(Child);

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A real agent that holds `id`, added with these arguments.
pub(crate) fn agent(rig: &Rig, args: &[&str]) -> Agent {
    let socket = rig.path("agent");
    let agent = Command::new("ssh-agent")
        .args(["-D", "-a"])
        .arg(&socket)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let agent = Agent(agent);
    wait_for("the agent", || socket.exists());
    let add = Command::new("ssh-add")
        .arg("-q")
        .args(args)
        .arg(rig.path("id"))
        .env("SSH_AUTH_SOCK", &socket)
        .status();
    assert!(add.unwrap().success());
    agent
}

#[test]
fn a_certificate_in_the_agent_logs_in_without_any_file() {
    let rig = rig();
    sign_for_us(&rig, "id");
    let _agent = agent(&rig, &[]);
    for name in ["id", "id.pub", "id-cert.pub"] {
        fs::remove_file(rig.path(name)).unwrap();
    }
    rig.configure(&format!("IdentityAgent {}", rig.text("agent")));
    works(&rig);
    assert!(log(&rig).contains("ID id (serial 0)"), "{}", log(&rig));
}

#[test]
fn the_agent_signs_for_a_certificate_in_a_file() {
    let rig = rig();
    let _agent = agent(&rig, &[]);
    sign_for_us(&rig, "id");
    fs::remove_file(rig.path("id")).unwrap();
    for option in [
        "",
        "IdentitiesOnly yes",
        &format!("CertificateFile {}", rig.text("id-cert.pub")),
    ] {
        rig.configure(&format!("IdentityAgent {}\n{option}", rig.text("agent")));
        works(&rig);
    }
}

#[test]
fn a_locked_key_is_opened_once_for_itself_and_its_certificate() {
    let rig = rig();
    sign_for_us(&rig, "id");
    crate::keys::lock(&rig);
    let mut script = rig.on_terminal(&["-w", "web[1-3]", "-N", "-q", "--", "echo hello"]);
    let mut child = script.spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let asked = crate::rig::read_until(&mut stdout, "id': ");
    std::io::Write::write_all(&mut stdin, b"secret\n").unwrap();
    let rest = crate::rig::read_until(&mut stdout, "hello\r\nhello\r\nhello\r\n");
    assert_eq!((asked + &rest).matches("passphrase").count(), 1);
    drop(stdin);
    std::io::copy(&mut stdout, &mut std::io::sink()).unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_key_whose_public_half_is_locked_up_too_is_asked_for_before_it_is_offered() {
    let rig = crate::keys::keys_only();
    fs::remove_file(rig.path("id.pub")).unwrap();
    let keygen = Command::new("openssl")
        .args([
            "genpkey",
            "-algorithm",
            "EC",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-aes-256-cbc",
            "-pass",
            "pass:secret",
            "-out",
        ])
        .arg(rig.path("id"))
        .status();
    assert!(keygen.expect("no openssl: apt-get install openssl").success());
    fs::set_permissions(
        rig.path("id"),
        std::os::unix::fs::PermissionsExt::from_mode(0o600),
    )
    .unwrap();
    let public = Command::new("ssh-keygen")
        .args(["-y", "-P", "secret", "-f"])
        .arg(rig.path("id"))
        .output()
        .unwrap();
    assert!(public.status.success());
    fs::write(rig.path("authorized_keys"), public.stdout).unwrap();
    let mut script = rig.on_terminal(&["-w", "web[1-3]", "-N", "-q", "--", "echo hello"]);
    let mut child = script.spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let asked = crate::rig::read_until(&mut stdout, "id': ");
    std::io::Write::write_all(&mut stdin, b"secret\n").unwrap();
    let rest = crate::rig::read_until(&mut stdout, "hello\r\nhello\r\nhello\r\n");
    assert_eq!((asked + &rest).matches("passphrase").count(), 1);
    drop(stdin);
    std::io::copy(&mut stdout, &mut std::io::sink()).unwrap();
    assert!(child.wait().unwrap().success());
    // Where nobody may be asked, it is said how to do without.
    let why = "DIR/id: encrypted, its public half too; ssh-keygen -y -f DIR/id > DIR/id.pub writes it beside";
    let ran = rig.run(&["-o", "BatchMode=yes", "-w", "web1", "--", "true"]);
    let warning = "mux: DIR/config line 5: identity file DIR/id not used: needs a passphrase, and BatchMode forbids to ask\n";
    assert_eq!(
        (ran.status, ran.stderr),
        (4, format!("{warning}{}", denied(&rig, why)))
    );
}

#[test]
fn an_agent_signs_with_a_key_that_is_bound_to_a_host_for_that_host_only() {
    let rig = crate::keys::keys_only();
    fs::write(
        rig.path("hosts"),
        format!("good {}\nbad {}\n", rig.host_key, write_key(&rig.path("else"))),
    )
    .unwrap();
    let hosts = rig.text("hosts");
    for (host, works) in [("good", true), ("bad", false)] {
        let agent = agent(&rig, &["-H", &hosts, "-h", host]);
        rig.configure(&format!(
            "IdentityAgent {}\nIdentitiesOnly yes",
            rig.text("agent")
        ));
        fs::rename(rig.path("id"), rig.path("id.away")).unwrap();
        let ran = run(&rig);
        match works {
            true => assert_eq!((ran.status, ran.stdout.as_str()), (0, "web1: hello\n"), "{ran:?}"),
            // Once bound to this server's session, it does not even show the key.
            false => assert_eq!(ran.status, 4, "{ran:?}"),
        }
        fs::rename(rig.path("id.away"), rig.path("id")).unwrap();
        drop(agent);
        let _gone = fs::remove_file(rig.path("agent"));
    }
}

#[test]
fn keys_that_are_opened_here_are_given_to_the_agent_where_that_is_asked_for() {
    let rig = crate::keys::keys_only();
    let _agent = agent(&rig, &[]);
    let held = || {
        let list = Command::new("ssh-add")
            .arg("-l")
            .env("SSH_AUTH_SOCK", rig.path("agent"))
            .output()
            .unwrap();
        String::from_utf8(list.stdout).unwrap()
    };
    let empty = Command::new("ssh-add")
        .args(["-q", "-D"])
        .env("SSH_AUTH_SOCK", rig.path("agent"))
        .status();
    assert!(empty.unwrap().success());
    let key = fs::read_to_string(rig.path("id.pub")).unwrap();
    let print = mux_ssh::keys::PublicKey::parse_line(&key)
        .unwrap()
        .key
        .fingerprint_sha256();
    for (option, given) in [("no", false), ("ask", false), ("yes", true), ("yes", true)] {
        rig.configure(&format!(
            "IdentityAgent {}\nAddKeysToAgent {option}",
            rig.text("agent")
        ));
        works(&rig);
        assert_eq!(
            held().matches(&print).count(),
            usize::from(given),
            "{option}: {}",
            held()
        );
    }
    // It is the agent that signs from now on.
    fs::remove_file(rig.path("id")).unwrap();
    works(&rig);
}
