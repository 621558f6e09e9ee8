//! Gathered output.

use super::*;

const GATHER: Format = Format::Grouped { with_stderr: false };
const GATHER_ALL: Format = Format::Grouped { with_stderr: true };

const SMALL: Limits = Limits {
    in_memory: 8,
    in_memory_total: 1 << 20,
    spilled: 1 << 20,
};

#[test]
fn identical_output_is_shown_once_under_its_hosts() {
    let mut run = Run::new(plain(GATHER), &["web[01-03]", "db1"]);
    run.print(0, OUT, b"x\ny\n");
    run.print(1, OUT, b"other\n");
    run.print(2, OUT, b"x\n");
    run.print(3, OUT, b"other\n");
    run.print(2, OUT, b"y\n");
    (0..4).for_each(|host| run.exit(host, 0));
    assert!(run.stdout.is_empty(), "nothing before the end");
    run.check(
        "---------------\nweb[01,03] (2)\n---------------\nx\ny\n---------------\nweb02,db1 (2)\n---------------\nother\n",
        "",
    );
}

#[test]
fn a_single_host_has_no_count_and_silent_hosts_are_not_shown() {
    let mut run = Run::new(plain(GATHER), &["a", "b"]);
    run.print(0, OUT, b"no end");
    (0..2).for_each(|host| run.exit(host, 0));
    run.check("---------------\na\n---------------\nno end\n", "");
}

#[test]
fn with_b_stderr_comes_at_once() {
    let mut run = Run::new(plain(GATHER), &["a", "b"]);
    run.print(0, ERR, b"oops\n");
    assert_eq!(run.stderr, b"a: oops\n");
    run.print(0, OUT, b"x\n");
    run.print(1, OUT, b"x\n");
    (0..2).for_each(|host| run.exit(host, 0));
    run.check("---------------\na,b (2)\n---------------\nx\n", "a: oops\n");
}

#[test]
fn the_order_of_stderr_in_time_makes_no_difference() {
    let mut run = Run::new(plain(GATHER_ALL), &["a[1-3]"]);
    for (stream, text) in [(OUT, "x\n"), (ERR, "e\n"), (OUT, "y\n")] {
        run.print(0, stream, text.as_bytes());
    }
    for (stream, text) in [(ERR, "e\n"), (OUT, "x\ny\n")] {
        run.print(1, stream, text.as_bytes());
    }
    run.print(2, OUT, b"x\ny\n");
    (0..3).for_each(|host| run.exit(host, 0));
    run.check(
        "---------------\na[1-2] (2)\n---------------\nx\ny\ne\n---------------\na3\n---------------\nx\ny\n",
        "",
    );
}

#[test]
fn what_is_on_which_stream_makes_a_difference() {
    let mut run = Run::new(plain(GATHER_ALL), &["a[1-2]"]);
    run.print(0, OUT, b"x\n");
    run.print(1, ERR, b"x\n");
    (0..2).for_each(|host| run.exit(host, 0));
    run.check(
        "---------------\na1\n---------------\nx\n---------------\na2\n---------------\nx\n",
        "",
    );
}

#[test]
fn without_names_only_the_output_is_left() {
    let mut run = Run::new(
        Options {
            prefix: false,
            ..plain(GATHER)
        },
        &["a[1-2]"],
    );
    (0..2).for_each(|host| run.print(host, OUT, b"x\n"));
    (0..2).for_each(|host| run.exit(host, 0));
    run.check("x\n", "");
}

#[test]
fn what_is_gathered_is_printed_when_the_run_is_cut_short() {
    let mut run = Run::new(plain(GATHER), &["a"]);
    run.print(0, OUT, b"so far\n");
    run.check(
        "---------------\na\n---------------\nso far\n",
        "ok=0 cancelled=1 in 1.4s\ncancelled: a: it had not ended\n",
    );
}

#[test]
fn large_output_goes_through_a_file_and_back_byte_for_byte() {
    let mut run = Run::with_limits(plain(GATHER), &["a[1-3]"], SMALL);
    // The same bytes cut differently, and a host that stays in memory.
    run.print(0, OUT, b"0123456789\nabcdefgh\nxy\n");
    for piece in b"0123456789\nabcdefgh\nxy\n".chunks(3) {
        run.print(1, OUT, piece);
    }
    run.print(2, OUT, b"small\n");
    (0..3).for_each(|host| run.exit(host, 0));
    assert!(!run.spill.is_empty());
    run.check(
        "---------------\na[1-2] (2)\n---------------\n0123456789\nabcdefgh\nxy\n---------------\na3\n---------------\nsmall\n",
        "mux: a[1-2]: large output, 41 B of it went through a temporary file\n",
    );
}

