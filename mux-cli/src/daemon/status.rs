//! What the daemon says about itself. Decides what is told, and how it looks in each form; `serve.rs` gathers it.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// The form of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// For people.
    #[default]
    Text,
    /// One JSON object.
    Json,
    /// The text format of Prometheus.
    Metrics,
}

/// All that is told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) version: String,
    pub(crate) pid: u32,
    pub(crate) age_seconds: f64,
    /// Clients that run something.
    pub(crate) clients: usize,
    /// Requests that wait for their turn.
    pub(crate) queued: usize,
    /// Requests that have ended.
    pub(crate) finished: u64,
    /// Requests for which there was a connection.
    pub(crate) reused: u64,
    pub(crate) stopping: bool,
    pub(crate) connections: Vec<Line>,
}

/// One connection, or a request on the way to one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Line {
    /// `user@host:port`.
    pub(crate) name: String,
    /// `idle`, or the stage of what uses it.
    pub(crate) state: String,
    /// Since when it is in this state.
    pub(crate) state_seconds: f64,
    /// Since when it is there; only of those that were kept.
    pub(crate) age_seconds: Option<f64>,
    /// A round trip.
    pub(crate) rtt_seconds: Option<f64>,
    pub(crate) channels: usize,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
    /// Commands that have ended on it.
    pub(crate) uses: u64,
    /// What is waited for.
    pub(crate) waits_for: String,
}

impl Report {
    pub(crate) fn show(&self, form: Form) -> String {
        match form {
            Form::Text => self.text(),
            Form::Json => serde_json::to_string(self).map_or_else(|_| String::new(), |text| text + "\n"),
            Form::Metrics => self.metrics(),
        }
    }

    fn text(&self) -> String {
        let mut text = format!(
            "mux {} (pid {}), up {}: {} connections, {} clients, {} queued, {} done, {} on kept connections{}\n",
            self.version,
            self.pid,
            time(self.age_seconds),
            self.connections.len(),
            self.clients,
            self.queued,
            self.finished,
            self.reused,
            if self.stopping { "; stopping" } else { "" },
        );
        let longest = self.connections.iter().map(|line| line.name.len()).max();
        let width = longest.unwrap_or_default();
        for line in &self.connections {
            let age = line.age_seconds.map_or_else(|| "-".to_owned(), time);
            let rtt = line
                .rtt_seconds
                .map_or_else(|| "-".to_owned(), |rtt| format!("{:.1} ms", rtt * 1000.0));
            let (sent, received) = (line.bytes_sent, line.bytes_received);
            let state = format!("{} {}", line.state, time(line.state_seconds));
            // A vector of bytes takes everything.
            let _ = writeln!(
                text,
                "{:width$}  {state:14}  age {age:6}  rtt {rtt:9}  channels {}  sent {sent}  received {received}  \
                 uses {}  waits for {}",
                line.name, line.channels, line.uses, line.waits_for,
            );
        }
        text
    }

    fn metrics(&self) -> String {
        let idle = self
            .connections
            .iter()
            .filter(|line| line.state == "idle")
            .count();
        let busy = self.connections.len() - idle;
        let mut text = String::new();
        for (name, kind, help, value) in self.numbers() {
            text += &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
        }
        text += "# HELP mux_connections Connections, and requests on the way to one.\n# TYPE mux_connections gauge\n";
        text +=
            &format!("mux_connections{{state=\"idle\"}} {idle}\nmux_connections{{state=\"busy\"}} {busy}\n");
        text
    }

    /// Name, kind, what it means, and the number.
    fn numbers(&self) -> [(&'static str, &'static str, &'static str, f64); 7] {
        let sum = |count: fn(&Line) -> u64| number(self.connections.iter().map(count).sum());
        let (sent, received) = (sum(|line| line.bytes_sent), sum(|line| line.bytes_received));
        let (clients, queued) = (number(self.clients as u64), number(self.queued as u64));
        let (finished, reused) = (number(self.finished), number(self.reused));
        let (gauge, counter) = ("gauge", "counter");
        let waiting = "Requests that wait for their turn.";
        let saved = "Requests for which there was a connection.";
        [
            (
                "mux_uptime_seconds",
                gauge,
                "Age of the process.",
                self.age_seconds,
            ),
            ("mux_clients", gauge, "Clients that run something.", clients),
            ("mux_requests_queued", gauge, waiting, queued),
            (
                "mux_requests_finished_total",
                counter,
                "Requests that have ended.",
                finished,
            ),
            ("mux_connections_reused_total", counter, saved, reused),
            ("mux_bytes_sent", gauge, "Bytes sent over what stands.", sent),
            (
                "mux_bytes_received",
                gauge,
                "Bytes received over what stands.",
                received,
            ),
        ]
    }
}

#[expect(clippy::cast_precision_loss, reason = "counters beyond 2^53 are not met")]
fn number(count: u64) -> f64 {
    count as f64
}

/// Short, for people.
fn time(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 60.0 => format!("{seconds:.0}s"),
        seconds if seconds < 3600.0 => format!("{:.0}m", (seconds / 60.0).floor()),
        seconds => format!("{:.1}h", seconds / 3600.0),
    }
}
