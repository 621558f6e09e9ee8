//! What each kind of server is known to bear, by its identification. One table; it sends nothing itself.
//!
//! Every entry was measured against the server that it names. An unknown server gets what RFC 4252 and 4254 promise
//! and nothing more.

/// A kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Personality {
    OpenSsh,
    Dropbear,
    Paramiko,
    AsyncSsh,
    TinySsh,
    /// The server role of this crate.
    Mux,
    Unknown,
}

/// When the first channel of a connection may be opened and used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstChannel {
    /// Open and exec in one write with the signed request.
    WithAuth,
    /// Open with the signed request; exec after the confirmation, for a request on a channel that is still being
    /// opened ends the connection.
    OpenWithAuth,
    /// Open and exec in one write, but only after the login: earlier packets are left lying until later ones come.
    PairAfterAuth,
    /// Open after the login, exec after the confirmation.
    AfterAuth,
}

/// What number the server gives to a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbering {
    /// 0 to the first one; later ones can't be known, because a number is freed at an unknown time.
    FirstIsZero,
    /// Always the lowest that is free, and a number is free as soon as both sides have closed.
    LowestFree,
    /// The one that the client chose for its own side.
    CopiesOurs,
    /// Nothing is known.
    Unknown,
}

/// What a kind of server bears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Habits {
    pub(crate) first_channel: FirstChannel,
    pub(crate) numbering: Numbering,
    /// After a refused login, packets that were sent ahead are answered UNIMPLEMENTED and the login goes on. The
    /// others end the connection.
    pub(crate) survives_refusal: bool,
    /// An idle channel may stay open beside running commands.
    pub(crate) spare: bool,
    /// Gives one channel in the life of a connection.
    pub(crate) one_channel: bool,
}

impl Personality {
    /// From the software version of the identification line (RFC 4253 §4.2), such as `OpenSSH_9.2p1`.
    pub(crate) fn of(software: &str) -> Self {
        const PREFIXES: [(&str, Personality); 7] = [
            ("OpenSSH_", Personality::OpenSsh),
            ("dropbear", Personality::Dropbear),
            ("paramiko_", Personality::Paramiko),
            ("AsyncSSH_", Personality::AsyncSsh),
            ("tinyssh", Personality::TinySsh),
            // tinysshd of Debian announces itself so, with a random token behind.
            ("TinySSH", Personality::TinySsh),
            ("mux_", Personality::Mux),
        ];
        PREFIXES
            .iter()
            .find(|(prefix, _)| software.starts_with(prefix))
            .map_or(Self::Unknown, |&(_, personality)| personality)
    }

    pub(crate) const fn habits(self) -> Habits {
        match self {
            Self::OpenSsh | Self::Mux => Habits {
                first_channel: FirstChannel::WithAuth,
                numbering: Numbering::FirstIsZero,
                survives_refusal: true,
                spare: true,
                one_channel: false,
            },
            // When any command ends, it closes idle channels, and a command sent to one of those runs while the
            // connection dies: no spare, ever. Its numbering makes up for it.
            Self::Dropbear => Habits {
                first_channel: FirstChannel::WithAuth,
                numbering: Numbering::LowestFree,
                survives_refusal: false,
                spare: false,
                one_channel: false,
            },
            Self::Paramiko => Habits {
                first_channel: FirstChannel::WithAuth,
                numbering: Numbering::FirstIsZero,
                survives_refusal: false,
                spare: true,
                one_channel: false,
            },
            Self::AsyncSsh => Habits {
                first_channel: FirstChannel::OpenWithAuth,
                numbering: Numbering::FirstIsZero,
                survives_refusal: false,
                spare: true,
                one_channel: false,
            },
            Self::TinySsh => Habits {
                first_channel: FirstChannel::PairAfterAuth,
                numbering: Numbering::CopiesOurs,
                survives_refusal: false,
                spare: false,
                one_channel: true,
            },
            Self::Unknown => Habits {
                first_channel: FirstChannel::AfterAuth,
                numbering: Numbering::Unknown,
                survives_refusal: false,
                spare: true,
                one_channel: false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn software_versions_name_their_kind() {
        let check = |software: &str, expected| assert_eq!(Personality::of(software), expected, "{software}");
        check("OpenSSH_9.2p1", Personality::OpenSsh);
        check("OpenSSH_for_Windows_9.5", Personality::OpenSsh);
        check("dropbear_2022.83", Personality::Dropbear);
        check("paramiko_5.1.0", Personality::Paramiko);
        check("AsyncSSH_2.24.1", Personality::AsyncSsh);
        check("tinyssh_20230101", Personality::TinySsh);
        check("mux_0.1.0", Personality::Mux);
        check("Cisco-1.25", Personality::Unknown);
        check("", Personality::Unknown);
        check("notOpenSSH_9.2", Personality::Unknown);
    }
}
