//! `UpdateHostKeys` on a real sshd with several keys: which of them are written down, and when none is.

use std::fs;
use std::process::Command;

use crate::learning::known_hosts;
use crate::rig::{Rig, write_key};

/// A server with three keys, of which the first is known.
struct Server {
    rig: Rig,
    keys: tempfile::TempDir,
}

impl Server {
    fn new() -> Self {
        let keys = tempfile::tempdir().unwrap();
        for (name, key_type) in [("ecdsa", "ecdsa"), ("rsa", "rsa"), ("newer", "ecdsa")] {
            let path = keys.path().join(name);
            let bits = if key_type == "rsa" { "2048" } else { "256" };
            let keygen = Command::new("ssh-keygen")
                .args(["-q", "-N", "", "-t", key_type, "-b", bits, "-f"])
                .arg(path)
                .status();
            assert!(keygen.unwrap().success());
        }
        let rig = Rig::with(&host_keys(&keys, &["ecdsa", "rsa"]));
        rig.configure("UpdateHostKeys yes");
        Self { rig, keys }
    }

    /// From now on the server has these keys besides its first.
    fn has(&mut self, names: &[&str]) {
        self.rig.restart(&host_keys(&self.keys, names));
    }

    /// The lines of these keys of the server, sorted.
    fn lines(&self, names: &[&str]) -> String {
        let line = |name: &&str| {
            let key = match *name {
                "ed25519" => self.rig.host_key.clone(),
                name => {
                    let path = self.keys.path().join(name).with_extension("pub");
                    let line = fs::read_to_string(path).unwrap();
                    let words: Vec<&str> = line.split(' ').take(2).collect();
                    words.join(" ")
                }
            };
            format!("[127.0.0.1]:{} {key}\n", self.rig.port)
        };
        let mut lines: Vec<String> = names.iter().map(line).collect();
        lines.sort_unstable();
        lines.concat()
    }

    /// One run, after which these keys are known; what it said.
    fn check(&self, args: &[&str], known: &str) -> String {
        let ran = self
            .rig
            .run(&[args, &["-w", "web1", "--", "echo hello"]].concat());
        assert_eq!(
            (ran.status, ran.stdout.as_str()),
            (0, "web1: hello\n"),
            "{}",
            ran.stderr
        );
        assert_eq!(known_hosts(&self.rig), known, "{args:?}: {}", ran.stderr);
        ran.stderr
    }
}

fn host_keys(keys: &tempfile::TempDir, names: &[&str]) -> String {
    let dir = keys.path().display();
    let lines = names.iter().map(|name| format!("HostKey {dir}/{name}\n"));
    lines.collect()
}

#[test]
fn further_keys_that_the_host_proves_to_have_are_written_once() {
    let server = Server::new();
    let all = server.lines(&["ed25519", "ecdsa", "rsa"]);
    let said = server.check(&["-v"], &all);
    assert_eq!(
        said.matches("mux: web1: further host key written to DIR/known_hosts: ")
            .count(),
        2,
        "{said}"
    );
    assert_eq!(server.check(&[], &all), "");
    // The known key goes, and one of the others is as good.
    fs::write(server.rig.path("known_hosts"), server.lines(&["rsa"])).unwrap();
    server.check(&[], &all);
}

#[test]
fn several_hosts_of_one_name_write_each_key_once() {
    let server = Server::new();
    let args = ["-w", "web[1-8]", "-N", "-b", "--", "echo hello"];
    server.rig.check(&args, 0, "hello\n", "");
    assert_eq!(
        known_hosts(&server.rig),
        server.lines(&["ed25519", "ecdsa", "rsa"])
    );
}

