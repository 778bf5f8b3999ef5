//! What was removed, from the log.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

use epitome_model::{Block, Image, Part, Ref, Source, decode};

use epitome_passes::{call_numbers, is_digest, named_calls};

use super::Context;

impl Context {
    /// What was removed under a reference, from the log: the words, or a picture as a `data:` URL.
    pub fn recall(&self, reference: &Ref) -> Option<String> {
        if let Some(messages) = self.recall_cut(reference) {
            return Some(messages);
        }
        let source = self.log.bytes();
        let matches = |span| {
            let raw = Source::at(source, span);
            Ref::of(&raw).digits().starts_with(reference.digits())
                || reference.digits().starts_with(Ref::of(&raw).digits())
        };
        let blocks = self.transcript().entries().flat_map(|(_, entry)| &entry.blocks);
        blocks.into_iter().find_map(|block| match block {
            Block::Output(output) if matches(output.whole) => Some(output.text(source)),
            Block::Output(output) => output.parts.iter().find_map(|part| match part {
                Part::Image(image) if matches(image.whole) => Some(url(image, source)),
                Part::Image(_) | Part::Text(_) | Part::Opaque(_) => None,
            }),
            Block::Image(image) if matches(image.whole) => Some(url(image, source)),
            Block::Call(call) => {
                let mut fields = call.fields.iter();
                let field = fields.find(|field| field.text.span().is_some_and(matches))?;
                Some(field.text.read(source).into_owned())
            }
            _ => None,
        })
    }

    /// Of each result that is sent, and not as it was said: its call, and the reference under which
    /// [`recall`](Context::recall) gives the whole, whether what is sent names it or not.
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
            .map(|(whole, _)| (&*whole.call, Ref::of(&Source::at(source, whole.whole))))
            .collect()
    }

    /// The results of calls of the session as they were said, by the numbers that a digest gives
    /// them, from 1. Of several calls each result has its number before it. None: no such call has
    /// a result.
    pub fn recall_calls(&self, calls: RangeInclusive<u64>) -> Option<String> {
        let numbers = call_numbers(self.transcript());
        let wanted: HashMap<&str, u64> =
            numbers.into_iter().filter(|(_, number)| calls.contains(number)).collect();
        let blocks = self.transcript().entries().flat_map(|(_, entry)| &entry.blocks);
        let mut found: BTreeMap<u64, String> = BTreeMap::new();
        for block in blocks {
            if let Block::Output(output) = block
                && let Some(&number) = wanted.get(&*output.call)
            {
                found.entry(number).or_insert_with(|| output.text(self.log.bytes()));
            }
        }
        if calls.start() == calls.end() {
            return found.into_values().next();
        }
        let told: Vec<String> =
            found.into_iter().map(|(number, text)| format!("#{number}:\n{text}")).collect();
        (!told.is_empty()).then(|| told.join("\n\n"))
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
        let mut calls: Vec<(&str, u64)> = call_numbers(self.transcript()).into_iter().collect();
        calls.sort_by_key(|(_, number)| *number);
        let name = |(call, number)| Some((call, named.get(&number)?.clone()));
        calls.into_iter().filter_map(name).collect()
    }
}

fn url(image: &Image, source: &dyn Source) -> String {
    format!("data:{};base64,{}", image.media, decode(&source.at(image.data)))
}
