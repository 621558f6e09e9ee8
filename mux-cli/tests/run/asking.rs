//! `StrictHostKeyChecking` in all its forms, on a real sshd and, where somebody is asked, on a terminal.

use std::fs;
use std::time::Duration;

use crate::keys::detached;
use crate::learning::{Asked, fingerprint, known_hosts, rig, written};
use crate::rig::{Rig, read_until, wait_for, write_key};

const ASK: [&str; 2] = ["-o", "StrictHostKeyChecking=ask"];

fn ask(rig: &Rig, args: &[&str]) -> Asked {
    Asked::new(rig, &["run"], &[&ASK, args].concat())
}

#[test]
fn unknown_hosts_are_asked_about_once_and_all_go_on() {
    let rig = rig();
    let mut asked = ask(&rig, &["-q", "-b", "-w", "web[1-4]", "--", "echo hello"]);
    assert_eq!(
        asked.question,
        format!(
            "The host key of web[1-4] is not known: ssh-ed25519 {}\r\n\
             Connect, and write it down (yes/no/[fingerprint])? ",
            fingerprint(&rig.host_key)
        )
    );
    asked.types("yes\n");
    let said = "yes\r\n---------------\r\nweb[1-4] (4)\r\n---------------\r\nhello\r\n";
    assert_eq!(asked.ends(), (said.to_owned(), 0));
    assert_eq!(
        known_hosts(&rig),
        written(&rig, &["web1", "web2", "web3", "web4"])
    );
    rig.check(
        &["-N", "-w", "web[1-2]", "--", "echo hello"],
        0,
        "hello\nhello\n",
        "",
    );
}

#[test]
fn a_configuration_that_says_nothing_asks() {
    let rig = rig();
    let config = fs::read_to_string(rig.path("config")).unwrap();
    fs::write(
        rig.path("config"),
        config.replace("StrictHostKeyChecking yes", ""),
    )
    .unwrap();
    let mut asked = Asked::new(&rig, &["run"], &["-q", "-w", "web1", "--", "true"]);
    asked.types("yes\n");
    assert_eq!(asked.ends().1, 0);
    assert_eq!(known_hosts(&rig), written(&rig, &["web1"]));
}

#[test]
fn different_keys_are_listed_with_their_hosts() {
    let (rig, other) = (rig(), Rig::new());
    let config = fs::read_to_string(rig.path("config")).unwrap();
    fs::write(
        rig.path("config"),
        format!("Host db1\n  Port {}\n  HostKeyAlias db1\n{config}", other.port),
    )
    .unwrap();
    fs::copy(rig.path("authorized_keys"), other.path("authorized_keys")).unwrap();
    let mut asked = ask(&rig, &["-q", "-N", "-w", "web[1-2],db1", "--", "echo hello"]);
    assert_eq!(
        asked.question,
        format!(
            "The host keys of 3 hosts are not known:\r\n  web[1-2]: ssh-ed25519 {}\r\n  db1: ssh-ed25519 {}\r\n\
             Connect, and write them down (yes/no)? ",
            fingerprint(&rig.host_key),
            fingerprint(&other.host_key)
        )
    );
    asked.types("yes\n");
    assert_eq!(asked.ends(), ("yes\r\nhello\r\nhello\r\nhello\r\n".to_owned(), 0));
}

#[test]
fn while_one_host_is_asked_about_the_others_run_and_no_refuses_it_alone() {
    let rig = rig();
    fs::write(rig.path("known_hosts"), written(&rig, &["web1"])).unwrap();
    let command = format!("touch {}/$$.ran", rig.dir.path().display());
    let mut asked = ask(&rig, &["-w", "web[1-2]", "--", &command]);
    let ran = || {
        let files = fs::read_dir(rig.dir.path()).unwrap();
        files
            .filter(|file| {
                file.as_ref()
                    .unwrap()
                    .path()
                    .extension()
                    .is_some_and(|end| end == "ran")
            })
            .count()
    };
    wait_for("the host that is known", || ran() == 1);
    asked.types("no\n");
    let (said, status) = asked.ends();
    let failed = format!(
        "hostkey: web2: hostkey: host key not accepted (ssh-ed25519 {})\r\n",
        fingerprint(&rig.host_key)
    );
    assert!(said.contains(&failed), "{said}");
    assert_eq!((status, ran()), (4, 1));
    assert_eq!(known_hosts(&rig), written(&rig, &["web1"]));
}

#[test]
fn no_time_of_a_host_runs_while_somebody_thinks_and_the_server_may_hang_up() {
    let rig = Rig::with("LoginGraceTime 1");
    fs::remove_file(rig.path("known_hosts")).unwrap();
    let mut asked = ask(
        &rig,
        &["-q", "--connect-timeout", "1", "-w", "web1", "--", "echo hello"],
    );
    std::thread::sleep(Duration::from_secs(3));
    asked.types("yes\n");
    assert_eq!(asked.ends(), ("yes\r\nweb1: hello\r\n".to_owned(), 0));
}

#[test]
fn ctrl_c_at_the_question_ends_a_run_of_which_nothing_runs() {
    let rig = rig();
    let mut asked = ask(&rig, &["-w", "web[1-3]", "--", "true"]);
    asked.types("\x03");
    let (said, status) = asked.ends();
    assert!(
        said.contains("cancelled=3") && !said.contains("Ctrl-C again"),
        "{said}"
    );
    assert_eq!((status, known_hosts(&rig).as_str()), (130, ""));
}

#[test]
fn a_passphrase_and_a_host_key_are_asked_for_one_after_the_other() {
    let rig = rig();
    crate::keys::lock(&rig);
    let mut asked = ask(&rig, &["-q", "-N", "-w", "web[1-2]", "--", "echo hello"]);
    asked.types("yes\n");
    read_until(&mut asked.screen, "id': ");
    asked.types("secret\n");
    let (said, status) = asked.ends();
    assert_eq!((said.as_str(), status), ("\r\nhello\r\nhello\r\n", 0));
}

