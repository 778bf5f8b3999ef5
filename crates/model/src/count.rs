//! Counting what a resume would send.

use std::borrow::Cow;

use crate::{Again, Block, Entry, Part, Role, Source, Tokens, Transcript, decode};

/// Counts the tokens of a text.
pub trait Counter: Sync {
    /// The name shown beside every number: `o200k`, `estimate`.
    fn name(&self) -> &'static str;

    /// The tokens of `text`, read on its own.
    fn count(&self, text: &str) -> Tokens;
}

/// Tokens of a picture. Providers count its pixels; 1,568 pixels at the long edge, the size that
/// Anthropic scales down to, come to about this.
pub const IMAGE: Tokens = Tokens(1_600);

/// What a kind of block weighs in the context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// How many blocks.
    pub blocks: u64,
    /// Their tokens.
    pub tokens: Tokens,
}

impl Weight {
    fn add(&mut self, tokens: Tokens) {
        self.blocks += 1;
        self.tokens += tokens;
    }
}

/// Where the tokens of a context go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weights {
    /// Words of the user, pictures included.
    pub user: Weight,
    /// Words of the model.
    pub assistant: Weight,
    /// Reasoning.
    pub thinking: Weight,
    /// Arguments of calls.
    pub calls: Weight,
    /// Results.
    pub results: Weight,
    /// Summaries, reminders, what we do not understand.
    pub other: Weight,
}

impl Weights {
    /// All of it.
    pub fn total(&self) -> Tokens {
        [self.user, self.assistant, self.thinking, self.calls, self.results, self.other]
            .iter()
            .map(|weight| weight.tokens)
            .sum()
    }
}

/// Weighs what a resume would send. The agent's system prompt and tools come on top: most agents
/// do not store them.
pub fn weigh(transcript: &Transcript, source: &dyn Source, counter: &dyn Counter) -> Weights {
    let mut weights = Weights::default();
    for (_, entry) in transcript.context() {
        for block in &entry.blocks {
            let tokens = block_tokens(block, source, counter);
            kind_of(&mut weights, entry, block).add(tokens);
        }
    }
    weights
}

/// The tokens of the words of one block. What a wire puts around them (kinds, ids, signatures) is
/// not counted: it differs from wire to wire, and calibration accounts for it.
pub fn block_tokens(block: &Block, source: &dyn Source, counter: &dyn Counter) -> Tokens {
    match block {
        Block::Text(text) | Block::Summary(text) => counter.count(&text.read(source)),
        Block::Thinking(thinking) => match &thinking.text {
            Some(text) => counter.count(&text.read(source)),
            None => Tokens(0),
        },
        Block::Call(call) => {
            counter.count(&call.name) + counter.count(&arguments(source.at(call.arguments)))
        }
        Block::Output(output) | Block::Again(Again { output, .. }) => output
            .parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => counter.count(&text.read(source)),
                Part::Image(_) => IMAGE,
                Part::Opaque(span) => counter.count(&utf8(source.at(*span))),
            })
            .sum(),
        Block::Image(_) => IMAGE,
        Block::Opaque(span) => counter.count(&utf8(source.at(*span))),
    }
}

fn kind_of<'a>(weights: &'a mut Weights, entry: &Entry, block: &Block) -> &'a mut Weight {
    match (block, entry.role) {
        (Block::Thinking(_), _) => &mut weights.thinking,
        (Block::Call(_), _) => &mut weights.calls,
        (Block::Output(_) | Block::Again(_), _) | (Block::Image(_), Role::Tool) => {
            &mut weights.results
        }
        (Block::Text(_) | Block::Image(_), Role::User) => &mut weights.user,
        (Block::Text(_) | Block::Image(_), Role::Assistant) => &mut weights.assistant,
        (Block::Text(_) | Block::Image(_), Role::Tool | Role::System)
        | (Block::Summary(_) | Block::Opaque(_), _) => &mut weights.other,
    }
}

/// Arguments that are kept as a string are sent as the text of it.
fn arguments(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    if bytes.first() == Some(&b'"') { Cow::Owned(decode(&bytes).into_owned()) } else { utf8(bytes) }
}

fn utf8(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    match bytes {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}
