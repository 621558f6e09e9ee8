//! What two answers to one question have to have in common: every keyword that is honoured, value for value.

use std::collections::BTreeMap;

use mux_ssh::config::{Effective, Origin};

/// What `ssh -G` or we say, by keyword.
pub(crate) type Values = BTreeMap<String, Vec<String>>;

/// Keywords of which one side has more to say: OpenSSH prints the defaults of those that only it has, and of lists its
/// own algorithms; newer versions than the installed one know `tag` and `channeltimeout`.
const ONLY_IF_WRITTEN: [&str; 5] = [
    "hostbasedacceptedalgorithms",
    "securitykeyprovider",
    "xauthlocation",
    "tag",
    "channeltimeout",
];

/// Lists of algorithms, of which this build has a part.
const LISTS: [&str; 6] = [
    "casignaturealgorithms",
    "kexalgorithms",
    "hostkeyalgorithms",
    "ciphers",
    "macs",
    "pubkeyacceptedalgorithms",
];

/// Keywords that may be missing on both sides; all others are in our answer.
const OPTIONAL: [&str; 19] = [
    "bindaddress",
    "bindinterface",
    "controlpath",
    "hostkeyalias",
    "identityagent",
    "ignoreunknown",
    "kbdinteractivedevices",
    "localcommand",
    "remotecommand",
    "pkcs11provider",
    "preferredauthentications",
    "revokedhostkeys",
    "knownhostscommand",
    "certificatefile",
    "sendenv",
    "setenv",
    "proxyjump",
    "proxycommand",
    "versionaddendum",
];

/// # Panics
/// The answers differ.
pub(crate) fn compare(ours: &[Effective], theirs: &Values, defaults: &[Effective], context: &str) {
    let names = ours.iter().map(|line| line.keyword).chain(OPTIONAL);
    let names: std::collections::BTreeSet<&str> = names.collect();
    for name in names {
        let lines = ours.iter().filter(|line| line.keyword == name);
        let values: Vec<&str> = lines.clone().map(|line| line.value.as_str()).collect();
        let written = lines.clone().any(|line| line.origin != Origin::Default);
        let expected: Vec<&str> = theirs
            .get(name)
            .map(|values| values.iter().map(String::as_str).collect())
            .unwrap_or_default();
        if LISTS.contains(&name) {
            compare_lists(name, &values, &expected, defaults, context);
        } else if written || !ONLY_IF_WRITTEN.contains(&name) {
            let expected = in_our_words(name, &values, expected, theirs);
            assert_eq!(values, expected, "{name} {context}");
        }
    }
}

/// Default keys of types that this program has nothing for, and that later releases look for no more.
const GONE: [&str; 2] = ["~/.ssh/id_xmss", "~/.ssh/id_dsa"];

fn in_our_words<'a>(name: &str, ours: &[&'a str], expected: Vec<&'a str>, theirs: &Values) -> Vec<&'a str> {
    let in_batch = theirs.get("batchmode").is_some_and(|values| values == &["yes"]);
    match (name, ours, expected.as_slice()) {
        ("identityfile", ..) => expected.into_iter().filter(|file| !GONE.contains(file)).collect(),
        // A default of Debian's.
        ("serveraliveinterval", ["0"], ["300"]) if in_batch => vec!["0"],
        // Nothing, for `none`.
        ("versionaddendum", [], [""]) => Vec::new(),
        // `ssh` takes the question back where nobody would be there to answer it.
        ("updatehostkeys", ["ask"], ["false"]) => vec!["ask"],
        _ => expected,
    }
}

/// What is left of theirs without what this build lacks is ours; in which order only a list that stands by itself says.
fn compare_lists(name: &str, ours: &[&str], theirs: &[&str], defaults: &[Effective], context: &str) {
    let split = |lines: &[&str]| -> Vec<String> {
        let names = lines.iter().flat_map(|line| line.split(','));
        names.map(str::to_owned).collect()
    };
    let known: Vec<String> = {
        let lines = defaults.iter().filter(|line| line.keyword == name);
        split(&lines.map(|line| line.value.as_str()).collect::<Vec<_>>())
    };
    let theirs: Vec<String> = split(theirs);
    let common: std::collections::BTreeSet<&String> =
        theirs.iter().filter(|name| known.contains(name)).collect();
    let names = split(ours);
    // Names that the installed ssh does not have yet can't be compared.
    let found: std::collections::BTreeSet<&String> = names
        .iter()
        .filter(|name| theirs.contains(name) || !name.starts_with("mlkem"))
        .collect();
    // A list that leaves nothing of ours is shown as it was written, and fails when it is used.
    if !common.is_empty() {
        assert_eq!(found, common, "{name} {context}");
    }
}
