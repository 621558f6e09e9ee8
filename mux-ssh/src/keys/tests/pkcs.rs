//! PKCS #1, SEC 1 and PKCS #8 as `openssl` writes them, sound and damaged. All encrypted ones hold the same Ed25519 key
//! under the passphrase `secret`.

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64ct::{Base64, Encoding};

use super::super::*;

/// Ed25519, PKCS #8.
const ED25519: &str = "MC4CAQAwBQYDK2VwBCIEIFA4gKJP6qyJd9WmyHdVadpxbJ54nRj3XQoOugMxzp7K";
/// P-384, PKCS #8.
const P384: &str = "MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDCEvpXP6f9BTmX12XFDM4g2NTWIJVSPitZnG6wV62Lyc3EsI12zOoUHh8URDzMnHEGhZANiAAR8SE7uMg87nJi3rxrfFaqxUPR/p5JqDD6vu3JrYzuAOb7rW5MsXF8GOQFAV0ssXNVQHxu4mjihH5UD0zBiPLyZGbwrQnig+ubRfRQSqfv+Q+/HpvWfzc2beEGFIRSigVo=";
/// Nothing that signs in SSH: secp256k1 (SEC 1), X25519 and DSA (PKCS #8).
const SECP256K1: &str = "MHQCAQEEICFySMxtDSdaQS0rpJW3jLMNrX/y/yDgH29NMBqVYkRUoAcGBSuBBAAKoUQDQgAED77w9YR3mBEfPIvZwFEg1xC7d1lKKfrL0Doc5l/Sx9Ii/17FHIOJKwpoo8SMwqQqPRrS9cA2CNin0+U7Yr+PNA==";
const X25519: &str = "MC4CAQAwBQYDK2VuBCIEIHhjxvOcigpIn+dZdgPbvw2x7jmkTGeaJVZZABrwvkR1";
const DSA: &str = "MIIBWgIBADCCATMGByqGSM44BAEwggEmAoGBAIbY/2SXHbr2R4N9ZfX2d39yrHX82o2Q5EyO1kecrsWIsTtHezWd1fvqwQRxCWQvncpffziLZ01j1x7Fq9UmobIuFHQaW6LJE6vOBFyWxjbH8DCEgRtz2Z7Mo31kJLdy6dGR+LuP1fqEqm6qwYYADcj8v/cVwrGGZGzJZMwNYXAtAh0AzcLTHGhPsDnkc72iZalQl9Q5YdzfQbkEkPFsEwKBgBzNwZBy419Podm2gAp4LVa69YXra3V/PoOSxV06tZVJMGkAeajgDg/UCL175fMYC5ITV7BGKqpWdSROIqftPsyM5YelWz/y8wcr7Yp+4wd6C95dt/TeYQSa6VgGOPmGjlArRT3te8/FXI6ph5Johw5Z2duAmWUl1pJq3yZ0c1hNBB4CHF9Tg5tfXWKyt3TarhjiHfeoJ/+qBpd3OBcF/5M=";
/// Protections that can't be opened: scrypt, three DES keys, and one of PKCS #5's first version.
const SCRYPT: &str = "MIGTME8GCSqGSIb3DQEFDTBCMCEGCSsGAQQB2kcECzAUBAj651dUciaqbwICQAACAQgCAQEwHQYJYIZIAWUDBAEqBBBWIt2Tv3jMCfFZ+sa6800BBEBip7X0OIPgDfaV/H3zD0Z14UiKO6e2/nU5p/9YPUiwZJManAQJz6dVz0nTuD4QrhhJLTGbDz0++sxqDFyvBgx5";
const DES3: &str = "MIGKME4GCSqGSIb3DQEFDTBBMCkGCSqGSIb3DQEFDDAcBAgnaXjYcjaZ8QICCAAwDAYIKoZIhvcNAgkFADAUBggqhkiG9w0DBwQI1BH1MgwzpWwEOG+CYv/pMSPDqd4Mbi+i8mxdFp7XxEVJGWvbmp4xg9HYV5Ar0HtHmtSNdFQWsMRE70Zcx4CIFBxo";
const PBES1: &str = "MFgwHAYKKoZIhvcNAQwBAzAOBAinG4pas7HwbgICCAAEOCbpPy+qyvoGOfaIUrl5/vl3V/HhCaNkhrkGHW7IJwrcWNpLpxFAC2HDoXLQnzJkJdW3htkh01xp";