#[test]
fn the_largest_go_first_when_all_together_are_too_large() {
    let limits = Limits {
        in_memory: 1 << 20,
        in_memory_total: 1000,
        spilled: 1 << 20,
    };
    let mut run = Run::with_limits(plain(GATHER), &["a[1-30]"], limits);
    for host in 0..30 {
        let size = if host == 7 { 500 } else { 30 };
        run.print(host, OUT, &vec![b'a' + u8::try_from(host % 26).unwrap(); size]);
    }
    (0..30).for_each(|host| run.exit(host, 0));
    assert_eq!(run.spill.len(), 500 + 30, "two pieces make half of the room");
    assert!(run.spill.starts_with(&[b'h'; 500]));
    run.finish();
    assert_eq!(run.stdout.iter().filter(|byte| **byte == b'h').count(), 500);
}

#[test]
fn over_the_limit_of_files_output_is_cut_at_the_end_and_said() {
    let limits = Limits {
        in_memory: 8,
        in_memory_total: 1 << 20,
        spilled: 16,
    };
    let mut run = Run::with_limits(plain(GATHER), &["a", "b"], limits);
    run.print(0, OUT, b"0123456789");
    run.print(0, OUT, b"0123456789");
    run.print(0, OUT, b"cut");
    run.print(0, OUT, b"cut away\n");
    run.print(1, OUT, b"kept\n");
    (0..2).for_each(|host| run.exit(host, 0));
    run.finish();
    let stdout = String::from_utf8(run.stdout).unwrap();
    assert!(
        stdout.starts_with("---------------\na\n---------------\n0123456789012345\n"),
        "{stdout}"
    );
    assert!(
        stdout.ends_with("b\n---------------\nkept\n") && !stdout.contains("away"),
        "{stdout}"
    );
    let stderr = String::from_utf8(run.stderr).unwrap();
    assert!(
        stderr.contains("a: the last 16 B of output were cut: over 16 B in all"),
        "{stderr}"
    );
}

#[test]
fn nothing_more_is_taken_while_the_spill_file_lags() {
    let mut run = Run::new(plain(GATHER), &["a"]);
    for _ in 0..1024 {
        run.feed(0, OUT, &[b'x'; 8 * 1024]);
    }
    assert!(run.consumed < 3 << 20, "{}", run.consumed);
    run.drain();
    assert_eq!(run.consumed, run.given);
    run.exit(0, 0);
    run.finish();
    assert_eq!(run.stdout.iter().filter(|byte| **byte == b'x').count(), run.given);
}

#[test]
fn on_a_terminal_escapes_are_neutralised_in_memory_and_from_files() {
    for limits in [Limits::default(), SMALL] {
        let mut run = Run::with_limits(options(GATHER, &facts(true)), &["a"], limits);
        for piece in "\x1b[31m0123456789ü\r\n".as_bytes().chunks(1) {
            run.print(0, OUT, piece);
        }
        run.exit(0, 0);
        run.finish();
        let stdout = String::from_utf8(run.stdout).unwrap();
        assert_eq!(
            stdout,
            "---------------\n\x1b[1m\x1b[36ma\x1b[0m\n---------------\n^[[31m0123456789ü\n"
        );
    }
}

#[test]
fn files_never_hold_more_than_they_may_and_memory_takes_what_it_can() {
    let limits = Limits {
        in_memory: 8,
        in_memory_total: 24,
        spilled: 10,
    };
    let mut run = Run::with_limits(plain(GATHER), &["a[1-9]"], limits);
    for _ in 0..5 {
        (0..9_u8).for_each(|host| run.print(host.into(), OUT, &[b'A' + host; 7]));
    }
    (0..9).for_each(|host| run.exit(host, 0));
    run.finish();
    assert!(run.spill.len() <= 10, "{} bytes in files", run.spill.len());
    let stderr = String::from_utf8(run.stderr).unwrap();
    let kept: usize = String::from_utf8(run.stdout)
        .unwrap()
        .lines()
        .filter(|line| line.starts_with(char::is_uppercase))
        .map(str::len)
        .sum();
    assert!((17..=34 + 7).contains(&kept), "{kept} bytes kept: {stderr}");
    assert!(
        stderr.contains("were cut: over 10 B in all (--spill-max)"),
        "{stderr}"
    );
}

#[test]
fn without_files_each_host_keeps_what_fits_into_memory() {
    let limits = Limits {
        in_memory: 8,
        in_memory_total: 1 << 20,
        spilled: 0,
    };
    let mut run = Run::with_limits(plain(GATHER), &["a"], limits);
    run.print(0, OUT, b"01234567");
    run.print(0, OUT, b"8");
    run.exit(0, 0);
    run.check(
        "---------------\na\n---------------\n01234567\n",
        "mux: a: the last 1 B of output were cut: over 0 B in all (--spill-max)\n",
    );
}
