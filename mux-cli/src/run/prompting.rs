//! Passwords, and what servers want to know besides: each thing is asked once for all hosts that want to know the same.
//! Decides who shares an answer, when the question is due and in which words it is asked; it never sees what an answer
//! is good for.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use mux_ssh::client::{Field, Prompt, QuestionId};
use mux_ssh::{Printable, Secret};

use super::gathering::{MOST, QUIET};
use super::net::Net;
use super::outside::Outside;
use super::questions::Question;
use super::terminal::Echo;
use crate::hub::{Answer, RequestId, Ticket};

/// Lines of a server's instruction that are shown; a page of legal text fits.
const MAX_LINES: usize = 60;

/// Why there is no answer.
const NOT_ASKED: &str = "nobody was asked";
const NOBODY: &str = "there is no terminal to ask on, and no program (SSH_ASKPASS)";

/// What somebody is asked. Hosts for which it is the same share the answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Subject {
    user: String,
    /// The jump host, if it is one: what is right there is nobody else's to know.
    hop: Option<RequestId>,
    prompt: Prompt,
}

/// One host that waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    ticket: Ticket,
    question: QuestionId,
}

#[derive(Debug)]
enum State {
    /// To be asked, with the moments at which the first and the last host came.
    Gathering(Instant, Instant),
    /// Waits for its turn, or is being asked.
    Due,
    Answered(Result<Vec<Secret>, String>),
}

/// All questions of a run.
#[derive(Debug, Default)]
pub(super) struct Prompting {
    subjects: HashMap<Subject, (State, Vec<Waiting>)>,
    /// How many hosts there are for each user.
    users: HashMap<String, usize>,
}

/// A question as it stands on the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Each with what stands above it.
    pub(crate) fields: Vec<(String, Echo)>,
    /// It is our question, and not a server's.
    pub(crate) is_password: bool,
}

impl Prompting {
    /// There is another host for this user.
    pub(super) fn add(&mut self, user: &str) {
        *self.users.entry(user.to_owned()).or_default() += 1;
    }

    /// When the next question is due, unless everybody who can come is there before.
    fn due(&self) -> Option<Instant> {
        let gathering = self.subjects.values().filter_map(|(state, _)| state.due());
        gathering.min()
    }

    pub(super) fn stood_still(&mut self, late: Duration) {
        for (state, _) in self.subjects.values_mut() {
            if let State::Gathering(first, last) = state {
                *first += late;
                *last += late;
            }
        }
    }

    /// This attempt is over.
    pub(super) fn forget(&mut self, ticket: Ticket) {
        for (_, waiting) in self.subjects.values_mut() {
            waiting.retain(|one| one.ticket != ticket);
        }
    }

    /// Requests that wait for an answer.
    pub(super) fn waiting(&self) -> impl Iterator<Item = RequestId> {
        let waiting = self.subjects.values().flat_map(|(_, waiting)| waiting);
        waiting.map(|one| one.ticket.request)
    }
}

impl State {
    fn due(&self) -> Option<Instant> {
        match self {
            Self::Gathering(first, last) => Some((*first + MOST).min(*last + QUIET)),
            Self::Due | Self::Answered(_) => None,
        }
    }
}

impl Outside {
    /// A host wants to know something.
    pub(super) fn prompt(
        &mut self,
        now: Instant,
        net: &mut Net,
        ticket: Ticket,
        (question, prompt): (QuestionId, Prompt),
    ) {
        let Some(known) = self.targets.get(&ticket.request) else {
            return;
        };
        let subject = Subject {
            user: known.user.clone(),
            hop: known.is_hop.then_some(ticket.request),
            prompt,
        };
        let one = Waiting { ticket, question };
        let entry = self.prompting.subjects.entry(subject);
        let entry = entry.or_insert_with(|| (State::Gathering(now, now), Vec::new()));
        match entry {
            (State::Answered(answers), _) => {
                let answers = answers.clone();
                return self.answer(ticket, Answer::Prompted { question, answers });
            }
            (State::Gathering(_, last), waiting) => {
                *last = now;
                waiting.push(one);
            }
            (State::Due, waiting) => waiting.push(one),
        }
        self.answer(ticket, Answer::Asking(true));
        if self.asks_no_more {
            self.give_up_prompts();
        }
        self.ask_prompts(now, net);
    }

