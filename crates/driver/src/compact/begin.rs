//! How a summary begins, of a stored session as of a context in use.

use epitome_model::{Source, Tokens, Transcript};
use epitome_passes::{Old, Options, Recipe, Summarising, SummaryRule, Trigger, View, Writer};

use super::summary::{kept_end, says_more_than_a_summary};

/// Tokens of a window that nobody has named.
pub(crate) const WINDOW: Tokens = Tokens(32_000);

/// What is to be summarised, and how.
pub(crate) struct Begin<'a> {
    pub(crate) transcript: &'a Transcript,
    pub(crate) source: &'a dyn Source,
    /// What it keeps at the end stays.
    pub(crate) recipe: &'a Recipe,
    pub(crate) options: Options<'a>,
    pub(crate) rule: SummaryRule,
    pub(crate) writer: Writer,
}

/// A summary that is begun.
pub(crate) struct Begun {
    /// Items that it will stand for, as they are sent.
    pub(crate) items: Vec<usize>,
    /// Items that stay behind it.
    pub(crate) kept: Vec<usize>,
    pub(crate) writing: Summarising,
}

impl Begin<'_> {
    /// The first question; nothing, if there is nothing to summarise, or why there is none. `end`
    /// moves the place in the context at which it ends; `said` tells, of what goes and what stays,
    /// what is read of it and what was ever said.
    pub(crate) fn ask(
        self,
        end: impl FnOnce(usize) -> usize,
        said: impl FnOnce(&[usize], &[usize]) -> (Vec<usize>, Vec<usize>),
    ) -> Result<Option<Begun>, String> {
        let Begin { transcript, source, recipe, options, rule, writer } = self;
        let keep = keeping(recipe);
        let kept = epitome_passes::compact(transcript, source, &keep, &options).kept;
        let end = end(kept_end(transcript, &kept).0.len());
        let (old, kept) = transcript.context.split_at(end);
        if !says_more_than_a_summary(transcript, old) {
            return Ok(None);
        }
        let told = |item: &&usize| !transcript.head.prompt.contains(item);
        let items: Vec<usize> = old.iter().filter(told).copied().collect();
        let (read, said) = said(&items, kept);
        let view = View::new(transcript, source, options.counter);
        let old = Old { items: &items, read: &read, said: &said, kept };
        let writing = Summarising::begin(&view, &old, &rule, writer)?;
        Ok(Some(Begun { kept: kept.to_vec(), items, writing }))
    }
}

/// A recipe that keeps what this one keeps and does nothing else.
pub(super) fn keeping(recipe: &Recipe) -> Recipe {
    Recipe {
        passes: Vec::new(),
        trigger: Trigger::default(),
        target: None,
        target_chars: None,
        ..recipe.clone()
    }
}
