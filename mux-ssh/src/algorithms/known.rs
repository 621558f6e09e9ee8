//! The names of algorithms that OpenSSH has or had, most of which this build lacks. Decides only which names in a list
//! are nobody's; lists are written for OpenSSH, and what is left of them is not decided here.

use super::preferences::mode;
use super::{Cipher, Kex, Mac, PublicKeyAlgorithm};

/// Key exchanges, with those that other documents name: RFC 8268, RFC 8731, draft-ietf-sshm-mlkem-hybrid-kex.
const KEX: &[&str] = &[
    "curve448-sha512",
    "diffie-hellman-group-exchange-sha1",
    "diffie-hellman-group-exchange-sha256",
    "diffie-hellman-group1-sha1",
    "diffie-hellman-group14-sha1",
    "diffie-hellman-group14-sha256",
    "diffie-hellman-group15-sha512",
    "diffie-hellman-group16-sha512",
    "diffie-hellman-group17-sha512",
    "diffie-hellman-group18-sha512",
    "mlkem1024nistp384-sha384",
    "mlkem768nistp256-sha256",
    "sntrup4591761x25519-sha512@tinyssh.org",
];

/// Red Hat's and Debian's OpenSSH name these by what they begin with (RFC 4462, RFC 8732).
const KEX_OF_GSSAPI: &str = "gss-";

/// What a host or a user signs with.
const SIGNATURES: &[&str] = &[
    "ssh-dss",
    "ssh-dss-cert-v00@openssh.com",
    "ssh-dss-cert-v01@openssh.com",
    "ssh-ed448",
    "ssh-rsa",
    "ssh-rsa-cert-v00@openssh.com",
    "ssh-rsa-cert-v01@openssh.com",
    "ssh-xmss-cert-v01@openssh.com",
    "ssh-xmss@openssh.com",
    "webauthn-sk-ecdsa-sha2-nistp256-cert-v01@openssh.com",
    "webauthn-sk-ecdsa-sha2-nistp256@openssh.com",
];

const CIPHERS: &[&str] = &[
    "3des-cbc",
    "aes128-cbc",
    "aes192-cbc",
    "aes256-cbc",
    "arcfour",
    "arcfour128",
    "arcfour256",
    "blowfish-cbc",
    "cast128-cbc",
    "rijndael-cbc@lysator.liu.se",
];

const MACS: &[&str] = &[
    "hmac-md5",
    "hmac-md5-96",
    "hmac-md5-96-etm@openssh.com",
    "hmac-md5-etm@openssh.com",
    "hmac-ripemd160",
    "hmac-ripemd160-etm@openssh.com",
    "hmac-ripemd160@openssh.com",
    "hmac-sha1",
    "hmac-sha1-96",
    "hmac-sha1-96-etm@openssh.com",
    "hmac-sha1-etm@openssh.com",
    "hmac-sha2-256-96",
    "hmac-sha2-512-96",
    "umac-128-etm@openssh.com",
    "umac-128@openssh.com",
    "umac-64-etm@openssh.com",
    "umac-64@openssh.com",
];

impl Kex {
    /// The names in a list that are no key exchange of OpenSSH.
    pub(crate) fn unknown(list: &str) -> impl Iterator<Item = &str> {
        literal(list).filter(|name| {
            Self::from_name(name).is_none() && !KEX.contains(name) && !name.starts_with(KEX_OF_GSSAPI)
        })
    }
}

impl PublicKeyAlgorithm {
    /// The names in a list that are no algorithm of hosts or users in OpenSSH.
    pub(crate) fn unknown(list: &str) -> impl Iterator<Item = &str> {
        literal(list).filter(|name| Self::from_name(name).is_none() && !SIGNATURES.contains(name))
    }
}

impl Cipher {
    /// The names in a list that are no cipher of OpenSSH.
    pub(crate) fn unknown(list: &str) -> impl Iterator<Item = &str> {
        literal(list).filter(|name| Self::from_name(name).is_none() && !CIPHERS.contains(name))
    }
}

impl Mac {
    /// The names in a list that are no MAC of OpenSSH.
    pub(crate) fn unknown(list: &str) -> impl Iterator<Item = &str> {
        literal(list).filter(|name| Self::from_name(name).is_none() && !MACS.contains(name))
    }
}

/// The names in a list; a pattern with wildcards is none.
fn literal(list: &str) -> impl Iterator<Item = &str> {
    let (_, names) = mode(list);
    let names = names.split(',').map(str::trim);
    names.filter(|name| !name.is_empty() && !name.contains(['*', '?']))
}
