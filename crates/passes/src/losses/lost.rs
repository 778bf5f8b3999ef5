//! Compares two contexts: finds the content of one that the other does not have.

use std::collections::{HashMap, HashSet};

use epitome_model::{
    Block, Call, Entry, Output, Ref, Role, Tokens, ToolKind, literal_as_text, short,
};

use super::arguments::words_of;
use super::{LostKind, LostPiece};
use crate::View;
use crate::decisions::decision;
use crate::evidence::failure;
use crate::facts::{FactId, FactMap, each_fact};
use crate::pins::{PinKind, pins};
use crate::view::on_all_cores;

/// The number of blocks that are compared before their facts are merged: enough for all cores, and
/// few enough that the facts of a large session are not in memory twice.
const BLOCKS_AT_ONCE: usize = 1_024;

/// Maximum characters of the name of a text in a report.
const NAME: usize = 300;

/// A removed piece, with its item and block index in the context before the compaction.
pub(super) type Placed = (LostPiece, (usize, usize));

/// The content of the context before a compaction that the context after it does not have.
pub(super) struct LostContent {
    /// The removed pieces, in the order of the session.
    pub pieces: Vec<Placed>,
    /// The removed facts, each with the position of the last block that contained it.
    pub gone: FactMap<(usize, usize)>,
    pub facts_before: u64,
    /// The indices of those pieces that are results of calls, by the target of the call.
    pub targets: HashMap<CallTarget, Vec<usize>>,
}

/// The target of a call. Two calls with the same target are expected to have the same result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct CallTarget {
    kind: ToolKind,
    of: String,
}

impl CallTarget {
    /// The target of a call: the path of a read, the command of a shell call; for a search, a list,
    /// a web page and unknown tools, the tool with all arguments. `None` for a call without such a
    /// target.
    pub fn from_call(view: &View<'_>, call: &Call) -> Option<CallTarget> {
        let kind = call.kind;
        let target = call.target.as_ref().map(|target| view.text(target));
        let of = match kind {
            ToolKind::Read => path(view, &target?).to_owned(),
            ToolKind::Shell => target?.trim().to_owned(),
            ToolKind::Search | ToolKind::List | ToolKind::Fetch | ToolKind::Other => {
                format!("{} {}", call.name, literal_as_text(&view.source.at(call.arguments)))
            }
            _ => return None,
        };
        Some(CallTarget { kind, of })
    }
}

/// A path relative to the session's folder, if it is in that folder; otherwise the path unchanged.
pub(super) fn path<'p>(view: &View<'_>, path: &'p str) -> &'p str {
    view.transcript.head.cwd.as_deref().and_then(|cwd| path_below(cwd, path)).unwrap_or(path)
}

/// The part of a path below a folder; `None` if the path is not below that folder.
fn path_below<'p>(folder: &str, path: &'p str) -> Option<&'p str> {
    const SEPARATORS: [char; 2] = ['/', '\\'];
    let rest = path.strip_prefix(folder.trim_end_matches(SEPARATORS))?;
    rest.starts_with(SEPARATORS).then(|| rest.trim_start_matches(SEPARATORS))
}

/// The name of a file in a report.
pub(super) fn name_of_file(view: &View<'_>, file: &str) -> String {
    short(path(view, file), NAME)
}

impl LostContent {
    pub fn between(before: &View<'_>, after: &View<'_>) -> LostContent {
        let there = ContextContent::from_view(after);
        let rules = lost_rules(before, after, &there);
        let compared = Comparison { before, there, rules, succeeded: succeeded(before) };
        let mut left = LostContent {
            pieces: Vec::new(),
            gone: FactMap::default(),
            facts_before: 0,
            targets: HashMap::new(),
        };
        let context = before.transcript.context();
        let blocks: Vec<PlacedBlock<'_>> = context
            .flat_map(|(item, entry)| {
                let blocks = entry.blocks.iter().enumerate();
                blocks.map(move |(block, content)| ((item, block), entry, content))
            })
            .collect();
        let mut seen = FactMap::<()>::default();
        for blocks in blocks.chunks(BLOCKS_AT_ONCE) {
            for of_block in on_all_cores(blocks.to_vec(), |block| compared.block(block)) {
                for fact in of_block.facts {
                    seen.insert(fact, ());
                    if !compared.there.facts.contains_key(&fact) {
                        left.gone.insert(fact, of_block.at);
                    }
                }
                if let Some((piece, target)) = of_block.lost {
                    left.add(piece, of_block.at, target);
                }
            }
        }
        left.facts_before = seen.len() as u64;
        left
    }

