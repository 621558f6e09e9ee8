//! What a tree of processes costs: calls and bytes through `node` processes on pipes. Decides what is counted; how it
//! compares with others is said by whoever runs it.
//!
//! ```text
//! router_bench --node PROGRAM --what call|calls|many|frames|bulk|beside [--hops N] [--children N] [--seconds N] [--window BYTES]
//! ```
//!
//! Prints one line of JSON: `{"what":"call","hops":0,"count":…,"seconds":…,"per_second":…,"p50_us":…,"p99_us":…}`.
//!
//! | what | one unit |
//! | --- | --- |
//! | `call` | a channel that is opened and its result, one after the other, through `hops` relays |
//! | `calls` | the same, 64 at a time |
//! | `many` | the same, to `children` children at once, one at a time each |
//! | `frames` | a message of 64 bytes to an echo and back on one channel, one after the other |
//! | `bulk` | a MiB from the far end |
//! | `beside` | a call while bytes are poured from the same node as fast as they come |

#[expect(dead_code, reason = "tests use the rest")]
mod root;

use std::collections::HashMap;
use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mux_proto::connection::Stream;
use mux_proto::frame::NodeId;
use root::{Call, Happened, Root};

/// Callers of `calls`.
const CALLERS: usize = 64;
/// What a call carries there and back: a short text as an item of CBOR.
const ARGUMENT: &[u8] = b"\x70sixteen bytes....";
/// A message of `frames`.
const MESSAGE: &[u8] = &[b'm'; 64];
/// What `bulk` and `beside` pour at a time.
const POUR: u64 = 256 * 1024 * 1024;

struct Options {
    node: PathBuf,
    what: String,
    hops: usize,
    children: usize,
    seconds: f64,
    window: u32,
}

/// What was counted, and how long each took.
struct Counted {
    count: f64,
    took: Duration,
    each: Vec<Duration>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = parse()?;
    let mut root = Root::new(options.node.clone(), options.window)?;
    let counted = match options.what.as_str() {
        "call" => calls(&mut root, &options, 1)?,
        "calls" => calls(&mut root, &options, CALLERS)?,
        "many" => many(&mut root, &options)?,
        "frames" => frames(&mut root, &options)?,
        "bulk" => bulk(&mut root, &options)?,
        "beside" => beside(&mut root, &options)?,
        other => return Err(format!("nothing is known of `{other}`").into()),
    };
    print(&options, counted)
}

fn parse() -> Result<Options, Box<dyn Error>> {
    let mut options = Options {
        node: PathBuf::new(),
        what: String::new(),
        hops: 0,
        children: 32,
        seconds: 1.0,
        window: 1024 * 1024,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--node" => options.node = value.into(),
            "--what" => options.what = value,
            "--hops" => options.hops = value.parse()?,
            "--children" => options.children = value.parse()?,
            "--seconds" => options.seconds = value.parse()?,
            "--window" => options.window = value.parse()?,
            other => return Err(format!("unknown option {other}").into()),
        }
    }
    Ok(options)
}

fn far_end(root: &mut Root, options: &Options) -> Result<NodeId, Box<dyn Error>> {
    let chain = root.chain(options.hops + 1)?;
    chain.last().copied().ok_or_else(|| "no chain".into())
}

fn call(root: &mut Root, node: NodeId) -> Result<Call, Box<dyn Error>> {
    root.open(node, "call", Bytes::from_static(ARGUMENT))
}

/// Keeps so many calls to one node under way.
fn calls(root: &mut Root, options: &Options, callers: usize) -> Result<Counted, Box<dyn Error>> {
    let node = far_end(root, options)?;
    keep_calling(root, options, &vec![node; callers])
}

/// Keeps a call to each of many children under way.
fn many(root: &mut Root, options: &Options) -> Result<Counted, Box<dyn Error>> {
    let children: Result<Vec<NodeId>, _> = (0..options.children).map(|_| root.start()).collect();
    keep_calling(root, options, &children?)
}

fn keep_calling(root: &mut Root, options: &Options, nodes: &[NodeId]) -> Result<Counted, Box<dyn Error>> {
    let mut under_way = HashMap::new();
    let start = Instant::now();
    for &node in nodes {
        under_way.insert(call(root, node)?, (node, Instant::now()));
    }
    let mut each = Vec::new();
    while start.elapsed().as_secs_f64() < options.seconds {
        root.turn(None)?;
        while let Some((of, happened)) = root.happened.pop_front() {
            let Happened::Result(_) = happened else {
                return Err(format!("a call failed: {happened:?}").into());
            };
            let (node, since) = under_way.remove(&of).ok_or("a call that was not made")?;
            let now = Instant::now();
            each.push(now - since);
            under_way.insert(call(root, node)?, (node, now));
        }
    }
    Ok(Counted {
        count: whole(each.len()),
        took: start.elapsed(),
        each,
    })
}

