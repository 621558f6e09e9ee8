//! Summary, notices, progress, colour.

use super::*;
use crate::plan::DEFAULT_SPILL_MAX;

fn summary_of(outcomes: Vec<Outcome>, hosts: &[&str]) -> String {
    let mut run = Run::new(plain(Format::Text), hosts);
    for (host, outcome) in (0..).zip(outcomes) {
        run.end(host, outcome);
    }
    run.finish();
    assert_eq!(run.stdout, b"");
    String::from_utf8(run.stderr).unwrap()
}

#[test]
fn the_summary_counts_and_folds_each_kind_of_failure() {
    let signalled = Outcome {
        signal: Some("SEGV".into()),
        ..outcome(Status::Failed, None)
    };
    let outcomes = vec![
        exited(0),
        exited(2),
        exited(2),
        exited(1),
        signalled,
        outcome(Status::Timeout, None),
        failed(Status::Unreachable, Stage::Tcp, "connection refused"),
        failed(Status::Auth, Stage::Auth, "no key was taken"),
        outcome(Status::Unknown, None),
        outcome(Status::Skipped, None),
        outcome(Status::Cancelled, None),
    ];
    assert_eq!(
        summary_of(outcomes, &["w[01-11]"]),
        "ok=1 failed=4 timeout=1 unreachable=1 auth=1 unknown=1 skipped=1 cancelled=1 in 1.4s\n\
         failed: w[02-03]: exit status 2\n\
         failed: w04: exit status 1\n\
         failed: w05: killed by SIGSEGV\n\
         timeout: w06: took longer than --timeout\n\
         unreachable: w07: tcp: connection refused\n\
         auth: w08: auth: no key was taken\n\
         unknown: w09: ended without an exit status\n\
         skipped: w10: never tried\n\
         cancelled: w11: stopped on request\n"
    );
}

#[test]
fn reasons_that_differ_in_the_host_only_are_one() {
    let reason = |name: &str| {
        failed(
            Status::Unreachable,
            Stage::Dns,
            &format!("{name}: no such name; is {name}.local up?"),
        )
    };
    assert_eq!(
        summary_of(
            vec![reason("a1"), reason("a2"), reason("a3")],
            &["a1", "root@a2:22", "a3"]
        ),
        "ok=0 unreachable=3 in 1.4s\nunreachable: a[1,3],root@a2:22: dns: HOST: no such name; is HOST.local up?\n"
    );
    assert_eq!(
        summary_of(vec![reason("a1")], &["a1"]),
        "ok=0 unreachable=1 in 1.4s\nunreachable: a1: dns: a1: no such name; is a1.local up?\n"
    );
    let refused = || failed(Status::Unreachable, Stage::Tcp, "a reset");
    assert_eq!(
        summary_of(vec![refused(), refused()], &["e", "s"]),
        "ok=0 unreachable=2 in 1.4s\nunreachable: e,s: tcp: a reset\n",
        "a name inside a word is no name"
    );
}

#[test]
fn reasons_that_differ_in_the_address_only_are_one_where_it_is_the_connection_that_failed() {
    let at = |address: &str| {
        let text = format!("connect to {address}: connection refused");
        let mut outcome = failed(Status::Unreachable, Stage::Tcp, &text);
        outcome.error = outcome.error.map(|error| error.in_general("connection refused"));
        outcome
    };
    let tcp = ["192.0.2.1:22", "[2001:db8::2]:22"].map(at);
    assert_eq!(
        summary_of(tcp.to_vec(), &["a1", "a2"]),
        "ok=0 unreachable=2 in 1.4s\nunreachable: a[1-2]: tcp: connection refused\n"
    );
    assert_eq!(
        summary_of(tcp[..1].to_vec(), &["a1"]),
        "ok=0 unreachable=1 in 1.4s\nunreachable: a1: tcp: connect to 192.0.2.1:22: connection refused\n"
    );
    let said = ["192.0.2.1", "192.0.2.2"].map(|address| failed(Status::Unreachable, Stage::Channel, address));
    let apart = summary_of(said.to_vec(), &["a1", "a2"]);
    assert_eq!(
        apart.lines().count(),
        3,
        "a server's own words are left alone: {apart}"
    );
}

#[test]
fn words_of_a_server_can_do_nothing_to_the_terminal() {
    let hostile = failed(Status::Auth, Stage::Auth, "no\x1b[2J\nok=1");
    assert_eq!(
        summary_of(vec![hostile], &["a"]),
        "ok=0 auth=1 in 1.4s\nauth: a: auth: no^[[2J ok=1\n"
    );
}

#[test]
fn the_summary_is_silent_if_all_is_well_and_nobody_watches() {
    assert_eq!(summary_of(vec![exited(0)], &["a"]), "");
    for (terminal, quiet, rc, expected) in [
        (true, false, 0, true),
        (false, false, 1, true),
        (true, true, 1, false),
        (false, true, 1, false),
    ] {
        let options = Options {
            quiet,
            ..options(Format::Text, &facts(terminal))
        };
        let mut run = Run::new(options, &["a"]);
        run.exit(0, rc);
        run.finish();
        assert_eq!(!run.stderr.is_empty(), expected, "{terminal} {quiet} {rc}");
    }
}

