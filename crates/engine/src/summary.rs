//! Begins a summary of a stored session or a live context.

use std::collections::HashMap;

use epitome_model::{Block, Role, Source, Tokens, Transcript, units};
use epitome_passes::{
    KeptParts, Options, Recipe, ReplacedHistory, SummaryInProgress, SummaryRule, View, Writer,
};

/// The window in tokens that is assumed if a model's window is unknown.
pub const WINDOW: Tokens = Tokens(32_000);

/// What to summarise, and how. [`begin`](SummaryRequest::begin) makes the first question.
pub struct SummaryRequest<'a> {
    /// The transcript of the session or the log.
    pub transcript: &'a Transcript,
    /// The source of the transcript's texts.
    pub source: &'a dyn Source,
    /// The recipe, whose rules say what is kept at the end.
    pub recipe: &'a Recipe,
    /// How the rules of the recipe are applied, and with which tokenizer.
    pub options: Options<'a>,
    /// The rule for the content of the summary.
    pub rule: SummaryRule,
    /// The window and the tokenizer of the model that writes the summary.
    pub writer: Writer,
}

/// A summary that has been begun, with its first question.
pub struct StartedSummary {
    /// The items that the summary will replace, in the order in which they are sent.
    pub items: Vec<usize>,
    /// The items that are sent unchanged after the summary.
    pub kept: Vec<usize>,
    /// The state machine of the questions and answers.
    pub writing: SummaryInProgress,
}

impl SummaryRequest<'_> {
    /// Makes the first question. `Ok(None)` if there is nothing to summarise.
    ///
    /// `end` receives the index in the context at which the old part ends, and may return another.
    /// `find_originals` receives the items that the summary replaces and those that stay. It
    /// returns the items that the model reads, and all original items.
    ///
    /// # Errors
    ///
    /// The reason, if there can be no summary.
    pub fn begin(
        self,
        end: impl FnOnce(usize) -> usize,
        find_originals: impl FnOnce(&[usize], &[usize]) -> (Vec<usize>, Vec<usize>),
    ) -> Result<Option<StartedSummary>, String> {
        let SummaryRequest { transcript, source, recipe, options, rule, writer } = self;
        let keep = keep_rules_of(recipe);
        let kept = epitome_passes::plan_edits(transcript, source, &keep, &options).kept;
        let end = end(split_at_kept_end(transcript, &kept).0.len());
        let (old, kept) = transcript.context.split_at(end);
        if !says_more_than_a_summary(transcript, old) {
            return Ok(None);
        }
        let items = old.iter().filter(|item| !transcript.head.prompt.contains(item));
        let items: Vec<usize> = items.copied().collect();
        let (originals, all_originals) = find_originals(&items, kept);
        let view =
            View::new(transcript, source, options.counter).with_rule_files(&recipe.rule_files);
        let old = ReplacedHistory {
            items: &items,
            originals: &originals,
            all_originals: &all_originals,
            kept,
        };
        let writing = SummaryInProgress::begin(&view, &old, &rule, writer)?;
        Ok(Some(StartedSummary { kept: kept.to_vec(), items, writing }))
    }
}

/// A recipe with nothing but the rules for what `recipe` keeps.
pub fn keep_rules_of(recipe: &Recipe) -> Recipe {
    Recipe { keep: recipe.keep, ..Recipe::default() }
}

/// The context in two parts: the items that a summary replaces, and the end that is kept. The kept
/// end is as long as possible: all of its items are in `kept`, and no call is separated from its
/// results.
pub fn split_at_kept_end<'t>(
    transcript: &'t Transcript,
    kept: &KeptParts,
) -> (&'t [usize], &'t [usize]) {
    let context = &transcript.context;
    let mut end =
        context.iter().rposition(|item| !kept.items.contains(item)).map_or(0, |at| at + 1);
    // The results of a replaced call are replaced as well.
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

/// Whether `items`, the beginning of the context, contain anything to summarise. Two kinds of items
/// do not count: entries of the agent, because the agent adds them again, and items up to the last
/// summary in the context. A summary alone need not be summarised, and items before it were kept
/// when it was written.
pub fn says_more_than_a_summary(transcript: &Transcript, items: &[usize]) -> bool {
    let last = transcript.context.iter().rposition(|&item| {
        let entry = transcript.items[item].entry();
        entry.is_some_and(|entry| {
            entry.blocks.iter().any(|block| matches!(block, Block::Summary(_)))
        })
    });
    let from = last.map_or(0, |at| at + 1);
    let mut entries = items.iter().skip(from).filter_map(|&item| transcript.items[item].entry());
    entries.any(|entry| entry.role != Role::System)
}
