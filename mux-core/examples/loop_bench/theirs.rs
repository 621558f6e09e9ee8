//! The jobs on tokio, one thread, one task for each thing that waits.

#![expect(
    clippy::disallowed_types,
    reason = "tasks share what they count in: they have no owner in common"
)]

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{LocalSet, spawn_local};

use super::{CONNECTIONS, Counted, MESSAGE, RING, TIMERS, TOKENS, timer_delay};

/// Runs `setup`, which spawns the tasks, and lets them count until the time is over.
fn measure<F: Future<Output = io::Result<()>>>(
    seconds: f64,
    setup: impl FnOnce(Rc<Cell<usize>>) -> F,
) -> io::Result<Counted> {
    let runtime: Runtime = Builder::new_current_thread().enable_all().build()?;
    let tasks = LocalSet::new();
    tasks.block_on(&runtime, async {
        let count = Rc::new(Cell::new(0));
        setup(Rc::clone(&count)).await?;
        let start = Instant::now();
        count.set(0);
        tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
        Ok(Counted {
            count: count.get(),
            took: start.elapsed(),
        })
    })
}

fn add(count: &Cell<usize>, more: usize) {
    count.set(count.get() + more);
}

pub(crate) fn echo(seconds: f64) -> io::Result<Counted> {
    measure(seconds, async |count| {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        let to = listener.local_addr()?;
        for _ in 0..CONNECTIONS {
            let mut client = TcpStream::connect(to).await?;
            let (mut server, _) = listener.accept().await?;
            client.set_nodelay(true)?;
            server.set_nodelay(true)?;
            spawn_local(async move {
                let mut buffer = vec![0; 4096];
                while let Ok(read @ 1..) = server.read(&mut buffer).await {
                    if server
                        .write_all(buffer.get(..read).unwrap_or_default())
                        .await
                        .is_err()
                    {
                        return;
                    }
                }
            });
            let count = Rc::clone(&count);
            spawn_local(async move {
                let mut buffer = vec![0; 4096];
                while client.write_all(&MESSAGE).await.is_ok() && client.read(&mut buffer).await.is_ok() {
                    add(&count, 1);
                }
            });
        }
        Ok(())
    })
}

pub(crate) fn events(seconds: f64) -> io::Result<Counted> {
    measure(seconds, async |count| {
        let mut readers = Vec::with_capacity(RING);
        let mut writers = Vec::with_capacity(RING);
        for _ in 0..RING {
            let (reader, writer) = UnixStream::pair()?;
            readers.push(reader);
            writers.push(writer);
        }
        for writer in writers.iter_mut().take(TOKENS) {
            writer.write_all(b"t").await?;
        }
        writers.rotate_left(1);
        for (mut reader, mut writer) in readers.into_iter().zip(writers) {
            let count = Rc::clone(&count);
            spawn_local(async move {
                let mut buffer = vec![0; 4096];
                while let Ok(read @ 1..) = reader.read(&mut buffer).await {
                    add(&count, 1);
                    if writer
                        .write_all(buffer.get(..read).unwrap_or_default())
                        .await
                        .is_err()
                    {
                        return;
                    }
                }
            });
        }
        Ok(())
    })
}

pub(crate) fn timers(seconds: f64) -> io::Result<Counted> {
    measure(seconds, async |count| {
        for n in 0..TIMERS {
            let count = Rc::clone(&count);
            spawn_local(async move {
                let mut timer = std::pin::pin!(tokio::time::sleep(timer_delay(n)));
                loop {
                    timer.as_mut().await;
                    add(&count, 1);
                    timer
                        .as_mut()
                        .reset(tokio::time::Instant::now() + timer_delay(count.get()));
                }
            });
        }
        Ok(())
    })
}

pub(crate) fn wakeups(seconds: f64) -> io::Result<Counted> {
    measure(seconds, async |count| {
        let (sender, mut mailbox) = tokio::sync::mpsc::unbounded_channel::<mpsc::Sender<()>>();
        std::thread::spawn(move || {
            let (answer, answered) = mpsc::channel();
            while sender.send(answer.clone()).is_ok() && answered.recv().is_ok() {}
        });
        spawn_local(async move {
            while let Some(answer) = mailbox.recv().await {
                add(&count, 1);
                // Its thread waits for this.
                let _ = answer.send(());
            }
        });
        Ok(())
    })
}
