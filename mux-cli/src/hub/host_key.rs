//! Whether a server's key is good enough, and what a person is told if it is not. Never reads or writes known_hosts.

use mux_ssh::config::HostKeyPolicy;
use mux_ssh::keys::PublicKey;
use mux_ssh::known_hosts::{HostId, Mismatch, Verdict};

/// What follows from a verdict of known_hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Go on.
    Accept,
    /// Go on once the key was written down.
    Learn,
    /// Close, for this reason.
    Refuse(String),
}

/// Where the keys of a host are kept, for messages that say how to change it.
#[derive(Clone, Copy, Debug)]
pub struct KeptIn<'a> {
    /// The file to which new keys go.
    pub file: &'a str,
    /// Whether that is the one that `ssh-keygen` takes if no other is named.
    pub is_default: bool,
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
        (Verdict::Unknown { .. }, HostKeyPolicy::AcceptNew) => Decision::Learn,
        (Verdict::Revoked(place), _) => {
            let sent = sent();
            Decision::Refuse(format!("host key revoked ({place} names {sent})"))
        }
        (Verdict::Changed(others), _) => Decision::Refuse(changed(host, others, &sent(), kept)),
        // A host whose keys are not to be checked at all does not get here yet.
        (Verdict::Unknown { authority }, HostKeyPolicy::Strict | HostKeyPolicy::Ask | HostKeyPolicy::Off) => {
            let mut text = format!("host key not known ({} {})", key.algorithm(), sent());
            if let Some(place) = authority {
                text.push_str(&format!(
                    "; the certificate authority of {place} can't be used yet"
                ));
            }
            text.push_str(
                "; to take it as it is: -o StrictHostKeyChecking=accept-new; to look first: ssh-keyscan ",
            );
            text.push_str(&scan_arguments(host));
            Decision::Refuse(text)
        }
    }
}

fn changed(host: &HostId, others: &[Mismatch], sent: &str, kept: KeptIn<'_>) -> String {
    let known: Vec<String> = others
        .iter()
        .map(|other| format!("{} has {}", other.place, other.fingerprint))
        .collect();
    let file = if kept.is_default {
        String::new()
    } else {
        format!(" -f {}", kept.file)
    };
    let name = quoted(host.name());
    let known = known.join(", ");
    format!("host key changed ({known}, server sent {sent}); if you expect this: ssh-keygen -R {name}{file}")
}

/// `[host]:port` means a glob to a shell.
fn quoted(name: &str) -> String {
    if name.starts_with('[') {
        format!("'{name}'")
    } else {
        name.to_owned()
    }
}

fn scan_arguments(host: &HostId) -> String {
    let parts = host
        .name()
        .strip_prefix('[')
        .and_then(|rest| rest.rsplit_once("]:"));
    parts.map_or_else(
        || host.name().to_owned(),
        |(name, port)| format!("-p {port} {name}"),
    )
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
                file: "known_hosts",
                is_default: true,
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
        assert!(text.ends_with("ssh-keyscan -p 2222 web07"), "{text}");
    }
}
