//! Ranges in names: `n[1-9,12]`, `n[001-100]`, `n[1-99/2]`, `r[1-4]n[1-9]`. Numbers only; it never guesses a width.

use std::ops::Range;

use super::MAX_TARGETS;
use super::error::{Problem, TargetErrorKind};

/// The most digits of a number in a range: what fits a `u64` with room for a step.
pub(super) const MAX_DIGITS: usize = 18;

/// The names of `text`, which starts at byte `offset` of the expression and whose brackets are balanced.
pub(super) fn expand(text: &str, offset: usize) -> Result<Vec<String>, Problem> {
    let pieces = pieces(text, offset)?;
    let count = pieces.iter().map(Piece::len).fold(1_u64, u64::saturating_mul);
    if count > MAX_TARGETS as u64 {
        return Err(Problem::new(
            offset..offset + text.len(),
            TargetErrorKind::TooMany,
        ));
    }
    let mut names = vec![String::new()];
    for piece in &pieces {
        names = match piece {
            Piece::Text(text) => names.into_iter().map(|name| name + text).collect(),
            Piece::Numbers(spans) => names
                .iter()
                .flat_map(|name| spans.iter().flat_map(move |span| span.names(name)))
                .collect(),
        };
    }
    Ok(names)
}

/// A part of a name: fixed, or one dimension.
enum Piece<'a> {
    Text(&'a str),
    Numbers(Vec<Span>),
}

impl Piece<'_> {
    fn len(&self) -> u64 {
        match self {
            Self::Text(_) => 1,
            Self::Numbers(spans) => spans.iter().map(Span::len).fold(0, u64::saturating_add),
        }
    }
}

/// `first-last/step`, printed with at least `width` digits.
struct Span {
    first: u64,
    last: u64,
    step: u64,
    width: usize,
}

impl Span {
    fn len(&self) -> u64 {
        (self.last - self.first) / self.step + 1
    }

    fn names<'a>(&'a self, head: &'a str) -> impl Iterator<Item = String> + 'a {
        let numbers = (0..self.len()).map(|i| self.first + i * self.step);
        numbers.map(move |number| format!("{head}{number:0width$}", width = self.width))
    }
}

fn pieces(text: &str, offset: usize) -> Result<Vec<Piece<'_>>, Problem> {
    let mut pieces = Vec::new();
    let (mut rest, mut at) = (text, offset);
    while let Some((head, tail)) = rest.split_once('[') {
        let inside = at + head.len() + 1;
        let (list, after) = tail
            .split_once(']')
            .ok_or_else(|| Problem::new(inside - 1..inside, TargetErrorKind::Unclosed))?;
        pieces.push(Piece::Text(head));
        pieces.push(Piece::Numbers(spans(list, inside)?));
        at = inside + list.len() + 1;
        rest = after;
    }
    pieces.push(Piece::Text(rest));
    Ok(pieces)
}

fn spans(list: &str, offset: usize) -> Result<Vec<Span>, Problem> {
    let mut at = offset;
    let mut spans = Vec::new();
    for item in list.split(',') {
        spans.push(span(item, at..at + item.len())?);
        at += item.len() + 1;
    }
    Ok(spans)
}

/// One item of a list. `whole` is its place, for errors.
fn span(item: &str, whole: Range<usize>) -> Result<Span, Problem> {
    let wrong = |kind| Problem::new(whole.start..whole.end.max(whole.start + 1), kind);
    let number = |digits: &str| {
        let plain = (1..=MAX_DIGITS).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
        plain
            .then(|| digits.parse::<u64>().ok())
            .flatten()
            .ok_or_else(|| wrong(TargetErrorKind::BadRange))
    };
    let (ends, step) = match item.split_once('/') {
        Some((ends, step)) if ends.contains('-') => (ends, number(step)?),
        Some(_) => return Err(wrong(TargetErrorKind::BadRange)),
        None => (item, 1),
    };
    let (low, high) = ends.split_once('-').unwrap_or((ends, ends));
    let (first, last) = (number(low)?, number(high)?);
    let padded = [low, high]
        .iter()
        .any(|end| end.len() > 1 && end.starts_with('0'));
    if padded && low.len() != high.len() {
        return Err(wrong(TargetErrorKind::Padding));
    }
    if first > last {
        return Err(wrong(TargetErrorKind::Backwards));
    }
    if step == 0 {
        return Err(wrong(TargetErrorKind::ZeroStep));
    }
    Ok(Span {
        first,
        last,
        step,
        width: if padded { low.len() } else { 0 },
    })
}
