//! Recalls content from the log, whether it is still sent or not.

use std::collections::{BTreeMap, HashSet};
use std::ops::RangeInclusive;

use epitome_model::{Block, Entry, Image, Output, Part, Ref, Source, Transcript, decode};
use epitome_passes::{
    Name, ResponseText, call_numbers, is_digest, named_calls, named_texts, response_name,
    response_numbers, results_of_calls, texts_at_calls, texts_of_responses,
};
use serde::Serialize;

use super::Context;

/// The name of the recall tool. [`Context::search`] does not search its calls and their results.
pub const RECALL: &str = "recall";

/// The content that a name refers to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecallResult {
    /// The text that the name refers to: results of calls, texts of the model, or the content that
    /// a reference identifies. Empty if none of the calls has a result.
    pub text: String,
    /// If the name identifies calls: the texts of the model in the responses that made them.
    /// Otherwise empty.
    #[serde(rename = "said", skip_serializing_if = "Vec::is_empty")]
    pub response_texts: Vec<ResponseText>,
}

/// A line in which a search found the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hit {
    /// The name by which the whole text is recalled: `#12`, `@7`, `k7f3a9c2`. Empty if the text has
    /// no name.
    #[serde(rename = "ref")]
    pub name: String,
    /// The number of the line in that text, from 1.
    pub line: u64,
    /// The whole line.
    pub text: String,
}

impl Context {
    /// The content of the log that a reference identifies: a text, an image as a `data:` URL, or
    /// the messages that a middle cut removed, as JSON. `None` if the log has no content with this
    /// reference.
    ///
    /// ```
    /// use epitome_model::{Ref, Tokens};
    /// # use epitome_engine::{Context, MessagePart, Setup};
    /// # use epitome_passes::built_in;
    /// # let recipe = built_in("clear-tool-uses").expect("a recipe");
    /// # let setup = Setup::new(recipe).with_counter(epitome_tokens::Estimate::new());
    /// # let mut context = Context::in_memory(setup);
    /// # context.user("Read them.")?;
    /// # for n in 0..5 {
    /// #     context.assistant(&[MessagePart::call(n.to_string(), "Read", r#"{"path":"a.rs"}"#)])?;
    /// #     context.tool(&[MessagePart::output(n.to_string(), "fn main() {}\n".repeat(90))])?;
    /// # }
    /// context.compact_to(None, Some(Tokens(0)))?;
    /// let (call, reference) = context.references().remove(0);
    /// assert_eq!(call, "0");
    /// assert_eq!(context.recall(&reference), Some("fn main() {}\n".repeat(90)));
    /// assert_eq!(context.recall(&Ref::from_bytes(b"unknown")), None);
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    pub fn recall(&self, reference: &Ref) -> Option<String> {
        if let Some(messages) = self.recall_cut(reference) {
            return Some(messages);
        }
        let source = self.log.bytes();
        let matches = |span| {
            let raw = Source::at(source, span);
            Ref::from_bytes(&raw).digits().starts_with(reference.digits())
                || reference.digits().starts_with(Ref::from_bytes(&raw).digits())
        };
        let blocks = self.transcript().entries().flat_map(|(_, entry)| &entry.blocks);
        blocks.into_iter().find_map(|block| match block {
            Block::Output(output) if matches(output.whole) => Some(output.text(source)),
            Block::Output(output) => output.parts.iter().find_map(|part| match part {
                Part::Image(image) if matches(image.whole) => Some(url(image, source)),
                Part::Image(_) | Part::Text(_) | Part::Opaque(_) => None,
            }),
            Block::Image(image) if matches(image.whole) => Some(url(image, source)),
            Block::Text(text) if text.span().is_some_and(matches) => {
                Some(text.read(source).into_owned())
            }
            Block::Call(call) => {
                let mut fields = call.fields.iter();
                let field = fields.find(|field| field.text.span().is_some_and(matches))?;
                Some(field.text.read(source).into_owned())
            }
            _ => None,
        })
    }

