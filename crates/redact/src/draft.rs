//! A text that is edited several times, and one list of replacements with the same result.

use std::borrow::Cow;
use std::ops::Range;

/// A range of a text, and its replacement.
pub(crate) type Replacement = (Range<usize>, String);

/// A text being edited.
pub(crate) struct Draft<'t> {
    text: &'t str,
    /// The replacements so far, sorted and disjoint, with ranges of the original text.
    replaced: Vec<Replacement>,
}

impl<'t> Draft<'t> {
    pub(crate) fn new(text: &'t str) -> Draft<'t> {
        Draft { text, replaced: Vec::new() }
    }

    /// The text in its current state.
    pub(crate) fn text(&self) -> Cow<'t, str> {
        if self.replaced.is_empty() {
            return Cow::Borrowed(self.text);
        }
        Cow::Owned(applied(self.text, &self.replaced))
    }

    /// Applies replacements to the current text. `more` is sorted and disjoint.
    pub(crate) fn apply(&mut self, more: &[Replacement]) {
        let now = self.text();
        let mut joined: Vec<Replacement> = Vec::new();
        let mut old = self.replaced.iter().peekable();
        let mut new = more.iter().peekable();
        // By how many bytes the current text is longer than the original text, up to this position.
        let mut shift: isize = 0;
        while old.peek().is_some() || new.peek().is_some() {
            let start_old = old.peek().map(|(range, _)| range.start.wrapping_add_signed(shift));
            let start_new = new.peek().map(|(range, _)| range.start);
            // Replacements that touch each other are merged into one.
            let start = start_old.into_iter().chain(start_new).min().unwrap_or_default();
            let from = start.wrapping_add_signed(-shift);
            let mut end = start;
            let mut with = String::new();
            let mut copied = start;
            loop {
                if let Some((range, text)) = old.peek() {
                    let at = range.start.wrapping_add_signed(shift);
                    if at <= end {
                        shift += text.len() as isize - range.len() as isize;
                        end = end.max(at + text.len());
                        old.next();
                        continue;
                    }
                }
                match new.peek() {
                    Some((range, text)) if range.start <= end => {
                        with.push_str(&now[copied..range.start.max(copied)]);
                        with.push_str(text);
                        copied = range.end;
                        end = end.max(range.end);
                        new.next();
                    }
                    Some(_) | None => break,
                }
            }
            with.push_str(&now[copied..end]);
            joined.push((from..end.wrapping_add_signed(-shift), with));
        }
        self.replaced = joined;
    }

    /// All replacements, as ranges of the original text.
    pub(crate) fn into_replacements(self) -> Vec<Replacement> {
        self.replaced
    }
}

/// Applies replacements to a text. The replacements are sorted and disjoint.
pub(crate) fn applied(text: &str, replaced: &[Replacement]) -> String {
    let mut whole = String::with_capacity(text.len());
    let mut from = 0;
    for (range, with) in replaced {
        whole.push_str(&text[from..range.start]);
        whole.push_str(with);
        from = range.end;
    }
    whole.push_str(&text[from..]);
    whole
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn replacements(len: usize, seed: &[(usize, usize, String)]) -> Vec<Replacement> {
        let mut from = 0;
        let mut all = Vec::new();
        for (skip, take, with) in seed {
            let start = from + skip;
            let end = start + take;
            if end > len {
                break;
            }
            all.push((start..end, with.clone()));
            from = end;
        }
        all
    }

    proptest! {
        /// Applying replacements one after the other gives the same text as applying the collected
        /// ones.
        #[test]
        fn changes_add_up(
            text in "[a-z]{0,30}",
            rounds in prop::collection::vec(
                prop::collection::vec((1_usize..6, 0_usize..6, "[A-Z]{0,4}"), 0..4), 1..4),
        ) {
            let mut draft = Draft::new(&text);
            let mut expect = text.clone();
            for seed in &rounds {
                let more = replacements(expect.len(), seed);
                expect = applied(&expect, &more);
                draft.apply(&more);
                prop_assert_eq!(&*draft.text(), &expect);
            }
            let all = draft.into_replacements();
            let apart = all.windows(2).all(|pair| pair[0].0.end <= pair[1].0.start);
            prop_assert!(apart, "{:?}", all);
            prop_assert_eq!(applied(&text, &all), expect);
        }
    }
}
