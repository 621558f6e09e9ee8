//! Files and names: known_hosts, key files, ssh_config, host names on their way to a shell.

use std::io::ErrorKind;
use std::time::Duration;

use mux_ssh::config::{ConfigError, ConfigFiles, Facts, HostConfig, Local, Need, Problem, Resolver, Step};
use mux_ssh::keys::{KeyFile, KeyFileError, PrivateKey, PublicKey, Unsupported};
use mux_ssh::known_hosts::{BadLine, HostId, KnownHosts, MAX_BAD_LINES, Memo, Verdict};
use mux_ssh::server::key_file::{Seed, public_line};

use super::Run::Alone;
use super::harness::{OTHER, USER, thread_time};
use super::table_rows;

/// The user's key stands in for a host's here: which key it is does not matter.
fn key() -> &'static PublicKey {
    USER.public()
}

fn line() -> String {
    public_line(key())
}

fn other() -> String {
    public_line(OTHER.public())
}

/// What a file says about a host that shows [`key`], and how many of its lines can't be used.
#[track_caller]
fn says(file: impl AsRef<[u8]>, host: &str, expected: &str, bad: usize) {
    let hosts = KnownHosts::parse([("known_hosts", file.as_ref())]);
    assert_eq!(hosts.bad_lines(), bad);
    assert!(hosts.warnings().len() <= MAX_BAD_LINES);
    let (name, port) = host.rsplit_once('#').unwrap_or((host, "22"));
    let verdict = hosts.lookup(
        &mut Memo::default(),
        &HostId::new(name, port.parse().unwrap()),
        key(),
    );
    let word = match verdict {
        Verdict::Known(_) => "known",
        Verdict::Changed(_) => "changed",
        Verdict::Revoked(_) => "revoked",
        Verdict::Unknown { authority: None } => "unknown",
        Verdict::Unknown { authority: Some(_) } => "authority",
    };
    assert_eq!(word, expected, "{host}");
}

fn why(file: &str) -> BadLine {
    KnownHosts::parse([("known_hosts", file.as_bytes())]).warnings()[0].why
}

/// Ten times what it takes without optimisation.
#[track_caller]
fn within(limit: Duration, act: impl FnOnce()) {
    let before = thread_time();
    act();
    let took = thread_time() - before;
    assert!(took <= limit, "{took:?}");
}

/// The configuration of a host under one file, which includes itself under every other name.
fn resolve(file: &[u8], facts: &Facts) -> Result<HostConfig, ConfigError> {
    let mut resolver = Resolver::new(Local {
        home: "/home/me".to_owned(),
        user: "me".to_owned(),
        host: "here".to_owned(),
        files: ConfigFiles::Only("/f".to_owned()),
        ..Local::default()
    });
    loop {
        match resolver.resolve(facts)? {
            Step::Done(config) => return Ok(config),
            Step::Need(Need::File(path)) if path == "/none" => {
                resolver.supply_file(path, Err(ErrorKind::NotFound));
            }
            Step::Need(Need::File(path)) => resolver.supply_file(path, Ok(file)),
            Step::Need(Need::Glob(pattern)) => {
                resolver.supply_glob(pattern, vec!["/g/1".to_owned(), "/g/2".to_owned()]);
            }
            Step::Need(
                other @ (Need::Exec(_) | Need::Home(_) | Need::Addresses | Need::Version | Need::Lookup(_)),
            ) => resolver.decline(other),
        }
    }
}

fn host(name: &str) -> Facts {
    Facts {
        host: name.to_owned(),
        ..Facts::default()
    }
}

fn problem(file: &[u8], facts: &Facts) -> Option<Problem> {
    resolve(file, facts).err().map(|error| error.problem)
}

fn key_file() -> String {
    Seed::generate().unwrap().to_openssh().unwrap().to_string()
}

/// The middle lines of a key file, changed.
fn with_base64(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    use base64ct::{Base64, Encoding};
    let file = key_file();
    let body: String = file.lines().filter(|line| !line.starts_with('-')).collect();
    let mut bytes = Base64::decode_vec(&body).unwrap();
    change(&mut bytes);
    let body = Base64::encode_string(&bytes);
    format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{body}\n-----END OPENSSH PRIVATE KEY-----\n").into_bytes()
}