    /// For each result that is sent in an edited form, such as a stub: the id of its call, and the
    /// reference with which [`recall`](Context::recall) returns the whole result. The text that is
    /// sent need not contain the reference.
    ///
    /// ```
    /// # use epitome_model::Tokens;
    /// # use epitome_engine::{Context, MessagePart, Setup};
    /// # use epitome_passes::built_in;
    /// # let recipe = built_in("clear-tool-uses").expect("a recipe");
    /// # let setup = Setup::new(recipe).with_counter(epitome_tokens::Estimate::new());
    /// # let mut context = Context::in_memory(setup);
    /// # context.user("Read them.")?;
    /// # for n in 0..5 {
    /// #     context.assistant(&[MessagePart::call(n.to_string(), "Read", r#"{"path":"a.rs"}"#)])?;
    /// #     context.tool(&[MessagePart::output(n.to_string(), "fn main() {}\n".repeat(90))])?;
    /// # }
    /// assert!(context.references().is_empty());
    /// context.compact_to(None, Some(Tokens(0)))?;
    /// // The recipe keeps the last three of five results.
    /// assert_eq!(context.references().len(), 2);
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    pub fn references(&self) -> Vec<(&str, Ref)> {
        let log = self.log.parsed();
        let source = self.log.bytes();
        let sent = self.transcript().context().map(|(item, _)| item);
        let pairs = sent.filter(|&item| log.original_of(item) != item).flat_map(|item| {
            let whole = outputs_of(self.transcript(), log.original_of(item));
            whole.map(move |whole| {
                let mut now = outputs_of(self.transcript(), item);
                (whole, now.find(|now| now.call == whole.call))
            })
        });
        pairs
            .filter(|(whole, now)| now.is_some_and(|it| it.text(source) != whole.text(source)))
            .map(|(whole, _)| (&*whole.call, Ref::from_bytes(&Source::at(source, whole.whole))))
            .collect()
    }

    /// The content that a name refers to: results of calls with the texts of the responses that
    /// made the calls, texts of responses, or the content that a reference identifies. `None` if
    /// there is no such content.
    ///
    /// ```
    /// use epitome_engine::{Context, MessagePart, Setup};
    /// use epitome_passes::{Name, built_in};
    ///
    /// let mut context = Context::in_memory(Setup::new(built_in("s06").expect("a recipe")));
    /// context.user("Why is it slow?")?;
    /// context.assistant(&[MessagePart::text("The lock is taken twice.")])?;
    /// let name = Name::parse("@1").expect("the name of a response");
    /// let recalled = context.recall_name(&name).expect("it was said");
    /// assert_eq!(recalled.text, "The lock is taken twice.");
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    pub fn recall_name(&self, name: &Name) -> Option<RecallResult> {
        let transcript = self.transcript();
        let source = self.log.bytes();
        match name {
            Name::Text(reference) => {
                self.recall(reference).map(|text| RecallResult { text, response_texts: Vec::new() })
            }
            Name::Calls(calls) => {
                let response_texts = texts_at_calls(transcript, source, calls);
                let results = self.recall_calls(calls.clone());
                let is_any = results.is_some() || !response_texts.is_empty();
                is_any.then(|| RecallResult { text: results.unwrap_or_default(), response_texts })
            }
            Name::Responses(wanted) => {
                let texts_found = texts_of_responses(transcript, source, |it| wanted.contains(&it));
                let named = texts_found.into_iter().map(|it| (response_name(it.response), it.text));
                let text = named_texts(named.collect())?;
                Some(RecallResult { text, response_texts: Vec::new() })
            }
        }
    }

