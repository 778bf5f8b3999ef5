//! Counts the tokens of what a resume would send.

use std::borrow::Cow;

use crate::{
    Block, Entry, Part, RepeatedOutput, Role, Source, Span, Text, Tokens, Transcript, decode,
};

/// Counts the tokens of a text.
pub trait Counter: Sync {
    /// The name of the counter: `o200k`, `estimate`.
    fn name(&self) -> &'static str;

    /// The number of tokens of `text`, without any text before or after it.
    fn count(&self, text: &str) -> Tokens;
}

/// The tokens that each picture counts as. Providers count pixels: a picture whose longer edge has
/// 1,568 pixels, the size that Anthropic scales down to, has about this many.
pub const IMAGE_TOKENS: Tokens = Tokens(1_600);

/// Tokens per page of a document: the middle of the 1,500 to 3,000 that Anthropic states for a PDF
/// page (<https://platform.claude.com/docs/en/build-with-claude/pdf-support>).
const PAGE: Tokens = Tokens(2_250);
/// The number of base64 characters that counts as one page: about 55 kB of a file. The real pages
/// of a document are not counted.
const PAGE_BASE64: usize = 75_000;
/// Base64 of at least this many characters is treated as a file. Shorter base64 may be an id or a
/// hash, and is counted as text.
const SHORTEST_FILE: usize = 1_000;

/// Tokens that an API puts around a block: its kind, its role, an id. Providers do not document
/// how many; four is what OpenAI's cookbook counts for a message.
pub const TOKENS_AROUND: Tokens = Tokens(4);

/// Characters that an API format adds around a block: braces, its type, its role, an id. A call or
/// result in Anthropic's format, with an id from the service, has about this many.
pub const CHARS_AROUND: u64 = 100;

/// The number and tokens of one kind of block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// The number of blocks.
    pub blocks: u64,
    /// The tokens of all these blocks.
    pub tokens: Tokens,
}

impl Weight {
    fn add(&mut self, tokens: Tokens) {
        self.blocks += 1;
        self.tokens += tokens;
    }
}

/// The tokens of a context, by kind of block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weights {
    /// Text and pictures of the user.
    pub user: Weight,
    /// Text and pictures of the model.
    pub assistant: Weight,
    /// Reasoning.
    pub thinking: Weight,
    /// Calls: the names of the tools, and the arguments.
    pub calls: Weight,
    /// Tool results, and pictures that tools added to them.
    pub results: Weight,
    /// Summaries, text and pictures of the agent itself, text that tools added to their results,
    /// and blocks that epitome does not understand.
    pub other: Weight,
}

impl Weights {
    /// The tokens of all kinds of blocks together.
    pub fn total(&self) -> Tokens {
        [self.user, self.assistant, self.thinking, self.calls, self.results, self.other]
            .iter()
            .map(|weight| weight.tokens)
            .sum()
    }
}

/// Counts the blocks that a resume would send, and their tokens, by kind of block. The agent's
/// system prompt and the schemas of its tools are included only if the session stores them; most
/// sessions do not.
pub fn weigh(transcript: &Transcript, source: &dyn Source, counter: &dyn Counter) -> Weights {
    let mut weights = Weights::default();
    for (_, entry) in transcript.context() {
        for block in &entry.blocks {
            let tokens = block_tokens(block, source, counter);
            weight_of(&mut weights, entry, block).add(tokens);
        }
    }
    weights
}

/// The tokens of one block: of its text, or of the tool's name and the arguments of a call. A
/// picture has [`IMAGE_TOKENS`], and reasoning without readable text has none. A block that epitome
/// does not understand counts as its JSON, in which files in base64 count as pages. What an API
/// format adds around a block (types, ids, signatures) is not counted: it differs between formats,
/// and calibration accounts for it.
pub fn block_tokens(block: &Block, source: &dyn Source, counter: &dyn Counter) -> Tokens {
    match block {
        Block::Text(text) | Block::Summary(text) => counter.count(&text.read(source)),
        Block::Thinking(thinking) => match &thinking.text {
            Some(text) => counter.count(&text.read(source)),
            None => Tokens(0),
        },
        Block::Call(call) => call_tokens(&call.name, source.at(call.arguments), counter),
        Block::Output(output) | Block::Repeated(RepeatedOutput { output, .. }) => output
            .parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => counter.count(&text.read(source)),
                Part::Image(_) => IMAGE_TOKENS,
                Part::Opaque(span) => opaque_tokens(&utf8(source.at(*span)), counter),
            })
            .sum(),
        Block::Image(_) => IMAGE_TOKENS,
        Block::Opaque(span) => opaque_tokens(&utf8(source.at(*span)), counter),
    }
}

