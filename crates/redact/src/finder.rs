//! Searches a text with rules.
//!
//! One automaton over the keywords of all rules scans the text. The regular expression of a rule
//! with keywords runs only around occurrences of its keywords, as far as a match can reach. A rule
//! without keywords runs around numbers, or on the whole text.

use std::ops::Range;
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use rayon::prelude::*;
use regex::bytes::{Regex, RegexBuilder};

use crate::check::entropy;
use crate::reach::{self, Reach};
use crate::rule::{Allowlist, AllowlistText, Condition, Rule, RuleFault, Rules};
use crate::{numeric, placeholder};

/// A match of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The range of the secret in the text, in bytes.
    pub range: Range<usize>,
    /// The index of the rule: [`Finder::rule`].
    pub rule: usize,
}

/// Compiled rules.
///
/// ```
/// use epitome_redact::{Finder, Rules};
///
/// let finder = Finder::new(Rules::built_in())?;
/// let text = "curl -H 'X-Key: AKIAQ3EGRXLTPN2MWVJD'";
/// let hits = finder.find(text);
/// assert_eq!(finder.rule(hits[0].rule).id, "aws-access-key");
/// assert_eq!(&text[hits[0].range.clone()], "AKIAQ3EGRXLTPN2MWVJD");
/// # Ok::<(), epitome_redact::RuleFault>(())
/// ```
pub struct Finder {
    rules: Vec<Ready>,
    /// Conditions under which a match of any rule is not a secret.
    allowed: Vec<Allowed>,
    /// Ids of the rules whose placeholders are recognised, sorted.
    known: Vec<String>,
    keywords: AhoCorasick,
    /// The rules of each keyword.
    of_keyword: Vec<Vec<Trigger>>,
    /// The indices of the rules that are applied around numbers.
    numeric: Vec<usize>,
    /// The indices of the rules that are applied to the whole text.
    always: Vec<usize>,
}

/// A keyword of a rule.
struct Trigger {
    rule: usize,
    word: String,
    near: OnceLock<Near>,
}

/// The part of a text around a keyword to which a rule is applied.
struct Near {
    /// How far a match reaches around the keyword.
    reach: Reach,
    /// The spellings (in capital or small letters) that the keyword can have in a match. If this is
    /// empty, the spellings are not known, and the keyword is searched in any spelling.
    written: Vec<Box<[u8]>>,
}

struct Ready {
    rule: Rule,
    expression: String,
    regex: OnceLock<Option<Regex>>,
    /// How far matches reach around the keywords, and the spellings of the keywords. Computed on
    /// first use: most texts do not contain a keyword of most rules, and to compute it for all
    /// rules takes as long as to search some megabytes.
    reach: OnceLock<(Reach, Vec<String>)>,
    allowed: Vec<Allowed>,
}

struct Allowed {
    condition: Condition,
    target: AllowlistText,
    regexes: Vec<Regex>,
    stopwords: Option<AhoCorasick>,
}

impl Finder {
    /// Prepares rules for a search. Rules without a regular expression are left out. The expression
    /// of a rule is parsed here, and compiled when it is first needed: a rule whose expression is
    /// too large finds nothing. [`Rules::into_checked`] reports such a rule.
    ///
    /// # Errors
    ///
    /// [`RuleFault::Expression`] if the expression of a rule cannot be parsed, or one of an
    /// allowlist cannot be compiled.
    pub fn new(rules: Rules) -> Result<Finder, RuleFault> {
        let mut known = rules.known;
        known.sort();
        known.dedup();
        let mut finder = Finder {
            rules: Vec::new(),
            allowed: ready_allowlists(
                "allowlist",
                rules.allowed.iter().filter(|list| list.is_for_all()),
            )?,
            known,
            keywords: automaton(&[]),
            of_keyword: Vec::new(),
            numeric: Vec::new(),
            always: Vec::new(),
        };
        let mut words: Vec<String> = Vec::new();
        for mut rule in rules.rules {
            let Some(expression) = rule.regex.clone() else { continue };
            let of_rule = rules.allowed.iter().filter(|list| list.names(&rule.id));
            rule.allowlists.extend(of_rule.cloned());
            finder.add(rule, expression, &mut words)?;
        }
        finder.keywords = automaton(&words);
        Ok(finder)
    }

