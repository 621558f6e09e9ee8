//! Command lines and the plans that they become.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::os::unix::ffi::OsStringExt as _;

use super::*;
use crate::daemon::{DEFAULT_IDLE, Form, Life, Verb};
use crate::plan::Transport;

fn parse_words(line: &[&[u8]], environment: &Environment) -> Result<Invocation, UsageError> {
    let program: &[u8] = b"mux";
    let words = std::iter::once(&program)
        .chain(line)
        .map(|word| OsString::from_vec(word.to_vec()));
    parse(words, environment)
}

fn parse_line(line: &str) -> Result<Invocation, UsageError> {
    let words: Vec<&[u8]> = line
        .split(' ')
        .filter(|word| !word.is_empty())
        .map(str::as_bytes)
        .collect();
    parse_words(&words, &Environment::default())
}

fn plan_of(line: &str) -> Plan {
    match parse_line(&format!("run {line}")).unwrap_or_else(|error| panic!("{line}: {error}")) {
        Invocation::Run(plan) => *plan,
        Invocation::Config(query) => panic!("{line}: {query:?}"),
        Invocation::Daemon(verb) => panic!("{line}: {verb:?}"),
        Invocation::Print(text) => panic!("{line}: {text}"),
    }
}

/// What `mux run -w a` with these words sends.
fn check_command(words: &[&[u8]], expected: &[u8]) {
    let line: Vec<&[u8]> = [b"run".as_slice(), b"-w", b"a"]
        .iter()
        .chain(words)
        .copied()
        .collect();
    let Invocation::Run(plan) = parse_words(&line, &Environment::default()).unwrap() else {
        panic!("{line:?}")
    };
    assert_eq!(plan.action, Action::Run(expected.to_vec()), "{line:?}");
}

/// `line` is refused, and the text names each of `parts`.
fn check_error(line: &str, parts: &[&str]) {
    let text = parse_line(line).expect_err(line).to_string();
    assert!(parts.iter().all(|part| text.contains(part)), "{line}: {text}");
}

#[test]
fn options_end_at_the_first_word_of_the_command() {
    check_command(&[b"uptime"], b"uptime");
    check_command(&[b"ls", b"-l", b"-w", b"b"], b"ls -l -w b");
    check_command(&[b"ls", b"--", b"-x"], b"ls -- -x");
    check_command(&[b"--", b"-x", b"--help"], b"-x --help");
    check_command(&[b"--", b"--", b"x"], b"-- x");
    check_command(&[b"-b", b"--", b"ls", b"--", b"-v"], b"ls -- -v");
}

#[test]
fn words_are_joined_by_one_space_and_otherwise_untouched() {
    check_command(&[b"echo  'a b'", b"", b"$HOME | x"], b"echo  'a b'  $HOME | x");
    check_command(&[b"echo", b"\xff\xfe", "ü".as_bytes()], b"echo \xff\xfe \xc3\xbc");
}

#[test]
fn argv_quotes_each_word_for_posix_sh() {
    check_command(&[b"--argv", b"--", b"echo", b"a b"], b"echo 'a b'");
    check_command(
        &[b"--argv", b"echo", b"--argv", b"", b"$x", b"\xff*"],
        b"echo --argv '' '$x' '\xff*'",
    );
}

#[test]
fn without_a_command_the_shell_is_named() {
    for line in ["run -w a", "run -w a --", "run"] {
        assert_eq!(parse_line(line), Err(UsageError::NoCommand), "{line}");
    }
    let blank = parse_words(&[b"run", b"-w", b"a", b" "], &Environment::default());
    assert_eq!(blank, Err(UsageError::NoCommand));
    check_error("run -w a", &["mux shell", "not supported yet"]);
}

fn variable(name: &str, value: &str) -> Variable {
    Variable {
        name: name.into(),
        value: value.into(),
    }
}