/// The tokens of a call: of the name of its tool and of its arguments. `json` are the arguments as
/// stored; if they are a JSON string, the text of the string is counted.
pub fn call_tokens(name: &str, json: Cow<'_, [u8]>, counter: &dyn Counter) -> Tokens {
    counter.count(name) + counter.count(&arguments(json))
}

/// Whether `text` has at least `least` tokens. Of a long text, the beginning is counted first; the
/// whole text is counted only if the beginning has too few tokens.
pub fn has_at_least(text: &str, least: Tokens, counter: &dyn Counter) -> bool {
    let Some(beginning) = beginning_for(text.len() as u64, least) else {
        return counter.count(text) >= least;
    };
    counter.count(&text[..text.floor_char_boundary(beginning)]) >= least + MARGIN
        || counter.count(text) >= least
}

/// Whether a block has at least `least` tokens, as [`block_tokens`] counts them. If a long result
/// is one text, its beginning is counted first; the whole is read only if the beginning has too few
/// tokens.
pub fn block_has_at_least(
    block: &Block,
    least: Tokens,
    source: &dyn Source,
    counter: &dyn Counter,
) -> bool {
    let beginning = match block {
        Block::Output(output) => match &output.parts[..] {
            [Part::Text(text)] => {
                let len = text.span().map_or(0, Span::len);
                beginning_for(len, least).and_then(|bytes| text.beginning(source, bytes))
            }
            _ => None,
        },
        _ => None,
    };
    beginning.is_some_and(|text| counter.count(&text) >= least + MARGIN)
        || block_tokens(block, source, counter) >= least
}

/// A text that is cut off may have more tokens than the same bytes have in the whole text, because
/// its last token may be split. So the beginning of a text decides only if it has this many tokens
/// more than required.
const MARGIN: Tokens = Tokens(64);

/// How many bytes at the beginning of a text of `len` bytes usually have more than `least` tokens.
/// `None` if the text has at most twice as many bytes: then the whole text may be counted at once.
fn beginning_for(len: u64, least: Tokens) -> Option<usize> {
    /// More bytes than a token usually has: twice the average in code.
    const BYTES: u64 = 8;
    let bytes = (least + MARGIN).0.saturating_mul(BYTES);
    (bytes.saturating_mul(2) < len).then(|| usize::try_from(bytes).ok()).flatten()
}

/// The number of characters of a block's content as JSON, with the quotes and escapes of its
/// strings. Of reasoning, the whole stored block is counted; of other blocks, what an API format
/// adds around the content is not. A picture counts as four characters for each of its
/// [`IMAGE_TOKENS`].
pub fn block_chars(block: &Block, source: &dyn Source) -> u64 {
    match block {
        Block::Text(words) | Block::Summary(words) => text_chars(words, source),
        Block::Thinking(thinking) => written_chars(&source.at(thinking.whole)),
        Block::Call(call) => call.name.chars().count() as u64 + span_chars(source, call.arguments),
        Block::Output(output) | Block::Repeated(RepeatedOutput { output, .. }) => {
            let parts = output.parts.iter().map(|part| match part {
                Part::Text(words) => text_chars(words, source),
                Part::Image(_) => 4 * IMAGE_TOKENS.0,
                Part::Opaque(span) => span_chars(source, *span),
            });
            parts.sum()
        }
        Block::Image(_) => 4 * IMAGE_TOKENS.0,
        Block::Opaque(span) => span_chars(source, *span),
    }
}

fn text_chars(text: &Text, source: &dyn Source) -> u64 {
    match text {
        Text::Source(span) => written_chars(&source.at(*span)),
        Text::Owned(text) => written_chars(crate::encode(text).as_bytes()),
    }
}

