//! Certificates that hosts show: who they are for, how long, what they demand, who signed them and with what, and what
//! of that known_hosts admits.

use std::sync::Arc;

use bytes::Bytes;
use mux_ssh::algorithms::{KeyType, SignatureAlgorithm};
use mux_ssh::client::{ClientConfig, Event};
use mux_ssh::keys::{
    Certificate, CertificateError, CertificateRefusal, KeyBlobError, MAX_CERTIFICATE, MAX_PRINCIPALS,
    PrivateKey,
};
use mux_ssh::known_hosts::{Authority, HostId, KnownHosts, KrlError, Memo, RevokedKeys, UnreadableList};
use mux_ssh::message;
use mux_ssh::server::key_file::public_line;
use mux_ssh::server::{Act, Draft, Moment, Plan, Point};
use mux_ssh::transport::HostKey;
use mux_ssh::{Error, Violation};

use super::Run::{Alone, Servers};
use super::harness::{Case, End, HOST, OTHER, Pair, USER, drop_ref, payload};
use super::rekey::during_rekey;
use super::table_rows;

/// The user's key stands in for an authority's here: which key it is does not matter.
fn signed(draft: &Draft) -> Bytes {
    let host = HOST.host_key().unwrap();
    draft
        .sign(host.public(), &USER, SignatureAlgorithm::Ed25519)
        .unwrap()
}

fn of_web() -> Draft {
    Draft::of_host(&["web"])
}

/// What becomes of a certificate for `web`, shown at second 1,000.
fn says(change: impl FnOnce(&mut Draft)) -> Result<(), CertificateRefusal> {
    let mut draft = of_web();
    change(&mut draft);
    let certificate = Certificate::parse(&signed(&draft)).unwrap();
    certificate.check_host("web", 1000, SignatureAlgorithm::ALL)
}

fn is_none(blob: &[u8], error: CertificateError) {
    assert_eq!(Certificate::parse(blob), Err(error));
}

/// Signed with the right key under a name that is not taken: what stands behind the name is never looked at.
fn signed_with_sha_1() -> Bytes {
    let whole = signed(&of_web());
    // Length, length and name, length and 64 bytes of signature.
    let unsigned = &whole[..whole.len() - 87];
    let signature = payload(|w| drop_ref(w.string("ssh-rsa").string([7; 256])));
    [unsigned, &payload(|w| drop_ref(w.string(signature)))]
        .concat()
        .into()
}

/// What a file says about the one who signed a certificate of `web`.
#[track_caller]
fn file_says(file: &str, host: &HostId, expected: &str) {
    let hosts = KnownHosts::parse([("known_hosts", file.as_bytes())]);
    assert_eq!(hosts.bad_lines(), 0);
    let certificate = Certificate::parse(&signed(&of_web())).unwrap();
    let word = match hosts.authority(&mut Memo::default(), host, &certificate) {
        Authority::Trusted(_) => "trusted",
        Authority::Revoked(_) => "revoked",
        Authority::Unknown => "unknown",
    };
    assert_eq!(word, expected, "{file}");
}

fn web() -> HostId {
    HostId::new("web", 22)
}

/// A server that shows this in place of its key, and a client that asks for certificates.
fn shows(blob: &[u8]) -> Case {
    Case::good()
        .server(|config| config.host_keys = Arc::from([certified(blob)]))
        .client(asks)
}

fn certified(blob: &[u8]) -> HostKey {
    HOST.host_key().unwrap().with_certificate(blob)
}

fn asks(config: &mut ClientConfig) {
    config.known_authority = true;
    config.algorithms.set_kex("curve25519-sha256").unwrap();
}

/// A reply with this blob for a host key and a signature that is noise.
fn reply(blob: &[u8]) -> Case {
    let signature = payload(|w| drop_ref(w.string("ssh-ed25519").string([7; 64])));
    let reply = payload(|w| {
        drop_ref(
            w.byte(message::KEX_ECDH_REPLY)
                .string(blob)
                .string([9; 32])
                .string(signature),
        )
    });
    let plan = Plan::new().with(Point::Before(Moment::KexReply, 1), Act::Replace(reply));
    Case::new(plan)
        .server(|config| config.host_keys = Arc::from([certified(&signed(&of_web()))]))
        .client(asks)
}

