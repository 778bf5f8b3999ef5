//! A recipe run over a transcript: what it comes to, before anything is written.

use std::collections::{BTreeMap, HashMap, HashSet};

use epitome_model::{
    At, Block, CHARS_AROUND, Call, Change, Counter, Edit, RepeatedOutput, Source, Span, Text,
    Tokens, Transcript, call_tokens, encode, encode_as,
};

use crate::keep::{self, Kept};
use crate::level::ContextSize;
use crate::{
    ContextKind, Cut, Level, LinesOf, PassSettings, Pin, Recipe, Stop, Target, View, copies, pins,
    thinking,
};

/// What a run needs in addition to the recipe.
pub struct Options<'a> {
    /// The kind of the context. The trigger of one in use has been reached already.
    pub kind: ContextKind,
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
    pub edits: Vec<PlannedEdit>,
    /// What is cut out of the middle, in addition to the edits.
    pub cut: Option<Cut>,
    /// What is kept whole, and why.
    pub kept: Kept,
    /// What sets rules and is left as it is, in tokens.
    pub pinned: Tokens,
    /// What a resume would send now.
    pub tokens_before: Tokens,
    /// The trigger that was not reached; then there are no edits.
    pub not_reached: Option<Level>,
    /// What the edits would save, if that is less than the recipe wants; then there are none.
    pub too_little: Option<Tokens>,
    /// Tokens by item and block, as far as they were counted.
    pub counted: BTreeMap<(usize, usize), Tokens>,
}

impl Compaction {
    /// How many edits each pass makes, and how many messages are cut out.
    pub fn by_pass(&self) -> BTreeMap<&'static str, u64> {
        let mut passes = BTreeMap::new();
        for planned in &self.edits {
            *passes.entry(planned.edit.pass).or_default() += 1;
        }
        passes.extend(self.cut.as_ref().map(|cut| ("trim", cut.messages)));
        passes
    }

    /// The edits alone.
    pub fn edits(&self) -> Vec<Edit> {
        self.edits.iter().map(|planned| planned.edit.clone()).collect()
    }
}

/// An edit and what it is expected to save in the context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedEdit {
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
    let mut view = View::new(transcript, source, options.counter)
        .with_counts(options.counted)
        .with_rule_files(&recipe.rule_files);
    let run = Run::new(recipe, options);
    let size = run.size(&view);
    let mut compaction = Compaction { tokens_before: size.tokens, ..Compaction::default() };
    if !run.is_due(&size) {
        compaction.not_reached = Some(recipe.trigger.stored);
    } else if !run.is_within(&size) {
        compaction.kept = keep::apply(recipe.keep, &mut view);
        let pinned = pins(&view, &transcript.context);
        // A summary that holds one is longer than it.
        let tokens =
            |pin: &Pin| view.tokens(pin.item, pin.block).min(view.counter.count(&pin.text));
        compaction.pinned = pinned.iter().map(tokens).sum();
        view.pin(pinned.iter().map(|pin| (pin.item, pin.block)));
        let mut planned = run.ingest(&view);
        planned.extend(plan(&mut view, recipe, options.kind));
        let mut chosen: Vec<PlannedEdit> = run.up_to_target(&view, size, planned);
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
    let mut view = View::for_reading(transcript, source, lines_of);
    let mut planned: Vec<PlannedEdit> = plan(&mut view, recipe, ContextKind::Stored)
        .into_iter()
        .map(|(_, planned)| planned)
        .collect();
    planned.extend(other_times(&view, &planned));
    planned.sort_by_key(|planned| planned.edit.at);
    planned.into_iter().map(|planned| planned.edit).collect()
}

/// The part of a recipe that plans an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Ingest,
    /// A pass, by its place in the list.
    Pass(usize),
}

