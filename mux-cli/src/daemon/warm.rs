//! Connections that nobody uses at the moment. Decides whom one may serve and how long it is kept; moves no bytes.

use std::collections::HashMap;
use std::hash::Hash;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::hub::ids::IdMap;
use crate::hub::{Kept, Likeness};

/// How long a connection is kept that nobody uses.
pub(crate) const MAX_IDLE: Duration = Duration::from_secs(10 * 60);

/// How long one lives in all: a working day, after which whoever was let in has to be let in again.
pub(crate) const MAX_AGE: Duration = Duration::from_secs(8 * 60 * 60);

/// How often it is looked whether agents and certificates are still there.
const LOOK: Duration = Duration::from_secs(15);

/// Two clocks that differ by more than this since the last look: the machine was suspended, and servers and whatever lies
/// between have forgotten us.
const SLEPT: Duration = Duration::from_secs(30);

/// One that is kept.
#[derive(Debug)]
pub(crate) struct Connection<K> {
    pub(crate) kept: Kept<K>,
    pub(crate) born: Instant,
    pub(crate) idle_since: Instant,
    pub(crate) uses: u64,
}

/// All that are kept.
#[derive(Debug)]
pub(crate) struct Warm<K> {
    connections: IdMap<K, Connection<K>>,
    by_like: HashMap<Likeness, Vec<K>>,
    /// Those in use that were kept before, as they were.
    lent: IdMap<K, Connection<K>>,
    look_at: Option<Instant>,
    /// Both clocks at the last look.
    clocks: Option<(Instant, Duration)>,
    pub(crate) max_idle: Duration,
}

