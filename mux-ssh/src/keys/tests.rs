//! Key files against `ssh-keygen`.
