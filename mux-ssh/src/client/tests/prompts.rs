//! Logins that need a person: which method comes when, what is asked, and what an answer does.

use super::pair::*;
use crate::client::{AuthMethod, AuthViolation, ChannelFailure, ClientConfig, Event, Field, Methods, Prompt};
use crate::message::*;
use crate::wire::Writer;
use crate::{Error, Secret};

const ALL: &str = "publickey,password,keyboard-interactive";

/// A client with so many keys that goes by every method, in this order.
fn ordered(order: &[AuthMethod], identities: u8) -> ClientConfig {
    let methods = Methods {
        order: order.to_vec(),
        passwords: 3,
        ..Methods::default()
    };
    ClientConfig {
        methods,
        ..config(&keys(identities))
    }
}

/// One command and the first request of a login on its way.
fn begun(ident: &str, config: ClientConfig) -> Pair {
    let identities = config.identities.len();
    let mut pair = Pair::new(ident, config, keys(u8::try_from(identities).unwrap()));
    pair.exec(exec("uptime"));
    pair.run();
    pair.accept_service();
    pair
}

/// With so many keys and OpenSSH's order.
fn login(ident: &str, identities: u8) -> Pair {
    begun(ident, ordered(&AuthMethod::ALL, identities))
}

/// The methods that were asked for since the last look.
fn asked(pair: &mut Pair) -> Vec<String> {
    let requests = pair
        .received
        .iter()
        .filter(|payload| payload[0] == USERAUTH_REQUEST);
    let methods = requests.map(|payload| {
        let mut reader = crate::wire::Reader::new(&payload[1..]);
        let (user, service) = (reader.text().unwrap(), reader.text().unwrap());
        assert_eq!((user, service), ("root", "ssh-connection"));
        reader.text().unwrap().to_owned()
    });
    let methods = methods.collect();
    pair.take_kinds();
    methods
}

/// What somebody is asked last.
fn prompt(pair: &Pair) -> Option<&Prompt> {
    pair.events.iter().rev().find_map(|event| match event {
        Event::Prompt { prompt, .. } => Some(prompt),
        _ => None,
    })
}

fn prompts(pair: &Pair) -> usize {
    let prompts = pair
        .events
        .iter()
        .filter(|event| matches!(event, Event::Prompt { .. }));
    prompts.count()
}

fn answer(pair: &mut Pair, answers: Option<&[&str]>) {
    let id = pair.events.iter().rev().find_map(|event| match event {
        Event::Prompt { id, .. } => Some(*id),
        _ => None,
    });
    let secrets: Option<Vec<Secret>> = answers.map(|answers| {
        answers
            .iter()
            .map(|text| Secret::from((*text).to_owned()))
            .collect()
    });
    pair.client.answer_prompt(id.unwrap(), secrets.as_deref());
    // An answer after which nothing is left ends the connection at the next moment.
    pair.pass(std::time::Duration::ZERO);
}

fn info_request(pair: &mut Pair, fields: &[(&str, bool)]) {
    pair.say(|to| write_info_request(to, ("", ""), fields));
}

fn write_info_request(to: &mut Writer<'_>, (name, instruction): (&str, &str), fields: &[(&str, bool)]) {
    to.byte(USERAUTH_INFO_REQUEST)
        .string(name)
        .string(instruction)
        .string("")
        .uint32(u32::try_from(fields.len()).unwrap());
    for (text, echo) in fields {
        to.string(text).boolean(*echo);
    }
}

/// The last answers that the server has read.
fn responses(pair: &Pair) -> Vec<String> {
    let mut reader = pair.last(USERAUTH_INFO_RESPONSE);
    let count = reader.uint32().unwrap();
    let answers = (0..count).map(|_| reader.text().unwrap().to_owned()).collect();
    reader.finish().unwrap();
    answers
}

fn password(pair: &Pair) -> String {
    let mut reader = pair.last(USERAUTH_REQUEST);
    reader.text().unwrap();
    reader.text().unwrap();
    assert_eq!(reader.text(), Ok("password"));
    assert_eq!(reader.boolean(), Ok(false));
    let password = reader.text().unwrap().to_owned();
    reader.finish().unwrap();
    password
}

