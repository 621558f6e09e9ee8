//! A tree of processes on tokio and yamux, as its users would build one: a stream for each call, and relays that copy
//! between two streams. Counts the same things as mux-core's example `router_bench`, and prints the same line.
//!
//! ```text
//! yamux-tree --what call|calls|many|frames|bulk|beside [--hops N] [--children N] [--seconds N]
//! yamux-tree --node HOPS     on pipes; starts HOPS more beneath it
//! ```
//!
//! A stream begins with two bytes: relays still to pass, and what it is for.

use std::error::Error;
use std::pin::Pin;
use std::process::Stdio;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::future::poll_fn;
use futures::{AsyncReadExt, AsyncWriteExt};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::compat::{FuturesAsyncReadCompatExt, TokioAsyncReadCompatExt};
use yamux::{Config, Connection, Mode, Stream};

type Failure = Box<dyn Error + Send + Sync>;

const CALL: u8 = 0;
const ECHO: u8 = 1;
const POUR: u8 = 2;
const ARGUMENT: [u8; 17] = *b"\x70sixteen bytes...";
const MESSAGE: [u8; 64] = [b'm'; 64];
const CALLERS: usize = 64;
const PIECE: usize = 32 * 1024;

/// Two pipes as one stream.
struct Duplex<R, W> {
    read: R,
    write: W,
}

impl<R: AsyncRead + Unpin, W: Unpin> AsyncRead for Duplex<R, W> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.read).poll_read(cx, buffer)
    }
}

impl<R: Unpin, W: AsyncWrite + Unpin> AsyncWrite for Duplex<R, W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.write).poll_write(cx, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.write).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.write).poll_shutdown(cx)
    }
}

/// Opens streams on a connection that a task of its own drives.
#[derive(Clone)]
struct Opener(mpsc::UnboundedSender<oneshot::Sender<Stream>>);

impl Opener {
    async fn open(&self, hops: u8, kind: u8) -> Result<Stream, Failure> {
        let (sender, stream) = oneshot::channel();
        self.0.send(sender)?;
        let mut stream = stream.await?;
        stream.write_all(&[hops, kind]).await?;
        Ok(stream)
    }
}

/// Drives a connection: opens what is asked for, hands in what comes in.
fn drive(
    io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    mode: Mode,
    serve: Option<Option<Opener>>,
) -> (Opener, JoinHandle<()>) {
    let (sender, mut asked) = mpsc::unbounded_channel::<oneshot::Sender<Stream>>();
    let mut connection = Connection::new(io.compat(), Config::default(), mode);
    let driving = tokio::spawn(async move {
        let mut waiting = None;
        loop {
            let inbound = poll_fn(|cx| {
                loop {
                    if waiting.is_none()
                        && let Poll::Ready(Some(sender)) = asked.poll_recv(cx)
                    {
                        waiting = Some(sender);
                    }
                    if waiting.is_none() {
                        break;
                    }
                    match connection.poll_new_outbound(cx) {
                        Poll::Ready(Ok(stream)) => {
                            if let Some(sender) = waiting.take() {
                                let _ = sender.send(stream);
                            }
                        }
                        Poll::Ready(Err(_)) => return Poll::Ready(None),
                        Poll::Pending => break,
                    }
                }
                connection.poll_next_inbound(cx)
            });
            let Some(Ok(stream)) = inbound.await else { return };
            if let Some(child) = &serve {
                tokio::spawn(answer(stream, child.clone()));
            }
        }
    });
    (Opener(sender), driving)
}

/// One stream at a node.
async fn answer(mut stream: Stream, child: Option<Opener>) -> Result<(), Failure> {
    let mut head = [0; 2];
    stream.read_exact(&mut head).await?;
    let [hops, kind] = head;
    if let Some(further) = hops.checked_sub(1) {
        let onward = child.ok_or("no child")?.open(further, kind).await?;
        tokio::io::copy_bidirectional(&mut stream.compat(), &mut onward.compat()).await?;
        return Ok(());
    }
    match kind {
        CALL => {
            let mut argument = [0; ARGUMENT.len()];
            stream.read_exact(&mut argument).await?;
            stream.write_all(&argument).await?;
        }
        ECHO => {
            let mut buffer = vec![0; PIECE];
            loop {
                let len = stream.read(&mut buffer).await?;
                if len == 0 {
                    break;
                }
                stream
                    .write_all(buffer.get(..len).ok_or("no more than asked for")?)
                    .await?;
            }
        }
        _ => {
            let buffer = vec![b'p'; PIECE];
            while stream.write_all(&buffer).await.is_ok() {}
        }
    }
    stream.close().await?;
    Ok(())
}

/// Starts a node with so many beneath it.
fn start(hops: u8, serve: Option<Option<Opener>>) -> Result<(Child, Opener), Failure> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["--node", &hops.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let read = child.stdout.take().ok_or("no pipe")?;
    let write = child.stdin.take().ok_or("no pipe")?;
    let (opener, _) = drive(Duplex { read, write }, Mode::Client, serve);
    Ok((child, opener))
}

