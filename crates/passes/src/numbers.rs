//! Names of calls and responses: `#12` is the twelfth call of a session, `@7` the seventh response
//! of the model.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

use epitome_model::{Block, Entry, Ref, Role, Source, Transcript};

/// The character between the two numbers of a range, as in `#4–6`.
pub(crate) const TO: &str = "–";
/// The character before the number of a response.
const RESPONSE: char = '@';

/// A name by which a part of a session is recalled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// Calls with their results: `#4`, `#4–6`, `4`.
    Calls(RangeInclusive<u64>),
    /// Texts of the model: `@7`, `@7–9`.
    Responses(RangeInclusive<u64>),
    /// A text by its reference: `k7f3a9c2`.
    Text(Ref),
}

impl Name {
    /// Parses a name; `None` if the text is not a name.
    ///
    /// ```
    /// use epitome_passes::Name;
    ///
    /// assert_eq!(Name::parse("#4–6"), Some(Name::Calls(4..=6)));
    /// assert_eq!(Name::parse("@7"), Some(Name::Responses(7..=7)));
    /// assert_eq!(Name::parse("the seventh"), None);
    /// ```
    pub fn parse(name: &str) -> Option<Name> {
        if let Ok(number) = name.parse::<u64>() {
            return Some(Name::Calls(number..=number));
        }
        if let Some(numbers) = name.strip_prefix(RESPONSE) {
            return numbers_of_range(numbers).map(Name::Responses);
        }
        calls_of_name(name).map(Name::Calls).or_else(|| name.parse().ok().map(Name::Text))
    }
}

/// The numbers of the calls that a name in a digest refers to: `#4` or `#4–6`; also `#4-6`, which
/// is easier to type. `None` if the text is not such a name.
///
/// ```
/// use epitome_passes::calls_of_name;
///
/// assert_eq!(calls_of_name("#4–6"), Some(4..=6));
/// assert_eq!(calls_of_name("#4"), Some(4..=4));
/// assert_eq!(calls_of_name("4"), None);
/// ```
pub fn calls_of_name(name: &str) -> Option<RangeInclusive<u64>> {
    numbers_of_range(name.strip_prefix('#')?)
}

/// Parses `4`, `4–6` or `4-6`. `None` for any other text, and for a range that is empty or too
/// long.
fn numbers_of_range(numbers: &str) -> Option<RangeInclusive<u64>> {
    let range = numbers.split_once(TO).or_else(|| numbers.split_once('-'));
    let (first, last) = range.unwrap_or((numbers, numbers));
    let first = first.parse::<u64>().ok()?;
    let last = last.parse::<u64>().ok()?;
    (first <= last && last < first.saturating_add(MOST)).then_some(first..=last)
}

/// Maximum number of calls or responses in a range.
const MOST: u64 = 100_000;

/// The number of each call in the session, from 1, by the id of the call. Digests use these
/// numbers.
pub fn call_numbers(transcript: &Transcript) -> HashMap<&str, u64> {
    let mut numbers = HashMap::new();
    for (_, entry) in transcript.entries() {
        for block in &entry.blocks {
            if let Block::Call(call) = block {
                let next = numbers.len() as u64 + 1;
                numbers.entry(&*call.id).or_insert(next);
            }
        }
    }
    numbers
}

/// The name of a response: `@7`.
pub fn response_name(number: u64) -> String {
    format!("{RESPONSE}{number}")
}

/// The texts of the model in one response.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ResponseText {
    /// The number of the response among those of the session, from 1.
    pub response: u64,
    /// The texts, without calls and reasoning.
    pub text: String,
}

/// The number of the response that each item belongs to, from 1. Entries of the model with the same
/// group are one response, and an entry without a group is a response of its own. An item with
/// neither a text nor a call, for example only reasoning, has no number, because a pass may remove
/// the item.
pub fn response_numbers(transcript: &Transcript) -> HashMap<usize, u64> {
    let mut numbers = HashMap::new();
    let mut of_group: HashMap<&str, u64> = HashMap::new();
    let mut last = 0;
    for (item, entry) in transcript.entries().filter(|(_, entry)| is_response(entry)) {
        let known = entry.group.as_deref().and_then(|group| of_group.get(group));
        let number = known.copied().unwrap_or(last + 1);
        last = last.max(number);
        if let Some(group) = entry.group.as_deref() {
            of_group.insert(group, number);
        }
        numbers.insert(item, number);
    }
    numbers
}

fn is_response(entry: &Entry) -> bool {
    entry.role == Role::Assistant
        && entry.blocks.iter().any(|block| matches!(block, Block::Text(_) | Block::Call(_)))
}

/// The texts of the model in the responses whose numbers are `wanted`, in order. Responses without
/// text are left out.
pub fn texts_of_responses(
    transcript: &Transcript,
    source: &dyn Source,
    wanted: impl Fn(u64) -> bool,
) -> Vec<ResponseText> {
    let numbers = response_numbers(transcript);
    let mut texts: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    // Repeated entries are left out: they are copies that an earlier compaction left.
    for (item, entry) in transcript.entries().filter(|(_, entry)| !entry.repeated) {
        let Some(number) = numbers.get(&item).filter(|number| wanted(**number)) else { continue };
        for block in &entry.blocks {
            if let Block::Text(text) = block {
                texts.entry(*number).or_default().push(text.read(source).into_owned());
            }
        }
    }
    let response_texts = texts.into_iter().map(|(response, texts)| {
        let text = texts.join("\n\n");
        ResponseText { response, text }
    });
    response_texts.filter(|response_texts| !response_texts.text.trim().is_empty()).collect()
}

