//! Replaces old results by stubs, some with important lines of the result, or by other short texts.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashSet;

use epitome_model::{
    At, Block, CLEARED, Call, Edit, Lines, Output, Part, Ref, Stub, Tokens, ToolKind, first_words,
    has_truncation_mark, line_count_stub, previous_tool_stub, removed_output_stub, truncation_mark,
};
use serde::{Deserialize, Serialize};

use crate::evidence::{self, ErrorLines, ExcerptSize, LaterLines};
use crate::images::without_stubs;
use crate::key_blocks::without_key_blocks;
use crate::view::on_all_cores;
use crate::{Pass, View, keep};

/// Settings of the pass that replaces results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Results {
    /// Results of at most this many bytes are not replaced.
    pub min_bytes: u64,
    /// Results with at most this many characters of text are not replaced.
    pub min_chars: usize,
    /// Results of at most this many tokens are not replaced.
    pub min_tokens: u64,
    /// Number of newest results that are not replaced, in addition to what is kept whole.
    pub newest: usize,
    /// Number of newest results, of those that the model has answered, that are not replaced. If it
    /// is not 0, results that the model has not answered are not replaced either.
    pub newest_answered: usize,
    /// Which results are replaced first, if not all of them have to be.
    pub first: First,
    /// The pass begins only if the context has more characters than this.
    pub over_chars: Option<u64>,
    /// Whether the pass also edits results that an earlier pass of the recipe has edited.
    pub again: bool,
    /// Whether the pass applies to what is kept whole as well.
    pub everywhere: bool,
    /// What replaces a result.
    pub style: Style,
    /// Number of lines kept at the beginning.
    pub head: usize,
    /// Number of lines kept at the end.
    pub tail: usize,
    /// Maximum number of definitions that are kept of a file that was read.
    pub outline: usize,
    /// Maximum bytes of a kept line; longer lines are truncated. 0 means no maximum. In the style
    /// `beginning`, the number of characters that are kept.
    pub width: usize,
    /// In the style `evidence`, `head` counts as 0 for a result with fewer lines than this. In the
    /// style `truncated`, a result with at most this many lines stays whole. Other styles ignore
    /// it.
    pub few: usize,
    /// Results of failed calls with at most this many bytes stay whole.
    pub whole_errors: u64,
    /// Kinds of tools whose results stay.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub exempt: Vec<ToolKind>,
    /// Names of tools whose results stay.
    pub exempt_tools: Vec<String>,
}

impl Default for Results {
    fn default() -> Results {
        Results {
            min_bytes: 0,
            min_chars: 0,
            min_tokens: 0,
            newest: 0,
            newest_answered: 0,
            first: First::Oldest,
            over_chars: None,
            again: false,
            everywhere: false,
            style: Style::Evidence,
            head: 0,
            tail: 0,
            outline: 0,
            width: 0,
            few: 0,
            whole_errors: 0,
            exempt: Vec::new(),
            exempt_tools: Vec::new(),
        }
    }
}

/// Which results are replaced first, if not all of them have to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum First {
    /// The oldest results.
    #[default]
    Oldest,
    /// The largest results.
    Largest,
}

/// What replaces a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Style {
    /// A stub with error lines, an outline, first and last lines.
    Evidence,
    /// A stub with the first and last lines, whatever they contain.
    Ends,
    /// A stub with the first `width` characters.
    Beginning,
    /// Only a stub. Lines below an existing stub are removed.
    Cleared,
    /// A stub without a size.
    Named,
    /// A count of lines: `[output: 245 lines]`.
    Counted,
    /// `[Previous: used bash]`, as s06 and J-CLI write it.
    Previous,
    /// A fixed text, as Anthropic's context editing writes it.
    Placeholder,
    /// The first and last lines with a count between them, as ion writes it. Texts with few lines
    /// are not replaced.
    Truncated,
    /// A count and the first line, as ion writes it.
    Removed,
}

/// Bytes kept of a result that has few but long lines, in the style `Ends`.
const FEW_LINES: usize = 500;

