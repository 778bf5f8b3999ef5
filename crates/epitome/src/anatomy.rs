//! Measures where the tokens of a context and the bytes of a file go: by kind of block, by tool,
//! and in the largest blocks.

use std::collections::BTreeMap;

use epitome_model::{
    At, Block, Bytes, Call, Counter, Entry, Role, Source, Text, Tokens, Transcript, block_tokens,
};
use epitome_passes::View;
use rayon::prelude::*;
use serde::Serialize;

/// The kinds of parts of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PartKind {
    /// Messages of the user.
    User,
    /// Text of the model.
    Assistant,
    /// Reasoning of the model.
    Thinking,
    /// Arguments of tool calls.
    CallArguments,
    /// Tool results.
    Results,
    /// Copies of content that the agent stores for itself. No model sees them.
    Copies,
    /// What the agent itself wrote, such as system prompts, reminders and summaries, and content
    /// that epitome does not understand.
    Other,
    /// Ids, times, keys, and records that no model sees.
    Framing,
}

impl PartKind {
    /// All kinds, in the order in which they are listed.
    pub const ALL: [PartKind; 8] = [
        PartKind::User,
        PartKind::Assistant,
        PartKind::Thinking,
        PartKind::CallArguments,
        PartKind::Results,
        PartKind::Copies,
        PartKind::Other,
        PartKind::Framing,
    ];

    /// The name of the kind, as it is displayed.
    pub fn name(self) -> &'static str {
        match self {
            PartKind::User => "user",
            PartKind::Assistant => "assistant",
            PartKind::Thinking => "thinking",
            PartKind::CallArguments => "call arguments",
            PartKind::Results => "results",
            PartKind::Copies => "duplicates",
            PartKind::Other => "other",
            PartKind::Framing => "overhead",
        }
    }

    fn from_block(entry: &Entry, block: &Block) -> PartKind {
        match (block, entry.role) {
            (Block::Thinking(_), _) => PartKind::Thinking,
            (Block::Call(_), _) => PartKind::CallArguments,
            (Block::Output(_) | Block::Repeated(_), _) | (Block::Image(_), Role::Tool) => {
                PartKind::Results
            }
            (Block::Text(_) | Block::Image(_), Role::User) => PartKind::User,
            (Block::Text(_) | Block::Image(_), Role::Assistant) => PartKind::Assistant,
            _ => PartKind::Other,
        }
    }
}

/// The number and the size of blocks: of one kind, of one tool's calls or results, or of a whole
/// session. An agent's copy of content counts as a block, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PartSize {
    /// The number of blocks, sent or not.
    pub blocks: u64,
    /// The tokens of the blocks that a resume sends.
    pub context_tokens: Tokens,
    /// The bytes of all blocks in the file, sent or not.
    pub disk_bytes: Bytes,
}

impl PartSize {
    fn add(&mut self, tokens: Tokens, bytes: Bytes) {
        self.blocks += 1;
        self.context_tokens += tokens;
        self.disk_bytes += bytes;
    }
}

/// The sizes of the calls of one tool, and of their results.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ToolSize {
    /// The name of the tool, as the session records it.
    pub name: String,
    /// The arguments of the tool's calls.
    pub arguments: PartSize,
    /// The results of the tool's calls.
    pub results: PartSize,
}

/// One of the largest blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LargeBlock {
    /// The line of the session at which the block's record begins, from 1.
    pub line: u64,
    /// The kind of the block.
    pub kind: PartKind,
    /// A short description: for a call or a result, the tool and its target; for a text or a
    /// summary, its beginning; for an image, its media type; otherwise the name of the kind.
    pub what: String,
    /// The tokens of the block; `None` if a resume does not send it.
    pub context_tokens: Option<Tokens>,
    /// The bytes of the block in the file.
    pub disk_bytes: Bytes,
}

/// The tokens and bytes of a session, by kind and by tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Anatomy {
    /// The size of each kind of part that the session has.
    pub kinds: BTreeMap<PartKind, PartSize>,
    /// The sum of all kinds: everything that a resume sends, and every byte of the file.
    pub total: PartSize,
    /// The tools that were called, the one whose calls and results have the most tokens first.
    pub tools: Vec<ToolSize>,
    /// At most ten blocks: those with the most tokens, the largest first. Blocks that a resume does
    /// not send come last, by their bytes.
    pub largest: Vec<LargeBlock>,
}

/// The maximum number of blocks in [`Anatomy::largest`].
const LARGEST: usize = 10;

struct Weighed {
    item: usize,
    block: usize,
    tokens: Option<Tokens>,
    bytes: Bytes,
}

