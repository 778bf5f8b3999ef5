//! A digest in a request: one message is sent in place of many old ones, and consists of lines from
//! them.

use std::sync::Arc;

use epitome::archive::About;
use epitome::wire::{Decision, Patch, RemovedText};
use epitome_api::Api;
use epitome_engine::stored::{RequestDigest, RequestRule};
use epitome_error::{Error, ErrorKind, Result};
use epitome_formats::Loaded;
use epitome_model::{
    At, Block, Counter, Entry, Image, Item, Part, Role, Source, Span, Text, Tokens, Transcript,
    block_tokens, encode,
};
use epitome_passes::{FactIndex, Recipe, Side, View, new_violations};
use epitome_store::archive::Hash;

use crate::block::{describe, span_of};
use crate::body::Messages;
use crate::cuttable::{Cuttable, PlannedCut, RequestCut};
use crate::splice::{spliced, splices, text};

impl Cuttable<'_> {
    /// Plans a cut that sends a digest in place of the old messages, if that is worth its price. No
    /// cut is possible if the recipe makes no digest, if no message can be replaced, or if the
    /// texts that set rules for the agent, which every digest contains, are longer than the target.
    ///
    /// The digest is made from the request as it came, in which no result is shortened and no
    /// message is dropped. The earlier decisions stay for all messages that the digest does not
    /// replace.
    ///
    /// # Errors
    ///
    /// `Invariant` if the API would not accept the changed request; `Refused` if a replaced text is
    /// not valid UTF-8; the errors of reading the request.
    pub(crate) fn digest(&self, recipe: &Recipe, counter: &dyn Counter) -> Result<PlannedCut> {
        let Some(rule) = &recipe.stages.live.digest else { return Ok(PlannedCut::IsNotPossible) };
        let target = recipe.target.live.and_then(|target| target.tokens).unwrap_or(rule.budget);
        let mut original = self.original(counter)?;
        let request_rule = RequestRule {
            rule,
            recipe,
            // The recipe's target is for the messages alone: the system prompt and the tools stay.
            target: Tokens(target) + original.tokens_outside(),
            message_of: &original.message_of,
            root: self.messages.root_length(),
            sent: &original.sent,
        };
        let mut index = FactIndex::default();
        let request = &mut original.request;
        let digest = match RequestDigest::new(request, &request_rule, &mut index, counter) {
            Ok(Some(digest)) if !digest.messages.is_empty() => digest,
            Ok(_) => return Ok(PlannedCut::IsNotPossible),
            // The texts that set rules for the agent are longer than the target by themselves.
            Err(err) if err.kind() == ErrorKind::Refused => return Ok(PlannedCut::IsNotPossible),
            Err(err) => return Err(err),
        };
        let replaced = original.tokens_of(&digest.messages);
        let saved = replaced - digest.tokens();
        let rewritten = digest.tokens() + original.tokens_behind(&digest.messages);
        if !digest.saves_enough(replaced) || !self.is_worth(original.tokens(), saved, rewritten) {
            return Ok(PlannedCut::IsNotWorthIt);
        }
        let (mut removed, list) = original.removed(&digest.messages, counter)?;
        let hint = hint(&list);
        removed.push(list);
        let words = format!("{}\n{hint}", digest.digest.text);
        let saved = saved - counter.count(&hint);
        let decisions = self.decisions_with(&digest.messages, &words, saved);
        self.check(&original.request, &decisions, &digest.messages)?;
        Ok(PlannedCut::Cut(RequestCut { decisions, removed, rewritten }))
    }

    /// The request as it came, with counts of the tokens that are sent for its blocks and items.
    fn original(&self, counter: &dyn Counter) -> Result<Original> {
        let request = Loaded::read(self.body.to_vec(), Some(self.api.format.name))?;
        let items = request.transcript.items.iter();
        let starts = items.map(|item| item.record().span.start as usize);
        let message_of: Vec<_> = starts.map(|start| self.messages.index_at(start)).collect();
        let mut saved: Vec<u64> = self.decisions.iter().map(|decision| decision.saved).collect();
        let mut before = None;
        let mut sent = Vec::new();
        let mut now = Vec::new();
        for (item, message) in request.transcript.items.iter().zip(&message_of) {
            let blocks = item.entry().map_or(&[][..], |entry| &entry.blocks);
            let count = |block| block_tokens(block, &request.source, counter);
            let mut counts: Vec<Tokens> = blocks.iter().map(count).collect();
            let is_first = *message != before;
            before = *message;
            match message.and_then(|message| self.tokens_of_digest(message, counter)) {
                Some(tokens) => now.push(if is_first { tokens } else { Tokens(0) }),
                None => {
                    if let Some(saved) = message.and_then(|message| saved.get_mut(message)) {
                        take_off(saved, &mut counts);
                    }
                    now.push(counts.iter().copied().sum());
                }
            }
            sent.push(counts);
        }
        Ok(Original { request, message_of, sent, now })
    }

    /// The tokens that are sent for a message that an earlier digest replaces: those of the digest
    /// for the first message, and 0 for the others, which are dropped. `None` if no digest replaces
    /// the message.
    fn tokens_of_digest(&self, message: usize, counter: &dyn Counter) -> Option<Tokens> {
        let decision = self.decisions.get(message)?;
        if decision.dropped {
            return Some(Tokens(0));
        }
        let length = self.messages.all[message].length();
        let is_whole = |patch: &&Patch| patch.start == 0 && patch.end == length;
        decision.patches.iter().find(is_whole).map(|patch| counter.count(&patch.with))
    }

    /// The decisions so far, but with `words` sent in place of `messages`. That saves `saved`
    /// tokens in addition to what the decisions so far save.
    fn decisions_with(&self, messages: &[usize], words: &str, saved: Tokens) -> Vec<Decision> {
        let known = self.decisions.iter().map(|decision| Decision::clone(decision));
        let mut decisions: Vec<Decision> = known.collect();
        let (first, others) = messages.split_first().expect("there are messages");
        let end = self.messages.all[*first].length();
        let with = message_of_user(self.api, words);
        let patches = vec![Patch { start: 0, end, with }];
        // A decision states all that it saves, so what the earlier decisions about these messages
        // save is added.
        let before: u64 = messages.iter().map(|&message| self.decisions[message].saved).sum();
        decisions[*first] = Decision { patches, saved: before + saved.0, dropped: false };
        for &message in others {
            decisions[message] = Decision { dropped: true, ..Decision::default() };
        }
        decisions
    }

    /// Checks the request as it is sent with the digest. It is an error if a message that stays has
    /// other bytes or another place, or if the request violates an invariant of the API that the
    /// original does not violate. The request is checked without the effects of earlier decisions:
    /// they were checked when they were made.
    fn check(
        &self,
        request: &Loaded<Vec<u8>>,
        decisions: &[Decision],
        messages: &[usize],
    ) -> Result<()> {
        let violated = |what: String| Err(Error::new(ErrorKind::Invariant, what));
        let digest_alone = decisions.iter().enumerate().map(|(message, decision)| {
            let is_digested = messages.contains(&message);
            Arc::new(if is_digested { decision.clone() } else { Decision::default() })
        });
        let digest_alone: Vec<Arc<Decision>> = digest_alone.collect();
        let sent = spliced(self.body, &splices(self.messages, &digest_alone)?);
        let found = Messages::find(&sent, self.api.list).unwrap_or_default();
        let mut found = found.all.iter().map(|message| &sent[message.span.clone()]);
        for (before, decision) in self.messages.all.iter().zip(&digest_alone) {
            let expect = match decision.patches.first() {
                _ if decision.dropped => continue,
                Some(patch) => patch.with.as_bytes(),
                None => &self.body[before.span.clone()],
            };
            if found.next() != Some(expect) {
                return violated("another message stands in its place".into());
            }
        }
        if found.next().is_some() {
            return violated("a message is sent that was not there".into());
        }
        let Loaded { source, transcript, format, .. } = request;
        let after = (format.read)(&sent, &mut ());
        let before = Side { transcript, source };
        let after = Side { transcript: &after, source: &sent };
        match new_violations(before, after, format.invariants).first() {
            Some(violation) => violated(violation.to_string()),
            None => Ok(()),
        }
    }
}

