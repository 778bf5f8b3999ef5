//! A recipe run over a transcript: what it comes to, before anything is written.

use std::collections::{BTreeMap, HashMap, HashSet};

use epitome_model::{
    Again, At, Block, Bytes, CHARS_AROUND, Call, Change, Counter, Edit, Source, Tokens, Transcript,
    encode,
};

use crate::keep::{self, Kept};
use crate::{LinesOf, Recipe, Stop, Trigger, View, copies, thinking};

/// What a run needs beside the recipe.
pub struct Options<'a> {
    /// Counts tokens.
    pub counter: &'a dyn Counter,
    /// Whether reasoning of this model is bound to everything before it.
    pub thinking_is_bound: fn(model: &str) -> bool,
    /// Tokens that were counted before, by item and block.
    pub counted: &'a [Vec<Tokens>],
}

/// What a recipe comes to in one session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compaction {
    /// The edits, in the order of the file.
    pub edits: Vec<Planned>,
    /// What is kept whole, and why.
    pub kept: Kept,
    /// What a resume would send now.
    pub tokens_before: Tokens,
    /// The trigger that was not reached; then there are no edits.
    pub not_reached: Option<Trigger>,
    /// What the edits would save, if that is less than the recipe wants; then there are none.
    pub too_little: Option<Tokens>,
    /// Tokens by item and block, as far as they were counted.
    pub counted: BTreeMap<(usize, usize), Tokens>,
}

impl Compaction {
    /// How many edits each pass makes.
    pub fn by_pass(&self) -> BTreeMap<&'static str, u64> {
        let mut passes = BTreeMap::new();
        for planned in &self.edits {
            *passes.entry(planned.edit.pass).or_default() += 1;
        }
        passes
    }

    /// The edits alone.
    pub fn edits(&self) -> Vec<Edit> {
        self.edits.iter().map(|planned| planned.edit.clone()).collect()
    }
}

/// An edit and what it is expected to save in the context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The edit.
    pub edit: Edit,
    /// Tokens that a resume sends less. Reports count again afterwards.
    pub tokens: Tokens,
}

/// Runs a recipe. Pure: the same transcript gives the same edits.
pub fn compact(
    transcript: &Transcript,
    source: &dyn Source,
    recipe: &Recipe,
    options: &Options<'_>,
) -> Compaction {
    let mut view = View::new(transcript, source, options.counter).with_counts(options.counted);
    let tokens_before = view.context_tokens();
    let mut compaction = Compaction { tokens_before, ..Compaction::default() };
    if !reached(recipe.trigger, Bytes(source.len()), tokens_before) {
        compaction.not_reached = Some(recipe.trigger);
    } else if !Size::of(&view, recipe).is_within(recipe) {
        compaction.kept = keep::apply(recipe.keep, &mut view);
        let planned = plan(&view, recipe);
        let mut chosen: Vec<Planned> = up_to_target(&view, planned, recipe);
        chosen.extend(other_times(&view, &chosen));
        chosen.extend(bound_thinking(&view, &chosen, options.thinking_is_bound));
        let saved: Tokens = chosen.iter().map(|planned| planned.tokens).sum();
        if recipe.at_least.is_none_or(|least| saved >= Tokens(least)) {
            chosen.sort_by_key(|planned| planned.edit.at);
            compaction.edits = chosen;
        } else {
            compaction.too_little = Some(saved);
        }
    }
    compaction.counted = view.counted();
    compaction
}

/// What a recipe takes away for who reads a session: edits that are shown and never written.
///
/// They differ from [`compact`]: nothing is kept for its age, what is short goes as well, so that a
/// page is of one kind, and counts are those of the session before any recipe: `lines_of` says how
/// many lines the archive has under a reference, where a stub does not say it.
pub fn for_reading(
    transcript: &Transcript,
    source: &dyn Source,
    recipe: &Recipe,
    lines_of: LinesOf<'_>,
) -> Vec<Edit> {
    let view = View::for_reading(transcript, source, lines_of);
    let mut planned: Vec<Planned> =
        plan(&view, recipe).into_iter().map(|(_, planned)| planned).collect();
    planned.extend(other_times(&view, &planned));
    planned.sort_by_key(|planned| planned.edit.at);
    planned.into_iter().map(|planned| planned.edit).collect()
}

fn reached(trigger: Trigger, bytes: Bytes, tokens: Tokens) -> bool {
    trigger.bytes.is_none_or(|least| bytes >= Bytes(least))
        && trigger.tokens.is_none_or(|least| tokens >= Tokens(least))
}

