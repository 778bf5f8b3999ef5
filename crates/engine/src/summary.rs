//! How a summary begins, of a stored session as of a context in use.

use std::collections::HashMap;

use epitome_model::{Block, Role, Source, Tokens, Transcript, units};
use epitome_passes::{Kept, Old, Options, Recipe, Summarising, SummaryRule, View, Writer};

/// Tokens of a window that nobody has named.
pub const WINDOW: Tokens = Tokens(32_000);

/// What is to be summarised, and how.
pub struct SummaryRequest<'a> {
    /// The session or the log.
    pub transcript: &'a Transcript,
    /// Its bytes.
    pub source: &'a dyn Source,
    /// What this recipe keeps at the end stays.
    pub recipe: &'a Recipe,
    /// How tokens are counted and reasoning is bound.
    pub options: Options<'a>,
    /// How the summary is written.
    pub rule: SummaryRule,
    /// The window and the tokenizer of the model that writes.
    pub writer: Writer,
}

/// A summary that is begun.
pub struct StartedSummary {
    /// Items that it will stand for, as they are sent.
    pub items: Vec<usize>,
    /// Items that stay behind it.
    pub kept: Vec<usize>,
    /// The questions and answers.
    pub writing: Summarising,
}

impl SummaryRequest<'_> {
    /// The first question; nothing, if there is nothing to summarise, or why there is none. `end`
    /// moves the place in the context at which it ends; `said` tells, of what goes and what stays,
    /// what is read of it and what was ever said.
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

/// A recipe that keeps what this one keeps and does nothing else.
pub fn keeping(recipe: &Recipe) -> Recipe {
    Recipe { keep: recipe.keep, ..Recipe::default() }
}

/// The context up to the end that is kept, and that end.
pub fn kept_end<'t>(transcript: &'t Transcript, kept: &Kept) -> (&'t [usize], &'t [usize]) {
    let context = &transcript.context;
    let mut end =
        context.iter().rposition(|item| !kept.items.contains(item)).map_or(0, |at| at + 1);
    // A call goes with its results.
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

/// Whether there is something to summarise: what the agent itself says is said again anyway, and
/// what stands before a summary is what an earlier one left beside it.
pub fn says_more_than_a_summary(transcript: &Transcript, items: &[usize]) -> bool {
    let entry = |item: usize| transcript.items[item].entry();
    let is_summary = |block: &Block| matches!(block, Block::Summary(_));
    let summarises =
        |&item: &usize| entry(item).is_some_and(|entry| entry.blocks.iter().any(is_summary));
    let from = transcript.context.iter().rposition(summarises).map_or(0, |at| at + 1);
    let said = items.iter().skip(from).filter_map(|&item| entry(item));
    said.into_iter().any(|entry| entry.role != Role::System)
}
