//! One stop of a `ProxyJump`: `[user@]host[:port]` or `ssh://[user@]host[:port]`. Decides what is one, as OpenSSH
//! does; never where it leads.

use super::choice::JumpHost;
use super::finish::{is_host_name, is_user_name};
use super::value;

/// What one stop says; `None` if it is wrong.
pub(super) fn host(text: &str) -> Option<JumpHost> {
    let (user, rest) = match text.strip_prefix("ssh://") {
        Some(uri) => match uri.split_once('@') {
            // Parameters of the connection may follow the user; OpenSSH passes over them.
            Some((user, rest)) => {
                let user = user.split_once(';').map_or(user, |(user, _)| user);
                (Some(decoded(user)?), rest.trim_end_matches('/'))
            }
            None => (None, uri.trim_end_matches('/')),
        },
        None => match text.rsplit_once('@') {
            Some((user, rest)) => (Some(user.to_owned()), rest),
            None => (None, text),
        },
    };
    let (host, port) = host_and_port(rest)?;
    let plausible = is_host_name(host) && user.as_deref().is_none_or(is_user_name);
    plausible.then(|| JumpHost {
        user,
        host: host.to_owned(),
        port,
    })
}

/// Takes brackets away; a port may be left out, also behind its colon.
fn host_and_port(text: &str) -> Option<(&str, Option<u16>)> {
    let (host, rest) = match text.strip_prefix('[') {
        Some(open) => open.split_once(']')?,
        None => text.split_at(text.find([':', '/']).unwrap_or(text.len())),
    };
    let port = match rest {
        "" => "",
        rest => rest.strip_prefix([':', '/'])?,
    };
    if port.is_empty() {
        return Some((host, None));
    }
    let port = value::digits(port).and_then(|number| u16::try_from(number).ok());
    Some((host, Some(port.filter(|&port| port != 0)?)))
}

/// Undoes percent-encoding (RFC 3986 §2.1).
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, encoded)) = rest.split_once('%') {
        bytes.extend_from_slice(plain.as_bytes());
        let (digits, tail) = encoded.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok().filter(|&byte| byte != 0)?);
        rest = tail;
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(Option<&str>, &str, Option<u16>)>) {
        let expected = expected.map(|(user, host, port)| JumpHost {
            user: user.map(str::to_owned),
            host: host.to_owned(),
            port,
        });
        assert_eq!(host(text), expected, "{text}");
    }

    #[test]
    fn stops_are_read_as_openssh_reads_them() {
        check("bastion", Some((None, "bastion", None)));
        check("joe@bastion:2222", Some((Some("joe"), "bastion", Some(2222))));
        check("joe@corp@bastion", Some((Some("joe@corp"), "bastion", None)));
        check("[2001:db8::1]:22", Some((None, "2001:db8::1", Some(22))));
        check("[::1]", Some((None, "::1", None)));
        check("bastion:", Some((None, "bastion", None)));
        check("%r@%h.example.org", Some((Some("%r"), "%h.example.org", None)));
        check(
            "ssh://j%20d@bastion:22/",
            Some((Some("j d"), "bastion", Some(22))),
        );
        check("ssh://joe;fingerprint=x@[::1]", Some((Some("joe"), "::1", None)));
    }

    #[test]
    fn what_is_no_stop_is_refused() {
        for text in [
            "",
            "@bastion",
            "joe@",
            "::1",
            "[::1",
            "[::1]x",
            "bastion:0",
            "bastion:65536",
            "bastion:ssh:22",
            "-oProxyCommand=x",
            "a;b",
            "-l@bastion",
            "ssh://bastion/path",
            "ssh://j%0@bastion",
        ] {
            check(text, None);
        }
    }
}
