//! known_hosts against tables of lines.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use base64ct::{Base64, Encoding};
use bytes::BytesMut;

use super::*;
use crate::algorithms::KeyType;
use crate::keys::PublicKey;
use crate::wire::Writer;

/// The Ed25519 key whose bytes are all this number.
fn key(number: u8) -> PublicKey {
    let mut blob = BytesMut::new();
    Writer::new(&mut blob).string("ssh-ed25519").string([number; 32]);
    PublicKey::parse(&blob).unwrap()
}

/// `ssh-ed25519 base64` of [`key`].
fn line_of(number: u8) -> String {
    format!("ssh-ed25519 {}", Base64::encode_string(key(number).blob()))
}

/// Replaces `K1`, `K2`, … by keys.
fn file(text: &str) -> String {
    (1..=9).fold(text.to_owned(), |text, number| {
        // With the blank: a salt in base64 may well contain the letters.
        text.replace(&format!(" K{number}"), &format!(" {}", line_of(number)))
    })
}

/// A verdict in few words: `known 1`, `changed 1 3`, `revoked 2`, `unknown`, `unknown ca 4`.
fn words(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Known(place) => format!("known {}", place.line),
        Verdict::Revoked(place) => format!("revoked {}", place.line),
        Verdict::Changed(others) => others.iter().fold("changed".to_owned(), |text, other| {
            format!("{text} {}", other.place.line)
        }),
        Verdict::Unknown { authority: None } => "unknown".to_owned(),
        Verdict::Unknown {
            authority: Some(place),
        } => format!("unknown ca {}", place.line),
    }
}

/// Looks `host` (with `:port` if it is not 22) up, twice with the same memo.
fn check(text: &str, host: &str, number: u8, expected: &str) {
    let hosts = KnownHosts::parse([("known_hosts", file(text).as_bytes())]);
    assert_eq!(hosts.warnings(), [], "{text}");
    let (name, port) = host.rsplit_once('#').unwrap_or((host, "22"));
    let id = HostId::new(name, port.parse().unwrap());
    let mut memo = Memo::default();
    for round in ["first", "second"] {
        let verdict = hosts.lookup(&mut memo, &id, &key(number));
        assert_eq!(
            words(&verdict),
            expected,
            "{host} with key {number}, {round} time, in\n{text}"
        );
    }
}

#[test]
fn a_key_is_known_changed_or_unknown() {
    let text = "web1 K1\nweb1,10.0.0.1 K2 comment with words\n";
    check(text, "web1", 1, "known 1");
    check(text, "web1", 2, "known 2");
    check(text, "WEB1", 2, "known 2");
    check(text, "web1", 3, "changed 1 2");
    check(text, "10.0.0.1", 1, "changed 2");
    check(text, "web2", 1, "unknown");
}

#[test]
fn ports_have_lines_of_their_own_and_lines_without_one_vouch_for_all() {
    let text = "web1 K1\n[web1]:2222 K2\n";
    check(text, "web1", 2, "changed 1");
    check(text, "web1#2222", 2, "known 2");
    check(text, "web1#2222", 1, "changed 2");
    check(text, "web1#7", 1, "known 1");
    // Another service on another port is no changed key.
    check(text, "web1#7", 2, "unknown");
    check("@revoked web1 K1\nweb1 K2\n", "web1#7", 1, "revoked 1");
    check("[fe80::1]:22 K1\nfe80::1 K2\n", "fe80::1", 2, "known 2");
}

#[test]
fn patterns_and_negation_follow_openssh() {
    check("web* K1\n", "web7", 1, "known 1");
    check("WEB? K1\n", "web7", 1, "known 1");
    check("*,!db K1\n", "db", 1, "unknown");
    check("!db,* K1\n", "web", 1, "known 1");
    check("!db K1\n", "web", 1, "unknown");
    check("[*]:22?? K1\n", "web#2222", 1, "known 1");
    check("web K1\nw* K2\n", "web", 3, "changed 1 2");
    check(
        "a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b K1\n",
        &"a".repeat(250),
        1,
        "unknown",
    );
}