#[test]
fn the_value_of_a_variable_is_any_bytes() {
    let line: &[&[u8]] = &[b"run", b"-w", b"a", b"--env", b"_x9=\xff =\n", b"ls"];
    let Invocation::Run(plan) = parse_words(line, &Environment::default()).unwrap() else {
        panic!("{line:?}")
    };
    let [only] = plan.environment.given.as_slice() else {
        panic!("{:?}", plan.environment)
    };
    assert_eq!(
        (only.name.as_str(), only.value.as_slice()),
        ("_x9", b"\xff =\n".as_slice())
    );
}

#[test]
fn a_transport_is_for_all_targets_or_for_some() {
    let plan = plan_of(
        "run -w web[1-3] --transport openssh=web1 --transport=openssh=web[2-3] ls".trim_start_matches("run "),
    );
    let connection = plan.connection;
    assert_eq!(connection.transport, Transport::Ssh);
    assert_eq!(connection.through_openssh, ["web1", "web[2-3]"]);
    let one = "run -w a --transport openssh --transport";
    check_error(
        &format!("{one} local ls"),
        &["two for all targets", "openssh=SET"],
    );
    check_error(
        &format!("{one} openssh=a ls"),
        &["--transport openssh=a", "leave one of them out"],
    );
    check_error(
        "run -w a --transport telnet ls",
        &["telnet", "native, openssh, local"],
    );
    check_error("run -w a --transport local=a ls", &["only openssh"]);
    check_error("run -w a --transport openssh= ls", &["which targets?"]);
}

#[test]
fn every_flag_lands_in_its_place() {
    let plan = plan_of(
        "-w web[1-3] -wdb1 -x web2 --hosts fleet --hosts - -f 8 -l root -p 2222 -i k1 -ik2 -F cfg -o A=1 -oB=2 -B -N \
         -S -q -vv -6 --connect-timeout 1.5 --login-timeout 2m --timeout 500ms --color never --transport local \
         --env A=1 --env B= --env A=2=3 --env-info --retries 3 --missing-status ok --spill-max 1.5G --outdir out \
         --errdir=err --stdin=in -A --forward-agent-to-all ls",
    );
    assert_eq!(
        plan,
        Plan {
            targets: TargetSpec {
                select: vec!["web[1-3]".into(), "db1".into()],
                exclude: vec!["web2".into()],
                hosts: vec![HostsSource::File("fleet".into()), HostsSource::Stdin],
            },
            action: Action::Run(b"ls".to_vec()),
            fanout: 8,
            timeout: Some(Duration::from_millis(500)),
            environment: Variables {
                given: vec![variable("B", ""), variable("A", "2=3")],
                info: true,
            },
            stdin: Some(StdinSource::File("in".into())),
            retries: 3,
            missing_status: MissingStatus::Ok,
            sharing: Sharing::default(),
            connection: Connection {
                user: Some("root".into()),
                port: Some(2222),
                identities: vec!["k1".into(), "k2".into()],
                config: Some("cfg".into()),
                options: vec!["A=1".into(), "B=2".into()],
                family: Family::V6,
                connect_timeout: Some(Duration::from_millis(1500)),
                login_timeout: Some(Duration::from_secs(120)),
                transport: Transport::Local,
                through_openssh: Vec::new(),
                forward_agent: true,
                forward_to_all: true,
            },
            output: OutputPlan {
                format: Format::Grouped { with_stderr: true },
                prefix: false,
                quiet: true,
                color: ColorChoice::Never,
                spill_max: 3 << 29,
                save: SavePlan {
                    outdir: Some("out".into()),
                    errdir: Some("err".into()),
                    is_shown: true,
                },
            },
            exit: ExitRule::Largest,
            verbose: 2,
        }
    );
}

#[test]
fn defaults_are_those_of_the_manual() {
    let plan = plan_of("-w a ls");
    assert_eq!((plan.fanout, plan.timeout, plan.verbose), (64, None, 0));
    assert_eq!(plan.connection, Connection::default());
    let output = OutputPlan {
        format: Format::Text,
        prefix: true,
        quiet: false,
        color: ColorChoice::Auto,
        spill_max: 4 << 30,
        save: SavePlan::default(),
    };
    assert_eq!((plan.output, plan.exit), (output, ExitRule::Fleet));
    assert_eq!((plan.environment, plan.retries), (Variables::default(), 0));
    assert_eq!(plan.stdin, None);
    assert_eq!(plan.missing_status, MissingStatus::Unknown);
}