/// Cipher and hash, file.
#[rustfmt::skip]
const ENCRYPTED: [(&str, &str); 12] = [
    ("aes-128-cbc, SHA1", "MIGNMEkGCSqGSIb3DQEFDTA8MBsGCSqGSIb3DQEFDDAOBAjLRGCOWW3qjAICCAAwHQYJYIZIAWUDBAECBBDf8NWS0pKgqTxQ4TNW5NDcBEACiKABFj2MQsTmiCsTE8eaovp9XfEuVmNtITtYJYXD+hBCC06buHKhUG/obq2gwMczMOvAXmMePjrkf5aYU08q"),
    ("aes-128-cbc, SHA256", "MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAgKm//fe4HYQwICCAAwDAYIKoZIhvcNAgkFADAdBglghkgBZQMEAQIEEFWz92nkxkduOaz17s+GqTkEQNL/y5yaCOdWLlM+ZQW57AfiLtdZnHkaO63TJxQ6vIYlvAIHLFBPHGYK2VT3prQ+WrfO+Q861YbkmgtLAFZBRHg="),
    ("aes-128-cbc, SHA384", "MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAgb92Zd6l0KwgICCAAwDAYIKoZIhvcNAgoFADAdBglghkgBZQMEAQIEEIG7pmDItdmGwI1UnCGfpOIEQFsU3bCnQzCcn+ZOR68sHbE+YKy72nDo/Tv+EaUdQ0EW59kcpWBGFnUT26SdR5FT7lz78spzaAFr0CINceT+jt4="),
    ("aes-128-cbc, SHA512", "MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAg9nPO1cj9bOAICCAAwDAYIKoZIhvcNAgsFADAdBglghkgBZQMEAQIEECk+fvhWVupkVowVnp2eTeIEQEfCqHSizKZvyf0eKAP38AOr3fCGng6eF84bSmxXwidyuC3nfmIsdKFqTQdeNX0weY3zq+cPqUsGWFEkiHr/X30="),
    ("aes-192-cbc, SHA1", "MIGNMEkGCSqGSIb3DQEFDTA8MBsGCSqGSIb3DQEFDDAOBAjRCKsFBUEgkQICCAAwHQYJYIZIAWUDBAEWBBAx6OFSfsHtz6+BpwPsdSPmBEDIP33EWW/Iwd8b+hmP/i0HYwqvsY6DnbdSe22SbvdiX46uEG/3UOtmJ9vzF4SS8MUG+HGrVSNyvJDzjOHC8LY2"),
    ("aes-192-cbc, SHA256", "MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAh/INI/T7T0BAICCAAwDAYIKoZIhvcNAgkFADAdBglghkgBZQMEARYEEMqpitmwLdWcJu6uan1htFIEQBsbG7k+n5axEQsXua5TvVpxf7H0g451F2uUOlZOW3X4zCJaotpQwoq1ALl/1gDmiBNX/pCcen+dKbjwxVQ3CZE="),
    ("aes-192-cbc, SHA384", "MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAin0kTwFi5Y4gICCAAwDAYIKoZIhvcNAgoFADAdBglghkgBZQMEARYEELYF2k1hT9tdxdzsrOYGB5IEQCjJ+C0ZWxQWLPKeZMTA7Lhd9LioDcwhtHLfurwit1oeno908fMGcVV/oC8VlJRhMXMBl6ni2QV2CD+IxjjsLBQ="),
    ("aes-192-cbc, SHA512", "MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAilZZKYiWEuvgICCAAwDAYIKoZIhvcNAgsFADAdBglghkgBZQMEARYEEOHwRfLp8O4Gg3HFCQYr/yYEQA8hRfHfPcIE06JmmUi3eJbZiD/sWW31HrT63ApVE++ZoCaUadEf03HFv0tVulzvAq7X2/iTbZL1ehD4Jlb6kgY="),
    ("aes-256-cbc, SHA1", "MIGNMEkGCSqGSIb3DQEFDTA8MBsGCSqGSIb3DQEFDDAOBAhQ66ZA+Vbr1AICCAAwHQYJYIZIAWUDBAEqBBB/Urap3CBp5qDF2fKUG7QrBEAeuEOGMlWRWnbGMKC/zzYDi99cX7nHtYY9BScAIeyfTDJ8tm/8xIblpFxfN3qu2rSoZz3kYJVjcJ6GemYxC5ji"),
    ("aes-256-cbc, SHA256", "MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAihBpAxRtLtnwICCAAwDAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEECH3NbMicIyIi+hI6j7BlVcEQLmmH6RHlcs+b/3hN4oniPd3NmozrbulXluoVrLAgIxYsOckFcDgVMpIuF8tdcsb1U/GnUmHhlFAgW47oFwyeeY="),
    ("aes-256-cbc, SHA384", "MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAhu7Tm9qLriRgICCAAwDAYIKoZIhvcNAgoFADAdBglghkgBZQMEASoEEIIsMLTLoQovGskh89x/ISEEQGW/dbLgTOJgNsyTvjsg8k76Zxa6PRyUv8GXbVnBrJOhmRIJ+xs5uD5JfWHZpDvXkpG0qszzfSneAUpa5dkqihs="),
    ("aes-256-cbc, SHA512", "MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAhNZ18pCm0S2QICCAAwDAYIKoZIhvcNAgsFADAdBglghkgBZQMEASoEELB4+t0G2vF1PYh+3LFMuJwEQBRWhnLzbOpcK45U12F2RdLaNWfo3G3hVf4xqZrG/dOy5r+dG/4Nvjvw1iqf3MfU3tRZ8wldRuMwEE23Ug9cF48="),
];

