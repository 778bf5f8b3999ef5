//! A block of a context, with its tokens, its facts and its lines.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

use epitome_json::{Document, Value};
use epitome_model::{
    Block, Call, Counter, FieldRole, Role, Source, TOKENS_AROUND, Tokens, ToolKind, block_tokens,
    decode,
};
use epitome_passes::facts::{FactId, each_fact};
use regex::Regex;

use crate::lines::{LineId, line_ids};

/// The kind of a measured block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// Text, including summaries.
    Text,
    /// Reasoning.
    Thinking,
    /// A call of a tool.
    Call,
    /// The result of a call.
    Result,
    /// An image, a repeated result, or an unknown block.
    Other,
}

/// One block of a context.
#[derive(Clone, Debug)]
pub struct MeasuredBlock {
    /// The kind of the block.
    pub kind: BlockKind,
    /// Whether the model wrote the block.
    pub by_model: bool,
    /// A hash of the block's type, of whether the model wrote it, and of its content: for a result
    /// its text, the id of its call and whether the tool failed; nothing for a repeated result.
    /// Blocks with equal ids are taken for the same block.
    pub id: u64,
    /// The tokens of the block, including what an API adds around it.
    pub tokens: Tokens,
    /// The id of the call, for a call and for its result; otherwise `None`.
    pub call: Option<Box<str>>,
    /// For a call: the file that it reads, writes or edits, or that its command prints. For a
    /// result, once it is in a [`History`](crate::History): the file that its call read or printed.
    /// `None` if there is no such file.
    pub file: Option<Box<str>>,
    /// The text of the block; empty for a block of the kind [`BlockKind::Other`]. For a call: the
    /// texts and numbers among its arguments, one per line, except settings such as `timeout`.
    pub text: String,
    /// The distinct facts in the text, sorted.
    pub facts: Vec<FactId>,
    /// The ids of the distinct lines with at least eight characters, sorted.
    pub lines: Vec<LineId>,
    /// For a call that edits a file: the lines that the model must have known to write the call.
    /// Each inner list has the lines of one text that the call replaces, or the lines that its
    /// patch removes or repeats unchanged.
    pub quoted: Vec<Vec<LineId>>,
}

/// Matches a shell command that prints a file (`cat`, `sed` and the like), and captures the path.
static PRINTED: LazyLock<Regex> = LazyLock::new(|| {
    let command = r"^\s*(?:cd\s+\S+\s*(?:&&|;)\s*)?(?:cat|head|tail|nl|less|sed|bat|awk)\b";
    let file = r"[^|;&]*?\s((?:[\w.@+-]*/)*[\w@+-][\w.@+-]*\.\w+)";
    Regex::new(&format!("{command}{file}")).expect("a test compiles it")
});

/// The names of arguments that only configure a tool. Their values are left out of the text of a
/// call.
const MANNER: [&str; 6] =
    ["timeout", "timeout_ms", "yield_time_ms", "max_output_tokens", "head_limit", "limit"];

/// The beginning of a patch in Codex's grammar.
const PATCH: &str = "*** Begin Patch";

impl MeasuredBlock {
    /// Measures a block that `role` wrote.
    pub fn from_block(
        block: &Block,
        role: Role,
        source: &dyn Source,
        counter: &dyn Counter,
    ) -> MeasuredBlock {
        let (kind, call) = match block {
            Block::Text(_) | Block::Summary(_) => (BlockKind::Text, None),
            Block::Thinking(_) => (BlockKind::Thinking, None),
            Block::Call(call) => (BlockKind::Call, Some(&call.id)),
            Block::Output(output) => (BlockKind::Result, Some(&output.call)),
            _ => (BlockKind::Other, None),
        };
        let text = match block {
            Block::Text(text) | Block::Summary(text) => text.read(source).into_owned(),
            Block::Thinking(thinking) => {
                let text = thinking.text.as_ref();
                text.map_or_else(String::new, |text| text.read(source).into_owned())
            }
            Block::Call(call) => values(&arguments(call, source)),
            Block::Output(output) => output.text(source),
            _ => String::new(),
        };
        let (file, quoted) = match block {
            Block::Call(call) => (file(call, source), quoted(call, &text, source)),
            _ => (None, Vec::new()),
        };
        MeasuredBlock {
            kind,
            by_model: role == Role::Assistant,
            id: MeasuredBlock::id_of(block, role, source),
            tokens: block_tokens(block, source, counter) + TOKENS_AROUND,
            call: call.cloned(),
            file,
            facts: fact_ids(&text),
            lines: line_ids(&text),
            text,
            quoted,
        }
    }

