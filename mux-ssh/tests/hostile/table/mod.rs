//! The table of what a hostile or broken server, agent or file does, one row a case: its name, the layer, what kind of
//! wrong it is, what is done, and how the client must take it. Decides what is right; runs nothing by itself.
//!
//! The crate that includes this module says with the macro `named!` what becomes of a row's name: the suite makes a
//! test of each, the others (bounded memory, good hosts beside the hostile ones) go through the rows by themselves.
//! Names that a row's author thought of are grouped by layer; within a layer every kind of wrong occurs.

pub(crate) mod agent;
pub(crate) mod certificates;
pub(crate) mod connection;
pub(crate) mod files;
pub(crate) mod harness;
pub(crate) mod jumps;
pub(crate) mod kex;
pub(crate) mod login;
pub(crate) mod packets;
pub(crate) mod prompts;
pub(crate) mod rekey;

use self::harness::Case;

/// Where it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    /// Identification and packets.
    Transport,
    /// Key exchanges, the first and all later ones.
    Kex,
    /// RFC 4252.
    Login,
    /// RFC 4254.
    Connection,
    /// The agent's protocol.
    Agent,
    /// Key files, known_hosts, ssh_config and the names in them.
    Files,
}

/// In which way it is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Of a field, a packet, a list, a text: none, too much, less than said.
    Length,
    /// Two things in the wrong order, or one of them twice.
    Order,
    /// Anything without end.
    Flood,
    /// Nothing any more.
    Stall,
    /// A message, a key, an algorithm of another type.
    Type,
    /// The right thing at a time when it can't come.
    Time,
    /// A number, a name or an id that means nothing or something else.
    Id,
    /// Made by somebody who does not hold the key.
    Forgery,
    /// Not wrong at all, or less than it looks: it must work.
    Harmless,
}

/// All kinds.
pub(crate) const KINDS: [Kind; 9] = [
    Kind::Length,
    Kind::Order,
    Kind::Flood,
    Kind::Stall,
    Kind::Type,
    Kind::Time,
    Kind::Id,
    Kind::Forgery,
    Kind::Harmless,
];

/// How a row is run.
#[derive(Clone, Copy)]
pub(crate) enum Run {
    /// Each of these against a client; every one says how it must end.
    Servers(fn() -> Vec<Case>),
    /// This, which fails by panicking: there is no server in it.
    Alone(fn()),
}

/// One case, or a handful that differ in a number only.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) layer: Layer,
    pub(crate) kind: Kind,
    /// What the other side does.
    pub(crate) does: &'static str,
    pub(crate) run: Run,
}

impl Row {
    /// Runs all cases of the row.
    pub(crate) fn check(&self) {
        match self.run {
            Run::Servers(cases) => cases().into_iter().for_each(Case::check),
            Run::Alone(check) => check(),
        }
    }

    /// The cases with a server in them.
    pub(crate) fn cases(&self) -> Vec<Case> {
        match self.run {
            Run::Servers(cases) => cases(),
            Run::Alone(_) => Vec::new(),
        }
    }
}

/// Every row.
pub(crate) fn rows() -> impl Iterator<Item = &'static Row> {
    [
        packets::ROWS,
        kex::ROWS,
        certificates::ROWS,
        rekey::ROWS,
        login::ROWS,
        prompts::ROWS,
        connection::ROWS,
        jumps::ROWS,
        agent::ROWS,
        files::ROWS,
    ]
    .into_iter()
    .flatten()
}

/// Runs the row of this name.
pub(crate) fn check(name: &str) {
    let row = rows().find(|row| row.name == name);
    row.unwrap().check();
}

/// Rows of one layer: `name, kind, "what is done" => cases;`.
macro_rules! table_rows {
    ($layer:ident: $($name:ident, $kind:ident, $does:literal => $cases:expr;)+) => {
        pub(crate) const ROWS: &[$crate::table::Row] = &[$(
            $crate::table::Row {
                name: stringify!($name),
                layer: $crate::table::Layer::$layer,
                kind: $crate::table::Kind::$kind,
                does: $does,
                run: $cases,
            },
        )+];
        $(named!($name);)+
    };
}
pub(crate) use table_rows;
