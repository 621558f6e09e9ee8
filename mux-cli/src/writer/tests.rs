//! The thread against pipes, full devices, closed streams and inherited flags.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use bytes::Bytes;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use super::*;
use crate::hub::{RequestId, StreamKind};
use crate::output::{Destination, Extent, Payload};

/// Longer than any step of a test takes, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

/// A writer whose streams are pipes or files of the test.
struct Desk {
    writer: Writer,
    reports: Receiver<Report>,
    credited: usize,
    errors: Vec<WriteError>,
}

impl Desk {
    fn new(stdout: impl Into<OwnedFd>, stderr: impl Into<OwnedFd>, terminal: bool) -> Self {
        Self::on(Streams {
            stdout: Some(stdout.into()),
            stderr: Some(stderr.into()),
            stdout_is_terminal: terminal,
            stderr_is_terminal: terminal,
        })
    }

    fn on(streams: Streams) -> Self {
        let (sender, reports) = channel();
        let writer = Writer::start(streams, sender).unwrap();
        Self {
            writer,
            reports,
            credited: 0,
            errors: Vec::new(),
        }
    }

    fn send(&mut self, to: Destination, bytes: &[u8]) {
        self.put(to, bytes);
        self.writer.flush();
    }

    fn put(&mut self, to: Destination, bytes: &[u8]) {
        let credit = Credit {
            request: RequestId(0),
            stream: StreamKind::Stdout,
            bytes: bytes.len(),
        };
        let payload = Payload::Bytes(Bytes::copy_from_slice(bytes));
        self.writer.send(Write {
            to,
            payload,
            credit: Some(credit),
        });
    }

    fn send_spilled(&mut self, extents: &[(u64, u64)], neutralise: bool) {
        let extents = extents
            .iter()
            .map(|(offset, len)| Extent {
                offset: *offset,
                len: *len,
            })
            .collect();
        let payload = Payload::Spilled { extents, neutralise };
        self.writer.send(Write {
            to: Destination::Stdout,
            payload,
            credit: None,
        });
        self.writer.flush();
    }

    fn take_report(&mut self) {
        let report = self.reports.recv_timeout(PATIENCE).unwrap();
        self.writer.handle(&report);
        match report {
            Report::Written { credits, .. } => {
                self.credited += credits.iter().map(|credit| credit.bytes).sum::<usize>();
            }
            Report::Failed(error) => self.errors.push(error),
        }
    }

    /// Waits until everything is written; the errors on the way.
    fn settle(&mut self) -> Vec<WriteError> {
        while !self.writer.is_idle() {
            self.take_report();
        }
        std::mem::take(&mut self.errors)
    }
}

fn sink() -> File {
    OpenOptions::new().write(true).open("/dev/null").unwrap()
}

fn all(mut from: impl io::Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn streams_get_their_bytes_in_order_and_each_write_is_reported() {
    let ((out, to_out), (err, to_err)) = (io::pipe().unwrap(), io::pipe().unwrap());
    let mut desk = Desk::new(to_out, to_err, false);
    desk.send(Destination::Stdout, b"one\n");
    desk.send(Destination::Stderr, b"oops\n");
    desk.send(Destination::Stdout, b"two\n");
    assert_eq!(desk.settle(), []);
    assert_eq!(desk.credited, 13);
    drop(desk);
    assert_eq!((all(out), all(err)), (b"one\ntwo\n".to_vec(), b"oops\n".to_vec()));
}

#[test]
fn small_output_that_was_handed_over_together_leaves_in_one_write() {
    use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socketpair};
    // Its messages are the writes.
    let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::empty());
    let (out, to_out) = socketpair(AddressFamily::UNIX, kind, flags, None).unwrap();
    let mut desk = Desk::new(to_out, sink(), false);
    let large = [b'x'; 4096];
    for piece in [&b"one\n"[..], b"two\n", &large, b"three\n", b"four\n"] {
        desk.put(Destination::Stdout, piece);
    }
    desk.put(Destination::Stderr, b"between\n");
    desk.put(Destination::Stdout, b"five\n");
    desk.writer.flush();
    assert_eq!(desk.settle(), []);
    assert_eq!(desk.credited, 4 + 4 + 4096 + 6 + 5 + 8 + 5);
    let mut buffer = [0; 8192];
    let mut next = || {
        let (count, _) = recv(&out, &mut buffer, RecvFlags::DONTWAIT).unwrap();
        buffer.get(..count).unwrap().to_vec()
    };
    assert_eq!(next(), b"one\ntwo\n");
    assert_eq!(next(), large);
    assert_eq!(next(), b"three\nfour\n");
    assert_eq!(next(), b"five\n");
}

