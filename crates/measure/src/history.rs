//! A session as a list of blocks, with its requests to the model.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use epitome_model::{
    Block, Call, Counter, Entry, Output, Part, Role, Source, Text, Tokens, ToolKind, Transcript,
};

use crate::block::{BlockKind, MeasuredBlock};

/// The text of the result that is added to a call if the session contains no result of the call.
const NO_RESULT: &str = "[no result recorded]";
/// The user message that is added before a session that begins with the model.
const BEGINNING: &str = "[session start]";

/// The whole content of a session with all compactions undone: the context that the session would
/// have if it had never been compacted.
///
/// Every call has its result in the next entry. Summaries, copies of the history and the system
/// prompt are left out. So are entries that a resume does not send, such as those of another
/// branch, if they come after the first entry that it sends.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The entries, in order, so that they can be replayed.
    pub entries: Vec<Entry>,
    /// The measured blocks of all entries, in order.
    pub pieces: Vec<Arc<MeasuredBlock>>,
    /// The requests to the model with their responses, in order.
    pub calls: Vec<ModelCall>,
    /// The indices of the blocks that are texts of the user.
    user_texts: Vec<usize>,
    /// For each block, the tokens of all blocks before it. One more element, the last, is the sum
    /// of the tokens of all blocks.
    tokens: Vec<Tokens>,
    /// For each block, the number of calls whose responses come before it.
    answered: Vec<usize>,
}

/// A request to the model and its response.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelCall {
    /// The index of the entry with the response. If nothing is compacted, the request sends all
    /// entries before this one.
    pub entry: usize,
    /// The index of the response's first block, and the index after its last block.
    pub pieces: (usize, usize),
    /// The time of the response, as written in the session.
    pub time: Option<Box<str>>,
}

impl History {
    /// Reads the history of a session.
    pub fn from_transcript(
        transcript: &Transcript,
        source: &dyn Source,
        counter: &dyn Counter,
    ) -> History {
        let mut history = History { entries: entries(transcript, source), ..History::default() };
        let mut files: HashMap<Box<str>, Box<str>> = HashMap::new();
        for (entry, said) in history.entries.iter().enumerate() {
            let first = history.pieces.len();
            for block in &said.blocks {
                let mut piece = MeasuredBlock::from_block(block, said.role, source, counter);
                match block {
                    Block::Call(call) if matches!(call.kind, ToolKind::Read | ToolKind::Shell) => {
                        files.extend(piece.file.clone().map(|file| (call.id.clone(), file)));
                    }
                    Block::Output(output) => piece.file = files.get(&output.call).cloned(),
                    _ => {}
                }
                let is_text = matches!(block, Block::Text(_)) && said.role == Role::User;
                if is_text && piece.text != BEGINNING {
                    history.user_texts.push(history.pieces.len());
                }
                history.pieces.push(Arc::new(piece));
                history.answered.push(history.calls.len());
            }
            if said.role == Role::Assistant {
                let pieces = (first, history.pieces.len());
                history.calls.push(ModelCall { entry, pieces, time: said.time.clone() });
            }
        }
        history.tokens = vec![Tokens(0)];
        for piece in &history.pieces {
            let before = history.tokens.last().copied().unwrap_or_default();
            history.tokens.push(before + piece.tokens);
        }
        history
    }

    /// The tokens of all blocks before the block with the index `piece`.
    pub fn tokens_before(&self, piece: usize) -> Tokens {
        self.tokens.get(piece).or(self.tokens.last()).copied().unwrap_or_default()
    }

    /// The tokens of all blocks.
    pub fn tokens(&self) -> Tokens {
        self.tokens.last().copied().unwrap_or_default()
    }

    /// The blocks of the response to the request with the index `call`.
    pub fn response(&self, call: usize) -> &[Arc<MeasuredBlock>] {
        let (first, end) = self.calls[call].pieces;
        &self.pieces[first..end]
    }

    /// The blocks that the request with the index `call` sends if nothing is compacted: all blocks
    /// before its response.
    pub fn blocks_sent(&self, call: usize) -> &[Arc<MeasuredBlock>] {
        &self.pieces[..self.calls[call].pieces.0]
    }

    /// The newest user text that the request with the index `call` contains; `None` if it contains
    /// none.
    pub fn user_request(&self, call: usize) -> Option<&MeasuredBlock> {
        let first = self.calls[call].pieces.0;
        let before = self.user_texts.partition_point(|&piece| piece < first);
        let newest = *self.user_texts[..before].last()?;
        Some(&self.pieces[newest])
    }

