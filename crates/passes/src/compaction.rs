//! Runs the passes of a recipe over a transcript, and returns their edits as a [`Plan`]. Nothing is
//! written.

use std::collections::{BTreeMap, HashMap, HashSet};

use epitome_model::{
    At, Block, CHARS_AROUND, Call, Counter, Cut, Edit, RepeatedOutput, Source, Span, Summary, Text,
    Tokens, Transcript, Verb, call_tokens, encode, encode_as,
};

use crate::keep::{self, KeptParts};
use crate::level::ContextSize;
use crate::{
    ContextKind, Level, LinesOf, PassSettings, Recipe, Stop, Target, View, copies, pins, thinking,
};

/// What [`plan_edits`] needs in addition to a transcript and a recipe.
pub struct Options<'a> {
    /// The kind of the context. The trigger of a live context is not checked here: the caller must
    /// have checked it.
    pub kind: ContextKind,
    /// The tokenizer.
    pub counter: &'a dyn Counter,
    /// Returns whether the reasoning of a model becomes invalid if anything before it changes.
    pub thinking_is_bound: fn(model: &str) -> bool,
    /// `counted[item][block]` is the number of tokens of a block, if the caller has counted it
    /// already. Blocks that are missing here are counted.
    pub counted: &'a [Vec<Tokens>],
}

/// The edits that a compaction makes in a stored session, a live context or a request, each with
/// the tokens that it saves. Nothing is written yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The edits: a cut of the middle first, then the others, sorted by position ([`At`]). A
    /// summary or a digest is the only edit of its plan.
    pub edits: Vec<PlannedEdit>,
    /// The items that are kept whole, and the rules that keep them.
    pub kept: KeptParts,
    /// Tokens of the texts that set rules for the agent. No pass edits the blocks of these texts.
    pub pinned: Tokens,
    /// The tokens of the context before the compaction: what a resume or the next request would
    /// send without it.
    pub tokens_before: Tokens,
    /// The trigger, if the context has not reached it. The plan has no edits then.
    pub not_reached: Option<Level>,
    /// The number of tokens saved, if that is less than the recipe's minimum. The plan has no edits
    /// then.
    pub saving_below_minimum: Option<Tokens>,
    /// Tokens by item and block, of those blocks that this run counted.
    pub counted: BTreeMap<(usize, usize), Tokens>,
}

impl Plan {
    /// A plan whose only edit is `edit`, or a plan without edits if `edit` is `None`.
    pub fn from_edit(edit: Option<Edit>) -> Plan {
        let edits = edit.into_iter().map(PlannedEdit::without_count).collect();
        Plan { edits, ..Plan::default() }
    }

    /// The number of edits by the name of the pass or stage that proposed them; for a cut of the
    /// middle, the number of messages that the cut removes. A summary or a digest is not counted.
    pub fn by_pass(&self) -> BTreeMap<&'static str, u64> {
        let mut passes = BTreeMap::new();
        for PlannedEdit { edit, .. } in &self.edits {
            let count = match &edit.verb {
                Verb::Replace(_) | Verb::Drop => 1,
                Verb::Cut(cut) => cut.messages,
                Verb::Summarise(_) => continue,
            };
            *passes.entry(edit.pass).or_default() += count;
        }
        passes
    }

    /// The edits without their token counts.
    pub fn edits(&self) -> Vec<Edit> {
        self.edits.iter().map(|planned| planned.edit.clone()).collect()
    }

    /// All edits except those that replace or remove whole items.
    pub fn block_edits(&self) -> impl Iterator<Item = &PlannedEdit> {
        self.edits.iter().filter(|planned| !matches!(planned.edit.at, At::Items { .. }))
    }

    /// The cut of messages out of the middle of the context; `None` if the plan has none.
    pub fn cut(&self) -> Option<&Cut> {
        self.edits.iter().find_map(|planned| match &planned.edit.verb {
            Verb::Cut(cut) => Some(cut),
            Verb::Replace(_) | Verb::Drop | Verb::Summarise(_) => None,
        })
    }

    /// The summary or digest that replaces the beginning of the context; `None` if the plan has
    /// none.
    pub fn summary(&self) -> Option<&Summary> {
        self.edits.iter().find_map(|planned| match &planned.edit.verb {
            Verb::Summarise(summary) => Some(summary),
            Verb::Replace(_) | Verb::Drop | Verb::Cut(_) => None,
        })
    }
}