#[test]
fn the_last_of_contradicting_flags_wins() {
    assert_eq!(plan_of("-w a -4 -6 ls").connection.family, Family::V6);
    assert_eq!(plan_of("-w a -6 -4 ls").connection.family, Family::V4);
    assert_eq!(plan_of("-w a -f 1 -f 2 ls").fanout, 2);
    assert_eq!(
        plan_of("-w a -B -b ls").output.format,
        Format::Grouped { with_stderr: false }
    );
    assert_eq!(
        plan_of("-w a -bB ls").output.format,
        Format::Grouped { with_stderr: true }
    );
}

#[test]
fn standard_input_is_read_on_request_only() {
    let stdin = |line: &str| plan_of(&format!("-w a {line} ls")).stdin;
    assert_eq!(stdin("--stdin"), Some(StdinSource::Inherited));
    assert_eq!(stdin("--stdin=-"), Some(StdinSource::Inherited));
    assert_eq!(stdin("--stdin=./-"), Some(StdinSource::File("./-".into())));
    assert_eq!(stdin("-n"), None);
    assert_eq!(stdin("--stdin -n"), None);
    assert_eq!(stdin("-n --stdin"), Some(StdinSource::Inherited));
    // The word after it is the command.
    assert_eq!(plan_of("-w a --stdin cat").action, Action::Run(b"cat".to_vec()));
    check_error("run --stdin --hosts - cat", &["--hosts -", "--stdin=FILE"]);
    assert_eq!(stdin("--stdin=f --hosts -"), Some(StdinSource::File("f".into())));
}

#[test]
fn output_formats_are_named_or_lettered() {
    let format = |line: &str| plan_of(&format!("-w a {line} ls")).output.format;
    assert_eq!(format("--output text"), Format::Text);
    assert_eq!(format("--output=grouped"), Format::Grouped { with_stderr: false });
    assert_eq!(
        format("--output grouped -B"),
        Format::Grouped { with_stderr: true }
    );
    assert_eq!(format("--output jsonl"), Format::Jsonl);
    assert_eq!(
        parse_line("run -w a -b --output jsonl ls"),
        Err(UsageError::TwoFormats)
    );
    check_error("run -w a --output xml ls", &["xml", "jsonl"]);
}

#[test]
fn targets_may_be_listed_without_a_command() {
    assert_eq!(plan_of("-w a --list-hosts").action, Action::ListHosts);
    assert_eq!(plan_of("-w a --list-hosts ls").action, Action::ListHosts);
}

#[test]
fn a_leading_dash_reaches_the_target_parser() {
    assert_eq!(plan_of("-w -web3 ls").targets.select, ["-web3"]);
}

#[test]
fn letters_of_peers_name_the_long_option() {
    check_error("run -w a -u 5 ls", &["-u", "--timeout", "-l USER"]);
    check_error("run -w a -t 5 ls", &["-t", "--connect-timeout"]);
    check_error("run -w a -r ls", &["-r", "not supported yet"]);
}

#[test]
fn planned_options_and_commands_are_not_supported_yet() {
    for option in [
        "-g web",
        "-a",
        "-K",
        "--limit web",
        "--limit=web",
        "--sudo",
        "--raw-output",
    ] {
        check_error(
            &format!("run {option} -w a ls"),
            &[option.split([' ', '=']).next().unwrap(), "not supported yet"],
        );
    }
    for command in ["put a b", "ssh -v host", "shell", "ansible x --help"] {
        check_error(
            command,
            &[command.split(' ').next().unwrap(), "not supported yet"],
        );
    }
    assert_eq!(
        parse_line("run --sudo ls"),
        Err(UsageError::NotSupportedYet("--sudo".into()))
    );
}

