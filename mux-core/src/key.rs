//! Names for what the loop watches. Decides how a name is told from the one that used the same slot before;
//! never says what the name stands for.

use std::fmt;

use mio::Token;

#[cfg(not(target_pointer_width = "64"))]
compile_error!("a key needs 64 bits: half for the slot, half for the generation");

/// Half of a token is the slot, half is the generation: 4 billion of each.
const HALF: u32 = usize::BITS / 2;
const MASK: usize = (1 << HALF) - 1;

/// The name of one thing that a loop watches: a link, a listener, a timer, a child.
///
/// Slots are reused, keys are not: a key carries a generation, so that an event or a call meant for something that
/// is gone never reaches what took its place. Keys of one loop mean nothing to another.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(usize);

impl Key {
    /// The slot must be below 2^32 - 1, which more memory than any machine has could not exceed; the generation
    /// wraps, so that a key is not reused before its slot was 4 billion times.
    pub(crate) fn new(slot: usize, generation: usize) -> Self {
        debug_assert!(slot < MASK, "all ones is the token of the waker");
        Self(((generation & MASK) << HALF) | slot)
    }

    pub(crate) fn slot(self) -> usize {
        self.0 & MASK
    }

    pub(crate) fn token(self) -> Token {
        Token(self.0)
    }

    pub(crate) fn from_token(token: Token) -> Self {
        Self(token.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({}.{})", self.slot(), self.0 >> HALF)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slot_and_generation_survive_the_token() {
        let key = Key::new(7, 3);
        assert_eq!(Key::from_token(key.token()), key);
        assert_eq!(key.slot(), 7);
        assert_ne!(Key::new(7, 4), key);
        assert_eq!(format!("{key:?}"), "Key(7.3)");
    }
}