#[test]
fn a_revoked_key_is_refused_whatever_else_is_said_and_wherever() {
    check("web K1\n@revoked * K1\n", "web", 1, "revoked 2");
    check(
        "@revoked web K1\n@revoked web K2\nweb K2\n",
        "web",
        2,
        "revoked 2",
    );
    check("@revoked db K1\nweb K1\n", "web", 1, "known 2");
    // A revoked key is none that the host is known by.
    check("@revoked * K1\n", "web", 2, "unknown");
}

#[test]
fn authorities_are_kept_and_said_but_vouch_for_nothing() {
    check("@cert-authority *.org K1\n", "a.org", 1, "unknown ca 1");
    check("@cert-authority *.org K1\na.org K2\n", "a.org", 2, "known 2");
    check("@cert-authority *.org K1\na.org K2\n", "a.org", 1, "changed 2");
}

#[test]
fn hashed_names_are_found_and_verified() {
    let id = HostId::new("web1", 22);
    let lines: String = (1..=2)
        .map(|number| format_entry(&id, &key(number), true).unwrap())
        .collect();
    let other = format_entry(&HostId::new("web1", 2222), &key(3), true).unwrap();
    let text = format!("{lines}{other}");
    assert!(text.starts_with("|1|"), "{text}");
    check(&text, "web1", 1, "known 1");
    check(&text, "web1", 2, "known 2");
    check(&text, "web1", 3, "changed 1 2");
    check(&text, "web1#2222", 3, "known 3");
    check(&text, "web2", 1, "unknown");
    // From OpenSSH: ssh-keygen -H of a line for `web1`.
    let theirs = format!("|1|{} K1\n", OPENSSH_HASH_OF_WEB1);
    check(&theirs, "web1", 1, "known 1");
    check(&format!("@revoked {theirs}"), "web1", 1, "revoked 1");
}

const OPENSSH_HASH_OF_WEB1: &str = "F1/Vr/NqbplBgWHlQlyJdt/nzRs=|lZlSijBk2U/3EsQ4M+d3ZpeQONo=";

#[test]
fn a_memo_saves_the_scan_and_never_hides_what_files_say_now() {
    let id = HostId::new("web1", 22);
    let hashed = |number| format_entry(&id, &key(number), true).unwrap();
    let parse = |text: &str| KnownHosts::parse([("f", text.as_bytes())]);
    let look = |hosts: &KnownHosts, memo: &mut Memo, number| words(&hosts.lookup(memo, &id, &key(number)));
    let first = hashed(1);
    let mut memo = Memo::default();
    assert_eq!(look(&parse(&first), &mut memo, 1), "known 1");
    assert_eq!(memo.iter().count(), 1);
    // A second line for the host, written since.
    assert_eq!(
        look(&parse(&format!("{first}{}", hashed(2))), &mut memo, 2),
        "known 2"
    );
    // The line is gone.
    assert_eq!(look(&parse(""), &mut memo, 1), "unknown");
    assert_eq!(memo.iter().count(), 0);
    // What a scan did not find is looked for again in other files.
    assert_eq!(look(&parse(&first), &mut memo, 1), "known 1");
    // A line that revokes, hashed with a salt that the memo does not know.
    assert_eq!(
        look(&parse(&format!("{first}@revoked {}", hashed(1))), &mut memo, 1),
        "revoked 2"
    );
    // Salts that belong to another host.
    let salts = memo.iter().next().unwrap().1.to_vec();
    let mut lies = Memo::default();
    lies.remember("web2", salts);
    let verdict = parse(&first).lookup(&mut lies, &HostId::new("web2", 22), &key(1));
    assert_eq!(words(&verdict), "unknown");
}

#[test]
fn a_key_that_many_hosts_have_is_known_for_those_that_have_a_line() {
    let id = |number| HostId::new(&format!("clone{number}"), 22);
    let text: String = (0..100)
        .map(|number| format_entry(&id(number), &key(1), true).unwrap())
        .collect();
    let hosts = KnownHosts::parse([("f", text.as_bytes())]);
    let mut memo = Memo::default();
    // In the order of the file, against it, and again with what is remembered.
    for number in (0..100).chain((0..100).rev()).chain(0..100) {
        let verdict = hosts.lookup(&mut memo, &id(number), &key(1));
        assert_eq!(words(&verdict), format!("known {}", number + 1));
    }
    assert_eq!(words(&hosts.lookup(&mut memo, &id(100), &key(1))), "unknown");
    assert_eq!(words(&hosts.lookup(&mut memo, &id(7), &key(2))), "changed 8");
}