fn pem(label: &str, base64: &str) -> Vec<u8> {
    format!("-----BEGIN {label}-----\n{base64}\n-----END {label}-----\n").into_bytes()
}

fn pkcs8(base64: &str) -> Vec<u8> {
    pem("PRIVATE KEY", base64)
}

fn encrypted(base64: &str) -> Vec<u8> {
    pem("ENCRYPTED PRIVATE KEY", base64)
}

#[track_caller]
fn check(file: &[u8], expected: KeyFileError) {
    assert_eq!(PrivateKey::parse(file, Some(b"secret")).unwrap_err(), expected);
}

#[track_caller]
fn signs(key: &PrivateKey) {
    for &algorithm in key.public().key_type().signature_algorithms() {
        let signature = key.sign(algorithm, b"data").unwrap();
        assert_eq!(key.public().verify(algorithm, b"data", &signature), Ok(()));
    }
}

#[test]
fn every_cipher_and_hash_of_pbes2_opens_the_same_key() {
    let plain = PrivateKey::parse(&pkcs8(ED25519), None).unwrap();
    for (name, base64) in ENCRYPTED {
        let file = KeyFile::parse(&encrypted(base64)).unwrap();
        assert!(file.is_encrypted() && file.public().is_none(), "{name}");
        let key = file.unlock(Some(b"secret")).unwrap();
        assert_eq!(key.public(), plain.public(), "{name}");
        signs(&key);
        assert_eq!(file.unlock(None).unwrap_err(), KeyFileError::Encrypted);
    }
}

#[test]
fn no_wrong_passphrase_opens_pkcs8_even_where_the_padding_comes_out_right() {
    let file = KeyFile::parse(&encrypted(ENCRYPTED[0].1)).unwrap();
    // One in 256 yields padding that could be one.
    for number in 0..600_u32 {
        let error = file.unlock(Some(&number.to_be_bytes())).unwrap_err();
        assert_eq!(error, KeyFileError::WrongPassphrase, "{number}");
    }
}

#[test]
fn a_public_half_from_elsewhere_must_be_the_keys() {
    let plain = PrivateKey::parse(&pkcs8(ED25519), None).unwrap();
    let other = PrivateKey::parse(&pkcs8(P384), None).unwrap();
    let file = || KeyFile::parse(&encrypted(ENCRYPTED[0].1)).unwrap();
    let right = file().with_public(plain.public().clone());
    assert_eq!(right.public(), Some(plain.public()));
    assert_eq!(right.unlock(Some(b"secret")).unwrap().public(), plain.public());
    let wrong = file().with_public(other.public().clone());
    assert_eq!(
        wrong.unlock(Some(b"secret")).unwrap_err(),
        KeyFileError::PublicMismatch
    );
}

#[test]
fn what_stands_before_the_key_is_passed_over() {
    let key = PrivateKey::parse(&pkcs8(P384), None).unwrap();
    for before in [
        "Bag Attributes: <No Attributes>\r\nKey Attributes: <No Attributes>\r\n",
        "-----BEGIN EC PARAMETERS-----\nBgUrgQQAIg==\n-----END EC PARAMETERS-----\n",
        "\n \t",
    ] {
        let file = [before.as_bytes(), &pkcs8(P384)].concat();
        assert_eq!(
            PrivateKey::parse(&file, None).unwrap().public(),
            key.public(),
            "{before}"
        );
    }
    // In the middle of a line it is no beginning.
    let quoted = [&b"> "[..], &pkcs8(P384)].concat();
    check(&quoted, KeyFileError::Malformed);
}

