//! `bench bulk`: much data out of one host and into it, cipher by cipher, against `ssh` with the same cipher. Both
//! talk to the same sshd on loopback without a relay: what is compared is what a byte costs, not how far it goes.
//!
//! A run is a whole process with its login. Out: `mux run -N`, standard output is `/dev/null`. Into: `mux run
//! --stdin=FILE`, and the same file of zeros as the standard input of `ssh`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::clients::{self, Client};
use super::cost::{self, Run};
use super::fleet::{Fleet, Host};
use super::options::Options;
use super::servers::{self, KeyExchange};
use super::statistics::Summary;
use super::table;
use crate::cleanup::Directory;
use crate::{paths, style};

/// What both sides have.
const CIPHERS: &[&str] = &[
    "chacha20-poly1305@openssh.com",
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "aes128-ctr",
    "aes192-ctr",
    "aes256-ctr",
];

/// The MAC of those that need one: the first that both sides have.
const MAC: &str = "hmac-sha2-256-etm@openssh.com";

/// What memory at full size is compared with: everything that grows with a connection has grown by then.
const SMALL_MIB: u64 = 64;

/// As much faster or slower as `ssh` may be called equal.
const PAR: f64 = 0.95;
/// Peak memory at full size above that at the small one, in MiB; of the medians, as what waits at the worst moment differs.
const GROWTH: f64 = 2.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Out,
    Into,
}

impl Direction {
    const ALL: &[Self] = &[Self::Out, Self::Into];

    fn name(self) -> &'static str {
        match self {
            Self::Out => "out",
            Self::Into => "into",
        }
    }
}

/// What is measured against what.
struct Place<'a> {
    directory: &'a Directory,
    fleet: Fleet,
    /// Zeros, of either size; without blocks on the disk.
    full: Zeros,
    small: Zeros,
}

struct Zeros {
    file: PathBuf,
    mib: u64,
}

/// A row of the table.
struct Row {
    cipher: &'static str,
    direction: Direction,
    ssh: Vec<Run>,
    mux: Vec<Run>,
    /// Ours at the small size, for its memory.
    mux_small: Vec<Run>,
}

pub(super) fn run(options: &Options) -> Result<Value> {
    let directory = Directory::new("mux-bench-")?;
    servers::generate_keys(&directory)?;
    let sshd = servers::openssh(&directory, KeyExchange::Curve25519)?;
    let host = Host {
        name: "h0000".into(),
        address: sshd.address,
    };
    let place = Place {
        fleet: Fleet::write(
            &directory,
            "bulk",
            vec![host],
            &clients::openssh_host_key(&directory)?,
        )?,
        full: Zeros::new(&directory, options.mib)?,
        small: Zeros::new(&directory, SMALL_MIB)?,
        directory: &directory,
    };
    println!(
        "{}",
        style::bold(&format!(
            "\nbulk: {} MiB out of and into one host on loopback, OpenSSH, median [range] of {} runs",
            options.mib, options.runs
        ))
    );
    let mut rows = Vec::new();
    for cipher in CIPHERS.iter().filter(|cipher| options.wants_cipher(cipher)) {
        for direction in Direction::ALL {
            rows.push(place.compare(cipher, *direction, options)?);
        }
    }
    show(&rows, options.mib);
    Ok(json!(rows.iter().map(|row| row.to_json()).collect::<Vec<_>>()))
}

impl Zeros {
    fn new(directory: &Directory, mib: u64) -> Result<Self> {
        let file = directory.join(&format!("zeros.{mib}"));
        File::create(&file)?.set_len(mib << 20)?;
        Ok(Self { file, mib })
    }
}