#[test]
fn mistakes_in_flags_are_named() {
    check_error("run --frobnicate", &["--frobnicate"]);
    check_error("run --timeot 5 -w a ls", &["--timeot", "--timeout"]);
    for line in [
        "run -L 1:a:2 -w a ls",
        "run -C -w a ls",
        "config -G -C a",
        "hosts learn -C a",
    ] {
        let text = parse_line(line).unwrap_err().to_string();
        assert!(
            text.contains("unexpected argument '-") && !text.contains("as a value"),
            "{text}"
        );
    }
    check_error("run -f 0 -w a ls", &["-f", "at least 1"]);
    check_error("run -f x -w a ls", &["-f", "at least 1"]);
    check_error("run -f 9999999 -w a ls", &["-f", "too large: at most "]);
    check_error(
        "run -f 99999999999999999999 -w a ls",
        &["-f", "too large: at most "],
    );
    check_error("run -p 0 -w a ls", &["-p", "0"]);
    check_error("run -p 65536 -w a ls", &["-p", "65536"]);
    check_error("run --timeout 5x -w a ls", &["--timeout", "500ms"]);
    check_error(
        "run --connect-timeout 0 -w a ls",
        &["--connect-timeout", "above zero"],
    );
    check_error("run --color blue -w a ls", &["blue", "never"]);
    check_error("run --env A -w a ls", &["--env", "NAME=VALUE"]);
    check_error("run --env 1A=x -w a ls", &["--env", "1A", "no name"]);
    check_error("run --env =x -w a ls", &["--env", "no name"]);
    check_error("run --env A-B=x -w a ls", &["--env", "A-B", "no name"]);
    check_error("run --retries -1 -w a ls", &["-1"]);
    check_error("run --retries 101 -w a ls", &["--retries", "101"]);
    check_error("run --spill-max 4X -w a ls", &["--spill-max", "512K"]);
    check_error("run --missing-status bad -w a ls", &["bad", "unknown"]);
    check_error("run -w", &["-w"]);
    check_error("frob", &["frob"]);
}

#[test]
fn help_and_version_are_texts_and_mux_alone_is_a_usage_error() {
    let printed = |line: &str| match parse_line(line).unwrap() {
        Invocation::Print(text) => text,
        Invocation::Config(query) => panic!("{query:?}"),
        Invocation::Daemon(verb) => panic!("{verb:?}"),
        Invocation::Run(plan) => panic!("{plan:?}"),
    };
    assert_eq!(
        printed("--version"),
        format!("mux {}\n", env!("CARGO_PKG_VERSION"))
    );
    assert!(printed("help").contains("Examples:"));
    assert_eq!(printed("help run"), printed("run --help"));
    let run = printed("help run");
    for part in [
        "-w <TARGETS>",
        "--connect-timeout",
        "web[01-20]",
        "Exit status:",
        "MUX_FANOUT",
    ] {
        assert!(run.contains(part), "{part}: {run}");
    }
    assert!(
        !run.contains("--limit") && !run.contains("-u"),
        "hidden flags stay hidden: {run}"
    );
    check_error("", &["Usage:", "Examples:"]);
}

fn environment(fanout: &str, connect: &str, timeout: &str) -> Environment {
    Environment {
        fanout: Some(fanout.into()),
        connect_timeout: Some(connect.into()),
        timeout: Some(timeout.into()),
        log: None,
    }
}

#[test]
fn the_environment_stands_in_for_flags_and_flags_win() {
    let line: Vec<&[u8]> = "run -w a ls".split(' ').map(str::as_bytes).collect();
    let Ok(Invocation::Run(plan)) = parse_words(&line, &environment("7", "3", "1m")) else {
        panic!()
    };
    assert_eq!((plan.fanout, plan.timeout), (7, Some(Duration::from_secs(60))));
    assert_eq!(plan.connection.connect_timeout, Some(Duration::from_secs(3)));

    let line: Vec<&[u8]> = "run -w a -f 9 --timeout 0 --connect-timeout 4 ls"
        .split(' ')
        .map(str::as_bytes)
        .collect();
    let Ok(Invocation::Run(plan)) = parse_words(&line, &environment("7", "3", "1m")) else {
        panic!()
    };
    assert_eq!((plan.fanout, plan.timeout), (9, None));
    assert_eq!(plan.connection.connect_timeout, Some(Duration::from_secs(4)));

    let Ok(Invocation::Run(plan)) = parse_words(&line, &environment("", "", "")) else {
        panic!()
    };
    assert_eq!(plan.fanout, 9);
}