#[test]
fn where_nobody_can_be_asked_unknown_hosts_are_refused() {
    let rig = rig();
    let stderr = format!(
        "ok=0 hostkey=1 in TIME\nhostkey: web1: hostkey: host key not known (ssh-ed25519 {}); to look at it and keep it: \
         mux hosts learn web1; to take it as it is: -o StrictHostKeyChecking=accept-new\n",
        fingerprint(&rig.host_key)
    );
    let args = ["-w", "web1", "--", "true"];
    let ran = rig.finish(
        detached(&rig.command(&[&ASK, &args as &[&str]].concat()))
            .output()
            .unwrap(),
    );
    assert_eq!((ran.status, ran.stderr.as_str()), (4, stderr.as_str()));
    let batch = ["-o", "BatchMode=yes"];
    rig.check(&[&ASK, &batch, &args as &[&str]].concat(), 4, "", &stderr);
    assert_eq!(known_hosts(&rig), "");
}

#[test]
fn without_checking_new_keys_are_written_and_changed_ones_are_said_and_let_through() {
    let rig = rig();
    for word in ["no", "off"] {
        let option = format!("StrictHostKeyChecking={word}");
        let args = ["-o", &option, "-w", "web1", "--", "echo hello"];
        rig.check(&args, 0, "web1: hello\n", "");
        assert_eq!(known_hosts(&rig), written(&rig, &["web1"]));
        let other = write_key(&rig.path("other"));
        let changed = format!("web1 {other}\n");
        fs::write(rig.path("known_hosts"), &changed).unwrap();
        let warning = format!(
            "mux: web1: host key changed (DIR/known_hosts:1 has {}, server sent {}); connecting all the same, without \
             passwords, answers to questions and agent forwarding; if you expect this: ssh-keygen -R web1 -f DIR/known_hosts\n",
            fingerprint(&other),
            fingerprint(&rig.host_key)
        );
        rig.check(&args, 0, "web1: hello\n", &warning);
        assert_eq!(known_hosts(&rig), changed);
        fs::write(
            rig.path("known_hosts"),
            format!("@revoked web1 {}\n", rig.host_key),
        )
        .unwrap();
        let revoked = format!(
            "ok=0 hostkey=1 in TIME\nhostkey: web1: hostkey: host key revoked (DIR/known_hosts:1 names {})\n",
            fingerprint(&rig.host_key)
        );
        rig.check(&args, 4, "", &revoked);
        fs::remove_file(rig.path("known_hosts")).unwrap();
    }
}

#[test]
fn a_host_that_is_known_by_another_type_of_key_in_several_files_says_so() {
    let rig = rig();
    let keys = tempfile::tempdir().unwrap();
    let path = keys.path().join("ecdsa");
    let keygen = std::process::Command::new("ssh-keygen")
        .args(["-q", "-N", "", "-t", "ecdsa", "-f"])
        .arg(&path)
        .status();
    assert!(keygen.unwrap().success());
    let line = fs::read_to_string(path.with_extension("pub")).unwrap();
    let ecdsa = fingerprint(&line);
    fs::write(rig.path("known_hosts"), format!("web1 {line}")).unwrap();
    fs::write(rig.path("more"), format!("# more\nweb1 {line}")).unwrap();
    let files = format!(
        "UserKnownHostsFile={} {}",
        rig.text("known_hosts"),
        rig.text("more")
    );
    let args = ["-o", &files, "-w", "web1", "--", "true"];
    let print = fingerprint(&rig.host_key);
    let known = format!(
        "DIR/known_hosts:1 has ecdsa-sha2-nistp256 {ecdsa}, DIR/more:2 has ecdsa-sha2-nistp256 {ecdsa}"
    );
    let stderr = format!(
        "ok=0 hostkey=1 in TIME\nhostkey: web1: hostkey: host known by keys of other types only, none of which it shows \
         ({known}, server sent ssh-ed25519 {print}); if you expect this: ssh-keygen -R web1 -f DIR/known_hosts; ssh-keygen -R web1 -f DIR/more\n"
    );
    let before = known_hosts(&rig);
    for policy in ["yes", "accept-new", "ask"] {
        let option = format!("StrictHostKeyChecking={policy}");
        rig.check(&[&["-o", &option], &args as &[&str]].concat(), 4, "", &stderr);
    }
    // Nobody is asked either, as by ssh: whoever is in the way chooses the type of key.
    let mut script = rig.typed(&rig.command(&args));
    let ran = rig.finish(script.output().unwrap());
    assert!(
        ran.status == 4 && ran.stdout.contains("host known by keys of other types only"),
        "{}",
        ran.stdout
    );
    let ran = rig.run(&[&["-o", "StrictHostKeyChecking=no"], &args as &[&str]].concat());
    assert!(
        ran.status == 0
            && ran
                .stderr
                .contains("; connecting all the same, without passwords"),
        "{}",
        ran.stderr
    );
    assert_eq!(known_hosts(&rig), before);
}

#[test]
fn of_many_names_of_one_server_as_it_comes_none_is_lost_behind_a_question() {
    let rig = Rig::with("MaxStartups 10:30:100");
    fs::remove_file(rig.path("known_hosts")).unwrap();
    let mut asked = ask(&rig, &["-q", "-N", "-w", "web[01-60]", "--", "echo hello"]);
    asked.types("yes\n");
    let (said, status) = asked.ends();
    assert_eq!((said.matches("hello\r\n").count(), status), (60, 0), "{said}");
}