fn malformed(file: &[u8]) {
    let opened = PrivateKey::parse(file, None);
    assert!(
        matches!(
            opened,
            Err(KeyFileError::Malformed | KeyFileError::Unusable(_) | KeyFileError::Unsupported(_))
        ),
        "{:?}",
        opened.err()
    );
}

table_rows! { Files:

known_hosts_that_revoke, Forgery, "a revoked key that is listed as good as well, here, elsewhere, as an authority's" =>
    Alone(|| {
        let key = line();
        says(format!("web {key}\n@revoked * {key}\n"), "web", "revoked", 0);
        says(format!("@revoked web {key}\nweb {key}\n"), "web#2222", "revoked", 0);
        says(format!("@cert-authority * {key}\n@revoked * {key}\nweb {key}\n"), "web", "revoked", 0);
    });
known_hosts_of_another_key, Forgery, "another key for the host, for its port, by its hashed name, by a pattern" =>
    Alone(|| {
        let other = other();
        says(format!("web {other}\n"), "web", "changed", 0);
        says(format!("[web]:2222 {other}\n"), "web#2222", "changed", 0);
        says(format!("w* {other}\n"), "web", "changed", 0);
        let hashed = mux_ssh::known_hosts::format_entry(&HostId::new("web", 22), OTHER.public(), true).unwrap();
        says(hashed, "web", "changed", 0);
    });
known_hosts_of_an_authority, Id, "an authority for the host: it vouches for nothing by itself" =>
    Alone(|| says(format!("@cert-authority *.org {}\n", line()), "a.org", "authority", 0));
known_hosts_that_negate, Id, "a host that is left out by name" =>
    Alone(|| {
        says(format!("*,!web {}\n", line()), "web", "unknown", 0);
        says(format!("!web,* {}\n", line()), "web", "unknown", 0);
        says(format!("!web {}\n", line()), "db", "unknown", 0);
    });
known_hosts_with_ports, Id, "another port's key" =>
    Alone(|| {
        says(format!("[web]:2222 {}\n", line()), "web#2222", "known", 0);
        says(format!("[web]:2222 {}\n", line()), "web#2223", "unknown", 0);
        says(format!("[web]:2222 {}\n", line()), "web", "unknown", 0);
        says(format!("[web]:22222222 {}\n", line()), "web#2222", "unknown", 0);
    });
known_hosts_with_bad_lines, Type, "lines that can't be used among lines that can: skipped, and said why" =>
    Alone(|| {
        let good = format!("web {}\n", line());
        for (bad, reason) in [
            ("web", BadLine::MissingField),
            ("web ssh-ed25519", BadLine::MissingField),
            ("@sometimes web ssh-ed25519 AAAA", BadLine::Marker),
            ("web ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAA", BadLine::Base64),
            ("web ssh-ed25519 AAAA", BadLine::KeyBlob),
            ("web ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti", BadLine::KeyType),
        ] {
            assert_eq!(why(bad), reason, "{bad}");
            says(format!("{bad}\n{good}"), "web", "known", 1);
            says(format!("{good}{bad}"), "web", "known", 1);
        }
        for hashed in ["|1|x|y", "|1|", "|1|AAAA|AAAA"] {
            assert_eq!(why(&format!("{hashed} {}", line())), BadLine::HashedName, "{hashed}");
        }
    });
known_hosts_of_nothing_but_bad_lines, Flood, "100,000 bad lines: counted, and a hundred of them told" =>
    Alone(|| says("x\n".repeat(100_000), "web", "unknown", 100_000));
known_hosts_of_10_mib, Flood, "10 MiB of lines, hashed and not, of which the last is the host's" =>
    Alone(|| within(Duration::from_secs(20), || {
        let plain = format!("h* {}\n", other());
        let filler = plain.repeat(10 * 1024 * 1024 / plain.len());
        says(format!("{filler}web {}\n", line()), "web", "known", 0);
    }));
known_hosts_with_a_line_without_end, Length, "a line of 1 MiB, a name of 1 MiB, a file without a line end" =>
    Alone(|| {
        let long = "x".repeat(1 << 20);
        says(format!("web {} {long}\n", line()), "web", "known", 0);
        says(format!("{long} {}\nweb {}", line(), line()), "web", "known", 0);
        says(&long, "web", "unknown", 1);
    });
known_hosts_with_a_pattern_that_explodes, Flood, "a*a*a*…b: no exponential search" =>
    Alone(|| within(Duration::from_secs(2), || {
        let pattern = "a*".repeat(100);
        says(format!("{pattern}b {}\n", line()), &"a".repeat(250), "unknown", 0);
    }));
known_hosts_in_unusual_form, Harmless, "line ends of another system, tabs, blanks, upper case, zero bytes in a comment" =>
    Alone(|| {
        says(format!("  web\t{}  \r\n", line()), "web", "known", 0);
        says(format!("WEB {} a\0b\n", line()), "web", "known", 0);
        says(format!("# web\n\n\r\nweb,10.0.0.1 {}\n", line()), "10.0.0.1", "known", 0);
    });
known_hosts_in_another_order, Order, "the good line behind a changed one, in front of it, twice" =>
    Alone(|| {
        let (key, other) = (line(), other());
        says(format!("web {other}\nweb {key}\n"), "web", "known", 0);
        says(format!("web {key}\nweb {other}\n"), "web", "known", 0);
        says(format!("web {key}\nweb {key}\n"), "web", "known", 0);
    });

key_files_that_are_too_large, Length, "1 MiB and a byte; a line of 32 KiB of public key" =>
    Alone(|| {
        assert_eq!(KeyFile::parse(&vec![b'x'; (1 << 20) + 1]).err(), Some(KeyFileError::TooLarge));
        assert!(PublicKey::parse_line(&format!("{} {}", line(), "x".repeat(64 * 1024))).is_err());
    });
key_files_that_are_cut, Length, "a key file that ends after any line, and whose bytes end anywhere" =>
    Alone(|| {
        let file = key_file();
        let lines: Vec<&str> = file.lines().collect();
        for count in 0..lines.len() - 1 {
            malformed(lines[..count].join("\n").as_bytes());
        }
        for len in 0..160 {
            malformed(&with_base64(|bytes| bytes.truncate(len)));
        }
    });
key_files_that_were_changed, Forgery, "a key file with any of its bytes changed: another key is never taken for it" =>
    Alone(|| {
        for at in 0..230 {
            let file = with_base64(|bytes| if let Some(byte) = bytes.get_mut(at) { *byte ^= 1 });
            if let Ok(key) = PrivateKey::parse(&file, None) {
                // What is left: the comment, the check numbers, the public half with its private one.
                let signature = key.sign(mux_ssh::algorithms::SignatureAlgorithm::Ed25519, b"data").unwrap();
                key.public().verify(mux_ssh::algorithms::SignatureAlgorithm::Ed25519, b"data", &signature).unwrap();
            }
        }
    });
key_files_of_other_kinds, Type, "keys of PuTTY, DSA, no key at all, HTML" =>
    Alone(|| {
        let unsupported = |file: &str, kind| {
            assert_eq!(KeyFile::parse(file.as_bytes()).err(), Some(KeyFileError::Unsupported(kind)));
        };
        unsupported("PuTTY-User-Key-File-3: ssh-ed25519\n", Unsupported::Putty);
        unsupported("-----BEGIN DSA PRIVATE KEY-----\nAAAA\n", Unsupported::Dsa);
        for file in ["", "\n", "<html>", "-----BEGIN CERTIFICATE-----\nAAAA\n", "\0\0\0"] {
            assert_eq!(KeyFile::parse(file.as_bytes()).err(), Some(KeyFileError::Malformed), "{file}");
        }
    });
key_files_with_a_second_key, Order, "a second key behind the first: the first is taken, whole" =>
    Alone(|| {
        let (first, second) = (key_file(), key_file());
        let both = PrivateKey::parse(format!("{first}{second}").as_bytes(), None).unwrap();
        let alone = PrivateKey::parse(first.as_bytes(), None).unwrap();
        assert_eq!(both.public(), alone.public());
    });
key_files_in_unusual_form, Harmless, "line ends of another system, blank lines in front" =>
    Alone(|| {
        let file = key_file();
        assert!(PrivateKey::parse(file.replace('\n', "\r\n").as_bytes(), None).is_ok());
        assert!(PrivateKey::parse(format!("\n\n{file}\n\n").as_bytes(), None).is_ok());
    });

names_that_a_shell_would_obey, Id, "host names with metacharacters, control bytes, a dash in front, a zero byte" =>
    Alone(|| {
        for name in ["-oProxyCommand=x", "a;b", "a b", "a\nb", "a\0b", "$(id)", "`id`", "a|b", "a'b", "a\"b", "{a,b}", "a\u{1b}b", "a\\b"] {
            assert_eq!(problem(b"", &host(name)), Some(Problem::InvalidHostName(name.to_owned())), "{name}");
        }
    });
names_from_a_file_that_a_shell_would_obey, Id, "HostName with the same" =>
    Alone(|| {
        for name in ["-x", "a;b", "$(id)", "a|b", "%h;id"] {
            let file = format!("HostName {name}\n");
            assert!(problem(file.as_bytes(), &host("a")).is_some(), "{name}");
        }
    });
names_that_a_proxy_command_would_obey, Id, "host names and users in the tokens of a ProxyCommand, quoted or not: none gets as far as a shell" =>
    Alone(|| {
        for line in ["nc %h %p", "nc '%h' %p", "nc \"%h\" %p", "x %n", "x %r"] {
            let file = format!("ProxyCommand {line}\n");
            for name in ["-oProxyCommand=x", "a;b", "a b", "a\nb", "a\0b", "$(id)", "`id`", "a|b", "a'b", "a\"b", "a\u{1b}b", "a\\b"] {
                assert!(problem(file.as_bytes(), &host(name)).is_some(), "{line}: {name:?}");
                let user = Facts { user: Some(format!("{name};")), ..host("a") };
                assert!(problem(file.as_bytes(), &user).is_some(), "{line}: user {name:?}");
            }
        }
    });
jump_hosts_that_a_shell_would_obey, Id, "names and users of a ProxyJump with metacharacters, control bytes, a dash in front, a zero byte" =>
    Alone(|| {
        for stop in ["-oProxyCommand=x", "a;b", "$(id)", "`id`", "a|b", "-x@a", "a;b@c", "a\0b", "a\u{1b}b", "a,", ",a", "a,,b", "a:0", "a:70000", "[a", "%h;id"] {
            let file = format!("ProxyJump {stop}\n");
            assert!(problem(file.as_bytes(), &host("a")).is_some(), "{stop:?}");
        }
    });
users_that_a_shell_would_obey, Id, "users with metacharacters, a dash in front or behind a blank" =>
    Alone(|| {
        for user in ["-x", "a;b", "a -x", "a`id`", "a\nb", "a\0b", "a\\"] {
            let facts = Facts { user: Some(user.to_owned()), ..host("a") };
            assert!(problem(b"", &facts).is_some(), "{user:?}");
        }
    });
configurations_that_include_themselves, Flood, "a file that includes itself, by name and by pattern, twice in every line" =>
    Alone(|| within(Duration::from_secs(20), || {
        for file in ["Include /f\n", "Include /g/*\n", "Include /f /f\nInclude /g/* /g/*\n"] {
            assert!(problem(file.as_bytes(), &host("a")).is_some(), "{file}");
        }
    }));
configurations_without_end, Flood, "100,000 blocks with patterns, and one of 100,000 names" =>
    Alone(|| within(Duration::from_secs(20), || {
        let blocks = "Host a*a*a*b !c\n User x\n".repeat(100_000);
        assert_eq!(problem(blocks.as_bytes(), &host("aaa")), None);
        let names = format!("Host {}\n User x\n", "a*b ".repeat(100_000));
        assert_eq!(problem(names.as_bytes(), &host("aaa")), None);
    }));
configurations_that_are_none, Type, "bytes that are no text, open quotes, words that nobody knows" =>
    Alone(|| {
        assert_eq!(problem(b"User \xff\n", &host("a")), Some(Problem::NotUtf8));
        assert_eq!(problem(b"User \"x\n", &host("a")), Some(Problem::InvalidQuotes));
        assert_eq!(problem(b"Unheard of\n", &host("a")), Some(Problem::UnknownKeyword("unheard".to_owned())));
        assert!(problem(b"Port 70000\n", &host("a")).is_some());
        assert!(problem(b"\0\0\0\n", &host("a")).is_some());
    });
configurations_with_a_line_without_end, Length, "a value of 1 MiB" =>
    Alone(|| {
        let long = "x".repeat(1 << 20);
        assert_eq!(problem(format!("Host {long}\n User y\n").as_bytes(), &host("a")), None);
        within(Duration::from_secs(20), || drop(problem(format!("HostName {long}\n").as_bytes(), &host("a"))));
    });
}
