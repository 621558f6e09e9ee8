//! KEXINIT (RFC 4253 §7.1): what we offer, what the peer offers and what both have in common. It decides nothing about
//! guesses.

use bytes::{Bytes, BytesMut};

use super::cipher::Protection;
use crate::algorithms::{Algorithms, Cipher, HostKeyAlgorithm, Kex, Mac};
use crate::message::KEXINIT;
use crate::wire::{NameList, Reader, Writer};
use crate::{Error, Incompatible, Violation};

/// OpenSSH names about 15, AsyncSSH about 40: more in one list come from nobody honest.
pub const MAX_NAMES: usize = 256;
/// A peer's list in an error message is cut to this many bytes.
const MAX_SHOWN: usize = 512;
const COOKIE: usize = 16;
/// What our whole offer takes, so that its buffer never moves.
const ROOM: usize = 1536;

/// RFC 8308 §2.1 and OpenSSH PROTOCOL §1.9: names in the kex list that are no key exchange.
const EXT_INFO_C: &str = "ext-info-c";
const EXT_INFO_S: &str = "ext-info-s";
const STRICT_C: &str = "kex-strict-c-v00@openssh.com";
const STRICT_S: &str = "kex-strict-s-v00@openssh.com";

const MARKERS: [&str; 4] = [EXT_INFO_C, EXT_INFO_S, STRICT_C, STRICT_S];

/// Which side of the connection we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

impl Side {
    fn markers(self) -> [&'static str; 2] {
        match self {
            Self::Client => [EXT_INFO_C, STRICT_C],
            Self::Server => [EXT_INFO_S, STRICT_S],
        }
    }

    pub(super) fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// Our KEXINIT, message number included. Markers count in the first key exchange only.
pub(super) fn build(
    side: Side,
    offer: &Algorithms,
    first: bool,
    packet_follows: bool,
) -> Result<Bytes, Error> {
    let mut cookie = [0; COOKIE];
    aws_lc_rs::rand::fill(&mut cookie)?;
    let markers = if first {
        side.markers().to_vec()
    } else {
        Vec::new()
    };
    let kex = offer.kex.iter().map(|kex| kex.name()).chain(markers);
    let mut out = BytesMut::with_capacity(ROOM);
    let mut writer = Writer::new(&mut out);
    writer.byte(KEXINIT).raw(&cookie).name_list(kex);
    writer.name_list(offer.host_keys.iter().map(|algorithm| algorithm.name()));
    for _direction in 0..2 {
        writer.name_list(offer.ciphers.iter().map(|cipher| cipher.name()));
    }
    for _direction in 0..2 {
        writer.name_list(offer.macs.iter().map(|mac| mac.name()));
    }
    for _direction in 0..2 {
        writer.name_list(["none"]);
    }
    for _direction in 0..2 {
        writer.name_list([]);
    }
    writer.boolean(packet_follows).uint32(0);
    Ok(out.freeze())
}

/// A peer's KEXINIT.
#[derive(Debug)]
pub(super) struct KexInit<'a> {
    pub(super) kex: NameList<'a>,
    pub(super) host_keys: NameList<'a>,
    client_to_server: Offered<'a>,
    server_to_client: Offered<'a>,
    compression: [NameList<'a>; 2],
    pub(super) packet_follows: bool,
}

impl<'a> KexInit<'a> {
    /// Reads a KEXINIT, message number included.
    pub(super) fn parse(payload: &'a [u8]) -> Result<Self, Violation> {
        let mut reader = Reader::new(payload);
        reader.byte()?;
        reader.bytes(COOKIE)?;
        let mut list = || {
            let names = reader.name_list()?;
            if names.len() > MAX_NAMES {
                Err(Violation::TooManyNames)
            } else {
                Ok(names)
            }
        };
        let [kex, host_keys] = [list()?, list()?];
        let ciphers = [list()?, list()?];
        let macs = [list()?, list()?];
        let compression = [list()?, list()?];
        let _languages = [list()?, list()?];
        let packet_follows = reader.boolean()?;
        // Reserved; OpenSSH does not look at its value either.
        reader.uint32()?;
        reader.finish()?;
        Ok(Self {
            kex,
            host_keys,
            client_to_server: Offered {
                ciphers: ciphers[0],
                macs: macs[0],
            },
            server_to_client: Offered {
                ciphers: ciphers[1],
                macs: macs[1],
            },
            compression,
            packet_follows,
        })
    }

