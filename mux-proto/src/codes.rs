//! The numbers that say why a channel or a link ended, as two tables. They decide nothing; unknown numbers are kept.

use std::fmt;

macro_rules! codes {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $code:ident = $number:literal, $words:literal;)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$doc])* $code,)+
            /// A number that this version has no name for.
            Other(u16),
        }

        impl $name {
            /// Every code that has a name.
            pub const ALL: &[Self] = &[$(Self::$code,)+];

            /// The code with this number.
            #[must_use]
            pub fn from_number(number: u16) -> Self {
                match number {
                    $($number => Self::$code,)+
                    other => Self::Other(other),
                }
            }

            /// The number on the wire.
            #[must_use]
            pub fn number(self) -> u16 {
                match self {
                    $(Self::$code => $number,)+
                    Self::Other(number) => number,
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$code => f.write_str($words),)+
                    Self::Other(number) => write!(f, "reason {number}"),
                }
            }
        }
    };
}

codes! {
    /// Why a channel was reset.
    ResetCode {
        /// Whoever opened it doesn't want it any more.
        Cancelled = 1, "cancelled";
        /// Whoever was asked doesn't want to.
        Refused = 2, "refused";
        /// No channel of this kind can be opened there.
        UnknownKind = 3, "unknown kind of channel";
        /// The arguments of this kind are not those.
        BadArguments = 4, "bad arguments";
        /// More channels, or more openers, than the other side takes.
        TooMany = 5, "too many channels";
        /// The frame may not come from this side: authority goes downward only.
        NotAllowed = 6, "not allowed from this side";
        /// The source does not lie beneath the link that the frame came in on.
        Forged = 7, "the source is not beneath this link";
        /// Nobody here has the number of the destination.
        NoRoute = 8, "no such node";
        /// The node, or the link to it, went away.
        Gone = 9, "the node is gone";
        /// More bytes than credit was given for.
        CreditExceeded = 10, "more data than allowed";
        /// Credit of zero, or beyond the maximum.
        BadCredit = 11, "bad credit";
        /// The number of the channel is not higher than the last.
        BadNumber = 12, "bad channel number";
        /// Nobody has opened that channel.
        UnknownChannel = 13, "unknown channel";
        /// Data, or a second end, after the end.
        AfterFinish = 14, "data after the end";
        /// The body is not what the specification has for this kind of frame.
        Malformed = 15, "malformed body";
        /// It was tried and did not work.
        Failed = 16, "failed";
    }
}

codes! {
    /// Why a link ends.
    GoodbyeCode {
        /// Nothing is left to do.
        Done = 1, "done";
        /// A newer process takes over.
        Restart = 2, "restarting";
        /// Nothing was done for too long.
        Idle = 3, "idle";
        /// The other side broke the protocol.
        Violation = 4, "protocol broken";
        /// The two have nothing in common.
        Incompatible = 5, "incompatible";
        /// The other side said nothing for too long.
        Silent = 6, "silent";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_there_and_back() {
        for number in 0..40 {
            assert_eq!(ResetCode::from_number(number).number(), number);
            assert_eq!(GoodbyeCode::from_number(number).number(), number);
        }
        assert_eq!(ResetCode::ALL.len(), 16);
        assert_eq!(ResetCode::from_number(7), ResetCode::Forged);
        assert_eq!(ResetCode::from_number(999), ResetCode::Other(999));
    }
}
