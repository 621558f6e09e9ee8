//! Lines of a known_hosts file that are taken away. Decides which lines are those of a host and a key, as far as a program
//! has written them; what a person has arranged (several names, patterns, markers) stays. Never writes a file.

use super::HostId;
use super::entry;
use super::hashed::HashedName;
use crate::keys::PublicKey;

/// `content` without the lines by which `host` is known by `key`; `None` if there are none.
#[must_use]
pub fn without_key(content: &[u8], host: &HostId, key: &PublicKey) -> Option<Vec<u8>> {
    let lines = content.split_inclusive(|&byte| byte == b'\n');
    let kept: Vec<&[u8]> = lines.filter(|line| !is_line_of(line, host, key)).collect();
    let kept = kept.concat();
    (kept.len() != content.len()).then_some(kept)
}

fn is_line_of(line: &[u8], host: &HostId, key: &PublicKey) -> bool {
    let mut fields = line
        .split(u8::is_ascii_whitespace)
        .filter(|field| !field.is_empty());
    let (Some(name), Some(type_name), Some(base64)) = (fields.next(), fields.next(), fields.next()) else {
        return false;
    };
    let is_key = || entry::key(type_name, base64).is_ok_and(|(_, blob)| *blob == *key.blob());
    let is_name = || match HashedName::parse(name, 0) {
        Some(hashed) => hashed.is_of(host.name()),
        None => name.eq_ignore_ascii_case(host.name().as_bytes()),
    };
    is_key() && is_name()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::known_hosts::format_entry;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti";
    const OTHER: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";

    /// What is left of a file if `web1` is not known by [`KEY`] any more.
    fn check(content: &str, left: Option<&str>) {
        let texts = |text: &str| text.replace("KEY", KEY).replace("OTHER", OTHER);
        let key = PublicKey::parse_line(KEY).unwrap().key;
        let without = without_key(texts(content).as_bytes(), &HostId::new("web1", 22), &key);
        assert_eq!(
            without.map(|left| String::from_utf8(left).unwrap()),
            left.map(texts)
        );
    }

    #[test]
    fn the_line_of_the_host_and_the_key_goes_and_all_others_stay_byte_for_byte() {
        check(
            "# mine\r\nweb1 KEY\nweb1 OTHER\n\tweb2  KEY\nWEB1\tKEY a comment\r\nodd",
            Some("# mine\r\nweb1 OTHER\n\tweb2  KEY\nodd"),
        );
        check("web1 KEY", Some(""));
        let hashed = |name: &str| {
            let key = PublicKey::parse_line(KEY).unwrap().key;
            format_entry(&HostId::new(name, 22), &key, true).unwrap()
        };
        let other = hashed("web2");
        check(&(hashed("web1") + &other), Some(&other));
    }

    #[test]
    fn what_somebody_has_arranged_stays() {
        check("web1 OTHER\nweb2 KEY\n[web1]:2222 KEY\n", None);
        check(
            "web1,web2 KEY\nweb* KEY\n@revoked web1 KEY\n@cert-authority web1 KEY\n#web1 KEY\n",
            None,
        );
    }
}