/// An edit, and what it is expected to save in the context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedEdit {
    /// The edit.
    pub edit: Edit,
    /// An estimate of the tokens that the edit saves. Reports use it for the savings by tool and by
    /// file; for the total saving, the context is counted after the compaction.
    pub tokens: Tokens,
}

impl PlannedEdit {
    /// An edit with a saving of zero, not counted yet.
    pub fn without_count(edit: Edit) -> PlannedEdit {
        PlannedEdit { edit, tokens: Tokens(0) }
    }
}

/// Plans the edits of a recipe's passes and, for a stored session, of its ingest stage. A pure
/// function: the same transcript gives the same edits.
pub fn plan_edits(
    transcript: &Transcript,
    source: &dyn Source,
    recipe: &Recipe,
    options: &Options<'_>,
) -> Plan {
    let mut view = View::new(transcript, source, options.counter)
        .with_counts(options.counted)
        .with_rule_files(&recipe.rule_files);
    let mut plan = begin(&mut view, recipe, options);
    if plan.not_reached.is_none() {
        add_edits(&mut plan, &mut view, recipe, options);
    }
    plan
}

/// Begins a plan: counts the context, and checks the trigger. If the trigger is reached, determines
/// which parts the recipe keeps whole, and which are pinned because they set rules. The plan has no
/// edits yet: [`add_edits`] adds them.
pub fn begin(view: &mut View<'_>, recipe: &Recipe, options: &Options<'_>) -> Plan {
    let run = Run::new(recipe, options);
    let size = run.size(view);
    let mut plan = Plan { tokens_before: size.tokens, ..Plan::default() };
    if run.is_due(&size) {
        plan.kept = keep::apply(recipe.keep, view);
        let pinned = pins(view, &view.transcript.context);
        // A pinned text may be only a part of its block, as in a summary. Then only the pinned text
        // is counted.
        let tokens = pinned
            .iter()
            .map(|pin| view.tokens(pin.item, pin.block).min(view.counter.count(&pin.text)));
        plan.pinned = tokens.sum();
        view.pin(pinned.iter().map(|pin| (pin.item, pin.block)));
    } else {
        plan.not_reached = Some(recipe.trigger.stored);
    }
    plan.counted = view.known_counts();
    plan
}

/// Runs the passes of a recipe over the view, and for a stored session its ingest stage, and adds
/// the edits to `plan`, which [`begin`] made and whose trigger was reached. If the edits save less
/// than the recipe's minimum, adds only the number of saved tokens. If the context is within the
/// target already, adds no edits, and clears what the plan says about kept and pinned parts.
pub fn add_edits(plan: &mut Plan, view: &mut View<'_>, recipe: &Recipe, options: &Options<'_>) {
    let run = Run::new(recipe, options);
    let size = run.size(view);
    if run.is_within(&size) {
        plan.kept = KeptParts::default();
        plan.pinned = Tokens(0);
        return;
    }
    let mut planned = run.ingest(view);
    planned.extend(plan_passes(view, recipe, options.kind));
    let mut chosen: Vec<PlannedEdit> = run.up_to_target(view, size, planned);
    chosen.extend(edits_of_repetitions(view, &chosen));
    chosen.extend(bound_thinking(view, &chosen, options.thinking_is_bound));
    let saved: Tokens = chosen.iter().map(|planned| planned.tokens).sum();
    if recipe.at_least.is_none_or(|least| saved >= Tokens(least)) {
        chosen.sort_by_key(|planned| planned.edit.at);
        plan.edits = chosen;
    } else {
        plan.saving_below_minimum = Some(saved);
    }
    plan.counted = view.known_counts();
}

/// The edits with which a recipe would shorten a session, for a person who reads it: they are shown
/// and never written.
///
/// These edits differ from those of [`plan_edits`]. The recipe's rules for what is kept
/// ([`Keep`](crate::Keep)) are not applied, and texts that set rules are not protected. Short texts
/// are replaced too, so that a page looks uniform. Sizes are those of the original texts, even if
/// the session was compacted before: `lines_of` looks up the number of lines of an archived text.
pub fn edits_for_reading(
    transcript: &Transcript,
    source: &dyn Source,
    recipe: &Recipe,
    lines_of: LinesOf<'_>,
) -> Vec<Edit> {
    let mut view = View::for_reading(transcript, source, lines_of);
    let mut planned: Vec<PlannedEdit> = plan_passes(&mut view, recipe, ContextKind::Stored)
        .into_iter()
        .map(|(_, planned)| planned)
        .collect();
    planned.extend(edits_of_repetitions(&view, &planned));
    planned.sort_by_key(|planned| planned.edit.at);
    planned.into_iter().map(|planned| planned.edit).collect()
}

