//! Public and private keys. Decides which keys can be used; never where they come from.

mod public;

pub use public::{KeyBlobError, MAX_RSA_BITS, MIN_RSA_BITS, PublicKey};
