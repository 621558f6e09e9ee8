//! A file for each host: what is in it, what is printed besides, and what is said when one takes no more.

use std::path::Path;

use super::*;

/// Output into these directories.
fn saving(format: Format, dirs: (Option<&str>, Option<&str>), is_shown: bool) -> Options {
    Options {
        save: SavePlan {
            outdir: dirs.0.map(Into::into),
            errdir: dirs.1.map(Into::into),
            is_shown,
        },
        ..plain(format)
    }
}

impl Run {
    fn check_files(&self, expected: &[(&str, &str)]) {
        let mut files: Vec<(&str, &[u8])> = self
            .files
            .iter()
            .map(|(path, bytes)| (path.to_str().unwrap(), bytes.as_slice()))
            .collect();
        files.sort_unstable();
        let expected: Vec<(&str, &[u8])> = expected
            .iter()
            .map(|(path, text)| (*path, text.as_bytes()))
            .collect();
        assert_eq!(files, expected);
    }
}

#[test]
fn what_goes_to_files_is_not_printed_and_arrives_untouched() {
    let mut run = Run::new(
        saving(Format::Text, (Some("o"), None), false),
        &["a", "b", "root@a:22"],
    );
    run.print(0, OUT, b"one\r\n\x1b[2Jno end");
    run.print(0, ERR, b"trouble\n");
    run.print(2, OUT, b"other\n");
    run.print(0, OUT, b", and more");
    (0..3).for_each(|host| run.exit(host, 0));
    run.finish();
    run.check_files(&[
        ("o/a", "one\r\n\x1b[2Jno end, and more"),
        ("o/b", ""),
        ("o/root@a:22", "other\n"),
    ]);
    assert_eq!(
        (run.stdout.as_slice(), run.stderr.as_slice()),
        (&b""[..], &b"a: trouble\n"[..])
    );
}

#[test]
fn a_form_that_was_asked_for_by_name_is_printed_besides() {
    let mut run = Run::new(
        saving(
            Format::Grouped { with_stderr: true },
            (Some("o"), Some("e")),
            true,
        ),
        &["a", "b"],
    );
    for host in 0..2 {
        run.print(host, OUT, b"same\n");
        run.print(host, ERR, b"trouble\n");
        run.exit(host, 0);
    }
    run.finish();
    run.check_files(&[
        ("e/a", "trouble\n"),
        ("e/b", "trouble\n"),
        ("o/a", "same\n"),
        ("o/b", "same\n"),
    ]);
    let stdout = String::from_utf8(run.stdout).unwrap();
    assert_eq!(
        stdout,
        "---------------\na,b (2)\n---------------\nsame\ntrouble\n"
    );
}

#[test]
fn large_pieces_are_given_back_once() {
    for is_shown in [false, true] {
        let mut run = Run::new(saving(Format::Text, (Some("o"), None), is_shown), &["a"]);
        run.print(0, OUT, &vec![b'x'; 1_000_000]);
        run.exit(0, 0);
        run.finish();
        assert_eq!(run.files[Path::new("o/a")].len(), 1_000_000);
    }
}

#[test]
fn a_host_that_had_not_ended_has_a_file_too() {
    let mut run = Run::new(saving(Format::Text, (Some("o"), None), false), &["a", "b"]);
    run.print(0, OUT, b"so far");
    run.finish();
    run.check_files(&[("o/a", "so far"), ("o/b", "")]);
}

#[test]
fn the_line_of_a_host_names_its_file_and_waits_until_it_is_written() {
    let mut run = Run::new(saving(Format::Jsonl, (Some("o"), None), false), &["a", "b"]);
    run.slow = true;
    run.print(0, OUT, b"out");
    run.print(0, ERR, b"err");
    run.exit(0, 0);
    assert_eq!(run.stdout, b"");
    // One write is reported as failed before it is reported as over.
    assert!(run.output.lose_saved(RequestId(0), "disk full".to_owned()));
    for request in std::mem::take(&mut run.unreported) {
        run.output.saved(request);
    }
    run.slow = false;
    run.drain();
    run.exit(1, 0);
    run.finish();
    let lines: Vec<serde_json::Value> = String::from_utf8(run.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        (&lines[0]["host"], &lines[0]["stdout_file"]),
        (&"a".into(), &"o/a".into())
    );
    assert_eq!(
        (&lines[0]["stderr"], &lines[0]["truncated"]),
        (&"err".into(), &true.into())
    );
    assert_eq!(
        (&lines[1]["stdout_file"], &lines[1]["truncated"]),
        (&"o/b".into(), &false.into())
    );
}

#[test]
fn hosts_that_lost_output_for_the_same_reason_are_named_together() {
    let mut run = Run::new(saving(Format::Text, (Some("o"), None), false), &["a[1-3]", "b"]);
    for host in 0..3 {
        run.print(host, OUT, b"x");
        let is_first = run.output.lose_saved(RequestId(host), "disk full".to_owned());
        assert_eq!(is_first, host == 0);
    }
    (0..4).for_each(|host| run.exit(host, 0));
    run.check("", "mux: a[1-3]: output lost: disk full\n");
}
