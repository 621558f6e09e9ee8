//! mux-cli
