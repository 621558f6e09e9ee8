//! Times as typed: seconds with a fraction (`1.5`), or numbers with units (`500ms`, `90s`, `1h30m`) as in the TIME
//! FORMATS of sshd_config(5).

use std::fmt;
use std::time::Duration;

/// The longest time that makes sense, a year: anything above is a typing error, and sums of it can't overflow.
pub const MAX_DURATION: Duration = Duration::from_secs(365 * 24 * 3600);

/// The shortest time but none: what is below is a typing error too, and could be rounded to zero, which means never.
pub const MIN_DURATION: Duration = Duration::from_millis(1);

/// A text that is not a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurationError {
    /// Not a number with an optional unit.
    Malformed,
    /// Over [`MAX_DURATION`].
    TooLong,
    /// Below [`MIN_DURATION`], but not zero.
    TooShort,
    /// Nothing can be done in no time.
    Zero,
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "write seconds (10, 1.5) or numbers with units (500ms, 90s, 1h30m, 2d)",
            Self::TooLong => "longer than a year (365d)",
            Self::TooShort => "shorter than a millisecond; write at least 1ms",
            Self::Zero => "a time above zero is needed",
        })
    }
}

impl std::error::Error for DurationError {}

/// The time that `text` means.
///
/// # Errors
/// When it is not a time or over a year.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if digits(text) {
        return amount(text, 1.0);
    }
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let number = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, tail) = rest.split_at(number);
        let unit = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, after) = tail.split_at(unit);
        let part = amount(number, unit_seconds(unit)?)?;
        total = total.checked_add(part).ok_or(DurationError::TooLong)?;
        rest = after;
    }
    if total > MAX_DURATION {
        Err(DurationError::TooLong)
    } else {
        Ok(total)
    }
}

/// As [`parse_duration`], for deadlines that can't be zero.
pub(super) fn parse_deadline(text: &str) -> Result<Duration, DurationError> {
    parse_duration(text).and_then(|time| {
        if time.is_zero() {
            Err(DurationError::Zero)
        } else {
            Ok(time)
        }
    })
}

fn unit_seconds(unit: &str) -> Result<f64, DurationError> {
    match unit {
        "ms" => Ok(0.001),
        "s" | "S" => Ok(1.0),
        "m" | "M" => Ok(60.0),
        "h" | "H" => Ok(3600.0),
        "d" | "D" => Ok(86_400.0),
        _ => Err(DurationError::Malformed),
    }
}

fn amount(number: &str, unit: f64) -> Result<Duration, DurationError> {
    let starts_with_digit = number.starts_with(|c: char| c.is_ascii_digit());
    let number: f64 = number
        .parse()
        .ok()
        .filter(|_| starts_with_digit)
        .ok_or(DurationError::Malformed)?;
    let time = Duration::try_from_secs_f64(number * unit).map_err(|_| DurationError::TooLong)?;
    if time > MAX_DURATION {
        Err(DurationError::TooLong)
    } else if number > 0.0 && time < MIN_DURATION {
        Err(DurationError::TooShort)
    } else {
        Ok(time)
    }
}
