//! Tables for the target syntax, and a seeded round trip through folding.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use super::*;

/// `text` means these targets, in this order, given these known names.
fn check_known(known: &[&str], text: &str, expected: &[&str]) {
    let known: Vec<Target> = known
        .iter()
        .flat_map(|name| parse(name, &[]).unwrap().into_vec())
        .collect();
    let set = parse(text, &known).unwrap_or_else(|error| panic!("{text}: {error}"));
    let shown: Vec<&str> = set.as_slice().iter().map(|target| target.text.as_str()).collect();
    assert_eq!(shown, expected, "{text}");
}

fn check(text: &str, expected: &[&str]) {
    check_known(&[], text, expected);
}

/// `text` is refused for this reason, with exactly `marked` of it pointed at.
fn check_error(text: &str, marked: &str, kind: TargetErrorKind) {
    let error = parse(text, &[]).expect_err(text);
    assert_eq!(error.kind, kind, "{text}");
    assert_eq!(
        text.get(error.span.clone()).unwrap_or(""),
        marked,
        "{text}: {error}"
    );
}

#[test]
fn a_target_has_user_host_and_port() {
    check("web1", &["web1"]);
    check("root@web1:2222", &["root@web1:2222"]);
    check("jane@corp@web1", &["jane@corp@web1"]);
    check("CORP\\jane@web1", &["CORP\\jane@web1"]);
    let set = parse("jane@corp@web1:22", &[]).unwrap().into_vec();
    assert_eq!(
        set,
        [Target::new(Some("jane@corp".into()), "web1".into(), Some(22))]
    );
    check("web_1.example.org", &["web_1.example.org"]);
    check("bücher", &["bücher"]);
    check("local", &["local"]);
}

#[test]
fn addresses_keep_their_colons() {
    check("::1", &["::1"]);
    check("[::1]", &["::1"]);
    check("[::1]:22", &["[::1]:22"]);
    check("root@[fe80::1%eth0]:22", &["root@[fe80::1%eth0]:22"]);
    check("fe80::1%eth0", &["fe80::1%eth0"]);
    check("2001:db8::1,web1", &["2001:db8::1", "web1"]);
    check("10.0.0.1:22", &["10.0.0.1:22"]);
    check("::ffff:10.0.0.1", &["::ffff:10.0.0.1"]);
    let set = parse("root@[fe80::1%eth0]:22", &[]).unwrap().into_vec();
    assert_eq!(
        set,
        [Target::new(Some("root".into()), "fe80::1%eth0".into(), Some(22))]
    );
}

#[test]
fn ranges_expand_with_padding_steps_and_dimensions() {
    check("web[1-3]", &["web1", "web2", "web3"]);
    check("web[9-11]", &["web9", "web10", "web11"]);
    check("web[008-010]", &["web008", "web009", "web010"]);
    check("web[1,3,07]", &["web1", "web3", "web07"]);
    check("web[1-9/4]", &["web1", "web5", "web9"]);
    check("web[0-1]", &["web0", "web1"]);
    check("r[1-2]n[1-2]", &["r1n1", "r1n2", "r2n1", "r2n2"]);
    check("[1-2]a", &["1a", "2a"]);
    check("10.0.0.[1-2]:22", &["10.0.0.1:22", "10.0.0.2:22"]);
    check("root@n[1-2].x:22", &["root@n1.x:22", "root@n2.x:22"]);
    check(
        "n[999999999999999998-999999999999999999/2]",
        &["n999999999999999998"],
    );
}

#[test]
fn algebra_goes_left_to_right() {
    check("a,b,a", &["a", "b"]);
    check("web[1-4]!web3", &["web1", "web2", "web4"]);
    check("web[1-4]&web[3-9]", &["web3", "web4"]);
    check("a,b^b,c", &["a", "c"]);
    check("a,b^b^b", &["a", "b"]);
    check("a!a,a", &["a"]);
    check(" a , b ! b ", &["a"]);
    check("a!a", &[]);
}

#[test]
fn hosts_differ_by_user_and_port_and_exclusions_cover_both() {
    check(
        "web1,web1:22,root@web1,web1:22",
        &["web1", "web1:22", "root@web1"],
    );
    check("root@web1,web1:22,web2!web1", &["web2"]);
    check("root@web1,web1!root@web1", &["web1"]);
    check("root@web[1-2]&web2", &["root@web2"]);
}

