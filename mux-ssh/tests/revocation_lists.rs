//! Key revocation lists that `ssh-keygen -k` makes: what is found in them is what `ssh-keygen -Q` finds.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::process::Command;

use mux_ssh::keys::{Certificate, PublicKey};
use mux_ssh::known_hosts::RevokedKeys;

/// Keys `a` and `b`, authorities `ca` and `other`, and certificates.
struct Keys {
    dir: tempfile::TempDir,
}

/// Serial numbers that the certificates have: few and many, alone and in a row, on both sides of what fits a bitmap.
const SERIALS: [u64; 12] = [0, 1, 2, 6, 7, 8, 100, 101, 163, 5000, u64::MAX - 1, u64::MAX];

impl Keys {
    fn new() -> Self {
        let keys = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        for name in ["a", "b", "ca", "other"] {
            keys.keygen(&["-q", "-N", "", "-t", "ed25519", "-f", name]);
        }
        for authority in ["ca", "other"] {
            for serial in SERIALS {
                let (id, z) = (format!("{authority} {serial}"), serial.to_string());
                keys.keygen(&[
                    "-q", "-s", authority, "-h", "-I", &id, "-z", &z, "-n", "web1", "b.pub",
                ]);
                let file = |name: &str| keys.dir.path().join(name);
                fs::rename(file("b-cert.pub"), file(&format!("{authority}-{serial}"))).unwrap();
            }
        }
        keys
    }

    /// Whether it succeeds.
    fn keygen(&self, args: &[&str]) -> bool {
        let keygen = Command::new("ssh-keygen")
            .args(args)
            .current_dir(self.dir.path())
            .output();
        keygen
            .expect("no ssh-keygen: apt-get install openssh-client")
            .status
            .success()
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.dir.path().join(name)).unwrap()
    }

    fn line(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    /// Makes a list of these lines for one authority (empty: for all), and compares what it names.
    fn check(&self, authority: &str, lines: &str) {
        fs::write(self.dir.path().join("spec"), lines).unwrap();
        let authority = match authority {
            "" => "none".to_owned(),
            name => format!("{name}.pub"),
        };
        assert!(
            self.keygen(&["-q", "-k", "-f", "krl", "-s", &authority, "spec"]),
            "{lines}"
        );
        let list = RevokedKeys::parse(&self.read("krl")).unwrap();
        let mut named = 0;
        for name in ["a.pub", "b.pub", "ca.pub"] {
            let key = PublicKey::parse_line(&self.line(name)).unwrap().key;
            let theirs = !self.keygen(&["-Q", "-f", "krl", name]);
            assert_eq!(list.names(key.blob()), theirs, "{name}: {lines}");
            named += usize::from(theirs);
        }
        for authority in ["ca", "other"] {
            for serial in SERIALS {
                let name = format!("{authority}-{serial}");
                let certificate = Certificate::parse_line(&self.line(&name)).unwrap();
                let ours = list.names(certificate.key().blob())
                    || list.names(certificate.authority().blob())
                    || list.names_certificate(&certificate).is_some();
                let theirs = !self.keygen(&["-Q", "-f", "krl", &name]);
                assert_eq!(ours, theirs, "{name}: {lines}");
                named += usize::from(theirs);
            }
        }
        assert!(named > 0 || lines.is_empty(), "nothing is named: {lines}");
    }
}

#[test]
fn what_ssh_keygen_finds_in_its_lists_is_found_and_nothing_else() {
    let keys = Keys::new();
    let print = PublicKey::parse_line(&keys.line("a.pub"))
        .unwrap()
        .key
        .fingerprint_sha256();
    for name in ["a.pub", "ca.pub", "b.pub", "ca-7"] {
        for how in ["key", "sha1", "sha256"] {
            keys.check("ca", &format!("{how}: {}", keys.line(name)));
        }
    }
    keys.check("", &format!("hash: {print}\n"));
    for authority in ["ca", "other"] {
        for lines in [
            "serial: 7\n",
            "serial: 1\nserial: 8\nserial: 5000\n",
            "serial: 6-101\n",
            "serial: 18446744073709551615\n",
            "serial: 1\nserial: 3\nserial: 5\nserial: 7\nserial: 9\nserial: 100\nserial: 102\nserial: 163\n",
            "serial: 18446744073709551601\nserial: 18446744073709551603\nserial: 18446744073709551605\n\
             serial: 18446744073709551607\nserial: 18446744073709551614\n",
            "id: ca 7\nid: other 0\n",
        ] {
            if authority == "ca" || !lines.contains("184467440737095516015") {
                keys.check(authority, lines);
            }
        }
    }
    keys.check("", "id: ca 7\nid: other 5000\n");
    keys.check("", "");
}