    /// When a question is due for which hosts were gathered.
    pub(super) fn prompts_due(&self) -> Option<Instant> {
        self.prompting.due()
    }

    /// Asks what is due, or what everybody waits for who can.
    pub(super) fn ask_prompts(&mut self, now: Instant, net: &mut Net) {
        let mut due = Vec::new();
        for (subject, (state, waiting)) in &mut self.prompting.subjects {
            let all = all(&self.prompting.users, subject);
            let is_due = |at| at <= now || waiting.len() >= all;
            if state.due().is_some_and(is_due) {
                *state = State::Due;
                due.push(subject.clone());
            }
        }
        for subject in due {
            self.questions.push(Question::Prompt(subject));
        }
        self.ask_next(now, net);
    }

    /// How to ask about this; `None`: those who wanted to know are gone.
    pub(super) fn asked(&self, subject: &Subject) -> Option<Asked> {
        let (_, waiting) = self.prompting.subjects.get(subject)?;
        let waiting: Vec<RequestId> = waiting.iter().map(|one| one.ticket.request).collect();
        if waiting.is_empty() {
            return None;
        }
        Some(subject.asked(&self.who(subject, &waiting)))
    }

    /// For whom: `deploy@web1` where only one host has this user, else `deploy` and `3 hosts: web[1-3]`.
    fn who(&self, subject: &Subject, waiting: &[RequestId]) -> Who {
        let names = self.names(waiting);
        let all = all(&self.prompting.users, subject);
        let user = Printable::new(&subject.user);
        let count = waiting.len();
        if all == 1 {
            let known = waiting.first().and_then(|request| self.targets.get(request));
            let host = known.map_or(names.as_str(), |known| &known.shown.host);
            return Who::One(format!("{user}@{}", Printable::new(host)));
        }
        let so_far = if count < all { " so far" } else { "" };
        let hosts = if count == 1 { "host" } else { "hosts" };
        Who::Many {
            user: user.to_string(),
            hosts: format!("{count} {hosts}{so_far}: {names}"),
        }
    }

    /// Somebody has answered, or there is no answer.
    pub(super) fn answered(&mut self, subject: &Subject, answers: Result<Vec<Secret>, String>) {
        let method = subject.prompt.method().name();
        let answers = answers.map_err(|reason| format!("{method}: {reason}"));
        let Some((state, waiting)) = self.prompting.subjects.get_mut(subject) else {
            return;
        };
        *state = State::Answered(answers.clone());
        for Waiting { ticket, question } in std::mem::take(waiting) {
            self.answer(ticket, Answer::Asking(false));
            let answers = answers.clone();
            self.answer(ticket, Answer::Prompted { question, answers });
        }
    }

    /// Those who wanted to know are gone: the question is forgotten.
    pub(super) fn nobody_waits(&mut self, subject: &Subject) {
        self.prompting.subjects.remove(subject);
    }

    pub(super) fn nobody_to_ask(&mut self, subject: &Subject) {
        self.answered(subject, Err(NOBODY.to_owned()));
    }

    /// Nobody is asked any more.
    pub(super) fn give_up_prompts(&mut self) {
        let open = self.prompting.subjects.iter();
        let open = open.filter(|(_, (state, _))| !matches!(state, State::Answered(_)));
        let open: Vec<Subject> = open.map(|(subject, _)| subject.clone()).collect();
        for subject in open {
            self.answered(&subject, Err(NOT_ASKED.to_owned()));
        }
    }
}

/// How many hosts may want to know this.
fn all(users: &HashMap<String, usize>, subject: &Subject) -> usize {
    match subject.hop {
        Some(_) => 1,
        None => users.get(&subject.user).copied().unwrap_or_default(),
    }
}

/// Who wants to know, for the words of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Who {
    /// The only host with this user.
    One(String),
    Many {
        user: String,
        hosts: String,
    },
}

