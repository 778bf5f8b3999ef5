//! Counting what a resume would send.

use std::borrow::Cow;

use crate::{Again, Block, Entry, Part, Role, Source, Span, Text, Tokens, Transcript, decode};

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

/// Tokens of each page of a document: the middle of the 1,500 to 3,000 that Anthropic gives for one
/// of a PDF (<https://platform.claude.com/docs/en/build-with-claude/pdf-support>).
const PAGE: Tokens = Tokens(2_250);
/// Base64 that a page is taken for: about 55 kB of a file. Pages are not looked for.
const PAGE_BASE64: usize = 75_000;
/// Base64 that is shorter may be an id or a hash, which is sent as it is.
const SHORTEST_FILE: usize = 1_000;

/// Characters that a wire puts around a block: braces, its kind, its role, an id. On Anthropic's
/// wire a call or a result with an id of its service has about so many.
pub const CHARS_AROUND: u64 = 100;

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
                Part::Opaque(span) => opaque(&utf8(source.at(*span)), counter),
            })
            .sum(),
        Block::Image(_) => IMAGE,
        Block::Opaque(span) => opaque(&utf8(source.at(*span)), counter),
    }
}

/// The characters of one block as it is written, escapes included. A picture counts as four to each
/// of its tokens. What a wire puts around it is not counted.
pub fn block_chars(block: &Block, source: &dyn Source) -> u64 {
    let text = |text: &Text| match text {
        Text::Source(span) => written_chars(&source.at(*span)),
        Text::Made(text) => written_chars(crate::encode(text).as_bytes()),
    };
    match block {
        Block::Text(words) | Block::Summary(words) => text(words),
        Block::Thinking(thinking) => written_chars(&source.at(thinking.whole)),
        Block::Call(call) => call.name.chars().count() as u64 + at(source, call.arguments),
        Block::Output(output) | Block::Again(Again { output, .. }) => {
            let parts = output.parts.iter().map(|part| match part {
                Part::Text(words) => text(words),
                Part::Image(_) => 4 * IMAGE.0,
                Part::Opaque(span) => at(source, *span),
            });
            parts.sum()
        }
        Block::Image(_) => 4 * IMAGE.0,
        Block::Opaque(span) => at(source, *span),
    }
}

fn at(source: &dyn Source, span: Span) -> u64 {
    written_chars(&source.at(span))
}

/// Characters of UTF-8: all bytes but those that go on with one.
fn written_chars(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte & 0xc0 != 0x80).count() as u64
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

/// What is not understood is sent as it is, but for documents and recordings in it, of which nobody
/// counts the base64.
fn opaque(json: &str, counter: &dyn Counter) -> Tokens {
    let files: Vec<&str> = json.split('"').filter_map(file).collect();
    if files.is_empty() {
        return counter.count(json);
    }
    let pages: usize = files.iter().map(|file| file.len().div_ceil(PAGE_BASE64)).sum();
    let words = files.iter().fold(json.to_owned(), |words, file| words.replacen(file, "", 1));
    counter.count(&words) + Tokens(PAGE.0 * pages as u64)
}

/// The base64 of a file in a JSON string: all of it, or what stands behind the head of a `data:`
/// URL.
fn file(text: &str) -> Option<&str> {
    let data = text.split_once(";base64,").map_or(text, |(_, data)| data);
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_=\\".contains(&byte);
    (data.len() >= SHORTEST_FILE && data.bytes().all(is_base64)).then_some(data)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// One token a character, so that each shows.
    struct Characters;

    impl Counter for Characters {
        fn name(&self) -> &'static str {
            "characters"
        }

        fn count(&self, text: &str) -> Tokens {
            Tokens(text.chars().count() as u64)
        }
    }

    #[test]
    fn files_count_by_their_pages_and_all_else_as_it_stands() {
        let file = |len: usize| "QUJD+/==".repeat(len / 8);
        for (json, expect) in [
            (String::new(), 0),
            (r#"{"type":"x"}"#.to_owned(), 12),
            // Too short for a file, and no base64 for a blank.
            (format!(r#"{{"id":"{}"}}"#, file(992)), 992 + 9),
            (format!(r#"{{"id":"{} "}}"#, file(1_000)), 1_000 + 10),
            (format!(r#"{{"data":"{}"}}"#, file(1_000)), 2_250 + 11),
            (format!(r#"{{"data":"{}"}}"#, file(75_000)), 2_250 + 11),
            (format!(r#"{{"data":"{}"}}"#, file(75_008)), 4_500 + 11),
            (format!(r#"["data:a/b;base64,{}"]"#, file(8_000)), 2_250 + 20),
            (format!(r#"["{0}","{0}"]"#, file(1_600)), 4_500 + 7),
        ] {
            assert_eq!(opaque(&json, &Characters), Tokens(expect), "{:.40}", json);
        }
    }
}