#[test]
fn wildcards_match_known_names_only() {
    let known = ["web1", "root@web2:2222", "db1"];
    check_known(&known, "web*", &["web1", "root@web2:2222"]);
    check_known(&known, "web?:22", &["web1:22", "root@web2:22"]);
    check_known(&known, "jane@web*", &["jane@web1", "jane@web2:2222"]);
    check_known(&known, "*", &["web1", "root@web2:2222", "db1"]);
    check_known(&known, "*!web*", &["db1"]);
    check_known(&known, "*b[1-1]", &["web1", "db1"]);
    check_known(&known, "*e*1,x", &["web1", "x"]);
    check_error("web*", "web*", TargetErrorKind::NoMatch { known: 0 });
    check_error("web[1-3]?", "web[1-3]?", TargetErrorKind::NoMatch { known: 0 });
}

#[test]
fn errors_point_at_what_is_wrong() {
    use TargetErrorKind as Kind;
    let table = [
        ("web[01-3]", "01-3", Kind::Padding),
        ("web[1-03]", "1-03", Kind::Padding),
        ("web[01-100]", "01-100", Kind::Padding),
        ("web[9-1]", "9-1", Kind::Backwards),
        ("web[1-9/0]", "1-9/0", Kind::ZeroStep),
        ("web[1/2]", "1/2", Kind::BadRange),
        ("web[]", "]", Kind::BadRange),
        ("web[1,]", "]", Kind::BadRange),
        ("web[a-c]", "a-c", Kind::BadRange),
        ("web[1,x]", "x", Kind::BadRange),
        ("web[1-2-3]", "1-2-3", Kind::BadRange),
        ("web[1:3]", "1:3", Kind::BadRange),
        ("web[ 1]", " ", Kind::Blank),
        ("web[1234567890123456789]", "1234567890123456789", Kind::BadRange),
        ("web[1-99999999]", "web[1-99999999]", Kind::TooMany),
        (
            "a[1-9999]b[1-9999]c[1-9999]d[1-9999]e[1-9999]",
            "a[1-9999]b[1-9999]c[1-9999]d[1-9999]e[1-9999]",
            Kind::TooMany,
        ),
        ("a[1-150000],b[1-150000]", "b[1-150000]", Kind::TooMany),
        ("web[1-3", "[", Kind::Unclosed),
        ("web1-3]", "]", Kind::StrayBracket),
        ("web[1-[2]]", "[", Kind::StrayBracket),
        ("a,,b", ",", Kind::MissingOperand),
        ("a,", "", Kind::MissingOperand),
        ("", "", Kind::MissingOperand),
        ("!a", "!", Kind::MissingOperand),
        ("^hosts", "^", Kind::CaretFile),
        ("a,^hosts", "^", Kind::CaretFile),
        ("-web3", "-web3", Kind::DashExclusion),
        ("a,-b", "-b", Kind::DashExclusion),
        ("web:!web3", ":!", Kind::AnsiblePattern),
        ("web:&db", ":&", Kind::AnsiblePattern),
        ("@web", "@web", Kind::Group),
        ("a,@web:db", "@web:db", Kind::Group),
        ("web1/sudo:root", "/sudo:root", Kind::Method),
        ("/etc/hosts", "/etc/hosts", Kind::Path),
        ("./hosts", "./hosts", Kind::Path),
        ("web1 web2", " ", Kind::Blank),
        ("root@", "root@", Kind::MissingHost),
        (":22", ":22", Kind::MissingHost),
        ("-l@web1", "-l@web1", Kind::DashExclusion),
        ("a;b@web1", "a;b", Kind::BadUser),
        ("ro[1-2]@web1", "ro[1-2]", Kind::BadUser),
        ("root@-web1", "-web1", Kind::BadCharacter('-')),
        ("web$(id)", "$", Kind::BadCharacter('$')),
        ("web\u{1b}[1]", "\u{1b}", Kind::BadCharacter('\u{1b}')),
        ("web1:", ":", Kind::BadPort),
        ("web1:0", ":0", Kind::BadPort),
        ("web1:65536", ":65536", Kind::BadPort),
        ("web1:+22", ":+22", Kind::BadPort),
        ("web1:db1", ":db1", Kind::BadPort),
        ("web1:22:33", "web1:22:33", Kind::NotAnAddress),
        ("[::1:22", "[", Kind::Unclosed),
        ("[1:2:3]", "1:2:3", Kind::NotAnAddress),
        ("[fe80::1%]", "fe80::1%", Kind::NotAnAddress),
        ("[::1]22", "22", Kind::AfterAddress),
        ("[::1]:x", ":x", Kind::BadPort),
        ("a:b:[1-3]", "a:b:[1-3]", Kind::NotAnAddress),
    ];
    for (text, marked, kind) in table {
        check_error(text, marked, kind);
    }
    check_error(&"a".repeat(256), &"a".repeat(256), Kind::NameTooLong);
    check(&"a".repeat(255), &[&"a".repeat(255)]);
}