/// What each pass plans.
fn plan(view: &mut View<'_>, recipe: &Recipe, kind: ContextKind) -> Vec<(Part, PlannedEdit)> {
    let mut planned = Vec::new();
    let mut calls = EditedCalls::default();
    for (pass, settings) in recipe.stages.of(kind).passes.iter().enumerate() {
        let mut edits = settings.pass().plan(view);
        edits.retain(|edit| !view.is_pinned(edit.at) && !is_exempt(view, recipe, edit.at));
        view.take(&edits);
        planned.extend(edits.into_iter().map(|edit| {
            let tokens = match (edit.at, &edit.change) {
                (At::Field { item, block, field }, Change::Replace(text)) => {
                    calls.saving(view, (item, block, field), text)
                }
                _ => saving(view, &edit),
            };
            (Part::Pass(pass), PlannedEdit { edit, tokens })
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

/// Calls of which arguments were replaced, by item and block: the new texts by field.
#[derive(Default)]
struct EditedCalls(HashMap<(usize, usize), BTreeMap<usize, String>>);

impl EditedCalls {
    /// The tokens that a resume saves when a field becomes `text`, after the edits of other fields.
    ///
    /// A call is counted as the JSON that is sent: an estimate from the texts alone would stop a
    /// little above the target, and a second run would plan one edit more.
    fn saving(&mut self, view: &View<'_>, at: (usize, usize, usize), text: &str) -> Tokens {
        let (item, block, field) = at;
        let call = match said(view, At::Block { item, block }) {
            Some(Block::Call(call)) if view.is_sent(item) => call,
            Some(_) | None => return Tokens(0),
        };
        let old = call.fields.get(field).map(|field| &field.text);
        if !old.and_then(Text::span).is_some_and(|span| call.arguments.contains(span)) {
            let old = old.map_or(Tokens(0), |old| view.counter.count(&view.words(old)));
            return old - view.counter.count(text);
        }
        let fields = self.0.entry((item, block)).or_default();
        fields.remove(&field);
        let before = if fields.is_empty() {
            view.tokens(item, block)
        } else {
            tokens_with(view, call, fields)
        };
        fields.insert(field, text.to_owned());
        before - tokens_with(view, call, fields)
    }
}

/// The tokens of a call in which these fields have these texts.
fn tokens_with(view: &View<'_>, call: &Call, fields: &BTreeMap<usize, String>) -> Tokens {
    let spans = fields.iter().filter_map(|(field, text)| {
        let span = call.fields.get(*field)?.text.span()?;
        Some((span, text))
    });
    let mut spans: Vec<(Span, &String)> = spans.collect();
    spans.sort_unstable_by_key(|(span, _)| *span);
    let (mut json, mut from) = (Vec::new(), call.arguments.start);
    for (span, text) in spans {
        // A field may lie in another: a text in a script.
        if span.start >= from {
            json.extend_from_slice(&view.source.read(from..span.start));
            let head = view.source.read(span.start..span.start + 2);
            json.extend_from_slice(encode_as(text, &head).as_bytes());
            from = span.end;
        }
    }
    json.extend_from_slice(&view.source.read(from..call.arguments.end));
    call_tokens(&call.name, json.into(), view.counter)
}

/// What a resume sends less for an edit of a block or of a part of it.
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
        // `EditedCalls` says what these save.
        At::Field { .. } => Tokens(0),
        At::Part { .. } => epitome_model::IMAGE - left,
    }
}

/// A recipe for one kind of contexts, as far as sizes decide.
struct Run<'a> {
    recipe: &'a Recipe,
    kind: ContextKind,
    passes: &'a [PassSettings],
    target: Option<Target>,
    /// Whether any part of the recipe counts characters: else none are counted.
    asks_for_chars: bool,
}

impl<'a> Run<'a> {
    fn new(recipe: &'a Recipe, options: &Options<'_>) -> Run<'a> {
        let kind = options.kind;
        let passes = &*recipe.stages.of(kind).passes;
        let target = *recipe.target.of(kind);
        let asks_for_chars = target.is_some_and(|target| target.chars.is_some())
            || recipe.trigger.stored.chars.is_some()
            || passes.iter().any(|pass| pass.over_chars().is_some());
        Run { recipe, kind, passes, target, asks_for_chars }
    }

    /// The size of the context.
    fn size(&self, view: &View<'_>) -> ContextSize {
        let chars = if self.asks_for_chars { view.context_chars() } else { 0 };
        ContextSize { chars, ..view.size() }
    }

    /// Whether the trigger is reached.
    fn is_due(&self, size: &ContextSize) -> bool {
        match self.kind {
            ContextKind::Stored => {
                self.recipe.trigger.stored.is_reached(ContextKind::Stored, size, None)
            }
            ContextKind::Live => true,
        }
    }

    /// What results of a stored session are shortened to before anything else is done. In a
    /// context in use that was done when they arrived.
    fn ingest(&self, view: &View<'_>) -> Vec<(Part, PlannedEdit)> {
        let rule = match self.kind {
            ContextKind::Stored => self.recipe.stages.stored.ingest,
            ContextKind::Live => None,
        };
        let edits = rule.map(|rule| rule.plan(view)).unwrap_or_default().into_iter();
        let edits =
            edits.filter(|edit| !view.is_pinned(edit.at) && !is_exempt(view, self.recipe, edit.at));
        let planned = |edit| {
            let tokens = saving(view, &edit);
            (Part::Ingest, PlannedEdit { edit, tokens })
        };
        edits.map(planned).collect()
    }

    fn is_within(&self, size: &ContextSize) -> bool {
        self.target.is_some_and(|target| target.is_reached(size, None))
    }

    /// Characters that an edit saves, if characters are counted.
    fn chars_saved(&self, view: &View<'_>, edit: &Edit) -> u64 {
        if self.asks_for_chars { chars_saved(view, edit) } else { 0 }
    }

    /// Edits in the order of the passes, oldest first, until the target is reached. Those that
    /// change nothing for a model, or take away only what it is sent twice, are all made. Of two
    /// edits of one place the later pass's stands.
    fn up_to_target(
        &self,
        view: &View<'_>,
        size: ContextSize,
        planned: Vec<(Part, PlannedEdit)>,
    ) -> Vec<PlannedEdit> {
        let loses_nothing = |planned: &PlannedEdit| {
            planned.tokens == Tokens(0) || again(view, planned.edit.at).is_some()
        };
        let mut left = size;
        for (_, planned) in planned.iter().filter(|(_, planned)| loses_nothing(planned)) {
            less(&mut left, planned.tokens, self.chars_saved(view, &planned.edit));
        }
        let (mut begun, mut entered, mut passed_over) = (None, None, None);
        let mut chosen: Vec<PlannedEdit> = Vec::with_capacity(planned.len());
        let mut places: HashMap<At, usize> = HashMap::new();
        for (part, planned) in planned {
            let free = loses_nothing(&planned);
            if entered.replace(part) != Some(part) {
                let over = match part {
                    Part::Ingest => None,
                    Part::Pass(pass) => self.passes[pass].over_chars(),
                };
                let is_over = over.is_none_or(|over| left.chars > over);
                passed_over = (!is_over).then_some(part);
            }
            let goes_on = self.recipe.stop == Stop::Pass && begun == Some(part);
            if passed_over == Some(part) || !free && !goes_on && self.is_within(&left) {
                continue;
            }
            let earlier = places.get(&planned.edit.at).copied();
            if !free {
                if let Some(at) = earlier {
                    // What an edit saved that this one takes the place of.
                    left.tokens += chosen[at].tokens;
                    left.chars += self.chars_saved(view, &chosen[at].edit);
                }
                less(&mut left, planned.tokens, self.chars_saved(view, &planned.edit));
                begun = Some(part);
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
}

fn less(size: &mut ContextSize, tokens: Tokens, chars: u64) {
    size.tokens = size.tokens - tokens;
    size.chars = size.chars.saturating_sub(chars);
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
fn other_times(view: &View<'_>, planned: &[PlannedEdit]) -> Vec<PlannedEdit> {
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
            PlannedEdit { edit, tokens }
        })
        .collect()
}

fn again<'a>(view: &View<'a>, at: At) -> Option<&'a RepeatedOutput> {
    match said(view, at)? {
        Block::Repeated(again) => Some(again),
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
    planned: &[PlannedEdit],
    is_bound: fn(&str) -> bool,
) -> Vec<PlannedEdit> {
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
            PlannedEdit { edit, tokens }
        }));
    }
    more
}

#[cfg(test)]
#[path = "compaction_tests.rs"]
mod tests;