    fn add(
        &mut self,
        rule: Rule,
        expression: String,
        words: &mut Vec<String>,
    ) -> Result<(), RuleFault> {
        let idx = self.rules.len();
        let expression = after_an_underscore(expression);
        parse(&rule.id, &expression)?;
        let lower = lower(&rule);
        if lower.iter().all(String::is_empty) {
            if rule.check.is_some_and(numeric::is_numeric) {
                self.numeric.push(idx);
            } else {
                self.always.push(idx);
            }
        }
        for word in lower.into_iter().filter(|word| !word.is_empty()) {
            let at = words.iter().position(|known| *known == word).unwrap_or_else(|| {
                words.push(word);
                self.of_keyword.push(Vec::new());
                words.len() - 1
            });
            let word = words[at].clone();
            self.of_keyword[at].push(Trigger { rule: idx, word, near: OnceLock::new() });
        }
        let allowed = ready_allowlists(&rule.id, rule.allowed())?;
        let (regex, reach) = Default::default();
        self.rules.push(Ready { rule, expression, regex, reach, allowed });
        Ok(())
    }

    /// A rule by its index.
    pub fn rule(&self, idx: usize) -> &Rule {
        &self.rules[idx].rule
    }

    /// All rules.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter().map(|ready| &ready.rule)
    }

    /// Whether `id` is the id of a rule whose placeholders are recognised.
    pub(crate) fn is_rule(&self, id: &str) -> bool {
        self.known.binary_search_by(|known| known.as_str().cmp(id)).is_ok()
    }

    /// Whether a key contains a keyword of a rule, so that the key is searched together with its
    /// value.
    pub(crate) fn names(&self, key: &str) -> bool {
        self.keywords.is_match(key)
    }

    /// The matches of all rules, sorted and disjoint. Matches that overlap become one, which is
    /// reported for that of their rules that comes first; generic rules come after all others.
    /// Placeholders are never matched.
    pub fn find(&self, text: &str) -> Vec<Hit> {
        let mut hits = Vec::new();
        for segment in self.segments(text) {
            self.find_between(text, segment, &mut hits);
        }
        hits
    }

    /// The parts of a text between placeholders.
    pub(crate) fn segments(&self, text: &str) -> Vec<Range<usize>> {
        let mut segments = Vec::new();
        let mut from = 0;
        for placed in placeholder::all(text.as_bytes(), |rule| self.is_rule(rule)) {
            segments.push(from..placed.range.start);
            from = placed.range.end;
        }
        segments.push(from..text.len());
        segments.retain(|segment| !segment.is_empty());
        segments
    }

    /// Searches a part of a text, which contains no placeholder, as if it were a whole text.
    fn find_between(&self, text: &str, segment: Range<usize>, hits: &mut Vec<Hit>) {
        let part = &text[segment.clone()];
        let mut windows = self.windows(part.as_bytes());
        if windows.is_empty() {
            return;
        }
        windows.sort_unstable();
        let mut found: Vec<Hit> = Vec::new();
        let mut windows = windows.into_iter().peekable();
        while let Some((idx, start, mut end)) = windows.next() {
            while let Some(&(_, _, more)) =
                windows.peek().filter(|next| next.0 == idx && next.1 <= end)
            {
                end = end.max(more);
                windows.next();
            }
            self.look(idx, part, start..end, &mut found);
        }
        found.sort_by_key(|hit| (hit.range.start, hit.range.end));
        let first = hits.len();
        for mut hit in found {
            hit.range = hit.range.start + segment.start..hit.range.end + segment.start;
            match hits[first..].last_mut().filter(|last| hit.range.start < last.range.end) {
                Some(last) => {
                    last.range.end = last.range.end.max(hit.range.end);
                    last.rule = std::cmp::min_by_key(last.rule, hit.rule, |&idx| {
                        (self.rules[idx].rule.generic, idx)
                    });
                }
                None => hits.push(hit),
            }
        }
    }

    fn near<'t>(&self, trigger: &'t Trigger) -> &'t Near {
        trigger.near.get_or_init(|| {
            let (reach, written) = self.rules[trigger.rule].reach();
            let written = written.iter().filter(|it| it.eq_ignore_ascii_case(&trigger.word));
            let written = written.map(|it| it.as_bytes().into()).collect();
            Near { reach: *reach, written }
        })
    }

    /// The windows in which rules run: the index of the rule, the start and the end.
    fn windows(&self, text: &[u8]) -> Vec<(usize, usize, usize)> {
        let mut windows: Vec<(usize, usize, usize)> = Vec::new();
        for found in self.keywords.find_overlapping_iter(text) {
            for trigger in &self.of_keyword[found.pattern().as_usize()] {
                let Near { reach, written } = self.near(trigger);
                let word = &text[found.start()..found.end()];
                if !written.is_empty() && !written.iter().any(|it| **it == *word) {
                    continue;
                }
                let rule = trigger.rule;
                let Reach { before, after } = *reach;
                let start = before.map_or(0, |before| found.start().saturating_sub(before));
                let end = after.map_or(text.len(), |after| text.len().min(found.end() + after));
                match windows.last_mut() {
                    Some(last) if last.0 == rule && start <= last.2 && last.1 <= start => {
                        last.2 = last.2.max(end);
                    }
                    Some(_) | None => windows.push((rule, start, end)),
                }
            }
        }
        if !self.numeric.is_empty() {
            numeric::runs(text, |check, Range { start, end }| {
                let rules =
                    self.numeric.iter().filter(|&&rule| self.rules[rule].rule.check == Some(check));
                windows.extend(rules.map(|&rule| (rule, start, end)));
            });
        }
        windows.extend(self.always.iter().map(|&rule| (rule, 0, text.len())));
        windows
    }

    /// Runs one rule in a window. Matches begin in the window. The expression also sees the bytes
    /// before the window and one byte after it, which decide about word boundaries.
    fn look(&self, idx: usize, text: &str, window: Range<usize>, found: &mut Vec<Hit>) {
        let ready = &self.rules[idx];
        let Some(regex) = ready.regex() else { return };
        // The text ends one byte after the window, so that the expression does not take the end of
        // the window for the end of the text.
        let seen = &text.as_bytes()[..text.len().min(window.end + 1)];
        let mut at = window.start;
        while at <= seen.len() {
            let Some(whole) = regex.find_at(seen, at) else { return };
            at = whole.end().max(whole.start() + 1);
            let secret = if regex.captures_len() == 1 {
                whole.range()
            } else {
                let Some(captures) = regex.captures_at(seen, whole.start()) else { return };
                let group = ready.rule.secret_group;
                let groups = if group > 0 { group..group + 1 } else { 1..captures.len() };
                let first = groups.filter_map(|n| captures.get(n)).find(|it| !it.is_empty());
                first.map_or(whole.range(), |it| it.range())
            };
            let secret = on_chars(text, secret);
            if !secret.is_empty() && self.is_secret(ready, text, &secret, whole.range()) {
                at = at.max(secret.end);
                found.push(Hit { range: secret, rule: idx });
            }
        }
    }

    fn is_secret(
        &self,
        ready: &Ready,
        text: &str,
        secret: &Range<usize>,
        whole: Range<usize>,
    ) -> bool {
        let word = &text[secret.clone()];
        if ready.rule.entropy.is_some_and(|least| entropy(word) < least) {
            return false;
        }
        if ready.rule.check.is_some_and(|check| !check.holds(word, text, secret.start)) {
            return false;
        }
        let whole = &text[on_chars(text, whole)];
        let mut lists = self.allowed.iter().chain(&ready.allowed);
        !lists.any(|list| {
            let target = match list.target {
                AllowlistText::Secret => word,
                AllowlistText::Match => whole,
                AllowlistText::Line => line_around(text, secret),
            };
            list.allows(word, target)
        })
    }
}

