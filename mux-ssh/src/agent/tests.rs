//! The agent protocol against hostile agents.
