//! The jobs on mio alone, as little as will do: no protocols, no keys, no fairness, no close. The floor.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream, UnixStream};
use mio::{Events, Interest, Poll, Token, Waker};

use super::{CONNECTIONS, Counted, MESSAGE, Meter, RING, TIMERS, TOKENS, timer_delay};

const BOTH: Interest = Interest::READABLE.add(Interest::WRITABLE);

pub(crate) fn echo(seconds: f64) -> io::Result<Counted> {
    let mut poll = Poll::new()?;
    let mut events = Events::with_capacity(1024);
    let listener = std::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let to = listener.local_addr()?;
    // Clients have the even tokens.
    let mut streams: Vec<TcpStream> = Vec::new();
    for _ in 0..CONNECTIONS {
        let client = std::net::TcpStream::connect(to)?;
        for stream in [client, listener.accept()?.0] {
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            let mut stream = TcpStream::from_std(stream);
            poll.registry()
                .register(&mut stream, Token(streams.len()), BOTH)?;
            streams.push(stream);
        }
    }
    drop(TcpListener::from_std(listener));
    for client in streams.iter_mut().step_by(2) {
        client.write_all(&MESSAGE)?;
    }
    let mut buffer = vec![0; 64 * 1024];
    let mut meter = Meter::new(seconds);
    loop {
        poll.poll(&mut events, None)?;
        if meter.is_over(Instant::now()) {
            return Ok(meter.read());
        }
        for event in &events {
            if !event.is_readable() {
                continue;
            }
            let Token(at) = event.token();
            let Some(stream) = streams.get_mut(at) else {
                continue;
            };
            match stream.read(&mut buffer) {
                // Shorter than the buffer: drained.
                Ok(read) => {
                    meter.count += usize::from(at % 2 == 0);
                    stream.write_all(buffer.get(..read).unwrap_or_default())?;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

pub(crate) fn events(seconds: f64) -> io::Result<Counted> {
    let mut poll = Poll::new()?;
    let mut events = Events::with_capacity(1024);
    let (mut readers, mut writers) = (Vec::with_capacity(RING), Vec::with_capacity(RING));
    for at in 0..RING {
        let (mut reader, mut writer) = UnixStream::pair()?;
        poll.registry().register(&mut reader, Token(at), BOTH)?;
        poll.registry().register(&mut writer, Token(RING + at), BOTH)?;
        readers.push(reader);
        writers.push(writer);
    }
    for writer in writers.iter_mut().take(TOKENS) {
        writer.write_all(b"t")?;
    }
    let mut buffer = vec![0; 64 * 1024];
    let mut meter = Meter::new(seconds);
    loop {
        poll.poll(&mut events, None)?;
        if meter.is_over(Instant::now()) {
            return Ok(meter.read());
        }
        for event in &events {
            let Token(at) = event.token();
            let Some(reader) = readers.get_mut(at).filter(|_| event.is_readable()) else {
                continue;
            };
            match reader.read(&mut buffer) {
                Ok(read) => {
                    meter.count += 1;
                    if let Some(writer) = writers.get_mut((at + 1) % RING) {
                        writer.write_all(buffer.get(..read).unwrap_or_default())?;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

pub(crate) fn timers(seconds: f64) -> io::Result<Counted> {
    let mut poll = Poll::new()?;
    let mut events = Events::with_capacity(1024);
    let start = Instant::now();
    let mut heap: BinaryHeap<_> = (0..TIMERS)
        .map(|n| Reverse((start + timer_delay(n), n)))
        .collect();
    let mut meter = Meter::new(seconds);
    loop {
        let next = heap
            .peek()
            .map(|Reverse((at, _))| at.saturating_duration_since(Instant::now()));
        poll.poll(&mut events, next)?;
        let now = Instant::now();
        if meter.is_over(now) {
            return Ok(meter.read());
        }
        while let Some(mut first) = heap.peek_mut() {
            let Reverse((at, _)) = &mut *first;
            if *at > now {
                break;
            }
            meter.count += 1;
            *at = now + timer_delay(meter.count);
        }
    }
}

pub(crate) fn wakeups(seconds: f64) -> io::Result<Counted> {
    let mut poll = Poll::new()?;
    let mut events = Events::with_capacity(1024);
    let waker = Waker::new(poll.registry(), Token(0))?;
    let (sender, mailbox) = mpsc::channel::<mpsc::Sender<()>>();
    std::thread::spawn(move || {
        let (answer, answered) = mpsc::channel();
        while sender.send(answer.clone()).is_ok() && waker.wake().is_ok() && answered.recv().is_ok() {}
    });
    let mut meter = Meter::new(seconds);
    loop {
        poll.poll(&mut events, Some(Duration::from_millis(100)))?;
        if meter.is_over(Instant::now()) {
            return Ok(meter.read());
        }
        while let Ok(answer) = mailbox.try_recv() {
            meter.count += 1;
            // Its thread waits for this.
            let _ = answer.send(());
        }
    }
}
