//! Child processes: their streams, their end, and the two in any order.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, also on an event that it does not expect"
)]

mod common;

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};

use bytes::Bytes;
use common::{Collected, run};
use mux_core::{Child, Driver, Event, Recipient};
use mux_proto::Raw;

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

/// What a child did until it had exited and its streams had ended, and in which order that happened.
#[derive(Debug, Default)]
struct Story {
    out: Collected,
    err: Collected,
    status: Option<ExitStatus>,
    order: Vec<&'static str>,
}

/// Follows a child to the end of its process and of all its links.
fn follow(driver: &mut Driver<Raw>, child: Child) -> Story {
    let mut story = Story::default();
    let ends = 2 + usize::from(child.stderr.is_some());
    run(driver, |driver, _, event| {
        match event {
            Event::Protocol(key, event) => {
                let ended = event == mux_proto::RawEvent::Eof;
                let collected = if key == child.stdio {
                    &mut story.out
                } else {
                    &mut story.err
                };
                let raw = driver.protocol(key).unwrap();
                collected.take(raw, event);
                if ended {
                    raw.close();
                }
            }
            Event::Closed(key, _, _) => story
                .order
                .push(if key == child.stdio { "stdio" } else { "stderr" }),
            Event::Exited(key, status) => {
                assert_eq!(key, child.process);
                story.status = status;
                story.order.push("exit");
            }
            event => panic!("{event:?}"),
        }
        story.order.len() == ends
    });
    story
}

#[test]
fn input_output_and_errors_are_told_apart_and_the_status_is_reported() {
    let mut driver = Driver::new().unwrap();
    let child = driver
        .child(shell("cat; echo oops >&2; exit 7"), Raw::new(), Some(Raw::new()))
        .unwrap();
    let stdin = driver.protocol(child.stdio).unwrap();
    stdin.send(Bytes::from_static(b"through the child"));
    stdin.finish();
    let story = follow(&mut driver, child);
    assert_eq!(story.out.data, b"through the child");
    assert_eq!(story.err.data, b"oops\n");
    assert_eq!(story.status.and_then(|status| status.code()), Some(7));
}

#[test]
fn a_child_that_exits_before_its_pipes_close() {
    let mut driver = Driver::new().unwrap();
    // The grandchild keeps the output open until it is told to go on, which happens after the exit was reported. Its
    // input comes by way of descriptor 3: a shell gives its background jobs /dev/null.
    let child = driver
        .child(
            shell("exec 3<&0; (read go <&3; echo late) & exit 3"),
            Raw::new(),
            None,
        )
        .unwrap();
    run(&mut driver, |_, _, event| match event {
        Event::Exited(key, status) if key == child.process => {
            assert_eq!(status.and_then(|status| status.code()), Some(3));
            true
        }
        Event::Exited(..) => false,
        event => panic!("{event:?}"),
    });
    driver
        .protocol(child.stdio)
        .unwrap()
        .send(Bytes::from_static(b"go\n"));
    let mut out = Collected::default();
    run(&mut driver, |driver, _, event| match event {
        Event::Protocol(key, event) => {
            out.take(driver.protocol(key).unwrap(), event);
            out.eof
        }
        event => panic!("{event:?}"),
    });
    assert_eq!(out.data, b"late\n");
}

#[test]
fn a_child_that_exits_while_its_pipes_close() {
    let mut driver = Driver::new().unwrap();
    for _ in 0..20 {
        let child = driver
            .child(shell("echo out; echo err >&2"), Raw::new(), Some(Raw::new()))
            .unwrap();
        let story = follow(&mut driver, child);
        assert_eq!(
            (&story.out.data[..], &story.err.data[..]),
            (&b"out\n"[..], &b"err\n"[..])
        );
        assert_eq!(story.status.and_then(|status| status.code()), Some(0));
    }
}