/// The texts of the model in the responses that made these calls, in order.
pub fn texts_at_calls(
    transcript: &Transcript,
    source: &dyn Source,
    calls: &RangeInclusive<u64>,
) -> Vec<ResponseText> {
    let responses = response_numbers(transcript);
    let numbers = call_numbers(transcript);
    let mut wanted = Vec::new();
    for (item, entry) in transcript.entries().filter(|(_, entry)| !entry.repeated) {
        let makes_one = entry.blocks.iter().any(|block| match block {
            Block::Call(call) => numbers.get(&*call.id).is_some_and(|it| calls.contains(it)),
            _ => false,
        });
        wanted.extend(responses.get(&item).filter(|_| makes_one));
    }
    texts_of_responses(transcript, source, |number| wanted.contains(&number))
}

/// The first result of each of these calls, by the number of the call.
pub fn results_of_calls(
    transcript: &Transcript,
    source: &dyn Source,
    calls: &RangeInclusive<u64>,
) -> BTreeMap<u64, String> {
    let numbers = call_numbers(transcript);
    let blocks = transcript.entries().flat_map(|(_, entry)| &entry.blocks);
    let mut found = BTreeMap::new();
    for block in blocks {
        if let Block::Output(output) = block
            && let Some(&number) = numbers.get(&*output.call)
            && calls.contains(&number)
        {
            found.entry(number).or_insert_with(|| output.text(source));
        }
    }
    found
}

/// Joins texts, each preceded by its name. A single text is returned without its name. `None` if
/// there are no texts.
pub fn named_texts(texts: Vec<(String, String)>) -> Option<String> {
    if texts.len() == 1 {
        return texts.into_iter().next().map(|(_, text)| text);
    }
    let named: Vec<String> =
        texts.into_iter().map(|(name, text)| format!("{name}:\n{text}")).collect();
    (!named.is_empty()).then(|| named.join("\n\n"))
}

#[cfg(test)]
mod tests {
    use epitome_model::ToolKind;
    use samples::Sample;

    use super::*;

    #[test]
    fn a_name_is_a_number_of_calls_or_of_responses_or_a_reference() {
        for (name, expect) in [
            ("4", Some(Name::Calls(4..=4))),
            ("#4", Some(Name::Calls(4..=4))),
            ("#4-6", Some(Name::Calls(4..=6))),
            ("@7", Some(Name::Responses(7..=7))),
            ("@7–9", Some(Name::Responses(7..=9))),
            ("@9-7", None),
            ("@", None),
            ("#", None),
            ("k495d399", Some(Name::Text("k495d399".parse().expect("a reference")))),
            ("what", None),
        ] {
            assert_eq!(Name::parse(name), expect, "{name}");
        }
    }

    #[test]
    fn what_was_said_has_the_number_of_its_response_and_of_the_calls_in_it() {
        let sample = Sample::new()
            .user("Go.")
            .thinking("Hm.")
            .reply("I look.")
            .with(|entry| entry.group = Some("one".into()))
            .call(ToolKind::Read, "a.rs")
            .with(|entry| entry.group = Some("one".into()))
            .output("fn a() {}")
            .call(ToolKind::Read, "b.rs")
            .output("fn b() {}")
            .reply("Die Sperre wird zweimal genommen.");
        let (transcript, source) = (sample.transcript(), sample.source());
        let response_text = |response, text: &str| ResponseText { response, text: text.to_owned() };
        let last = response_text(3, "Die Sperre wird zweimal genommen.");
        let all = texts_of_responses(transcript, source, |_| true);
        assert_eq!(all, [response_text(1, "I look."), last.clone()]);
        assert_eq!(texts_of_responses(transcript, source, |number| number == 3), [last]);
        assert_eq!(texts_at_calls(transcript, source, &(1..=2)), [response_text(1, "I look.")]);
        assert_eq!(texts_at_calls(transcript, source, &(2..=2)), []);
        let results = results_of_calls(transcript, source, &(2..=9));
        assert_eq!(results, BTreeMap::from([(2, "fn b() {}".to_owned())]));
    }

    #[test]
    fn a_single_text_is_returned_without_its_name() {
        let text = |name: &str| (format!("@{name}"), format!("text {name}"));
        assert_eq!(named_texts(vec![]), None);
        assert_eq!(named_texts(vec![text("1")]).as_deref(), Some("text 1"));
        let both = "@1:\ntext 1\n\n@2:\ntext 2";
        assert_eq!(named_texts(vec![text("1"), text("2")]).as_deref(), Some(both));
    }

    /// Some agents store the reasoning and the text of a response in one record.
    #[test]
    fn a_text_after_reasoning_is_a_response() {
        let with_text = |entry: &mut Entry| {
            entry.blocks.push(Block::Text(epitome_model::Text::Owned("I look.".into())));
        };
        let sample = Sample::new().user("Go.").thinking("Hm.").with(with_text).user("And?");
        let sample = sample.thinking("Hm.").user("Well?").reply("Done.");
        assert_eq!(response_numbers(sample.transcript()), HashMap::from([(1, 1), (5, 2)]));
    }
}
