//! Goes through a session, numbers what it finds, and returns the bytes to replace.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};
use epitome_model::{DecodedLiteral, Source, Span, Splice, decode, encode};
use rayon::prelude::*;

use crate::batch::each_batch;
use crate::check::entropy;
use crate::draft::{Draft, Replacement, applied};
use crate::finder::Finder;
use crate::rule::Kind;
use crate::strings::{Literal, Literals, as_text, is_json};
use crate::view::{self, Unseen, View};
use crate::{base64, placeholder};

/// The maximum nesting of JSON in strings, in base64, and so on. Deeper JSON is searched as plain
/// text, and deeper base64 is not decoded.
const DEPTH: usize = 8;
/// The maximum number of passes over a text, which is searched until nothing is found. No text is
/// known that needs as many.
const ROUNDS: usize = 64;
/// The maximum nesting of codes, as in a shell command in JSON in a log: `\\\\u003d`.
const CODED: usize = 4;
/// The maximum length, in bytes, of a key and of a value that are searched together.
const VALUE: usize = 512;
/// The maximum length of an id in characters: what the APIs permit.
const ID: usize = 64;

/// A secret that was found: its rule, its number and its position, without the secret itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The rule's id.
    pub rule: String,
    /// The kind of the rule.
    pub kind: Kind,
    /// The number of the secret among the secrets of this rule.
    pub number: u32,
    /// The line of the source that contains the secret, from 1.
    pub line: u64,
    /// The byte offset, in the source, of the JSON string in which the secret was found; if it was
    /// not in a JSON string, of the line.
    pub at: u64,
    /// The length of the secret in characters.
    pub chars: usize,
}

impl Found {
    /// The number of different secrets, by rule.
    ///
    /// ```
    /// use epitome_redact::{Finder, Found, Redactor, Rules};
    ///
    /// let finder = Finder::new(Rules::built_in())?;
    /// let mut redactor = Redactor::new(&finder);
    /// let text = "DB_PASSWORD=tr0ub4dor-and-3; mysql -ptr0ub4dor-and-3";
    /// redactor.splices(&text.as_bytes(), &[]);
    /// assert_eq!(Found::count_by_rule(redactor.found())["password-assignment"], 1);
    /// # Ok::<(), epitome_redact::RuleFault>(())
    /// ```
    pub fn count_by_rule(found: &[Found]) -> BTreeMap<String, u64> {
        let values: BTreeSet<(&str, u32)> = found.iter().map(|it| (&*it.rule, it.number)).collect();
        let mut counts = BTreeMap::new();
        for (rule, _) in values {
            *counts.entry(rule.to_owned()).or_default() += 1;
        }
        counts
    }
}

/// Replaces what a [`Finder`] finds with placeholders. The same secret has the same number for the
/// life of the redactor. A credential that cannot be a word is replaced also where no rule would
/// find it.
///
/// ```
/// use epitome_redact::{Finder, Redactor, Rules};
///
/// let finder = Finder::new(Rules::built_in())?;
/// let mut redactor = Redactor::new(&finder);
/// let text = redactor.text("DB_PASSWORD=tr0ub4dor-and-3; mysql -ptr0ub4dor-and-3");
/// assert_eq!(
///     text,
///     "DB_PASSWORD=[REDACTED:password-assignment-1]; mysql -p[REDACTED:password-assignment-1]",
/// );
/// # Ok::<(), epitome_redact::RuleFault>(())
/// ```
pub struct Redactor<'f> {
    finder: &'f Finder,
    /// Rule and number of each secret.
    numbers: BTreeMap<String, (usize, u32)>,
    /// The highest number of each rule.
    last: BTreeMap<String, u32>,
    /// Secrets that are searched for everywhere, and their automaton.
    learned: Vec<String>,
    everywhere: Option<AhoCorasick>,
    found: Vec<Found>,
    line: u64,
    at: u64,
}

/// The replacements in a line, and the findings in it.
type RedactedLine = (Vec<Replacement>, Vec<Found>);

/// Where a text is in a session, and how it is searched.
#[derive(Clone, Copy, Default)]
struct TextContext<'a> {
    /// The key of which the text is the value.
    key: Option<&'a str>,
    /// Whether the text is itself a key.
    is_key: bool,
    /// Whether the text is a long run of base64 in a signed value: then only the text that it
    /// encodes is searched.
    sealed: bool,
    depth: usize,
    /// How many layers of codes, such as `%3D` or `\u003d`, were decoded to get the text.
    decoded: usize,
}

