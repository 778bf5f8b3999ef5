//! The digest stage, shared by stored sessions and live contexts: the old part of a context is
//! replaced by one entry that consists of lines of the session.

use epitome_error::{Error, ErrorKind, Result};
use epitome_model::Tokens;
use epitome_passes::{Digest, DigestBudget, DigestRule, FactIndex, ReplacedHistory, View};

use crate::summary::says_more_than_a_summary;

/// A context whose old part is going to be replaced by a digest.
pub(crate) struct Digesting<'a, 't> {
    pub rule: &'a DigestRule,
    pub view: &'a View<'t>,
    /// The index in the context at which the old part ends.
    pub end: usize,
    /// The maximum tokens of the whole context with the digest.
    pub budget: DigestBudget,
    /// Tokens that the API format adds around the digest.
    pub around: Tokens,
}

/// A digest whose lines were chosen, and what it replaces.
pub(crate) struct Chosen {
    pub digest: Digest,
    /// The indices of the items that the digest replaces, in the order in which they are sent.
    pub items: Vec<usize>,
}

impl Digesting<'_, '_> {
    /// Makes the digest. `None` if the old part has nothing to digest (see
    /// [`says_more_than_a_summary`]), or if it has no lines to choose from.
    ///
    /// `find_originals` receives the items of the old part and the items after it. It returns the
    /// originals of the old part, of whose lines the digest is made. `tokens` counts an item that
    /// stays.
    ///
    /// # Errors
    ///
    /// `Refused` if a pinned rule (one that should stay in the context after every compaction)
    /// alone exceeds the budget.
    pub(crate) fn choose(
        &self,
        index: &mut FactIndex,
        find_originals: impl FnOnce(&[usize], &[usize]) -> Vec<usize>,
        tokens: impl Fn(usize) -> Tokens,
    ) -> Result<Option<Chosen>> {
        let Digesting { rule, view, end, budget, around } = *self;
        let transcript = view.transcript;
        let (old, kept) = transcript.context.split_at(end);
        if !says_more_than_a_summary(transcript, old) {
            return Ok(None);
        }
        let (prompt, items): (Vec<usize>, Vec<usize>) =
            old.iter().partition(|item| transcript.head.prompt.contains(item));
        let stays: Tokens = kept.iter().chain(&prompt).map(|&item| tokens(item)).sum();
        let originals = find_originals(old, kept);
        let old = ReplacedHistory {
            items: &items,
            originals: &originals,
            all_originals: &originals,
            kept,
        };
        let digest = rule.digest_with(index, view, &old, budget, stays + around);
        let digest = digest.map_err(|why| Error::new(ErrorKind::Refused, why))?;
        Ok(digest.map(|digest| Chosen { digest, items }))
    }
}

/// Whether a digest is at least 5 per cent smaller than what it replaces. A smaller saving is worth
/// less than the provider's cache that it invalidates.
pub(crate) fn saves_enough(digest: Tokens, stands_for: Tokens) -> bool {
    digest.0 * 20 <= stands_for.0 * 19
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_that_saves_next_to_nothing_is_not_worth_while() {
        for (digest, stands_for, expect) in
            [(0, 0, true), (95, 100, true), (96, 100, false), (100, 100, false), (101, 100, false)]
        {
            let worth = saves_enough(Tokens(digest), Tokens(stands_for));
            assert_eq!(worth, expect, "{digest} for {stands_for}");
        }
    }
}