/// A message there and back, on one channel.
fn frames(root: &mut Root, options: &Options) -> Result<Counted, Box<dyn Error>> {
    let node = far_end(root, options)?;
    let echo = root.open(node, "echo", Bytes::from_static(b"\xa0"))?;
    let mut each = Vec::new();
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < options.seconds {
        let since = Instant::now();
        let connection = root.connection(echo).ok_or("the link is gone")?;
        connection.send(echo.1, Stream::Out, Bytes::from_static(MESSAGE))?;
        let mut came = 0;
        while came < MESSAGE.len() {
            root.turn(None)?;
            while let Some((_, happened)) = root.happened.pop_front() {
                match happened {
                    Happened::Data(len) => came += len,
                    Happened::Writable => {}
                    Happened::Result(_) | Happened::Reset(_) => return Err("the echo ended".into()),
                }
            }
        }
        each.push(since.elapsed());
    }
    Ok(Counted {
        count: whole(each.len()),
        took: start.elapsed(),
        each,
    })
}

fn pour(root: &mut Root, node: NodeId) -> Result<Call, Box<dyn Error>> {
    let mut item = vec![0x1b];
    item.extend_from_slice(&POUR.to_be_bytes());
    root.open(node, "pour", item.into())
}

fn bulk(root: &mut Root, options: &Options) -> Result<Counted, Box<dyn Error>> {
    let node = far_end(root, options)?;
    let start = Instant::now();
    pour(root, node)?;
    let mut came = 0;
    while start.elapsed().as_secs_f64() < options.seconds {
        root.turn(None)?;
        while let Some((_, happened)) = root.happened.pop_front() {
            match happened {
                Happened::Data(len) => came += len,
                Happened::Writable => {}
                Happened::Result(_) => drop(pour(root, node)?),
                Happened::Reset(reset) => return Err(format!("{reset:?}").into()),
            }
        }
    }
    Ok(Counted {
        count: whole(came) / (1024.0 * 1024.0),
        took: start.elapsed(),
        each: Vec::new(),
    })
}

fn beside(root: &mut Root, options: &Options) -> Result<Counted, Box<dyn Error>> {
    let node = far_end(root, options)?;
    let mut bulk = pour(root, node)?;
    let mut each = Vec::new();
    let start = Instant::now();
    let (mut waiting, mut since) = (call(root, node)?, Instant::now());
    while start.elapsed().as_secs_f64() < options.seconds {
        root.turn(None)?;
        while let Some((of, happened)) = root.happened.pop_front() {
            match happened {
                Happened::Data(_) | Happened::Writable => {}
                Happened::Result(_) if of == bulk => bulk = pour(root, node)?,
                Happened::Result(_) if of == waiting => {
                    each.push(since.elapsed());
                    (waiting, since) = (call(root, node)?, Instant::now());
                }
                Happened::Result(_) | Happened::Reset(_) => return Err(format!("{happened:?}").into()),
            }
        }
    }
    Ok(Counted {
        count: whole(each.len()),
        took: start.elapsed(),
        each,
    })
}

#[expect(clippy::cast_precision_loss, reason = "nobody counts to 2^52")]
fn whole(count: usize) -> f64 {
    count as f64
}

fn print(options: &Options, mut counted: Counted) -> Result<(), Box<dyn Error>> {
    let Options { what, hops, .. } = options;
    let seconds = counted.took.as_secs_f64();
    counted.each.sort_unstable();
    let quantile = |percent: usize| {
        let place = counted.each.len().saturating_sub(1) * percent / 100;
        counted
            .each
            .get(place)
            .map_or(0.0, |took| took.as_secs_f64() * 1e6)
    };
    writeln!(
        std::io::stdout(),
        r#"{{"what":"{what}","hops":{hops},"count":{},"seconds":{seconds},"per_second":{},"p50_us":{},"p99_us":{}}}"#,
        counted.count,
        counted.count / seconds,
        quantile(50),
        quantile(99),
    )?;
    Ok(())
}
