//! A record for the local syslog: the form that syslog(3) writes to its socket, without the time, which the daemons that
//! listen there take from their own clock, as RFC 3164, section 4.3.2, has it for lines without one. Bytes only.

use super::record::Record;

/// Security messages that not everybody may read (RFC 5424, table 1; `LOG_AUTHPRIV`): what sudo logs to.
pub(super) const AUTHPRIV: u8 = 10;
/// Normal but significant (RFC 5424, table 2).
pub(super) const NOTICE: u8 = 5;
/// The program.
pub(super) const TAG: &str = "mux";

/// The datagram.
pub(super) fn encode(record: &Record<'_>) -> Vec<u8> {
    let priority = AUTHPRIV * 8 + NOTICE;
    format!("<{priority}>{TAG}[{}]: {}", record.run.pid, record.line()).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::run;
    use super::*;

    #[test]
    fn a_line_has_its_priority_and_its_program() {
        let run = run(b"uptime");
        let encoded = encode(&Record { run: &run, end: None });
        assert_eq!(
            String::from_utf8_lossy(&encoded),
            "<85>mux[42]: begin run=0123456789abcdef login_uid=1000 uid=0 hosts=3 targets=\"web[1-3]\" command=\"uptime\"",
        );
    }
}