impl Subject {
    fn asked(&self, who: &Who) -> Asked {
        let fields = match (&self.prompt, who) {
            (Prompt::Password { refused: 0 }, Who::One(who)) => {
                vec![(format!("{who}'s password: "), Echo::Hidden)]
            }
            (Prompt::Password { .. }, Who::One(who)) => {
                let question = format!("Permission denied, please try again.\n{who}'s password: ");
                vec![(question, Echo::Hidden)]
            }
            (Prompt::Password { .. }, Who::Many { user, hosts }) => {
                vec![(format!("password for {user}@ ({hosts}): "), Echo::Hidden)]
            }
            (
                Prompt::Interactive {
                    name,
                    instruction,
                    fields,
                },
                who,
            ) => {
                let who = match who {
                    Who::One(who) => who.clone(),
                    Who::Many { user, hosts } => format!("{user}@, {hosts}"),
                };
                let mut above = lines(name) + &lines(instruction);
                let asked = |field: &Field| {
                    let echo = if field.echo { Echo::Shown } else { Echo::Hidden };
                    let text = Printable::new(&field.text);
                    (format!("{}({who}) {text}", std::mem::take(&mut above)), echo)
                };
                fields.iter().map(asked).collect()
            }
        };
        Asked {
            fields,
            is_password: matches!(self.prompt, Prompt::Password { .. }),
        }
    }
}

/// What a server says, line by line.
fn lines(text: &str) -> String {
    let lines = text.trim_end().lines().take(MAX_LINES);
    lines.map(|line| format!("{}\n", Printable::new(line))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(prompt: Prompt, who: &Who, expected: &[(&str, Echo)]) {
        let subject = Subject {
            user: "deploy".to_owned(),
            hop: None,
            prompt,
        };
        let fields = expected.iter().map(|(text, echo)| ((*text).to_owned(), *echo));
        assert_eq!(subject.asked(who).fields, fields.collect::<Vec<_>>());
    }

    fn many() -> Who {
        Who::Many {
            user: "deploy".to_owned(),
            hosts: "3 hosts: web[1-3]".to_owned(),
        }
    }

    #[test]
    fn a_password_is_asked_for_as_by_ssh_where_there_is_one_host() {
        let one = Who::One("deploy@web1".to_owned());
        check(
            Prompt::Password { refused: 0 },
            &one,
            &[("deploy@web1's password: ", Echo::Hidden)],
        );
        check(
            Prompt::Password { refused: 1 },
            &one,
            &[(
                "Permission denied, please try again.\ndeploy@web1's password: ",
                Echo::Hidden,
            )],
        );
        let many = many();
        check(
            Prompt::Password { refused: 0 },
            &many,
            &[("password for deploy@ (3 hosts: web[1-3]): ", Echo::Hidden)],
        );
        check(
            Prompt::Interactive {
                name: String::new(),
                instruction: String::new(),
                fields: vec![Field {
                    text: "Code: ".to_owned(),
                    echo: true,
                }],
            },
            &many,
            &[("(deploy@, 3 hosts: web[1-3]) Code: ", Echo::Shown)],
        );
    }

    #[test]
    fn what_a_server_says_can_move_nothing_and_stands_above_its_first_question() {
        let field = |text: &str, echo| Field {
            text: text.to_owned(),
            echo,
        };
        check(
            Prompt::Interactive {
                name: "\x1b]0;x\x07".to_owned(),
                instruction: "one\r\n\x1b[2Jtwo\n\n".to_owned(),
                fields: vec![field("Pass\x1b[8mword:\n ", false), field("Code: ", true)],
            },
            &Who::One("deploy@web1".to_owned()),
            &[
                (
                    "^[]0;x^G\none\n^[[2Jtwo\n(deploy@web1) Pass^[[8mword:  ",
                    Echo::Hidden,
                ),
                ("(deploy@web1) Code: ", Echo::Shown),
            ],
        );
        let long = Prompt::Interactive {
            name: String::new(),
            instruction: "x\n".repeat(1000),
            fields: vec![field("?", false)],
        };
        let asked = Subject {
            user: String::new(),
            hop: None,
            prompt: long,
        }
        .asked(&many());
        let shown = asked.fields.first().map(|(text, _)| text.lines().count());
        assert_eq!(shown, Some(MAX_LINES + 1));
    }
}
