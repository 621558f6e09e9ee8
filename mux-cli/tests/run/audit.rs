//! The records of a run in the log of the machine: exactly what arrives at its socket, whatever ends the run.

use std::fs;
use std::io::Read;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::rig::{Rig, read_until};

/// Longer than a record takes on a machine that is busy with something else.
const PATIENCE: Duration = Duration::from_secs(60);

/// More than the longest record.
const MAX_RECORD: usize = 256 * 1024;

/// A log that listens in the rig's directory.
struct Log {
    socket: UnixDatagram,
    rig: Rig,
}

impl Log {
    fn new(to: &str) -> Self {
        let rig = Rig::new();
        let socket = UnixDatagram::bind(rig.path("log")).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        prefer(
            &rig,
            &format!("[audit]\nto = '{to}'\nsocket = '{}'\n", rig.text("log")),
        );
        Self { socket, rig }
    }

    /// A run that is told where its configuration is.
    fn command(&self, args: &[&str]) -> Command {
        recorded(&self.rig, args)
    }

    /// The next record, with what differs from run to run replaced, and the id of its run.
    fn record(&self) -> (String, String) {
        let mut record = vec![0; MAX_RECORD];
        let length = self.socket.recv(&mut record).expect("no record has come");
        let record = String::from_utf8(record[..length].to_vec()).unwrap();
        let id = after(&record, " run=", ' ').to_owned();
        assert!(
            id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "{record}"
        );
        let mut record = record.replace(&id, "ID");
        let own_uid = after(&record, " uid=", ' ').to_owned();
        let login_uid = after(&record, " login_uid=", ' ').to_owned();
        assert_eq!(own_uid, rustix::process::getuid().as_raw().to_string());
        assert_eq!(login_uid, login_uid_of_test());
        for (name, end) in [
            ("mux[", ']'),
            (" seconds=", ' '),
            ("SYSLOG_PID=", '\n'),
            ("MUX_USEC=", '\n'),
            (" login_uid=", ' '),
            (" uid=", ' '),
            ("MUX_LOGIN_UID=", '\n'),
            ("MUX_UID=", '\n'),
        ] {
            if let Some(at) = record.find(name) {
                let start = at + name.len();
                let length = record[start..].find(end).unwrap();
                record.replace_range(start..start + length, "N");
            }
        }
        (record, id)
    }

    /// Two records of one run, as syslog is given them.
    fn check(&self, begin: &str, end: &str) {
        let (first, id) = self.record();
        assert_eq!(
            first,
            format!("<85>mux[N]: begin run=ID login_uid=N uid=N {begin}")
        );
        let (second, same) = self.record();
        assert_eq!(second, format!("<85>mux[N]: end run=ID login_uid=N uid=N {end}"));
        assert_eq!(id, same);
        self.check_silent();
    }

    fn check_silent(&self) {
        self.socket.set_nonblocking(true).unwrap();
        assert!(self.socket.recv(&mut [0]).is_err(), "a record too many");
        self.socket.set_nonblocking(false).unwrap();
    }
}

fn after<'a>(record: &'a str, name: &str, end: char) -> &'a str {
    let (_, rest) = record.split_once(name).expect("a field is missing");
    rest.split(end).next().unwrap()
}

/// As the kernel has it for this test and what it starts.
fn login_uid_of_test() -> String {
    let text = fs::read_to_string("/proc/self/loginuid").unwrap_or_default();
    match text.trim() {
        "" | "4294967295" => "unset".to_owned(),
        uid => uid.to_owned(),
    }
}

fn prefer(rig: &Rig, text: &str) {
    fs::write(rig.path("config.toml"), text).unwrap();
}

fn recorded(rig: &Rig, args: &[&str]) -> Command {
    let mut command = rig.command(args);
    command.env("MUX_CONFIG", rig.path("config.toml"));
    command
}

