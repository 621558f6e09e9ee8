//! The project's own commands: `cargo xtask <verb>`.

fn main() {}