#[test]
fn notices_name_their_host_and_obey_quiet_and_verbose() {
    let notices = |options: Options| {
        let mut run = Run::new(options, &["a"]);
        let notice = |request, level, text: &str| Event::Notice {
            request,
            level,
            text: text.into(),
        };
        run.output
            .handle(notice(Some(RequestId(0)), Level::Warning, "odd"));
        run.output.handle(notice(None, Level::Verbose, "detail"));
        run.exit(0, 0);
        run.finish();
        String::from_utf8(run.stderr).unwrap()
    };
    assert_eq!(notices(plain(Format::Text)), "mux: a: odd\n");
    assert_eq!(
        notices(Options {
            verbose: true,
            ..plain(Format::Text)
        }),
        "mux: a: odd\nmux: detail\n"
    );
    assert_eq!(
        notices(Options {
            quiet: true,
            ..plain(Format::Text)
        }),
        ""
    );
}

#[test]
fn a_notice_is_one_line_and_a_complaint_ignores_quiet() {
    let mut run = Run::new(
        Options {
            quiet: true,
            ..plain(Format::Text)
        },
        &["a"],
    );
    run.output.complain("disk full");
    run.exit(0, 0);
    run.check("", "mux: disk full\n");
    let mut run = Run::new(plain(Format::Text), &["a"]);
    let text = "banner\nok=1 in 0.1s\r\n".to_owned();
    run.output.handle(Event::Notice {
        request: Some(RequestId(0)),
        level: Level::Warning,
        text,
    });
    run.exit(0, 0);
    run.check("", "mux: a: banner ok=1 in 0.1s\n");
}

#[test]
fn progress_is_shown_on_a_terminal_after_a_while_and_taken_away_at_the_end() {
    let mut run = Run::new(options(GATHERED, &facts(true)), &["web[01-03]"]);
    for host in 0..3 {
        run.output.handle(Event::Stage {
            request: RequestId(host),
            stage: Stage::Dns,
        });
    }
    run.exit(0, 1);
    for millis in [0, 299, 300, 310, 400, 500] {
        run.output.handle_timeout(run.now + Duration::from_millis(millis));
        run.drain();
    }
    run.exit(1, 0);
    run.output.resize(30);
    run.output.handle_timeout(run.now + Duration::from_millis(61_000));
    run.finish();
    assert_eq!(
        run.progress,
        [
            "1/3 done, 1 not ok, 2 running, 0.3s: web[02-03]",
            "1/3 done, 1 not ok, 2 running, 0.4s: web[02-03]",
            "1/3 done, 1 not ok, 2 running, 0.5s: web[02-03]",
            "2/3 done, 1 not ok, 1 runn...",
            "",
        ]
    );
}

const GATHERED: Format = Format::Grouped { with_stderr: false };

#[test]
fn progress_is_not_shown_off_a_terminal_or_when_quiet() {
    let dumb = Facts {
        term: Some("dumb".into()),
        ..facts(true)
    };
    let quiet = Options {
        quiet: true,
        ..options(Format::Text, &facts(true))
    };
    let quiet_plan = OutputPlan {
        format: Format::Text,
        prefix: true,
        quiet: true,
        color: ColorChoice::Auto,
        spill_max: DEFAULT_SPILL_MAX,
        save: SavePlan::default(),
    };
    let quiet = Options {
        progress: Options::new(&quiet_plan, 0, &facts(true), "/x".into()).progress,
        ..quiet
    };
    for options in [plain(Format::Text), options(Format::Text, &dumb), quiet] {
        let run = Run::new(options, &["a"]);
        assert_eq!(run.output.poll_timeout(), None);
    }
}

/// Whether there is colour: flag, NO_COLOR, CLICOLOR, CLICOLOR_FORCE, TERM, terminal.
#[test]
fn colour_follows_flag_environment_and_terminal_in_this_order() {
    use ColorChoice::{Always, Auto, Never};
    let table = [
        (Auto, None, None, None, Some("xterm"), true, true),
        (Auto, None, None, None, Some("xterm"), false, false),
        (Auto, None, None, None, Some("dumb"), true, false),
        (Auto, None, None, None, None, true, false),
        (Auto, Some("1"), None, None, Some("xterm"), true, false),
        (Auto, Some(""), None, None, Some("xterm"), true, true),
        (Auto, None, Some("0"), None, Some("xterm"), true, false),
        (Auto, None, Some("1"), None, Some("xterm"), true, true),
        (Auto, None, Some("1"), None, Some("xterm"), false, false),
        (Auto, None, None, Some("1"), None, false, true),
        (Auto, None, None, Some("0"), Some("xterm"), false, false),
        (Auto, Some("1"), None, Some("1"), Some("xterm"), true, false),
        (Always, Some("1"), Some("0"), None, Some("dumb"), false, true),
        (Never, None, None, Some("1"), Some("xterm"), true, false),
    ];
    for (choice, no_color, clicolor, force, term, terminal, expected) in table {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let facts = Facts {
            no_color: owned(no_color),
            clicolor: owned(clicolor),
            clicolor_force: owned(force),
            term: owned(term),
            ..Facts::default()
        };
        assert_eq!(
            facts.color(choice, terminal),
            expected,
            "{choice:?} {facts:?} {terminal}"
        );
    }
}

#[test]
fn times_and_sizes_are_short() {
    let times = [
        (0, "0.0s"),
        (1440, "1.4s"),
        (59_900, "59.9s"),
        (125_000, "2m05s"),
        (3_720_000, "1h02m"),
    ];
    for (millis, shown) in times {
        assert_eq!(tally::shown_duration(Duration::from_millis(millis)), shown);
    }
    for (bytes, shown) in [
        (9, "9 B"),
        (1536, "1.5 KiB"),
        (1 << 20, "1.0 MiB"),
        (4 << 30, "4.0 GiB"),
    ] {
        assert_eq!(tally::shown_size(bytes), shown);
    }
}
