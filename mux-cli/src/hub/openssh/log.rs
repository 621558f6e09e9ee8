//! What the system's `ssh` writes to its log (`-E`), line by line: how far it has come and how its session ended.
//! Decides what a line means; never how a request ends.
//!
//! The exit status alone does not tell ssh's own failure, a remote 255 and a remote signal apart: all three are 255. Its
//! log does: `LogVerbose` (OpenSSH 8.5) forces the messages of a few functions, each with the function and the process in
//! front, while `LogLevel ERROR` keeps everything else out, the server's banner on standard error among it. What a server
//! says can end up in the log, line ends included; it can't know the number of the process, and a line without that is
//! nothing but words.

use mux_ssh::Printable;

use super::super::Stage;

/// The functions whose messages are forced into the log.
pub const LOG_VERBOSE: &str = "sshconnect.c:ssh_connect_direct():*,sshconnect.c:ssh_proxy_connect():*,\
kex.c:kex_exchange_identification():*,sshconnect2.c:input_userauth_service_accept():*,sshconnect2.c:ssh_userauth2():*,\
clientloop.c:client_session2_setup():*,clientloop.c:client_status_confirm():*,\
clientloop.c:client_input_channel_req():*,clientloop.c:server_alive_check():*,nchan.c:chan_rcvd_oclose():*,\
channels.c:channel_input_open_failure():*,packet.c:sshpkt_vfatal():*";

/// No line that matters is longer: ssh cuts its messages at 1 KiB, but one with the command in it.
const MAX_LINE: usize = 4096;

/// Lines of words that are kept: what ssh says about one failure is a handful.
const MAX_WORDS: usize = 16;

/// How the session ended, as far as the log says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The server sent an exit status, and ssh's own is that.
    Status,
    /// The server said that a signal ended the command; ssh does not say which.
    Signal,
}

/// The log of one process, as far as it has been read.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) line: Vec<u8>,
    /// The channel of the command: others belong to whoever shares the connection.
    pub(super) channel: Option<String>,
    pub(super) stage: Option<Stage>,
    /// The command was handed to the connection.
    pub(super) sent: bool,
    /// The server would not run it.
    pub(super) refused: bool,
    pub(super) end: Option<End>,
    /// The server has closed the command's channel.
    pub(super) closed: bool,
    /// The server hung up in place of its identification, and did not say that this has another reason than too many
    /// logins.
    pub(super) turned_away: bool,
    /// It said that it has too many.
    pub(super) says_too_many: bool,
    /// It said something else in place of it.
    pub(super) says_otherwise: bool,
    /// What ssh says about failures.
    pub(super) words: Vec<String>,
}

