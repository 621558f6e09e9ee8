//! Certificates against OpenSSH's own, every reason for which one is refused, and every way in which one can be wrong.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use base64ct::{Base64, Encoding};
use bytes::Bytes;

use super::samples::{
    BY_RSA_SHA1, BY_RSA_SHA256, HOST_ECDSA_256, HOST_ECDSA_384, HOST_ECDSA_521, HOST_ED25519,
    HOST_RSA_SHA512, USER_SK_ECDSA, USER_SK_ED25519,
};
use super::{
    Certificate, CertificateError, CertificateKind, CertificateRefusal, MAX_CERTIFICATE, MAX_PRINCIPALS,
};
use crate::algorithms::{KeyType, SignatureAlgorithm};
use crate::keys::draft::Draft;
use crate::keys::{KeyBlobError, PrivateKey};

/// The beginnings of 2025, 2030 and 2035.
const Y2025: u64 = 1_735_689_600;
const Y2030: u64 = 1_893_456_000;
const Y2035: u64 = 2_051_222_400;

fn sample(base64: &str) -> Certificate {
    Certificate::parse(&Base64::decode_vec(base64).unwrap()).unwrap()
}

fn key() -> PrivateKey {
    PrivateKey::from_ed25519_seed(&[1; 32]).unwrap()
}

fn authority() -> PrivateKey {
    PrivateKey::from_ed25519_seed(&[2; 32]).unwrap()
}

fn signed(draft: &Draft) -> Bytes {
    draft
        .sign(key().public(), &authority(), SignatureAlgorithm::Ed25519)
        .unwrap()
}

fn draft() -> Draft {
    Draft::of_host(&["web1"])
}

/// What becomes of a host's certificate in 2030.
fn check(change: impl FnOnce(&mut Draft), host: &str) -> Result<(), CertificateRefusal> {
    let mut draft = draft();
    change(&mut draft);
    let certificate = Certificate::parse(&signed(&draft)).unwrap();
    certificate.check_host(host, Y2030, SignatureAlgorithm::ALL)
}

#[test]
fn certificates_by_openssh_are_read_and_their_signatures_are_good() {
    for (base64, key_type, signed_with) in [
        (HOST_ED25519, KeyType::Ed25519, SignatureAlgorithm::Ed25519),
        (
            HOST_ECDSA_256,
            KeyType::EcdsaNistp256,
            SignatureAlgorithm::EcdsaNistp256,
        ),
        (
            HOST_ECDSA_384,
            KeyType::EcdsaNistp384,
            SignatureAlgorithm::EcdsaNistp384,
        ),
        (
            HOST_ECDSA_521,
            KeyType::EcdsaNistp521,
            SignatureAlgorithm::EcdsaNistp521,
        ),
        (HOST_RSA_SHA512, KeyType::Rsa, SignatureAlgorithm::RsaSha2_512),
        (USER_SK_ED25519, KeyType::SkEd25519, SignatureAlgorithm::Ed25519),
        (
            USER_SK_ECDSA,
            KeyType::SkEcdsaNistp256,
            SignatureAlgorithm::Ed25519,
        ),
        (BY_RSA_SHA256, KeyType::Ed25519, SignatureAlgorithm::RsaSha2_256),
    ] {
        let certificate = sample(base64);
        assert_eq!(certificate.key().key_type(), key_type);
        assert_eq!(certificate.signed_with(), signed_with);
        assert_eq!(certificate.blob(), Base64::decode_vec(base64).unwrap());
    }
}

#[test]
fn what_the_authority_says_is_what_ssh_keygen_prints() {
    let certificate = sample(HOST_ED25519);
    assert_eq!(certificate.kind(), CertificateKind::Host);
    assert_eq!((certificate.serial(), certificate.key_id()), (7, "host-1"));
    let principals: Vec<_> = certificate.principals().collect();
    assert_eq!(principals, [&b"web1.example.org"[..], b"*.web.example.org"]);
    assert_eq!(
        certificate.key().fingerprint_sha256(),
        "SHA256:0vmZVMSjP/g3MDG1TSsIeYjEq5x4K5ykbUjbtXCXWgQ"
    );
    assert_eq!(
        certificate.authority().fingerprint_sha256(),
        "SHA256:SkzcJepn0PHbuSnT1/zoP1jc4Ffi7SEfwlZ5oRLghQM"
    );
    let user = sample(USER_SK_ECDSA);
    assert_eq!(user.kind(), CertificateKind::User);
    assert_eq!(user.critical_options(), ["force-command", "source-address"]);
    assert!(user.extensions().iter().any(|name| name == "permit-pty"));
}

#[test]
fn a_host_is_vouched_for_from_the_first_second_to_the_last() {
    let certificate = sample(HOST_ED25519);
    let at = |now| certificate.check_host("web1.example.org", now, SignatureAlgorithm::ALL);
    assert_eq!(at(Y2025), Ok(()));
    assert_eq!(at(Y2035 - 1), Ok(()));
    assert_eq!(
        at(Y2025 - 1),
        Err(CertificateRefusal::NotYetValid { from: Y2025 })
    );
    assert_eq!(at(Y2035), Err(CertificateRefusal::Expired { since: Y2035 }));
}

