//! mux-ssh