fn line_around<'t>(text: &'t str, range: &Range<usize>) -> &'t str {
    let start = text[..range.start].rfind('\n').map_or(0, |feed| feed + 1);
    let end = text[range.end..].find('\n').map_or(text.len(), |feed| range.end + feed);
    &text[start..end]
}

impl Ready {
    /// How far matches reach around the keywords, and the spellings of the keywords.
    fn reach(&self) -> &(Reach, Vec<String>) {
        self.reach.get_or_init(|| {
            let hir = parse(&self.rule.id, &self.expression).ok();
            let lower = lower(&self.rule);
            hir.and_then(|hir| reach::reach_of(&hir, &lower)).unwrap_or((Reach::ALL, Vec::new()))
        })
    }

    /// The compiled expression; `None` if it cannot be compiled.
    fn regex(&self) -> Option<&Regex> {
        // The expression was parsed before, so that compiling it fails only if it is too large.
        // Then the rule finds nothing.
        self.regex.get_or_init(|| compile(&self.expression).ok()).as_ref()
    }
}

impl Allowed {
    fn allows(&self, secret: &str, target: &str) -> bool {
        let regex = || self.regexes.iter().any(|regex| regex.is_match(target.as_bytes()));
        let word = || self.stopwords.as_ref().is_some_and(|words| words.is_match(secret));
        match self.condition {
            Condition::Any => regex() || word(),
            Condition::All => {
                (self.regexes.is_empty() || regex()) && (self.stopwords.is_none() || word())
            }
        }
    }
}