    /// Whether the sender, which is `side`, takes EXT_INFO.
    pub(super) fn takes_ext_info(&self, side: Side) -> bool {
        self.kex.contains(side.markers()[0])
    }

    /// Whether the sender, which is `side`, does strict key exchange.
    pub(super) fn is_strict(&self, side: Side) -> bool {
        self.kex.contains(side.markers()[1])
    }

    /// Whether the sender has a post-quantum key exchange that is also in `ours`.
    pub(super) fn has_post_quantum(&self, ours: &[Kex]) -> bool {
        self.kex
            .iter()
            .filter_map(Kex::from_name)
            .any(|kex| kex.is_post_quantum() && ours.contains(&kex))
    }

    /// What both have; in each list the client's order counts (RFC 4253 §7.1).
    pub(super) fn negotiate(&self, our_side: Side, ours: &Algorithms) -> Result<Negotiated, Error> {
        let compressed = self.compression.into_iter().find(|list| !list.contains("none"));
        if let Some(list) = compressed {
            return Err(Incompatible::Compression(shown(list)).into());
        }
        Ok(Negotiated {
            kex: choose(our_side, &ours.kex, self.kex, Kex::from_name)
                .ok_or_else(|| Incompatible::Kex(shown(self.kex)))?,
            host_key: choose(
                our_side,
                &ours.host_keys,
                self.host_keys,
                HostKeyAlgorithm::from_name,
            )
            .ok_or_else(|| Incompatible::HostKey(shown(self.host_keys)))?,
            client_to_server: self.client_to_server.negotiate(our_side, ours)?,
            server_to_client: self.server_to_client.negotiate(our_side, ours)?,
        })
    }
}

/// What a peer has for one direction.
#[derive(Debug)]
struct Offered<'a> {
    ciphers: NameList<'a>,
    macs: NameList<'a>,
}

impl Offered<'_> {
    /// A MAC is looked for only if the cipher needs one: the lists of peers that have other MACs than we do don't
    /// matter otherwise.
    fn negotiate(&self, our_side: Side, ours: &Algorithms) -> Result<Protection, Incompatible> {
        let cipher = choose(our_side, &ours.ciphers, self.ciphers, Cipher::from_name)
            .ok_or_else(|| Incompatible::Cipher(shown(self.ciphers)))?;
        let mac = if cipher.is_authenticated() {
            None
        } else {
            let mac = choose(our_side, &ours.macs, self.macs, Mac::from_name);
            Some(mac.ok_or_else(|| Incompatible::Mac(shown(self.macs)))?)
        };
        Ok(Protection { cipher, mac })
    }
}

/// What both sides go on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Negotiated {
    pub(super) kex: Kex,
    pub(super) host_key: HostKeyAlgorithm,
    pub(super) client_to_server: Protection,
    pub(super) server_to_client: Protection,
}

/// The first of the client's names that the server has too.
fn choose<A: Copy + PartialEq>(
    our_side: Side,
    ours: &[A],
    theirs: NameList<'_>,
    from_name: fn(&str) -> Option<A>,
) -> Option<A> {
    let mut common = theirs.iter().filter_map(from_name).filter_map(|theirs| {
        let rank = ours.iter().position(|&ours| ours == theirs)?;
        Some((rank, theirs))
    });
    let chosen = match our_side {
        Side::Client => common.min_by_key(|&(rank, _)| rank),
        Side::Server => common.next(),
    };
    chosen.map(|(_, algorithm)| algorithm)
}

/// The first name, if it is one that can exist: RFC 4251 §6 allows 64 bytes.
pub(super) fn first_name(list: NameList<'_>) -> String {
    list.first()
        .filter(|name| name.len() <= 64)
        .unwrap_or_default()
        .to_owned()
}

fn shown(list: NameList<'_>) -> String {
    let mut text = String::new();
    for name in list.iter().filter(|name| !MARKERS.contains(name)) {
        if text.len() + name.len() > MAX_SHOWN {
            text.push_str(",...");
            break;
        }
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(name);
    }
    if text.is_empty() {
        "nothing".to_owned()
    } else {
        text
    }
}
