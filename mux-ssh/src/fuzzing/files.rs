//! Entry points for files and the agent.

use std::time::Instant;

use bytes::BytesMut;
use mux_proto::Protocol;

use crate::agent::AgentClient;
use crate::algorithms::SignatureAlgorithm;
use crate::config::{ConfigFiles, Facts, Local, Need, Resolver, Step};
use crate::keys::{Certificate, KeyFile, MAX_PRINCIPALS, PublicKey};
use crate::known_hosts::{HostId, KnownHosts, Memo, RevokedKeys, Verdict};

/// A public key that no input can guess by chance, and that parses.
const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti";

/// A certificate with the serial number 7.
const CERTIFICATE: &str = "ssh-ed25519-cert-v01@openssh.com AAAAIHNzaC1lZDI1NTE5LWNlcnQtdjAxQG9wZW5zc2guY29tAAAAIF7NVRGqctUibz9\
    OKu/DsW6DFRkMxhaW0Wwis1VNy2xTAAAAIK+2YX1q7uhAN1tpdzw4tPc/SUJlk2F2dY/Ljsvhe1spAAAAAAAAAAcAAAACAAAABHd\
    lYjEAAAAIAAAABHdlYjEAAAAAAAAAAP//////////AAAAAAAAAAAAAAAAAAAAMwAAAAtzc2gtZWQyNTUxOQAAACC/Hh7k1xXyhEQ\
    zY3xWbKkr+JDFLg+OM9qWTUIPBZLS9wAAAFMAAAALc3NoLWVkMjU1MTkAAABAmDvz1+45EmLXSH/j8+IKf2sAO31NVEJh6WvVBfd\
    V4mvi69zXoMX4bc5ZceUgwRov15dyuoTcvZ+1nkK2qe7IDg==";

fn key() -> PublicKey {
    PublicKey::parse_line(KEY).expect("a sound key").key
}

/// The input is a configuration that includes itself under every name; hosts are resolved against it.
pub fn ssh_config(data: &[u8]) {
    let (options, content) = data.split_first().unwrap_or((&0, data));
    let option = String::from_utf8_lossy(content.get(..usize::from(options % 16)).unwrap_or_default());
    let mut resolver = Resolver::new(Local {
        home: "/home/me".to_owned(),
        user: "me".to_owned(),
        host: "here.example.org".to_owned(),
        variables: [("HOME".to_owned(), "/home/me".to_owned())].into(),
        files: if options & 16 == 0 {
            ConfigFiles::Default
        } else {
            ConfigFiles::Only("/f".to_owned())
        },
        options: if option.is_empty() {
            Vec::new()
        } else {
            vec![option.into_owned()]
        },
        ..Local::default()
    });
    // Includes of one input: enough to nest, few enough to end.
    let mut files = 0;
    for host in ["web1", "a", "-x", "db.example.org"] {
        let facts = Facts {
            host: host.to_owned(),
            ..Facts::default()
        };
        while let Ok(Step::Need(need)) = resolver.resolve(&facts) {
            files += 1;
            match need {
                Need::File(path) if files <= 4 => resolver.supply_file(path, Ok(content)),
                Need::Glob(pattern) => {
                    resolver.supply_glob(pattern, vec!["/g/1".to_owned(), "/g/2".to_owned()])
                }
                Need::Exec(command) => resolver.supply_exec(command, Ok(true)),
                Need::Lookup(name) => resolver.supply_lookup(name, Some("web1.example.org".to_owned())),
                other @ (Need::File(_) | Need::Home(_) | Need::Addresses | Need::Version) => {
                    resolver.decline(other)
                }
            }
        }
        if let Ok(Step::Done(config)) = resolver.resolve(&facts) {
            let _offer = (
                config.algorithms(),
                config.signature_algorithms(),
                config.unknown_algorithms(),
            );
        }
    }
}

/// The input is a known_hosts file; a key that is not in it is looked up.
pub fn known_hosts(data: &[u8]) {
    let hosts = KnownHosts::parse([("fuzz", data)]);
    assert!(hosts.bad_lines() >= hosts.warnings().len());
    let mut memo = Memo::default();
    for host in [
        HostId::new("web1", 22),
        HostId::new("web1", 2222),
        HostId::alias("*"),
    ] {
        let first = hosts.lookup(&mut memo, &host, &key());
        assert_eq!(hosts.lookup(&mut memo, &host, &key()), first);
        let _types = hosts.key_types(&mut memo, &host);
        if let Verdict::Known(place) = first {
            assert!(place.line > 0);
        }
    }
}

/// The input is a key file, or a line of a `.pub` file, or a bare key blob.
pub fn key_file(data: &[u8]) {
    if let Ok(file) = KeyFile::parse(data) {
        // Opening an encrypted one takes its rounds, which is no decoding.
        if !file.is_encrypted() {
            let _opened = file.unlock(None).map(|key| {
                let algorithms = key.public().key_type().signature_algorithms();
                algorithms
                    .iter()
                    .map(|&algorithm| key.sign(algorithm, b"data"))
                    .collect::<Vec<_>>()
            });
        }
    }
    let _line = std::str::from_utf8(data).map(PublicKey::parse_line);
    let _blob = PublicKey::parse(data);
}

/// The input is a certificate, which stays what it is when its fields are looked at.
pub fn certificate(data: &[u8]) {
    let inside = Certificate::key_inside(data);
    if let Ok(certificate) = Certificate::parse(data) {
        assert_eq!(inside.as_ref(), Ok(certificate.key()));
        assert_eq!(certificate.blob(), data);
        assert!(certificate.principals().count() <= MAX_PRINCIPALS);
        for now in [0, 1_893_456_000, u64::MAX] {
            if let Err(refusal) = certificate.check_host("web1", now, SignatureAlgorithm::ALL) {
                let _words = refusal.to_string();
            }
        }
    }
    if let Err(error) = inside {
        let _words = error.to_string();
    }
    let _line = std::str::from_utf8(data).map(Certificate::parse_line);
}

/// The input is what a `RevokedHostKeys` file holds behind the first bytes of a binary one, and as it is.
pub fn revoked_keys(data: &[u8]) {
    let certificate = Certificate::parse_line(CERTIFICATE).expect("a sound certificate");
    for content in [data, &[b"SSHKRL\n\0\0\0\0\x01", data].concat()] {
        match RevokedKeys::parse(content) {
            Ok(list) => {
                let _named = list.names(certificate.key().blob());
                let _named = list.names_certificate(&certificate);
            }
            Err(error) => {
                let _words = error.to_string();
            }
        }
    }
}

/// The input is what an agent sends.
pub fn agent(now: Instant, data: &[u8]) {
    let mut client = AgentClient::new();
    client.request_identities();
    client.sign(key().blob(), SignatureAlgorithm::Ed25519, b"data");
    client.bind_session(key().blob(), b"session", b"signature");
    let mut input = BytesMut::new();
    for piece in data.chunks(7) {
        input.extend_from_slice(piece);
        let mut out = mux_proto::SendQueue::new();
        client.poll_transmit(now, &mut out);
        if client.handle_input(now, &mut input).is_err() {
            return;
        }
        while client.poll_event().is_some() {}
    }
    let _end = client.handle_eof(now);
}
