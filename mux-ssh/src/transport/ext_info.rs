//! EXT_INFO (RFC 8308): what a peer says about itself after the first key exchange. Unknown extensions are passed over.

use crate::Violation;
use crate::algorithms::SignatureAlgorithm;
use crate::message::EXT_INFO;
use crate::wire::{Reader, Writer};

/// A handful exist.
pub const MAX_EXTENSIONS: u32 = 64;
/// Once after the first NEWKEYS, once before the login is complete (RFC 8308 §2.4).
pub(super) const MAX_EXT_INFOS: u8 = 2;

/// What a peer's EXT_INFO told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtInfo {
    /// `server-sig-algs`: what a user may sign with, names that this build lacks left out. `None`: not said.
    pub server_sig_algs: Option<Vec<SignatureAlgorithm>>,
}

impl ExtInfo {
    pub(super) fn parse(payload: &[u8]) -> Result<Self, Violation> {
        let mut reader = Reader::new(payload);
        reader.byte()?;
        let count = reader.uint32()?;
        if count > MAX_EXTENSIONS {
            return Err(Violation::TooManyExtensions);
        }
        let mut info = Self::default();
        for _ in 0..count {
            let name = reader.string()?;
            let mut value = reader;
            reader.string()?;
            if name == b"server-sig-algs" {
                let names = value.name_list()?;
                let mut known: Vec<_> = names.iter().filter_map(SignatureAlgorithm::from_name).collect();
                known.sort_unstable();
                known.dedup();
                info.server_sig_algs = Some(known);
            }
        }
        reader.finish()?;
        Ok(info)
    }
}

/// A client's EXT_INFO: it understands a second EXT_INFO while it logs in (OpenSSH PROTOCOL §1.10).
pub(super) fn write_client(writer: &mut Writer<'_>) {
    writer
        .byte(EXT_INFO)
        .uint32(1)
        .string("ext-info-in-auth@openssh.com")
        .string("0");
}

/// A server's EXT_INFO: what a user may sign with, and that it answers PING (OpenSSH PROTOCOL §1.8).
pub(super) fn write_server(writer: &mut Writer<'_>) {
    let names = SignatureAlgorithm::ALL.iter().map(|algorithm| algorithm.name());
    writer
        .byte(EXT_INFO)
        .uint32(2)
        .string("server-sig-algs")
        .name_list(names)
        .string("ping@openssh.com")
        .string("0");
}
