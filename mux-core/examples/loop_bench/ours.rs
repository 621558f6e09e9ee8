//! The jobs on mux-core, as an application would do them: protocols over links, events, the public interface.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mio::net::{TcpListener, UnixStream};
use mux_core::{Driver, Event, Key, Listener, Ready, Stream};
use mux_proto::{Raw, RawEvent};

use super::{CONNECTIONS, Counted, MESSAGE, Meter, RING, TIMERS, TOKENS, timer_delay};

pub(crate) fn echo(seconds: f64) -> io::Result<Counted> {
    let mut driver: Driver<Raw> = Driver::new()?;
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let to = listener.local_addr()?;
    driver.listen(Listener::Tcp(listener))?;
    for _ in 0..CONNECTIONS {
        driver.connect(to, Raw::new())?;
    }
    let mut clients = HashMap::with_capacity(CONNECTIONS);
    let mut meter = Meter::new(seconds);
    loop {
        let now = driver.turn(None)?;
        if meter.is_over(now) {
            return Ok(meter.read());
        }
        while let Some(event) = driver.poll_event() {
            match event {
                Event::Protocol(key, RawEvent::Data(data)) => {
                    // Either end sends back what it got; a client's is a round trip.
                    meter.count += usize::from(clients.contains_key(&key));
                    send(&mut driver, key, data);
                }
                Event::Connected(key) => {
                    clients.insert(key, ());
                    if clients.len() == CONNECTIONS {
                        meter = Meter::new(seconds);
                    }
                    send(&mut driver, key, Bytes::from_static(&MESSAGE));
                }
                Event::Accepted(_, stream) => {
                    driver.add(stream, Raw::new())?;
                }
                Event::Closed(..) => return Err(io::ErrorKind::ConnectionReset.into()),
                Event::Protocol(_, RawEvent::Eof)
                | Event::Outgoing(_)
                | Event::Finished(_)
                | Event::Consumed(..)
                | Event::Exited(..)
                | Event::Signal(_)
                | Event::Ready(_) => {}
            }
        }
    }
}

fn send(driver: &mut Driver<Raw>, key: Key, data: Bytes) {
    if let Some(raw) = driver.protocol(key) {
        raw.consume(data.len());
        raw.send(data);
    }
}

pub(crate) fn events(seconds: f64) -> io::Result<Counted> {
    let mut driver: Driver<Raw> = Driver::new()?;
    let mut next = HashMap::with_capacity(RING);
    let mut writers = Vec::with_capacity(RING);
    let mut readers = Vec::with_capacity(RING);
    for _ in 0..RING {
        let (one, other) = UnixStream::pair()?;
        readers.push(driver.add(Stream::Unix(one), Raw::new())?);
        writers.push(driver.add(Stream::Unix(other), Raw::new())?);
    }
    for (reader, writer) in readers.iter().zip(writers.iter().cycle().skip(1)) {
        next.insert(*reader, *writer);
    }
    for writer in writers.iter().take(TOKENS) {
        send(&mut driver, *writer, Bytes::from_static(b"t"));
    }
    let mut meter = Meter::new(seconds);
    loop {
        let now = driver.turn(None)?;
        if meter.is_over(now) {
            return Ok(meter.read());
        }
        while let Some(event) = driver.poll_event() {
            if let Event::Protocol(key, RawEvent::Data(data)) = event {
                meter.count += 1;
                if let Some(raw) = driver.protocol(key) {
                    raw.consume(data.len());
                }
                if let Some(next) = next.get(&key).and_then(|next| driver.protocol(*next)) {
                    next.send(data);
                }
            }
        }
    }
}

pub(crate) fn timers(seconds: f64) -> io::Result<Counted> {
    let mut driver: Driver<Raw> = Driver::new()?;
    let start = Instant::now();
    for n in 0..TIMERS {
        driver.timer(start + timer_delay(n));
    }
    let mut meter = Meter::new(seconds);
    loop {
        let now = driver.turn(None)?;
        if meter.is_over(now) {
            return Ok(meter.read());
        }
        while let Some(event) = driver.poll_event() {
            if let Event::Ready(Ready::Timer(_)) = event {
                meter.count += 1;
                driver.timer(now + timer_delay(meter.count));
            }
        }
    }
}

pub(crate) fn wakeups(seconds: f64) -> io::Result<Counted> {
    let mut driver: Driver<Raw> = Driver::new()?;
    let (sender, mut mailbox) = driver.mailbox::<mpsc::Sender<()>>();
    std::thread::spawn(move || {
        let (answer, answered) = mpsc::channel();
        while sender.send(answer.clone()).is_ok() && answered.recv().is_ok() {}
    });
    let mut meter = Meter::new(seconds);
    loop {
        let now = driver.turn(Some(Duration::from_millis(100)))?;
        if meter.is_over(now) {
            return Ok(meter.read());
        }
        while let Some(event) = driver.poll_event() {
            if matches!(event, Event::Ready(Ready::Woken)) {
                while let Some(answer) = mailbox.take() {
                    meter.count += 1;
                    // Its thread waits for this.
                    let _ = answer.send(());
                }
            }
        }
    }
}
