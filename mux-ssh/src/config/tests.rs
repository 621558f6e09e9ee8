//! The configuration of hosts against tables of files.
