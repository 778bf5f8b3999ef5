//! Begins a summary, of a stored session or a context in use.

use std::collections::HashMap;

use epitome_model::{Block, Role, Source, Tokens, Transcript, units};
use epitome_passes::{Kept, Old, Options, Recipe, Summarising, SummaryRule, View, Writer};

/// The window, in tokens, of a model whose window is unknown.
pub const WINDOW: Tokens = Tokens(32_000);

/// What to summarise, and how.
pub struct SummaryRequest<'a> {
    /// The transcript of the session or the log.
    pub transcript: &'a Transcript,
    /// Its bytes.
    pub source: &'a dyn Source,
    /// The recipe, whose rules say what is kept at the end.
    pub recipe: &'a Recipe,
    /// The tokenizer, and how reasoning is bound to its history.
    pub options: Options<'a>,
    /// The rule for writing the summary.
    pub rule: SummaryRule,
    /// The window and the tokenizer of the summarising model.
    pub writer: Writer,
}

/// A summary that has been begun.
pub struct StartedSummary {
    /// The items that it will replace, in the order in which they are sent.
    pub items: Vec<usize>,
    /// The items that are kept after it.
    pub kept: Vec<usize>,
    /// The questions and answers.
    pub writing: Summarising,
}

impl SummaryRequest<'_> {
    /// Makes the first question. `Ok(None)` if there is nothing to summarise, `Err` with the reason
    /// if there can be no summary. `end` may move the place in the context where the old part ends.
    /// `said` returns, for the items that go and stay, the items to read and all original items.
    pub fn begin(
        self,
        end: impl FnOnce(usize) -> usize,
        said: impl FnOnce(&[usize], &[usize]) -> (Vec<usize>, Vec<usize>),
    ) -> Result<Option<StartedSummary>, String> {
        let SummaryRequest { transcript, source, recipe, options, rule, writer } = self;
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
        let view =
            View::new(transcript, source, options.counter).with_rule_files(&recipe.rule_files);
        let old = Old { items: &items, read: &read, said: &said, kept };
        let writing = Summarising::begin(&view, &old, &rule, writer)?;
        Ok(Some(StartedSummary { kept: kept.to_vec(), items, writing }))
    }
}

/// A recipe with only the rules of what this one keeps.
pub fn keeping(recipe: &Recipe) -> Recipe {
    Recipe { keep: recipe.keep, ..Recipe::default() }
}

/// The context in two parts: the items that a summary replaces, and the end that is kept.
pub fn kept_end<'t>(transcript: &'t Transcript, kept: &Kept) -> (&'t [usize], &'t [usize]) {
    let context = &transcript.context;
    let mut end =
        context.iter().rposition(|item| !kept.items.contains(item)).map_or(0, |at| at + 1);
    // A call stays together with its results.
    let places: HashMap<usize, usize> =
        context.iter().enumerate().map(|(at, &item)| (item, at)).collect();
    for unit in units(transcript) {
        let at = unit.items.iter().filter_map(|item| places.get(item).copied());
        if let Some((first, last)) = at.clone().min().zip(at.max())
            && first < end
        {
            end = end.max(last + 1);
        }
    }
    context.split_at(end)
}

/// Whether there is anything to summarise. The agent's own entries do not count, as it adds them
/// again; nor does what is before an earlier summary, which that one left in place.
pub fn says_more_than_a_summary(transcript: &Transcript, items: &[usize]) -> bool {
    let entry = |item: usize| transcript.items[item].entry();
    let is_summary = |block: &Block| matches!(block, Block::Summary(_));
    let summarises =
        |&item: &usize| entry(item).is_some_and(|entry| entry.blocks.iter().any(is_summary));
    let from = transcript.context.iter().rposition(summarises).map_or(0, |at| at + 1);
    let said = items.iter().skip(from).filter_map(|&item| entry(item));
    said.into_iter().any(|entry| entry.role != Role::System)
}