impl<'f> Redactor<'f> {
    /// A redactor that has found nothing yet.
    pub fn new(finder: &'f Finder) -> Redactor<'f> {
        Redactor {
            finder,
            numbers: BTreeMap::new(),
            last: BTreeMap::new(),
            learned: Vec::new(),
            everywhere: None,
            found: Vec::new(),
            line: 0,
            at: 0,
        }
    }

    /// Returns the replacements that remove every finding from a session, sorted and disjoint.
    ///
    /// `sealed` are the spans of signed values, such as reasoning and images, sorted and disjoint.
    /// A string in such a value that is one long run of base64 is searched only as base64. If
    /// anything in the value is replaced, such a string is replaced by an empty one, unless a part
    /// of it is replaced already: the signature no longer matches.
    pub fn splices(&mut self, source: &dyn Source, sealed: &[Span]) -> Vec<Splice> {
        self.count_from(source);
        let known = self.learned.len();
        let first = self.walk(source, sealed);
        if self.learned.len() == known {
            return first;
        }
        // A second pass also replaces the new secrets where no rule finds them.
        self.everywhere = everywhere(&self.learned);
        self.walk(source, sealed)
    }

    /// Learns the secrets of a session. Those that cannot be words are then also found where no
    /// rule finds them, in other sessions and in plain texts.
    pub fn learn(&mut self, source: &dyn Source) {
        self.splices(source, &[]);
    }

    /// Redacts a plain text (a title, a path).
    pub fn text<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        let place = TextContext::default();
        let found = self.found.len();
        let mut replaced = self.replaced(text, place);
        if self.everywhere.as_ref().map_or(0, AhoCorasick::patterns_len) < self.learned.len() {
            self.everywhere = everywhere(&self.learned);
            self.found.truncate(found);
            replaced = self.replaced(text, place);
        }
        if replaced.is_empty() { Cow::Borrowed(text) } else { applied(text, &replaced).into() }
    }

    /// The secrets that were found until now, each with the id of its rule. An id that was replaced
    /// as a whole is one of them.
    pub fn secrets(&self) -> impl Iterator<Item = (&str, &str)> {
        self.numbers
            .iter()
            .map(|(secret, (rule, _))| (secret.as_str(), self.finder.rule(*rule).id.as_str()))
    }

    /// What was found in the last session, in the order of the session, and in the texts that were
    /// redacted after it.
    pub fn found(&self) -> &[Found] {
        &self.found
    }

    /// Takes the findings out, so that the next texts begin without any.
    ///
    /// ```
    /// use epitome_redact::{Finder, Redactor, Rules};
    ///
    /// let finder = Finder::new(Rules::built_in())?;
    /// let mut redactor = Redactor::new(&finder);
    /// redactor.text("DB_PASSWORD=tr0ub4dor-and-3");
    /// assert_eq!(redactor.take_found().len(), 1);
    /// assert_eq!(redactor.found(), []);
    /// # Ok::<(), epitome_redact::RuleFault>(())
    /// ```
    pub fn take_found(&mut self) -> Vec<Found> {
        std::mem::take(&mut self.found)
    }

    /// Raises the last number of each rule to the highest number in the rule's existing
    /// placeholders, so that new numbers are higher.
    fn count_from(&mut self, source: &dyn Source) {
        let finder = self.finder;
        let last = &mut self.last;
        each_batch(source, |lines| {
            for (_, line) in lines {
                for placed in placeholder::all(line, |rule| finder.is_rule(rule)) {
                    let last = last.entry(placed.rule.to_owned()).or_default();
                    *last = placed.number.max(*last);
                }
            }
        });
    }

    fn walk(&mut self, source: &dyn Source, sealed: &[Span]) -> Vec<Splice> {
        self.found.clear();
        self.line = 0;
        let mut splices = Vec::new();
        each_batch(source, |lines| {
            let apart = self.apart(lines, sealed);
            for ((start, line), apart) in lines.iter().zip(apart) {
                self.line += 1;
                let replaced = match apart {
                    Some((replaced, found)) => {
                        self.found.extend(found);
                        replaced
                    }
                    None => self.in_line(line, *start, sealed),
                };
                for (range, with) in replaced {
                    let span =
                        Span { start: start + range.start as u64, end: start + range.end as u64 };
                    splices.push(Splice { span, with: with.into_bytes().into() });
                }
            }
        });
        splices
    }

