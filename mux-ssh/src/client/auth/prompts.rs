//! The methods that need a person: keyboard-interactive (RFC 4256) and password (RFC 4252 §8). Decides what a server may
//! ask, and what becomes of the answers; it asks nobody, and keeps no answer.

use super::{Auth, Progress, Prompting, Request, Step};
use crate::client::events::Events;
use crate::client::incoming::cut;
use crate::client::packet::Packet;
use crate::client::{AuthMethod, AuthViolation, Event, Field, Prompt, QuestionId, userauth};
use crate::wire::Reader;
use crate::{Secret, Violation};

/// Questions at a time: what a conversation of PAM has at most (`PAM_MAX_NUM_MSG`).
const MAX_FIELDS: u32 = 32;

/// Title, instruction and questions together: as much as four pages of legal text.
const MAX_PROMPT_BYTES: usize = 16 * 1024;

/// Rounds of questions in one login, those without a question included: password, code, a new password twice and some
/// remarks are a handful.
const MAX_ROUNDS: u32 = 32;

/// What a server says about an expired password.
const MAX_WORDS: usize = 1024;

impl Auth {
    /// Asks for the server's questions.
    pub(super) fn interactive(&self) -> Step {
        Step::Send(
            Request::Interactive { answered: false },
            Packet::Userauth(userauth::keyboard_interactive(
                &self.config.user,
                &self.config.methods.devices,
            )),
        )
    }

    pub(super) fn password(&mut self, events: &mut Events) -> Step {
        let refused = self.passwords;
        self.prompt(Prompting::Password, Prompt::Password { refused }, events)
    }

    fn prompt(&mut self, about: Prompting, prompt: Prompt, events: &mut Events) -> Step {
        let question = self.question();
        events.push(Event::Prompt { id: question, prompt });
        Step::Prompting { question, about }
    }

    /// The server has questions (RFC 4256 §3.2). Without one there is something to read at most, and no answer is an
    /// answer.
    pub(super) fn info_request(
        &mut self,
        mut reader: Reader<'_>,
        answered: bool,
        events: &mut Events,
    ) -> Result<Progress, Violation> {
        self.rounds += 1;
        if self.rounds > MAX_ROUNDS {
            return Err(AuthViolation::PromptFlood.into());
        }
        let (name, instruction, _language) = (reader.string()?, reader.string()?, reader.string()?);
        let count = reader.uint32()?;
        if count > MAX_FIELDS {
            return Err(AuthViolation::TooManyPrompts.into());
        }
        let mut length = name.len() + instruction.len();
        let mut fields = Vec::new();
        for _ in 0..count {
            let text = reader.string()?;
            length += text.len();
            if length > MAX_PROMPT_BYTES {
                break;
            }
            fields.push(Field {
                text: String::from_utf8_lossy(text).into_owned(),
                echo: reader.boolean()?,
            });
        }
        if length > MAX_PROMPT_BYTES {
            return Err(AuthViolation::TooManyPrompts.into());
        }
        reader.finish()?;
        let [name, instruction] = [name, instruction].map(|text| String::from_utf8_lossy(text).into_owned());
        self.step = if fields.is_empty() {
            let said = [name, instruction].into_iter().filter(|text| !text.is_empty());
            events.extend(said.map(Event::Banner));
            let none = Packet::Secret(userauth::responses(&[]));
            Step::Send(Request::Interactive { answered }, none)
        } else {
            let about = Prompting::Interactive(fields.len());
            let prompt = Prompt::Interactive {
                name,
                instruction,
                fields,
            };
            self.prompt(about, prompt, events)
        };
        Ok(Progress::Waits)
    }

    /// The password has expired. That is said; no new one is made up here, and this one will not do.
    pub(super) fn change_request(
        &mut self,
        mut reader: Reader<'_>,
        events: &mut Events,
    ) -> Result<Progress, Violation> {
        let (words, _language) = (reader.string()?, reader.string()?);
        reader.finish()?;
        self.exhausted.push(AuthMethod::Password);
        events.push(Event::PasswordExpired {
            words: cut(words, MAX_WORDS),
        });
        self.step = Step::Choose;
        // A new request gives this one up, and is all that the server waits for.
        Ok(Progress::Refused)
    }

    /// The owner has answers, or nobody to ask.
    pub(crate) fn answer_prompt(&mut self, question: QuestionId, answers: Option<&[Secret]>) {
        let Step::Prompting {
            question: open,
            about,
        } = self.step
        else {
            return;
        };
        if open != question {
            return;
        }
        self.step = match (about, answers) {
            (Prompting::Password, Some([password])) => {
                let request = userauth::password(&self.config.user, password);
                Step::Send(Request::Password, Packet::Secret(request))
            }
            (Prompting::Interactive(count), Some(answers)) if answers.len() == count => {
                let responses = userauth::responses(answers);
                Step::Send(Request::Interactive { answered: true }, Packet::Secret(responses))
            }
            (Prompting::Password, _) => self.give_up(AuthMethod::Password),
            (Prompting::Interactive(_), _) => self.give_up(AuthMethod::KeyboardInteractive),
        };
        self.answered |= matches!(self.step, Step::Send(..));
    }

    /// The next request of another method ends what the server has begun (RFC 4256 §3.1).
    fn give_up(&mut self, method: AuthMethod) -> Step {
        self.exhausted.push(method);
        Step::Choose
    }
}