impl Pass for Results {
    fn name(&self) -> &'static str {
        "results"
    }

    fn plan(&self, view: &View<'_>) -> Vec<Edit> {
        let mut outputs: Vec<_> =
            if self.everywhere { view.outputs().collect() } else { view.old_outputs().collect() };
        if self.newest > 0 {
            let newest = view.newest_outputs(self.newest);
            outputs.retain(|(at, ..)| !newest.contains(at));
        }
        if self.newest_answered > 0 {
            let open: HashSet<usize> = keep::unanswered(view).into_iter().collect();
            let newest = view.newest_outputs_of(self.newest_answered, |it| !open.contains(&it));
            outputs.retain(|(at, ..)| !newest.contains(at) && !open.contains(&at.item()));
        }
        let outputs: Vec<Candidate<'_>> =
            outputs.into_iter().map(|(at, output, call)| Candidate { at, output, call }).collect();
        let error_lines = on_all_cores(outputs.iter().collect(), |it| self.error_lines(view, it));
        let mut later = self.lines_of_whole_results(view);
        // Go from the newest result to the oldest: when a result is shortened, the lines of later
        // results must be known.
        let mut chosen = Vec::new();
        for (candidate, errors) in outputs.iter().zip(error_lines).rev() {
            let Some(errors) = errors else { continue };
            // A result outside of the context is not compared with other results, because it is not
            // sent together with them.
            let mut alone = LaterLines::default();
            let is_sent = view.is_sent(candidate.at.item());
            let later = if is_sent { &mut later } else { &mut alone };
            chosen.push((candidate, later.choose(errors)));
        }
        chosen.reverse();
        let edits = on_all_cores(chosen, |(it, errors)| self.shortened(view, it, &errors));
        let mut edits: Vec<Edit> = edits.into_iter().flatten().collect();
        if self.first == First::Largest {
            edits.sort_by_cached_key(|edit| match edit.at {
                At::Block { item, block } => Reverse(view.chars(item, block)),
                At::Field { .. } | At::Part { .. } | At::Items { .. } | At::HiddenField { .. } => {
                    Reverse(0)
                }
            });
        }
        edits
    }
}

/// A result that may be replaced, with its call.
struct Candidate<'a> {
    at: At,
    output: &'a Output,
    call: Option<&'a Call>,
}

impl Candidate<'_> {
    fn kind(&self) -> ToolKind {
        self.call.map_or(ToolKind::Other, |call| call.kind)
    }
}

