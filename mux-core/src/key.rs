//! Names for what the loop watches. Decides how a name is told from the one that used the same slot before;
//! never says what the name stands for.

use std::fmt;

use mio::Token;

/// Half of a token is the slot, half is the generation: 4 billion of each where `usize` has 64 bits.
const HALF: u32 = usize::BITS / 2;
const MASK: usize = (1 << HALF) - 1;

/// The name of one thing that a loop watches: a link, a listener, a timer, a child.
///
/// Slots are reused, keys are not: a key carries a generation, so that an event or a call meant for something that
/// is gone never reaches what took its place. Keys of one loop mean nothing to another.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(usize);

impl Key {
    /// `None` once every slot that a token can name is taken.
    pub(crate) fn new(slot: usize, generation: usize) -> Option<Self> {
        // The last slot is left out, so that no key equals the token of the waker, which is all ones.
        (slot < MASK).then_some(Self(((generation & MASK) << HALF) | slot))
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
        let key = Key::new(7, 3).expect("slot 7 exists");
        assert_eq!(Key::from_token(key.token()), key);
        assert_eq!(key.slot(), 7);
        assert_ne!(Key::new(7, 4).expect("slot 7 exists"), key);
        assert_eq!(format!("{key:?}"), "Key(7.3)");
    }

    #[test]
    fn no_key_equals_the_token_of_the_waker() {
        assert_eq!(Key::new(MASK, MASK), None);
    }
}
