//! What a connection has taught about the server: what it is not given, and how to make a second one. Values only; who
//! connects again decides elsewhere.

/// What is left out from then on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Caution {
    /// A guess went wrong: guess nothing.
    pub(super) no_guess: bool,
    /// An early signature went wrong: one step at a time.
    pub(super) step_by_step: bool,
    /// The server would hear nothing before `none`; worth remembering.
    pub(super) none_first: bool,
    /// If the server accepts this key, the command may have run in an earlier connection.
    pub(super) doubted: Option<usize>,
    /// Its key is not the one that is known: it gets no password and no answer.
    pub(super) distrusted: bool,
}
