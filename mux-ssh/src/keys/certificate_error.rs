//! Why a certificate is of no use: at all, or for this host at this time. Decides the words.

use std::fmt;

use super::public::KeyBlobError;
use crate::algorithms::SignatureAlgorithm;
use crate::printable::Printable;

/// Why a blob is no certificate that anybody could use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateError {
    /// Larger than [`MAX_CERTIFICATE`](super::MAX_CERTIFICATE).
    TooLarge,
    /// It ends before its last field, or goes on behind it.
    Malformed,
    /// Not of a type that this build knows.
    UnknownType,
    /// Neither a user's nor a host's: the number.
    Kind(u32),
    /// The key in it can't be used.
    Key(KeyBlobError),
    /// More names than [`MAX_PRINCIPALS`](super::MAX_PRINCIPALS).
    TooManyPrincipals,
    /// The key that signed it is a certificate itself.
    AuthorityIsCertificate,
    /// The key that signed it can't be used.
    Authority(KeyBlobError),
    /// It was signed with something that this build does not take, SHA-1 among others. Foreign text.
    SignatureAlgorithm(String),
    /// The signature is wrong.
    Signature,
}

/// Why a sound certificate does not vouch for a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateRefusal {
    /// It is a user's.
    NotOfHost,
    /// It holds later.
    NotYetValid {
        /// In seconds since 1970.
        from: u64,
    },
    /// It held earlier.
    Expired {
        /// In seconds since 1970.
        since: u64,
    },
    /// It names nobody. Older OpenSSH takes that for everybody.
    NoPrincipals,
    /// It names others than this host.
    OtherHost(String),
    /// It demands something that is not understood. Foreign text.
    CriticalOption(String),
    /// `CASignatureAlgorithms` leaves out what it was signed with.
    SignatureAlgorithm(SignatureAlgorithm),
}

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge => f.write_str("too large for a certificate"),
            Self::Malformed => f.write_str("malformed certificate"),
            Self::UnknownType => f.write_str("certificate of an unknown type"),
            Self::Kind(number) => write!(f, "certificate of kind {number}, neither a user's nor a host's"),
            Self::Key(error) => write!(f, "certificate for an unusable key: {error}"),
            Self::TooManyPrincipals => f.write_str("certificate with too many principals"),
            Self::AuthorityIsCertificate => f.write_str("certificate signed by a certificate"),
            Self::Authority(error) => write!(f, "certificate signed by an unusable key: {error}"),
            Self::SignatureAlgorithm(name) => {
                write!(f, "certificate signed with {}", Printable::new(name))?;
                f.write_str(", which is not supported")
            }
            Self::Signature => f.write_str("certificate with a wrong signature"),
        }
    }
}

impl fmt::Display for CertificateRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOfHost => f.write_str("certificate of a user, not of a host"),
            Self::NotYetValid { from } => {
                f.write_str("certificate not valid before ")?;
                fmt_time(f, *from)
            }
            Self::Expired { since } => {
                f.write_str("certificate expired ")?;
                fmt_time(f, *since)
            }
            Self::NoPrincipals => f.write_str("certificate without principals"),
            Self::OtherHost(host) => write!(f, "certificate does not name {}", Printable::new(host)),
            Self::CriticalOption(name) => write!(
                f,
                "certificate with unknown critical option {}",
                Printable::new(name)
            ),
            Self::SignatureAlgorithm(algorithm) => write!(
                f,
                "certificate signed with {}, which CASignatureAlgorithms leaves out",
                algorithm.name()
            ),
        }
    }
}

/// In UTC, as nobody tells pure code which time zone it is in. Days are counted as in the proleptic Gregorian calendar:
/// eras of 400 years have 146,097 of them, and years begin in March so that a leap day is a year's last.
fn fmt_time(f: &mut fmt::Formatter<'_>, seconds: u64) -> fmt::Result {
    const DAY: u64 = 86_400;
    /// From the first of March of the year 0 to the first of January 1970.
    const TO_1970: u64 = 719_468;
    let (Some(days), second) = ((seconds / DAY).checked_add(TO_1970), seconds % DAY) else {
        return write!(f, "at {seconds}");
    };
    let (era, day) = (days / 146_097, days % 146_097);
    let year_of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    write!(
        f,
        "{year:04}-{month:02}-{day_of_month:02} {hour:02}:{minute:02} UTC"
    )
}

impl std::error::Error for CertificateError {}
impl std::error::Error for CertificateRefusal {}