    /// The [`id`](MeasuredBlock::id) of a block, without measuring the block.
    pub fn id_of(block: &Block, role: Role, source: &dyn Source) -> u64 {
        let mut hasher = DefaultHasher::new();
        (role == Role::Assistant).hash(&mut hasher);
        std::mem::discriminant(block).hash(&mut hasher);
        match block {
            Block::Thinking(thinking) => match &thinking.text {
                Some(text) => text.read(source).hash(&mut hasher),
                None => source.at(thinking.whole).hash(&mut hasher),
            },
            Block::Image(image) => source.at(image.whole).hash(&mut hasher),
            Block::Opaque(span) => source.at(*span).hash(&mut hasher),
            Block::Text(text) | Block::Summary(text) => text.read(source).hash(&mut hasher),
            Block::Call(call) => {
                (&call.id, &call.name, arguments(call, source)).hash(&mut hasher);
            }
            Block::Output(output) => {
                (&output.call, output.error, output.text(source)).hash(&mut hasher);
            }
            _ => {}
        }
        hasher.finish()
    }
}

/// The ids of the distinct facts of a text, sorted.
fn fact_ids(text: &str) -> Vec<FactId> {
    let mut ids = Vec::new();
    each_fact(text, |_, fact| ids.push(FactId::from_text(fact)));
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The arguments of a call. If the session stores them as a JSON string, the string is decoded.
fn arguments(call: &Call, source: &dyn Source) -> Vec<u8> {
    let raw = source.at(call.arguments);
    match raw.first() {
        Some(b'"') => decode(&raw).into_owned().into_bytes(),
        Some(_) | None => raw.into_owned(),
    }
}

/// All texts and numbers in JSON, one per line, except the values of the keys in [`MANNER`]. If
/// `json` is not valid JSON, it is returned unchanged.
fn values(json: &[u8]) -> String {
    let mut text = String::new();
    match Document::parse(json) {
        Ok(document) => leaves(&document.root, &mut text),
        Err(_) => text.push_str(&String::from_utf8_lossy(json)),
    }
    text
}

fn leaves(value: &Value<'_>, text: &mut String) {
    if let Some(leaf) = value.text() {
        push_line(text, &leaf);
    } else if value.is_object() {
        let members = value.members().iter().filter(|(key, _)| !MANNER.contains(&&**key));
        members.for_each(|(_, value)| leaves(value, text));
    } else if value.is_list() {
        value.list().iter().for_each(|value| leaves(value, text));
    } else if !matches!(value.raw(), b"true" | b"false" | b"null") {
        push_line(text, &String::from_utf8_lossy(value.raw()));
    }
}

fn push_line(text: &mut String, line: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}

/// The file that a call reads, writes or edits, or that its command prints; `None` if there is
/// none.
fn file(call: &Call, source: &dyn Source) -> Option<Box<str>> {
    let target = call.target.as_ref()?.read(source);
    match call.kind {
        ToolKind::Shell => Some(PRINTED.captures(&target)?[1].into()),
        ToolKind::Read | ToolKind::Write | ToolKind::Edit => Some(target.as_ref().into()),
        _ => None,
    }
}

/// The lines of each text that a call replaces, and the lines that its patch removes or repeats
/// unchanged.
fn quoted(call: &Call, text: &str, source: &dyn Source) -> Vec<Vec<LineId>> {
    let removed = call.fields.iter().filter(|field| field.role == FieldRole::Old);
    let removed = removed.map(|field| field.text.read(source).into_owned()).chain(patched(text));
    let lines = removed.map(|text| text.split('\n').filter_map(LineId::from_line).collect());
    lines.filter(|lines: &Vec<LineId>| !lines.is_empty()).collect()
}

/// The lines that a patch removes, and the unchanged lines around them. `None` if the text contains
/// no patch in Codex's grammar.
fn patched(patch: &str) -> Option<String> {
    patch.contains(PATCH).then(|| {
        let lines = patch.split('\n');
        let known = lines.filter(|line| line.starts_with([' ', '-']) && !line.starts_with("---"));
        known.map(|line| &line[1..]).collect::<Vec<_>>().join("\n")
    })
}
