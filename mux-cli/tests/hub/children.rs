//! Processes of the system's `ssh` that exist only in memory: each does what its script says, when it says so, and is
//! counted. Decides nothing; every test says how the hosts' processes behave.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use bytes::Bytes;
use mux_cli::hub::{Kill, LinkEvent, NoLink, Request, StreamKind, Transport};

/// What a process does.
#[derive(Clone, Debug)]
pub(crate) enum Does {
    /// Writes a line to its log; `PID` stands for its number.
    Logs(&'static str),
    /// Passes on what the command writes, or says something itself.
    Writes(StreamKind, &'static str),
    /// Ends with this status.
    Ends(i32),
    /// Is ended by this signal.
    Dies(i32),
}

/// What it does, and how long after it was started.
pub(crate) type Script = Vec<(Duration, Does)>;

/// How a command takes it that it is stopped over a second session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stops {
    /// It ends.
    Yes,
    /// It goes on.
    No,
}

/// The processes of a simulation.
#[derive(Default)]
pub(crate) struct Children {
    by_host: HashMap<String, (Script, Option<Stops>)>,
    running: BTreeMap<usize, Child>,
    /// There are none to be had, so many times.
    pub(crate) refusals: VecDeque<NoLink>,
    /// How many were started.
    pub(crate) started: usize,
    /// The most that there were at once.
    pub(crate) most: usize,
    /// The most that had not logged in at once, at one door.
    pub(crate) most_at_door: usize,
    /// How they were ended.
    pub(crate) kills: Vec<Kill>,
}

struct Child {
    pid: u32,
    door: String,
    script: VecDeque<(Instant, Does)>,
    killer_over: Option<Instant>,
    stops: Option<Stops>,
    logged_in: bool,
}

const CONNECTING: &str =
    "debug1: sshconnect.c:ssh_connect_direct():1 (pid=PID): Connecting to h [192.0.2.1] port 22.";
const GREETED: &str =
    "debug1: kex.c:kex_exchange_identification():1 (pid=PID): Local version string SSH-2.0-OpenSSH_9.2";
const EXCHANGING: &str = "debug1: kex.c:kex_exchange_identification():2 (pid=PID): Remote protocol version 2.0, remote software version x";
const LOGGING_IN: &str =
    "debug1: sshconnect2.c:input_userauth_service_accept():1 (pid=PID): SSH2_MSG_SERVICE_ACCEPT received";
const LOGGED_IN: &str =
    "sshconnect2.c:ssh_userauth2():1 (pid=PID): Authenticated to h ([192.0.2.1]:22) using \"publickey\".";
const SESSION: &str = "debug2: clientloop.c:client_session2_setup():1 (pid=PID): id 0";
const SENT: &str = "debug1: clientloop.c:client_session2_setup():2 (pid=PID): Sending command: hostname";
const ACCEPTED: &str =
    "debug2: clientloop.c:client_status_confirm():1 (pid=PID): exec request accepted on channel 0";
pub(crate) const STATUS: &str = "debug1: clientloop.c:client_input_channel_req():1 (pid=PID): client_input_channel_req: \
channel 0 rtype exit-status reply 0";
pub(crate) const SIGNAL: &str = "debug1: clientloop.c:client_input_channel_req():1 (pid=PID): client_input_channel_req: \
channel 0 rtype exit-signal reply 0";
pub(crate) const CLOSED: &str = "debug2: nchan.c:chan_rcvd_oclose():1 (pid=PID): channel 0: rcvd close";

/// How far one comes: the lines of a login that goes well, the last of which says that the command runs.
const STEPS: [&str; 8] = [
    CONNECTING, GREETED, EXCHANGING, LOGGING_IN, LOGGED_IN, SESSION, SENT, ACCEPTED,
];

/// Between two steps.
pub(crate) const STEP: Duration = Duration::from_millis(20);

/// So many steps of a good login, and then this, one after the other.
pub(crate) fn after(steps: usize, then: &[Does]) -> Script {
    let steps = STEPS[..steps].iter().map(|line| Does::Logs(line));
    let at = (1..).map(|number| STEP * number);
    at.zip(steps.chain(then.iter().cloned())).collect()
}

/// A command that runs and then does this.
pub(crate) fn runs(then: &[Does]) -> Script {
    after(STEPS.len(), then)
}

/// A command that prints a word and ends with this status.
pub(crate) fn ends(status: i32) -> Script {
    runs(&[
        Does::Writes(StreamKind::Stdout, "hi\n"),
        Does::Logs(STATUS),
        Does::Logs(CLOSED),
        Does::Ends(status),
    ])
}

impl Children {
    /// How the processes for a host behave.
    pub(crate) fn behave(&mut self, host: &str, script: Script) {
        self.by_host.insert(host.to_owned(), (script, None));
    }