    fn add(&mut self, piece: LostPiece, at: (usize, usize), target: Option<CallTarget>) {
        if let Some(target) = target {
            self.targets.entry(target).or_default().push(self.pieces.len());
        }
        self.pieces.push((piece, at));
    }
}

/// A block of the context before the compaction: its item and block index, entry and content.
type PlacedBlock<'a> = ((usize, usize), &'a Entry, &'a Block);

/// What the comparison of single blocks needs of the two contexts.
struct Comparison<'a, 't> {
    before: &'a View<'t>,
    /// The content of the context after the compaction.
    there: ContextContent,
    /// The lost rules and plans, by item and block: kind and name.
    rules: HashMap<(usize, usize), (LostKind, String)>,
    /// For each target, the item of the last successful call.
    succeeded: HashMap<CallTarget, usize>,
}

/// What is found in one block of the context before the compaction.
struct ComparedBlock {
    at: (usize, usize),
    facts: Vec<FactId>,
    /// What is lost of the block, and for a result the target of its call; `None` if nothing is
    /// lost, or if the loss of such a block is not reported.
    lost: Option<(LostPiece, Option<CallTarget>)>,
}

impl<'a> Comparison<'a, '_> {
    fn block(&self, (at, entry, content): PlacedBlock<'a>) -> ComparedBlock {
        let text = text_of(self.before, content);
        let mut facts = FactMap::<()>::default();
        each_fact(&text, |_, fact| {
            facts.insert(FactId::from_text(fact), ());
        });
        let removed = Removed { view: self.before, at, entry, content, text: &text };
        ComparedBlock { at, facts: facts.into_keys().collect(), lost: self.lost(&removed) }
    }

    fn lost(&self, removed: &Removed<'_, '_>) -> Option<(LostPiece, Option<CallTarget>)> {
        let Removed { view, at, entry, content, text } = *removed;
        let rule = self.rules.get(&at).cloned();
        let (mut kind, mut name) = rule.or_else(|| described(view, entry, content, text))?;
        if kind == LostKind::Reply
            && let Some(decision) = self.there.lost_decision(text)
        {
            kind = LostKind::Decision;
            name = short(decision, NAME);
        }
        let share = removed.share(kind, &self.there);
        if share == 0 {
            return None;
        }
        let target = removed.call().and_then(|call| CallTarget::from_call(view, call));
        let resolved = (kind == LostKind::Error).then(|| {
            let last = target.as_ref().and_then(|target| self.succeeded.get(target));
            last.is_some_and(|last| *last > at.0)
        });
        let piece = LostPiece {
            kind,
            name,
            line: entry.record.line,
            response: None,
            tokens: Tokens(view.tokens(at.0, at.1).0 * share / 100),
            partly: share < 100,
            references: references(view, content),
            resolved,
            again: None,
            used: 0,
        };
        Some((piece, target))
    }
}

/// A block of the context before the compaction.
#[derive(Clone, Copy)]
struct Removed<'a, 't> {
    view: &'a View<'t>,
    at: (usize, usize),
    entry: &'a Entry,
    content: &'a Block,
    text: &'a str,
}

impl<'a> Removed<'a, '_> {
    /// The share of the text, in per cent, that is not in the context after the compaction. For a
    /// rule or a plan, the share is always 100; for an image, 0 or 100.
    fn share(&self, kind: LostKind, there: &ContextContent) -> u64 {
        match self.content {
            Block::Image(image) => {
                let image = Ref::from_bytes(&self.view.source.at(image.whole));
                if there.images.contains(&image) { 0 } else { 100 }
            }
            _ if kind == LostKind::Rule || kind == LostKind::Plan => 100,
            _ => there.missing(self.text),
        }
    }

    /// The call whose result was removed; `None` if something other than a result was removed, or
    /// if the session does not contain the call.
    fn call(&self) -> Option<&'a Call> {
        match self.content {
            Block::Output(output) => self.view.call_of(output),
            _ => None,
        }
    }
}

/// The facts, lines and images of a context.
struct ContextContent {
    facts: FactMap<()>,
    lines: HashSet<FactId>,
    images: HashSet<Ref>,
}