#[test]
fn a_key_that_one_salt_vouches_for_hides_no_other_line_of_the_host() {
    let id = HostId::new("web1", 22);
    let text: String = (1..=3)
        .map(|number| format_entry(&id, &key(number), true).unwrap())
        .collect();
    let hosts = KnownHosts::parse([("f", text.as_bytes())]);
    let mut memo = Memo::default();
    for number in [2, 1, 3] {
        let verdict = hosts.lookup(&mut memo, &id, &key(number));
        assert_eq!(words(&verdict), format!("known {number}"));
    }
    let mut memo = Memo::default();
    assert_eq!(words(&hosts.lookup(&mut memo, &id, &key(2))), "known 2");
    assert_eq!(words(&hosts.lookup(&mut memo, &id, &key(4))), "changed 1 2 3");
}

#[test]
fn a_line_that_is_found_leads_to_those_beside_it() {
    let line = |host: &str, number| format_entry(&HostId::new(host, 22), &key(number), true).unwrap();
    let text: String = (1..=4)
        .flat_map(|number| [line("web1", number), line("web2", number)])
        .collect();
    let far: String = (0..20).map(|number| line(&format!("db{number}"), 5)).collect();
    let text = format!("{}{far}{text}", line("web1", 9));
    let hosts = KnownHosts::parse([("f", text.as_bytes())]);
    let mut memo = Memo::default();
    let verdict = hosts.lookup(&mut memo, &HostId::new("web1", 22), &key(2));
    assert_eq!(words(&verdict), "known 24");
    assert_eq!(memo.salts("web1").map(<[Salt]>::len), Some(4));
    assert_eq!(memo.salts("web2"), None);
}

const ECDSA: &str = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBD+L4layKAdRqiskRvlTVJNr3/1S0T1x\
    UFB9LPAROOrPQE2NXLb4RD/uDnnSBqrTI+qKpeAjfHvVBqMMwok6D3A=";

#[test]
fn beyond_what_may_be_spent_the_type_of_most_hashed_lines_is_assumed() {
    let ecdsa = PublicKey::parse_line(ECDSA).unwrap().key;
    let id = |number| HostId::new(&format!("web{number}"), 22);
    let count = 1000;
    let mut text: String = (0..count)
        .map(|number| format_entry(&id(number), &ecdsa, true).unwrap())
        .collect();
    text.push_str(&format_entry(&HostId::new("other", 22), &key(1), true).unwrap());
    text.push_str(&file("plain K1\n"));
    let hosts = KnownHosts::parse([("f", text.as_bytes())]);
    let mut memo = Memo::default();
    let types = |memo: &mut Memo, host: &str| {
        let found = hosts.key_types(memo, &HostId::new(host, 22));
        (found.types, found.assumed)
    };
    assert_eq!(types(&mut memo, "other"), (vec![KeyType::Ed25519], false));
    assert_eq!(types(&mut memo, "nobody"), (vec![], false));
    let found: Vec<bool> = (0..count)
        .map(|number| types(&mut memo, &format!("web{number}")))
        .map(|(types, assumed)| {
            assert_eq!(types, [KeyType::EcdsaNistp256]);
            assumed
        })
        .collect();
    // Some were looked for, not so many that it would be felt, and what is known stays known.
    assert_eq!(found.first(), Some(&false));
    let looked_for = found.iter().filter(|assumed| !**assumed).count();
    assert!(
        looked_for * text.lines().count() <= super::memo::MAX_AHEAD,
        "{looked_for}"
    );
    assert_eq!(found.last(), Some(&true));
    assert_eq!(types(&mut memo, "other"), (vec![KeyType::Ed25519], false));
    assert_eq!(types(&mut memo, "plain"), (vec![KeyType::Ed25519], false));
    assert_eq!(types(&mut memo, "stranger"), (vec![KeyType::EcdsaNistp256], true));
    // A verdict looks at everything, whatever was spent.
    assert_eq!(words(&hosts.lookup(&mut memo, &id(999), &key(1))), "changed 1000");
    assert_eq!(
        words(&hosts.lookup(&mut memo, &HostId::new("stranger", 22), &key(1))),
        "unknown"
    );
    assert_eq!(types(&mut memo, "stranger"), (vec![], false));
}

