//! What is remembered between runs: the habits of servers and the key that worked, in one file of the user's state
//! directory. Decides the file's form and survives any damage to it; losing it costs a round trip and nothing else.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use mux_ssh::transport::ServerMemory;

/// The first line; another one means another version, whose content is not looked at.
const HEADER: &str = "mux host memory 1";

/// More is not read: a hundred thousand hosts fit, and a file that grew beyond is damaged.
const MAX_FILE: u64 = 16 * 1024 * 1024;

/// More is not kept of each kind; what was written last stays.
const MAX_ENTRIES: usize = 100_000;

/// How often, and with what pause, the lock is tried for.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: std::time::Duration = std::time::Duration::from_millis(5);

/// A server, as far as memory goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Server {
    /// What is connected to: a name or an address.
    pub address: String,
    /// Its port.
    pub port: u16,
}

/// Everything remembered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    servers: HashMap<Server, ServerMemory>,
    /// The fingerprint of the key that worked, by server and user.
    keys: HashMap<(Server, String), String>,
}

/// The file, what was in it and what this run has learned.
#[derive(Debug, Default)]
pub struct State {
    file: Option<PathBuf>,
    known: Memory,
    learned: Memory,
    forgotten: Vec<(Server, String)>,
}

impl State {
    /// Reads the file of the user whose environment this is. Whatever is wrong with it, the memory is empty.
    #[must_use]
    pub fn load(state_home: Option<PathBuf>) -> Self {
        let file = state_home.map(|home| home.join("mux").join("hosts"));
        let known = file.as_deref().map(read).unwrap_or_default();
        Self {
            file,
            known,
            learned: Memory::default(),
            forgotten: Vec::new(),
        }
    }

    /// The habits of a server.
    #[must_use]
    pub fn server(&self, server: &Server) -> Option<&ServerMemory> {
        self.learned
            .servers
            .get(server)
            .or_else(|| self.known.servers.get(server))
    }

    /// The fingerprint of the key that worked there last.
    #[must_use]
    pub fn key(&self, server: &Server, user: &str) -> Option<&str> {
        let name = (server.clone(), user.to_owned());
        self.learned
            .keys
            .get(&name)
            .or_else(|| self.known.keys.get(&name))
            .map(String::as_str)
    }

    /// Remembers the habits of a server.
    pub fn learn_server(&mut self, server: Server, memory: ServerMemory) {
        if self.server(&server) != Some(&memory) {
            self.learned.servers.insert(server, memory);
        }
    }

    /// Remembers which key worked.
    pub fn learn_key(&mut self, server: Server, user: &str, fingerprint: String) {
        if self.key(&server, user) != Some(&fingerprint) {
            self.learned.keys.insert((server, user.to_owned()), fingerprint);
        }
    }

    /// Forgets which key worked: it does no longer.
    pub fn forget_key(&mut self, server: Server, user: &str) {
        let name = (server, user.to_owned());
        self.learned.keys.remove(&name);
        if self.known.keys.remove(&name).is_some() {
            self.forgotten.push(name);
        }
    }

    /// Writes what this run has learned, beside what other runs have written meanwhile.
    ///
    /// # Errors
    /// The directory or the file can't be written.
    pub fn save(&self) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        if self.learned == Memory::default() && self.forgotten.is_empty() {
            return Ok(());
        }
        let directory = file.parent().unwrap_or(Path::new("/"));
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
        let lock = private(&directory.join("hosts.lock"), false)?;
        wait_for(&lock)?;
        let mut all = read(file);
        for name in &self.forgotten {
            all.keys.remove(name);
        }
        all.servers.extend(self.learned.servers.clone());
        all.keys.extend(self.learned.keys.clone());
        let draft = directory.join("hosts.new");
        private(&draft, true)?.write_all(self.render(&all).as_bytes())?;
        fs::rename(draft, file)
    }

    /// What is new stands last and is kept; of the rest what fits.
    fn render(&self, all: &Memory) -> String {
        let mut text = format!("{HEADER}\n");
        let mut servers: Vec<_> = all.servers.iter().collect();
        servers.sort_by_key(|(server, _)| self.learned.servers.contains_key(server));
        for (server, memory) in servers.iter().rev().take(MAX_ENTRIES).rev() {
            text.push_str(&server_line(server, memory));
        }
        let mut keys: Vec<_> = all.keys.iter().collect();
        keys.sort_by_key(|(name, _)| self.learned.keys.contains_key(name));
        for ((server, user), fingerprint) in keys.iter().rev().take(MAX_ENTRIES).rev() {
            text.push_str(&line(&[
                "key",
                &server.address,
                &server.port.to_string(),
                user,
                fingerprint,
            ]));
        }
        text
    }
}

fn server_line(server: &Server, memory: &ServerMemory) -> String {
    line(&[
        "server",
        &server.address,
        &server.port.to_string(),
        &memory.ident,
        &memory.first_kex,
        &memory.first_host_key,
        if memory.post_quantum { "pq" } else { "-" },
        if memory.one_session { "one" } else { "-" },
        if memory.none_first { "none" } else { "-" },
    ])
}

/// One line, or none: a field with a tab or a newline in it is not worth an escape syntax.
fn line(fields: &[&str]) -> String {
    let mut line = String::new();
    if fields.iter().any(|field| field.chars().any(char::is_control)) {
        return line;
    }
    for (index, field) in fields.iter().enumerate() {
        let gap = if index == 0 { "" } else { "\t" };
        write!(line, "{gap}{field}").expect("writing to a string");
    }
    line.push('\n');
    line
}

