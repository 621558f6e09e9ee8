//! The algebra of targets: `,` union, `!` minus, `&` and, `^` exclusive or; equal precedence, left to right, no
//! parentheses. It splits an expression into operands and joins their sets; what an operand means is
//! [`super::operand`]'s business.

use super::error::{Problem, TargetErrorKind};
use super::{Target, TargetSet, operand};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Union,
    Minus,
    And,
    Xor,
}

impl Operator {
    fn of(c: char) -> Option<Self> {
        match c {
            ',' => Some(Self::Union),
            '!' => Some(Self::Minus),
            '&' => Some(Self::And),
            '^' => Some(Self::Xor),
            _ => None,
        }
    }

    fn apply(self, left: TargetSet, right: TargetSet) -> TargetSet {
        match self {
            Self::Union => left.union(right),
            Self::Minus => left.minus(&right),
            Self::And => left.and(&right),
            Self::Xor => left.xor(right),
        }
    }
}

/// A stretch of the expression between two operators.
struct Operand<'a> {
    before: Operator,
    after: Option<Operator>,
    text: &'a str,
    start: usize,
}

pub(super) fn parse(text: &str, known: &[Target]) -> Result<TargetSet, Problem> {
    let mut set = TargetSet::default();
    for part in operands(text)? {
        check_shape(&part)?;
        let blank = part.text.len() - part.text.trim_start().len();
        let right = operand::parse(part.text.trim(), part.start + blank, known)?;
        set = part.before.apply(set, right);
        if set.is_too_large() {
            return Err(Problem::new(
                part.start..part.start + part.text.len(),
                TargetErrorKind::TooMany,
            ));
        }
    }
    Ok(set)
}

/// Splits at operators outside brackets.
fn operands(text: &str) -> Result<Vec<Operand<'_>>, Problem> {
    let mut operands = Vec::new();
    let (mut before, mut start, mut open) = (Operator::Union, 0, None);
    for (at, c) in text.char_indices() {
        match (c, open) {
            ('[', None) => open = Some(at),
            (']', Some(_)) => open = None,
            ('[', Some(_)) | (']', None) => {
                return Err(Problem::new(at..at + 1, TargetErrorKind::StrayBracket));
            }
            _ => {}
        }
        if let (Some(operator), None) = (Operator::of(c), open) {
            operands.push(Operand {
                before,
                after: Some(operator),
                text: &text[start..at],
                start,
            });
            (before, start) = (operator, at + 1);
        }
    }
    if let Some(at) = open {
        return Err(Problem::new(at..at + 1, TargetErrorKind::Unclosed));
    }
    operands.push(Operand {
        before,
        after: None,
        text: &text[start..],
        start,
    });
    Ok(operands)
}

/// Catches what users of other tools type between operators.
fn check_shape(part: &Operand<'_>) -> Result<(), Problem> {
    let text = part.text.trim();
    let end = part.start + part.text.len();
    let in_front = part.before == Operator::Union;
    match (text, part.after) {
        ("", Some(Operator::Xor)) if in_front => Err(Problem::new(end..end + 1, TargetErrorKind::CaretFile)),
        ("", _) => Err(Problem::new(end..end + 1, TargetErrorKind::MissingOperand)),
        (text, Some(Operator::Minus | Operator::And)) if text.ends_with(':') => {
            Err(Problem::new(end - 1..end + 1, TargetErrorKind::AnsiblePattern))
        }
        _ => Ok(()),
    }
}
