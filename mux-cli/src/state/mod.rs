//! What is remembered between runs: the habits of servers and the key that worked, in one file of the user's state
//! directory. Decides the file's form and survives any damage to it; losing it costs a round trip and nothing else.

mod sorted;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use mux_ssh::known_hosts::Salt;
use mux_ssh::transport::ServerMemory;

use self::sorted::Changes;
use crate::files::{self, FileError};

/// The first line; another one means another version, whose content is not looked at.
const HEADER: &str = "mux host memory 2\n";

/// More is not read: a hundred thousand hosts fit, and a file that grew beyond is damaged.
const MAX_FILE: u64 = 32 * 1024 * 1024;

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
    /// What it is connected to through, in words that mean the same in each run; empty: nothing.
    pub way: String,
}

/// The file, what was in it and what this run has learned.
#[derive(Debug, Default)]
pub struct State {
    file: Option<PathBuf>,
    /// The lines of the file: `server`, address, port and habits; `key`, address, port, user and the key that worked; or
    /// `salts`, a name in known_hosts and the salts of its lines.
    known: String,
    /// What this run has met, also where it was known: a file that is out of order loses lines when it is written, and
    /// these must not be among them.
    learned: Changes,
    /// Whether any of it differs from what was known, so that the file has to be written.
    is_changed: bool,
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
            learned: Changes::new(),
            is_changed: false,
        }
    }

    /// The habits of a server.
    #[must_use]
    pub fn server(&self, server: &Server) -> Option<ServerMemory> {
        habits(self.line(&server_name(server))?)
    }

    /// The key that worked there last, as it was remembered.
    #[must_use]
    pub fn key(&self, server: &Server, user: &str) -> Option<&str> {
        self.line(&key_name(server, user))
    }

    /// The salts with which a name is hashed in known_hosts.
    pub fn salts(&self, name: &str) -> impl Iterator<Item = Salt> {
        let line = self.line(&salts_name(name)).unwrap_or_default();
        line.split(' ').filter_map(Salt::parse)
    }

    /// Remembers with which salts a name is hashed.
    pub fn learn_salts(&mut self, name: &str, salts: &[Salt]) {
        let texts: Vec<String> = salts.iter().map(ToString::to_string).collect();
        self.learn(salts_name(name), texts.join(" "));
    }

    /// Remembers the habits of a server.
    pub fn learn_server(&mut self, server: &Server, memory: &ServerMemory) {
        self.learn(server_name(server), habits_line(memory));
    }

    /// Remembers which key worked.
    pub fn learn_key(&mut self, server: &Server, user: &str, key: String) {
        self.learn(key_name(server, user), key);
    }

    /// Forgets which key worked: it does no longer.
    pub fn forget_key(&mut self, server: &Server, user: &str) {
        let name = key_name(server, user);
        if self.line(&name).is_some() {
            self.learned.insert(name, None);
            self.is_changed = true;
        }
    }

    /// Writes what this run has learned, beside what other runs have written meanwhile.
    ///
    /// # Errors
    /// The directory or the file can't be written.
    pub fn save(&self) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        if !self.is_changed {
            return Ok(());
        }
        let directory = file.parent().unwrap_or(Path::new("/"));
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
        let lock = private(&directory.join("hosts.lock"), false)?;
        wait_for(&lock)?;
        let merged = sorted::merge(&read(file), &self.learned);
        let draft = directory.join("hosts.new");
        let mut new = private(&draft, true)?;
        new.write_all(HEADER.as_bytes())?;
        new.write_all(merged.as_bytes())?;
        fs::rename(draft, file)
    }

    fn line(&self, name: &str) -> Option<&str> {
        match self.learned.get(name) {
            Some(learned) => learned.as_deref(),
            None => sorted::find(&self.known, name),
        }
    }

    /// A field with a tab or a newline in it is not worth an escape syntax: such a line is not kept.
    fn learn(&mut self, name: String, rest: String) {
        let is_field = |text: &str| !text.chars().any(|c| c.is_control() && c != '\t');
        let tabs = |text: &str| text.bytes().filter(|byte| *byte == b'\t').count();
        let shape = match name.split('\t').next() {
            Some("server") => (3, 5),
            Some("key") => (4, 0),
            _ => (2, 0),
        };
        let whole = is_field(&name) && is_field(&rest) && (tabs(&name), tabs(&rest)) == shape;
        if whole {
            self.is_changed |= self.line(&name) != Some(&rest);
            self.learned.insert(name, Some(rest));
        }
    }
}