impl Place<'_> {
    fn compare(&self, cipher: &'static str, direction: Direction, options: &Options) -> Result<Row> {
        let mut row = Row {
            cipher,
            direction,
            ssh: Vec::new(),
            mux: Vec::new(),
            mux_small: Vec::new(),
        };
        // A small run first: it warms caches.
        self.once(Client::Ssh, cipher, direction, &self.small)?;
        for _ in 0..options.runs {
            row.mux_small
                .push(self.once(Client::Mux, cipher, direction, &self.small)?);
            row.ssh
                .push(self.once(Client::Ssh, cipher, direction, &self.full)?);
            row.mux
                .push(self.once(Client::Mux, cipher, direction, &self.full)?);
        }
        Ok(row)
    }

    fn once(&self, client: Client, cipher: &str, direction: Direction, zeros: &Zeros) -> Result<Run> {
        let state = tempfile::tempdir_in(self.directory.path())?;
        let remote = match direction {
            Direction::Out => format!("head -c {}M /dev/zero", zeros.mib),
            // Counted at the far end: what did not arrive is not fast.
            Direction::Into => "wc -c".to_owned(),
        };
        let mut command = match client {
            Client::Mux => self.mux(state.path()),
            Client::Ssh | Client::Asyncssh | Client::Bssh => self.ssh(),
        };
        command
            .args(["-o", &format!("Ciphers={cipher}")])
            .args(["-o", &format!("MACs={MAC}")]);
        let input = match (client, direction) {
            (Client::Mux, Direction::Out) => Stdio::null(),
            (Client::Mux, Direction::Into) => {
                command.arg(format!("--stdin={}", zeros.file.display()));
                Stdio::null()
            }
            (Client::Ssh | Client::Asyncssh | Client::Bssh, Direction::Out) => Stdio::null(),
            (Client::Ssh | Client::Asyncssh | Client::Bssh, Direction::Into) => {
                File::open(&zeros.file)?.into()
            }
        };
        match client {
            Client::Mux => command.args(["-N", "-w", "h0000", "--", &remote]),
            Client::Ssh | Client::Asyncssh | Client::Bssh => command.args(["h0000", &remote]),
        };
        self.measured(&command, input, direction, zeros)
    }

    fn ssh(&self) -> Command {
        let mut command = Command::new("ssh");
        command
            .arg("-F")
            .arg(&self.fleet.config)
            .env_remove("SSH_AUTH_SOCK");
        command
    }

    fn mux(&self, state: &Path) -> Command {
        let mut command = Command::new(paths::release("mux"));
        command
            .args(["run", "-F"])
            .arg(&self.fleet.config)
            .env("XDG_STATE_HOME", state)
            .env_remove("SSH_AUTH_SOCK");
        command
    }

    fn measured(&self, command: &Command, input: Stdio, direction: Direction, zeros: &Zeros) -> Result<Run> {
        let run = cost::measure_with(&self.fleet.scratch, command, input, direction == Direction::Into)?;
        let what = crate::command::line(command);
        ensure!(run.succeeded(), "`{what}`: {}", run.stderr);
        if direction == Direction::Into {
            let counted = run.stdout.trim().parse();
            ensure!(
                counted == Ok(zeros.mib << 20),
                "`{what}`: the far end counted {counted:?} bytes"
            );
        }
        Ok(run)
    }
}

impl Row {
    /// MiB a second.
    fn speed(runs: &[Run], mib: u64) -> Option<Summary> {
        #[expect(clippy::cast_precision_loss, reason = "nobody sends 2^52 MiB")]
        let mib = mib as f64;
        Summary::of(runs.iter().filter_map(Run::wall_ms).map(|wall| mib / wall * 1e3))
    }

    /// Ours to theirs: of two runs one behind the other, so that a slow minute of the machine hits both.
    fn ratio(&self) -> Option<f64> {
        let pairs = self.ssh.iter().zip(&self.mux);
        let ratios = pairs.filter_map(|(ssh, mux)| Some(ssh.wall_ms()? / mux.wall_ms()?));
        Some(Summary::of(ratios)?.median)
    }

    /// Peak memory of ours, in MiB: at the small size, at the full one.
    fn peaks(&self) -> Option<(Summary, Summary)> {
        let peak = |runs: &[Run]| Summary::of(runs.iter().filter_map(Run::peak_mib));
        Some((peak(&self.mux_small)?, peak(&self.mux)?))
    }

    fn cells(&self, mib: u64) -> Option<Vec<String>> {
        let cpu = |runs: &[Run]| Summary::of(runs.iter().filter_map(Run::cpu_ms));
        let (small, full) = self.peaks()?;
        Some(vec![
            format!("{}, {}", self.cipher, self.direction.name()),
            shown(Self::speed(&self.ssh, mib)?, 0),
            shown(Self::speed(&self.mux, mib)?, 0),
            format!("× {:.2}", self.ratio()?),
            shown(cpu(&self.ssh)?, 0),
            shown(cpu(&self.mux)?, 0),
            shown(small, 1),
            shown(full, 1),
        ])
    }

    fn to_json(&self) -> Value {
        json!({
            "cipher": self.cipher,
            "direction": self.direction.name(),
            "ratio": self.ratio(),
            "ssh": cost::to_json(&self.ssh),
            "mux": cost::to_json(&self.mux),
            "mux_small": cost::to_json(&self.mux_small),
        })
    }
}

fn shown(Summary { median, least, most }: Summary, decimals: usize) -> String {
    format!("{median:.decimals$} [{least:.decimals$}–{most:.decimals$}]")
}

fn show(rows: &[Row], mib: u64) {
    let heading = [
        "cipher, direction",
        "ssh MiB/s",
        "mux MiB/s",
        "ratio",
        "ssh CPU ms",
        "mux CPU ms",
        "mux peak MiB, small",
        "full",
    ];
    let heading = heading.map(str::to_owned).to_vec();
    let cells = rows.iter().filter_map(|row| row.cells(mib));
    table::print(&std::iter::once(heading).chain(cells).collect::<Vec<_>>());
    println!(
        "  {}",
        style::dim(
            "out: `mux run -N` into /dev/null; into: `mux run --stdin=FILE`, counted at the far end; ratio: median of pairs"
        )
    );
    for row in rows {
        let slow = row.ratio().is_none_or(|ratio| ratio < PAR);
        let grown = row
            .peaks()
            .is_none_or(|(small, full)| full.median > small.median + GROWTH);
        for fault in [
            slow.then(|| format!("slower than {PAR} × ssh")),
            grown.then(|| format!("peak memory grew by more than {GROWTH} MiB")),
        ]
        .into_iter()
        .flatten()
        {
            let what = format!("{}, {}: {fault}", row.cipher, row.direction.name());
            println!("  {}", style::bad(&what));
        }
    }
}