/// The owner is told that there was a certificate, and that it can't be used.
fn told_that_it_is_none(pair: &mut Pair) {
    assert_eq!(shown(pair), (0, 1));
}

fn told_that_it_is_one(pair: &mut Pair) {
    assert_eq!(shown(pair), (1, 0));
}

fn not_asked(pair: &mut Pair) {
    assert_eq!(shown(pair), (0, 0));
}

/// Certificates that the owner was asked about: sound ones and others.
fn shown(pair: &mut Pair) -> (usize, usize) {
    let sound = |event: &Event| {
        matches!(
            event,
            Event::HostKey {
                certificate: Some(Ok(_)),
                ..
            }
        )
    };
    let other = |event: &Event| {
        matches!(
            event,
            Event::HostKey {
                certificate: Some(Err(_)),
                ..
            }
        )
    };
    (pair.seen.count(sound), pair.seen.count(other))
}

table_rows! { Kex:

certificates_out_of_their_time, Time, "a certificate that has expired, this second and long ago, and one of the future" =>
    Alone(|| {
        assert_eq!(says(|draft| draft.valid_before = 1000), Err(CertificateRefusal::Expired { since: 1000 }));
        assert_eq!(says(|draft| draft.valid_before = 0), Err(CertificateRefusal::Expired { since: 0 }));
        assert_eq!(says(|draft| draft.valid_after = 1001), Err(CertificateRefusal::NotYetValid { from: 1001 }));
        assert_eq!(says(|draft| (draft.valid_after, draft.valid_before) = (1000, 1001)), Ok(()));
    });
certificates_for_somebody_else, Id, "a certificate for other names, for part of the name, for nobody" =>
    Alone(|| {
        let names = |names: &'static [&str]| says(|draft| draft.principals = Draft::of_host(names).principals);
        let other = Err(CertificateRefusal::OtherHost("web".to_owned()));
        for wrong in [&["web1"][..], &["we"], &[""], &["web\0"], &["WEB"], &["web,*", "?"], &["!web"], &["web "]] {
            assert_eq!(names(wrong), other, "{wrong:?}");
        }
        assert_eq!(names(&[]), Err(CertificateRefusal::NoPrincipals));
        assert_eq!(names(&["db", "w*"]), Ok(()));
    });
certificates_with_a_pattern_that_explodes, Flood, "256 principals like a*a*a*…b: no exponential search" =>
    Alone(|| {
        let pattern = format!("{}b", "a*".repeat(100));
        let mut draft = Draft::of_host(&vec![pattern.as_str(); MAX_PRINCIPALS]);
        draft.kind = 2;
        let certificate = Certificate::parse(&signed(&draft)).unwrap();
        let host = "a".repeat(250);
        let refusal = certificate.check_host(&host, 1000, SignatureAlgorithm::ALL);
        assert_eq!(refusal, Err(CertificateRefusal::OtherHost(host)));
    });
a_certificate_of_a_user_shown_by_a_host, Type, "a user's certificate in place of a host's, and one of no kind" =>
    Alone(|| {
        assert_eq!(says(|draft| draft.kind = 1), Err(CertificateRefusal::NotOfHost));
        is_none(&signed(&Draft { kind: 0, ..of_web() }), CertificateError::Kind(0));
        is_none(&signed(&Draft { kind: u32::MAX, ..of_web() }), CertificateError::Kind(u32::MAX));
    });
a_certificate_with_an_unknown_critical_option, Type, "options that must be understood and are not" =>
    Alone(|| for option in ["force-command", "source-address", "", "x@example.org"] {
        let critical = |draft: &mut Draft| draft.critical.push(option.into());
        assert_eq!(says(critical), Err(CertificateRefusal::CriticalOption(option.to_owned())));
    });
a_certificate_signed_with_sha_1, Forgery, "an authority that signs with ssh-rsa, and with what nobody knows" =>
    Alone(|| is_none(&signed_with_sha_1(), CertificateError::SignatureAlgorithm("ssh-rsa".to_owned())));
a_certificate_signed_with_what_the_user_forbids, Type, "CASignatureAlgorithms without the one that was used" =>
    Alone(|| {
        let certificate = Certificate::parse(&signed(&of_web())).unwrap();
        let refusal = certificate.check_host("web", 1000, &[SignatureAlgorithm::RsaSha2_512]);
        assert_eq!(refusal, Err(CertificateRefusal::SignatureAlgorithm(SignatureAlgorithm::Ed25519)));
    });
a_certificate_signed_by_a_certificate, Order, "an authority that is itself certified: no chain is followed" =>
    Alone(|| {
        let draft = Draft { authority: Some(signed(&of_web())), ..of_web() };
        is_none(&signed(&draft), CertificateError::AuthorityIsCertificate);
    });
a_certificate_signed_by_somebody_else, Forgery, "the authority's name under another key's signature, or changed afterwards" =>
    Alone(|| {
        let other = Bytes::copy_from_slice(OTHER.public().blob());
        is_none(&signed(&Draft { authority: Some(other), ..of_web() }), CertificateError::Signature);
        let good = signed(&of_web());
        for at in 0..good.len() {
            let mut bad = good.to_vec();
            bad[at] ^= 1;
            assert!(Certificate::parse(&bad).is_err(), "{at}");
        }
    });
certificates_cut_and_too_long, Length, "a certificate that ends anywhere, 64 KiB and a byte, 257 principals" =>
    Alone(|| {
        let good = signed(&of_web());
        for len in 0..good.len() {
            is_none(&good[..len], CertificateError::Malformed);
        }
        is_none(&[&good[..], b"x"].concat(), CertificateError::Malformed);
        is_none(&vec![0; MAX_CERTIFICATE + 1], CertificateError::TooLarge);
        is_none(&signed(&Draft::of_host(&["web"; MAX_PRINCIPALS + 1])), CertificateError::TooManyPrincipals);
    });

authorities_for_some_hosts, Id, "an authority for other hosts, for all but this one, for another port" =>
    Alone(|| {
        let key = public_line(USER.public());
        file_says(&format!("@cert-authority w* {key}\n"), &web(), "trusted");
        file_says(&format!("@cert-authority web {key}\n"), &HostId::new("web", 2222), "trusted");
        file_says(&format!("@cert-authority [web]:2222 {key}\n"), &web(), "unknown");
        file_says(&format!("@cert-authority db,!web,* {key}\n"), &web(), "unknown");
        file_says(&format!("@cert-authority * {}\n", public_line(OTHER.public())), &web(), "unknown");
        file_says(&format!("web {key}\n"), &web(), "unknown");
    });
authorities_that_were_revoked, Forgery, "a revoked authority, and a revoked key in a certificate of a good one" =>
    Alone(|| {
        let key = public_line(USER.public());
        let trusted = format!("@cert-authority * {key}\n");
        file_says(&format!("{trusted}@revoked * {key}\n"), &web(), "revoked");
        file_says(&format!("@revoked web {key}\n{trusted}"), &HostId::new("web", 2222), "revoked");
        let host = public_line(HOST.host_key().unwrap().public());
        file_says(&format!("{trusted}@revoked * {host}\n"), &web(), "revoked");
        file_says(&format!("{trusted}@revoked db {key}\n"), &web(), "trusted");
    });
lists_of_revoked_keys, Type, "a list with keys, with options, with a bad line, and a binary one" =>
    Alone(|| {
        let (key, other) = (public_line(USER.public()), public_line(OTHER.public()));
        let list = RevokedKeys::parse(format!("# gone\n\n{key} me\r\ncert-authority {other}").as_bytes()).unwrap();
        assert!(list.names(USER.public().blob()) && list.names(OTHER.public().blob()));
        assert!(!list.names(HOST.host_key().unwrap().public().blob()));
        for bad in ["x", "ssh-ed25519", "ssh-ed25519 AAAA", "\0\0"] {
            let list = format!("{key}\n{bad}\n");
            assert_eq!(RevokedKeys::parse(list.as_bytes()), Err(UnreadableList::Line(2)), "{bad:?}");
        }
        let cut = RevokedKeys::parse(b"SSHKRL\n\0\0\0\0\x01");
        assert_eq!(cut, Err(UnreadableList::Krl(KrlError::Malformed(Violation::Truncated))));
    });

certificates_that_are_shown, Harmless, "sound certificates for keys of each type that a server can have" =>
    Servers(|| KeyType::ALL.iter().filter(|key_type| !key_type.is_security_key()).map(|&key_type| {
        let key = PrivateKey::generate(key_type).unwrap();
        let certificate = of_web().sign(key.public(), &USER, SignatureAlgorithm::Ed25519).unwrap();
        let host = HostKey::from(key).with_certificate(&certificate);
        Case::good()
            .server(|config| config.host_keys = Arc::from([host]))
            .client(asks)
            .also(told_that_it_is_one)
    }).collect());
certificates_that_nobody_asked_for, Harmless, "a server that has one, and a client that knows no authority: the plain key" =>
    Servers(|| vec![shows(&signed(&of_web())).client(|config| config.known_authority = false).also(not_asked)]);
certificates_that_can_not_be_used, Forgery, "a bad signature, a chain, SHA-1: as good as none, and the owner is told" =>
    Servers(|| {
        let chain = Draft { authority: Some(signed(&of_web())), ..of_web() };
        let other = Draft { authority: Some(Bytes::copy_from_slice(OTHER.public().blob())), ..of_web() };
        [signed(&chain), signed(&other), signed_with_sha_1()]
            .into_iter()
            .flat_map(|blob| {
                let mut refused = shows(&blob).fails(Error::HostKeyRejected);
                refused.trust = false;
                let refused = refused.also(told_that_it_is_none);
                [shows(&blob).also(told_that_it_is_none), refused]
            })
            .collect()
    });
a_certificate_that_holds_no_key, Length, "a certificate that ends within its key, or whose key is none" =>
    Servers(|| {
        let good = signed(&of_web());
        let cut = [40, 70, 100].map(|len| {
            reply(&good[..len]).violates(Violation::HostKey(KeyBlobError::Malformed)).also(not_asked)
        });
        let short = payload(|w| drop_ref(w.string("ssh-ed25519-cert-v01@openssh.com").string("n").string([7; 31])));
        let short = reply(&short).violates(Violation::HostKey(KeyBlobError::WrongLength)).also(not_asked);
        cut.into_iter().chain([short]).collect()
    });
a_certificate_of_another_type_than_agreed, Type, "a plain key, an ECDSA certificate, where Ed25519's was agreed on; the reverse" =>
    Servers(|| {
        let plain = HOST.host_key().unwrap().public().blob().to_vec();
        let ecdsa = HostKey::generate_ecdsa_nistp256().unwrap();
        let ecdsa = of_web().sign(ecdsa.public(), &USER, SignatureAlgorithm::Ed25519).unwrap();
        let reverse = reply(&signed(&of_web())).client(|config| config.known_authority = false);
        [reply(&plain), reply(&ecdsa), reverse]
            .map(|case| case.violates(Violation::HostKeyType).also(not_asked))
            .into()
    });
a_certificate_of_somebody_elses_key, Forgery, "a sound certificate shown by one who does not hold the key in it" =>
    Servers(|| {
        let stolen = of_web().sign(OTHER.public(), &USER, SignatureAlgorithm::Ed25519).unwrap();
        vec![
            shows(&stolen).violates(Violation::Signature).also(not_asked),
            reply(&signed(&of_web())).violates(Violation::Signature).also(not_asked),
        ]
    });
another_certificate_on_rekey, Forgery, "another certificate for the same key in the second key exchange" =>
    Servers(|| {
        let other = certified(&signed(&Draft::of_host(&["web", "db"])));
        let again = |blob: Bytes| during_rekey(Plan::new())
            .server(move |config| config.host_keys = Arc::from([certified(&blob)]))
            .client(asks);
        vec![
            again(signed(&of_web())).end(End::Waits),
            again(signed(&of_web()))
                .server(|config| config.rekey_host_keys = Some(Arc::from([other])))
                .violates(Violation::HostKeyChanged),
        ]
    });
}
