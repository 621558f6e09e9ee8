//! Whether a server's key is good enough, and what a person is told if it is not. Never reads or writes known_hosts.

use mux_ssh::Printable;
use mux_ssh::algorithms::KeyType;
use mux_ssh::config::HostKeyPolicy;
use mux_ssh::keys::PublicKey;
use mux_ssh::known_hosts::{HostId, Mismatch, Place, Verdict};

/// What follows from a verdict of known_hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Go on.
    Accept,
    /// Go on once the key was written down.
    Learn,
    /// Somebody is to say whether it is the right one, and then as with [`Learn`](Self::Learn).
    Ask {
        /// Why to close, where nobody can be asked.
        refusal: String,
    },
    /// Go on for all that, after this warning, but give the host nothing that it could use against us.
    Distrust(String),
    /// Close, for this reason.
    Refuse(String),
}

/// Whose key is judged, and where it is kept: for messages that say what to do.
#[derive(Clone, Copy, Debug)]
pub struct KeptIn<'a> {
    /// The target as it was asked for.
    pub target: &'a str,
    /// The file that `ssh-keygen` takes if no other is named.
    pub default_file: &'a str,
}

/// Decides about `key`, which `host` proved to have.
#[must_use]
pub fn judge(
    host: &HostId,
    policy: HostKeyPolicy,
    verdict: &Verdict,
    key: &PublicKey,
    kept: KeptIn<'_>,
) -> Decision {
    let sent = || key.fingerprint_sha256();
    match (verdict, policy) {
        (Verdict::Known(_), _) => Decision::Accept,
        (Verdict::Unknown { .. }, HostKeyPolicy::AcceptNew | HostKeyPolicy::Off) => Decision::Learn,
        (Verdict::Revoked(place), _) => {
            let sent = sent();
            Decision::Refuse(format!("host key revoked ({place} names {sent})"))
        }
        (Verdict::Unknown { authority }, HostKeyPolicy::Strict) => {
            Decision::Refuse(unknown(authority.as_ref(), key, kept))
        }
        (Verdict::Unknown { authority }, HostKeyPolicy::Ask) => Decision::Ask {
            refusal: unknown(authority.as_ref(), key, kept),
        },
        (Verdict::Changed(others), _) => changed(host, policy, others, key, kept),
    }
}

fn unknown(authority: Option<&Place>, key: &PublicKey, kept: KeptIn<'_>) -> String {
    let (algorithm, sent) = (key.algorithm(), key.fingerprint_sha256());
    let authority = authority
        .map(|place| format!("; no certificate by the authority of {place} vouches for it"))
        .unwrap_or_default();
    let target = quoted(kept.target);
    format!(
        "host key not known ({algorithm} {sent}){authority}; to look at it and keep it: mux hosts learn {target}; \
         to take it as it is: -o StrictHostKeyChecking=accept-new"
    )
}

/// A key of another type than all that are known is a changed key too, as for ssh: whoever is in the way can choose the
/// type, and would otherwise be taken for a host that is known.
fn changed(
    host: &HostId,
    policy: HostKeyPolicy,
    others: &[Mismatch],
    key: &PublicKey,
    kept: KeptIn<'_>,
) -> Decision {
    let sent = key.fingerprint_sha256();
    let of_other_types = others.iter().all(|other| other.key_type != Some(key.key_type()));
    // Keys of other types say nothing about this one, if there is one of its type.
    let of_its_type = |other: &&Mismatch| of_other_types || other.key_type == Some(key.key_type());
    let known: Vec<String> = others
        .iter()
        .filter(of_its_type)
        .map(|other| {
            let of = other
                .key_type
                .filter(|_| of_other_types)
                .map_or("", KeyType::name);
            let space = if of.is_empty() { "" } else { " " };
            format!("{} has {of}{space}{}", other.place, other.fingerprint)
        })
        .collect();
    let known = known.join(", ");
    let by_this_run = others.iter().all(|other| other.place.line == 0);
    let (what, of) = match of_other_types {
        true => (
            "host known by keys of other types only, none of which it shows",
            format!("{} ", key.algorithm()),
        ),
        false => ("host key changed", String::new()),
    };
    let text = format!("{what} ({known}, server sent {of}{sent})");
    let advice = match by_this_run {
        // To forget the one would only make room for the other.
        true => format!(
            "; another target of this run has the same name in known_hosts, {}, and that key",
            Printable::new(host.name())
        ),
        false => format!("; if you expect this: {}", removal(host, others, kept)),
    };
    match policy {
        HostKeyPolicy::Off => Decision::Distrust(format!(
            "{text}; connecting all the same, without passwords, answers to questions and agent forwarding{advice}"
        )),
        HostKeyPolicy::Ask | HostKeyPolicy::Strict | HostKeyPolicy::AcceptNew => {
            Decision::Refuse(text + &advice)
        }
    }
}