#[test]
fn names_are_patterns_and_only_those_listed_count() {
    let certificate = sample(HOST_ED25519);
    let named = |host| certificate.check_host(host, Y2030, SignatureAlgorithm::ALL);
    assert_eq!(named("a.web.example.org"), Ok(()));
    for host in ["web1", "web1.example.org.evil", "web.example.org", ""] {
        assert_eq!(named(host), Err(CertificateRefusal::OtherHost(host.to_owned())));
    }
    assert_eq!(
        check(|draft| draft.principals.clear(), "web1"),
        Err(CertificateRefusal::NoPrincipals)
    );
}

#[test]
fn a_users_certificate_is_no_hosts() {
    assert_eq!(
        check(|draft| draft.kind = 1, "web1"),
        Err(CertificateRefusal::NotOfHost)
    );
}

#[test]
fn an_unknown_critical_option_is_a_refusal() {
    assert_eq!(
        check(|draft| draft.critical.push("x@example.org".into()), "web1"),
        Err(CertificateRefusal::CriticalOption("x@example.org".to_owned()))
    );
}

#[test]
fn an_authority_signs_only_with_what_it_may() {
    let certificate = sample(BY_RSA_SHA256);
    assert_eq!(certificate.signed_with(), SignatureAlgorithm::RsaSha2_256);
    let certificate = sample(HOST_ED25519);
    let accepted = [SignatureAlgorithm::RsaSha2_512];
    assert_eq!(
        certificate.check_host("web1.example.org", Y2030, &accepted),
        Err(CertificateRefusal::SignatureAlgorithm(
            SignatureAlgorithm::Ed25519
        ))
    );
}

#[test]
fn a_signature_with_sha_1_is_named_and_never_verified() {
    let blob = Base64::decode_vec(BY_RSA_SHA1).unwrap();
    let error = Certificate::parse(&blob).unwrap_err();
    assert_eq!(error, CertificateError::SignatureAlgorithm("ssh-rsa".to_owned()));
    assert!(Certificate::key_inside(&blob).is_ok());
}

#[test]
fn a_certificate_signed_by_a_certificate_is_refused() {
    let mut draft = draft();
    draft.authority = Some(signed(&Draft::of_host(&["authority"])));
    assert_eq!(
        Certificate::parse(&signed(&draft)),
        Err(CertificateError::AuthorityIsCertificate)
    );
}

#[test]
fn a_certificate_of_no_kind_by_no_key_or_for_too_many_is_refused() {
    let check = |change: &dyn Fn(&mut Draft), expected| {
        let mut draft = draft();
        change(&mut draft);
        assert_eq!(Certificate::parse(&signed(&draft)), Err(expected));
    };
    check(&|draft| draft.kind = 3, CertificateError::Kind(3));
    check(
        &|draft| draft.authority = Some("key".into()),
        CertificateError::Authority(KeyBlobError::Malformed),
    );
    check(
        &|draft| draft.authority = Some(Bytes::copy_from_slice(key().public().blob())),
        CertificateError::Signature,
    );
    check(
        &|draft| draft.principals = vec!["a".into(); MAX_PRINCIPALS + 1],
        CertificateError::TooManyPrincipals,
    );
    check(
        &|draft| draft.principals = vec![vec![b'a'; MAX_CERTIFICATE].into()],
        CertificateError::TooLarge,
    );
}

#[test]
fn a_changed_bit_anywhere_makes_it_worthless() {
    let good = signed(&draft());
    for offset in 0..good.len() {
        let mut bad = good.to_vec();
        bad[offset] ^= 1;
        assert!(Certificate::parse(&bad).is_err(), "{offset}");
    }
}

#[test]
fn one_cut_short_or_drawn_out_is_malformed() {
    let good = signed(&draft());
    for length in 0..good.len() {
        let result = Certificate::parse(&good[..length]);
        assert_eq!(result, Err(CertificateError::Malformed), "{length}");
    }
    let longer = [&good[..], &[0]].concat();
    assert_eq!(Certificate::parse(&longer), Err(CertificateError::Malformed));
}

#[test]
fn lines_of_files_name_the_type_that_is_inside() {
    let line =
        |name: &str| Certificate::parse_line(&format!("# a comment\n\n{name} {HOST_ED25519} host one\n"));
    assert_eq!(line("ssh-ed25519-cert-v01@openssh.com"), Ok(sample(HOST_ED25519)));
    for name in ["ssh-ed25519", "ssh-rsa-cert-v01@openssh.com", ""] {
        assert_eq!(line(name), Err(CertificateError::Malformed), "{name}");
    }
    let long = format!(
        "ssh-ed25519-cert-v01@openssh.com {}",
        "A".repeat(2 * MAX_CERTIFICATE)
    );
    assert_eq!(Certificate::parse_line(&long), Err(CertificateError::TooLarge));
}

#[test]
fn a_plain_key_is_no_certificate() {
    let result = Certificate::parse(key().public().blob());
    assert_eq!(result, Err(CertificateError::UnknownType));
    assert!(!Certificate::is_one(key().public().blob()));
    assert!(Certificate::is_one(&signed(&draft())));
}

#[test]
fn times_are_printed_as_people_write_them() {
    for (seconds, expected) in [
        (0, "1970-01-01 00:00"),
        (Y2025, "2025-01-01 00:00"),
        (951_827_696, "2000-02-29 12:34"),
        (4_107_542_399, "2100-02-28 23:59"),
        (4_107_542_400, "2100-03-01 00:00"),
        (253_402_300_799, "9999-12-31 23:59"),
    ] {
        let text = CertificateRefusal::Expired { since: seconds }.to_string();
        assert_eq!(text, format!("certificate expired {expected} UTC"));
    }
    let _ends = CertificateRefusal::NotYetValid { from: u64::MAX }.to_string();
}