#[test]
fn a_wrong_variable_is_named() {
    let line: Vec<&[u8]> = "run -w a ls".split(' ').map(str::as_bytes).collect();
    for (environment, name) in [
        (
            environment("0", "", ""),
            "MUX_FANOUT=0: write a number of hosts, at least 1",
        ),
        (environment("", "0", ""), "MUX_CONNECT_TIMEOUT"),
        (environment("", "", "soon"), "MUX_TIMEOUT"),
    ] {
        let text = parse_words(&line, &environment).unwrap_err().to_string();
        assert!(text.contains(name), "{text}");
    }
}

fn check_duration(text: &str, expected: Result<u64, DurationError>) {
    assert_eq!(
        parse_duration(text),
        expected.map(Duration::from_millis),
        "{text}"
    );
}

#[test]
fn times_are_seconds_or_numbers_with_units() {
    let table = [
        ("10", 10_000),
        ("1.5", 1500),
        ("0", 0),
        ("500ms", 500),
        ("90s", 90_000),
        ("1h30m", 5_400_000),
        ("2d", 172_800_000),
    ];
    for (text, millis) in table {
        check_duration(text, Ok(millis));
    }
    for text in [
        "", "s", "1x", "-1", "1 s", "1m5", ".", ".5", "1e3", "1..2", "inf", "NaN",
    ] {
        check_duration(text, Err(DurationError::Malformed));
    }
    for text in ["0.0000000001", "0.0001s", "0.5ms"] {
        check_duration(text, Err(DurationError::TooShort));
    }
    for text in ["366d", "99999999999999999999", "200d200d"] {
        check_duration(text, Err(DurationError::TooLong));
    }
}

#[test]
fn the_daemon_is_used_unless_it_is_not_wanted() {
    let sharing = |line: &str| plan_of(line).sharing;
    assert_eq!(sharing("-w a ls"), Sharing::default());
    let never = Sharing {
        never: true,
        ..Sharing::default()
    };
    assert_eq!(sharing("-w a --no-daemon ls"), never);
    let kept = Sharing {
        fresh: true,
        persist: Some(Duration::from_secs(600)),
        ..Sharing::default()
    };
    assert_eq!(sharing("-w a --fresh --persist 10m ls"), kept);
    assert!(parse_line("run -w a --no-daemon --persist 10m ls").is_err());
}

#[test]
fn verbs_of_the_daemon_say_how_long_it_stays() {
    let verb = |line: &str| match parse_line(line).unwrap() {
        Invocation::Daemon(verb) => verb,
        other @ (Invocation::Run(_) | Invocation::Config(_) | Invocation::Print(_)) => {
            panic!("{line}: {other:?}")
        }
    };
    let life = |idle, detached| Life { idle, detached };
    let usual = Some(DEFAULT_IDLE);
    for (line, expected) in [
        ("daemon run", Verb::Run(life(usual, false))),
        ("daemon run --idle 0", Verb::Run(life(None, false))),
        (
            "daemon start --idle 1h",
            Verb::Start(life(Some(Duration::from_secs(3600)), true)),
        ),
        ("daemon restart", Verb::Restart(life(usual, true))),
        ("daemon stop", Verb::Stop),
        ("daemon drop", Verb::Drop(Vec::new())),
        (
            "daemon drop -w a,b -w c",
            Verb::Drop(vec!["a".into(), "b".into(), "c".into()]),
        ),
        ("status", Verb::Status(Form::Text)),
        ("status --json", Verb::Status(Form::Json)),
        ("status --metrics", Verb::Status(Form::Metrics)),
    ] {
        assert_eq!(verb(line), expected, "{line}");
    }
    assert!(parse_line("daemon").is_err());
    assert!(parse_line("status --json --metrics").is_err());
}