impl Log {
    /// More of the log of this process.
    pub(super) fn read(&mut self, pid: u32, data: &[u8]) {
        for piece in data.split_inclusive(|byte| *byte == b'\n') {
            let room = MAX_LINE.saturating_sub(self.line.len());
            self.line.extend(piece.iter().take(room));
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.line(pid, String::from_utf8_lossy(&line).trim_end());
            }
        }
    }

    /// There is no more: what has no end is a line, too.
    pub(super) fn finish(&mut self, pid: u32) {
        let line = std::mem::take(&mut self.line);
        self.line(pid, String::from_utf8_lossy(&line).trim_end());
    }

    fn line(&mut self, pid: u32, line: &str) {
        let (is_debug, rest) = match line.strip_prefix("debug") {
            Some(rest) => (true, rest.get(1..).and_then(|rest| rest.strip_prefix(": "))),
            None => (false, Some(line)),
        };
        let Some(rest) = rest else { return };
        match tagged(pid, rest) {
            Some((function, message)) => self.forced(function, message, is_debug),
            // Behind the command, which may have several lines, words without a tag can be the command's.
            None if !is_debug && !self.sent => self.word(rest),
            None => {}
        }
    }

    /// A message of one of the functions above.
    fn forced(&mut self, function: &str, message: &str, is_debug: bool) {
        let said = |text: &str| message.contains(text);
        match function {
            "ssh_connect_direct" if said("Connecting to ") => self.reach(Stage::Tcp),
            "ssh_proxy_connect" if said("Executing proxy command") => self.reach(Stage::Tcp),
            "kex_exchange_identification" if said("Local version string") => self.reach(Stage::Banner),
            "kex_exchange_identification" if said("Remote protocol version") => self.reach(Stage::Kex),
            "kex_exchange_identification" if said("banner line ") => {
                self.says_too_many |= said("Exceeded MaxStartups");
                self.says_otherwise |= !said("Exceeded MaxStartups");
            }
            "kex_exchange_identification" if said("Connection closed") || said("Connection reset") => {
                self.turned_away |= !self.says_otherwise;
                self.word(message);
            }
            "input_userauth_service_accept" if is_debug => self.reach(Stage::Auth),
            "ssh_userauth2" if said("Authenticated to ") || said("Authentication succeeded") => {
                self.reach(Stage::Channel);
            }
            "client_session2_setup" => {
                let id = message.strip_prefix("id ").map(str::to_owned);
                self.channel = self.channel.take().or(id);
                self.sent |= said("Sending ");
            }
            "client_status_confirm" if self.is_ours(message) => {
                self.refused |= said("failed");
                if said("accepted") {
                    self.reach(Stage::Command);
                }
            }
            "client_input_channel_req" if self.is_ours(message) => {
                if said("rtype exit-status ") {
                    self.end = Some(End::Status);
                } else if said("rtype exit-signal ") {
                    self.end = Some(End::Signal);
                }
            }
            "chan_rcvd_oclose" if self.is_ours(message) => self.closed = true,
            _ if !is_debug => self.word(message),
            _ => {}
        }
    }

    /// Whether a message is about the command's channel.
    fn is_ours(&self, message: &str) -> bool {
        let mut words = message.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let number = words
            .by_ref()
            .find(|word| *word == "channel")
            .and_then(|_| words.next());
        number.is_some() && number == self.channel.as_deref()
    }

    fn reach(&mut self, stage: Stage) {
        // An address that failed is followed by the next.
        self.stage = self.stage.max(Some(stage));
    }

    fn word(&mut self, text: &str) {
        // The frame around a warning says nothing.
        if !text.is_empty() && !text.starts_with('@') && self.words.len() < MAX_WORDS {
            self.words.push(Printable::new(text).to_string());
        }
    }
}