fn staying(log: &Log, command: &str) -> (Child, String) {
    let mut child = log
        .command(&["-w", "web1", "--", command])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let said = read_until(child.stdout.as_mut().unwrap(), "ready\n");
    (child, said)
}

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

fn end(child: &mut Child) {
    let mut rest = String::new();
    child.stdout.as_mut().unwrap().read_to_string(&mut rest).unwrap();
    child.wait().unwrap();
}

#[test]
fn syslog_is_told_when_a_run_begins_and_how_it_ended() {
    let log = Log::new("syslog");
    let args = [
        "--env",
        "TOKEN=secret",
        "-w",
        "web[1-3]",
        "--",
        "test \"$0\" = nothing",
    ];
    let ran = log.rig.finish(log.command(&args).output().unwrap());
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    let facts = r#"hosts=3 targets="web[1-3]" command="test \"$0\" = nothing""#;
    log.check(facts, &format!("status=1 failed=3 seconds=N {facts}"));
}

#[test]
fn the_journal_is_told_field_by_field() {
    let log = Log::new("journal");
    let ran = log
        .rig
        .finish(log.command(&["-w", "web1", "--", "true"]).output().unwrap());
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    let (first, id) = log.record();
    assert_eq!(
        first,
        "MESSAGE=begin run=ID login_uid=N uid=N hosts=1 targets=\"web1\" command=\"true\"\n\
         MESSAGE_ID=5c2a8f3e7d1946b0a4e85b1f0c936d27\nPRIORITY=5\nSYSLOG_FACILITY=10\nSYSLOG_IDENTIFIER=mux\n\
         SYSLOG_PID=N\nMUX_EVENT=begin\nMUX_RUN=ID\nMUX_LOGIN_UID=N\nMUX_UID=N\nMUX_HOSTS=1\nMUX_TARGETS=web1\n\
         MUX_COMMAND=true\n"
    );
    let (second, same) = log.record();
    assert_eq!(
        second,
        "MESSAGE=end run=ID login_uid=N uid=N status=0 ok=1 seconds=N hosts=1 targets=\"web1\" command=\"true\"\n\
         MESSAGE_ID=b81d4f6690ce4a3f8e27c5da13f07b94\nPRIORITY=5\nSYSLOG_FACILITY=10\nSYSLOG_IDENTIFIER=mux\n\
         SYSLOG_PID=N\nMUX_EVENT=end\nMUX_RUN=ID\nMUX_LOGIN_UID=N\nMUX_UID=N\nMUX_STATUS=0\nMUX_OK=1\nMUX_USEC=N\n\
         MUX_HOSTS=1\nMUX_TARGETS=web1\nMUX_COMMAND=true\n"
    );
    assert_eq!(id, same);
}

#[test]
fn a_terminated_run_is_recorded_to_its_end() {
    let log = Log::new("syslog");
    let (mut child, _) = staying(&log, "echo ready; exec sleep 600");
    send(&child, Signal::TERM);
    end(&mut child);
    let facts = r#"hosts=1 targets="web1" command="echo ready; exec sleep 600""#;
    log.check(
        facts,
        &format!("status=143 cut=TERM cancelled=1 seconds=N {facts}"),
    );
}