    /// Searches lines for secrets, in parallel. The result is `None` for a line with a secret that
    /// has no placeholder number yet: numbers are given in the order of the lines.
    fn apart(&self, lines: &[(u64, &[u8])], sealed: &[Span]) -> Vec<Option<RedactedLine>> {
        let lines = lines.par_iter().enumerate();
        let redacted = lines.map_init(
            || self.unnoted(),
            |own, (idx, &(start, line))| {
                own.found.clear();
                own.line = self.line + 1 + idx as u64;
                let replaced = own.in_line(line, start, sealed);
                if own.numbers.len() == self.numbers.len() {
                    return Some((replaced, std::mem::take(&mut own.found)));
                }
                *own = self.unnoted();
                None
            },
        );
        redacted.collect()
    }

    /// A redactor that knows the same secrets and has no findings.
    fn unnoted(&self) -> Redactor<'f> {
        Redactor {
            finder: self.finder,
            numbers: self.numbers.clone(),
            last: self.last.clone(),
            learned: self.learned.clone(),
            everywhere: self.everywhere.clone(),
            found: Vec::new(),
            line: 0,
            at: 0,
        }
    }

    /// Searches a line of a session for secrets. If the line contains anything but JSON, it is also
    /// searched as text.
    fn in_line(&mut self, line: &[u8], start: u64, sealed: &[Span]) -> Vec<Replacement> {
        let (replaced, broken) = self.strings(line, Some((start, sealed)), 0);
        if !broken {
            return replaced;
        }
        self.at = start;
        let text = as_text(line);
        let mut draft = Draft::new(&text);
        draft.apply(&replaced);
        for _ in 0..ROUNDS {
            let now = draft.text();
            let mut more = self.round(&now, TextContext::default());
            if more.is_empty() {
                more = self.strings(now.as_bytes(), None, 0).0;
            }
            if more.is_empty() {
                break;
            }
            draft.apply(&more);
        }
        draft.into_replacements()
    }

    /// Searches the string literals of JSON text. Returns the replacements, and whether the text
    /// contains anything but JSON.
    fn strings(
        &mut self,
        bytes: &[u8],
        top: Option<(u64, &[Span])>,
        depth: usize,
    ) -> (Vec<Replacement>, bool) {
        let mut all: Vec<Replacement> = Vec::new();
        // Sealed strings, each with the span that contains it.
        let mut seals: Vec<(Span, Range<usize>)> = Vec::new();
        let mut key: Option<Cow<'_, str>> = None;
        let mut literals = Literals::new(bytes);
        for Literal { range, is_key } in literals.by_ref() {
            let literal = &bytes[range.clone()];
            let of = key.as_deref().filter(|_| !is_key);
            let mut place = TextContext { key: of, is_key, depth, ..TextContext::default() };
            if let Some((start, sealed)) = top {
                self.at = start + range.start as u64;
                let seal = seal_of(self.at, range.len() as u64, sealed);
                if let Some(span) =
                    seal.filter(|_| base64::is_opaque(&literal[1..literal.len() - 1]))
                {
                    place.sealed = true;
                    seals.push((span, range.clone()));
                }
            }
            all.extend(self.literal(literal, range.start, place));
            if is_key {
                key = Some(decode_key(literal));
            }
        }
        if let Some((start, _)) = top {
            unseal(&mut all, &seals, start);
        }
        (all, literals.broken)
    }

    /// Searches a JSON string literal, which begins at the offset `from` of a text, for secrets.
    /// Returns replacements in escaped form, with ranges of that text.
    fn literal(&mut self, literal: &[u8], from: usize, place: TextContext<'_>) -> Vec<Replacement> {
        let inner = &literal[1..literal.len() - 1];
        if !inner.contains(&b'\\') {
            let replaced = self.in_value(&as_text(inner), place);
            let replaced = replaced.into_iter().map(|(range, with)| {
                (from + 1 + range.start..from + 1 + range.end, escaped(&with))
            });
            return replaced.collect();
        }
        // Character positions are computed only when something is found.
        let known = self.found.len();
        if self.in_value(&decode(literal), place).is_empty() {
            return Vec::new();
        }
        self.found.truncate(known);
        let inner = DecodedLiteral::decode(literal, from as u64);
        let replaced = self.in_value(&as_text(&inner.text), place);
        let replaced = replaced.into_iter().map(|(range, with)| {
            let span = inner.span(&range);
            (span.start as usize..span.end as usize, escaped(&with))
        });
        replaced.collect()
    }

    /// The replacements in the text of a literal. An id that contains a secret is replaced as a
    /// whole, because with a placeholder inside it may be longer than an API permits. An id is a
    /// text of at most [`ID`] characters whose key ends with `id`, outside of JSON in strings. If
    /// the placeholder itself is too long for an id, only the secret is replaced.
    fn in_value(&mut self, text: &str, place: TextContext<'_>) -> Vec<Replacement> {
        let replaced = self.replaced(text, place);
        let is_id = place.depth == 0
            && place.key.is_some_and(|key| key.to_ascii_lowercase().ends_with("id"))
            && text.chars().count() <= ID;
        let found = self.found.last().filter(|_| is_id && !replaced.is_empty());
        let Some(id) = found.map(|found| found.rule.clone()) else { return replaced };
        let rule =
            self.finder.rules().position(|rule| rule.id == id).expect("a rule of the finder");
        let &mut (rule, number) = self.numbers.entry(text.to_owned()).or_insert_with(|| {
            let last = self.last.entry(id).or_default();
            *last += 1;
            (rule, *last)
        });
        let with = placeholder::placeholder_of_id(&self.finder.rule(rule).id, number);
        if with.len() > ID { replaced } else { vec![(0..text.len(), with)] }
    }

    /// The replacements that remove every secret from a text.
    fn replaced(&mut self, text: &str, place: TextContext<'_>) -> Vec<Replacement> {
        let mut draft = Draft::new(text);
        for _ in 0..ROUNDS {
            let more = self.round(&draft.text(), place);
            if more.is_empty() {
                break;
            }
            draft.apply(&more);
        }
        draft.into_replacements()
    }

    /// The replacements of one pass over a text.
    fn round(&mut self, text: &str, place: TextContext<'_>) -> Vec<Replacement> {
        if place.depth < DEPTH && is_json(text) {
            return self.strings(text.as_bytes(), None, place.depth + 1).0;
        }
        let mut all = self.in_views(text, place);
        if !all.is_empty() {
            // The next pass searches for secrets that are not hidden by codes.
            return all;
        }
        if !place.sealed {
            for (range, rule) in self.hits(text, place.key) {
                let secret = &text[range.clone()];
                let with = self.placeholder(rule, secret, place.is_key);
                all.push((range, with));
            }
        }
        if place.depth < DEPTH {
            self.in_base64(text, place, &mut all);
        }
        all
    }

    /// The replacements of secrets that are hidden by codes. A token after a colour code, `%3D` or
    /// `\n` is no separate word for the rules, and they do not recognise one in HTML entities at
    /// all.
    fn in_views(&mut self, text: &str, place: TextContext<'_>) -> Vec<Replacement> {
        if place.sealed || place.decoded >= CODED {
            return Vec::new();
        }
        let mut all = Vec::new();
        for part in view::parts(text) {
            for unseen in [Unseen::Joins, Unseen::Parts] {
                let view = View::new(text, part.clone(), unseen);
                let key = place.key.filter(|_| view.is_whole);
                let inside = TextContext { key, decoded: place.decoded + 1, ..place };
                let found = self.round(&view.text, inside);
                let is_found = !found.is_empty();
                let moved = found.into_iter().map(|(range, with)| (view.origin(&range), with));
                all.extend(moved);
                if is_found || !view.has_unseen {
                    break;
                }
            }
        }
        all
    }

    /// The secrets in a text, each with the index of its rule, sorted and disjoint: matches of
    /// rules, including those that match only with the key before the text, and secrets that are
    /// searched for everywhere.
    fn hits(&self, text: &str, key: Option<&str>) -> Vec<(Range<usize>, usize)> {
        let found = self.finder.find(text).into_iter().map(|hit| (hit.range, hit.rule));
        let mut all: Vec<(Range<usize>, usize)> = found.collect();
        let with_key = key.filter(|key| {
            (4..=VALUE).contains(&text.len()) && key.len() <= VALUE && self.finder.names(key)
        });
        if with_key.is_none() && self.everywhere.is_none() {
            return all;
        }
        for segment in self.finder.segments(text) {
            let part = &text[segment.clone()];
            if let Some(key) = with_key {
                let member = format!("{key}=\"{part}\"");
                let from = key.len() + 2;
                let hits =
                    self.finder.find(&member).into_iter().filter(|hit| {
                        hit.range.start >= from && hit.range.end <= from + part.len()
                    });
                all.extend(hits.map(|hit| {
                    let start = segment.start + hit.range.start - from;
                    let end = segment.start + hit.range.end - from;
                    (start..end, hit.rule)
                }));
            }
            for known in self.everywhere.iter().flat_map(|known| known.find_iter(part)) {
                let (rule, _) = self.numbers[&self.learned[known.pattern().as_usize()]];
                let moved = segment.start + known.start()..segment.start + known.end();
                all.push((moved, rule));
            }
        }
        all.sort_by_key(|(range, _)| (range.start, range.end));
        let mut apart: Vec<(Range<usize>, usize)> = Vec::new();
        for (range, rule) in all {
            match apart.last_mut().filter(|(last, _)| range.start < last.end) {
                Some((last, _)) => last.end = last.end.max(range.end),
                None => apart.push((range, rule)),
            }
        }
        apart
    }

    /// For each run of base64 or hexadecimal digits that encodes a secret, adds a replacement: the
    /// decoded text without the secret, encoded again.
    fn in_base64(&mut self, text: &str, place: TextContext<'_>, all: &mut Vec<Replacement>) {
        let inside = TextContext { depth: place.depth + 1, ..TextContext::default() };
        let mut more = Vec::new();
        for run in base64::runs(text.as_bytes()) {
            if all.iter().any(|(range, _)| range.start < run.end && run.start < range.end) {
                continue;
            }
            let hex = if text[run.clone()].starts_with("0x") { 2 } else { 0 };
            let run = run.start + hex..run.end;
            let raw = &text.as_bytes()[run.clone()];
            let Some((decoded, coding)) = base64::decode_any(&base64::flat(raw)) else { continue };
            let replaced = self.replaced(&decoded, inside);
            if !replaced.is_empty() {
                let without = applied(&decoded, &replaced);
                more.push((run, base64::encode_as(&without, coding, raw)));
            }
        }
        if !more.is_empty() {
            all.extend(more);
            all.sort_by_key(|(range, _)| range.start);
        }
    }

    fn placeholder(&mut self, rule: usize, secret: &str, is_key: bool) -> String {
        let (rule, number) = match self.numbers.get(secret) {
            Some(&known) => known,
            None => {
                let last = self.last.entry(self.finder.rule(rule).id.clone()).or_default();
                *last += 1;
                let number = *last;
                self.numbers.insert(secret.to_owned(), (rule, number));
                let rule_kind = self.finder.rule(rule).kind();
                if rule_kind == Kind::Secrets && is_told_apart(secret) {
                    self.learned.push(secret.to_owned());
                }
                (rule, number)
            }
        };
        let rule = self.finder.rule(rule);
        let chars = secret.chars().count();
        let id = rule.id.clone();
        let kind = rule.kind();
        self.found.push(Found { rule: id, kind, number, line: self.line, at: self.at, chars });
        match &rule.replace {
            // A key gets a numbered placeholder, so that different keys remain different.
            Some(with) if !is_key => with.clone(),
            Some(_) | None => placeholder::placeholder(&rule.id, number),
        }
    }
}