    /// The number of responses before a block; the response that contains the block is not counted.
    pub(crate) fn call_of(&self, piece: usize) -> usize {
        self.answered[piece]
    }
}

/// The original entries, in an order in which they can be sent to a model.
fn entries(transcript: &Transcript, source: &dyn Source) -> Vec<Entry> {
    let prompt: HashSet<usize> = transcript.head.prompt.iter().copied().collect();
    let sent: HashSet<usize> = transcript.context.iter().copied().collect();
    let first = transcript.context.iter().copied().min().unwrap_or(usize::MAX);
    let mut building = Building::default();
    for (_, entry) in transcript.entries() {
        for block in &entry.blocks {
            if let Block::Output(output) = block {
                building.results.entry(output.call.clone()).or_insert_with(|| output.clone());
            }
        }
    }
    let entries = transcript.entries().filter(|(item, entry)| {
        (*item < first || sent.contains(item)) && !prompt.contains(item) && !entry.repeated
    });
    for (_, entry) in entries {
        building.take(entry, source);
    }
    building.end_response();
    building.entries
}

#[derive(Default)]
struct Building {
    entries: Vec<Entry>,
    /// The response that is being put together. Agents store a response as several entries, so that
    /// the next entry may belong to it.
    response: Option<Entry>,
    /// The results by the id of their call. If a call has several results, this is the first one.
    results: HashMap<Box<str>, Output>,
    called: HashSet<Box<str>>,
}

impl Building {
    fn take(&mut self, entry: &Entry, source: &dyn Source) {
        if entry.role != Role::Assistant {
            let words = entry.blocks.iter().filter(|block| has_content(block, source)).cloned();
            let words: Vec<Block> = words.collect();
            if !words.is_empty() {
                self.end_response();
                self.entries.push(Entry {
                    blocks: words,
                    hidden_fields: Vec::new(),
                    ..entry.clone()
                });
            }
            return;
        }
        let mut content: Vec<Block> = Vec::new();
        for block in &entry.blocks {
            match block {
                Block::Call(Call { id, .. }) if self.called.insert(id.clone()) => {
                    content.push(block.clone());
                }
                other if has_content(other, source) => content.push(other.clone()),
                _ => {}
            }
        }
        if content.is_empty() {
            return;
        }
        let goes_on =
            self.response.as_ref().is_some_and(|it| it.group.is_some() && it.group == entry.group);
        if !goes_on {
            self.end_response();
        }
        // Adjacent entries that the model wrote are one response.
        let open = self
            .response
            .take()
            .or_else(|| self.entries.pop_if(|last| last.role == Role::Assistant));
        let mut open = open.unwrap_or_else(|| Entry {
            blocks: Vec::new(),
            hidden_fields: Vec::new(),
            ..entry.clone()
        });
        open.blocks.extend(content);
        self.response = Some(open);
    }

    /// Appends the response that is being put together to `entries`, followed by an entry with the
    /// results of its calls. Does nothing if no response is being put together.
    fn end_response(&mut self) {
        let Some(response) = self.response.take() else { return };
        if self.entries.is_empty() {
            let blocks = vec![Block::Text(Text::Owned(BEGINNING.into()))];
            self.entries.push(Entry { blocks, ..Entry::default() });
        }
        let calls = response.blocks.iter().filter_map(|block| match block {
            Block::Call(call) => Some(call.id.clone()),
            _ => None,
        });
        let results: Vec<Block> = calls
            .map(|call| {
                let result = self.results.get(&call).cloned();
                Block::Output(result.unwrap_or_else(|| Output {
                    call,
                    error: false,
                    parts: vec![Part::Text(Text::Owned(NO_RESULT.into()))],
                    whole: epitome_model::Span::default(),
                    numbered: false,
                    from_user: false,
                }))
            })
            .collect();
        self.entries.push(response);
        if !results.is_empty() {
            self.entries.push(Entry { role: Role::Tool, blocks: results, ..Entry::default() });
        }
    }
}

fn has_content(block: &Block, source: &dyn Source) -> bool {
    match block {
        Block::Text(text) => !text.read(source).trim().is_empty(),
        Block::Thinking(_) | Block::Image(_) | Block::Opaque(_) => true,
        _ => false,
    }
}

impl MeasuredBlock {
    /// Whether a fact in this block counts as a use of the fact by the model: the model wrote the
    /// block, and the block is not reasoning.
    pub(crate) fn is_used(&self) -> bool {
        self.by_model && self.kind != BlockKind::Thinking
    }
}