/// The number of characters in the bytes at a span.
fn span_chars(source: &dyn Source, span: Span) -> u64 {
    written_chars(&source.at(span))
}

/// The number of characters in UTF-8: of all bytes except continuation bytes.
fn written_chars(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte & 0xc0 != 0x80).count() as u64
}

/// The [`Weight`] to which the tokens of a block are added. `entry` is the entry of the block.
fn weight_of<'a>(weights: &'a mut Weights, entry: &Entry, block: &Block) -> &'a mut Weight {
    match (block, entry.role) {
        (Block::Thinking(_), _) => &mut weights.thinking,
        (Block::Call(_), _) => &mut weights.calls,
        (Block::Output(_) | Block::Repeated(_), _) | (Block::Image(_), Role::Tool) => {
            &mut weights.results
        }
        (Block::Text(_) | Block::Image(_), Role::User) => &mut weights.user,
        (Block::Text(_) | Block::Image(_), Role::Assistant) => &mut weights.assistant,
        (Block::Text(_) | Block::Image(_), Role::Tool | Role::System)
        | (Block::Summary(_) | Block::Opaque(_), _) => &mut weights.other,
    }
}

/// The tokens of the JSON of a block that epitome does not understand. Files in base64 in it, such
/// as documents and recordings, count as pages.
fn opaque_tokens(json: &str, counter: &dyn Counter) -> Tokens {
    let files: Vec<&str> = json.split('"').filter_map(base64_of_file).collect();
    if files.is_empty() {
        return counter.count(json);
    }
    let pages: usize = files.iter().map(|file| file.len().div_ceil(PAGE_BASE64)).sum();
    let words = files.iter().fold(json.to_owned(), |words, file| words.replacen(file, "", 1));
    counter.count(&words) + Tokens(PAGE.0 * pages as u64)
}

/// The base64 of a file in `text`, the inside of a JSON string: the whole string, or the part after
/// the header of a `data:` URL. `None` if that is too short for a file, or is not base64.
fn base64_of_file(text: &str) -> Option<&str> {
    let data = text.split_once(";base64,").map_or(text, |(_, data)| data);
    (data.len() >= SHORTEST_FILE && data.bytes().all(is_base64)).then_some(data)
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/-_=\\".contains(&byte)
}