fn denied(methods: &[&str], partial: bool) -> Option<Error> {
    let methods = methods.iter().map(|&method| method.to_owned()).collect();
    Some(Error::AuthFailed { methods, partial })
}

#[test]
fn keys_then_questions_then_a_password() {
    let mut pair = login(UNKNOWN, 1);
    assert_eq!(asked(&mut pair), ["publickey"]);
    pair.failure(ALL, false);
    assert_eq!(asked(&mut pair), ["keyboard-interactive"]);
    assert_eq!(
        prompts(&pair),
        0,
        "nobody is asked before the server has a question"
    );
    info_request(&mut pair, &[("Password: ", false), ("Code: ", true)]);
    let field = |text: &str, echo| Field {
        text: text.to_owned(),
        echo,
    };
    assert_eq!(
        prompt(&pair),
        Some(&Prompt::Interactive {
            name: String::new(),
            instruction: String::new(),
            fields: vec![field("Password: ", false), field("Code: ", true)],
        })
    );
    answer(&mut pair, Some(&["wrong", "123"]));
    assert_eq!(responses(&pair), ["wrong", "123"]);
    pair.failure(ALL, false);
    assert_eq!(
        asked(&mut pair),
        [] as [&str; 0],
        "the questions come once, and a password waits for somebody"
    );
    assert_eq!(prompt(&pair), Some(&Prompt::Password { refused: 0 }));
    answer(&mut pair, Some(&["secret"]));
    assert_eq!(password(&pair), "secret");
    pair.take_kinds();
    pair.success();
    assert!(pair.told(&Event::Authenticated { identity: None }));
    let method = AuthMethod::KeyboardInteractive;
    assert!(pair.told(&Event::MethodRefused { method }));
    assert_eq!(pair.take_kinds(), [CHANNEL_OPEN]);
}

#[test]
fn the_order_is_the_owners_as_far_as_the_server_offers_it() {
    use AuthMethod::{KeyboardInteractive, Password, PublicKey};
    let mut pair = begun(UNKNOWN, ordered(&[Password, PublicKey], 1));
    assert_eq!(
        asked(&mut pair),
        ["none"],
        "nobody is asked before the server has said what it takes"
    );
    pair.failure("publickey,keyboard-interactive", false);
    assert_eq!(asked(&mut pair), ["publickey"]);
    pair.failure("publickey,keyboard-interactive", false);
    assert_eq!(pair.error, denied(&["publickey", "keyboard-interactive"], false));
    let mut pair = begun(UNKNOWN, ordered(&[Password, KeyboardInteractive, PublicKey], 1));
    pair.failure(ALL, false);
    assert_eq!(prompt(&pair), Some(&Prompt::Password { refused: 0 }));
    assert_eq!(asked(&mut pair), ["none"]);
}

#[test]
fn methods_that_were_not_wished_for_are_never_used() {
    let mut pair = begun(UNKNOWN, config(&keys(1)));
    pair.failure(ALL, false);
    assert_eq!(
        pair.error,
        denied(&["publickey", "password", "keyboard-interactive"], false)
    );
    assert_eq!(prompts(&pair), 0);
}

#[test]
fn a_password_is_asked_for_as_often_as_allowed() {
    let mut pair = login(OPENSSH, 0);
    assert_eq!(asked(&mut pair), ["none"]);
    pair.failure("password", false);
    for refused in 0..3 {
        assert_eq!(prompt(&pair), Some(&Prompt::Password { refused }));
        answer(&mut pair, Some(&["wrong"]));
        pair.failure("password", false);
    }
    assert_eq!(pair.error, denied(&["password"], false));
    assert_eq!(prompts(&pair), 3);
    assert_eq!(asked(&mut pair), ["password"; 3]);
}

