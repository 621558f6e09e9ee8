//! Sizes as typed: bytes, or a number with a unit (`512K`, `4G`, `1.5GiB`). A unit is a power of 1024, as in dd and
//! in the limits of ulimit.

use std::fmt;

/// A text that is not a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SizeError;

impl fmt::Display for SizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("write bytes (0, 65536) or a number with a unit (512K, 100M, 1.5G, 2T)")
    }
}

impl std::error::Error for SizeError {}

/// The bytes that `text` means.
pub(super) fn parse_size(text: &str) -> Result<u64, SizeError> {
    let unit_at = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let unit = unit.to_ascii_lowercase();
    let shift = match unit
        .strip_suffix("ib")
        .or(unit.strip_suffix('b'))
        .unwrap_or(&unit)
    {
        "" if unit.len() < 2 => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return Err(SizeError),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let scaled = |digits: &str| -> Option<u64> {
        let value: u64 = digits.parse().ok()?;
        value.checked_mul(1 << shift)
    };
    let whole = scaled(whole).ok_or(SizeError)?;
    // Two digits say all that a size of this kind means, and can't overflow.
    let fraction = match fraction {
        "" if !number.ends_with('.') => 0,
        digits if (1..=2).contains(&digits.len()) && shift > 0 => {
            let hundredths: u64 = format!("{digits:0<2}").parse().map_err(|_| SizeError)?;
            (hundredths << shift) / 100
        }
        _ => return Err(SizeError),
    };
    whole.checked_add(fraction).ok_or(SizeError)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bytes_or_powers_of_1024() {
        let cases: &[(&str, u64)] = &[
            ("0", 0),
            ("65536", 65_536),
            ("7b", 7),
            ("1k", 1024),
            ("512K", 524_288),
            ("4G", 4 << 30),
            ("100MiB", 100 << 20),
            ("2tb", 2 << 40),
            ("1.5G", 3 << 29),
            ("0.25k", 256),
        ];
        for (text, bytes) in cases {
            assert_eq!(parse_size(text), Ok(*bytes), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "G",
            "-1",
            "+1",
            "1 G",
            "1X",
            "1ib",
            "1.",
            "1.5",
            "1.234G",
            ".5G",
            "1e3",
            "99999999999T",
            "18446744073709551616",
            "1.2.3G",
            "0x10",
            "1Gi B",
            "inf",
        ] {
            assert_eq!(parse_size(text), Err(SizeError), "{text}");
        }
    }
}
