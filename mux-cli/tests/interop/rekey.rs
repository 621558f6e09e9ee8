//! New keys after every megabyte while a hundred go out and come back at the same time, asked for by us or by the
//! server. The servers that are missing there have a limit that nobody can set, or none.

use mux_ssh::transport::RekeyLimits;

use crate::servers::{Kind, Server};
use crate::told::noise;
use crate::visit::Visit;

const MIB: u64 = 1 << 20;
/// Each way.
const VOLUME: u64 = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AskedBy {
    Us,
    Server,
}

fn check(kind: Kind, asked_by: AskedBy) {
    let server = Server::for_volume(kind, (asked_by == AskedBy::Server).then_some(MIB));
    let input = noise(usize::try_from(VOLUME * MIB).unwrap());
    let mut visit = Visit::new(&server);
    if asked_by == AskedBy::Us {
        visit.config.rekey = RekeyLimits {
            bytes: MIB,
            ..RekeyLimits::default()
        };
    }
    let told = visit.run("cat", &input);
    told.check(0, &input, b"", || server.log());
    // The first one, and one for each megabyte of the direction that is ahead: at most the window, two megabytes, goes
    // out while one is under way.
    let exchanges = told.counters.key_exchanges;
    assert!(exchanges > VOLUME / 3, "{exchanges} key exchanges");
    std::fs::write(
        format!("/tmp/interop-{kind:?}-{asked_by:?}"),
        format!("{exchanges}"),
    )
    .unwrap();
}

#[test]
fn openssh_when_we_ask() {
    check(Kind::OpenSsh, AskedBy::Us);
}

#[test]
fn openssh_when_it_asks() {
    check(Kind::OpenSsh, AskedBy::Server);
}

#[test]
fn asyncssh_when_we_ask() {
    check(Kind::AsyncSsh, AskedBy::Us);
}

#[test]
fn asyncssh_when_it_asks() {
    check(Kind::AsyncSsh, AskedBy::Server);
}

#[test]
fn dropbear_when_we_ask() {
    check(Kind::Dropbear, AskedBy::Us);
}

#[test]
fn paramiko_when_we_ask() {
    check(Kind::Paramiko, AskedBy::Us);
}

#[test]
fn tinysshd_when_we_ask() {
    check(Kind::TinySsh, AskedBy::Us);
}
