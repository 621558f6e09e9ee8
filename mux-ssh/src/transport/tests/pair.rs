//! The harness: two transports, the bytes between them, and what each has reported.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use mux_proto::SendQueue;

use crate::Error;
use crate::algorithms::{Algorithms, SignatureAlgorithm};
use crate::message;
use crate::transport::{HostKey, Incoming, ServerTransportConfig, Transport, TransportConfig};

/// One side.
pub(super) struct End {
    pub(super) transport: Transport,
    pub(super) out: SendQueue,
    pub(super) input: BytesMut,
    pub(super) incoming: Vec<Incoming>,
    pub(super) error: Option<Error>,
}

/// A client and a server, connected.
pub(super) struct Pair {
    pub(super) client: End,
    pub(super) server: End,
    pub(super) now: Instant,
    /// How many bytes arrive at a time.
    pub(super) step: usize,
    /// What the owner says about host keys; `None` leaves the question open.
    pub(super) accept: Option<bool>,
}

impl End {
    pub(super) fn new(transport: Transport) -> Self {
        Self {
            transport,
            out: SendQueue::new(),
            input: BytesMut::new(),
            incoming: Vec::new(),
            error: None,
        }
    }

    /// Takes everything that it wants to send.
    pub(super) fn transmit(&mut self, now: Instant) -> Bytes {
        let mut all = BytesMut::new();
        loop {
            self.transport.poll_transmit(now, &mut self.out);
            if self.out.is_empty() {
                return all.freeze();
            }
            all.extend_from_slice(&self.out.take(usize::MAX));
        }
    }

    pub(super) fn receive(&mut self, now: Instant, bytes: &[u8], accept: Option<bool>) {
        self.input.extend_from_slice(bytes);
        self.drain(now, accept);
    }

    pub(super) fn drain(&mut self, now: Instant, accept: Option<bool>) {
        loop {
            match self.transport.handle_input(now, &mut self.input) {
                Ok(None) => break,
                Ok(Some(incoming)) => {
                    if let (Incoming::HostKey(_), Some(accept)) = (&incoming, accept) {
                        self.transport.answer_host_key(accept);
                    }
                    self.incoming.push(incoming);
                }
                Err(error) => {
                    self.error.get_or_insert(error);
                    break;
                }
            }
        }
    }

    /// The payloads of services that have arrived, without their message number.
    pub(super) fn packets(&self) -> Vec<Bytes> {
        let packets = self.incoming.iter().filter_map(|incoming| match incoming {
            Incoming::Packet(payload) => Some(payload.slice(1..)),
            Incoming::Ident
            | Incoming::KexInit
            | Incoming::HostKey(_)
            | Incoming::NewKeys { .. }
            | Incoming::ExtInfo(_)
            | Incoming::Unimplemented(_) => None,
        });
        packets.collect()
    }

    pub(super) fn send(&mut self, data: &[u8]) {
        self.transport.send(|packet| {
            packet.byte(message::CHANNEL_DATA).raw(data);
        });
    }

    pub(super) fn new_keys(&self) -> usize {
        self.incoming
            .iter()
            .filter(|incoming| matches!(incoming, Incoming::NewKeys { .. }))
            .count()
    }
}

impl Pair {
    pub(super) fn new(client: TransportConfig, server: ServerTransportConfig) -> Self {
        Self {
            client: End::new(Transport::client(client)),
            server: End::new(Transport::server(server)),
            now: Instant::now(),
            step: usize::MAX,
            accept: Some(true),
        }
    }

    /// Two ends that have finished their first key exchange.
    pub(super) fn connected() -> Self {
        let mut pair = Self::new(TransportConfig::default(), server_config());
        pair.run();
        pair.assert_healthy();
        pair.client.incoming.clear();
        pair.server.incoming.clear();
        pair
    }

    pub(super) fn assert_healthy(&self) {
        assert_eq!(self.client.error, None);
        assert_eq!(self.server.error, None);
        assert!(!self.client.transport.is_rekeying());
        assert!(!self.server.transport.is_rekeying());
    }

    /// Moves bytes until nobody has anything left to say. The number of flights, for counting round trips.
    pub(super) fn run(&mut self) -> usize {
        for flights in 0..10_000 {
            let from_client = self.client.transmit(self.now);
            let from_server = self.server.transmit(self.now);
            if from_client.is_empty() && from_server.is_empty() {
                return flights;
            }
            let step = self.step;
            for chunk in from_client.chunks(step.min(from_client.len().max(1))) {
                self.server.receive(self.now, chunk, self.accept);
            }
            for chunk in from_server.chunks(step.min(from_server.len().max(1))) {
                self.client.receive(self.now, chunk, self.accept);
            }
        }
        panic!("the two never come to rest");
    }

    pub(super) fn pass(&mut self, time: Duration) {
        self.now += time;
        for end in [&mut self.client, &mut self.server] {
            if end.transport.poll_timeout().is_some_and(|due| due <= self.now)
                && let Err(error) = end.transport.handle_timeout(self.now)
            {
                end.error.get_or_insert(error);
            }
        }
    }
}

/// A server with one key of each type that it can have.
pub(super) fn server_config() -> ServerTransportConfig {
    ServerTransportConfig::new(Arc::from([ed25519_key(7)]))
}

pub(super) fn ed25519_key(seed: u8) -> HostKey {
    HostKey::from_ed25519_seed(&[seed; 32]).unwrap()
}

/// A key that signs with `algorithm`.
pub(super) fn key_for(algorithm: SignatureAlgorithm) -> HostKey {
    HostKey::generate(algorithm.key_type()).unwrap()
}

/// The default offer with one list cut down.
pub(super) fn offer(change: impl FnOnce(&mut Algorithms)) -> TransportConfig {
    let mut config = TransportConfig::default();
    change(&mut config.algorithms);
    config
}