/// What each pass plans, with its number.
fn plan(view: &View<'_>, recipe: &Recipe) -> Vec<(usize, Planned)> {
    let mut planned = Vec::new();
    for (tier, settings) in recipe.passes.iter().enumerate() {
        let mut edits = settings.pass().plan(view);
        edits.retain(|edit| !is_exempt(view, recipe, edit.at));
        view.take(&edits);
        planned.extend(edits.into_iter().map(|edit| {
            let tokens = saving(view, &edit);
            (tier, Planned { edit, tokens })
        }));
    }
    planned
}

/// Whether a place is of a tool that the recipe leaves alone.
fn is_exempt(view: &View<'_>, recipe: &Recipe, at: At) -> bool {
    let call = match said(view, at) {
        Some(Block::Call(call)) => Some(call),
        Some(Block::Output(output)) => view.call_of(output),
        Some(_) | None => None,
    };
    let names =
        |call: &Call| recipe.exempt_tools.iter().any(|name| name.eq_ignore_ascii_case(&call.name));
    call.is_some_and(names)
}

/// What a resume sends less for an edit.
fn saving(view: &View<'_>, edit: &Edit) -> Tokens {
    let item = edit.at.item();
    if !view.is_sent(item) {
        return Tokens(0);
    }
    let left = match &edit.change {
        Change::Replace(text) => view.counter.count(text),
        Change::Drop => Tokens(0),
        _ => Tokens(0),
    };
    match edit.at {
        At::Copy { .. } => Tokens(0),
        At::Block { block, .. } => match edit.change {
            Change::Drop => view.tokens(item, block),
            _ => view.tokens(item, block) - left,
        },
        At::Field { block, field, .. } => {
            let text = view.transcript.items[item].entry().and_then(|entry| {
                match entry.blocks.get(block) {
                    Some(Block::Call(call)) => call.fields.get(field).map(|field| &field.text),
                    _ => None,
                }
            });
            text.map_or(Tokens(0), |text| view.counter.count(&view.words(text)) - left)
        }
        At::Part { .. } => epitome_model::IMAGE - left,
    }
}

/// What a context weighs, as far as a recipe asks.
#[derive(Clone, Copy)]
struct Size {
    tokens: Tokens,
    /// Nothing if no part of the recipe asks.
    chars: Option<u64>,
}

impl Size {
    fn of(view: &View<'_>, recipe: &Recipe) -> Size {
        let chars = asks_for_chars(recipe).then(|| view.context_chars());
        Size { tokens: view.context_tokens(), chars }
    }

    /// Whether every target that the recipe has is reached.
    fn is_within(&self, recipe: &Recipe) -> bool {
        let chars = recipe.target_chars.map(|target| self.chars.is_some_and(|it| it <= target));
        let tokens = recipe.target.map(|target| self.tokens <= Tokens(target));
        (chars.is_some() || tokens.is_some()) && chars.unwrap_or(true) && tokens.unwrap_or(true)
    }

    fn less(&mut self, tokens: Tokens, chars: u64) {
        self.tokens = self.tokens - tokens;
        self.chars = self.chars.map(|all| all.saturating_sub(chars));
    }

    /// Takes back what an edit saved that another one takes the place of.
    fn more(&mut self, tokens: Tokens, chars: u64) {
        self.tokens += tokens;
        self.chars = self.chars.map(|all| all + chars);
    }
}

/// Edits in the order of the passes, oldest first, until the target is reached. Those that change
/// nothing for a model, or take away only what it is told twice, are all made. Of two edits of one
/// place the later pass's stands.
fn up_to_target(view: &View<'_>, planned: Vec<(usize, Planned)>, recipe: &Recipe) -> Vec<Planned> {
    let loses_nothing =
        |planned: &Planned| planned.tokens == Tokens(0) || again(view, planned.edit.at).is_some();
    let mut left = Size::of(view, recipe);
    let chars = |planned: &Planned| match asks_for_chars(recipe) {
        true => chars_saved(view, &planned.edit),
        false => 0,
    };
    for (_, planned) in planned.iter().filter(|(_, planned)| loses_nothing(planned)) {
        left.less(planned.tokens, chars(planned));
    }
    let (mut begun, mut entered, mut passed_over) = (None, None, None);
    let mut chosen: Vec<Planned> = Vec::with_capacity(planned.len());
    let mut places: HashMap<At, usize> = HashMap::new();
    for (tier, planned) in planned {
        let free = loses_nothing(&planned);
        if entered.replace(tier) != Some(tier) {
            let over = recipe.passes[tier].over_chars();
            let is_over = over.is_none_or(|over| left.chars.is_some_and(|it| it > over));
            passed_over = (!is_over).then_some(tier);
        }
        let goes_on = recipe.stop == Stop::Pass && begun == Some(tier);
        if passed_over == Some(tier) || !free && !goes_on && left.is_within(recipe) {
            continue;
        }
        let earlier = places.get(&planned.edit.at).copied();
        if !free {
            if let Some(at) = earlier {
                left.more(chosen[at].tokens, chars(&chosen[at]));
            }
            left.less(planned.tokens, chars(&planned));
            begun = Some(tier);
        }
        match earlier {
            Some(at) => chosen[at] = planned,
            None => {
                places.insert(planned.edit.at, chosen.len());
                chosen.push(planned);
            }
        }
    }
    chosen
}