#[test]
fn an_error_shows_the_place_with_carets() {
    let error = parse("db1,web[9-1]", &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "column 9: the range goes down\n  db1,web[9-1]\n          ^^^ write the smaller number first"
    );
    let long = format!("{},web[9-1]", "x".repeat(100));
    let text = parse(&long, &[]).unwrap_err().to_string();
    assert!(
        text.lines().all(|line| line.len() < 110) && text.contains("^^^"),
        "{text}"
    );
}

/// What `-w`, `-x` and one hosts file select.
fn check_select(
    select: &[&str],
    exclude: &[&str],
    file: Option<&[u8]>,
    config: &[&str],
    expected: Result<&[&str], &str>,
) {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let spec = TargetSpec {
        select: owned(select),
        exclude: owned(exclude),
        hosts: Vec::new(),
    };
    let files: Vec<HostsFile<'_>> = file
        .iter()
        .map(|bytes| HostsFile { label: "list", bytes })
        .collect();
    let found = super::select(&spec, &files, &owned(config));
    let found = found.map(|selection| {
        selection
            .targets
            .into_vec()
            .into_iter()
            .map(|target| target.text)
            .collect()
    });
    match (found, expected) {
        (Ok::<Vec<String>, _>(found), Ok(expected)) => assert_eq!(found, expected),
        (Err(error), Err(expected)) => assert_eq!(error.to_string().lines().next().unwrap(), expected),
        (found, expected) => panic!("{found:?} instead of {expected:?}"),
    }
}

#[test]
fn hosts_files_hold_a_target_or_expression_a_line() {
    let file = b"\xef\xbb\xbf# all\r\nweb[1-2]  # two\r\n\r\n  root@db1:2222\nweb#3".as_slice();
    check_select(
        &[],
        &[],
        Some(file),
        &[],
        Ok(&["web1", "web2", "root@db1:2222", "web#3"]),
    );
    check_select(
        &["*1"],
        &[],
        Some(file),
        &["db1", "x1"],
        Ok(&["web1", "root@db1:2222", "x1"]),
    );
    check_select(&["other"], &[], Some(file), &[], Ok(&["other"]));
    check_select(&[], &["web*"], Some(file), &[], Ok(&["root@db1:2222"]));
}

#[test]
fn errors_in_hosts_files_name_file_and_line() {
    check_select(
        &[],
        &[],
        Some(b"a\n\nweb[3-1]\n"),
        &[],
        Err("list:3: column 5: the range goes down"),
    );
    check_select(
        &[],
        &[],
        Some(b"a\nweb1 ansible_host=x\n"),
        &[],
        Err("list:2: column 5: blank in a target"),
    );
    check_select(
        &[],
        &[],
        Some(b"a\n\xff\n"),
        &[],
        Err("list:2: column 1: not UTF-8"),
    );
    check_select(&["[x]"], &[], None, &[], Err("-w: column 2: not a range"));
    check_select(
        &["a"],
        &["b*"],
        None,
        &[],
        Err("-x: column 1: the wildcard matches nothing"),
    );
}

#[test]
fn an_empty_set_is_an_error() {
    let empty = "no targets: the set is empty; name hosts with -w or --hosts";
    check_select(&[], &[], None, &[], Err(empty));
    check_select(&["a"], &["a"], None, &[], Err(empty));
    check_select(&[], &[], Some(b"# nothing\n"), &[], Err(empty));
    check_select(&["a!a"], &[], None, &[], Err(empty));
}

#[test]
fn exclusions_apply_last_and_cover_users_and_ports() {
    check_select(
        &["root@web[1-3]", "db1"],
        &["web[2-3]"],
        None,
        &[],
        Ok(&["root@web1", "db1"]),
    );
    check_select(
        &["web[1-12]"],
        &["web1*"],
        None,
        &[],
        Ok(&["web2", "web3", "web4", "web5", "web6", "web7", "web8", "web9"]),
    );
}