/// The settings of a recipe that apply to one kind of context.
struct Run<'a> {
    recipe: &'a Recipe,
    kind: ContextKind,
    passes: &'a [PassSettings],
    target: Option<Target>,
    /// Whether any part of the recipe needs character counts, which are slow to compute.
    asks_for_chars: bool,
}

impl<'a> Run<'a> {
    fn new(recipe: &'a Recipe, options: &Options<'_>) -> Run<'a> {
        let kind = options.kind;
        let passes = &*recipe.stages.value_for(kind).passes;
        let target = *recipe.target.value_for(kind);
        let asks_for_chars = target.is_some_and(|target| target.chars.is_some())
            || recipe.trigger.stored.chars.is_some()
            || passes.iter().any(|pass| pass.over_chars().is_some());
        Run { recipe, kind, passes, target, asks_for_chars }
    }

    /// The size of the context that `view` shows. Characters are 0 if no part of the recipe needs
    /// them.
    fn size(&self, view: &View<'_>) -> ContextSize {
        let chars = if self.asks_for_chars { view.context_chars() } else { 0 };
        ContextSize { chars, ..view.size() }
    }

    /// Whether the context reaches the trigger. Always true for a live context, whose trigger the
    /// caller has checked already.
    fn is_due(&self, size: &ContextSize) -> bool {
        match self.kind {
            ContextKind::Stored => {
                self.recipe.trigger.stored.is_reached(ContextKind::Stored, size, None)
            }
            ContextKind::Live => true,
        }
    }

    /// The edits of the ingest stage for a stored session. There are none for a live context,
    /// because its results were truncated when they arrived.
    fn ingest(&self, view: &View<'_>) -> Vec<(PlannedBy, PlannedEdit)> {
        let rule = match self.kind {
            ContextKind::Stored => self.recipe.stages.stored.ingest,
            ContextKind::Live => None,
        };
        let edits = rule.map(|rule| rule.plan(view)).unwrap_or_default().into_iter();
        let edits =
            edits.filter(|edit| !view.is_pinned(edit.at) && !is_exempt(view, self.recipe, edit.at));
        let planned = edits.map(|edit| {
            let tokens = saving(view, &edit);
            (PlannedBy::Ingest, PlannedEdit { edit, tokens })
        });
        planned.collect()
    }

    /// Whether the context is within the target; false if the recipe has no target.
    fn is_within(&self, size: &ContextSize) -> bool {
        self.target.is_some_and(|target| target.is_reached(size, None))
    }

    /// Characters that an edit saves; 0 if no part of the recipe needs character counts.
    fn chars_saved(&self, view: &View<'_>, edit: &Edit) -> u64 {
        if self.asks_for_chars { chars_saved(view, edit) } else { 0 }
    }

    /// Selects which of the planned edits are made: one after the other, until the target is
    /// reached. If the recipe may stop only after a whole pass, the pass that reaches the target
    /// makes all its edits. Edits by which the model loses nothing (hidden copies, repeated
    /// content) are also made after the target is reached. A pass whose `over_chars` the context
    /// does not exceed makes no edits at all. Of two edits of the same position, the later one is
    /// made.
    fn up_to_target(
        &self,
        view: &View<'_>,
        size: ContextSize,
        planned: Vec<(PlannedBy, PlannedEdit)>,
    ) -> Vec<PlannedEdit> {
        let mut left = size;
        for (_, planned) in planned.iter().filter(|(_, planned)| loses_nothing(view, planned)) {
            subtract(&mut left, planned.tokens, self.chars_saved(view, &planned.edit));
        }
        // The part of the recipe that made the last edit, not counting edits by which the model
        // loses nothing.
        let mut begun = None;
        let mut current = None;
        let mut skipped = None;
        let mut chosen: Vec<PlannedEdit> = Vec::with_capacity(planned.len());
        let mut places: HashMap<At, usize> = HashMap::new();
        for (part, planned) in planned {
            let free = loses_nothing(view, &planned);
            if current.replace(part) != Some(part) {
                let over = match part {
                    PlannedBy::Ingest => None,
                    PlannedBy::Pass(pass) => self.passes[pass].over_chars(),
                };
                let is_over = over.is_none_or(|over| left.chars > over);
                skipped = (!is_over).then_some(part);
            }
            let must_finish = self.recipe.stop == Stop::Pass && begun == Some(part);
            if skipped == Some(part) || !free && !must_finish && self.is_within(&left) {
                continue;
            }
            let earlier = places.get(&planned.edit.at).copied();
            if let Some(at) = earlier {
                // The edit that is replaced does not save anything any more.
                left.tokens += chosen[at].tokens;
                left.chars += self.chars_saved(view, &chosen[at].edit);
            }
            if !free {
                subtract(&mut left, planned.tokens, self.chars_saved(view, &planned.edit));
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

/// The part of a recipe that planned an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlannedBy {
    Ingest,
    /// A pass, by its index in the recipe.
    Pass(usize),
}

/// The edits of each pass, except edits of pinned blocks (those with texts that set rules) and of
/// calls and results of exempt tools.
fn plan_passes(
    view: &mut View<'_>,
    recipe: &Recipe,
    kind: ContextKind,
) -> Vec<(PlannedBy, PlannedEdit)> {
    let mut planned = Vec::new();
    let mut calls = EditedCalls::default();
    for (pass, settings) in recipe.stages.value_for(kind).passes.iter().enumerate() {
        let mut edits = settings.pass().plan(view);
        edits.retain(|edit| !view.is_pinned(edit.at) && !is_exempt(view, recipe, edit.at));
        view.mark_edited(&edits);
        planned.extend(edits.into_iter().map(|edit| {
            let tokens = calls.saving(view, &edit);
            (PlannedBy::Pass(pass), PlannedEdit { edit, tokens })
        }));
    }
    planned
}

/// Whether a position belongs to a call of a tool that the recipe exempts, or to a result of such a
/// call.
fn is_exempt(view: &View<'_>, recipe: &Recipe, at: At) -> bool {
    let names = &recipe.exempt_tools;
    view.call_at(at)
        .is_some_and(|call| names.iter().any(|name| name.eq_ignore_ascii_case(&call.name)))
}

/// The new texts of edited arguments. The outer keys are the item and the block of a call, and the
/// inner keys are the indices of its edited fields.
#[derive(Default)]
struct EditedCalls(HashMap<(usize, usize), BTreeMap<usize, String>>);

impl EditedCalls {
    /// Tokens that an edit saves in the context. Earlier edits of other fields of the same call are
    /// taken into account.
    fn saving(&mut self, view: &View<'_>, edit: &Edit) -> Tokens {
        match (edit.at, &edit.verb) {
            (At::Field { item, block, field }, Verb::Replace(text)) => {
                self.saving_of_field(view, (item, block, field), text)
            }
            (At::Field { .. }, Verb::Drop | Verb::Cut(_) | Verb::Summarise(_))
            | (At::Block { .. } | At::Part { .. }, _)
            | (At::Items { .. } | At::HiddenField { .. }, _) => saving(view, edit),
        }
    }

    /// Tokens that a resume saves if `text` replaces a field.
    ///
    /// A field of the arguments is counted as a part of the call's JSON, because that is what is
    /// sent. To count a field as a separate text is less exact: the run would stop a little above
    /// the target, and a second run would plan one more edit.
    fn saving_of_field(
        &mut self,
        view: &View<'_>,
        (item, block, field): (usize, usize, usize),
        text: &str,
    ) -> Tokens {
        let call = match block_at(view, At::Block { item, block }) {
            Some(Block::Call(call)) if view.is_sent(item) => call,
            Some(_) | None => return Tokens(0),
        };
        let old = call.fields.get(field).map(|field| &field.text);
        if !old.and_then(Text::span).is_some_and(|span| call.arguments.contains(span)) {
            let old = old.map_or(Tokens(0), |old| view.counter.count(&view.text(old)));
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

/// The tokens of a call after new texts were put into some of its fields. The keys of `fields` are
/// the indices of these fields.
fn tokens_with(view: &View<'_>, call: &Call, fields: &BTreeMap<usize, String>) -> Tokens {
    let spans = fields.iter().filter_map(|(field, text)| {
        let span = call.fields.get(*field)?.text.span()?;
        Some((span, text))
    });
    let mut spans: Vec<(Span, &String)> = spans.collect();
    spans.sort_unstable_by_key(|(span, _)| *span);
    let mut json = Vec::new();
    let mut from = call.arguments.start;
    for (span, text) in spans {
        // A field that lies within the previous field, such as a text in a script, is skipped.
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

/// The tokens that a resume saves by an edit of a block or of an image in a result; 0 for any other
/// edit, and for an item that a resume does not send.
fn saving(view: &View<'_>, edit: &Edit) -> Tokens {
    let item = edit.at.item();
    if !view.is_sent(item) {
        return Tokens(0);
    }
    let left = match &edit.verb {
        Verb::Replace(text) => view.counter.count(text),
        Verb::Drop | Verb::Cut(_) | Verb::Summarise(_) => Tokens(0),
    };
    match edit.at {
        At::Items { .. } | At::HiddenField { .. } => Tokens(0),
        At::Block { block, .. } => view.tokens(item, block) - left,
        // The savings of fields are computed by `EditedCalls`.
        At::Field { .. } => Tokens(0),
        At::Part { .. } => epitome_model::IMAGE_TOKENS - left,
    }
}

/// Whether the model loses nothing by an edit: the edit saves no tokens, or removes a result that
/// repeats an earlier one.
fn loses_nothing(view: &View<'_>, planned: &PlannedEdit) -> bool {
    planned.tokens == Tokens(0) || repetition_at(view, planned.edit.at).is_some()
}

fn subtract(size: &mut ContextSize, tokens: Tokens, chars: u64) {
    size.tokens = size.tokens - tokens;
    size.chars = size.chars.saturating_sub(chars);
}

/// The characters of JSON that a resume saves by an edit.
fn chars_saved(view: &View<'_>, edit: &Edit) -> u64 {
    let item = edit.at.item();
    if !view.is_sent(item) {
        return 0;
    }
    let new = match &edit.verb {
        Verb::Replace(text) => chars_written(text),
        Verb::Drop | Verb::Cut(_) | Verb::Summarise(_) => 0,
    };
    let old = match edit.at {
        At::Items { .. } | At::HiddenField { .. } => 0,
        At::Part { .. } => 4 * epitome_model::IMAGE_TOKENS.0,
        At::Block { block, .. } => {
            let around = if edit.verb == Verb::Drop { CHARS_AROUND } else { 0 };
            view.chars(item, block) + around
        }
        At::Field { field, .. } => match block_at(view, edit.at) {
            Some(Block::Call(call)) => {
                let field = call.fields.get(field);
                field.map_or(0, |field| chars_written(&view.text(&field.text)))
            }
            Some(_) | None => 0,
        },
    };
    old.saturating_sub(new)
}

fn chars_written(text: &str) -> u64 {
    encode(text).chars().count() as u64
}

/// The edits that remove repetitions of results which an edit in `planned` changes: these
/// repetitions still contain the unedited text. Repetitions that an edit in `planned` changes
/// already are left out.
fn edits_of_repetitions(view: &View<'_>, planned: &[PlannedEdit]) -> Vec<PlannedEdit> {
    let edited: HashSet<&str> = planned
        .iter()
        .filter_map(|planned| match (planned.edit.at, block_at(view, planned.edit.at)?) {
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
        .flat_map(|(item, entry)| copies::repeated_content_edits(item, entry))
        .filter(|edit| {
            let call = repetition_at(view, edit.at).map(|repeated| &*repeated.output.call);
            !known.contains(&edit.at) && call.is_some_and(|call| edited.contains(call))
        })
        .map(|edit| {
            let tokens = saving(view, &edit);
            PlannedEdit { edit, tokens }
        })
        .collect()
}

/// The result at a position if it repeats an earlier result; otherwise `None`.
fn repetition_at<'a>(view: &View<'a>, at: At) -> Option<&'a RepeatedOutput> {
    match block_at(view, at)? {
        Block::Repeated(repeated) => Some(repeated),
        _ => None,
    }
}

/// The block that contains a position; `None` for whole items and hidden fields.
fn block_at<'a>(view: &View<'a>, at: At) -> Option<&'a Block> {
    let (At::Block { item, block } | At::Part { item, block, .. } | At::Field { item, block, .. }) =
        at
    else {
        return None;
    };
    view.transcript.items[item].entry()?.blocks.get(block)
}

/// Some models bind their reasoning to everything before it: any earlier change makes it invalid,
/// and the provider would refuse the request. Returns edits that remove such reasoning from the
/// first edited entry on, even from entries that a rule keeps.
fn bound_thinking(
    view: &View<'_>,
    planned: &[PlannedEdit],
    is_bound: fn(&str) -> bool,
) -> Vec<PlannedEdit> {
    let edited: HashSet<usize> = planned
        .iter()
        .filter(|planned| !matches!(planned.edit.at, At::HiddenField { .. }))
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
