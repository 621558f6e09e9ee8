//! The targets before anyone connects: names, addresses, keys, listeners, and the files that tell clients about
//! them. Decides nothing once the loop runs.

use std::fs;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use mux_ssh::server::key_file::{self, Seed};
use mux_ssh::server::{Authorized, ServerConfig};
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketType};

use crate::options::{Options, Spread, Trouble};

/// One target.
#[derive(Debug)]
pub(crate) struct Target {
    /// Its name, such as web001.
    pub(crate) name: String,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// How it does not behave.
    pub(crate) trouble: Option<Trouble>,
    /// What its connections have in common.
    pub(crate) config: Arc<ServerConfig>,
}

/// What has to stay open for targets that do not accept.
#[derive(Debug, Default)]
pub(crate) struct Held {
    sockets: Vec<OwnedFd>,
    connections: Vec<TcpStream>,
}

/// The keys that may log in, by the options.
pub(crate) fn authorized(options: &Options) -> io::Result<Authorized> {
    let mut keys = Vec::new();
    if let Some(path) = &options.authorized_keys {
        keys.extend(key_file::authorized_keys(&read(path)?));
    }
    if let Some(path) = &options.user_key {
        let public = load_or_make(path)?
            .host_key()
            .map_err(io::Error::other)?
            .public()
            .clone();
        fs::write(
            path.with_added_extension("pub"),
            format!("{}\n", key_file::public_line(&public)),
        )?;
        keys.push(public);
    }
    let anyone = options.authorized_keys.is_none() && options.user_key.is_none();
    Ok(if anyone {
        Authorized::AnyKey
    } else {
        Authorized::Keys(keys)
    })
}

/// Opens a listener for each target, or what takes its place where there is trouble.
pub(crate) fn open(
    options: &Options,
    held: &mut Held,
) -> io::Result<Vec<(Target, Option<mio::net::TcpListener>)>> {
    let authorized = authorized(options)?;
    let shared = options.host_key.as_deref().map(load_or_make).transpose()?;
    let width = options.count.to_string().len();
    let mut targets = Vec::with_capacity(options.count);
    for index in 0..options.count {
        let seed = if shared.is_some() {
            None
        } else {
            Some(Seed::generate().map_err(io::Error::other)?)
        };
        let seed = seed.as_ref().or(shared.as_ref()).expect("one of them was made");
        let mut config = ServerConfig::new(seed.host_key().map_err(io::Error::other)?, authorized.clone());
        config.forwards = options.forward;
        if let Some(ident) = &options.ident {
            config.ident.clone_from(ident);
        }
        let trouble = trouble(options, index);
        let wanted = at(options, index)?;
        let (listener, address) = listen(wanted, trouble, held)
            .map_err(|error| io::Error::new(error.kind(), format!("{wanted}: {error}")))?;
        let name = format!("{}{:0width$}", options.prefix, index + 1);
        targets.push((
            Target {
                name,
                address,
                trouble,
                config: Arc::new(config),
            },
            listener,
        ));
    }
    Ok(targets)
}

/// Writes the files that were asked for.
pub(crate) fn write_files<'a>(
    options: &Options,
    targets: impl Iterator<Item = &'a Target> + Clone,
) -> io::Result<()> {
    let files = &options.write;
    let write = |path: &Path, line: &dyn Fn(&Target) -> String| {
        let text: String = targets.clone().map(line).collect();
        fs::write(path, text).map_err(|error| about(path, &error))
    };
    if let Some(path) = &files.hosts {
        write(path, &|target| format!("{}\n", target.name))?;
    }
    if let Some(path) = &files.known_hosts {
        write(path, &known_hosts_line)?;
    }
    if let Some(path) = &files.ssh_config {
        let known_hosts = files.known_hosts.as_deref().map(absolute).transpose()?;
        let user_key = options.user_key.as_deref().map(absolute).transpose()?;
        let mut common = String::from("\nHost *\n  User demo\n  GlobalKnownHostsFile none\n");
        if let Some(path) = known_hosts {
            common.push_str(&format!("  UserKnownHostsFile \"{path}\"\n"));
        }
        if let Some(path) = user_key {
            common.push_str(&format!(
                "  IdentityFile \"{path}\"\n  IdentitiesOnly yes\n  IdentityAgent none\n"
            ));
        }
        write(path, &|target| {
            let (name, address) = (&target.name, target.address);
            format!(
                "Host {name}\n  HostName {}\n  Port {}\n",
                address.ip(),
                address.port()
            )
        })?;
        fs::OpenOptions::new()
            .append(true)
            .open(path)?
            .write_all(common.as_bytes())?;
    }
    Ok(())
}

