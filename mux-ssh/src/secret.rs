//! What a person types and nobody else may read: passwords, passphrases, one-time codes. Decides that it is never
//! printed, and wiped when it is dropped; never where it comes from.

use std::fmt;

use bytes::BytesMut;
use zeroize::{Zeroize as _, Zeroizing};

use crate::wire::Writer;

/// A secret. Its `Debug` says nothing about it, not even its length.
///
/// ```
/// use mux_ssh::Secret;
///
/// assert_eq!(format!("{:?}", Secret::from("hunter2".to_owned())), "Secret");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// The bytes, for whoever sends or compares them.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// Whether nothing was typed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A message with secrets in it, of at most `capacity` bytes: growing would leave a copy behind.
    pub(crate) fn message(capacity: usize, write: impl FnOnce(&mut Writer<'_>)) -> Self {
        let mut bytes = BytesMut::with_capacity(capacity);
        write(&mut Writer::new(&mut bytes));
        debug_assert!(bytes.len() <= capacity, "a copy was left behind");
        let secret = Self(Zeroizing::new(bytes.to_vec()));
        bytes.as_mut().zeroize();
        secret
    }
}

impl From<Zeroizing<Vec<u8>>> for Secret {
    fn from(bytes: Zeroizing<Vec<u8>>) -> Self {
        Self(bytes)
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(Zeroizing::new(text.into_bytes()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::AuthMethod;

    #[test]
    fn nothing_about_it_is_printed() {
        let secret = Secret::from("hunter2".to_owned());
        let held = Some((AuthMethod::Password, vec![secret.clone()]));
        for text in [
            format!("{secret:?}"),
            format!("{secret:#?}"),
            format!("{held:#?}"),
        ] {
            assert!(text.contains("Secret"), "{text}");
            assert!(
                !text.contains("hunter2") && !text.contains('7') && !text.contains("104"),
                "{text}"
            );
        }
    }
}
