//! How far a match can reach around a keyword, so that its rule need not search the whole text.

use regex_syntax::hir::{Class, Hir, HirKind};

/// The maximum number of bytes of a match before and after a keyword; `None` if unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    pub(crate) before: Option<usize>,
    pub(crate) after: Option<usize>,
}

impl Reach {
    /// The whole text.
    pub(crate) const ALL: Reach = Reach { before: None, after: None };

    fn widest(self, other: Reach) -> Reach {
        let before = self.before.zip(other.before).map(|(one, other)| one.max(other));
        let after = self.after.zip(other.after).map(|(one, other)| one.max(other));
        Reach { before, after }
    }

    /// The reach in a sequence of expressions of which one has this reach and the others come
    /// before and after it.
    fn between(self, before: &[Hir], after: &[Hir]) -> Reach {
        Reach {
            before: self.before.zip(longest(before)).map(|(own, more)| own + more),
            after: self.after.zip(longest(after)).map(|(own, more)| own + more),
        }
    }
}

/// The length of the longest match of these expressions, one after another; `None` if it is
/// unlimited.
fn longest(parts: &[Hir]) -> Option<usize> {
    let mut lengths = parts.iter().map(|part| part.properties().maximum_len());
    lengths.try_fold(0_usize, |sum, len| sum.checked_add(len?))
}

/// How far a match can reach around one of `keywords` (in lower case), and the spellings that the
/// keyword can have there; no spellings if they are too many. `None` if it is not certain that each
/// match contains a keyword.
pub(crate) fn reach_of(hir: &Hir, keywords: &[String]) -> Option<(Reach, Vec<String>)> {
    let mut written = Vec::new();
    let cased = Words { keywords, capitals: Capitals::Matter };
    if let Some(reach) = cased.reach(hir, &mut written) {
        written.sort_unstable();
        written.dedup();
        return Some((reach, written));
    }
    let any = Words { keywords, capitals: Capitals::Fold };
    any.reach(hir, &mut Vec::new()).map(|reach| (reach, Vec::new()))
}

/// Whether letters are converted to lower case, which gives fewer spellings.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Capitals {
    Matter,
    Fold,
}

/// The keywords searched for in an expression.
struct Words<'k> {
    keywords: &'k [String],
    capitals: Capitals,
}

