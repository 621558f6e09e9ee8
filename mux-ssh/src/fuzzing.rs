//! Entry points for fuzz targets, one for each decoder. No part of the API.

pub use crate::transport::fuzzing::{
    ext_info, identification, kex_reply, kexinit, packet, public_key, transport,
};