/// Whether any part of the recipe counts characters.
fn asks_for_chars(recipe: &Recipe) -> bool {
    recipe.target_chars.is_some() || recipe.passes.iter().any(|it| it.over_chars().is_some())
}

/// What a resume sends less for an edit, in characters as they are written.
fn chars_saved(view: &View<'_>, edit: &Edit) -> u64 {
    let item = edit.at.item();
    if !view.is_sent(item) {
        return 0;
    }
    let written = |text: &str| encode(text).chars().count() as u64;
    let new = match &edit.change {
        Change::Replace(text) => written(text),
        _ => 0,
    };
    let old = match edit.at {
        At::Copy { .. } => 0,
        At::Part { .. } => 4 * epitome_model::IMAGE.0,
        At::Block { block, .. } => {
            let around = if edit.change == Change::Drop { CHARS_AROUND } else { 0 };
            view.chars(item, block) + around
        }
        At::Field { .. } => match said(view, edit.at) {
            Some(Block::Call(call)) => match edit.at {
                At::Field { field, .. } => {
                    call.fields.get(field).map_or(0, |field| written(&view.words(&field.text)))
                }
                At::Block { .. } | At::Part { .. } | At::Copy { .. } => 0,
            },
            Some(_) | None => 0,
        },
    };
    old.saturating_sub(new)
}

/// An edit of a result has to reach every time that it is said: the other times go.
fn other_times(view: &View<'_>, planned: &[Planned]) -> Vec<Planned> {
    let edited: HashSet<&str> = planned
        .iter()
        .filter_map(|planned| match (planned.edit.at, said(view, planned.edit.at)?) {
            (At::Block { .. } | At::Part { .. }, Block::Output(output)) => Some(&*output.call),
            _ => None,
        })
        .collect();
    if edited.is_empty() {
        return Vec::new();
    }
    let known: HashSet<At> = planned.iter().map(|planned| planned.edit.at).collect();
    let entries = view.transcript.entries();
    entries
        .flat_map(|(item, entry)| copies::said_again(item, entry))
        .filter(|edit| {
            let call = again(view, edit.at).map(|again| &*again.output.call);
            !known.contains(&edit.at) && call.is_some_and(|call| edited.contains(call))
        })
        .map(|edit| {
            let tokens = saving(view, &edit);
            Planned { edit, tokens }
        })
        .collect()
}

fn again<'a>(view: &View<'a>, at: At) -> Option<&'a Again> {
    match said(view, at)? {
        Block::Again(again) => Some(again),
        _ => None,
    }
}

/// The block in which an edit acts.
fn said<'a>(view: &View<'a>, at: At) -> Option<&'a Block> {
    let (At::Block { item, block } | At::Part { item, block, .. } | At::Field { item, block, .. }) =
        at
    else {
        return None;
    };
    view.transcript.items[item].entry()?.blocks.get(block)
}

/// Reasoning that is bound to everything before it is invalid after the first edit: it goes too,
/// kept or not, because an agent that sends it is refused.
fn bound_thinking(
    view: &View<'_>,
    planned: &[Planned],
    is_bound: fn(&str) -> bool,
) -> Vec<Planned> {
    let edited: HashSet<usize> = planned
        .iter()
        .filter(|planned| !matches!(planned.edit.at, At::Copy { .. }))
        .map(|planned| planned.edit.at.item())
        .collect();
    let dropped: HashSet<At> = planned.iter().map(|planned| planned.edit.at).collect();
    let mut after_edit = false;
    let mut more = Vec::new();
    for (item, entry) in view.transcript.context() {
        after_edit |= edited.contains(&item);
        if !after_edit || !entry.model.as_deref().is_some_and(is_bound) {
            continue;
        }
        let drops = thinking::drops(item, &entry.blocks);
        let new = drops.into_iter().filter(|drop| !dropped.contains(&drop.at));
        more.extend(new.map(|edit| {
            let tokens = saving(view, &edit);
            Planned { edit, tokens }
        }));
    }
    more
}

#[cfg(test)]
#[path = "compaction_tests.rs"]
mod tests;