impl Words<'_> {
    fn reach(&self, hir: &Hir, written: &mut Vec<String>) -> Option<Reach> {
        let spelled = self.spellings(hir).and_then(|words| self.within(&words, written));
        spelled.or_else(|| match hir.kind() {
            HirKind::Alternation(branches) => branches
                .iter()
                .map(|branch| self.reach(branch, written))
                .reduce(|all, one| Some(all?.widest(one?)))?,
            HirKind::Capture(capture) => self.reach(&capture.sub, written),
            HirKind::Concat(parts) => self.of_concat(parts, written),
            // The keyword may be in any of the repetitions, so that the others come before and
            // after it.
            HirKind::Repetition(again) if again.min >= 1 => {
                let inner = self.reach(&again.sub, written)?;
                if again.max == Some(1) {
                    return Some(inner);
                }
                let most = hir.properties().maximum_len();
                Some(Reach { before: most, after: most })
            }
            HirKind::Empty
            | HirKind::Literal(_)
            | HirKind::Class(_)
            | HirKind::Look(_)
            | HirKind::Repetition(_) => None,
        })
    }

    fn of_concat(&self, parts: &[Hir], written: &mut Vec<String>) -> Option<Reach> {
        // Adjacent parts may form a keyword together, if each of them matches only a few texts.
        for start in 0..parts.len() {
            let mut words = vec![String::new()];
            for (idx, part) in parts.iter().enumerate().skip(start) {
                let Some(more) = self.spellings(part).and_then(|it| joined(&words, &it)) else {
                    break;
                };
                words = more;
                if let Some(inner) = self.within(&words, written) {
                    return Some(inner.between(&parts[..start], &parts[idx + 1..]));
                }
            }
        }
        (0..parts.len()).find_map(|idx| {
            let inner = self.reach(&parts[idx], written)?;
            Some(inner.between(&parts[..idx], &parts[idx + 1..]))
        })
    }

    /// How far these words reach around a keyword. Adds the spelling of the keyword in each word to
    /// `written`. `None` if a word contains no keyword.
    fn within(&self, words: &[String], written: &mut Vec<String>) -> Option<Reach> {
        let known = written.len();
        let mut all: Option<Reach> = None;
        for word in words {
            let lower = word.to_ascii_lowercase();
            let found = self.keywords.iter().filter_map(|it| Some((lower.find(&**it)?, it.len())));
            let Some((at, len)) = found.min() else {
                written.truncate(known);
                return None;
            };
            written.push(word[at..at + len].to_owned());
            let one = Reach { before: Some(at), after: Some(word.len() - at - len) };
            all = Some(all.map_or(one, |all| all.widest(one)));
        }
        all
    }

    /// The words that an expression matches, in lower case if letters are folded; `None` if they
    /// are many, or not all ASCII.
    fn spellings(&self, hir: &Hir) -> Option<Vec<String>> {
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => Some(vec![String::new()]),
            HirKind::Literal(literal) => {
                let text = std::str::from_utf8(&literal.0).ok()?;
                text.is_ascii().then(|| vec![self.folded(text)])
            }
            HirKind::Class(class) => self.letters(class),
            HirKind::Capture(capture) => self.spellings(&capture.sub),
            HirKind::Repetition(again) => {
                let once = self.spellings(&again.sub)?;
                let max = again.max.filter(|max| *max <= 3)?;
                let mut words = if again.min == 0 { vec![String::new()] } else { Vec::new() };
                let mut round = vec![String::new()];
                for n in 1..=max {
                    round = joined(&round, &once)?;
                    if n >= again.min {
                        words.extend(round.iter().cloned());
                    }
                }
                few(words)
            }
            HirKind::Concat(parts) => parts.iter().try_fold(vec![String::new()], |words, part| {
                joined(&words, &self.spellings(part)?)
            }),
            HirKind::Alternation(branches) => {
                let words: Option<Vec<Vec<String>>> =
                    branches.iter().map(|it| self.spellings(it)).collect();
                few(words?.concat())
            }
        }
    }

    fn letters(&self, class: &Class) -> Option<Vec<String>> {
        let ranges: Vec<(u32, u32)> = match class {
            Class::Unicode(class) => {
                class.iter().map(|it| (u32::from(it.start()), u32::from(it.end()))).collect()
            }
            Class::Bytes(class) => {
                class.iter().map(|it| (u32::from(it.start()), u32::from(it.end()))).collect()
            }
        };
        let most: u32 = ranges.iter().map(|(start, end)| end - start + 1).sum();
        if most > 8 {
            return None;
        }
        let chars = ranges.into_iter().flat_map(|(start, end)| start..=end);
        let chars: Option<Vec<char>> = chars.map(char::from_u32).collect();
        let chars = chars?.into_iter();
        let plain = chars.map(|c| c.is_ascii().then(|| self.folded(c.encode_utf8(&mut [0; 4]))));
        few(plain.collect::<Option<_>>()?)
    }

    fn folded(&self, text: &str) -> String {
        match self.capitals {
            Capitals::Matter => text.to_owned(),
            Capitals::Fold => text.to_ascii_lowercase(),
        }
    }
}

fn joined(words: &[String], more: &[String]) -> Option<Vec<String>> {
    if words.len() * more.len() > FEW * FEW {
        return None;
    }
    few(words.iter().flat_map(|a| more.iter().map(move |b| format!("{a}{b}"))).collect())
}

fn few(mut words: Vec<String>) -> Option<Vec<String>> {
    words.sort_unstable();
    words.dedup();
    (words.len() <= FEW).then_some(words)
}

/// The maximum number of words that are enumerated.
const FEW: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_lie_around_their_keywords() {
        let bound = |before, after| Some(Reach { before: Some(before), after: Some(after) });
        let cases: &[(&str, &[&str], Option<Reach>)] = &[
            (r"\b(AKIA[A-Z2-7]{16})\b", &["akia"], bound(0, 16)),
            (r"(?i)[a-z]{0,5}(?:key|token)\s{0,3}=([a-z]{8})", &["key", "token"], bound(5, 12)),
            (r"(?i)twilio.{3}SK[a-f]{4}", &["sk"], bound(9, 4)),
            (r"(?i)(?:abc|xyz)\d", &["abc"], None),
            (r"SK[a-f]{32}", &["twilio"], None),
            (r"ey[a-z]+\.ey[a-z]+", &["ey"], Some(Reach { before: Some(0), after: None })),
            (r"[^@]+@[a-z]{2}", &["@"], Some(Reach { before: None, after: Some(2) })),
            (r"(?:ab){1,3}", &["ab"], bound(0, 4)),
            (r"(?:[ax]b){2,9}", &["ab", "xb"], bound(18, 18)),
            (r"(?i)f(?:oo|ew)\d{2}", &["foo", "few"], bound(0, 2)),
        ];
        for (expression, keywords, expect) in cases {
            let hir = regex_syntax::ParserBuilder::new()
                .unicode(false)
                .utf8(false)
                .build()
                .parse(expression)
                .expect("an expression");
            let keywords: Vec<String> = keywords.iter().map(|&word| word.to_owned()).collect();
            assert_eq!(reach_of(&hir, &keywords).map(|(reach, _)| reach), *expect, "{expression}");
        }
    }
}