#[test]
fn of_small_output_that_is_stuck_all_counts_as_lost() {
    let (out, to_out) = io::pipe().unwrap();
    let mut desk = Desk::new(to_out, sink(), false);
    desk.send(Destination::Stdout, &[b'x'; 65_536]);
    desk.settle();
    // The pipe is full: the thread stands still at the first of the next.
    desk.put(Destination::Stdout, b"12345\n");
    desk.put(Destination::Stdout, b"1234567\n");
    desk.writer.flush();
    desk.send(Destination::Stdout, b"123\n");
    assert_eq!(desk.writer.take_back().lost, 18);
    drop(out);
}

#[test]
fn what_the_thread_has_not_begun_can_be_taken_back_and_is_written_once() {
    let ((out, to_out), (err, to_err)) = (io::pipe().unwrap(), io::pipe().unwrap());
    let mut desk = Desk::new(to_out, to_err, false);
    desk.send(Destination::Stderr, b"first\n");
    desk.settle();
    desk.send(Destination::Stdout, &[b'x'; 200_000]);
    // The thread stands still at it: some of it is in the pipe.
    while rustix::io::ioctl_fionread(&out).unwrap() == 0 {
        std::thread::yield_now();
    }
    desk.send(Destination::Stderr, b"second\n");
    desk.send(Destination::Stdout, b"12345");
    let left = desk.writer.take_back();
    assert_eq!(
        (left.words.as_slice(), left.lost),
        ([Bytes::from("second\n")].as_slice(), 200_005)
    );
    desk.writer.write_last(&left.words);
    // The thread goes on, and finds nothing more to do.
    assert_eq!(all_of(out, desk), 200_000);
    assert_eq!(all(err), b"first\nsecond\n");
}

/// The length of what is read once nobody writes any more.
fn all_of(from: impl io::Read, desk: Desk) -> usize {
    drop(desk);
    all(from).len()
}

#[test]
fn a_reader_that_stands_still_uses_up_the_budget_and_blocks_nobody() {
    let (mut out, to_out) = io::pipe().unwrap();
    let mut desk = Desk::new(to_out, sink(), false);
    let mut sent = 0;
    while desk.writer.has_room() {
        desk.send(Destination::Stdout, &[b'x'; 64 * 1024]);
        sent += 64 * 1024;
    }
    assert!((BUDGET..BUDGET + 2 * 64 * 1024).contains(&sent), "{sent}");
    let reader = std::thread::spawn(move || {
        let mut bytes = vec![0; sent];
        out.read_exact(&mut bytes).unwrap();
        bytes
    });
    assert_eq!(desk.settle(), []);
    assert!(desk.writer.has_room());
    assert_eq!((desk.credited, reader.join().unwrap().len()), (sent, sent));
}

#[test]
fn a_reader_that_left_is_told_apart_and_hosts_are_not_held_up() {
    let (out, to_out) = io::pipe().unwrap();
    let mut desk = Desk::new(to_out, sink(), false);
    drop(out);
    desk.send(Destination::Stdout, b"x");
    desk.send(Destination::Stdout, b"y");
    let errors = desk.settle();
    assert!(
        errors.len() == 1 && errors.iter().all(WriteError::is_broken_pipe),
        "{errors:?}"
    );
    assert_eq!(desk.credited, 2);
}

#[test]
fn a_full_disk_is_named_once() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut desk = Desk::new(full, sink(), false);
    desk.send(Destination::Stdout, b"x");
    desk.send(Destination::Stdout, b"y");
    desk.send(Destination::Stderr, b"z");
    let errors = desk.settle();
    let [error] = errors.as_slice() else {
        panic!("{errors:?}")
    };
    assert!(!error.is_broken_pipe());
    let text = error.to_string();
    assert_eq!(
        text,
        "standard output: No space left on device (os error 28), after 0 bytes; what follows is lost"
    );
}

#[test]
fn an_inherited_nonblock_flag_is_lived_with_and_left_alone() {
    let (mut out, to_out) = io::pipe().unwrap();
    let shared = to_out.try_clone().unwrap();
    fcntl_setfl(&shared, fcntl_getfl(&shared).unwrap() | OFlags::NONBLOCK).unwrap();
    let mut desk = Desk::new(to_out, sink(), false);
    // More than a pipe holds: the thread meets EAGAIN before the first byte is read.
    desk.send(Destination::Stdout, &[b'x'; 512 * 1024]);
    let mut bytes = vec![0; 512 * 1024];
    out.read_exact(&mut bytes).unwrap();
    assert_eq!(desk.settle(), []);
    assert!(fcntl_getfl(&shared).unwrap().contains(OFlags::NONBLOCK));
}