impl Results {
    /// The original of a result that is a stub already and may be shortened again: a result that
    /// was truncated on ingest, or, in the style `cleared`, every stub with lines below it, because
    /// this style removes such lines. `None` for any other result, and if the transcript does not
    /// contain the original.
    fn whole<'a>(&self, view: &View<'a>, output: &Output) -> Option<&'a Output> {
        match self.style {
            Style::Cleared => view.stub_original(output),
            Style::Evidence
            | Style::Ends
            | Style::Beginning
            | Style::Named
            | Style::Counted
            | Style::Previous
            | Style::Placeholder
            | Style::Truncated
            | Style::Removed => view.ingest_original(output),
        }
    }

    /// The error lines of the results that are kept whole; empty if the style keeps no error lines.
    fn lines_of_whole_results(&self, view: &View<'_>) -> LaterLines {
        let mut later = LaterLines::default();
        if self.style != Style::Evidence {
            return later;
        }
        let kept = view.transcript.context().filter(|(item, _)| view.is_kept(*item));
        let outputs: Vec<&Output> = kept
            .flat_map(|(_, entry)| &entry.blocks)
            .filter_map(|block| if let Block::Output(output) = block { Some(output) } else { None })
            .collect();
        let found = on_all_cores(outputs, |it| ErrorLines::of_whole(&it.text(view.source)));
        for errors in found {
            later.add(errors);
        }
        later
    }

    /// The error lines of a result that may be replaced; empty in a style that keeps no error
    /// lines. `None` if the result is not replaced.
    fn error_lines(&self, view: &View<'_>, candidate: &Candidate<'_>) -> Option<ErrorLines> {
        let &Candidate { at, output, call } = candidate;
        if output.size() <= self.min_bytes
            || Tokens(self.min_tokens) > Tokens(0) && self.is_cheap(view, at)
            || self.is_exempt(call)
            || !self.again && view.is_edited(at)
        {
            return None;
        }
        let original = self.whole(view, output);
        if original.is_none() && !view.stubbable(output) {
            return None;
        }
        let whole = original.unwrap_or(output);
        if whole.error && self.text_bytes(view, whole) <= self.whole_errors {
            return None;
        }
        let shown = || output.text(view.source);
        if self.min_chars > 0 && own_words(&shown()).chars().nth(self.min_chars).is_none() {
            return None;
        }
        if self.style != Style::Evidence {
            return Some(ErrorLines::default());
        }
        Some(ErrorLines::new(&whole.text(view.source), candidate.kind(), whole.error))
    }

    /// The edit that replaces a result. `errors` are the indices of the error lines that the new
    /// text keeps. `None` if there is no new text, or if it is not smaller.
    fn shortened(
        &self,
        view: &View<'_>,
        candidate: &Candidate<'_>,
        errors: &[usize],
    ) -> Option<Edit> {
        let &Candidate { at, output: sent, call } = candidate;
        // If the result was shortened before and the transcript has its original, the original is
        // shortened.
        let original = self.whole(view, sent);
        let output = original.unwrap_or(sent);
        let shown = sent.text(view.source);
        let text = match original {
            Some(original) => Cow::Owned(original.text(view.source)),
            None => Cow::Borrowed(shown.as_str()),
        };
        let name = call.map_or("unknown", |call| &call.name);
        let left = match self.style {
            Style::Previous => previous_tool_stub(name),
            Style::Placeholder => CLEARED.to_owned(),
            Style::Removed => {
                removed_output_stub(view.lines(&text), text.lines().next().unwrap_or_default())
            }
            Style::Truncated => self.ends_of(&text)?,
            Style::Counted => {
                let what = if output.error { "error" } else { "output" };
                line_count_stub(what, view.lines(&text))
            }
            Style::Named => {
                let stub = Stub::new(Ref::from_bytes(&view.source.at(output.whole)));
                if call.is_some() { stub } else { stub.with_what("result") }.to_string()
            }
            Style::Evidence | Style::Ends | Style::Beginning | Style::Cleared => view
                .stub(output, call, &text)
                .with_body(self.body(&text, candidate.kind(), output, errors))
                .to_string(),
        };
        view.replace(at, &text_with_images(&shown, sent), left, self.name())
    }

    /// Bytes of the text of a result, without texts that a recipe wrote in place of others, and
    /// without the stubs of removed images.
    fn text_bytes(&self, view: &View<'_>, output: &Output) -> u64 {
        let texts = output.parts.iter().filter_map(|part| match part {
            Part::Text(text) if !view.is_recipe_text(text) => {
                Some(without_stubs(&view.text(text)).len() as u64)
            }
            Part::Text(_) | Part::Image(_) | Part::Opaque(_) => None,
        });
        texts.sum()
    }

    fn is_exempt(&self, call: Option<&Call>) -> bool {
        call.is_some_and(|call| {
            self.exempt.contains(&call.kind)
                || self.exempt_tools.iter().any(|name| name.eq_ignore_ascii_case(&call.name))
        })
    }

    fn body(&self, text: &str, kind: ToolKind, output: &Output, errors: &[usize]) -> String {
        let Results { head, tail, outline, width, few, .. } = *self;
        let amount = ExcerptSize { head, tail, outline, width, few };
        let visible = without_key_blocks(text);
        match self.style {
            Style::Evidence => evidence::output_excerpt(text, kind, output.error, amount, errors),
            Style::Beginning => first_chars(&visible, self.width).to_owned(),
            Style::Ends if text.lines().count() <= self.head + self.tail + 2 => {
                first_words(&visible, FEW_LINES).to_owned()
            }
            Style::Ends => evidence::argument_excerpt(text, ExcerptSize { outline: 0, ..amount }),
            Style::Cleared
            | Style::Named
            | Style::Counted
            | Style::Previous
            | Style::Placeholder
            | Style::Truncated
            | Style::Removed => String::new(),
        }
    }

    /// The first `head` and the last `tail` lines of a text, each at most half of its lines. `None`
    /// if the text has at most `few` lines, or was shortened in this way before.
    fn ends_of(&self, text: &str) -> Option<String> {
        let visible = without_key_blocks(text);
        let lines: Vec<&str> = visible.split('\n').collect();
        if lines.len() <= self.few || has_truncation_mark(text) {
            return None;
        }
        let head = self.head.min(lines.len() / 2);
        let tail = self.tail.min(lines.len() / 2);
        let gone = Lines((lines.len() - head - tail) as u64);
        let first = &lines[..head];
        let last = &lines[lines.len() - tail..];
        Some(format!("{}\n\n{}\n\n{}", first.join("\n"), truncation_mark(gone), last.join("\n")))
    }

    fn is_cheap(&self, view: &View<'_>, at: At) -> bool {
        match at {
            At::Block { item, block } => view.tokens(item, block) <= Tokens(self.min_tokens),
            At::Field { .. } | At::Part { .. } | At::Items { .. } | At::HiddenField { .. } => false,
        }
    }
}

/// The text of a result without the stub at its beginning.
fn own_words(text: &str) -> &str {
    match Stub::parse(text) {
        Some(_) => text.split_once('\n').map_or("", |(_, below)| below),
        None => text,
    }
}

/// The beginning of a text, in at most `most` characters.
fn first_chars(text: &str, most: usize) -> &str {
    text.char_indices().nth(most).map_or(text, |(end, _)| first_words(text, end))
}

/// The text of a result, lengthened if the result has images: they are removed together with the
/// text, so the text that replaces both may be longer than the old text alone.
fn text_with_images<'t>(text: &'t str, output: &Output) -> Cow<'t, str> {
    let images = output.parts.iter().filter(|part| matches!(part, Part::Image(_))).count();
    if images == 0 { text.into() } else { format!("{text}{}", "\u{fffc}".repeat(400)).into() }
}

#[cfg(test)]
#[path = "results_tests.rs"]
mod tests;