#[test]
fn no_password_at_all_may_be_wished_for() {
    let mut config = ordered(&AuthMethod::ALL, 0);
    config.methods.passwords = 0;
    let mut pair = begun(OPENSSH, config);
    pair.failure("password", false);
    assert_eq!(
        (pair.error.clone(), prompts(&pair)),
        (denied(&["password"], false), 0)
    );
}

#[test]
fn who_has_no_answer_leaves_the_rest_of_the_methods() {
    let mut pair = login(OPENSSH, 0);
    pair.failure("keyboard-interactive,password", false);
    info_request(&mut pair, &[("Code: ", true)]);
    answer(&mut pair, None);
    assert_eq!(prompt(&pair), Some(&Prompt::Password { refused: 0 }));
    answer(&mut pair, None);
    assert_eq!(pair.error, denied(&["keyboard-interactive", "password"], false));
    assert!(!pair.kinds().contains(&USERAUTH_INFO_RESPONSE));
    assert_eq!(asked(&mut pair), ["none", "keyboard-interactive"]);
}

#[test]
fn too_few_answers_are_none() {
    let mut pair = login(OPENSSH, 0);
    pair.failure("keyboard-interactive", false);
    info_request(&mut pair, &[("a", true), ("b", true)]);
    answer(&mut pair, Some(&["one"]));
    assert_eq!(pair.error, denied(&["keyboard-interactive"], false));
}

#[test]
fn a_stale_answer_changes_nothing() {
    let mut pair = login(OPENSSH, 0);
    pair.failure("password", false);
    answer(&mut pair, Some(&["wrong"]));
    let sent = pair.kinds().len();
    answer(&mut pair, Some(&["again"]));
    assert_eq!(pair.kinds().len(), sent);
}

#[test]
fn no_questions_are_answered_at_once_and_the_words_are_told() {
    let mut pair = login(OPENSSH, 0);
    pair.failure("keyboard-interactive", false);
    pair.say(|to| write_info_request(to, ("Notice", "Your password expires in 3 days."), &[]));
    assert_eq!(responses(&pair), [] as [&str; 0]);
    assert!(pair.told(&Event::Banner("Notice".to_owned())));
    assert!(pair.told(&Event::Banner("Your password expires in 3 days.".to_owned())));
    info_request(&mut pair, &[("Password: ", false)]);
    answer(&mut pair, Some(&["secret"]));
    pair.success();
    assert!(pair.told(&Event::Authenticated { identity: None }));
}

#[test]
fn an_expired_password_is_said_and_no_new_one_given() {
    let mut pair = login(OPENSSH, 0);
    pair.failure("password", false);
    answer(&mut pair, Some(&["old"]));
    pair.say(|to| {
        to.byte(USERAUTH_PASSWD_CHANGEREQ)
            .string("Change it.\x1b[2J")
            .string("");
    });
    assert!(pair.told(&Event::PasswordExpired {
        words: "Change it.\x1b[2J".to_owned()
    }));
    assert_eq!(pair.error, denied(&["password"], false));
    assert_eq!(asked(&mut pair), ["none", "password"]);
}

#[test]
fn a_key_and_then_a_password() {
    let mut pair = login(OPENSSH, 1);
    pair.take_kinds();
    pair.failure("password", true);
    assert!(pair.told(&Event::PartialSuccess {
        method: AuthMethod::PublicKey,
        identity: Some(0)
    }));
    answer(&mut pair, Some(&["secret"]));
    assert_eq!(password(&pair), "secret");
    assert_eq!(
        pair.take_kinds(),
        [USERAUTH_REQUEST],
        "nothing goes ahead of the answer to a password"
    );
    pair.success();
    assert_eq!(pair.take_kinds(), [CHANNEL_OPEN, CHANNEL_REQUEST, CHANNEL_EOF]);
}