#[test]
fn a_closed_stream_fails_when_something_is_written_to_it() {
    let streams = Streams {
        stdout: None,
        stderr: Some(sink().into()),
        stdout_is_terminal: false,
        stderr_is_terminal: false,
    };
    let mut desk = Desk::on(streams);
    desk.send(Destination::Stderr, b"x");
    assert_eq!(desk.settle(), []);
    desk.send(Destination::Stdout, b"x");
    let errors = desk.settle();
    assert_eq!(
        errors.iter().map(|error| error.fault).collect::<Vec<_>>(),
        [Fault::Closed]
    );
}

#[test]
fn a_stand_in_for_a_closed_stream_is_recognised() {
    let stand_in = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")
        .unwrap();
    let (pipe, _other) = io::pipe().unwrap();
    // Standard input, output, error; whether output and error are open.
    let table = [
        (pipe.as_fd(), stand_in.as_fd(), pipe.as_fd(), (false, true)),
        (stand_in.as_fd(), stand_in.as_fd(), pipe.as_fd(), (false, true)),
        (pipe.as_fd(), pipe.as_fd(), stand_in.as_fd(), (true, false)),
        (stand_in.as_fd(), stand_in.as_fd(), stand_in.as_fd(), (true, true)),
    ];
    for (stdin, stdout, stderr, open) in table {
        let streams = Streams::inherited(stdin, stdout, stderr).unwrap();
        assert_eq!((streams.stdout.is_some(), streams.stderr.is_some()), open);
    }
    let chosen = sink();
    let streams = Streams::inherited(pipe.as_fd(), chosen.as_fd(), pipe.as_fd()).unwrap();
    assert!(streams.stdout.is_some(), "`>/dev/null` is a choice");
}

#[test]
fn spilled_output_comes_back_in_pieces() {
    let (out, to_out) = io::pipe().unwrap();
    let reader = std::thread::spawn(move || all(out));
    let mut desk = Desk::new(to_out, sink(), false);
    let first: Vec<u8> = (0..=255).cycle().take(200_000).collect();
    desk.send(Destination::Spill, &first);
    desk.send(Destination::Spill, b"other");
    desk.send(Destination::Spill, b"last");
    desk.send_spilled(&[(0, 200_000), (200_005, 4)], false);
    desk.send(Destination::Stdout, b"end");
    assert_eq!(desk.settle(), []);
    drop(desk);
    assert!(reader.join().unwrap() == [&first[..], b"last", b"end"].concat());
}

#[test]
fn spilled_output_is_neutralised_across_its_pieces() {
    let (out, to_out) = io::pipe().unwrap();
    let mut desk = Desk::new(to_out, sink(), true);
    desk.send(Destination::Spill, b"\x1b[1m\xc3");
    desk.send(Destination::Spill, b"--");
    desk.send(Destination::Spill, b"\xbc\r");
    desk.send(Destination::Spill, b"\n\xff");
    desk.send_spilled(&[(0, 5), (7, 2), (9, 2)], true);
    assert_eq!(desk.settle(), []);
    drop(desk);
    assert_eq!(all(out), "^[[1mü\n\\xff".as_bytes());
}