/// Measures every block. Tokens are counted on all cores, and only of blocks that a resume sends.
pub fn anatomy(transcript: &Transcript, source: &dyn Source, counter: &dyn Counter) -> Anatomy {
    let weighed = weigh(transcript, source, counter);
    let mut anatomy = Anatomy::default();
    let mut tools: BTreeMap<&str, ToolSize> = BTreeMap::new();
    let view = View::new(transcript, source, counter);
    let mut of_blocks = Bytes(0);
    for it in &weighed {
        let Some((entry, block)) = at(transcript, it) else { continue };
        let tokens = it.tokens.unwrap_or_default();
        of_blocks += it.bytes;
        anatomy.kinds.entry(PartKind::from_block(entry, block)).or_default().add(tokens, it.bytes);
        let call: Option<&Call> = match block {
            Block::Call(call) => Some(call),
            Block::Output(output) => view.call_of(output),
            Block::Repeated(again) => view.call_of(&again.output),
            Block::Text(_)
            | Block::Thinking(_)
            | Block::Image(_)
            | Block::Summary(_)
            | Block::Opaque(_) => None,
            _ => None,
        };
        if let Some(call) = call {
            let tool = tools.entry(&call.name).or_default();
            tool.name = call.name.to_string();
            let is_call = matches!(block, Block::Call(_));
            let amount = if is_call { &mut tool.arguments } else { &mut tool.results };
            amount.add(tokens, it.bytes);
            // A copy of a call is no other call.
            amount.blocks -= u64::from(entry.repeated);
        }
    }
    for field in transcript.items.iter().flat_map(|item| item.hidden_fields()) {
        let bytes = Bytes(field.value.len());
        of_blocks += bytes;
        anatomy.kinds.entry(PartKind::Copies).or_default().add(Tokens(0), bytes);
    }
    let framing = Bytes(source.len()) - of_blocks;
    anatomy.kinds.entry(PartKind::Framing).or_default().disk_bytes = framing;
    anatomy.total = PartSize {
        blocks: anatomy.kinds.values().map(|amount| amount.blocks).sum(),
        context_tokens: anatomy.kinds.values().map(|amount| amount.context_tokens).sum(),
        disk_bytes: Bytes(source.len()),
    };
    anatomy.tools = tools.into_values().collect();
    anatomy.tools.sort_by_key(|tool| {
        let arguments = tool.arguments;
        let results = tool.results;
        std::cmp::Reverse((
            arguments.context_tokens + results.context_tokens,
            arguments.disk_bytes + results.disk_bytes,
        ))
    });
    anatomy.largest = largest(&view, &weighed);
    anatomy
}

fn weigh(transcript: &Transcript, source: &dyn Source, counter: &dyn Counter) -> Vec<Weighed> {
    let mut sent = vec![false; transcript.items.len()];
    for (item, _) in transcript.context() {
        sent[item] = true;
    }
    let places: Vec<(usize, usize)> = transcript
        .entries()
        .flat_map(|(item, entry)| (0..entry.blocks.len()).map(move |block| (item, block)))
        .collect();
    places
        .into_par_iter()
        .filter_map(|(item, block)| {
            let content = transcript.items[item].entry()?.blocks.get(block)?;
            let tokens = sent[item].then(|| block_tokens(content, source, counter));
            Some(Weighed { item, block, tokens, bytes: bytes(content) })
        })
        .collect()
}

fn at<'t>(transcript: &'t Transcript, it: &Weighed) -> Option<(&'t Entry, &'t Block)> {
    let entry = transcript.items[it.item].entry()?;
    Some((entry, entry.blocks.get(it.block)?))
}

fn bytes(block: &Block) -> Bytes {
    Bytes(match block {
        Block::Text(words) | Block::Summary(words) => text_len(words),
        Block::Thinking(thinking) => thinking.whole.len(),
        Block::Call(call) => call.arguments.len(),
        Block::Output(output) => output.size(),
        Block::Repeated(again) => again.whole.len(),
        Block::Image(image) => image.whole.len(),
        Block::Opaque(span) => span.len(),
        _ => 0,
    })
}

fn text_len(text: &Text) -> u64 {
    text.span().map_or(0, |span| span.len())
}

fn largest(view: &View<'_>, weighed: &[Weighed]) -> Vec<LargeBlock> {
    let mut order: Vec<&Weighed> = weighed.iter().collect();
    order.sort_by_key(|it| (std::cmp::Reverse((it.tokens, it.bytes)), it.item, it.block));
    order
        .into_iter()
        .take(LARGEST)
        .filter_map(|it| {
            let (entry, block) = at(view.transcript, it)?;
            let kind = PartKind::from_block(entry, block);
            Some(LargeBlock {
                line: entry.record.line,
                kind,
                what: describe(view, it, block, kind),
                context_tokens: it.tokens,
                disk_bytes: it.bytes,
            })
        })
        .collect()
}

fn describe(view: &View<'_>, it: &Weighed, block: &Block, kind: PartKind) -> String {
    match block {
        Block::Call(call) => view.describe_call(Some(call)),
        Block::Text(text) | Block::Summary(text) => {
            let words = text.read(view.source);
            epitome_model::short(words.trim_start(), 48)
        }
        Block::Thinking(_) | Block::Opaque(_) => kind.name().to_owned(),
        Block::Output(_) | Block::Repeated(_) | Block::Image(_) => {
            view.describe(At::Block { item: it.item, block: it.block })
        }
        _ => kind.name().to_owned(),
    }
}