impl<K: Copy + Eq + Hash> Warm<K> {
    pub(crate) fn new(max_idle: Duration) -> Self {
        Self {
            connections: IdMap::default(),
            by_like: HashMap::new(),
            lent: IdMap::default(),
            look_at: None,
            clocks: None,
            max_idle: max_idle.min(MAX_IDLE),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.connections.len()
    }

    /// Of one that is in use: since when it is there, and how often it was used.
    pub(crate) fn lent(&self, key: K) -> Option<(Instant, u64)> {
        let connection = self.lent.get(&key)?;
        Some((connection.born, connection.uses))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Connection<K>> {
        self.connections.values()
    }

    /// The one that was used last: the others may go.
    pub(crate) fn take(&mut self, now: Instant, like: &Likeness) -> Option<K> {
        let key = *self.by_like.get(like)?.last()?;
        let connection = self.remove(key)?;
        if connection.is_good(now, self.max_idle) {
            self.lent.insert(key, connection);
            return Some(key);
        }
        // Its link is closed by whoever looks next, and with it what else is over.
        self.put(connection);
        self.look_at = Some(now);
        None
    }

    pub(crate) fn keep(&mut self, now: Instant, kept: Kept<K>) {
        let connection = match self.lent.remove(&kept.key) {
            // How it was made is known from the first time.
            Some(before) => Connection {
                idle_since: now,
                uses: before.uses + 1,
                ..before
            },
            None => Connection {
                kept,
                born: now,
                idle_since: now,
                uses: 1,
            },
        };
        self.put(connection);
        self.look_at.get_or_insert(now + LOOK);
    }

    fn put(&mut self, connection: Connection<K>) {
        let key = connection.kept.key;
        let same = self.by_like.entry(connection.kept.like.clone()).or_default();
        same.push(key);
        self.connections.insert(key, connection);
    }

    /// Its link is gone.
    pub(crate) fn closed(&mut self, key: K) -> bool {
        self.lent.remove(&key);
        self.remove(key).is_some()
    }

    fn remove(&mut self, key: K) -> Option<Connection<K>> {
        let connection = self.connections.remove(&key)?;
        if let Some(same) = self.by_like.get_mut(&connection.kept.like) {
            same.retain(|other| *other != key);
            if same.is_empty() {
                self.by_like.remove(&connection.kept.like);
            }
        }
        Some(connection)
    }

    /// Takes out those for which `is_one` holds.
    pub(crate) fn drain(&mut self, is_one: impl Fn(&Connection<K>) -> bool) -> Vec<K> {
        let found = self.connections.values().filter(|connection| is_one(connection));
        let keys: Vec<K> = found.map(|connection| connection.kept.key).collect();
        for key in &keys {
            self.remove(*key);
        }
        keys
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.look_at.filter(|_| !self.connections.is_empty())
    }

    /// Those whose time is over. `uptime` is the clock that goes on while the machine is suspended.
    pub(crate) fn overdue(&mut self, now: Instant, uptime: Option<Duration>) -> Vec<K> {
        let slept = self.slept(now, uptime);
        self.look_at = Some(now + LOOK);
        let max_idle = self.max_idle;
        self.drain(|connection| slept || !connection.is_good(now, max_idle))
    }

    fn slept(&mut self, now: Instant, uptime: Option<Duration>) -> bool {
        let Some(uptime) = uptime else { return false };
        let before = self.clocks.replace((now, uptime));
        before.is_some_and(|(then, before)| {
            uptime.saturating_sub(before) > now.saturating_duration_since(then) + SLEPT
        })
    }
}

impl<K> Connection<K> {
    fn is_good(&self, now: Instant, max_idle: Duration) -> bool {
        let age = now.saturating_duration_since(self.born);
        let idle = now.saturating_duration_since(self.idle_since);
        let certificate = self.kept.certificate.as_ref();
        let is_certified =
            certificate.is_none_or(|certificate| certificate.check_time(crate::run::unix_seconds()).is_ok());
        let agent = self.kept.like.agent.as_deref();
        age < MAX_AGE
            && idle < max_idle
            && is_certified
            && agent.is_none_or(|socket| Path::new(socket).exists())
    }
}

/// The clock that goes on while the machine is suspended; `None` where the system does not tell.
pub(crate) fn uptime() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/uptime").ok()?;
    let seconds: f64 = text.split(' ').next()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn like(digest: u8, agent: Option<&str>) -> Likeness {
        Likeness {
            digest: [digest; 32],
            agent: agent.map(Arc::from),
        }
    }

    fn kept(key: u32, like: &Likeness) -> Kept<u32> {
        Kept {
            key,
            like: like.clone(),
            name: format!("u@h{key}:22"),
            certificate: None,
            rtt: Some(Duration::from_millis(7)),
        }
    }

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn only_equals_are_served_and_the_last_that_was_used_goes_first() {
        let now = Instant::now();
        let mut warm = Warm::new(MAX_IDLE);
        let (one, other) = (like(1, None), like(2, None));
        for key in [1, 2] {
            warm.keep(now, kept(key, &one));
        }
        assert_eq!(warm.take(now, &other), None);
        assert_eq!(warm.take(now, &one), Some(2));
        assert_eq!(warm.take(now, &one), Some(1));
        assert_eq!(warm.take(now, &one), None, "both are in use");
    }

    #[test]
    fn one_that_is_used_again_has_the_age_and_the_round_trip_of_its_beginning() {
        let now = Instant::now();
        let mut warm = Warm::new(MAX_IDLE);
        let like = like(1, None);
        warm.keep(now, kept(1, &like));
        assert_eq!(warm.take(now, &like), Some(1));
        let again = Kept {
            rtt: None,
            ..kept(1, &like)
        };
        warm.keep(now + seconds(60), again);
        let connection = warm.iter().next().unwrap();
        assert_eq!((connection.born, connection.uses), (now, 2));
        assert_eq!(connection.kept.rtt, Some(Duration::from_millis(7)));
    }

    /// Whether a connection that is kept at the beginning serves somebody after so many seconds of idleness.
    fn check_idle(max_idle: u64, after: u64, serves: bool) {
        let now = Instant::now();
        let mut warm = Warm::new(seconds(max_idle));
        let like = like(1, None);
        warm.keep(now, kept(1, &like));
        let then = now + seconds(after);
        assert_eq!(warm.take(then, &like).is_some(), serves, "{after} of {max_idle}");
        if !serves {
            assert!(warm.poll_timeout().unwrap() <= then, "it is looked at now");
            assert_eq!(warm.overdue(then, None), [1]);
            assert_eq!(warm.len(), 0);
        }
    }

    #[test]
    fn one_that_nobody_uses_is_kept_ten_minutes_and_not_longer() {
        check_idle(600, 599, true);
        check_idle(600, 600, false);
        check_idle(60, 60, false);
        check_idle(3600, 600, false);
    }

    #[test]
    fn none_lives_longer_than_eight_hours_however_often_it_is_used() {
        let mut now = Instant::now();
        let end = now + MAX_AGE;
        let mut warm = Warm::new(MAX_IDLE);
        let like = like(1, None);
        warm.keep(now, kept(1, &like));
        while now + seconds(300) < end {
            now += seconds(300);
            assert_eq!(warm.take(now, &like), Some(1));
            warm.keep(now, kept(1, &like));
        }
        assert_eq!(warm.take(end, &like), None);
        assert_eq!(warm.overdue(end, None), [1]);
    }

    #[test]
    fn none_outlives_the_socket_of_its_agent() {
        let now = Instant::now();
        let socket = tempfile::NamedTempFile::new().unwrap();
        let like = like(1, socket.path().to_str());
        let mut warm = Warm::new(MAX_IDLE);
        warm.keep(now, kept(1, &like));
        assert_eq!(warm.overdue(now, None), [0_u32; 0]);
        socket.close().unwrap();
        assert_eq!(warm.take(now, &like), None);
        assert_eq!(warm.overdue(now, None), [1]);
    }

    #[test]
    fn after_the_machine_has_slept_none_is_trusted() {
        let now = Instant::now();
        let mut warm = Warm::new(MAX_IDLE);
        let like = like(1, None);
        warm.keep(now, kept(1, &like));
        assert_eq!(warm.overdue(now, Some(seconds(1000))), [0_u32; 0]);
        let later = now + seconds(15);
        assert_eq!(
            warm.overdue(later, Some(seconds(1016))),
            [0_u32; 0],
            "clocks differ a little"
        );
        assert_eq!(warm.overdue(later + seconds(15), Some(seconds(4631))), [1]);
    }

    #[test]
    fn one_whose_link_is_gone_is_forgotten() {
        let now = Instant::now();
        let mut warm = Warm::new(MAX_IDLE);
        let like = like(1, None);
        warm.keep(now, kept(1, &like));
        assert!(warm.closed(1));
        assert!(!warm.closed(1));
        assert_eq!(warm.take(now, &like), None);
    }
}
