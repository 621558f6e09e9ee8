//! Our client against servers that others wrote: OpenSSH, dropbear, AsyncSSH, Paramiko and TinySSH.
//!
//! Which algorithms a server has, it is asked; so a newer server, and an algorithm that we learn, are tested without a
//! change here. A missing server is a failure that names the command which installs it.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod algorithms;
mod audit;
mod commands;
mod guess;
mod keys;
mod login;
mod probe;
mod rekey;
#[expect(dead_code, reason = "other tests use the rest of it")]
#[path = "../rig/mod.rs"]
mod rig;
mod servers;
mod told;
mod visit;

/// The same test for each kind of server, named after it.
macro_rules! with_each_server {
    ($($(#[$attribute:meta])* fn $name:ident($kind:ident: Kind) $body:block)+) => {
        $(
            mod $name {
                use super::*;

                fn check($kind: Kind) $body

                #[test]
                fn openssh() {
                    check(Kind::OpenSsh);
                }

                #[test]
                fn dropbear() {
                    check(Kind::Dropbear);
                }

                #[test]
                fn asyncssh() {
                    check(Kind::AsyncSsh);
                }

                #[test]
                fn paramiko() {
                    check(Kind::Paramiko);
                }

                #[test]
                fn tinysshd() {
                    check(Kind::TinySsh);
                }
            }
        )+
    };
}

pub(crate) use with_each_server;