fn server_name(server: &Server) -> String {
    format!("server\t{}\t", place(server))
}

fn key_name(server: &Server, user: &str) -> String {
    format!("key\t{}\t{user}\t", place(server))
}

/// The same name behind another jump host is another server. No address has a blank in it.
fn place(server: &Server) -> String {
    let Server { address, port, way } = server;
    match way.as_str() {
        "" => format!("{address}\t{port}"),
        way => format!("{address} via {way}\t{port}"),
    }
}

fn salts_name(name: &str) -> String {
    format!("salts\t{name}\t")
}

fn habits_line(memory: &ServerMemory) -> String {
    [
        memory.ident.as_str(),
        &memory.first_kex,
        &memory.first_host_key,
        if memory.post_quantum { "pq" } else { "-" },
        if memory.one_session { "one" } else { "-" },
        if memory.none_first { "none" } else { "-" },
    ]
    .join("\t")
}

fn habits(line: &str) -> Option<ServerMemory> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [
        ident,
        first_kex,
        first_host_key,
        post_quantum,
        one_session,
        none_first,
    ] = fields.as_slice()
    else {
        return None;
    };
    Some(ServerMemory {
        ident: (*ident).to_owned(),
        first_kex: (*first_kex).to_owned(),
        first_host_key: (*first_host_key).to_owned(),
        post_quantum: *post_quantum == "pq",
        one_session: *one_session == "one",
        none_first: *none_first == "none",
    })
}

