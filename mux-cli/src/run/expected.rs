//! The host keys that somebody expects: a file of known_hosts lines, or of names and fingerprints. Decides whether a key
//! is the expected one; never whether it is written down.

use std::collections::HashMap;

use mux_ssh::Printable;
use mux_ssh::algorithms::KeyType;
use mux_ssh::keys::PublicKey;
use mux_ssh::known_hosts::{HostId, KnownHosts, Memo, Verdict};

use crate::targets::{TargetSpec, select};

/// How OpenSSH writes fingerprints, and the only kind that is not out of date.
const PRINT: &str = "SHA256:";

/// A fingerprint, and where it stands.
#[derive(Debug)]
struct Print {
    line: usize,
    text: String,
    key_type: Option<KeyType>,
}

/// What is wrong with a key.
#[derive(Debug)]
pub(crate) struct Objection {
    pub(crate) reason: String,
    /// Another key of its type was expected, or it was revoked; otherwise the file may only be about keys of other types.
    pub(crate) is_of_its_type: bool,
}

/// What a file says.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    label: String,
    keys: KnownHosts,
    memo: Memo,
    prints: HashMap<String, Vec<Print>>,
}

impl Expected {
    /// Understands a file; `label` is its name in messages.
    ///
    /// # Errors
    /// A line that says nothing: what was to be checked against it would not be.
    pub(crate) fn parse(label: &str, content: &[u8]) -> Result<Self, String> {
        let mut expected = Self {
            label: Printable::new(label).to_string(),
            ..Self::default()
        };
        // Fingerprints become empty lines, so that all others keep their numbers.
        let mut lines = Vec::new();
        for (number, line) in (1..).zip(String::from_utf8_lossy(content).lines()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let is_comment = words.first().is_some_and(|word| word.starts_with('#'));
            match words.iter().find(|word| word.starts_with(PRINT)) {
                Some(print) if !is_comment => expected
                    .add(number, &words, print)
                    .map_err(|why| format!("{}:{number}: {why}", expected.label))?,
                Some(_) | None => lines.extend_from_slice(line.as_bytes()),
            }
            lines.push(b'\n');
        }
        expected.keys = KnownHosts::parse([(label, lines.as_slice())]);
        match expected.keys.warnings().first() {
            Some(warning) => Err(format!(
                "{}: {}; write a line of known_hosts, or names and a {PRINT} fingerprint",
                warning.place, warning.why
            )),
            None => Ok(expected),
        }
    }

    /// `NAMES[:] [TYPE] SHA256:…`, or `BITS SHA256:… NAME (TYPE)` as `ssh-keygen -l` prints it.
    fn add(&mut self, line: usize, words: &[&str], print: &str) -> Result<(), String> {
        let no_name = || "no host before the fingerprint".to_owned();
        let first = words.first().ok_or_else(no_name)?;
        let listed = first.bytes().all(|byte| byte.is_ascii_digit()) && words.get(1) == Some(&print);
        let names = match (listed, words.get(2)) {
            (true, Some(name)) if !name.contains('@') && !name.starts_with('(') => name,
            (true, _) => return Err(no_name()),
            (false, _) if *first == print => return Err(no_name()),
            (false, _) => first.trim_end_matches(':'),
        };
        let key_type = words.iter().find_map(|word| KeyType::from_name(word));
        for name in hosts(names)? {
            self.prints.entry(name).or_default().push(Print {
                line,
                text: print.trim_end_matches('=').to_owned(),
                key_type,
            });
        }
        Ok(())
    }

    /// What is wrong with `key`, shown by a host of these names and filed as `host`.
    pub(crate) fn objection(
        &mut self,
        names: &[String],
        host: &HostId,
        key: &PublicKey,
    ) -> Option<Objection> {
        let sent = key.fingerprint_sha256();
        let prints: Vec<&Print> = names
            .iter()
            .filter_map(|name| self.prints.get(name))
            .flatten()
            .collect();
        if prints.iter().any(|print| print.text == sent) {
            return None;
        }
        let verdict = self.keys.lookup(&mut self.memo, host, key);
        let label = &self.label;
        let mut is_of_its_type = prints.iter().any(|print| print.key_type == Some(key.key_type()));
        let others: Vec<String> = match verdict {
            Verdict::Known(_) => return None,
            Verdict::Revoked(place) => {
                return Some(Objection {
                    reason: format!("host key revoked ({place} names {sent})"),
                    is_of_its_type: true,
                });
            }
            Verdict::Changed(others) => {
                is_of_its_type |= others.iter().any(|other| other.key_type == Some(key.key_type()));
                let others = others.iter();
                others
                    .map(|other| format!("{} has {}", other.place, other.fingerprint))
                    .collect()
            }
            Verdict::Unknown { .. } => Vec::new(),
        };
        let prints = prints
            .iter()
            .map(|print| format!("{label}:{} has {}", print.line, print.text));
        let others: Vec<String> = others.into_iter().chain(prints).collect();
        let algorithm = key.algorithm();
        let reason = match others.is_empty() {
            true => format!(
                "host key not written: {label} says nothing about the host, which sent {algorithm} {sent}"
            ),
            false => format!(
                "host key not written: not the one that was expected ({}, server sent {algorithm} {sent})",
                others.join(", ")
            ),
        };
        Some(Objection {
            reason,
            is_of_its_type,
        })
    }

