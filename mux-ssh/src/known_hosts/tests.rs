//! known_hosts against tables of lines.
