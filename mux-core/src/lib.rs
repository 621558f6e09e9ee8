//! mux-core