#[test]
fn a_password_and_then_a_key_that_was_refused_before() {
    let mut pair = login(OPENSSH, 2);
    // The server wants the password first: whatever key comes before is refused.
    pair.failure("password", false);
    assert!(pair.told(&Event::KeyRefused { identity: 0 }));
    answer(&mut pair, Some(&["secret"]));
    pair.take_kinds();
    pair.failure("publickey", true);
    assert_eq!(
        pair.take_kinds(),
        [USERAUTH_REQUEST],
        "no command goes ahead where a refusal would cost a second question"
    );
    pair.success();
    assert!(pair.told(&Event::Authenticated { identity: Some(0) }));
}

#[test]
fn questions_and_then_a_password_whatever_the_order() {
    let mut pair = login(OPENSSH, 0);
    pair.failure("keyboard-interactive", false);
    info_request(&mut pair, &[("Code: ", true)]);
    answer(&mut pair, Some(&["123"]));
    pair.failure("password", true);
    answer(&mut pair, Some(&["wrong"]));
    pair.failure("password", false);
    assert_eq!(prompt(&pair), Some(&Prompt::Password { refused: 1 }));
    answer(&mut pair, None);
    assert_eq!(pair.error, denied(&["password"], true));
}

#[test]
fn questions_twice_if_the_first_were_right() {
    let mut pair = login(OPENSSH, 0);
    for code in ["1", "2"] {
        pair.failure("keyboard-interactive", code == "2");
        info_request(&mut pair, &[("Code: ", true)]);
        answer(&mut pair, Some(&[code]));
        assert_eq!(responses(&pair), [code]);
    }
    pair.failure("keyboard-interactive", true);
    pair.failure("keyboard-interactive", false);
    assert_eq!(pair.error, denied(&["keyboard-interactive"], true));
}

#[test]
fn a_login_of_endless_halves_is_none() {
    let mut pair = login(OPENSSH, 0);
    pair.failure("password", false);
    for _ in 0..16 {
        answer(&mut pair, Some(&["secret"]));
        pair.failure("password", true);
        pair.assert_healthy();
    }
    answer(&mut pair, Some(&["secret"]));
    pair.failure("password", true);
    pair.assert_violation(AuthViolation::EndlessLogin);
}

#[test]
fn a_gambled_key_that_is_refused_leaves_the_password() {
    let mut pair = login(OPENSSH, 1);
    pair.take_kinds();
    pair.failure("publickey,password", false);
    assert_eq!(prompt(&pair), Some(&Prompt::Password { refused: 0 }));
    assert_eq!(pair.take_kinds(), [], "the command waits again");
    answer(&mut pair, Some(&["secret"]));
    pair.success();
    assert!(pair.kinds().contains(&CHANNEL_OPEN));
}

#[test]
fn servers_that_end_after_a_refused_gamble_ask_for_the_one_reconnect_before_anybody_is_asked() {
    for ident in [DROPBEAR, PARAMIKO, ASYNCSSH] {
        for methods in ["publickey,password", "publickey,keyboard-interactive"] {
            let mut pair = login(ident, 1);
            pair.failure(methods, false);
            assert_eq!(
                pair.error,
                Some(Error::EarlyAuthRefused { identity: Some(0) }),
                "{ident}"
            );
            assert_eq!(prompts(&pair), 0);
        }
        let mut pair = login(ident, 1);
        pair.failure("hostbased", false);
        assert_eq!(pair.error, denied(&["hostbased"], false), "{ident}");
    }
}

#[test]
fn no_second_connection_is_asked_for_once_somebody_has_answered() {
    for end in [true, false] {
        let mut pair = login(DROPBEAR, 2);
        pair.failure("keyboard-interactive", true);
        assert_eq!(pair.error, Some(Error::EarlyAuthRefused { identity: None }));
        let mut config = ordered(&AuthMethod::ALL, 2);
        config.cautious = true;
        let mut pair = begun(DROPBEAR, config);
        pair.failure("keyboard-interactive,publickey", false);
        pair.failure("keyboard-interactive,publickey", false);
        pair.failure("keyboard-interactive,publickey", false);
        info_request(&mut pair, &[("Code: ", true)]);
        answer(&mut pair, Some(&["1"]));
        pair.failure("publickey", true);
        if end {
            pair.eof();
        } else {
            pair.failure("publickey", false);
            pair.failure("publickey", false);
        }
        assert_eq!(pair.error, denied(&["publickey"], true));
        assert_eq!(prompts(&pair), 1);
    }
}