async fn node(hops: u8) -> Result<(), Failure> {
    let below = match hops.checked_sub(1) {
        Some(further) => Some(start(further, None)?),
        None => None,
    };
    let open = |path| std::fs::OpenOptions::new().read(true).open(path);
    let read = pipe::Receiver::from_file(open("/dev/fd/0")?)?;
    let write = std::fs::OpenOptions::new().write(true).open("/dev/fd/1")?;
    let write = pipe::Sender::from_file(write)?;
    let child = below.as_ref().map(|(_, opener)| opener.clone());
    // Held here, so that the task that drives the connection waits for requests.
    let (_opener, driving) = drive(Duplex { read, write }, Mode::Server, Some(child));
    driving.await?;
    Ok(())
}

async fn call(opener: &Opener, hops: u8) -> Result<Duration, Failure> {
    let since = Instant::now();
    let mut stream = opener.open(hops, CALL).await?;
    stream.write_all(&ARGUMENT).await?;
    let mut answer = [0; ARGUMENT.len()];
    stream.read_exact(&mut answer).await?;
    stream.close().await?;
    Ok(since.elapsed())
}

/// One call after the other.
async fn keep_calling(opener: Opener, hops: u8, seconds: f64) -> Result<Vec<Duration>, Failure> {
    let start = Instant::now();
    let mut each = Vec::new();
    while start.elapsed().as_secs_f64() < seconds {
        each.push(call(&opener, hops).await?);
    }
    Ok(each)
}

async fn frames(opener: Opener, hops: u8, seconds: f64) -> Result<Vec<Duration>, Failure> {
    let mut stream = opener.open(hops, ECHO).await?;
    let start = Instant::now();
    let mut each = Vec::new();
    while start.elapsed().as_secs_f64() < seconds {
        let since = Instant::now();
        stream.write_all(&MESSAGE).await?;
        stream.read_exact(&mut [0; MESSAGE.len()]).await?;
        each.push(since.elapsed());
    }
    Ok(each)
}

/// Bytes that came.
async fn bulk(opener: Opener, hops: u8, seconds: f64) -> Result<f64, Failure> {
    let mut stream = opener.open(hops, POUR).await?;
    let start = Instant::now();
    let (mut buffer, mut came) = (vec![0; PIECE], 0.0);
    while start.elapsed().as_secs_f64() < seconds {
        #[expect(clippy::cast_precision_loss, reason = "nobody counts to 2^52")]
        let len = stream.read(&mut buffer).await? as f64;
        came += len;
    }
    Ok(came)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let (mut what, mut hops, mut children, mut seconds) = (String::new(), 0, 32, 1.0);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or("an option needs a value")?;
        match name.as_str() {
            "--node" => return node(value.parse()?).await,
            "--what" => what = value,
            "--hops" => hops = value.parse()?,
            "--children" => children = value.parse()?,
            "--seconds" => seconds = value.parse()?,
            other => return Err(format!("unknown option {other}").into()),
        }
    }
    let openers = if what == "many" { children } else { 1 };
    let started: Result<Vec<_>, _> = (0..openers).map(|_| start(hops, None)).collect();
    let started = started?;
    let opener = started.first().ok_or("no child")?.1.clone();
    // Whatever has to start has started when it has answered.
    for (_, opener) in &started {
        call(opener, hops).await?;
    }
    let begin = Instant::now();
    let mut count = None;
    let each = match what.as_str() {
        "call" => keep_calling(opener, hops, seconds).await?,
        "calls" => together(vec![opener; CALLERS], hops, seconds).await?,
        "many" => {
            together(
                started.iter().map(|child| child.1.clone()).collect(),
                hops,
                seconds,
            )
            .await?
        }
        "frames" => frames(opener, hops, seconds).await?,
        "bulk" => {
            count = Some(bulk(opener, hops, seconds).await? / (1024.0 * 1024.0));
            Vec::new()
        }
        "beside" => {
            tokio::spawn(bulk(opener.clone(), hops, seconds + 1.0));
            keep_calling(opener, hops, seconds).await?
        }
        other => return Err(format!("nothing is known of `{other}`").into()),
    };
    print(&what, hops, begin.elapsed().as_secs_f64(), each, count);
    Ok(())
}

fn print(what: &str, hops: u8, took: f64, mut each: Vec<Duration>, count: Option<f64>) {
    each.sort_unstable();
    let quantile = |percent: usize| {
        let place = each.len().saturating_sub(1) * percent / 100;
        each.get(place).map_or(0.0, |took| took.as_secs_f64() * 1e6)
    };
    #[expect(clippy::cast_precision_loss, reason = "nobody counts to 2^52")]
    let count = count.unwrap_or(each.len() as f64);
    println!(
        r#"{{"what":"{what}","hops":{hops},"count":{count},"seconds":{took},"per_second":{},"p50_us":{},"p99_us":{}}}"#,
        count / took,
        quantile(50),
        quantile(99),
    );
}

async fn together(openers: Vec<Opener>, hops: u8, seconds: f64) -> Result<Vec<Duration>, Failure> {
    let tasks: Vec<_> = openers
        .into_iter()
        .map(|opener| tokio::spawn(keep_calling(opener, hops, seconds)))
        .collect();
    let mut each = Vec::new();
    for task in tasks {
        each.extend(task.await??);
    }
    Ok(each)
}