/// The function and the message of a forced line: `file.c:function():line (pid=1234): message`, in newer versions
/// `(bin=ssh, pid=1234)`.
fn tagged(pid: u32, line: &str) -> Option<(&str, &str)> {
    let (place, rest) = line.split_once(" (")?;
    let (process, message) = rest.split_once("): ")?;
    let number = process.rsplit_once("pid=")?.1;
    let (file, function) = place.split_once(':')?;
    let (function, at) = function.split_once("():")?;
    let is_place = file.ends_with(".c") && !at.is_empty() && at.bytes().all(|byte| byte.is_ascii_digit());
    (is_place && number.parse() == Ok(pid)).then_some((function, message))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    const PID: u32 = 4711;

    /// As OpenSSH 9.2 logs it.
    const LOGIN: &str = "\
debug1: sshconnect.c:ssh_connect_direct():485 (pid=4711): Connecting to 127.0.0.1 [127.0.0.1] port 22.\r\n\
debug1: sshconnect.c:ssh_connect_direct():522 (pid=4711): Connection established.\r\n\
debug1: kex.c:kex_exchange_identification():1347 (pid=4711): Local version string SSH-2.0-OpenSSH_9.2p1\r\n\
debug1: kex.c:kex_exchange_identification():1456 (pid=4711): Remote protocol version 2.0, remote software version x\r\n\
debug1: sshconnect2.c:input_userauth_service_accept():607 (pid=4711): SSH2_MSG_SERVICE_ACCEPT received\r\n\
sshconnect2.c:ssh_userauth2():580 (pid=4711): Authenticated to 127.0.0.1 ([127.0.0.1]:22) using \"publickey\".\r\n";

    const COMMAND: &str = "\
debug2: clientloop.c:client_session2_setup():2558 (pid=4711): id 1\r\n\
debug1: clientloop.c:client_session2_setup():2642 (pid=4711): Sending command: a\nb\r\n\
debug2: clientloop.c:client_status_confirm():669 (pid=4711): exec request accepted on channel 1\r\n";

    fn read(text: &str) -> Log {
        let mut log = Log::default();
        // Byte by byte, as a pipe may give it.
        text.bytes().for_each(|byte| log.read(PID, &[byte]));
        log.finish(PID);
        log
    }

    #[test]
    fn stages_follow_the_log() {
        let mut log = Log::default();
        let stages = LOGIN.split_inclusive('\n').map(|line| {
            log.read(PID, line.as_bytes());
            log.stage.unwrap()
        });
        let stages: Vec<_> = stages.collect();
        let expected = [
            Stage::Tcp,
            Stage::Tcp,
            Stage::Banner,
            Stage::Kex,
            Stage::Auth,
            Stage::Channel,
        ];
        assert_eq!(stages, expected);
        assert!(!log.sent);
        log.read(PID, COMMAND.as_bytes());
        assert!(log.sent && log.words.is_empty(), "{log:?}");
        assert_eq!(log.stage, Some(Stage::Command));
    }

    #[test]
    fn newer_versions_name_the_program_too() {
        let line =
            "debug1: kex.c:kex_exchange_identification():1 (bin=ssh, pid=4711): Remote protocol version 2.0";
        assert_eq!(read(line).stage, Some(Stage::Kex));
    }

    #[test]
    fn the_end_is_that_of_the_commands_own_channel() {
        let req = "debug1: clientloop.c:client_input_channel_req():1821 (pid=4711): client_input_channel_req: channel";
        let close = "debug2: nchan.c:chan_rcvd_oclose():270 (pid=4711): channel";
        let log = read(&format!(
            "{LOGIN}{COMMAND}{req} 13 rtype exit-status reply 0\r\n{close} 13: rcvd close\r\n"
        ));
        assert_eq!((log.end, log.closed), (None, false));
        let log = read(&format!(
            "{LOGIN}{COMMAND}{req} 1 rtype exit-signal reply 0\r\n{close} 1: rcvd close\r\n"
        ));
        assert_eq!((log.end, log.closed), (Some(End::Signal), true));
        let log = read(&format!("{LOGIN}{COMMAND}{req} 1 rtype exit-status reply 0\r\n"));
        assert_eq!((log.end, log.closed), (Some(End::Status), false));
    }

    #[test]
    fn what_a_server_says_is_taken_for_nothing_but_words() {
        let forged = COMMAND.replace("pid=4711", "pid=4712");
        let log = read(&format!("Received disconnect from x port 22:2: \r\n{forged}"));
        assert_eq!((log.stage, log.sent, log.end), (None, false, None));
    }

    #[test]
    fn words_are_kept_without_their_place_and_without_frames() {
        let log = read(
            "@@@@@\r\n@    WARNING\r\npacket.c:sshpkt_vfatal():1931 (pid=4711): Unable to negotiate\r\n\
             debug1: noise\r\nHost key verification failed.\r\n\u{1b}[31mred",
        );
        assert_eq!(
            log.words,
            [
                "Unable to negotiate",
                "Host key verification failed.",
                "^[[31mred"
            ]
        );
    }

    #[test]
    fn a_log_without_end_is_bounded() {
        let mut log = Log::default();
        for _ in 0..1000 {
            log.read(PID, &[b'x'; 1000]);
        }
        assert_eq!(log.line.len(), MAX_LINE);
        for _ in 0..1000 {
            log.read(PID, b"\nword\n");
        }
        assert_eq!(log.words.len(), MAX_WORDS);
    }
}