#[test]
fn the_end_of_the_connection_behind_a_refused_answer_asks_for_no_other_one() {
    let mut pair = login(OPENSSH, 1);
    pair.failure("publickey,password", false);
    answer(&mut pair, Some(&["wrong"]));
    pair.eof();
    assert_eq!(pair.error, denied(&["publickey", "password"], false));
}

#[test]
fn a_server_that_does_not_wait_for_the_answer_has_refused_nothing() {
    let mut pair = login(OPENSSH, 0);
    pair.failure("password", false);
    pair.eof();
    assert_eq!(pair.error, Some(Error::UnexpectedEof));
    let id = super::flights::channel(&pair);
    pair.assert_failed(id, ChannelFailure::ConnectionLost, false);
    // The answer comes too late, and changes nothing.
    let before = pair.kinds().len();
    answer(&mut pair, Some(&["secret"]));
    assert_eq!(pair.kinds().len(), before);
}

#[test]
fn nobody_is_asked_while_an_earlier_login_is_in_doubt() {
    let mut config = ordered(&AuthMethod::ALL, 1);
    config.cautious = true;
    config.doubted = Some(0);
    let mut pair = begun(DROPBEAR, config.clone());
    pair.failure("password", false);
    assert_eq!(
        (pair.error.clone(), prompts(&pair)),
        (denied(&["password"], false), 0)
    );
    let mut pair = begun(DROPBEAR, config);
    pair.failure("publickey,password", false);
    pair.failure("publickey,password", false);
    assert_eq!(prompt(&pair), Some(&Prompt::Password { refused: 0 }));
}

#[test]
fn a_server_with_the_wrong_key_that_is_taken_all_the_same_gets_no_password() {
    let mut pair = Pair::new(OPENSSH, ordered(&AuthMethod::ALL, 0), Vec::new());
    pair.answers = false;
    pair.run();
    pair.client.distrust_server();
    let question = pair.question();
    pair.client.answer_host_key(question, true);
    pair.run();
    pair.accept_service();
    pair.failure("password,keyboard-interactive", false);
    assert_eq!(pair.error, denied(&["password", "keyboard-interactive"], false));
    assert_eq!((asked(&mut pair), prompts(&pair)), (vec!["none".to_owned()], 0));
}

#[test]
fn nothing_is_asked_before_the_host_key_was_accepted() {
    let mut pair = Pair::new(OPENSSH, ordered(&AuthMethod::ALL, 0), Vec::new());
    pair.answers = false;
    pair.exec(exec("uptime"));
    pair.failure("password", false);
    info_request(&mut pair, &[("Password: ", false)]);
    assert_eq!(prompts(&pair), 0);
    assert_eq!(pair.kinds(), [], "the login does not begin");
    let question = pair.question();
    pair.client.answer_host_key(question, false);
    pair.pass(std::time::Duration::ZERO);
    assert_eq!(pair.error, Some(Error::HostKeyRejected));
    assert_eq!((prompts(&pair), pair.kinds()), (0, Vec::new()));
}

#[test]
fn an_answer_stands_in_no_debug_output() {
    let mut pair = login(OPENSSH, 0);
    pair.answers = false;
    pair.failure("password", false);
    let Some(Event::Prompt { id, .. }) = pair.events.last().cloned() else {
        panic!("{:?}", pair.events)
    };
    let secret = Secret::from("correct horse".to_owned());
    pair.client.answer_prompt(id, Some(&[secret]));
    let shown = format!("{:?} {:#?}", pair.client, pair.client);
    assert!(shown.contains("Secret"), "{shown}");
    let bytes = format!("{:?}", "correct horse".as_bytes());
    assert!(
        !shown.contains("correct") && !shown.contains(bytes.trim_matches(['[', ']'])),
        "{shown}"
    );
    pair.run();
    assert_eq!(password(&pair), "correct horse");
}
