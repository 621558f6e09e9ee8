//! A client against servers, agents and files that are wrong on purpose. The table of what they do and of how the client
//! must take it stands in `table/`; here each of its rows is a test with the row's name, through the whole client.
//! What is expected is an exact error (or none), every command told its end exactly once, bounded buffers and bounded
//! work.
//!
//! Bounded memory, row by row: `hostile_memory.rs`. That such servers change nothing for others on the same loop:
//! `mux-cli/tests/hostile_among_good.rs`. What exists only later (jumps, files over SSH) is not
//! in it.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    clippy::cast_possible_truncation,
    dead_code,
    reason = "a test fails by panicking, and looks at the events that it is about; others use more of the table"
)]

/// A row is a test.
macro_rules! named {
    ($name:ident) => {
        #[test]
        fn $name() {
            $crate::table::check(stringify!($name));
        }
    };
}

mod table;

use std::collections::HashSet;

use table::{KINDS, Layer, rows};

#[test]
fn every_row_has_a_name_of_its_own_and_says_what_is_done() {
    let mut names = HashSet::new();
    for row in rows() {
        assert!(names.insert(row.name), "{} twice", row.name);
        assert!(!row.does.is_empty(), "{}", row.name);
    }
}

/// Whoever adds a layer or a kind has to think of all of them.
#[test]
fn every_layer_has_rows_of_every_kind_that_it_can_have() {
    use table::Kind;
    let impossible = |layer, kind| match layer {
        // Nobody proves anything to an agent's client, and its deadlines are its owner's.
        Layer::Agent => matches!(kind, Kind::Forgery | Kind::Time),
        // Files neither wait nor answer.
        Layer::Files => matches!(kind, Kind::Time | Kind::Stall),
        // Its packets are authenticated one by one; who forges them is met a layer below.
        Layer::Connection => kind == Kind::Forgery,
        Layer::Transport | Layer::Kex | Layer::Login => false,
    };
    for layer in [
        Layer::Transport,
        Layer::Kex,
        Layer::Login,
        Layer::Connection,
        Layer::Agent,
        Layer::Files,
    ] {
        for kind in KINDS {
            let there = rows().any(|row| (row.layer, row.kind) == (layer, kind));
            assert!(
                there || impossible(layer, kind),
                "no row for {kind:?} in {layer:?}"
            );
        }
    }
}