impl ContextContent {
    fn from_view(view: &View<'_>) -> ContextContent {
        let mut facts = FactMap::default();
        let mut lines = HashSet::new();
        let mut images = HashSet::new();
        for content in view.transcript.context().flat_map(|(_, entry)| &entry.blocks) {
            if let Block::Image(image) = content {
                images.insert(Ref::from_bytes(&view.source.at(image.whole)));
            }
            let text = text_of(view, content);
            each_fact(&text, |_, fact| {
                facts.insert(FactId::from_text(fact), ());
            });
            lines.extend(text.lines().filter_map(line));
        }
        ContextContent { facts, lines, images }
    }

    /// The first decision in a text of the model whose line is not in the context; `None` if there
    /// is none.
    fn lost_decision<'t>(&self, text: &'t str) -> Option<&'t str> {
        let mut lost =
            text.lines().filter(|text| line(text).is_some_and(|id| !self.lines.contains(&id)));
        lost.find_map(decision)
    }

    /// The share of a text, in per cent, that is not in the context: rounded down, but not to 0.
    fn missing(&self, text: &str) -> u64 {
        let mut all = 0;
        let mut gone = 0;
        for it in text.lines() {
            let Some(id) = line(it) else { continue };
            let len = it.trim().len() as u64;
            all += len;
            gone += if self.lines.contains(&id) { 0 } else { len };
        }
        if gone == 0 { 0 } else { (gone * 100 / all).max(1) }
    }
}

/// Whether most of `text`, about nine tenths, consists of lines of `was`. The rest may be times or
/// process numbers.
pub(super) fn is_same(text: &str, was: &str) -> bool {
    let lines = was.lines().filter_map(line).collect();
    ContextContent { facts: FactMap::default(), lines, images: HashSet::new() }.missing(text) <= 10
}

/// The id of a line, without its line number and white space; `None` if the line has neither
/// letters nor digits.
fn line(line: &str) -> Option<FactId> {
    let trimmed = line.trim();
    let rest = trimmed.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_number = rest.len() < trimmed.len();
    let words = rest.strip_prefix(['→', '\t']).filter(|_| is_number).unwrap_or(trimmed).trim();
    words.chars().any(char::is_alphanumeric).then(|| FactId::from_text(words))
}

/// The pins (texts that set rules, plans and to-do lists) of the context `before` whose text is not
/// wholly in the context `after`, by item and block. A plan or to-do list is not lost if `after`
/// has a pin of the same kind.
fn lost_rules(
    before: &View<'_>,
    after: &View<'_>,
    there: &ContextContent,
) -> HashMap<(usize, usize), (LostKind, String)> {
    let kept = pins(after, &after.transcript.context);
    let mut lost = HashMap::new();
    for pin in pins(before, &before.transcript.context) {
        let is_newer = matches!(pin.kind, PinKind::Plan | PinKind::Todo)
            && kept.iter().any(|it| it.kind == pin.kind);
        if is_newer || there.missing(&pin.text) == 0 {
            continue;
        }
        let kind = match pin.kind {
            PinKind::RuleFile | PinKind::Skill | PinKind::Marked => LostKind::Rule,
            PinKind::Plan | PinKind::Todo => LostKind::Plan,
        };
        let name = if pin.name.is_empty() { pin.kind.word().to_owned() } else { pin.name };
        lost.insert((pin.item, pin.block), (kind, short(&name, NAME)));
    }
    lost
}

/// The kind and name of a block for the report; `None` if its loss is not reported.
fn described(
    view: &View<'_>,
    entry: &Entry,
    content: &Block,
    text: &str,
) -> Option<(LostKind, String)> {
    let first = short(text.trim(), NAME);
    match content {
        Block::Text(_) => Some(match entry.role {
            Role::User => (LostKind::User, first),
            Role::Assistant => (LostKind::Reply, first),
            Role::System | Role::Tool => (LostKind::Agent, first),
        }),
        Block::Summary(_) => Some((LostKind::Agent, first)),
        Block::Image(image) => Some((LostKind::Image, image.media.to_string())),
        Block::Call(call) if call.kind.changes_file() && !call.fields.is_empty() => {
            Some((LostKind::Change, short(&name_of_call(view, call), NAME)))
        }
        Block::Output(output) => of_output(view, output, text),
        Block::Call(_) | Block::Thinking(_) | Block::Repeated(_) | Block::Opaque(_) => None,
        _ => None,
    }
}

