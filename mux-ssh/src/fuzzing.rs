//! Entry points for fuzz targets, one for each decoder. No part of the API.

mod files;

pub use files::{agent, certificate, key_file, known_hosts, revoked_keys, ssh_config};

pub use crate::client::fuzzing::{auth, channel};
pub use crate::keys::fuzzing::key_der;
pub use crate::transport::fuzzing::{
    ext_info, identification, kex_reply, kex_value, kexinit, packet, public_key, sealed_packet, transport,
};
