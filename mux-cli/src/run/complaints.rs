//! What is to be said once, however many hosts it concerns. Decides when it is enough; prints nothing.

use std::collections::BTreeSet;

/// What is wrong with files that somebody named, each said once however many hosts it concerns.
#[derive(Debug, Default)]
pub(super) struct Complaints {
    said: BTreeSet<String>,
    pub(super) waiting: Vec<String>,
}

/// With a key file for each host and none of them there, more would say nothing new; the host's error has its own.
const MAX_COMPLAINTS: usize = 20;

impl Complaints {
    pub(super) fn add(&mut self, text: &str) {
        if self.said.len() > MAX_COMPLAINTS || !self.said.insert(text.to_owned()) {
            return;
        }
        let text = if self.said.len() > MAX_COMPLAINTS {
            "further key files can't be used"
        } else {
            text
        };
        self.waiting.push(text.to_owned());
    }
}
