//! Recalls removed content from the log.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use epitome_model::{Block, Image, Part, Ref, Source, decode};
use epitome_passes::{
    Name, SaidText, call_numbers, is_digest, named_calls, named_texts, response_name,
    response_numbers, results_of_calls, texts_at_calls, texts_of_responses,
};
use serde::Serialize;

use super::Context;

/// The name of the recall tool. Its own results are not searched.
pub const RECALL: &str = "recall";

/// The content that a name refers to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Recalled {
    /// The results of calls, texts of the model, or a removed text. Empty if no call has a result.
    pub text: String,
    /// For calls: the texts of the model in the responses that made them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<SaidText>,
}

/// A line in which a text was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hit {
    /// The name by which the whole text is recalled: `#12`, `@7`, `k7f3a9c2`.
    #[serde(rename = "ref")]
    pub name: String,
    /// The number of the line in that text, from 1.
    pub line: u64,
    /// The line.
    pub text: String,
}

impl Context {
    /// The removed content of a reference: the text, or an image as a `data:` URL.
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

    /// For each result that is not sent whole: the id of its call, and the reference with which
    /// [`recall`](Context::recall) returns the whole, whether the sent text names it or not.
    pub fn references(&self) -> Vec<(&str, Ref)> {
        let (log, source) = (self.log.log(), self.log.bytes());
        let outputs = |item: usize| {
            let entry = self.transcript().items[item].entry();
            entry.into_iter().flat_map(|entry| &entry.blocks).filter_map(|block| match block {
                Block::Output(output) => Some(output),
                _ => None,
            })
        };
        let sent = self.transcript().context().map(|(item, _)| item);
        let pairs = sent.filter(|&item| log.as_said(item) != item).flat_map(|item| {
            let whole = outputs(log.as_said(item));
            whole.map(move |whole| (whole, outputs(item).find(|now| now.call == whole.call)))
        });
        pairs
            .filter(|(whole, now)| now.is_some_and(|it| it.text(source) != whole.text(source)))
            .map(|(whole, _)| (&*whole.call, Ref::from_bytes(&Source::at(source, whole.whole))))
            .collect()
    }

    /// The content that a name refers to: results of calls with the model's texts next to them,
    /// texts of the model, or what was removed under a reference. `None` if the name is unknown.
    ///
    /// ```
    /// use epitome_engine::{Context, Said, Setup};
    /// use epitome_passes::{Name, built_in};
    ///
    /// let mut context = Context::in_memory(Setup::new(built_in("s06").expect("a recipe")));
    /// context.user("Why is it slow?")?;
    /// context.assistant(&[Said::text("The lock is taken twice.")])?;
    /// let name = Name::parse("@1").expect("the name of a response");
    /// let recalled = context.recall_name(&name).expect("it was said");
    /// assert_eq!(recalled.text, "The lock is taken twice.");
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    pub fn recall_name(&self, name: &Name) -> Option<Recalled> {
        let (transcript, source) = (self.transcript(), self.log.bytes());
        match name {
            Name::Text(reference) => {
                self.recall(reference).map(|text| Recalled { text, said: Vec::new() })
            }
            Name::Calls(calls) => {
                let said = texts_at_calls(transcript, source, calls);
                let results = self.recall_calls(calls.clone());
                let is_any = results.is_some() || !said.is_empty();
                is_any.then(|| Recalled { text: results.unwrap_or_default(), said })
            }
            Name::Responses(wanted) => {
                let said = texts_of_responses(transcript, source, |it| wanted.contains(&it));
                let named = |it: SaidText| (response_name(it.response), it.text);
                let text = named_texts(said.into_iter().map(named).collect())?;
                Some(Recalled { text, said: Vec::new() })
            }
        }
    }

    /// The whole results of calls, by the numbers that a digest gives the calls, from 1. For
    /// several calls each result has its number before it. `None` if no such call has a result.
    pub fn recall_calls(&self, calls: RangeInclusive<u64>) -> Option<String> {
        let found = results_of_calls(self.transcript(), self.log.bytes(), &calls);
        if calls.start() == calls.end() {
            return found.into_values().next();
        }
        let told: Vec<String> =
            found.into_iter().map(|(number, text)| format!("#{number}:\n{text}")).collect();
        (!told.is_empty()).then(|| told.join("\n\n"))
    }

    /// Searches all lines of the log for a text, whether they are sent or not. Returns at most
    /// `most` lines in order, each with the name by which the whole text is recalled. Case is
    /// ignored. A repeated line is found once, at its first occurrence; results of the recall tool
    /// are skipped.
    pub fn search(&self, text: &str, most: usize) -> Vec<Hit> {
        let (transcript, source) = (self.transcript(), self.log.bytes());
        let (calls, responses) = (call_numbers(transcript), response_numbers(transcript));
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

    /// The model's texts that are not sent any more, or not whole, in order.
    /// [`recall_name`](Context::recall_name) returns such a text.
    pub fn unsent_texts(&self) -> Vec<SaidText> {
        let source = self.log.bytes();
        let mut sent: HashSet<String> = HashSet::new();
        for block in self.transcript().context().flat_map(|(_, entry)| &entry.blocks) {
            if let Block::Text(text) | Block::Summary(text) = block {
                sent.extend(text.read(source).lines().map(|line| line.trim().to_owned()));
            }
        }
        let is_sent = |line: &str| line.trim().is_empty() || sent.contains(line.trim());
        let mut texts = texts_of_responses(self.transcript(), source, |_| true);
        texts.retain(|said| !said.text.lines().all(is_sent));
        texts
    }

    /// The calls that a digest replaces, each with its name in the digest: `#4`, or `#4–6` if the
    /// digest names several calls together. [`recall_calls`](Context::recall_calls) returns their
    /// results.
    pub fn digested_calls(&self) -> Vec<(&str, String)> {
        let source = self.log.bytes();
        let blocks = self.transcript().context().flat_map(|(_, entry)| &entry.blocks);
        let digest = blocks.into_iter().find_map(|block| match block {
            Block::Summary(text) if is_digest(block, source) => Some(text.read(source)),
            _ => None,
        });
        let Some(named) = digest.map(|digest| named_calls(&digest)) else { return Vec::new() };
        let named = named.into_iter();
        named.filter_map(|(number, name)| Some((self.known.calls.id(number)?, name))).collect()
    }
}

fn url(image: &Image, source: &dyn Source) -> String {
    format!("data:{};base64,{}", image.media, decode(&source.at(image.data)))
}
