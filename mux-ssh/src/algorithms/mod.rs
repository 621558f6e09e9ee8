//! The algorithms that this build has, by their names on the wire, and the order in which they are offered.
//!
//! Not here, on purpose: compression, CBC, SHA-1, DSA, classic Diffie-Hellman.

mod known;
mod preferences;

pub use preferences::Algorithms;

/// Declares a closed set of algorithms: variants, wire names and the default order in one table.
macro_rules! algorithms {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $wire:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl $name {
            /// All, in the default order of OpenSSH.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name on the wire.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $wire,)+ }
            }

            /// The algorithm of this name, if this build has it.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($wire => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

algorithms! {
    /// How the first secret is agreed on.
    Kex {
        /// ML-KEM-768 and X25519 (draft-ietf-sshm-mlkem-hybrid-kex).
        Mlkem768X25519 = "mlkem768x25519-sha256",
        /// Streamlined NTRU Prime and X25519 (draft-ietf-sshm-ntruprime-ssh).
        Sntrup761X25519 = "sntrup761x25519-sha512",
        /// The same under the name that it had first.
        Sntrup761X25519OpenSsh = "sntrup761x25519-sha512@openssh.com",
        /// X25519 (RFC 8731).
        Curve25519 = "curve25519-sha256",
        /// The same under the name that it had first.
        Curve25519LibSsh = "curve25519-sha256@libssh.org",
        /// ECDH on NIST P-256 (RFC 5656 §4).
        EcdhNistp256 = "ecdh-sha2-nistp256",
        /// ECDH on NIST P-384 (RFC 5656 §4).
        EcdhNistp384 = "ecdh-sha2-nistp384",
        /// ECDH on NIST P-521 (RFC 5656 §4).
        EcdhNistp521 = "ecdh-sha2-nistp521",
    }
}

algorithms! {
    /// How a host or a user signs.
    SignatureAlgorithm {
        /// RFC 8709.
        Ed25519 = "ssh-ed25519",
        /// RFC 5656 §3.
        EcdsaNistp256 = "ecdsa-sha2-nistp256",
        /// RFC 5656 §3.
        EcdsaNistp384 = "ecdsa-sha2-nistp384",
        /// RFC 5656 §3.
        EcdsaNistp521 = "ecdsa-sha2-nistp521",
        /// OpenSSH PROTOCOL.u2f: Ed25519 inside a security key.
        SkEd25519 = "sk-ssh-ed25519@openssh.com",
        /// OpenSSH PROTOCOL.u2f: ECDSA on P-256 inside a security key.
        SkEcdsaNistp256 = "sk-ecdsa-sha2-nistp256@openssh.com",
        /// RFC 8332: an RSA key with SHA-512.
        RsaSha2_512 = "rsa-sha2-512",
        /// RFC 8332: an RSA key with SHA-256.
        RsaSha2_256 = "rsa-sha2-256",
    }
}

algorithms! {
    /// What a key is shown and proved by: a plain key or a certificate (OpenSSH PROTOCOL.certkeys), and the signature
    /// under it. The names of the host key list in KEXINIT and of public keys in USERAUTH_REQUEST.
    PublicKeyAlgorithm {
        /// A certificate for the same without `Cert`.
        Ed25519Cert = "ssh-ed25519-cert-v01@openssh.com",
        /// A certificate for the same without `Cert`.
        EcdsaNistp256Cert = "ecdsa-sha2-nistp256-cert-v01@openssh.com",
        /// A certificate for the same without `Cert`.
        EcdsaNistp384Cert = "ecdsa-sha2-nistp384-cert-v01@openssh.com",
        /// A certificate for the same without `Cert`.
        EcdsaNistp521Cert = "ecdsa-sha2-nistp521-cert-v01@openssh.com",
        /// A certificate for the same without `Cert`.
        SkEd25519Cert = "sk-ssh-ed25519-cert-v01@openssh.com",
        /// A certificate for the same without `Cert`.
        SkEcdsaNistp256Cert = "sk-ecdsa-sha2-nistp256-cert-v01@openssh.com",
        /// A certificate for the same without `Cert`.
        RsaSha2_512Cert = "rsa-sha2-512-cert-v01@openssh.com",
        /// A certificate for the same without `Cert`.
        RsaSha2_256Cert = "rsa-sha2-256-cert-v01@openssh.com",
        /// [`SignatureAlgorithm::Ed25519`]
        Ed25519 = "ssh-ed25519",
        /// [`SignatureAlgorithm::EcdsaNistp256`]
        EcdsaNistp256 = "ecdsa-sha2-nistp256",
        /// [`SignatureAlgorithm::EcdsaNistp384`]
        EcdsaNistp384 = "ecdsa-sha2-nistp384",
        /// [`SignatureAlgorithm::EcdsaNistp521`]
        EcdsaNistp521 = "ecdsa-sha2-nistp521",
        /// [`SignatureAlgorithm::SkEd25519`]
        SkEd25519 = "sk-ssh-ed25519@openssh.com",
        /// [`SignatureAlgorithm::SkEcdsaNistp256`]
        SkEcdsaNistp256 = "sk-ecdsa-sha2-nistp256@openssh.com",
        /// [`SignatureAlgorithm::RsaSha2_512`]
        RsaSha2_512 = "rsa-sha2-512",
        /// [`SignatureAlgorithm::RsaSha2_256`]
        RsaSha2_256 = "rsa-sha2-256",
    }
}

/// A host shows its key as a user does.
pub type HostKeyAlgorithm = PublicKeyAlgorithm;

algorithms! {
    /// The type of a public key, as it stands in its blob and in known_hosts.
    KeyType {
        /// RFC 8709.
        Ed25519 = "ssh-ed25519",
        /// RFC 5656 §3.1.
        EcdsaNistp256 = "ecdsa-sha2-nistp256",
        /// RFC 5656 §3.1.
        EcdsaNistp384 = "ecdsa-sha2-nistp384",
        /// RFC 5656 §3.1.
        EcdsaNistp521 = "ecdsa-sha2-nistp521",
        /// OpenSSH PROTOCOL.u2f.
        SkEd25519 = "sk-ssh-ed25519@openssh.com",
        /// OpenSSH PROTOCOL.u2f.
        SkEcdsaNistp256 = "sk-ecdsa-sha2-nistp256@openssh.com",
        /// RFC 4253 §6.6: the type of every RSA key, whatever it signs with.
        Rsa = "ssh-rsa",
    }
}

algorithms! {
    /// How packets are encrypted; the first three authenticate them as well.
    Cipher {
        /// OpenSSH PROTOCOL.chacha20poly1305.
        ChaCha20Poly1305 = "chacha20-poly1305@openssh.com",
        /// RFC 5647 with OpenSSH's rule of negotiation (PROTOCOL §1.6).
        Aes128Gcm = "aes128-gcm@openssh.com",
        /// RFC 5647 with OpenSSH's rule of negotiation (PROTOCOL §1.6).
        Aes256Gcm = "aes256-gcm@openssh.com",
        /// RFC 4344 §4, with a [`Mac`].
        Aes128Ctr = "aes128-ctr",
        /// RFC 4344 §4, with a [`Mac`].
        Aes192Ctr = "aes192-ctr",
        /// RFC 4344 §4, with a [`Mac`].
        Aes256Ctr = "aes256-ctr",
    }
}

algorithms! {
    /// How packets are authenticated under a [`Cipher`] that does not do it itself.
    Mac {
        /// OpenSSH PROTOCOL §1.5: over what was encrypted.
        HmacSha2_256Etm = "hmac-sha2-256-etm@openssh.com",
        /// OpenSSH PROTOCOL §1.5: over what was encrypted.
        HmacSha2_512Etm = "hmac-sha2-512-etm@openssh.com",
        /// RFC 6668: over what is encrypted beside it.
        HmacSha2_256 = "hmac-sha2-256",
        /// RFC 6668: over what is encrypted beside it.
        HmacSha2_512 = "hmac-sha2-512",
    }
}

impl Kex {
    /// Whether a quantum computer can't undo it.
    #[must_use]
    pub const fn is_post_quantum(self) -> bool {
        match self {
            Self::Mlkem768X25519 | Self::Sntrup761X25519 | Self::Sntrup761X25519OpenSsh => true,
            Self::Curve25519
            | Self::Curve25519LibSsh
            | Self::EcdhNistp256
            | Self::EcdhNistp384
            | Self::EcdhNistp521 => false,
        }
    }
}

impl SignatureAlgorithm {
    /// The type of the keys that sign with it.
    #[must_use]
    pub const fn key_type(self) -> KeyType {
        match self {
            Self::Ed25519 => KeyType::Ed25519,
            Self::EcdsaNistp256 => KeyType::EcdsaNistp256,
            Self::EcdsaNistp384 => KeyType::EcdsaNistp384,
            Self::EcdsaNistp521 => KeyType::EcdsaNistp521,
            Self::SkEd25519 => KeyType::SkEd25519,
            Self::SkEcdsaNistp256 => KeyType::SkEcdsaNistp256,
            Self::RsaSha2_256 | Self::RsaSha2_512 => KeyType::Rsa,
        }
    }
}

impl PublicKeyAlgorithm {
    /// What signatures under it are made with.
    #[must_use]
    pub const fn signature(self) -> SignatureAlgorithm {
        match self {
            Self::Ed25519Cert | Self::Ed25519 => SignatureAlgorithm::Ed25519,
            Self::EcdsaNistp256Cert | Self::EcdsaNistp256 => SignatureAlgorithm::EcdsaNistp256,
            Self::EcdsaNistp384Cert | Self::EcdsaNistp384 => SignatureAlgorithm::EcdsaNistp384,
            Self::EcdsaNistp521Cert | Self::EcdsaNistp521 => SignatureAlgorithm::EcdsaNistp521,
            Self::SkEd25519Cert | Self::SkEd25519 => SignatureAlgorithm::SkEd25519,
            Self::SkEcdsaNistp256Cert | Self::SkEcdsaNistp256 => SignatureAlgorithm::SkEcdsaNistp256,
            Self::RsaSha2_512Cert | Self::RsaSha2_512 => SignatureAlgorithm::RsaSha2_512,
            Self::RsaSha2_256Cert | Self::RsaSha2_256 => SignatureAlgorithm::RsaSha2_256,
        }
    }

    /// The type of the key itself.
    #[must_use]
    pub const fn key_type(self) -> KeyType {
        self.signature().key_type()
    }

    /// Whether the key is shown inside a certificate.
    #[must_use]
    pub const fn is_certificate(self) -> bool {
        match self {
            Self::Ed25519Cert
            | Self::EcdsaNistp256Cert
            | Self::EcdsaNistp384Cert
            | Self::EcdsaNistp521Cert
            | Self::SkEd25519Cert
            | Self::SkEcdsaNistp256Cert
            | Self::RsaSha2_512Cert
            | Self::RsaSha2_256Cert => true,
            Self::Ed25519
            | Self::EcdsaNistp256
            | Self::EcdsaNistp384
            | Self::EcdsaNistp521
            | Self::SkEd25519
            | Self::SkEcdsaNistp256
            | Self::RsaSha2_512
            | Self::RsaSha2_256 => false,
        }
    }
}

impl KeyType {
    /// Whether the private half is inside a security key, which signs only when a person touches it.
    #[must_use]
    pub const fn is_security_key(self) -> bool {
        match self {
            Self::SkEd25519 | Self::SkEcdsaNistp256 => true,
            Self::Ed25519 | Self::EcdsaNistp256 | Self::EcdsaNistp384 | Self::EcdsaNistp521 | Self::Rsa => {
                false
            }
        }
    }

    /// What a certificate for a key of this type is called inside its blob (OpenSSH PROTOCOL.certkeys).
    #[must_use]
    pub const fn certificate_name(self) -> &'static str {
        match self {
            Self::Ed25519 => PublicKeyAlgorithm::Ed25519Cert.name(),
            Self::EcdsaNistp256 => PublicKeyAlgorithm::EcdsaNistp256Cert.name(),
            Self::EcdsaNistp384 => PublicKeyAlgorithm::EcdsaNistp384Cert.name(),
            Self::EcdsaNistp521 => PublicKeyAlgorithm::EcdsaNistp521Cert.name(),
            Self::SkEd25519 => PublicKeyAlgorithm::SkEd25519Cert.name(),
            Self::SkEcdsaNistp256 => PublicKeyAlgorithm::SkEcdsaNistp256Cert.name(),
            Self::Rsa => "ssh-rsa-cert-v01@openssh.com",
        }
    }

    /// What keys of this type can sign with, strongest first.
    #[must_use]
    pub const fn signature_algorithms(self) -> &'static [SignatureAlgorithm] {
        match self {
            Self::Ed25519 => &[SignatureAlgorithm::Ed25519],
            Self::EcdsaNistp256 => &[SignatureAlgorithm::EcdsaNistp256],
            Self::EcdsaNistp384 => &[SignatureAlgorithm::EcdsaNistp384],
            Self::EcdsaNistp521 => &[SignatureAlgorithm::EcdsaNistp521],
            Self::SkEd25519 => &[SignatureAlgorithm::SkEd25519],
            Self::SkEcdsaNistp256 => &[SignatureAlgorithm::SkEcdsaNistp256],
            Self::Rsa => &[SignatureAlgorithm::RsaSha2_512, SignatureAlgorithm::RsaSha2_256],
        }
    }
}

impl Cipher {
    /// Whether it authenticates what it encrypts, so that it takes no [`Mac`].
    #[must_use]
    pub const fn is_authenticated(self) -> bool {
        match self {
            Self::ChaCha20Poly1305 | Self::Aes128Gcm | Self::Aes256Gcm => true,
            Self::Aes128Ctr | Self::Aes192Ctr | Self::Aes256Ctr => false,
        }
    }

    /// AES-GCM first where the processor has instructions for it: ten times the speed of ChaCha20 there, a fraction
    /// of it elsewhere.
    fn default_order() -> Vec<Self> {
        let mut order = Self::ALL.to_vec();
        if has_aes() {
            order.sort_by_key(|cipher| !matches!(cipher, Self::Aes128Gcm | Self::Aes256Gcm));
        }
        order
    }
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn has_aes() -> bool {
    std::is_x86_feature_detected!("aes")
}

#[cfg(target_arch = "aarch64")]
fn has_aes() -> bool {
    std::arch::is_aarch64_feature_detected!("aes")
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
fn has_aes() -> bool {
    false
}