fn read(file: &Path) -> Memory {
    let mut text = String::new();
    let result = File::open(file).and_then(|file| file.take(MAX_FILE).read_to_string(&mut text));
    match result {
        Ok(_) => parse(&text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Memory::default(),
        Err(error) => {
            log::info!("{}: {error}; starting without memory", file.display());
            Memory::default()
        }
    }
}

fn parse(text: &str) -> Memory {
    let mut memory = Memory::default();
    let Some(lines) = text.strip_prefix(HEADER).and_then(|rest| rest.strip_prefix('\n')) else {
        return memory;
    };
    for line in lines.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        match fields.as_slice() {
            [
                "server",
                address,
                port,
                ident,
                first_kex,
                first_host_key,
                post_quantum,
                one_session,
                none_first,
            ] => {
                let Some(server) = server(address, port) else {
                    continue;
                };
                let habits = ServerMemory {
                    ident: (*ident).to_owned(),
                    first_kex: (*first_kex).to_owned(),
                    first_host_key: (*first_host_key).to_owned(),
                    post_quantum: *post_quantum == "pq",
                    one_session: *one_session == "one",
                    none_first: *none_first == "none",
                };
                memory.servers.insert(server, habits);
            }
            ["key", address, port, user, fingerprint] => {
                let Some(server) = server(address, port) else {
                    continue;
                };
                memory
                    .keys
                    .insert((server, (*user).to_owned()), (*fingerprint).to_owned());
            }
            _ => {}
        }
    }
    memory
}

fn server(address: &str, port: &str) -> Option<Server> {
    Some(Server {
        address: address.to_owned(),
        port: port.parse().ok()?,
    })
}

/// Another run holds the lock for a millisecond. One that holds it longer is stuck, and memory is not worth a wait.
fn wait_for(lock: &File) -> io::Result<()> {
    for _ in 0..LOCK_TRIES {
        match lock.try_lock() {
            Ok(()) => return Ok(()),
            Err(fs::TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}

/// Opens a file that only its owner may read.
fn private(path: &Path, truncate: bool) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(truncate)
        .mode(0o600)
        .open(path)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn server() -> Server {
        Server {
            address: "web01.example".to_owned(),
            port: 22,
        }
    }

    fn habits() -> ServerMemory {
        ServerMemory {
            ident: "SSH-2.0-OpenSSH_9.2p1".to_owned(),
            first_kex: "sntrup761x25519-sha512@openssh.com".to_owned(),
            first_host_key: "rsa-sha2-512".to_owned(),
            post_quantum: true,
            one_session: false,
            none_first: true,
        }
    }

    fn home() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn what_one_run_learned_the_next_one_knows() {
        let home = home();
        let mut first = State::load(Some(home.path().to_owned()));
        first.learn_server(server(), habits());
        first.learn_key(server(), "root", "SHA256:abc".to_owned());
        first.save().unwrap();
        let second = State::load(Some(home.path().to_owned()));
        assert_eq!(second.server(&server()), Some(&habits()));
        assert_eq!(second.key(&server(), "root"), Some("SHA256:abc"));
        assert_eq!(second.key(&server(), "other"), None);
        let mode = fs::metadata(home.path().join("mux/hosts"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_key_that_stopped_working_is_forgotten() {
        let home = home();
        let mut first = State::load(Some(home.path().to_owned()));
        first.learn_key(server(), "root", "SHA256:abc".to_owned());
        first.save().unwrap();
        let mut second = State::load(Some(home.path().to_owned()));
        second.forget_key(server(), "root");
        assert_eq!(second.key(&server(), "root"), None);
        second.save().unwrap();
        assert_eq!(
            State::load(Some(home.path().to_owned())).key(&server(), "root"),
            None
        );
    }

    #[test]
    fn two_runs_at_once_keep_what_both_learned() {
        let home = home();
        let mut one = State::load(Some(home.path().to_owned()));
        let mut two = State::load(Some(home.path().to_owned()));
        one.learn_server(server(), habits());
        one.save().unwrap();
        let other = Server {
            address: "db1".to_owned(),
            port: 22,
        };
        two.learn_server(other.clone(), habits());
        two.save().unwrap();
        let after = State::load(Some(home.path().to_owned()));
        assert!(after.server(&server()).is_some() && after.server(&other).is_some());
    }

    #[test]
    fn a_damaged_file_is_as_good_as_none() {
        let home = home();
        let file = home.path().join("mux/hosts");
        fs::create_dir(home.path().join("mux")).unwrap();
        for damage in [
            &b""[..],
            b"\0\xff\xfe",
            b"mux host memory 2\nserver\ta\t22",
            b"mux host memory 1\nserver\t\n\tx",
        ] {
            fs::write(&file, damage).unwrap();
            assert_eq!(State::load(Some(home.path().to_owned())).known, Memory::default());
        }
    }

    #[test]
    fn a_field_that_would_break_the_file_is_left_out() {
        let home = home();
        let mut state = State::load(Some(home.path().to_owned()));
        state.learn_server(
            server(),
            ServerMemory {
                ident: "a\nkey\tx".to_owned(),
                ..habits()
            },
        );
        state.save().unwrap();
        assert_eq!(State::load(Some(home.path().to_owned())).known, Memory::default());
    }
}
