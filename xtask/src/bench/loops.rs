//! `bench loop`: mux-core against plain mio and tokio, by the contenders of mux-core's example `loop_bench`.

use anyhow::Result;
use serde_json::Value;

use super::options::Options;

pub(super) fn run(_options: &Options) -> Result<Value> {
    Ok(Value::Null)
}