#[test]
fn an_exclusion_without_effect_is_reported() {
    let spec = TargetSpec {
        select: vec!["web07".into()],
        exclude: vec!["web7".into()],
        hosts: Vec::new(),
    };
    assert_eq!(super::select(&spec, &[], &[]).unwrap().idle_exclusions, ["web7"]);
}

#[test]
fn a_lone_name_with_a_digit_may_come_from_a_glob() {
    let suspect = |select: &[&str]| {
        let select = select.iter().map(|text| (*text).to_owned()).collect();
        TargetSpec {
            select,
            ..TargetSpec::default()
        }
        .glob_suspect()
        .map(str::to_owned)
    };
    assert_eq!(suspect(&["web1"]), Some("web1".into()));
    for harmless in [&["web"][..], &["web[1]"], &["web1,web2"], &["web1", "web2"], &[]] {
        assert_eq!(suspect(harmless), None, "{harmless:?}");
    }
    let text = TargetError::globbed("web12").to_string();
    assert!(text.contains("-w 'web1[2]'"), "{text}");
}

/// `text` folds to `expected`, which means the same set.
fn check_fold(text: &str, expected: &str) {
    let set = parse(text, &[]).unwrap();
    assert_eq!(fold(set.as_slice()), expected, "{text}");
    check_round_trip(&set);
}

fn check_round_trip(set: &TargetSet) {
    let folded = fold(set.as_slice());
    let again = parse(&folded, &[]).unwrap_or_else(|error| panic!("{folded}: {error}"));
    let sorted = |set: &TargetSet| {
        let mut texts: Vec<String> = set.as_slice().iter().map(|target| target.text.clone()).collect();
        texts.sort();
        texts
    };
    assert_eq!(sorted(&again), sorted(set), "{folded}");
}

#[test]
fn folding_keeps_padding_users_and_ports() {
    check_fold("web[01-19]", "web[01-19]");
    check_fold("web3,web1,web2,db1", "web[1-3],db1");
    check_fold("n[8-12]", "n[8-12]");
    check_fold("n[08-12]", "n[08-12]");
    check_fold("n08,n8,n9,n09,n10", "n[8-9,08-10]");
    check_fold("n[0-3]", "n[0-3]");
    check_fold("n1,n3,n5", "n[1,3,5]");
    check_fold("n5", "n5");
    check_fold("r[1-4]n[1-9]", "r[1-4]n[1-9]");
    check_fold("r1n[1-3],r2n[1-2]", "r1n[1-3],r2n[1-2]");
    check_fold("a[1-2]x7,a[1-2]y7", "a[1-2]x7,a[1-2]y7");
    check_fold("root@web[1-2],web[1-2]:22,web3", "root@web[1-2],web[1-2]:22,web3");
    check_fold("[::1]:22,::1,::2", "[::1]:22,::1,::2");
    check_fold("10.0.0.[1-3],10.0.1.1", "10.0.0.[1-3],10.0.1.1");
    check_fold("[1-3]:22", "[1-3]:22");
    check_fold("n1234567890123456789012", "n1234567890123456789012");
    check_fold("n12345678901234567890x[1-2]", "n12345678901234567890x[1-2]");
    assert_eq!(fold_names(["web1", "web2"]), "web[1-2]");
    assert_eq!(fold(&[]), "");
}

#[test]
fn folding_and_parsing_again_gives_the_same_set() {
    // A linear congruential generator (Knuth's MMIX constants): the same sets in each run.
    let mut state = 2026_u64;
    let mut random = move |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for _ in 0..2000 {
        let mut set = TargetSet::default();
        for _ in 0..=random(40) {
            let mut host = ["", "web", "r", "n-"][usize::try_from(random(4)).unwrap()].to_owned();
            for _ in 0..=random(2) {
                let width = usize::try_from(random(4)).unwrap();
                host += &format!(
                    "{:0width$}{}",
                    random(14),
                    ["", "x", "."][usize::try_from(random(3)).unwrap()]
                );
            }
            let user = (random(6) == 0).then(|| "root".to_owned());
            let port = (random(6) == 0).then_some(2222);
            set.insert(Target::new(user, host, port));
        }
        check_round_trip(&set);
    }
}

#[test]
fn large_sets_parse_and_fold_in_no_time() {
    let set = parse("r[1-200]n[1-500]!r[1-100]n[1-500]", &[]).unwrap();
    assert_eq!(set.len(), 50_000);
    assert_eq!(fold(set.as_slice()), "r[101-200]n[1-500]");
}