/// The text of a call's arguments as it is sent: arguments that are stored as a JSON string are
/// decoded first.
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
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::{Call, Image, Item, Output, Thinking, ToolKind};

    /// Counts one token per character, so that every character shows in the sum.
    struct Characters;

    impl Counter for Characters {
        fn name(&self) -> &'static str {
            "characters"
        }

        fn count(&self, text: &str) -> Tokens {
            Tokens(text.chars().count() as u64)
        }
    }

    /// Counts like [`Characters`], and records the number of bytes counted.
    struct Seen(AtomicU64);

    impl Counter for Seen {
        fn name(&self) -> &'static str {
            "seen"
        }

        fn count(&self, text: &str) -> Tokens {
            self.0.fetch_add(text.len() as u64, Ordering::Relaxed);
            Characters.count(text)
        }
    }

    #[test]
    fn a_long_result_is_known_to_have_enough_tokens_by_its_beginning() {
        let literal = format!(r#""{}""#, r"a\n\u00e9 ".repeat(10_000));
        let source = literal.as_bytes();
        let whole = Span { start: 0, end: source.len() as u64 };
        let parts = vec![Part::Text(Text::Source(whole))];
        let call = "call".into();
        let (error, numbered, from_user) = (false, false, false);
        let block = Block::Output(Output { call, error, parts, whole, numbered, from_user });
        let has = |least, seen: &Seen| block_has_at_least(&block, Tokens(least), &source, seen);
        let seen = Seen(AtomicU64::new(0));
        assert!(has(100, &seen));
        assert!(seen.0.load(Ordering::Relaxed) < 2_000);
        for (least, expect) in [(0, true), (39_999, true), (40_000, true), (40_001, false)] {
            assert_eq!(has(least, &seen), expect, "{least}");
        }
    }

    #[test]
    fn files_count_by_their_pages_and_all_else_as_it_stands() {
        let file = |len: usize| "QUJD+/==".repeat(len / 8);
        for (json, expect) in [
            (String::new(), 0),
            (r#"{"type":"x"}"#.to_owned(), 12),
            // Too short to be a file; not base64 because of the space.
            (format!(r#"{{"id":"{}"}}"#, file(992)), 992 + 9),
            (format!(r#"{{"id":"{} "}}"#, file(1_000)), 1_000 + 10),
            (format!(r#"{{"data":"{}"}}"#, file(1_000)), 2_250 + 11),
            (format!(r#"{{"data":"{}"}}"#, file(75_000)), 2_250 + 11),
            (format!(r#"{{"data":"{}"}}"#, file(75_008)), 4_500 + 11),
            (format!(r#"["data:a/b;base64,{}"]"#, file(8_000)), 2_250 + 20),
            (format!(r#"["{0}","{0}"]"#, file(1_600)), 4_500 + 7),
        ] {
            assert_eq!(opaque_tokens(&json, &Characters), Tokens(expect), "{:.40}", json);
        }
    }

    #[test]
    fn every_kind_of_block_is_weighed_where_it_belongs() {
        let source: &[u8] = br#""four" "a\nb" {"k":"v"} "{\"k\":1}""#;
        let span = |start, end| Span { start, end };
        let four = Text::Source(span(0, 6));
        let image = Image { media: "image/png".into(), data: span(0, 6), whole: span(0, 6) };
        let parts = vec![
            Part::Text(Text::Source(span(7, 13))),
            Part::Image(image.clone()),
            Part::Opaque(span(14, 23)),
        ];
        let thinking =
            |text| Block::Thinking(Thinking { text, whole: span(0, 6), removable: true });
        let call = |arguments| {
            Block::Call(Call {
                id: "c".into(),
                name: "bash".into(),
                kind: ToolKind::Shell,
                target: None,
                part: None,
                fields: Vec::new(),
                arguments,
            })
        };
        // Each case: the block, its tokens, and its characters in JSON.
        let cases = [
            (Block::Text(four.clone()), 4, 6),
            (Block::Text(Text::Owned("a\nb".into())), 3, 6),
            (Block::Summary(four.clone()), 4, 6),
            (thinking(Some(four.clone())), 4, 6),
            (thinking(None), 0, 6),
            (call(span(14, 23)), 4 + 9, 4 + 9),
            // Arguments that are a string are sent as the text of that string.
            (call(span(24, 35)), 4 + 7, 4 + 11),
            (Block::Output(Output { parts, ..Output::default() }), 3 + 1_600 + 9, 6 + 6_400 + 9),
            (Block::Image(image), 1_600, 6_400),
            (Block::Opaque(span(14, 23)), 9, 9),
        ];
        for (block, tokens, chars) in &cases {
            assert_eq!(block_tokens(block, &source, &Characters), Tokens(*tokens), "{block:?}");
            assert_eq!(block_chars(block, &source), *chars, "{block:?}");
        }

        let blocks: Vec<Block> = cases.into_iter().map(|(block, ..)| block).collect();
        let entries = [Role::User, Role::Assistant, Role::Tool].map(|role| {
            Item::Entry(Box::new(Entry { role, blocks: blocks.clone(), ..Entry::default() }))
        });
        let transcript =
            Transcript { items: entries.into(), context: vec![0, 1, 2], ..Transcript::default() };
        let weight = |blocks, tokens| Weight { blocks, tokens: Tokens(tokens) };
        let weights = weigh(&transcript, &source, &Characters);
        assert_eq!(
            weights,
            Weights {
                user: weight(3, 7 + 1_600),
                assistant: weight(3, 7 + 1_600),
                thinking: weight(6, 12),
                calls: weight(6, 72),
                results: weight(4, 3 * 1_612 + 1_600),
                other: weight(8, 7 + 3 * 13),
            }
        );
        assert_eq!(weights.total(), Tokens(3 * (4 + 3 + 4 + 4 + 13 + 11 + 1_612 + 1_600 + 9)));
    }
}
