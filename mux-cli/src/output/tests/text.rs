//! Lines as they come.

use super::*;

fn text() -> Options {
    plain(Format::Text)
}

#[test]
fn lines_carry_their_host_and_stderr_goes_to_stderr() {
    let mut run = Run::new(text(), &["web1", "db1"]);
    run.print(0, OUT, b"one\ntwo\n");
    run.print(1, ERR, b"oops\n");
    run.print(1, OUT, b"three\n");
    run.exit(0, 0);
    run.exit(1, 0);
    run.check("web1: one\nweb1: two\ndb1: three\n", "db1: oops\n");
}

#[test]
fn lines_are_whole_however_they_arrive() {
    let mut run = Run::new(text(), &["a", "b"]);
    for (host, piece) in [(0, "he"), (1, "wor"), (0, "llo\nag"), (1, "ld\n"), (0, "ain\n")] {
        run.print(host, OUT, piece.as_bytes());
    }
    run.exit(0, 0);
    run.exit(1, 0);
    run.check("a: hello\nb: world\na: again\n", "");
}

#[test]
fn a_last_line_without_a_newline_gets_one() {
    let mut run = Run::new(text(), &["a", "b"]);
    run.print(0, OUT, b"no end");
    run.print(1, OUT, b"x\n");
    run.exit(0, 0);
    run.exit(1, 0);
    run.check("b: x\na: no end\n", "");
}

#[test]
fn output_of_hosts_that_have_not_ended_is_printed() {
    let mut run = Run::new(text(), &["a"]);
    run.print(0, OUT, b"so far");
    run.check(
        "a: so far\n",
        "ok=0 cancelled=1 in 1.4s\ncancelled: a: it had not ended\n",
    );
}

#[test]
fn without_a_prefix_lines_are_bare() {
    let mut run = Run::new(
        Options {
            prefix: false,
            ..text()
        },
        &["a"],
    );
    run.print(0, OUT, b"x\r\n\n\ty\n");
    run.exit(0, 0);
    run.check("x\r\n\n\ty\n", "");
}

#[test]
fn users_and_ports_tell_hosts_apart() {
    let mut run = Run::new(text(), &["web1", "web1:2222", "root@web1", "[::1]:22"]);
    for host in 0..4 {
        run.print(host, OUT, b"x\n");
        run.exit(host, 0);
    }
    run.check("web1: x\nweb1:2222: x\nroot@web1: x\n[::1]:22: x\n", "");
}

#[test]
fn off_a_terminal_bytes_stay_as_they_are() {
    let mut run = Run::new(text(), &["a"]);
    run.print(0, OUT, b"\x1b[31m\x00\xff\r10%\r20%\n");
    run.exit(0, 0);
    run.finish();
    assert_eq!(run.stdout, b"a: \x1b[31m\x00\xff\r10%\r20%\n");
}

#[test]
fn on_a_terminal_names_are_aligned_and_coloured_and_escapes_neutralised() {
    let mut run = Run::new(options(Format::Text, &facts(true)), &["web1", "a"]);
    run.print(0, OUT, b"x\r\n\x1b]0;t\x07\n");
    run.print(1, ERR, b"y\n");
    run.exit(0, 0);
    run.exit(1, 0);
    run.check(
        "\x1b[36mweb1:\x1b[0m x\n\x1b[36mweb1:\x1b[0m ^[]0;t^G\n",
        "\x1b[31ma:\x1b[0m    y\n\x1b[32mok=2\x1b[0m in 1.4s\n",
    );
}

#[test]
fn a_line_without_end_is_broken_and_said() {
    let mut run = Run::new(text(), &["a", "b"]);
    let piece = vec![b'x'; 1024];
    for _ in 0..1024 + 1 {
        run.print(0, OUT, &piece);
    }
    run.print(0, OUT, b"\n");
    run.exit(0, 0);
    run.exit(1, 0);
    run.finish();
    let lines: Vec<usize> = run.stdout.split(|byte| *byte == b'\n').map(<[u8]>::len).collect();
    assert_eq!(lines, [lines::MAX_LINE + 3, 1024 + 3, 0]);
    assert_eq!(
        run.stderr,
        b"mux: a: lines without an end were broken into pieces of 1.0 MiB\n"
    );
}

#[test]
fn many_hosts_without_newlines_hold_a_bounded_total() {
    let names: Vec<String> = (0..60).map(|i| format!("h{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut run = Run::new(
        Options {
            prefix: false,
            ..text()
        },
        &names,
    );
    let piece = vec![b'x'; 512 * 1024];
    for host in 0..60 {
        run.print(host, OUT, &piece);
        assert_eq!(
            run.consumed, run.given,
            "a host that waits for its newline may go on"
        );
    }
    let held = run.given - run.stdout.iter().filter(|byte| **byte == b'x').count();
    assert!(held <= 17 * 1024 * 1024, "{held}");
    for host in 0..60 {
        run.exit(host, 0);
    }
    run.finish();
    assert_eq!(run.stdout.iter().filter(|byte| **byte == b'x').count(), run.given);
}

#[test]
fn a_reader_that_stands_still_costs_no_memory() {
    let mut run = Run::new(text(), &["a"]);
    // A long beginning, its end, and again: what was given back early must not pile up behind the reader.
    for _ in 0..100 {
        run.feed(0, OUT, &[b'x'; 32 * 1024]);
        run.feed(0, OUT, b"\n");
    }
    assert!(run.consumed <= lines::MAX_LINE, "{}", run.consumed);
    run.drain();
    assert_eq!(run.consumed, run.given);
    run.exit(0, 0);
    run.finish();
    assert_eq!(run.stdout.len(), 100 * (32 * 1024 + 1 + 3));
}

#[test]
fn prefixes_do_not_multiply_what_waits() {
    let mut run = Run::new(text(), &["a-host-with-a-long-name"]);
    for _ in 0..64 {
        run.feed(0, OUT, &b"y\n".repeat(16 * 1024));
    }
    let mut writes = 0;
    let mut largest = 0;
    while let Some(write) = run.output.poll_write() {
        writes += 1;
        largest = largest.max(write.cost());
    }
    assert!(
        writes > 32 && largest <= write::MAX_WRITE,
        "{writes} writes of up to {largest}"
    );
}

#[test]
fn hosts_take_turns() {
    let mut run = Run::new(text(), &["a", "b"]);
    run.feed(0, OUT, &b"y\n".repeat(100_000));
    run.feed(1, OUT, b"x\n");
    run.drain();
    let place = run
        .stdout
        .windows(4)
        .position(|window| window == b"b: x")
        .unwrap();
    assert!(place < 200_000, "{place}");
    run.exit(0, 0);
    run.exit(1, 0);
    run.finish();
}