#[test]
fn a_salt_is_written_as_it_is_read() {
    let salt = Salt(std::array::from_fn(|at| u8::try_from(at).unwrap() * 7));
    assert_eq!(Salt::parse(&salt.to_string()), Some(salt));
    assert_eq!(Salt::parse("AAAA"), None);
    assert_eq!(Salt::parse("!"), None);
}

#[test]
fn key_types_are_those_of_the_host_in_order() {
    let ecdsa = ECDSA;
    let text = file(&format!(
        "a {ecdsa}\na K1\na K2\n@revoked b K1\n@cert-authority b K2\nb {ecdsa}\n[c]:7 K1\nc {ecdsa}\n"
    ));
    let hosts = KnownHosts::parse([("f", text.as_bytes())]);
    let types = |host, port| {
        let found = hosts.key_types(&mut Memo::default(), &HostId::new(host, port));
        assert!(!found.assumed);
        found.types
    };
    assert_eq!(types("a", 22), [KeyType::EcdsaNistp256, KeyType::Ed25519]);
    assert_eq!(types("b", 22), [KeyType::EcdsaNistp256]);
    assert_eq!(types("c", 7), [KeyType::Ed25519]);
    assert_eq!(types("c", 8), [KeyType::EcdsaNistp256]);
    assert_eq!(types("d", 22), []);
}

#[test]
fn a_key_of_a_type_that_cannot_be_verified_still_makes_another_one_a_change() {
    check("web ssh-dss AAAAB3NzaC1kc3MAAAAA\n", "web", 1, "changed 1");
}

#[test]
fn bad_lines_are_skipped_and_said() {
    for (line, why) in [
        ("web", BadLine::MissingField),
        ("web ssh-ed25519", BadLine::MissingField),
        ("@revoked web ssh-ed25519", BadLine::MissingField),
        ("@other web K1", BadLine::Marker),
        ("web ssh-ed25519 AAA", BadLine::Base64),
        ("web ssh-ed25519 !!!!", BadLine::Base64),
        ("web ssh-ed25519 AAAA", BadLine::KeyBlob),
        ("web ssh-ed25519 AAAAFAAA", BadLine::KeyBlob),
        ("web ssh-rsa K1", BadLine::Base64),
        ("web 1024 35 123456789", BadLine::Protocol1),
        ("|1|AAAA|BBBB K1", BadLine::HashedName),
        ("|2|x K1", BadLine::HashedName),
        ("web \u{fffd} K1", BadLine::Base64),
    ] {
        let text = file(&format!("# comment\n\n{line}\r\nweb K2\n"));
        let hosts = KnownHosts::parse([("f", text.as_bytes())]);
        let place = Place {
            file: "f".into(),
            line: 3,
        };
        assert_eq!(hosts.warnings(), [Warning { place, why }], "{line}");
        // The line after it counts.
        let verdict = hosts.lookup(&mut Memo::default(), &HostId::new("web", 22), &key(2));
        assert_eq!(words(&verdict), "known 4", "{line}");
    }
    let text = file("web K1\n").replace("ssh-ed25519 A", "ssh-rsa A");
    let hosts = KnownHosts::parse([("f", text.as_bytes())]);
    assert_eq!(hosts.warnings().first().unwrap().why, BadLine::KeyType);
    assert_eq!(
        hosts.warnings().first().unwrap().to_string(),
        "f:1: key is of another type than the line says; line skipped"
    );
}

