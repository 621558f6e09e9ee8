//! What a server offers: its first KEXINIT, read by hand. It decides nothing.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use mux_ssh::message::KEXINIT;
use mux_ssh::wire::Reader;

/// Names in the server's order.
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) kex: Vec<String>,
    pub(crate) host_keys: Vec<String>,
    pub(crate) ciphers: Vec<String>,
    pub(crate) macs: Vec<String>,
}

pub(crate) fn offer(of: SocketAddr) -> Offer {
    let mut stream = TcpStream::connect(of).unwrap();
    // Some say nothing before they know whom they talk to.
    stream.write_all(b"SSH-2.0-probe\r\n").unwrap();
    let mut byte = [0];
    let mut line = Vec::new();
    while !(line.starts_with(b"SSH-2.0-") && line.ends_with(b"\n")) {
        if line.ends_with(b"\n") {
            line.clear();
        }
        stream.read_exact(&mut byte).unwrap();
        line.extend(byte);
    }
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut packet = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap()];
    stream.read_exact(&mut packet).unwrap();
    let mut reader = Reader::new(&packet);
    let _padding = reader.byte().unwrap();
    assert_eq!(reader.byte().unwrap(), KEXINIT);
    reader.bytes(16).unwrap();
    let mut list = || -> Vec<String> { reader.name_list().unwrap().iter().map(str::to_owned).collect() };
    let [kex, host_keys, ciphers, _, macs] = std::array::from_fn(|_| list());
    Offer {
        kex,
        host_keys,
        ciphers,
        macs,
    }
}