/// A request as it came.
struct Original {
    request: Loaded<Vec<u8>>,
    /// For each item, the index in the list of the message that holds it; `None` for an item
    /// outside of the list.
    message_of: Vec<Option<usize>>,
    /// The tokens of each block of each item, by which the next digest chooses what it replaces.
    /// For a shortened block this is an estimate of its shortened form; for a block that an earlier
    /// digest replaces, its whole content.
    sent: Vec<Vec<Tokens>>,
    /// The tokens that would be sent for each item without the next digest. For the messages that
    /// an earlier digest replaces, the first item has the tokens of that digest, and the others
    /// have 0.
    now: Vec<Tokens>,
}

impl Original {
    /// The tokens of the whole request as it is sent.
    fn tokens(&self) -> Tokens {
        self.sum(|_| true)
    }

    /// The tokens of the items that are not in the list of messages, such as the system prompt.
    fn tokens_outside(&self) -> Tokens {
        self.sum(|item| self.message_of[item].is_none())
    }

    fn tokens_of(&self, messages: &[usize]) -> Tokens {
        self.sum(|item| self.is_in(item, messages))
    }

    /// The tokens that are sent after the first of `messages`, without the others of `messages`.
    fn tokens_behind(&self, messages: &[usize]) -> Tokens {
        self.sum(|item| self.message_of[item] > Some(messages[0]) && !self.is_in(item, messages))
    }