    /// Of which types the keys of such a host are expected to be, so that it is asked for them.
    pub(crate) fn key_types(&mut self, names: &[String], host: &HostId) -> Vec<KeyType> {
        let prints = names.iter().filter_map(|name| self.prints.get(name)).flatten();
        let mut types: Vec<KeyType> = prints.filter_map(|print| print.key_type).collect();
        types.extend(self.keys.key_types(&mut self.memo, host).types);
        types
    }
}

/// The names under which what is said of `names` is looked up.
fn hosts(names: &str) -> Result<Vec<String>, String> {
    // As known_hosts has it, and no range.
    if names.starts_with('[') && names.contains("]:") {
        return Ok(names.split(',').map(str::to_ascii_lowercase).collect());
    }
    let spec = TargetSpec {
        select: vec![names.to_owned()],
        ..TargetSpec::default()
    };
    let selection = select(&spec, &[], &[]).map_err(|error| error.to_string())?;
    let targets = selection.targets.into_vec().into_iter();
    let filed = targets.map(|target| match target.port {
        Some(port) => HostId::new(&target.host, port).name().to_owned(),
        None => target.host.to_ascii_lowercase(),
    });
    Ok(filed.collect())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti";
    const OTHER: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";

    fn print(key: &str) -> String {
        PublicKey::parse_line(key).unwrap().key.fingerprint_sha256()
    }

    /// What a file with this text says to [`KEY`] as the key of `web07` on port 2222.
    fn check(text: &str) -> Option<String> {
        let mut expected = Expected::parse("keys", text.as_bytes()).unwrap();
        let host = HostId::new("web07", 2222);
        let names = ["web07".to_owned(), host.name().to_owned()];
        let key = PublicKey::parse_line(KEY).unwrap().key;
        expected
            .objection(&names, &host, &key)
            .map(|objection| objection.reason)
    }

    #[test]
    fn a_key_is_right_by_its_line_or_its_fingerprint_in_every_form_that_tools_print() {
        let print = print(KEY);
        for text in [
            format!("web07 {KEY}"),
            format!("[web07]:2222 {KEY}\n"),
            format!("# a comment\nweb[01-20]: ssh-ed25519 {print}\n"),
            format!("web07 {print}"),
            format!("WEB07:2222 {print}= learned"),
            format!("[web07]:2222 {print}"),
            format!("256 {print} web07 (ED25519)"),
            format!("256 {print} [web07]:2222 (ED25519)"),
        ] {
            assert_eq!(check(&text), None, "{text}");
        }
    }

    #[test]
    fn a_wrong_key_is_named_with_the_line_that_says_so() {
        let (sent, other) = (print(KEY), print(OTHER));
        for text in [
            format!("\nweb07 {OTHER}"),
            format!("\nweb07: ssh-ed25519 {other}"),
        ] {
            let host = "[web07]:2222".to_owned();
            let text = text.replace("web07", &host);
            assert_eq!(
                check(&text).unwrap(),
                format!(
                    "host key not written: not the one that was expected (keys:2 has {other}, server sent ssh-ed25519 {sent})"
                )
            );
        }
        assert_eq!(
            check(&format!("web08 {KEY}")).unwrap(),
            format!("host key not written: keys says nothing about the host, which sent ssh-ed25519 {sent}")
        );
        assert!(
            check(&format!("@revoked * {KEY}"))
                .unwrap()
                .starts_with("host key revoked (keys:1 ")
        );
    }

    #[test]
    fn a_line_that_says_nothing_is_an_error() {
        let print = print(KEY);
        for (line, why) in [
            ("web07 ssh-ed25519", "names, type and key expected"),
            ("web07 MD5:00:11:22", "names, type and key expected"),
            (print.as_str(), "no host before the fingerprint"),
            (
                &format!("256 {print} root@web07 (ED25519)"),
                "no host before the fingerprint",
            ),
            (&format!("web[01-3] {print}"), "web[01-3]"),
        ] {
            let error = Expected::parse("keys", format!("\n{line}\n").as_bytes()).unwrap_err();
            assert!(error.starts_with("keys:2: ") && error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_host_is_asked_for_the_type_of_key_that_is_expected() {
        let text = format!("web07: ecdsa-sha2-nistp256 {}\nweb08 {KEY}\n", print(KEY));
        let mut expected = Expected::parse("keys", text.as_bytes()).unwrap();
        let mut types = |name: &str| expected.key_types(&[name.to_owned()], &HostId::new(name, 22));
        assert_eq!(types("web07"), [KeyType::EcdsaNistp256]);
        assert_eq!(types("web08"), [KeyType::Ed25519]);
        assert_eq!(types("web09"), []);
    }
}