#[test]
fn what_never_got_into_the_spill_file_is_said() {
    let (out, to_out) = io::pipe().unwrap();
    let mut desk = Desk::new(to_out, sink(), false);
    desk.send(Destination::Spill, b"kept");
    desk.send_spilled(&[(0, 9)], false);
    let errors = desk.settle();
    let [error] = errors.as_slice() else {
        panic!("{errors:?}")
    };
    assert_eq!((&error.to, error.written), (&Destination::Spill, 4));
    assert!(error.to_string().contains("temporary file"), "{error}");
    drop(desk);
    assert_eq!(all(out), b"kept");
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn files_of_a_run_are_private_and_in_a_directory_of_their_own() {
    let parent = tempfile::tempdir().unwrap();
    let directory: PathBuf = parent.path().join("mux-1");
    let (first, second) = (directory.join("0.stdout"), directory.join("1.stdout"));
    let mut desk = Desk::new(sink(), sink(), false);
    for (path, bytes) in [(&first, "ab"), (&second, "x"), (&first, "cd")] {
        desk.send(Destination::File(path.as_path().into()), bytes.as_bytes());
    }
    assert_eq!(desk.settle(), []);
    assert_eq!(
        (fs::read(&first).unwrap(), fs::read(&second).unwrap()),
        (b"abcd".to_vec(), b"x".to_vec())
    );
    assert_eq!((mode(&directory), mode(&first)), (0o700, 0o600));

    let mut stranger = Desk::new(sink(), sink(), false);
    stranger.send(Destination::File(first.as_path().into()), b"x");
    let errors = stranger.settle();
    assert!(
        matches!(errors.as_slice(), [error] if error.fault == Fault::Io(io::ErrorKind::AlreadyExists, Some(17)))
    );
}

/// What a terminal gets for these writes, each waited for.
fn check_terminal(writes: &[(Destination, &str)], expected: &str) {
    let (out, terminal) = io::pipe().unwrap();
    let mut desk = Desk::new(terminal.try_clone().unwrap(), terminal, true);
    for (to, text) in writes {
        desk.send(to.clone(), text.as_bytes());
        desk.settle();
    }
    drop(desk);
    let shown = String::from_utf8(all(out)).unwrap();
    // Whether the line is drawn between two writes depends on how fast they come; what is left of it must not.
    let mut screen = String::new();
    for piece in shown.split("\r\x1b[K") {
        let kept = screen.rfind('\n').map_or(0, |end| end + 1);
        screen.truncate(kept);
        screen += piece;
    }
    assert_eq!(screen, expected, "{shown:?}");
}

#[test]
fn progress_never_mixes_with_output() {
    use Destination::{Progress, Stderr, Stdout};
    check_terminal(
        &[(Progress, "1/2"), (Stdout, "a: x\n"), (Progress, "2/2")],
        "a: x\n2/2",
    );
    check_terminal(
        &[
            (Progress, "1/2"),
            (Stderr, "a: x\n"),
            (Stdout, "y\n"),
            (Progress, ""),
        ],
        "a: x\ny\n",
    );
    check_terminal(
        &[
            (Progress, "1/2"),
            (Stdout, "no "),
            (Progress, "2/2"),
            (Stdout, "end\n"),
        ],
        "no end\n2/2",
    );
}

#[test]
fn progress_leaves_output_to_a_file_alone() {
    let ((out, to_out), (err, to_err)) = (io::pipe().unwrap(), io::pipe().unwrap());
    let mut desk = Desk::on(Streams {
        stdout: Some(to_out.into()),
        stderr: Some(to_err.into()),
        stdout_is_terminal: false,
        stderr_is_terminal: true,
    });
    desk.send(Destination::Progress, b"1/2");
    desk.settle();
    desk.send(Destination::Stdout, b"x\n");
    desk.settle();
    drop(desk);
    assert_eq!((all(out), all(err)), (b"x\n".to_vec(), b"1/2".to_vec()));
}

#[test]
fn progress_is_taken_away_when_nobody_reads_the_output() {
    let ((out, to_out), (err, to_err)) = (io::pipe().unwrap(), io::pipe().unwrap());
    drop(out);
    let mut desk = Desk::on(Streams {
        stdout: Some(to_out.into()),
        stderr: Some(to_err.into()),
        stdout_is_terminal: false,
        stderr_is_terminal: true,
    });
    desk.send(Destination::Progress, b"1/2");
    desk.settle();
    // Waits until the line is there: the thread draws it once it has nothing else to do.
    let mut err = io::BufReader::new(err);
    let mut shown = [0; 3];
    err.read_exact(&mut shown).unwrap();
    desk.send(Destination::Stdout, b"x\n");
    desk.send(Destination::Progress, b"2/2");
    assert_eq!(desk.settle().len(), 1);
    drop(desk);
    assert_eq!((&shown, all(err)), (b"1/2", b"\r\x1b[K".to_vec()));
}

#[test]
fn a_batch_is_reported_as_one() {
    let mut desk = Desk::new(sink(), sink(), false);
    for _ in 0..3 {
        desk.writer
            .send(Write::bytes(Destination::Stdout, Bytes::from_static(b"line\n")));
    }
    desk.writer.flush();
    let report = desk.reports.recv_timeout(PATIENCE).unwrap();
    let Report::Written { writes, credits, .. } = &report else {
        panic!("{report:?}")
    };
    assert_eq!((*writes, credits.len()), (3, 0));
    desk.writer.handle(&report);
    assert!(desk.writer.is_idle());
}

#[test]
fn a_large_batch_is_reported_in_parts() {
    let mut desk = Desk::new(sink(), sink(), false);
    for _ in 0..4 {
        desk.writer.send(Write::bytes(
            Destination::Stdout,
            Bytes::from(vec![b'x'; 60 * 1024]),
        ));
    }
    desk.writer.flush();
    let mut reports = 0;
    while !desk.writer.is_idle() {
        desk.take_report();
        reports += 1;
    }
    assert_eq!(reports, 2);
}

#[test]
fn what_was_sent_and_not_handed_over_is_written_when_the_writer_goes() {
    let (out, to_out) = io::pipe().unwrap();
    let mut desk = Desk::new(to_out, sink(), false);
    desk.writer
        .send(Write::bytes(Destination::Stdout, Bytes::from_static(b"last\n")));
    drop(desk);
    assert_eq!(all(out), b"last\n");
}