/// Whether a secret can be searched for everywhere, because it cannot be a word.
fn is_told_apart(secret: &str) -> bool {
    let kinds = [u8::is_ascii_digit, u8::is_ascii_lowercase, u8::is_ascii_uppercase];
    let kinds = kinds.iter().filter(|is| secret.bytes().any(|byte| is(&byte))).count();
    (8..=VALUE).contains(&secret.len())
        && kinds >= 2
        && secret.bytes().any(|byte| byte.is_ascii_digit())
        && entropy(secret) >= 2.8
}

fn everywhere(learned: &[String]) -> Option<AhoCorasick> {
    AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(learned).ok()
}

/// The sealed span that contains a literal.
fn seal_of(at: u64, len: u64, sealed: &[Span]) -> Option<Span> {
    let idx = sealed.partition_point(|span| span.start <= at);
    let span = *sealed.get(idx.checked_sub(1)?)?;
    (at + len <= span.end).then_some(span)
}

/// Empties each sealed string in which nothing was replaced, if something was replaced elsewhere in
/// the same sealed value.
fn unseal(all: &mut Vec<Replacement>, seals: &[(Span, Range<usize>)], start: u64) {
    let mut more = Vec::new();
    for (span, literal) in seals {
        let changed = all.iter().any(|(range, _)| {
            span.start <= start + range.start as u64 && start + range.end as u64 <= span.end
        });
        let is_replaced =
            all.iter().any(|(range, _)| literal.start <= range.start && range.end <= literal.end);
        if changed && !is_replaced {
            more.push((literal.start + 1..literal.end - 1, String::new()));
        }
    }
    if !more.is_empty() {
        all.extend(more);
        all.sort_by_key(|(range, _)| range.start);
    }
}

fn decode_key(literal: &[u8]) -> Cow<'_, str> {
    if literal.len() > VALUE + 2 { Cow::Borrowed("") } else { decode(literal) }
}

/// A text with the escapes that it needs inside a JSON literal.
fn escaped(text: &str) -> String {
    let literal = encode(text);
    literal[1..literal.len() - 1].to_owned()
}