    /// The same, and how its command takes it that it is stopped.
    pub(crate) fn stoppable(&mut self, host: &str, script: Script, stops: Stops) {
        self.by_host.insert(host.to_owned(), (script, Some(stops)));
    }

    /// How many there are.
    pub(crate) fn running(&self) -> usize {
        self.running.len()
    }

    pub(crate) fn spawn(&mut self, now: Instant, key: usize, request: &Request) -> Result<(), NoLink> {
        if let Some(why) = self.refusals.pop_front() {
            return Err(why);
        }
        let ssh = match &request.transport {
            Transport::OpenSsh(ssh) => Some(ssh),
            _ => None,
        };
        let ssh = ssh.expect("nothing but ssh is a process here");
        let (script, stops) = self.by_host.get(&request.host).cloned().unwrap();
        let child = Child {
            pid: 4000 + u32::try_from(key).unwrap(),
            door: ssh.door.to_string(),
            script: script
                .into_iter()
                .map(|(after, does)| (now + after, does))
                .collect(),
            killer_over: None,
            stops,
            logged_in: false,
        };
        self.running.insert(key, child);
        self.started += 1;
        self.most = self.most.max(self.running.len());
        let mut doors: HashMap<&str, usize> = HashMap::new();
        for child in self.running.values().filter(|child| !child.logged_in) {
            *doors.entry(&child.door).or_default() += 1;
        }
        self.most_at_door = doors.values().copied().chain([self.most_at_door]).max().unwrap();
        Ok(())
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        let children = self.running.values();
        children
            .flat_map(|child| {
                child
                    .script
                    .front()
                    .map(|(at, _)| *at)
                    .into_iter()
                    .chain(child.killer_over)
            })
            .min()
    }

    /// The next thing that is due.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<(usize, LinkEvent)> {
        let (key, said) = self.running.iter_mut().find_map(|(key, child)| {
            if child.killer_over.take_if(|at| *at <= now).is_some() {
                return Some((*key, None));
            }
            let (_, does) = child.script.pop_front_if(|(at, _)| *at <= now)?;
            Some((*key, Some(does)))
        })?;
        let child = self.running.get_mut(&key).unwrap();
        let event = match said {
            None => LinkEvent::KillerOver,
            Some(Does::Logs(line)) => {
                child.logged_in |= line == LOGGED_IN;
                let line = line.replace("PID", &child.pid.to_string());
                LinkEvent::Log {
                    pid: child.pid,
                    data: Bytes::from(format!("{line}\r\n")),
                }
            }
            Some(Does::Writes(stream, text)) => {
                LinkEvent::Output(stream, Bytes::from_static(text.as_bytes()))
            }
            Some(Does::Ends(status)) => self.exit(key, Some(status), None),
            Some(Does::Dies(signal)) => self.exit(key, None, Some(signal)),
        };
        Some((key, event))
    }

    fn exit(&mut self, key: usize, rc: Option<i32>, signal: Option<i32>) -> LinkEvent {
        self.running.remove(&key);
        LinkEvent::Exited {
            rc,
            signal,
            unsent: 0,
        }
    }

    pub(crate) fn kill(&mut self, now: Instant, key: usize, signal: Kill) {
        self.kills.push(signal);
        let Some(child) = self.running.get_mut(&key) else {
            return;
        };
        match (signal, child.stops) {
            (Kill::Remote, stops) => {
                child.killer_over = Some(now + 2 * STEP);
                if stops == Some(Stops::Yes) {
                    let end = [Does::Logs(SIGNAL), Does::Logs(CLOSED), Does::Ends(255)];
                    child.script = end.into_iter().map(|does| (now + STEP, does)).collect();
                }
            }
            (Kill::Term | Kill::Kill, _) => child.script = VecDeque::from([(now, Does::Dies(9))]),
        }
    }

    pub(crate) fn abort(&mut self, key: usize) {
        self.running.remove(&key);
    }
}