/// The key is known under the address, since that is what a client connects to.
fn known_hosts_line(target: &Target) -> String {
    let key = target.config.host_keys.first().expect("a server has a host key");
    let (ip, port) = (target.address.ip(), target.address.port());
    let host = if port == 22 {
        ip.to_string()
    } else {
        format!("[{ip}]:{port}")
    };
    format!("{host} {}\n", key_file::public_line(key.public()))
}

fn absolute(path: &Path) -> io::Result<String> {
    Ok(std::path::absolute(path)?.display().to_string())
}

fn read(path: &Path) -> io::Result<String> {
    fs::read_to_string(path).map_err(|error| about(path, &error))
}

fn about(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn load_or_make(path: &Path) -> io::Result<Seed> {
    if path.exists() {
        let file = read(path)?;
        return Seed::from_openssh(&file).ok_or_else(|| {
            io::Error::other(format!(
                "{}: not an Ed25519 key without passphrase",
                path.display()
            ))
        });
    }
    let seed = Seed::generate().map_err(io::Error::other)?;
    let text = seed.to_openssh().map_err(io::Error::other)?;
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| about(path, &error))?;
    file.write_all(text.as_bytes())?;
    Ok(seed)
}

/// The last targets are the ones with trouble.
fn trouble(options: &Options, index: usize) -> Option<Trouble> {
    let mut from_end = options.count - index;
    options.bad.iter().rev().find_map(|&(trouble, count)| {
        if from_end <= count {
            return Some(trouble);
        }
        from_end -= count;
        None
    })
}

fn at(options: &Options, index: usize) -> io::Result<SocketAddr> {
    let first = options.first;
    let too_many = || io::Error::other("more targets than there are addresses");
    match options.spread {
        Spread::Ports if first.port() == 0 => Ok(first),
        Spread::Ports => {
            let port = u16::try_from(index)
                .ok()
                .and_then(|index| first.port().checked_add(index));
            Ok(SocketAddr::new(first.ip(), port.ok_or_else(too_many)?))
        }
        Spread::Addresses => {
            let IpAddr::V4(ip) = first.ip() else {
                return Err(io::Error::other("--addresses needs IPv4"));
            };
            let offset = u32::try_from(index).map_err(|_| too_many())?;
            let ip = ip.to_bits().checked_add(offset).ok_or_else(too_many)?;
            Ok(SocketAddr::new(
                std::net::Ipv4Addr::from_bits(ip).into(),
                first.port(),
            ))
        }
    }
}

fn listen(
    at: SocketAddr,
    trouble: Option<Trouble>,
    held: &mut Held,
) -> io::Result<(Option<mio::net::TcpListener>, SocketAddr)> {
    match trouble {
        Some(Trouble::Refuse) => {
            let (socket, address) = bind(at)?;
            held.sockets.push(socket);
            Ok((None, address))
        }
        Some(Trouble::Drop) => {
            let (socket, address) = bind(at)?;
            // With nobody to accept, one connection fills a queue of length 0: packets that would open another are
            // dropped from then on. The second only makes sure.
            rustix::net::listen(&socket, 0)?;
            held.connections.push(TcpStream::connect(address)?);
            held.sockets.push(socket);
            Ok((None, address))
        }
        None | Some(Trouble::Silent | Trouble::StallAuth | Trouble::ResetOutput) => {
            let listener = mio::net::TcpListener::bind(at)?;
            let address = listener.local_addr()?;
            Ok((Some(listener), address))
        }
    }
}

fn bind(at: SocketAddr) -> io::Result<(OwnedFd, SocketAddr)> {
    let family = if at.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let socket = rustix::net::socket(family, SocketType::STREAM, None)?;
    rustix::net::bind(&socket, &at)?;
    let address = SocketAddr::try_from(rustix::net::getsockname(&socket)?)?;
    Ok((socket, address))
}