#[test]
fn several_files_are_searched_in_order_and_named() {
    let (one, two) = (file("web K1\n"), file("\nweb K2\n"));
    let hosts = KnownHosts::parse([("one", one.as_bytes()), ("two", two.as_bytes())]);
    let look = |number| hosts.lookup(&mut Memo::default(), &HostId::new("web", 22), &key(number));
    let place = Place {
        file: "two".into(),
        line: 2,
    };
    assert_eq!(look(2), Verdict::Known(place.clone()));
    assert_eq!(place.to_string(), "two:2");
    let Verdict::Changed(others) = look(3) else {
        panic!("not changed")
    };
    assert_eq!(others.len(), 2);
    assert_eq!(others.first().unwrap().fingerprint, key(1).fingerprint_sha256());
}

#[test]
fn an_alias_stands_for_itself() {
    let text = file("alias K1\n");
    let hosts = KnownHosts::parse([("f", text.as_bytes())]);
    let verdict = hosts.lookup(&mut Memo::default(), &HostId::alias("Alias"), &key(1));
    assert_eq!(words(&verdict), "known 1");
    assert_eq!(HostId::alias("x").name(), "x");
    assert_eq!(HostId::new("X", 2222).name(), "[x]:2222");
}

#[test]
fn what_is_written_is_read_back_plain_and_hashed() {
    for (hash, port) in [(false, 22), (true, 22), (false, 2222), (true, 2222)] {
        let id = HostId::new("Web1", port);
        let line = format_entry(&id, &key(4), hash).unwrap();
        assert!(line.ends_with('\n') && line.lines().count() == 1, "{line:?}");
        assert_eq!(line.contains("web1"), !hash, "{line:?}");
        let hosts = KnownHosts::parse([("f", line.as_bytes())]);
        assert_eq!(
            words(&hosts.lookup(&mut Memo::default(), &id, &key(4))),
            "known 1"
        );
    }
}

#[test]
fn a_key_that_was_just_added_is_known_at_once() {
    let mut hosts = KnownHosts::parse([]);
    let (id, mut memo) = (HostId::new("web", 22), Memo::default());
    assert_eq!(words(&hosts.lookup(&mut memo, &id, &key(1))), "unknown");
    hosts.add(
        &id,
        &key(1),
        Place {
            file: "f".into(),
            line: 1,
        },
    );
    assert_eq!(words(&hosts.lookup(&mut memo, &id, &key(1))), "known 1");
    assert_eq!(words(&hosts.lookup(&mut memo, &id, &key(2))), "changed 1");
}

#[test]
fn ten_megabytes_of_good_and_bad_lines_are_read_and_searched() {
    let good: String = (0..60_000)
        .map(|i| format!("host{i},10.{}.{}.1 K1\n", i / 256, i % 256))
        .collect();
    let bad = "broken line\n".repeat(300_000);
    let text = format!("{}{bad}{}", file(&good), file("last K2\n"));
    assert!(text.len() > 9 << 20, "{}", text.len());
    let hosts = KnownHosts::parse([("f", text.as_bytes())]);
    assert_eq!(
        (hosts.warnings().len(), hosts.bad_lines()),
        (MAX_BAD_LINES, 300_000)
    );
    let look =
        |host, number| words(&hosts.lookup(&mut Memo::default(), &HostId::new(host, 22), &key(number)));
    assert_eq!(look("host59999", 1), "known 60000");
    assert_eq!(look("last", 2), "known 360001");
    assert_eq!(look("nobody", 2), "unknown");
}

#[test]
fn nonsense_neither_panics_nor_makes_a_key_known() {
    let words = [
        "web",
        "K1",
        "ssh-ed25519",
        "@revoked",
        "@cert-authority",
        "|1|",
        "|",
        "*",
        "!",
        ",",
        "AAAA",
        "#",
        "\n",
        " ",
        "\t",
        "\u{0}",
        "ö",
        "=",
    ];
    let mut state = 1_u64;
    for round in 0..20_000 {
        let mut text = String::new();
        for _ in 0..16 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let index = usize::try_from(state >> 33).unwrap() % words.len();
            text.push_str(words.get(index).unwrap());
            text.push(' ');
        }
        let hosts = KnownHosts::parse([("f", file(&text).as_bytes())]);
        let verdict = hosts.lookup(&mut Memo::default(), &HostId::new("web", 22), &key(9));
        assert!(!matches!(verdict, Verdict::Known(_)), "round {round}: {text}");
    }
}