/// The lines behind the header.
fn read(file: &Path) -> String {
    let content = files::read(file, MAX_FILE).and_then(|content| {
        String::from_utf8(content).map_err(|_| FileError::Io(io::ErrorKind::InvalidData, None))
    });
    match content {
        Ok(text) => text.strip_prefix(HEADER).unwrap_or_default().to_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => {
            log::info!("{}: {error}; starting without memory", file.display());
            String::new()
        }
    }
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
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(truncate).mode(0o600);
    Ok(files::open(&mut options, path)?)
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
            way: String::new(),
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
        first.learn_server(&server(), &habits());
        first.learn_key(&server(), "root", "SHA256:abc".to_owned());
        first.save().unwrap();
        let second = State::load(Some(home.path().to_owned()));
        assert_eq!(second.server(&server()), Some(habits()));
        assert_eq!(second.key(&server(), "root"), Some("SHA256:abc"));
        assert_eq!(second.key(&server(), "other"), None);
        let mode = fs::metadata(home.path().join("mux/hosts"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn the_same_name_behind_a_jump_host_is_another_server() {
        let home = home();
        let behind = |way: &str| Server {
            way: way.to_owned(),
            ..server()
        };
        let mut first = State::load(Some(home.path().to_owned()));
        first.learn_server(&behind("me@gate1:22"), &habits());
        first.learn_key(&behind("me@gate1:22"), "root", "SHA256:abc".to_owned());
        first.save().unwrap();
        let second = State::load(Some(home.path().to_owned()));
        assert_eq!(second.server(&behind("me@gate1:22")), Some(habits()));
        assert_eq!(second.key(&behind("me@gate1:22"), "root"), Some("SHA256:abc"));
        for way in ["", "me@gate2:22", "me@gate1:22,me@gate2:22"] {
            assert_eq!(second.server(&behind(way)), None, "{way}");
            assert_eq!(second.key(&behind(way), "root"), None, "{way}");
        }
    }

    #[test]
    fn salts_are_kept_and_replaced() {
        let home = home();
        let salt = |byte| Salt([byte; 20]);
        let read = || {
            let state = State::load(Some(home.path().to_owned()));
            state.salts("[web1]:2222").collect::<Vec<_>>()
        };
        for salts in [&[salt(1), salt(2)][..], &[salt(3)], &[salt(2), salt(1)]] {
            let mut state = State::load(Some(home.path().to_owned()));
            state.learn_salts("[web1]:2222", salts);
            state.learn_salts("a\tb", salts);
            state.save().unwrap();
            assert_eq!(read(), salts);
        }
    }

    #[test]
    fn a_pipe_in_place_of_the_file_is_not_waited_for() {
        let home = home();
        fs::create_dir(home.path().join("mux")).unwrap();
        let (file, mode) = (home.path().join("mux/hosts"), rustix::fs::Mode::RUSR);
        rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert_eq!(State::load(Some(home.path().to_owned())).server(&server()), None);
    }

    #[test]
    fn a_key_that_stopped_working_is_forgotten() {
        let home = home();
        let mut first = State::load(Some(home.path().to_owned()));
        first.learn_key(&server(), "root", "SHA256:abc".to_owned());
        first.save().unwrap();
        let mut second = State::load(Some(home.path().to_owned()));
        second.forget_key(&server(), "root");
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
        one.learn_server(&server(), &habits());
        one.save().unwrap();
        let other = Server {
            address: "db1".to_owned(),
            port: 22,
            way: String::new(),
        };
        two.learn_server(&other, &habits());
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
            b"mux host memory 1\nserver\tweb01.example\t22\tSSH-2.0-a\tb\tc\t-\t-\t-\n",
            b"mux host memory 2\nserver\tweb01.example\t22\tSSH-2.0-a\tb",
            b"mux host memory 2\nserver\t\n\tx",
        ] {
            fs::write(&file, damage).unwrap();
            assert_eq!(State::load(Some(home.path().to_owned())).server(&server()), None);
        }
    }

    /// The key is found where it stands, and its line is one that the next change drops.
    #[test]
    fn what_stood_out_of_order_and_is_learned_again_stays() {
        let home = home();
        let file = home.path().join("mux/hosts");
        fs::create_dir(home.path().join("mux")).unwrap();
        let key = "key\tweb01.example\t22\troot\tSHA256:abc\n";
        fs::write(&file, [HEADER, "xxx\n", &"\n".repeat(50), key, "y\n"].concat()).unwrap();
        let mut state = State::load(Some(home.path().to_owned()));
        assert_eq!(
            state.key(&server(), "root"),
            Some("SHA256:abc"),
            "found in a damaged file"
        );
        state.learn_key(&server(), "root", "SHA256:abc".to_owned());
        state.learn_server(&server(), &habits());
        state.save().unwrap();
        let again = State::load(Some(home.path().to_owned()));
        assert_eq!(again.key(&server(), "root"), Some("SHA256:abc"));
        assert_eq!(again.server(&server()), Some(habits()));
    }

    #[test]
    fn a_run_that_learns_nothing_new_leaves_the_file_alone() {
        let home = home();
        let mut first = State::load(Some(home.path().to_owned()));
        first.learn_key(&server(), "root", "SHA256:abc".to_owned());
        first.save().unwrap();
        fs::remove_file(home.path().join("mux/hosts.lock")).unwrap();
        let mut second = State::load(Some(home.path().to_owned()));
        second.learn_key(&server(), "root", "SHA256:abc".to_owned());
        second.save().unwrap();
        assert!(
            !home.path().join("mux/hosts.lock").exists(),
            "nothing was written"
        );
    }

    #[test]
    fn a_field_that_would_break_the_file_is_left_out() {
        let home = home();
        let mut state = State::load(Some(home.path().to_owned()));
        state.learn_server(
            &server(),
            &ServerMemory {
                ident: "a\nkey\tx".to_owned(),
                ..habits()
            },
        );
        state.save().unwrap();
        state.learn_key(&server(), "us\ter", "SHA256:abc".to_owned());
        state.save().unwrap();
        assert_eq!(State::load(Some(home.path().to_owned())).known, "");
    }
}
