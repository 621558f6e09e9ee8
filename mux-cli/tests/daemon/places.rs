//! Where the socket may be.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Output;

use crate::home::Home;
use crate::rig::wait_for;

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What a daemon says that is to listen in this runtime directory, and does not.
fn refused(home: &Home, runtime: &Path) -> String {
    let output = home
        .mux(&["daemon", "run"])
        .env_remove("MUX_SOCKET")
        .env("XDG_RUNTIME_DIR", runtime)
        .output()
        .unwrap();
    assert!(!output.status.success());
    words(&output)
}

#[test]
fn a_runtime_directory_that_others_may_change_is_refused() {
    let home = Home::new();
    let runtime = home.rig.path("runtime");
    fs::set_permissions(&runtime, fs::Permissions::from_mode(0o777)).unwrap();
    let said = refused(&home, &runtime);
    assert!(said.contains("others may write to it (mode 0777)"), "{said}");
    fs::set_permissions(&runtime, fs::Permissions::from_mode(0o700)).unwrap();
    symlink(&runtime, home.rig.path("link")).unwrap();
    let said = refused(&home, &home.rig.path("link"));
    assert!(said.contains("no directory, or a link"), "{said}");
    std::os::unix::fs::chown(&runtime, Some(65534), None).unwrap();
    let said = refused(&home, &runtime);
    assert!(said.contains("belongs to user 65534"), "{said}");
}

#[test]
fn a_directory_of_ours_that_others_may_change_is_refused() {
    let home = Home::new();
    let own = home.rig.path("runtime").join("mux");
    fs::create_dir(&own).unwrap();
    fs::set_permissions(&own, fs::Permissions::from_mode(0o722)).unwrap();
    let said = refused(&home, &home.rig.path("runtime"));
    assert!(said.contains("others may write to it (mode 0722)"), "{said}");
    // A client does not trust it either, and goes on by itself.
    let output = home
        .command(&["-v", "-w", "host", "true"])
        .env_remove("MUX_SOCKET")
        .output()
        .unwrap();
    assert!(output.status.success());
    assert!(
        words(&output).contains("without the daemon: socket"),
        "{}",
        words(&output)
    );
}

#[test]
fn the_socket_is_in_a_directory_of_its_own_and_the_users_alone() {
    let home = Home::new();
    let started = home
        .mux(&["daemon", "start"])
        .env_remove("MUX_SOCKET")
        .output()
        .unwrap();
    assert!(started.status.success(), "{}", words(&started));
    let own = home.rig.path("runtime").join("mux");
    assert_eq!(fs::metadata(&own).unwrap().permissions().mode() & 0o7777, 0o700);
    let sockets = || {
        let entries = fs::read_dir(&own).unwrap().map(|entry| entry.unwrap().path());
        entries
            .filter(|path| path.extension().is_some_and(|end| end == "sock"))
            .collect::<Vec<_>>()
    };
    assert_eq!(sockets().len(), 1);
    assert_eq!(
        fs::metadata(&sockets()[0]).unwrap().permissions().mode() & 0o7777,
        0o600
    );
    let stopped = home
        .mux(&["daemon", "stop"])
        .env_remove("MUX_SOCKET")
        .output()
        .unwrap();
    assert!(stopped.status.success(), "{}", words(&stopped));
    assert_eq!(sockets().len(), 0);
}

#[test]
fn a_path_of_a_hundred_bytes_is_the_longest() {
    let home = Home::new();
    let start = home.rig.text("");
    for (len, works) in [(100, true), (101, false)] {
        let socket = format!("{start}{}", "s".repeat(len - start.len()));
        assert_eq!(socket.len(), len);
        let mux = |words: &[&str]| home.mux(words).env("MUX_SOCKET", &socket).output().unwrap();
        let started = mux(&["daemon", "start"]);
        assert_eq!(started.status.success(), works, "{}", words(&started));
        match works {
            true => {
                let stopped = mux(&["daemon", "stop"]);
                assert!(stopped.status.success(), "{}", words(&stopped));
            }
            false => assert!(words(&started).contains("101 bytes"), "{}", words(&started)),
        }
    }
}

#[test]
fn another_user_is_refused_by_both_sides() {
    let mut home = Home::new();
    // Everything that only permissions of files keep from others is open.
    fs::set_permissions(home.rig.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    home.start(&[]);
    fs::set_permissions(home.socket(), fs::Permissions::from_mode(0o777)).unwrap();
    let own = tempfile::tempdir().unwrap();
    let program = own.path().join("mux");
    fs::copy(env!("CARGO_BIN_EXE_mux"), &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(own.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let as_nobody = |socket: &Path| {
        std::process::Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(&program)
            .args(["status"])
            .env("MUX_SOCKET", socket)
            .output()
            .expect("no setpriv: apt-get install util-linux")
    };
    let output = as_nobody(&home.socket());
    assert!(!output.status.success());
    assert!(words(&output).contains("belongs to user 0"), "{}", words(&output));
    // A client that does not look, either: nothing is said to it.
    let script = format!(
        "import os,socket\nos.setuid(65534)\ns=socket.socket(socket.AF_UNIX)\ns.connect({:?})\nprint(len(s.recv(100)))\n",
        home.socket()
    );
    let output = std::process::Command::new("python3")
        .args(["-c", &script])
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "0\n",
        "{}",
        words(&output)
    );
    wait_for("the daemon to say so", || {
        let log = fs::read_to_string(home.rig.path("daemon_log")).unwrap();
        log.contains("user 65534 is not ours")
    });
    home.connection(&[]);
}
