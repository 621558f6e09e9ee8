//! A record for systemd's journal, in its native protocol (<https://systemd.io/JOURNAL_NATIVE_PROTOCOL/>): fields, one
//! of them for each thing that somebody may want to look for. Bytes only.

use super::record::{MAX_COMMAND, MAX_TARGETS, Record};
use super::syslog;

/// Names of the two kinds of record, for `journalctl MESSAGE_ID=`: numbers that were drawn once.
const BEGIN_ID: &str = "5c2a8f3e7d1946b0a4e85b1f0c936d27";
const END_ID: &str = "b81d4f6690ce4a3f8e27c5da13f07b94";

/// The datagram.
pub(super) fn encode(record: &Record<'_>) -> Vec<u8> {
    let run = record.run;
    let mut out = Vec::new();
    add(&mut out, "MESSAGE", record.line());
    let id = match record.end {
        None => BEGIN_ID,
        Some(_) => END_ID,
    };
    add(&mut out, "MESSAGE_ID", id);
    add(&mut out, "PRIORITY", syslog::NOTICE.to_string());
    add(&mut out, "SYSLOG_FACILITY", syslog::AUTHPRIV.to_string());
    add(&mut out, "SYSLOG_IDENTIFIER", syslog::TAG);
    add(&mut out, "SYSLOG_PID", run.pid.to_string());
    add(&mut out, "MUX_EVENT", record.event());
    add(&mut out, "MUX_RUN", &run.id);
    add(&mut out, "MUX_LOGIN_UID", run.shown_login_uid());
    add(&mut out, "MUX_UID", run.uid.to_string());
    if let Some((ending, took)) = record.end {
        add(&mut out, "MUX_STATUS", ending.status.to_string());
        if let Some(cut) = ending.cut {
            add(&mut out, "MUX_CUT", cut);
        }
        for (status, count) in &ending.counts {
            let name = format!("MUX_{}", status.name().to_ascii_uppercase());
            add(&mut out, &name, count.to_string());
        }
        add(&mut out, "MUX_USEC", took.as_micros().to_string());
    }
    add(&mut out, "MUX_HOSTS", run.hosts.to_string());
    add_long(&mut out, "MUX_TARGETS", run.targets.as_bytes(), MAX_TARGETS);
    add_long(&mut out, "MUX_COMMAND", &run.command, MAX_COMMAND);
    out
}

/// One field. A value with a line feed has its length in front of it (64 bits, little-endian).
fn add(out: &mut Vec<u8>, name: &str, value: impl AsRef<[u8]>) {
    let value = value.as_ref();
    out.extend_from_slice(name.as_bytes());
    if value.contains(&b'\n') {
        out.push(b'\n');
        out.extend_from_slice(&(value.len() as u64).to_le_bytes());
    } else {
        out.push(b'=');
    }
    out.extend_from_slice(value);
    out.push(b'\n');
}

/// One that may have to be cut; then a second one says how long it is.
fn add_long(out: &mut Vec<u8>, name: &str, value: &[u8], limit: usize) {
    match value.get(..limit).filter(|_| value.len() > limit) {
        None => add(out, name, value),
        Some(beginning) => {
            add(out, name, beginning);
            add(out, &format!("{name}_BYTES"), value.len().to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::{ending, run};
    use super::*;

    fn check(record: &Record<'_>, text: &str) {
        assert_eq!(String::from_utf8_lossy(&encode(record)), text);
    }

    #[test]
    fn the_second_record_has_a_field_for_each_thing() {
        let (ending, took) = ending();
        check(
            &Record {
                run: &run(b"uptime"),
                end: Some((&ending, took)),
            },
            "MESSAGE=end run=0123456789abcdef login_uid=1000 uid=0 status=143 cut=TERM ok=1 cancelled=2 seconds=1.500 \
             hosts=3 targets=\"web[1-3]\" command=\"uptime\"\n\
             MESSAGE_ID=b81d4f6690ce4a3f8e27c5da13f07b94\nPRIORITY=5\nSYSLOG_FACILITY=10\nSYSLOG_IDENTIFIER=mux\n\
             SYSLOG_PID=42\nMUX_EVENT=end\nMUX_RUN=0123456789abcdef\nMUX_LOGIN_UID=1000\nMUX_UID=0\nMUX_STATUS=143\n\
             MUX_CUT=TERM\nMUX_OK=1\nMUX_CANCELLED=2\nMUX_USEC=1500000\nMUX_HOSTS=3\nMUX_TARGETS=web[1-3]\n\
             MUX_COMMAND=uptime\n",
        );
    }

    #[test]
    fn a_command_of_several_lines_is_kept_byte_for_byte() {
        let encoded = encode(&Record {
            run: &run(b"a\nMUX_UID=7\xff"),
            end: None,
        });
        let field = b"\nMUX_COMMAND\n\x0c\0\0\0\0\0\0\0a\nMUX_UID=7\xff\n";
        assert!(encoded.ends_with(field), "{}", encoded.escape_ascii());
    }

    #[test]
    fn what_is_too_long_is_cut_and_its_length_said() {
        let mut run = run(&[b'c'; MAX_COMMAND + 1]);
        run.targets = "t".repeat(MAX_TARGETS + 1);
        let encoded = encode(&Record { run: &run, end: None });
        let text = String::from_utf8_lossy(&encoded);
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        assert_eq!(field("MUX_COMMAND=").map(str::len), Some(MAX_COMMAND));
        assert_eq!(field("MUX_COMMAND_BYTES="), Some("65537"));
        assert_eq!(field("MUX_TARGETS=").map(str::len), Some(MAX_TARGETS));
        assert_eq!(field("MUX_TARGETS_BYTES="), Some("32769"));
    }
}
