//! Many targets as one short text: `web[01-19]`, `r[1-4]n[1-9]`, padding, users and ports kept. What it gives can be
//! typed again and means the same set; it never merges names that differ in anything but a number.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use super::range::MAX_DIGITS;
use super::{Target, shown};

/// The folded text of targets, in order of first mention.
#[must_use]
pub fn fold<'a>(targets: impl IntoIterator<Item = &'a Target>) -> String {
    let mut groups = Groups::default();
    for target in targets {
        groups.add(target.user.as_deref(), &target.host, target.port);
    }
    groups.text()
}

/// The folded text of plain host names.
#[must_use]
pub fn fold_names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut groups = Groups::default();
    names.into_iter().for_each(|name| groups.add(None, name, None));
    groups.text()
}

/// What targets must have in common to share a text: all but their numbers.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Shape<'a> {
    user: Option<&'a str>,
    port: Option<u16>,
    /// The text before each number and after the last one.
    texts: Vec<&'a str>,
}

#[derive(Default)]
struct Groups<'a> {
    order: Vec<(Shape<'a>, Vec<Vec<&'a str>>)>,
    places: HashMap<Shape<'a>, usize>,
}

impl<'a> Groups<'a> {
    fn add(&mut self, user: Option<&'a str>, host: &'a str, port: Option<u16>) {
        let (texts, numbers) = dissect(host);
        let shape = Shape { user, port, texts };
        let place = *self.places.entry(shape.clone()).or_insert(self.order.len());
        match self.order.get_mut(place) {
            Some((_, members)) => members.push(numbers),
            None => self.order.push((shape, vec![numbers])),
        }
    }

    fn text(&self) -> String {
        let mut parts = Vec::new();
        for (shape, members) in &self.order {
            for product in merge(members) {
                parts.push(shape.text(&product));
            }
        }
        parts.join(",")
    }
}

impl Shape<'_> {
    fn text(&self, product: &[BTreeSet<Number<'_>>]) -> String {
        let mut host = String::new();
        let mut texts = self.texts.iter();
        for dimension in product {
            host.push_str(texts.next().expect("a text before each number"));
            write_dimension(&mut host, dimension);
        }
        host.push_str(texts.next().expect("a text after the last number"));
        shown(self.user, &host, self.port)
    }
}

/// A name's fixed texts and its numbers. Addresses with colons stay whole: a range in one can't be typed.
fn dissect(host: &str) -> (Vec<&str>, Vec<&str>) {
    if host.contains(':') {
        return (vec![host], Vec::new());
    }
    let (mut texts, mut numbers) = (Vec::new(), Vec::new());
    let (mut text_start, mut rest_at) = (0, 0);
    while let Some(found) = host
        .get(rest_at..)
        .and_then(|rest| rest.find(|c: char| c.is_ascii_digit()))
    {
        let start = rest_at + found;
        let tail = host.get(start..).expect("a digit starts a character");
        let len = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        rest_at = start + len;
        if len <= MAX_DIGITS {
            texts.push(host.get(text_start..start).expect("ends before a digit"));
            numbers.push(host.get(start..rest_at).expect("the digits"));
            text_start = rest_at;
        }
    }
    texts.push(host.get(text_start..).expect("starts after a digit"));
    (texts, numbers)
}

/// A number as written. Sorted by kind of padding, then value, so that each run of neighbours is a range.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Number<'a> {
    /// The number of digits if any number of this length in its dimension is padded, else 0.
    width: usize,
    value: u64,
    digits: &'a str,
}

/// Members as products of sets of numbers, one set a dimension: members that differ in one dimension only are merged,
/// the last dimension first.
fn merge<'a>(members: &[Vec<&'a str>]) -> Vec<Vec<BTreeSet<Number<'a>>>> {
    let dimensions = members.first().map_or(0, Vec::len);
    let mut products: Vec<Vec<BTreeSet<Number<'a>>>> = vec![Vec::with_capacity(dimensions); members.len()];
    for dimension in 0..dimensions {
        let column = || members.iter().filter_map(|member| member.get(dimension).copied());
        let padded: BTreeSet<usize> = column()
            .filter(|digits| is_padded(digits))
            .map(str::len)
            .collect();
        for (product, digits) in products.iter_mut().zip(column()) {
            let width = if padded.contains(&digits.len()) {
                digits.len()
            } else {
                0
            };
            let value = digits.parse().expect("at most 18 digits");
            product.push(BTreeSet::from([Number { width, value, digits }]));
        }
    }
    for dimension in (0..dimensions).rev() {
        products = merge_dimension(products, dimension);
    }
    if dimensions == 0 {
        products.truncate(1);
    }
    products
}

fn merge_dimension<'a>(
    products: Vec<Vec<BTreeSet<Number<'a>>>>,
    dimension: usize,
) -> Vec<Vec<BTreeSet<Number<'a>>>> {
    let mut merged: Vec<Vec<BTreeSet<Number<'a>>>> = Vec::new();
    let mut places: HashMap<Vec<BTreeSet<Number<'a>>>, usize> = HashMap::new();
    for mut product in products {
        let numbers = product.get_mut(dimension).map(std::mem::take).unwrap_or_default();
        let place = *places.entry(product.clone()).or_insert(merged.len());
        if place == merged.len() {
            merged.push(product);
        }
        let slot = merged
            .get_mut(place)
            .and_then(|product| product.get_mut(dimension));
        slot.expect("its place was just made").extend(numbers);
    }
    merged
}

fn is_padded(digits: &str) -> bool {
    digits.len() > 1 && digits.starts_with('0')
}

/// A number alone as it is, several in brackets, neighbours as ranges.
fn write_dimension(out: &mut String, numbers: &BTreeSet<Number<'_>>) {
    let mut runs: Vec<(Number<'_>, Number<'_>)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if last.width == number.width && last.value + 1 == number.value => *last = number,
            _ => runs.push((number, number)),
        }
    }
    if let [(first, last)] = runs.as_slice()
        && first == last
    {
        out.push_str(first.digits);
        return;
    }
    out.push('[');
    for (index, (first, last)) in runs.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        let range = if first == last { "" } else { "-" };
        let end = if first == last { "" } else { last.digits };
        write!(out, "{comma}{}{range}{end}", first.digits).expect("writing to a String does not fail");
    }
    out.push(']');
}
