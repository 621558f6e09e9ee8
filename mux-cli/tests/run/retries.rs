//! Hosts that are tried again, against a real server that is not always there.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::thread;

use crate::rig::{Rig, free_port};

/// A way to the server that hangs up on the first connections, as sshd does above MaxStartups.
fn flaky(rig: &Rig, hang_ups: usize) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, server) = (listener.local_addr().unwrap().port(), rig.port);
    thread::spawn(move || {
        for (number, client) in listener.incoming().enumerate() {
            let client = client.unwrap();
            if number < hang_ups {
                continue;
            }
            let server = TcpStream::connect(("127.0.0.1", server)).unwrap();
            carry(&client, &server);
            carry(&server, &client);
        }
    });
    port
}

fn carry(from: &TcpStream, to: &TcpStream) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Write);
    });
}

/// The arguments for a host behind this port whose key is known.
fn behind(rig: &Rig, port: u16) -> Vec<String> {
    let known = format!("[127.0.0.1]:{port} {}\n", rig.host_key);
    std::fs::write(rig.path("known_hosts"), known).unwrap();
    let words = ["-p", &port.to_string(), "-w", "web1", "--retries", "2"];
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn a_connection_that_is_closed_before_the_login_is_tried_again() {
    let rig = Rig::new();
    let mut args = behind(&rig, flaky(&rig, 2));
    args.extend(["--".to_owned(), "echo hello".to_owned()]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    rig.check(&args, 0, "web1: hello\n", "");
}

#[test]
fn those_that_are_too_many_for_one_server_come_back() {
    // Fewer than are let go at once, and no --retries.
    let rig = Rig::with("MaxStartups 4:100:4");
    let ran = rig.run(&["-w", "n[1-60]", "-b", "--", "echo hi"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.contains("n[1-60] (60)"), "{}", ran.stdout);
}

#[test]
fn tries_are_counted_where_somebody_asks_or_the_host_is_lost() {
    let rig = Rig::new();
    let port = free_port();
    let args = behind(&rig, port);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let stderr = format!(
        "ok=0 unreachable=1 in TIME\nunreachable: web1: tcp: connect to 127.0.0.1:{port}: connection refused\n\
         retried: web1: 2 times\n"
    );
    rig.check(&[&args, &["--", "true"][..]].concat(), 4, "", &stderr);
    let mut command = rig.command(&[&["--output", "jsonl"], &args[..], &["--", "true"]].concat());
    let stdout = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let host: serde_json::Value = serde_json::from_str(stdout.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&host["status"], &host["attempts"]),
        (&"unreachable".into(), &3.into())
    );
}
