//! Output without bound, and readers that are slow or don't read: little memory, no host lost, every byte printed.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::processes::peak_resident;
use crate::rig::Rig;

/// The peak that the process may have.
const MAX_RESIDENT: u64 = 96 << 20;

fn start(mut command: Command) -> Child {
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn stderr_of(child: &mut Child) -> String {
    io::read_to_string(child.stderr.take().unwrap()).unwrap()
}

#[test]
fn a_slow_reader_slows_the_hosts_and_costs_no_memory() {
    let rig = Rig::new();
    let mut child = start(rig.command(&["-w", "web[01-20]", "--", "timeout 60 yes"]));
    let mut stdout = child.stdout.take().unwrap();
    let mut buffer = vec![0; 100_000];
    // A megabyte a second, for six: what was not taken from the hosts stays with them.
    let start = Instant::now();
    let mut peak = 0;
    while start.elapsed() < Duration::from_secs(6) {
        stdout.read_exact(&mut buffer).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        peak = peak_resident(child.id()).unwrap().max(peak);
    }
    drop(stdout);
    assert_eq!(stderr_of(&mut child), "");
    assert_eq!(child.wait().unwrap().code(), Some(141));
    assert!(peak <= MAX_RESIDENT, "peak of {} MiB", peak >> 20);
}

#[test]
fn a_reader_that_pauses_longer_than_both_keepalives_allow_loses_no_host() {
    // Both sides give up a peer that is silent for two seconds.
    let rig = Rig::with("ClientAliveInterval 1\nClientAliveCountMax 2");
    rig.configure("ServerAliveInterval 1\nServerAliveCountMax 2");
    let mut child = start(rig.command(&["-w", "web[01-20]", "--", "seq 1 200000"]));
    let stdout = BufReader::new(child.stdout.take().unwrap());
    std::thread::sleep(Duration::from_secs(8));
    let mut counts: HashMap<String, u32> = HashMap::new();
    for line in stdout.lines() {
        let line = line.unwrap();
        let (host, number) = line.split_once(": ").unwrap();
        let count = counts.entry(host.to_owned()).or_default();
        *count += 1;
        assert_eq!(number, count.to_string(), "{host}");
    }
    assert_eq!(stderr_of(&mut child), "");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let expected: HashMap<String, u32> = (1..=20).map(|n| (format!("web{n:02}"), 200_000)).collect();
    assert_eq!(counts, expected);
}

/// Lines that each host prints, of 64 bytes and the id of its shell: together twice of what is kept in memory.
const LINES: usize = 120_000;

#[test]
fn large_outputs_are_gathered_whole_in_little_memory_and_the_spill_is_said() {
    let rig = Rig::new();
    let filler = "x".repeat(62);
    let command = format!("yes \"$$ {filler}\" | head -n {LINES}");
    let mut child = start(rig.command(&["-b", "-w", "web[01-20]", "--", &command]));
    let mut stdout = BufReader::with_capacity(1 << 20, child.stdout.take().unwrap());
    let (mut peak, mut headers, mut groups) = (0, 0, Vec::new());
    let mut line = String::new();
    let mut read = 0;
    while stdout.read_line(&mut line).unwrap() > 0 {
        if line == "---------------\n" {
            headers += 1;
        } else if headers % 2 == 1 {
            groups.push((line.trim().to_owned(), HashMap::<String, usize>::new()));
        } else {
            let counts = &mut groups.last_mut().unwrap().1;
            *counts.entry(line.clone()).or_default() += 1;
        }
        if read % 10_000 == 0 {
            peak = peak_resident(child.id()).unwrap_or_default().max(peak);
        }
        read += 1;
        line.clear();
    }
    let stderr = stderr_of(&mut child);
    assert_eq!(child.wait().unwrap().code(), Some(0), "{stderr}");
    let mut names: Vec<&str> = groups.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, (1..=20).map(|n| format!("web{n:02}")).collect::<Vec<_>>());
    for (name, counts) in &groups {
        // One kind of line: the output of one shell, not mixed with that of another.
        let lines: Vec<&usize> = counts.values().collect();
        assert_eq!(lines, [&LINES], "{name}");
        assert!(
            counts.keys().all(|line| line.ends_with(&format!(" {filler}\n"))),
            "{name}"
        );
    }
    assert!(stderr.starts_with("mux: web[01-20]: large output, "), "{stderr}");
    assert!(
        stderr.ends_with(" of it went through a temporary file\n"),
        "{stderr}"
    );
    assert!((1..=MAX_RESIDENT).contains(&peak), "peak of {} MiB", peak >> 20);
}