    fn is_in(&self, item: usize, messages: &[usize]) -> bool {
        self.message_of[item].is_some_and(|message| messages.contains(&message))
    }

    /// The tokens of the items for which `counts` returns true.
    fn sum(&self, counts: impl Fn(usize) -> bool) -> Tokens {
        let items = self.now.iter().enumerate().filter(|(item, _)| counts(*item));
        items.map(|(_, tokens)| *tokens).sum()
    }

    /// The blocks of `messages`, which are no longer sent, and a text that lists them with a
    /// reference for each.
    fn removed(
        &self,
        messages: &[usize],
        counter: &dyn Counter,
    ) -> Result<(Vec<RemovedText>, RemovedText)> {
        let Loaded { source, transcript, .. } = &self.request;
        let view = View::new(transcript, source, counter);
        let mut removed = Vec::new();
        let mut list = String::new();
        let mut calls = 0;
        for (item, entry) in transcript.context() {
            if !self.is_in(item, messages) {
                continue;
            }
            for (idx, block) in entry.blocks.iter().enumerate() {
                let Some(span) = span_of(block) else { continue };
                let what = describe(&view, transcript, At::Block { item, block: idx }, entry.role);
                let number = match block {
                    Block::Call(_) => {
                        calls += 1;
                        format!("#{calls} ")
                    }
                    _ => String::new(),
                };
                let raw = text(source.at(span).into_owned())?;
                let hash = Hash::compute(raw.as_bytes());
                list.push_str(&format!("{} {number}{what}\n", hash.reference()));
                let about = match picture(block) {
                    Some(image) => About {
                        what,
                        texts: ranges_in(span, &[image.data]),
                        media: Some(image.media.to_string()),
                        ..About::default()
                    },
                    None => About { what, texts: texts(block, span), ..About::default() },
                };
                removed.push(RemovedText { hash, raw, about });
            }
        }
        let raw = encode(&list);
        let about = About {
            what: "the messages that a digest stands for".into(),
            texts: vec![(0, raw.len() as u32)],
            ..About::default()
        };
        let list = RemovedText { hash: Hash::compute(raw.as_bytes()), raw, about };
        Ok((removed, list))
    }
}

/// Subtracts the tokens that were saved in a message from the counts of its blocks, from the first
/// block on: how many tokens each block saved is not known.
fn take_off(tokens: &mut u64, counts: &mut [Tokens]) {
    for count in counts {
        let less = (*tokens).min(count.0);
        *tokens -= less;
        count.0 -= less;
    }
}

/// A message of the user with a text, as JSON of an API.
fn message_of_user(api: &Api, words: &str) -> String {
    let blocks = vec![Block::Text(Text::Owned(words.into()))];
    let entry = Entry { role: Role::User, blocks, ..Entry::default() };
    let items = vec![Item::Entry(Box::new(entry))];
    let transcript = Transcript { items, context: vec![0], ..Transcript::default() };
    let made = (api.make)(&transcript, &Vec::new()).body;
    let messages = Messages::find(made.as_bytes(), api.list).unwrap_or_default();
    messages.all.first().map(|message| made[message.span.clone()].to_owned()).unwrap_or_default()
}

/// The line that is added to a digest: it names the command that lists what the digest replaces.
fn hint(list: &RemovedText) -> String {
    let reference = list.hash.reference();
    format!("[`epitome show {reference}` lists all that this digest stands for, with references.]")
}

/// The ranges of a block's texts, relative to the start of `span`: of a text, of a summary, or of
/// the texts in a result. Empty for any other block.
fn texts(block: &Block, span: Span) -> Vec<(u32, u32)> {
    let spans: Vec<Span> = match block {
        Block::Text(text) | Block::Summary(text) => text.span().into_iter().collect(),
        Block::Output(output) => {
            let texts = output.parts.iter().filter_map(|part| match part {
                Part::Text(text) => text.span(),
                Part::Image(_) | Part::Opaque(_) => None,
            });
            texts.collect()
        }
        _ => Vec::new(),
    };
    ranges_in(span, &spans)
}

/// The picture of a block that contains nothing else; `None` for any other block.
fn picture(block: &Block) -> Option<&Image> {
    match block {
        Block::Image(image) => Some(image),
        Block::Output(output) => match &*output.parts {
            [Part::Image(image)] => Some(image),
            _ => None,
        },
        _ => None,
    }
}

/// The ranges of `spans`, relative to the start of `outer`, which contains them.
fn ranges_in(outer: Span, spans: &[Span]) -> Vec<(u32, u32)> {
    let offset = |at: u64| (at - outer.start) as u32;
    spans.iter().map(|span| (offset(span.start), offset(span.end))).collect()
}
