//! The body of a request, divided at its messages.

use std::ops::Range;

use epitome::wire::Chain;
use epitome_json::{Cursor, Kind, MalformedJson, without};
use epitome_model::{Tokens, decode};

/// The member that tells the provider how far to cache a request. Clients move it from message to
/// message. A message counts as the same with and without it.
const MARK: &[u8] = b"cache_control";

/// The messages of a body, as ranges of its bytes.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    /// The model that the body names.
    pub(crate) model: Option<String>,
    /// The range of the array of messages.
    pub(crate) list: Range<usize>,
    /// The messages in the array.
    pub(crate) all: Vec<Message>,
}

/// A message of a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// The bytes of the message in the body.
    pub(crate) span: Range<usize>,
    /// Ranges of the message that are left out when messages are compared: its cache marks, and the
    /// array and the block around a text that is its only content.
    pub(crate) ignored: Vec<Range<usize>>,
    /// Whether the role of the message is one of instructions or of a user.
    pub(crate) is_input: bool,
    /// Whether the model wrote the message. This is assumed of each message that is no input and no
    /// result of a call.
    pub(crate) is_model: bool,
}

/// The roles of instructions and of users.
const INPUT: [&[u8]; 3] = [br#""user""#, br#""system""#, br#""developer""#];
/// The roles of messages that hold results of calls.
const RESULT: [&[u8]; 2] = [br#""tool""#, br#""function""#];
/// The end of the type of an item that is a result, as JSON.
const RESULT_TYPE: &[u8] = br#"_output""#;
/// The number of bytes of JSON per token that is assumed if the service has not counted the tokens.
pub(crate) const BYTES_PER_TOKEN: u64 = 4;

impl Messages {
    /// Finds the messages of a body in its member `list`. `None` if the body is not a JSON object
    /// with exactly one such list, or if the list is empty.
    pub(crate) fn find(body: &[u8], list: &str) -> Option<Messages> {
        let mut found = Messages::default();
        let mut lists = 0;
        let mut cursor = Cursor::new(body);
        if cursor.kind() != Kind::Object {
            return None;
        }
        let read = cursor.object(|value, key| {
            if key == list.as_bytes() && value.kind() == Kind::Array {
                lists += 1;
                found.list = value.array(|element| {
                    found.all.push(message(element, body)?);
                    Ok(())
                })?;
                return Ok(());
            }
            let place = value.skip()?;
            if key == b"model" {
                found.model = model_name(&body[place]);
            }
            Ok(())
        });
        read.and_then(|_| cursor.end()).ok()?;
        (lists == 1 && !found.all.is_empty()).then_some(found)
    }

    /// The chain of each message, in order: the hash of the API's name, of all messages before this
    /// one and of the message itself, each without its [ignored](Message::ignored) bytes.
    pub(crate) fn chains(&self, body: &[u8], api: &str) -> Vec<Chain> {
        let mut before = Chain::compute(api.as_bytes());
        let chain = |message: &Message| {
            let mut hasher = blake3::Hasher::new();
            hasher.update(before.bytes());
            for range in message.counted() {
                hasher.update(&body[range]);
            }
            before = hasher.finalize().into();
            before
        };
        self.all.iter().map(chain).collect()
    }

    /// The chain that identifies a conversation: the chain of the last message before the first
    /// response. All requests of the conversation begin with the messages up to this one, even if
    /// the agent has changed results of calls.
    pub(crate) fn root(&self, chains: &[Chain]) -> Chain {
        chains[self.root_length() - 1]
    }

    /// The number of messages before the first response; at least 1.
    pub(crate) fn root_length(&self) -> usize {
        self.all.iter().take_while(|message| message.is_input).count().max(1)
    }

    /// The number of responses. Consecutive messages of the model are one response.
    pub(crate) fn responses(&self) -> u64 {
        let runs = self.all.chunk_by(|before, after| before.is_model == after.is_model);
        runs.filter(|run| run[0].is_model).count() as u64
    }

    /// An estimate of the tokens of the body outside of the list of messages: mainly of the tools
    /// and, in some APIs, of the system prompt.
    pub(crate) fn tokens_outside(&self, body: &[u8]) -> Tokens {
        Tokens((body.len() - self.list.len()) as u64 / BYTES_PER_TOKEN)
    }

    /// Finds the message that contains a range of the body. Returns the index of the message, and
    /// the [offsets](Message::offset_of) in it at which the range begins and ends. `None` if the
    /// range is empty or not within one message, or if its first or last byte is
    /// [ignored](Message::ignored).
    pub(crate) fn place(&self, range: &Range<usize>) -> Option<(usize, usize, usize)> {
        let idx = self.index_at(range.start)?;
        let start = self.all[idx].offset_of(range.start)?;
        let last = self.all[idx].offset_of(range.end.checked_sub(1)?)?;
        (range.start < range.end).then_some((idx, start, last + 1))
    }

    /// The index of the message that holds the byte at `offset`; `None` if no message does.
    pub(crate) fn index_at(&self, offset: usize) -> Option<usize> {
        let idx = self.all.partition_point(|message| message.span.end <= offset);
        self.all.get(idx).filter(|message| message.span.start <= offset).map(|_| idx)
    }
}

impl Message {
    /// The ranges of the body that belong to the message and are not [ignored](Message::ignored).
    fn counted(&self) -> impl Iterator<Item = Range<usize>> {
        let starts = std::iter::once(self.span.start).chain(self.ignored.iter().map(|it| it.end));
        let ends = self.ignored.iter().map(|it| it.start).chain([self.span.end]);
        starts.zip(ends).map(|(start, end)| start..end)
    }

    /// The offset of a byte of the body in the message, not counting the
    /// [ignored](Message::ignored) bytes before it. `None` if the byte is ignored or outside of the
    /// message.
    pub(crate) fn offset_of(&self, at: usize) -> Option<usize> {
        let mut before = 0;
        for range in self.counted() {
            if range.contains(&at) {
                return Some(before + at - range.start);
            }
            before += range.len();
        }
        None
    }

    /// The number of bytes of the message that are not [ignored](Message::ignored).
    pub(crate) fn length(&self) -> usize {
        self.counted().map(|range| range.len()).sum()
    }

    /// The range of the body that begins and ends at these [offsets](Message::offset_of) in the
    /// message. `None` if the range is empty or the message is shorter.
    pub(crate) fn range_of(&self, start: usize, end: usize) -> Option<Range<usize>> {
        let first = self.place_of(start)?;
        let last = self.place_of(end.checked_sub(1)?)?;
        (start < end).then_some(first..last + 1)
    }

    /// The position in the body of the byte at an [offset](Message::offset_of) in the message.
    /// `None` if the message is shorter.
    fn place_of(&self, offset: usize) -> Option<usize> {
        let mut before = 0;
        for range in self.counted() {
            if offset < before + range.len() {
                return Some(range.start + offset - before);
            }
            before += range.len();
        }
        None
    }
}

/// Finds the text of a content that is one text and nothing else: a JSON string, or an array with
/// one block of text. Returns the range of the JSON string. `None` for any other content.
pub(crate) fn sole_text(body: &[u8], value: &Range<usize>) -> Option<Range<usize>> {
    const TEXTS: [&[u8]; 3] = [br#""text""#, br#""input_text""#, br#""output_text""#];
    let mut cursor = Cursor::at(body, value);
    match cursor.kind() {
        Kind::Array => {}
        Kind::String => return cursor.skip().ok(),
        Kind::Object | Kind::Other => return None,
    }
    let mut blocks = 0;
    let mut texts = Vec::new();
    let mut is_text = false;
    let read = cursor.array(|block| {
        blocks += 1;
        block.object(|value, key| {
            let place = value.skip()?;
            match key {
                b"type" => is_text = TEXTS.contains(&&body[place]),
                b"text" if body[place.start] == b'"' => texts.push(place),
                _ => {}
            }
            Ok(())
        })?;
        Ok(())
    });
    read.ok()?;
    let text = texts.pop().filter(|_| texts.is_empty() && blocks == 1 && is_text)?;
    Some(text)
}

/// The name of a model. Clients choose it, so only its first 100 characters are returned, with a
/// placeholder for each control character. `None` if the value is not a string.
fn model_name(value: &[u8]) -> Option<String> {
    const LONGEST: usize = 100;
    let printable = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    let name = value.starts_with(b"\"").then(|| decode(value))?;
    Some(name.chars().take(LONGEST).map(printable).collect())
}

/// Reads the next value as a message.
fn message(cursor: &mut Cursor<'_>, body: &[u8]) -> Result<Message, MalformedJson> {
    let mut ignored = Vec::new();
    let Element { span, is_input, is_result, .. } = element(cursor, body, 0, &mut ignored)?;
    ignored.sort_unstable_by_key(|range| range.start);
    Ok(Message { span, ignored, is_input, is_model: !is_input && !is_result })
}

/// A JSON value that was read: its range and, if it is an object, what its members say.
/// `text_alone` is the range of the text if the value is a block of the type `text` that has no
/// other member but a cache mark.
struct Element {
    span: Range<usize>,
    text_alone: Option<Range<usize>>,
    is_input: bool,
    is_result: bool,
}

/// Reads a message (depth 0), a block of it (1), or a part of a result (2). Adds to `ignored` the
/// ranges that do not count when messages are compared.
fn element(
    cursor: &mut Cursor<'_>,
    body: &[u8],
    depth: u8,
    ignored: &mut Vec<Range<usize>>,
) -> Result<Element, MalformedJson> {
    if cursor.kind() != Kind::Object {
        let span = cursor.skip()?;
        return Ok(Element { span, text_alone: None, is_input: false, is_result: false });
    }
    let mut members = Vec::new();
    let mut is_mark = Vec::new();
    let mut text = None;
    let mut is_text = false;
    let mut others = 0;
    let mut is_input = false;
    let mut is_result = false;
    let span = cursor.object(|value, key| {
        let start = key.as_ptr() as usize - body.as_ptr() as usize - 1;
        if key == b"content" && depth < 2 && value.kind() == Kind::Array {
            content(value, body, depth, ignored)?;
            others += 1;
        } else {
            let place = value.skip()?;
            match key {
                MARK => {}
                b"type" => {
                    is_text = &body[place.clone()] == br#""text""#;
                    is_result |= body[place].ends_with(RESULT_TYPE);
                }
                b"role" => {
                    is_input = INPUT.contains(&&body[place.clone()]);
                    is_result |= RESULT.contains(&&body[place]);
                    others += 1;
                }
                b"text" if body[place.start] == b'"' => text = Some(place),
                _ => others += 1,
            }
        }
        members.push(start..value.offset());
        is_mark.push(key == MARK);
        Ok(())
    })?;
    ignored.extend(without(&span, &members, &is_mark));
    let text_alone = text.filter(|_| is_text && others == 0);
    Ok(Element { span, text_alone, is_input, is_result })
}

/// Reads the array that is the content of a message or a result.
fn content(
    cursor: &mut Cursor<'_>,
    body: &[u8],
    depth: u8,
    ignored: &mut Vec<Range<usize>>,
) -> Result<(), MalformedJson> {
    let before = ignored.len();
    let mut count = 0;
    let mut text = None;
    let whole = cursor.array(|block| {
        text = element(block, body, depth + 1, ignored)?.text_alone;
        count += 1;
        Ok(())
    })?;
    // Clients put a text into an array to give it a cache mark, and later send it without the
    // array.
    if let (1, 0, Some(text)) = (count, depth, text) {
        ignored.truncate(before);
        ignored.extend([whole.start..text.start, text.end..whole.end]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(message: &str) -> Chain {
        let body = format!(r#"{{"messages":[{message}]}}"#);
        let found = Messages::find(body.as_bytes(), "messages").expect("a body");
        found.chains(body.as_bytes(), "anthropic")[0]
    }

    #[test]
    fn cache_marks_and_the_array_of_a_marked_text_do_not_count() {
        let mark = r#""cache_control":{"type":"ephemeral","ttl":"1h"}"#;
        let text = r#"{"role":"user","content":"Hi [\"x\"]"}"#;
        let marked = format!(
            r#"{{"role":"user","content":[{{"type":"text","text":"Hi [\"x\"]",{mark}}}]}}"#
        );
        let first = format!(
            r#"{{"role":"user","content":[{{{mark},"type":"text","text":"Hi [\"x\"]"}}]}}"#
        );
        assert_eq!(chain(text), chain(&marked));
        assert_eq!(chain(text), chain(&first));
        let result = |mark: &str, part: &str| {
            let part = format!(r#"{{"type":"text","text":"r"{part}}}"#);
            let result = format!(r#""tool_use_id":"a","content":[{part}]{mark}"#);
            let text = r#"{"type":"text","text":"t"}"#;
            format!(r#"{{"role":"user","content":[{{"type":"tool_result",{result}}},{text}]}}"#)
        };
        let mark = format!(",{mark}");
        for other in [result(&mark, ""), result("", &mark), result(&mark, &mark)] {
            assert_eq!(chain(&result("", "")), chain(&other), "{other}");
        }
    }

    #[test]
    fn everything_else_counts() {
        let cases = [
            r#"{"role":"user","content":"a"}"#,
            r#"{"role":"user","content":"a","x":1}"#,
            r#"{"role":"assistant","content":"a"}"#,
            r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"a"}]}"#,
            r#"{"role":"user","content":[{"type":"text","text":"a","citations":[]}]}"#,
            r#"{"role":"user","content":[{"type":"tool_use","input":{"cache_control":1}}]}"#,
            r#"{"role":"user","content":[{"type":"tool_use","input":{}}]}"#,
            r#"{"role":"user","content":"[]"}"#,
        ];
        for (n, one) in cases.iter().enumerate() {
            for other in &cases[..n] {
                assert_ne!(chain(one), chain(other), "{one} {other}");
            }
        }
    }

    #[test]
    fn a_chain_names_all_messages_before_it() {
        let body = br#"{"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}"#;
        let found = Messages::find(body, "messages").expect("a body");
        let chains = found.chains(body, "anthropic");
        assert_ne!(chains[1], chain(r#"{"role":"user","content":"b"}"#));
        assert_eq!(chains[0], chain(r#"{"role":"user","content":"a"}"#));
        assert_ne!(chains, found.chains(body, "openai-chat"));
    }

    #[test]
    fn offsets_skip_what_does_not_count() {
        let body =
            br#"{"messages":[{"role":"user","content":[{"cache_control":{},"text":"abc"}]}]}"#;
        let found = Messages::find(body, "messages").expect("a body");
        let message = &found.all[0];
        let text = body.windows(5).position(|it| it == b"\"abc\"").expect("it is there");
        let (idx, offset, end) = found.place(&(text..text + 5)).expect("it counts");
        assert_eq!(offset, br#"{"role":"user","content":[{"text":"#.len());
        assert_eq!(message.range_of(offset, end), Some(text..text + 5));
        assert_eq!((idx, end), (0, offset + 5));
        assert_eq!(found.place(&(text..body.len())), None);
        assert_eq!(message.offset_of(text - 12), None);
        assert_eq!(message.range_of(offset, offset), None);
    }

    #[test]
    fn the_name_of_a_model_can_be_printed() {
        let long = format!("\"{}\"", "m".repeat(1_000));
        for (json, expect) in [
            (r#""claude-haiku-4-5""#, Some("claude-haiku-4-5")),
            (r#""a\/b \u00e9\"""#, Some("a/b é\"")),
            (r#""a\n\u001b[2J""#, Some("a\u{fffd}\u{fffd}[2J")),
            (long.as_str(), Some(&long[1..101])),
            ("null", None),
            ("5", None),
        ] {
            let body = format!(r#"{{"model":{json},"messages":[{{}}]}}"#);
            let found = Messages::find(body.as_bytes(), "messages").expect("a body");
            assert_eq!(found.model.as_deref(), expect, "{json}");
        }
    }

    #[test]
    fn a_response_is_all_that_the_model_wrote_in_a_row() {
        let of_responses = br#"{"input":[
            {"role":"user","content":"Go."},
            {"type":"reasoning","summary":[],"encrypted_content":"e"},
            {"type":"function_call","call_id":"a","name":"Read","arguments":"{}"},
            {"type":"function_call_output","call_id":"a","output":"1"},
            {"role":"assistant","content":"Done."},
            {"role":"user","content":"And?"}
        ]}"#;
        let of_chat = br#"{"input":[
            {"role":"system","content":"Be brief."},
            {"role":"user","content":"Go."},
            {"role":"assistant","tool_calls":[]},
            {"role":"tool","tool_call_id":"a","content":"1"},
            {"role":"assistant","content":"Done."}
        ]}"#;
        for body in [&of_responses[..], of_chat] {
            let found = Messages::find(body, "input").expect("a body");
            assert_eq!(found.responses(), 2);
        }
    }

    #[test]
    fn bodies_without_a_list_are_left_alone() {
        let cases = [
            "",
            "[]",
            "{",
            r#"{"messages":"a"}"#,
            r#"{"messages":[]}"#,
            r#"{"messages":[{}]} x"#,
            r#"{"messages":[{}],"messages":[{}]}"#,
            r#"{"input":[{}]}"#,
        ];
        for body in cases {
            assert!(Messages::find(body.as_bytes(), "messages").is_none(), "{body}");
        }
    }
}
