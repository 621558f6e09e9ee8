//! Commands: their input, their output, how they end.

use bytes::Bytes;

use crate::servers::{Kind, Server};
use crate::told::{End, Stream, noise};
use crate::visit::Visit;
use crate::with_each_server;

/// Four windows of dropbear, and more than any server takes before it has opened the channel.
const INPUT: usize = 100_000;

with_each_server! {
    fn input_output_and_status_of_a_command_are_its_own(kind: Kind) {
        let server = Server::new(kind);
        let input = noise(INPUT);
        let told = Visit::new(&server).run("cat; echo trouble >&2; exit 7", &input);
        told.check(7, &input, b"trouble\n", || server.log());
    }

    fn a_command_that_was_killed_says_so(kind: Kind) {
        let server = Server::new(kind);
        let told = Visit::new(&server).run("echo before; kill -TERM $$", &Bytes::new());
        let end = match kind {
            Kind::OpenSsh | Kind::Dropbear | Kind::AsyncSsh | Kind::TinySsh => End::Signal("TERM".to_owned()),
            // Its classes have no message for it; the script says it as a shell does.
            Kind::Paramiko => End::Status(128 + 15),
        };
        assert_eq!(told.end, Some(end), "{told:?}\n{}", server.log());
        assert_eq!(told.stdout, Stream::of(b"before\n"));
    }
}