    /// The whole results of calls, by the numbers that a digest gives to calls, from 1. If `calls`
    /// is more than one number, each result is preceded by the number of its call. `None` if none
    /// of the calls has a result.
    ///
    /// ```
    /// # use epitome_engine::{Context, MessagePart, Setup};
    /// # use epitome_passes::built_in;
    /// # let recipe = built_in("clear-tool-uses").expect("a recipe");
    /// # let setup = Setup::new(recipe).with_counter(epitome_tokens::Estimate::new());
    /// # let mut context = Context::in_memory(setup);
    /// # context.user("Read them.")?;
    /// # for n in 0..5 {
    /// #     context.assistant(&[MessagePart::call(n.to_string(), "Read", r#"{"path":"a.rs"}"#)])?;
    /// #     context.tool(&[MessagePart::output(n.to_string(), "fn main() {}\n".repeat(90))])?;
    /// # }
    /// assert_eq!(context.recall_calls(2..=2), Some("fn main() {}\n".repeat(90)));
    /// let both = context.recall_calls(4..=9).expect("two of these exist");
    /// assert!(both.starts_with("#4:\nfn main()") && both.contains("\n\n#5:\n"));
    /// assert_eq!(context.recall_calls(6..=9), None);
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    pub fn recall_calls(&self, calls: RangeInclusive<u64>) -> Option<String> {
        let found = results_of_calls(self.transcript(), self.log.bytes(), &calls);
        if calls.start() == calls.end() {
            return found.into_values().next();
        }
        let lines: Vec<String> =
            found.into_iter().map(|(number, text)| format!("#{number}:\n{text}")).collect();
        (!lines.is_empty()).then(|| lines.join("\n\n"))
    }

    /// Searches the messages, the bulky arguments of calls and the results in the log for a text,
    /// including those that are not sent any more. Reasoning, summaries, calls of the recall tool
    /// and their results are not searched. Case is ignored. Returns at most `most` lines in order,
    /// each with the name by which the whole text is recalled. A line that occurs several times is
    /// returned once, for its first occurrence.
    ///
    /// ```
    /// # use epitome_engine::{Context, MessagePart, Setup};
    /// # use epitome_passes::built_in;
    /// # let recipe = built_in("clear-tool-uses").expect("a recipe");
    /// # let setup = Setup::new(recipe).with_counter(epitome_tokens::Estimate::new());
    /// # let mut context = Context::in_memory(setup);
    /// # context.user("Read them.")?;
    /// # for n in 0..5 {
    /// #     context.assistant(&[MessagePart::call(n.to_string(), "Read", r#"{"path":"a.rs"}"#)])?;
    /// #     context.tool(&[MessagePart::output(n.to_string(), "fn main() {}\n".repeat(90))])?;
    /// # }
    /// let hits = context.search("FN MAIN", 10);
    /// assert_eq!((hits.len(), &*hits[0].name, hits[0].line), (1, "#1", 1));
    /// assert!(context.search("parser", 10).is_empty());
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    pub fn search(&self, text: &str, most: usize) -> Vec<Hit> {
        let transcript = self.transcript();
        let source = self.log.bytes();
        let calls = call_numbers(transcript);
        let responses = response_numbers(transcript);
        let wanted = text.to_lowercase();
        let mut hits = Vec::new();
        let mut known = HashSet::new();
        let mut recalls = HashSet::new();
        let mut look = |name: &dyn Fn() -> String, text: &str| {
            for (at, line) in text.lines().enumerate() {
                if hits.len() < most
                    && line.to_lowercase().contains(&wanted)
                    && known.insert(line.trim().to_owned())
                {
                    hits.push(Hit { name: name(), line: at as u64 + 1, text: line.to_owned() });
                }
            }
        };
        let reference = |span| Ref::from_bytes(&Source::at(source, span)).to_string();
        for (item, entry) in transcript.entries().filter(|(_, entry)| !entry.repeated) {
            for block in &entry.blocks {
                match block {
                    Block::Text(text) => {
                        let response = responses.get(&item).copied();
                        let name = || match (response, text.span()) {
                            (Some(number), _) => response_name(number),
                            (None, Some(span)) => reference(span),
                            (None, None) => String::new(),
                        };
                        look(&name, &text.read(source));
                    }
                    Block::Call(call) if &*call.name == RECALL => {
                        recalls.insert(&*call.id);
                    }
                    Block::Call(call) => {
                        for field in &call.fields {
                            let span = field.text.span();
                            let name = || span.map(reference).unwrap_or_default();
                            look(&name, &field.text.read(source));
                        }
                    }
                    Block::Output(output) if !recalls.contains(&*output.call) => {
                        let number = calls.get(&*output.call).copied();
                        let name = || match number {
                            Some(number) => format!("#{number}"),
                            None => reference(output.whole),
                        };
                        look(&name, &output.text(source));
                    }
                    _ => {}
                }
            }
        }
        hits
    }