/// How to forget these keys: a command for each file, but none that would forget those of other hosts under one pattern.
fn removal(host: &HostId, others: &[Mismatch], kept: KeptIn<'_>) -> String {
    let name = quoted(host.name());
    let mut steps: Vec<String> = Vec::new();
    for Mismatch {
        place, by_pattern, ..
    } in others
    {
        let step = match &*place.file {
            // No file has such a name: they are all named by their whole path.
            "KnownHostsCommand" => "mend what KnownHostsCommand prints".to_owned(),
            _ if *by_pattern => format!("mend {place}"),
            file if file == kept.default_file => format!("ssh-keygen -R {name}"),
            file => format!("ssh-keygen -R {name} -f {}", Printable::new(file)),
        };
        if !steps.contains(&step) {
            steps.push(step);
        }
    }
    steps.join("; ")
}

/// `[host]:port` means a glob to a shell.
pub(super) fn quoted(name: &str) -> String {
    if name.contains('[') {
        format!("'{name}'")
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use mux_ssh::known_hosts::{KnownHosts, Memo};

    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti";
    const OTHER: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";

    /// Judges [`KEY`] of `web07` on `port` against a file with one `line`.
    fn check(line: &str, port: u16, policy: HostKeyPolicy) -> Decision {
        let host = HostId::new("web07", port);
        let key = PublicKey::parse_line(KEY).unwrap().key;
        let known = KnownHosts::parse([("known_hosts", line.as_bytes())]);
        let verdict = known.lookup(&mut Memo::default(), &host, &key);
        judge(
            &host,
            policy,
            &verdict,
            &key,
            KeptIn {
                target: "web07",
                default_file: "known_hosts",
            },
        )
    }

    fn refused(decision: Decision) -> String {
        let Decision::Refuse(text) = decision else {
            unreachable!("not refused: {decision:?}")
        };
        text
    }

    #[test]
    fn a_known_key_is_accepted() {
        assert_eq!(
            check(&format!("web07 {KEY}\n"), 22, HostKeyPolicy::Strict),
            Decision::Accept
        );
    }

    #[test]
    fn a_changed_key_is_refused_under_every_policy_and_names_both_fingerprints() {
        for policy in [HostKeyPolicy::Strict, HostKeyPolicy::AcceptNew] {
            let text = refused(check(&format!("# a comment\nweb07 {OTHER}\n"), 22, policy));
            assert!(
                text.starts_with("host key changed (known_hosts:2 has SHA256:"),
                "{text}"
            );
            assert!(
                text.ends_with("; if you expect this: ssh-keygen -R web07"),
                "{text}"
            );
            let sent = PublicKey::parse_line(KEY).unwrap().key.fingerprint_sha256();
            assert!(text.contains(&format!(", server sent {sent})")), "{text}");
        }
    }

    #[test]
    fn a_changed_key_names_those_of_its_type_and_what_to_do_with_each_line() {
        const ECDSA: &str = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTY=";
        let lines = format!("web07 {ECDSA}\nweb07 {OTHER}\nweb0* {OTHER}\n");
        let text = refused(check(&lines, 22, HostKeyPolicy::Strict));
        assert!(
            text.starts_with("host key changed (known_hosts:2 has SHA256:")
                && text.contains(", known_hosts:3 has SHA256:")
                && !text.contains("known_hosts:1"),
            "{text}"
        );
        assert!(
            text.ends_with("; if you expect this: ssh-keygen -R web07; mend known_hosts:3"),
            "{text}"
        );
    }

    #[test]
    fn a_revoked_key_is_refused_although_it_is_known() {
        let lines = format!("web07 {KEY}\n@revoked * {KEY}\n");
        let text = refused(check(&lines, 22, HostKeyPolicy::AcceptNew));
        assert!(text.starts_with("host key revoked (known_hosts:2 "), "{text}");
    }

    #[test]
    fn an_unknown_key_is_learned_or_explained() {
        assert_eq!(check("", 22, HostKeyPolicy::AcceptNew), Decision::Learn);
        let text = refused(check("", 2222, HostKeyPolicy::Strict));
        assert!(text.contains("accept-new"), "{text}");
        assert!(
            text.contains("; to look at it and keep it: mux hosts learn web07; "),
            "{text}"
        );
    }
}
