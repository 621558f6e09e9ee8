//! Maps whose keys are names that this process gives out itself: requests, links. Decides how they are hashed.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by a number of our own. No peer chooses these, so that none can make them collide, and the hash that the
/// standard library takes against that would be a twentieth of a login's instructions beside cryptography.
pub(crate) type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// 2^64 divided by the golden ratio, made odd: numbers that follow each other end up far apart.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// Multiplicative hashing (Knuth, volume 3, section 6.4) of one number or a few.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        // The product's upper bits are the good ones. A table takes a tag from the highest and the place from the lowest.
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(SPREAD);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::BuildHasher as _;

    use super::*;

    #[test]
    fn names_that_follow_each_other_spread_over_a_table() {
        let hashes = BuildHasherDefault::<IdHasher>::default();
        // As keys of links are made: a slot below, a generation above.
        for step in [1_u64, 1 << 32, (1 << 32) + 1] {
            let places: HashSet<u64> = (0..1024)
                .map(|number| hashes.hash_one(number * step) % 4096)
                .collect();
            assert!(
                places.len() > 700,
                "{} of 1024 apart with step {step}",
                places.len()
            );
            let tags: HashSet<u64> = (0..1024)
                .map(|number| hashes.hash_one(number * step) >> 57)
                .collect();
            assert!(tags.len() > 100, "{} of 128 tags with step {step}", tags.len());
        }
    }
}