#[test]
fn names_are_hashed_where_that_is_wanted() {
    let server = Server::new();
    let ran = server
        .rig
        .run(&["-o", "HashKnownHosts=yes", "-w", "web1", "--", "true"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    let text = known_hosts(&server.rig);
    assert_eq!(
        text.lines().filter(|line| line.starts_with("|1|")).count(),
        2,
        "{text}"
    );
    server.rig.check(&["-w", "web1", "--", "true"], 0, "", "");
    assert_eq!(known_hosts(&server.rig), text);
}

#[test]
fn nothing_is_written_where_it_is_not_wanted_or_the_lines_are_somebodys_own() {
    let server = Server::new();
    let one = server.lines(&["ed25519"]);
    assert_eq!(
        server
            .check(&["-v", "-o", "UpdateHostKeys=no"], &one)
            .matches("further")
            .count(),
        0
    );
    let said = server.check(&["-v", "-o", "UpdateHostKeys=ask"], &one);
    assert!(
        said.contains("web1: host keys not brought up to date: UpdateHostKeys is ask, and nobody is asked about them; -o UpdateHostKeys=yes takes them\n"),
        "{said}"
    );
    // Unset it is off, as the file is not the usual one.
    server.rig.configure("");
    server.check(&[], &one);
    server.rig.configure("UpdateHostKeys yes");
    let port = server.rig.port;
    let several = one.replace("[127.0.0.1]", &format!("[127.0.0.1]:{port},[127.0.0.2]"));
    fs::write(server.rig.path("known_hosts"), &several).unwrap();
    let said = server.check(&["-v"], &several);
    let why =
        "web1: host keys not brought up to date: DIR/known_hosts:1 has several names, patterns or a marker\n";
    assert!(said.contains(why), "{said}");
    let shared = format!("{one}web2 {}\n", server.rig.host_key);
    fs::write(server.rig.path("known_hosts"), &shared).unwrap();
    let said = server.check(&["-v"], &shared);
    let why =
        "web1: host keys not brought up to date: DIR/known_hosts:2 has one of them under another name\n";
    assert!(said.contains(why), "{said}");
}

#[test]
fn a_key_of_the_systems_file_or_a_first_contact_brings_no_others() {
    let server = Server::new();
    let one = server.lines(&["ed25519"]);
    fs::write(server.rig.path("global"), &one).unwrap();
    fs::remove_file(server.rig.path("known_hosts")).unwrap();
    let global = format!("GlobalKnownHostsFile={}", server.rig.text("global"));
    server.check(&["-o", &global], "");
    server.check(&["-o", "StrictHostKeyChecking=accept-new"], &one);
}

#[test]
fn a_host_whose_key_has_changed_brings_no_others() {
    let server = Server::new();
    let other = write_key(&server.rig.path("other"));
    server.rig.know(&other);
    let changed = known_hosts(&server.rig);
    server.check(&["-q", "-o", "StrictHostKeyChecking=no"], &changed);
}

#[test]
fn files_that_can_not_be_written_are_said_with_v_and_fail_nobody() {
    let server = Server::new();
    let one = server.lines(&["ed25519"]);
    let more = format!(
        "UserKnownHostsFile={}/none/known_hosts {}",
        server.rig.text("id"),
        server.rig.text("known_hosts")
    );
    let said = server.check(&["-v", "-o", &more], &one);
    assert!(
        said.contains("web1: host key not written: DIR/id/none/known_hosts: "),
        "{said}"
    );
}

/// One run of ssh with the configuration of the rig, that may write to known_hosts.
fn ssh(server: &Server, options: &[&str]) {
    let ssh = Command::new("ssh")
        .args(["-F", &server.rig.text("config")])
        .args(options)
        .args(["-o", "IdentitiesOnly=yes", "web1", "true"])
        .stdin(std::process::Stdio::null())
        .output();
    let output = ssh.expect("no ssh: apt-get install openssh-client");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn keys_that_the_host_has_no_more_go_once_it_has_proved_the_others_as_by_ssh() {
    let mut server = Server::new();
    // Another host's line under a key of its own, an odd one and a comment stay.
    let others = format!(
        "# mine\nweb9 {}\n@revoked web8 {}\n",
        write_key(&server.rig.path("web9")),
        write_key(&server.rig.path("web8"))
    );
    for (has, options) in [
        (&["ecdsa"] as &[&str], ["-v", "-o", "UpdateHostKeys=yes"]),
        (&["newer"], ["-v", "-o", "UpdateHostKeys=yes"]),
        (&[], ["-v", "-o", "UpdateHostKeys=yes"]),
        (&["newer"], ["-v", "-o", "UpdateHostKeys=no"]),
        (&["newer"], ["-v", "-o", "UpdateHostKeys=ask"]),
    ] {
        let before = server.lines(&["ed25519", "ecdsa", "rsa"]) + &others;
        server.has(has);
        let file = server.rig.path("known_hosts");
        fs::write(&file, &before).unwrap();
        ssh(&server, &options[1..]);
        let by_ssh = known_hosts(&server.rig);
        fs::write(&file, &before).unwrap();
        let said = server.check(&options, &by_ssh);
        assert!(fs::read_to_string(&file).unwrap().contains(&others), "{said}");
        let gone = before.lines().filter(|line| !by_ssh.contains(line)).count();
        assert_eq!(
            said.matches("mux: web1: host key removed from DIR/known_hosts, as the host has it no more: ")
                .count(),
            gone,
            "{said}"
        );
        if gone > 0 {
            let old = fs::read_to_string(server.rig.path("known_hosts.old")).unwrap();
            assert!(old.starts_with(&before), "{old}");
            // Nothing of it is left to be done.
            assert!(!server.check(&["-v"], &by_ssh).contains("host key"), "{has:?}");
        }
    }
}

#[test]
fn keys_under_other_names_or_in_other_files_stay_and_a_link_stays_one() {
    let mut server = Server::new();
    let [one, ecdsa] = [["ed25519"], ["ecdsa"]].map(|names| server.lines(&names));
    server.has(&[]);
    let path = server.rig.path("known_hosts");
    let other = ecdsa.replace(&format!("[127.0.0.1]:{}", server.rig.port), "web9");
    let shared = format!("{one}{ecdsa}{other}");
    fs::write(&path, &shared).unwrap();
    let mut sorted: Vec<&str> = shared.split_inclusive('\n').collect();
    sorted.sort_unstable();
    let said = server.check(&["-v"], &sorted.concat());
    let why =
        "web1: host keys not brought up to date: DIR/known_hosts:3 has one of them under another name\n";
    assert!(said.contains(why), "{said}");
    // A second file is never written to.
    fs::write(&path, &one).unwrap();
    fs::write(server.rig.path("more"), &ecdsa).unwrap();
    let files = format!(
        "UserKnownHostsFile={} {}",
        server.rig.text("known_hosts"),
        server.rig.text("more")
    );
    server.check(&["-o", &files], &one);
    assert_eq!(fs::read_to_string(server.rig.path("more")).unwrap(), ecdsa);
    fs::rename(&path, server.rig.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink("elsewhere", &path).unwrap();
    fs::write(&path, format!("{one}{ecdsa}")).unwrap();
    server.check(&[], &one);
    assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
}
