//! Public and private keys. Decides which keys can be used; never where they come from.

mod public;

pub use public::{KeyBlobError, PublicKey};
