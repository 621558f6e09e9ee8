//! Dead hosts: they cost the others nothing, the run ends with the longest timeout, and each is named with the stage in
//! which it died.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::servers::{Kind, Servers};

/// How many of each kind of dead host.
const EACH: usize = 10;

const DEAD: [Kind; 5] = [
    Kind::Refuses,
    Kind::DropsPackets,
    Kind::SaysNothing,
    Kind::StallsInAuth,
    Kind::ResetsInOutput,
];

struct Told {
    /// Objects in the order in which hosts ended.
    hosts: Vec<Value>,
    summary: Value,
    stderr: String,
    took: Duration,
}

/// Fifty dead hosts and fifty good ones, in this order.
fn run(args: &[&str]) -> Told {
    let dead = DEAD.iter().flat_map(|kind| [*kind; EACH]);
    let kinds: Vec<Kind> = dead.chain([Kind::Good; 5 * EACH]).collect();
    let servers = Servers::new(&kinds);
    let mut command = servers.command(&["--output", "jsonl", "-w", "h[001-100]"]);
    let start = Instant::now();
    let output = command.args(args).args(["--", "say hello"]).output().unwrap();
    let took = start.elapsed();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(4), "{stderr}");
    let mut hosts: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let summary = hosts.pop().unwrap()["summary"].clone();
    Told {
        hosts,
        summary,
        stderr,
        took,
    }
}

fn ran_out_of_time(host: &Value) -> bool {
    let message = host["error"]["message"].as_str().unwrap_or_default();
    message.contains("within")
}

impl Told {
    /// Every good host had ended before the first dead one was given up.
    fn good_ones_first(&self) {
        let last_good = self.hosts.iter().rposition(|host| host["status"] == "ok");
        let first_late = self.hosts.iter().position(ran_out_of_time);
        assert!(last_good < first_late, "{:#?}", self.hosts);
    }

    /// What the hosts of one kind ended with: status, stage, and what they had printed.
    fn each_kind_is_named(&self) {
        let expected = [
            ("unreachable", "tcp", "", "connection refused"),
            ("unreachable", "tcp", "", "no answer from 127.0.0.1"),
            ("unreachable", "banner", "", "no SSH identification within"),
            ("auth", "auth", "", "authentication not finished within"),
            ("unknown", "command", "hello\n", "connection lost, may have run"),
        ];
        for host in &self.hosts {
            let number: usize = host["host"].as_str().unwrap()[1..].parse().unwrap();
            let Some((status, stage, stdout, message)) = expected.get((number - 1) / EACH) else {
                assert_eq!(
                    (&host["status"], &host["stdout"]),
                    (&"ok".into(), &"hello\n".into())
                );
                continue;
            };
            let error = &host["error"];
            assert_eq!(
                (&host["status"], &error["stage"], &host["stdout"]),
                (&(*status).into(), &(*stage).into(), &(*stdout).into()),
                "{host}"
            );
            assert!(error["message"].as_str().unwrap().contains(message), "{host}");
        }
        let counts = ["hosts", "ok", "unreachable", "auth", "unknown"].map(|name| &self.summary[name]);
        assert_eq!(counts, [100, 50, 30, 10, 10], "{}", self.stderr);
        assert!(
            self.stderr
                .starts_with("ok=50 unreachable=30 auth=10 unknown=10 in "),
            "{}",
            self.stderr
        );
        let folded = "\nunreachable: h[001-010]: tcp: connection refused\n";
        assert!(self.stderr.contains(folded), "{}", self.stderr);
    }
}

#[test]
fn with_room_for_all_the_good_ones_end_first_and_the_run_with_the_longest_timeout() {
    let told = run(&["-f", "100", "--connect-timeout", "8", "--login-timeout", "10"]);
    told.good_ones_first();
    told.each_kind_is_named();
    // One after the other they would take 8 s × 20 and 10 s × 10.
    assert!(
        told.took >= Duration::from_secs(10) && told.took < Duration::from_secs(60),
        "{:?}",
        told.took
    );
}

#[test]
fn with_little_room_the_dead_ones_do_not_hold_the_others_up() {
    // The dead ones come first and are four times as many as there is room for.
    let told = run(&["-f", "8", "--connect-timeout", "20", "--login-timeout", "20"]);
    told.good_ones_first();
    told.each_kind_is_named();
    assert!(told.took < Duration::from_secs(90), "{:?}", told.took);
}