/// The keywords of a rule in lower case.
fn lower(rule: &Rule) -> Vec<String> {
    rule.keywords.iter().map(|it| it.to_ascii_lowercase()).collect()
}

fn ready_allowlists<'a>(
    rule: &str,
    lists: impl Iterator<Item = &'a Allowlist>,
) -> Result<Vec<Allowed>, RuleFault> {
    let ready = lists.filter(|list| list.speaks()).map(|list| {
        let regexes = list
            .regexes
            .iter()
            .map(|it| compile(it).map_err(|err| wrong_expression(rule, short(&err.to_string()))));
        let stopwords = (!list.stopwords.is_empty()).then(|| automaton(&list.stopwords));
        Ok(Allowed {
            condition: list.condition,
            target: list.target,
            regexes: regexes.collect::<Result<_, _>>()?,
            stopwords,
        })
    });
    ready.collect()
}

fn wrong_expression(rule: &str, what: String) -> RuleFault {
    RuleFault::Expression { rule: rule.to_owned(), what }
}

fn parse(rule: &str, expression: &str) -> Result<regex_syntax::hir::Hir, RuleFault> {
    let bytes = parse_as(expression, false);
    let parsed = bytes.or_else(|_| parse_as(expression, true));
    parsed.map_err(|what| wrong_expression(rule, what))
}

fn parse_as(expression: &str, unicode: bool) -> Result<regex_syntax::hir::Hir, String> {
    let mut parser = regex_syntax::ParserBuilder::new();
    let parsed = parser.unicode(unicode).utf8(false).build().parse(expression);
    parsed.map_err(|err| short(&err.to_string()))
}

impl Rules {
    /// Returns the rules if the expressions of all rules and allowlists compile. [`Finder::new`]
    /// accepts the expression of a rule that is too large, and finds nothing with it. The built-in
    /// rules need no check: a test compiles them.
    ///
    /// # Errors
    ///
    /// [`RuleFault::Expression`] for the first expression that does not compile.
    pub fn into_checked(self) -> Result<Rules, RuleFault> {
        check(&self)?;
        Ok(self)
    }
}