#[test]
fn who_leaves_at_the_second_interrupt_is_recorded_all_the_same() {
    let log = Log::new("syslog");
    let command = "trap '' TERM; echo ready; sleep 600 & wait; wait";
    let (mut child, _) = staying(&log, command);
    send(&child, Signal::INT);
    send(&child, Signal::INT);
    end(&mut child);
    let facts = format!(r#"hosts=1 targets="web1" command="{command}""#);
    log.check(
        &facts,
        &format!("status=130 cut=INT cancelled=1 seconds=N {facts}"),
    );
}

#[test]
fn of_a_run_that_is_killed_at_once_its_beginning_is_known() {
    let log = Log::new("syslog");
    let (mut child, _) = staying(&log, "echo ready; exec sleep 600");
    send(&child, Signal::KILL);
    end(&mut child);
    let (first, _) = log.record();
    let facts = r#"hosts=1 targets="web1" command="echo ready; exec sleep 600""#;
    assert_eq!(
        first,
        format!("<85>mux[N]: begin run=ID login_uid=N uid=N {facts}")
    );
    log.check_silent();
}

#[test]
fn without_a_log_the_run_goes_on_and_says_so_once() {
    let rig = Rig::new();
    prefer(
        &rig,
        &format!("[audit]\nto = 'journal'\nsocket = '{}'\n", rig.text("nobody")),
    );
    let ran = rig.finish(
        recorded(&rig, &["-q", "-w", "web1", "--", "echo ran"])
            .output()
            .unwrap(),
    );
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "web1: ran\n"));
    assert_eq!(
        ran.stderr,
        "mux: audit: DIR/nobody: entity not found; this run is not recorded as [audit] of the configuration asks\n"
    );
}

#[test]
fn nothing_runs_that_has_to_be_recorded_and_is_not() {
    let rig = Rig::new();
    prefer(
        &rig,
        &format!(
            "[audit]\nto = 'syslog'\nrequired = true\nsocket = '{}'\n",
            rig.text("nobody")
        ),
    );
    let command = format!("touch {}", rig.text("ran"));
    let ran = rig.finish(recorded(&rig, &["-w", "web1", "--", &command]).output().unwrap());
    assert_eq!((ran.status, ran.stdout.as_str()), (125, ""));
    assert_eq!(
        ran.stderr,
        "mux: audit: DIR/nobody: entity not found; nothing was run, for the configuration says that every run has to be \
         recorded\n"
    );
    assert!(!rig.path("ran").exists());
}

#[test]
fn a_log_that_stands_still_holds_nobody_up() {
    let log = Log::new("syslog");
    let filler = UnixDatagram::unbound().unwrap();
    filler.connect(log.rig.path("log")).unwrap();
    filler.set_nonblocking(true).unwrap();
    while filler.send(b"full").is_ok() {}
    let ran = log
        .rig
        .finish(log.command(&["-w", "web1", "--", "echo ran"]).output().unwrap());
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "web1: ran\n"));
    assert_eq!(
        ran.stderr,
        "mux: audit: the log takes nothing more; this run is not recorded as [audit] of the configuration asks\n"
    );
}

#[test]
fn a_log_that_was_full_at_the_beginning_has_both_records_at_the_end() {
    let log = Log::new("syslog");
    let filler = UnixDatagram::unbound().unwrap();
    filler.connect(log.rig.path("log")).unwrap();
    filler.set_nonblocking(true).unwrap();
    let mut full = 0;
    while filler.send(b"full").is_ok() {
        full += 1;
    }
    let go = log.rig.text("go");
    let command = format!("echo ready; while ! test -e {go}; do sleep 0.1; done");
    let (mut child, _) = staying(&log, &command);
    for _ in 0..full {
        assert_eq!(log.socket.recv(&mut [0; 4]).unwrap(), 4);
    }
    fs::write(&go, "").unwrap();
    end(&mut child);
    let facts = format!(r#"hosts=1 targets="web1" command="{command}""#);
    log.check(&facts, &format!("status=0 ok=1 seconds=N {facts}"));
}

#[test]
fn what_the_configuration_says_wrong_stops_the_run_before_it_begins() {
    let rig = Rig::new();
    prefer(&rig, "[audit]\nlog = 'journal'\n");
    let ran = rig.finish(recorded(&rig, &["-w", "web1", "--", "true"]).output().unwrap());
    assert_eq!(
        (ran.status, ran.stderr.as_str()),
        (
            2,
            "mux: DIR/config.toml:2: unknown field `log`, expected one of `to`, `socket`, `required`\n"
        )
    );
}
