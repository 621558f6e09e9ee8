//! Runs of several clients as a table: what each cost, and beneath it the ratio to ours.

use super::cost::{self, METRICS, Run};
use super::table;
use crate::style;

/// `ours` names the row that the others are compared with. `notes` go beneath.
pub(super) fn print(clients: &[(&str, &[Run])], ours: &str, notes: &[&str]) {
    let reference = clients
        .iter()
        .find(|(name, _)| *name == ours)
        .map(|(_, runs)| *runs)
        .unwrap_or_default();
    let heading = std::iter::once("client").chain(METRICS.iter().map(|metric| metric.title));
    let mut rows = vec![heading.map(str::to_owned).collect::<Vec<_>>()];
    for (name, runs) in clients {
        let cell = |metric: &cost::Metric| {
            let summary = metric.summary(runs);
            summary.map(|summary| metric.show(summary)).unwrap_or_default()
        };
        rows.push(row(name, cell));
        if *name != ours {
            let ratio = |metric: &cost::Metric| {
                let ratio = metric.ratio(runs, reference);
                ratio.map(|ratio| format!("× {ratio:.2}")).unwrap_or_default()
            };
            rows.push(row("  to ours", ratio));
        }
    }
    table::print(&rows);
    for note in notes {
        println!("  {}", style::dim(note));
    }
}

fn row(name: &str, cell: impl Fn(&cost::Metric) -> String) -> Vec<String> {
    std::iter::once(name.to_owned())
        .chain(METRICS.iter().map(cell))
        .collect()
}
