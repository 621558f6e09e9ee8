//! `RevokedHostKeys` files of a run, each read once. Decides that a host is refused whose key one of them names, and every
//! host if one can't be read: what it would have revoked is unknown.

use std::collections::HashMap;
use std::path::Path;

use mux_ssh::Printable;
use mux_ssh::keys::{Certificate, PublicKey};
use mux_ssh::known_hosts::{NamedBy, RevokedKeys};

use crate::files;
use crate::hub::Shown;

/// As known_hosts files: more than this is no list of keys.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// What the files say, or why they can't be read.
#[derive(Debug, Default)]
pub(crate) struct Revoked {
    lists: HashMap<String, Result<RevokedKeys, String>>,
}

impl Revoked {
    /// Why a host that showed this key can't be trusted, if one of `files` says so.
    pub(crate) fn refuse(
        &mut self,
        files: &[String],
        key: &PublicKey,
        certificate: Option<&Shown>,
    ) -> Option<String> {
        files.iter().find_map(|file| {
            if !self.lists.contains_key(file) {
                self.lists.insert(file.clone(), read(file));
            }
            let shown = Printable::new(file);
            match self.lists.get(file)? {
                Err(reason) => Some(format!(
                    "host key can't be checked: RevokedHostKeys {shown}: {reason}"
                )),
                Ok(list) if list.names(key.blob()) => {
                    let fingerprint = key.fingerprint_sha256();
                    Some(format!(
                        "host key revoked (RevokedHostKeys {shown} names {fingerprint})"
                    ))
                }
                Ok(list) => by_certificate(list, certificate?.as_ref().ok()?, &shown),
            }
        })
    }
}

/// Why a certificate can't be trusted, whatever its key.
fn by_certificate(list: &RevokedKeys, certificate: &Certificate, file: &Printable<'_>) -> Option<String> {
    let authority = certificate.authority();
    if list.names(authority.blob()) {
        let fingerprint = authority.fingerprint_sha256();
        return Some(format!(
            "authority of the host certificate revoked (RevokedHostKeys {file} names {fingerprint})"
        ));
    }
    let what = match list.names_certificate(certificate)? {
        NamedBy::Serial => format!("serial number {}", certificate.serial()),
        NamedBy::KeyId => format!("key id {:?}", Printable::new(certificate.key_id()).to_string()),
    };
    Some(format!(
        "host certificate revoked (RevokedHostKeys {file} names its {what})"
    ))
}

fn read(file: &str) -> Result<RevokedKeys, String> {
    let content = files::read(Path::new(file), MAX_FILE).map_err(|error| error.to_string())?;
    RevokedKeys::parse(&content).map_err(|error| error.to_string())
}