#[test]
fn a_child_that_exits_after_its_pipes_close() {
    let mut driver = Driver::new().unwrap();
    let command = shell("exec <&- >&- 2>&-; kill -STOP $$");
    let child = driver.child(command, Raw::new(), Some(Raw::new())).unwrap();
    let mut ended = 0;
    run(&mut driver, |driver, _, event| match event {
        Event::Protocol(key, event) => {
            assert_eq!(event, mux_proto::RawEvent::Eof);
            driver.protocol(key).unwrap().close();
            false
        }
        Event::Closed(..) => {
            ended += 1;
            ended == 2
        }
        event => panic!("{event:?}"),
    });
    // Also ends a process that is stopped; woken before, it would race with the signal to its own end.
    driver
        .kill(child.process, signal_hook::consts::SIGKILL, Recipient::Process)
        .unwrap();
    run(&mut driver, |_, _, event| match event {
        Event::Exited(key, status) => {
            assert_eq!(
                (key, status.and_then(|status| status.signal())),
                (child.process, Some(9))
            );
            true
        }
        event => panic!("{event:?}"),
    });
    let gone = driver.kill(child.process, signal_hook::consts::SIGKILL, Recipient::Process);
    assert_eq!(gone.unwrap_err().kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn a_signal_to_the_group_reaches_the_grandchildren() {
    let mut driver = Driver::new().unwrap();
    let mut command = shell("sleep 600 & echo started; wait");
    command.process_group(0);
    let child = driver.child(command, Raw::new(), None).unwrap();
    run(&mut driver, |_, _, event| matches!(event, Event::Protocol(..)));
    driver
        .kill(child.process, signal_hook::consts::SIGTERM, Recipient::Group)
        .unwrap();
    // The output ends only when the grandchild is gone, too.
    let story = follow(&mut driver, child);
    assert!(story.out.eof);
    assert_eq!(story.status.and_then(|status| status.signal()), Some(15));
}

#[test]
fn a_command_that_does_not_exist_is_an_error() {
    let mut driver: Driver<Raw> = Driver::new().unwrap();
    let error = driver
        .child(Command::new("/nonexistent/program"), Raw::new(), None)
        .unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn reaping_by_hand_finds_the_same_end() {
    let mut driver = Driver::new().unwrap();
    let child = driver.child(shell("exit 5"), Raw::new(), None).unwrap();
    let mut exits = 0;
    // As an application does that has a SIGCHLD handler of its own, on top of whatever the system offers.
    while exits == 0 {
        driver.reap();
        common::idle(&mut driver, 1, |_, event| {
            if let Event::Exited(key, status) = event {
                assert_eq!(
                    (key, status.and_then(|status| status.code())),
                    (child.process, Some(5))
                );
                exits += 1;
            }
        });
        std::thread::yield_now();
    }
    driver.reap();
    common::idle(&mut driver, 2, |_, event| {
        assert!(!matches!(event, Event::Exited(..)), "once")
    });
}

#[test]
fn large_data_passes_through_a_child_both_ways_at_once() {
    let mut driver = Driver::new().unwrap();
    let child = driver.child(Command::new("cat"), Raw::new(), None).unwrap();
    let sent = common::pattern(3 * 1024 * 1024, 9);
    let stdin = driver.protocol(child.stdio).unwrap();
    stdin.send(Bytes::copy_from_slice(&sent));
    stdin.finish();
    let story = follow(&mut driver, child);
    assert!(story.out.data == sent);
}

/// As a shell with a here-document, or a program that opens its standard input by name.
#[test]
fn a_child_may_have_pipes_in_place_of_a_socket() {
    let mut driver = Driver::new().unwrap();
    let command = shell("test -p /dev/stdin && test -p /dev/stdout && cat </dev/stdin; echo done >&2");
    let child = driver.piped_child(command, Raw::new(), Some(Raw::new())).unwrap();
    let raw = driver.protocol(child.stdio).unwrap();
    raw.send(Bytes::from_static(b"through"));
    raw.finish();
    driver.protocol(child.stderr.unwrap()).unwrap().finish();
    let story = follow(&mut driver, child);
    assert_eq!(
        (story.out.data, story.err.data),
        (b"through".to_vec(), b"done\n".to_vec())
    );
    assert!(story.status.unwrap().success());
}