fn of_output(view: &View<'_>, output: &Output, text: &str) -> Option<(LostKind, String)> {
    if text.trim().is_empty() || epitome_model::is_left_by_recipe(text) {
        return None;
    }
    let call = view.call_of(output);
    let name = call.map_or_else(|| "result".to_owned(), |call| name_of_call(view, call));
    if output.error {
        let says = failure(text, true).unwrap_or_default().trim();
        return Some((LostKind::Error, format!("{}: {}", short(&name, 60), short(says, 100))));
    }
    if output.from_user {
        return Some((LostKind::User, short(text.trim(), NAME)));
    }
    let kind = match call.map_or(ToolKind::Other, |call| call.kind) {
        ToolKind::Read => LostKind::Read,
        ToolKind::Shell => LostKind::Command,
        // The result only confirms the change; the change itself is in the call.
        ToolKind::Write | ToolKind::Edit | ToolKind::Patch => return None,
        _ => LostKind::Result,
    };
    Some((kind, short(&name, NAME)))
}

/// The name of a call: its target, with the name of the tool before it unless the call is a
/// command, reads a file or changes one. The name of the tool alone if the call has no target.
fn name_of_call(view: &View<'_>, call: &Call) -> String {
    let Some(target) = call.target.as_ref().map(|it| view.text(it)) else {
        return call.name.to_string();
    };
    match call.kind {
        ToolKind::Shell => target.trim().to_owned(),
        kind if kind == ToolKind::Read || kind.changes_file() => path(view, &target).to_owned(),
        _ => format!("{} {target}", call.name),
    }
}

/// For each target, the item of the last successful call.
fn succeeded(view: &View<'_>) -> HashMap<CallTarget, usize> {
    let mut found = HashMap::new();
    for (item, entry) in view.transcript.context() {
        for content in &entry.blocks {
            if let Block::Call(call) = content
                && view.succeeded(call)
                && let Some(target) = CallTarget::from_call(view, call)
            {
                found.insert(target, item);
            }
        }
    }
    found
}

pub(super) fn references(view: &View<'_>, content: &Block) -> Vec<Ref> {
    match content {
        Block::Text(text) | Block::Summary(text) => vec![view.reference(text)],
        Block::Output(output) => vec![Ref::from_bytes(&view.source.at(output.whole))],
        Block::Call(call) if call.fields.is_empty() => {
            vec![Ref::from_bytes(&view.source.at(call.arguments))]
        }
        Block::Call(call) => call.fields.iter().map(|it| view.reference(&it.text)).collect(),
        _ => Vec::new(),
    }
}

/// The first text in a session with this reference. `reference` may have fewer digits than the
/// references in [`LostPiece`]. `None` if there is no such text.
pub(super) fn named_text(view: &View<'_>, reference: &Ref) -> Option<String> {
    let blocks = view.transcript.entries().flat_map(|(_, entry)| &entry.blocks);
    for content in blocks {
        let names = references(view, content);
        let at = names.iter().position(|name| name.digits().starts_with(reference.digits()));
        let Some(at) = at else { continue };
        return match content {
            Block::Call(call) if !call.fields.is_empty() => {
                Some(view.text(&call.fields[at].text).into_owned())
            }
            Block::Image(_) => None,
            _ => Some(text_of(view, content)),
        };
    }
    None
}

/// The text by which a block is compared: the text of a text block, a summary or a result, or the
/// texts in the arguments of a call. Empty for any other block, such as reasoning or an image.
pub(super) fn text_of(view: &View<'_>, content: &Block) -> String {
    match content {
        Block::Text(text) | Block::Summary(text) => view.text(text).into_owned(),
        Block::Call(call) => {
            let arguments = view.source.at(call.arguments);
            words_of(&literal_as_text(&arguments), call.kind, call.target.is_some())
        }
        Block::Output(output) => output.text(view.source),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::path_below;

    #[test]
    fn a_folder_whose_name_only_begins_alike_is_another_one() {
        assert_eq!(path_below("/home/me/app", "/home/me/app/src/a.rs"), Some("src/a.rs"));
        assert_eq!(path_below("/home/me/app/", "/home/me/app//a.rs"), Some("a.rs"));
        assert_eq!(path_below("C:\\app", "C:\\app\\a.rs"), Some("a.rs"));
        assert_eq!(path_below("/", "/etc/hosts"), Some("etc/hosts"));
        assert_eq!(path_below("/home/me/app", "/home/me/app2/a.rs"), None);
    }
}
