//! Keys that a server does not let in, alone and before one that it does.

use std::fs;
use std::path::Path;

use mux_ssh::Error;
use tempfile::TempDir;

use crate::servers::{Kind, Server};
use crate::visit::Visit;
use crate::with_each_server;

/// Tells whether, and how often, a command ran.
struct Marker(TempDir);

impl Marker {
    fn new() -> Self {
        Self(tempfile::Builder::new().prefix("mux-ran").tempdir().unwrap())
    }

    fn file(&self) -> std::path::PathBuf {
        Path::new(self.0.path()).join("ran")
    }

    fn command(&self) -> String {
        format!("echo ran >>{}", self.file().display())
    }

    fn times(&self) -> usize {
        fs::read_to_string(self.file()).map_or(0, |text| text.lines().count())
    }
}

/// Whether the key is sent with a signature, and the command with it, before the server has said that it knows it.
const EARLY: [bool; 2] = [true, false];

fn strangers(server: &Server, early: bool) -> Visit<'_> {
    Visit::new(server)
        .without_keys()
        .with_key("stranger", "ed25519", early)
}

with_each_server! {
    fn with_a_key_that_nobody_knows_nothing_runs(kind: Kind) {
        let server = Server::new(kind);
        for early in EARLY {
            let marker = Marker::new();
            let told = strangers(&server, early).run(&marker.command(), &"".into());
            let failed = matches!(told.error(), Some(Error::AuthFailed { partial: false, .. }));
            assert!(failed, "{told:?}\n{}", server.log());
            assert_eq!((told.accepted, marker.times()), (None, 0), "{told:?}");
        }
    }

    fn after_a_refused_key_the_right_one_logs_in_and_the_command_runs_once(kind: Kind) {
        let server = Server::new(kind);
        for early in EARLY {
            let marker = Marker::new();
            let told = strangers(&server, early)
                .with_key("user", "ed25519", false)
                .run(&marker.command(), &"".into());
            told.check(0, b"", b"", || server.log());
            assert_eq!(marker.times(), 1, "{told:?}");
            // A key that was asked about before costs no second connection anywhere.
            assert!(early || told.detours.is_empty(), "{told:?}");
        }
    }
}