#[test]
fn keys_and_protections_that_cannot_be_used_are_named() {
    let key_type = |name: &str| KeyFileError::from(Unsupported::KeyType(name.to_owned()));
    check(
        &pem("EC PRIVATE KEY", SECP256K1),
        key_type("ECDSA on curve 1.3.132.0.10"),
    );
    check(&pkcs8(X25519), key_type("1.3.101.110"));
    check(&pkcs8(DSA), Unsupported::Dsa.into());
    check(&encrypted(SCRYPT), Unsupported::Kdf("scrypt".to_owned()).into());
    check(
        &encrypted(DES3),
        Unsupported::Cipher("1.2.840.113549.3.7".to_owned()).into(),
    );
    check(
        &encrypted(PBES1),
        Unsupported::Cipher("1.2.840.113549.1.12.1.3".to_owned()).into(),
    );
}

#[test]
fn a_label_that_belongs_to_another_format_is_a_damaged_file() {
    for label in [
        "RSA PRIVATE KEY",
        "EC PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
    ] {
        check(&pem(label, ED25519), KeyFileError::Malformed);
        check(&pem(label, P384), KeyFileError::Malformed);
    }
    check(&pkcs8(SECP256K1), KeyFileError::Malformed);
    check(&pkcs8(ENCRYPTED[0].1), KeyFileError::Malformed);
}

#[test]
fn endless_key_derivation_is_refused_before_any_work() {
    let der = Base64::decode_vec(ENCRYPTED[0].1).unwrap();
    // INTEGER of two bytes, 2048: the iterations.
    let at = der.windows(4).position(|bytes| bytes == [2, 2, 8, 0]).unwrap();
    let with = |iterations: [u8; 4]| {
        let mut spoiled = der.clone();
        spoiled[at..at + 4].copy_from_slice(&iterations);
        encrypted(&Base64::encode_string(&spoiled))
    };
    check(&with([2, 2, 0, 0]), KeyFileError::Malformed);
    check(&with([2, 2, 0xff, 0xff]), KeyFileError::Malformed);
    // Two more bytes for the number lengthen the four fields around it.
    let long = [&der[..at], &[2, 4, 0x7f, 0xff, 0xff, 0xff], &der[at + 4..]].concat();
    let mut long = long;
    for length in [2, 4, 17, 19, 32] {
        if let Some(byte) = long.get_mut(length) {
            *byte = byte.wrapping_add(2);
        }
    }
    let error = KeyFile::parse(&encrypted(&Base64::encode_string(&long))).unwrap_err();
    assert_eq!(error, Unsupported::KdfRounds(0x7fff_ffff).into());
}

#[test]
fn a_file_cut_anywhere_or_with_any_bit_flipped_is_an_error_or_a_sound_key() {
    for base64 in [ED25519, P384] {
        let der = Base64::decode_vec(base64).unwrap();
        for length in 0..der.len() {
            let cut = pkcs8(&Base64::encode_string(&der[..length]));
            check(&cut, KeyFileError::Malformed);
        }
        for bit in 0..der.len() * 8 {
            let mut spoiled = der.clone();
            spoiled[bit / 8] ^= 1 << (bit % 8);
            if let Ok(key) = PrivateKey::parse(&pkcs8(&Base64::encode_string(&spoiled)), None) {
                signs(&key);
            }
        }
    }
    for (_, base64) in [ENCRYPTED[0], ENCRYPTED[11]] {
        let der = Base64::decode_vec(base64).unwrap();
        for length in 0..der.len() {
            let cut = encrypted(&Base64::encode_string(&der[..length]));
            assert_eq!(KeyFile::parse(&cut).unwrap_err(), KeyFileError::Malformed);
        }
        for bit in 0..der.len() * 8 {
            let mut spoiled = der.clone();
            spoiled[bit / 8] ^= 1 << (bit % 8);
            let _ = KeyFile::parse(&encrypted(&Base64::encode_string(&spoiled)));
        }
    }
}

#[test]
fn bytes_behind_the_key_are_refused() {
    let mut der = Base64::decode_vec(P384).unwrap();
    der.push(0);
    check(&pkcs8(&Base64::encode_string(&der)), KeyFileError::Malformed);
}

#[test]
fn pkcs8_of_ed25519_has_the_public_half_of_its_seed() {
    let der = Base64::decode_vec(ED25519).unwrap();
    let pair = Ed25519KeyPair::from_seed_unchecked(&der[der.len() - 32..]).unwrap();
    let key = PrivateKey::parse(&pkcs8(ED25519), None).unwrap();
    assert!(key.public().blob().ends_with(pair.public_key().as_ref()));
}
