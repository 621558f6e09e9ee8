//! Variables as typed: `NAME=VALUE`. The name is one that a shell could use; the value is bytes, untouched.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;

use crate::plan::Variable;

/// A text that is not a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum VariableError {
    /// There is no `=`.
    NoValue,
    /// Not a name.
    Name(String),
}

impl fmt::Display for VariableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoValue => f.write_str("write NAME=VALUE"),
            Self::Name(name) => write!(
                f,
                "{name:?} is no name for a variable: letters, digits and `_`, not beginning with a digit"
            ),
        }
    }
}

impl std::error::Error for VariableError {}

/// The variable that `word` means.
pub(super) fn parse_variable(word: &OsStr) -> Result<Variable, VariableError> {
    let bytes = word.as_bytes();
    let at = bytes.iter().position(|byte| *byte == b'=');
    let (name, rest) = bytes.split_at(at.ok_or(VariableError::NoValue)?);
    let name = String::from_utf8_lossy(name).into_owned();
    let valid = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty();
    match valid {
        true => Ok(Variable {
            name,
            value: rest.get(1..).unwrap_or_default().to_vec(),
        }),
        false => Err(VariableError::Name(name)),
    }
}