/// Compiles the expressions of all rules and allowlists, as a [`Finder`] uses them, to report
/// faults now instead of on first use.
fn check(rules: &Rules) -> Result<(), RuleFault> {
    ready_allowlists("allowlist", rules.allowed.iter())?;
    let fault = rules.rules.par_iter().find_map_first(|rule| check_rule(rule).err());
    fault.map_or(Ok(()), Err)
}

fn check_rule(rule: &Rule) -> Result<(), RuleFault> {
    let Some(expression) = rule.regex.clone() else { return Ok(()) };
    let expression = after_an_underscore(expression);
    parse(&rule.id, &expression)?;
    compile(&expression).map_err(|err| wrong_expression(&rule.id, short(&err.to_string())))?;
    ready_allowlists(&rule.id, rule.allowed())?;
    Ok(())
}

/// Compiles an expression without Unicode, because rules files are written for Go, where `\w`,
/// `\d`, `\s` and `\b` are ASCII only. Unlike in Go, `.` and negated classes then match single
/// bytes. An expression that is valid only with Unicode is compiled with Unicode.
fn compile(expression: &str) -> Result<Regex, regex::Error> {
    const LIMIT: usize = 64 << 20;
    let mut builder = RegexBuilder::new(expression);
    builder.size_limit(LIMIT);
    builder.unicode(false).build().or_else(|_| builder.unicode(true).build())
}

/// The last line of a regex error, which describes the fault.
fn short(err: &str) -> String {
    err.trim().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

fn automaton(words: &[String]) -> AhoCorasick {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::Standard)
        .kind(Some(AhoCorasickKind::DFA))
        .build(words)
        .expect("keywords are few and short")
}

/// A byte range, extended to character boundaries.
fn on_chars(text: &str, range: Range<usize>) -> Range<usize> {
    text.floor_char_boundary(range.start)..text.ceil_char_boundary(range.end)
}

/// Changes an expression so that it also finds a token after an underscore, which names of
/// variables and tools use as a separator. `\b` does not match there, because an underscore is a
/// word character. Only an expression that begins with `\b(` or `\b((?:` and then has three literal
/// characters is changed.
fn after_an_underscore(expression: String) -> String {
    const LEAST: usize = 3;
    let Some(rest) = expression.strip_prefix(r"\b(") else { return expression };
    let mark = rest.strip_prefix("(?:").unwrap_or(rest);
    let begin = mark.bytes().take(LEAST);
    let begin = begin.filter(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if begin.count() < LEAST {
        return expression;
    }
    format!(r"(?:\b|_)({rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_behind_an_underscore() {
        let finder = Finder::new(Rules::built_in()).expect("rules");
        let github = ["ghp_", "9aKfQ2mZx7LwT4vBn8RcY1sHd6JpE3uGo5Wi"].concat();
        for token in [&*github, "AKIAQ3EGRXLTPN2MWVJD"] {
            for text in [token.to_owned(), format!("tool_{token}"), format!("A__{token} x")] {
                let hits = finder.find(&text);
                let found: Vec<&str> = hits.iter().map(|hit| &text[hit.range.clone()]).collect();
                assert_eq!(found, [token], "{text}");
            }
        }
    }

    #[test]
    fn built_in_rules_look_only_around_their_keywords() {
        let finder = Finder::new(Rules::built_in()).expect("rules");
        assert!(finder.always.is_empty());
        let mut far: Vec<&str> = finder
            .of_keyword
            .iter()
            .flatten()
            .filter(|trigger| finder.near(trigger).reach.before.is_none())
            .map(|trigger| &*finder.rules[trigger.rule].rule.id)
            .collect();
        far.sort_unstable();
        far.dedup();
        // The keywords of these rules are names of services, which need not be in the match.
        let named = ["discord-bot-token", "mailgun-new-key", "ngrok-api-key", "twilio-account-sid"];
        assert_eq!(far, named);
    }
}