    /// The texts of the model that are not sent any more, or not whole, in order.
    /// [`recall_name`](Context::recall_name) returns such a text by the number of its response.
    ///
    /// ```
    /// # use epitome_engine::{Context, MessagePart, Setup};
    /// # use epitome_passes::built_in;
    /// # let recipe = built_in("epitome").expect("a recipe");
    /// # let setup = Setup::new(recipe).with_counter(epitome_tokens::Estimate::new());
    /// # let mut context = Context::in_memory(setup);
    /// context.user("What is in a.rs?")?;
    /// context.assistant(&[MessagePart::text("The function main.")])?;
    /// assert!(context.unsent_texts().is_empty(), "all of it is sent");
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    pub fn unsent_texts(&self) -> Vec<ResponseText> {
        let source = self.log.bytes();
        let mut sent: HashSet<String> = HashSet::new();
        for block in self.transcript().context().flat_map(|(_, entry)| &entry.blocks) {
            if let Block::Text(text) | Block::Summary(text) = block {
                sent.extend(text.read(source).lines().map(|line| line.trim().to_owned()));
            }
        }
        let mut texts = texts_of_responses(self.transcript(), source, |_| true);
        texts.retain(|said| {
            let mut lines = said.text.lines().map(str::trim);
            !lines.all(|line| line.is_empty() || sent.contains(line))
        });
        texts
    }

    /// The calls that the digest in the context names, as pairs of the call's id and its name in
    /// the digest: `#4`, or `#4–6` if the digest names several calls together. Empty without a
    /// digest. [`recall_calls`](Context::recall_calls) returns the results.
    ///
    /// ```
    /// # use epitome_engine::{Context, Setup};
    /// # use epitome_passes::built_in;
    /// # let recipe = built_in("epitome").expect("a recipe");
    /// # let setup = Setup::new(recipe).with_counter(epitome_tokens::Estimate::new());
    /// # let mut context = Context::in_memory(setup);
    /// assert!(context.digested_calls().is_empty());
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    pub fn digested_calls(&self) -> Vec<(&str, String)> {
        let named = self.known.digest.iter().flatten();
        let calls =
            named.filter_map(|(number, name)| Some((self.known.calls.id(*number)?, name.clone())));
        calls.collect()
    }
}

/// The calls that a digest names, by number, each with its name in the digest. `None` if `entry` is
/// not a digest.
pub(super) fn named_in_digest(entry: &Entry, source: &dyn Source) -> Option<BTreeMap<u64, String>> {
    entry.blocks.iter().find_map(|block| match block {
        Block::Summary(text) if is_digest(block, source) => Some(named_calls(&text.read(source))),
        _ => None,
    })
}

fn outputs_of(transcript: &Transcript, item: usize) -> impl Iterator<Item = &Output> {
    let blocks = transcript.items[item].entry().map_or(&[][..], |entry| &entry.blocks);
    blocks.iter().filter_map(|block| match block {
        Block::Output(output) => Some(output),
        _ => None,
    })
}

fn url(image: &Image, source: &dyn Source) -> String {
    format!("data:{};base64,{}", image.media, decode(&source.at(image.data)))
}