/// What [`KnownHosts::authority`] says about a certificate of key 1, signed by the key of seed 2.
fn authority(text: &str, host: &HostId) -> String {
    use crate::algorithms::SignatureAlgorithm;
    use crate::keys::draft::Draft;
    use crate::keys::{Certificate, PrivateKey};
    let signer = PrivateKey::from_ed25519_seed(&[2; 32]).unwrap();
    let signed = Draft::of_host(&["web1"]).sign(&key(1), &signer, SignatureAlgorithm::Ed25519);
    let certificate = Certificate::parse(&signed.unwrap()).unwrap();
    let ca = format!("ssh-ed25519 {}", Base64::encode_string(signer.public().blob()));
    let text = file(&text.replace("CA", &ca));
    let hosts = KnownHosts::parse([("known_hosts", text.as_bytes())]);
    assert_eq!(hosts.warnings(), [], "{text}");
    match hosts.authority(&mut Memo::default(), host, &certificate) {
        Authority::Trusted(place) => format!("trusted {}", place.line),
        Authority::Revoked(place) => format!("revoked {}", place.line),
        Authority::Unknown => "unknown".to_owned(),
    }
}

#[test]
fn an_authority_vouches_for_the_hosts_of_its_line() {
    let check = |text: &str, host: &str, port, expected: &str| {
        assert_eq!(authority(text, &HostId::new(host, port)), expected, "{text}");
    };
    let line = "# authorities\n@cert-authority *.example.org,!bad.example.org,web1 CA\n";
    check(line, "web1", 22, "trusted 2");
    check(line, "WEB1", 2222, "trusted 2");
    check(line, "a.example.org", 22, "trusted 2");
    check(line, "bad.example.org", 22, "unknown");
    check("@cert-authority [web1]:2222 CA\n", "web1", 2222, "trusted 1");
    check("@cert-authority [web1]:2222 CA\n", "web1", 22, "unknown");
    check("@cert-authority web1 K3\n", "web1", 22, "unknown");
    // It vouches by certificates only, and a key for itself only.
    check("web1 CA\nweb1 K1\n", "web1", 22, "unknown");
    let salt = Salt([7; 20]);
    let hashed = hashed::format(&salt, "web1");
    check(&format!("@cert-authority {hashed} CA\n"), "web1", 22, "trusted 1");
}

#[test]
fn a_revoked_authority_and_a_revoked_key_in_a_certificate_are_found() {
    let check = |text: &str, expected: &str| {
        assert_eq!(authority(text, &HostId::new("web1", 2222)), expected, "{text}");
    };
    check("@cert-authority * CA\n@revoked web1 CA\n", "revoked 2");
    check("@revoked * K1\n@cert-authority * CA\n", "revoked 1");
    check("@revoked web2 CA\n@cert-authority * CA\n", "trusted 2");
    let hashed = hashed::format(&Salt([7; 20]), "web1");
    check(
        &format!("@cert-authority * CA\n@revoked {hashed} CA\n"),
        "revoked 2",
    );
}

#[test]
fn whether_an_authority_may_vouch_is_known_before_the_host_is_asked() {
    let types = |text: &str, host: &str, port| {
        let hosts = KnownHosts::parse([("known_hosts", file(text).as_bytes())]);
        let known = hosts.key_types(&mut Memo::default(), &HostId::new(host, port));
        (known.types.len(), known.authority)
    };
    assert_eq!(types("@cert-authority *.org K1\n", "a.org", 22), (0, true));
    assert_eq!(
        types("@cert-authority *.org K1\na.org K2\n", "a.org", 2222),
        (1, true)
    );
    assert_eq!(
        types("@cert-authority *.org K1\n[a.org]:2222 K2\n", "a.org", 2222),
        (1, true)
    );
    assert_eq!(types("@cert-authority *.org K1\n", "a.com", 22), (0, false));
    assert_eq!(types("@revoked * K1\na.org K2\n", "a.org", 22), (1, false));
}

#[test]
fn a_certificate_has_to_name_the_host_without_its_port() {
    assert_eq!(HostId::new("Web1", 2222).principal(), "web1");
    assert_eq!(HostId::new("web1", 22).principal(), "web1");
    assert_eq!(HostId::alias("Alias").principal(), "alias");
}
