//! The price of a compaction: computed before it is made, and afterwards compared with the usage
//! that the session records.

use std::collections::BTreeMap;

use epitome_llm::Catalogue;
use epitome_model::{
    Block, Counter, Entry, MicroDollars, Role, Source, Tokens, Transcript, block_tokens,
};
use epitome_tokens::{Calibration, family};
use jiff::Timestamp;
use serde::Serialize;

use super::change::Change;
use super::losses::Timeline;
use super::open::OpenSession;
use crate::billed::fitted;
use crate::compact::PreparedCompaction;
use crate::drive::catalogue;
use crate::error::Result;
use crate::quote::{CacheState, NextRequest, Quote};

/// The tokens that are assumed for an agent's system prompt and tools, if a session records too few
/// requests to compute them. The value is typical of the sessions that record enough.
pub const PROMPT: Tokens = Tokens(12_000);

/// A compaction by epitome, its price, and the first request after it that is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CompactionPrice {
    /// The number of the generation in the archive.
    pub generation: u64,
    /// The predicted cost of the requests after the compaction; `null` if the model or its price is
    /// unknown, or if the compaction changes no cost.
    pub quote: Option<Quote>,
    /// The first request after the compaction whose usage is recorded; `null` if there was none
    /// before epitome's next compaction.
    pub recorded: Option<RecordedRequest>,
}

/// A request as the session records it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RecordedRequest {
    /// The line of the response in the session, from 1.
    pub line: u64,
    /// All input tokens of the request.
    pub input_tokens: Tokens,
    /// The input tokens that were read from a cache; `null` if that is not recorded.
    pub cached_tokens: Option<Tokens>,
    /// What the input cost at list prices; `null` if the use of the cache is not recorded or the
    /// price is unknown.
    pub cost: Option<MicroDollars>,
}

/// The messages of a context, before or after a compaction.
struct Side<'s> {
    transcript: &'s Transcript,
    source: &'s dyn Source,
    /// The tokens of the context, as the counter counts them.
    tokens: Tokens,
}

/// How tokens of messages are counted, and converted to those of requests.
struct Counting<'c> {
    counter: &'c dyn Counter,
    /// The tokens of blocks in the context before the compaction, by item and block. A block that
    /// is not in the map is counted when its tokens are needed.
    counted: &'c BTreeMap<(usize, usize), Tokens>,
    fit: Option<Calibration>,
}

/// The quote for a planned compaction that is made at `now`. `None` if the compaction does nothing
/// or changes no cost, if the model or its price is unknown, or if the session cannot be read.
pub(super) fn quote_of<S: Source>(
    prices: &Catalogue,
    prepared: &PreparedCompaction<'_, S>,
    fit: Option<Calibration>,
    counter: &dyn Counter,
    now: Timestamp,
) -> Option<Quote> {
    if prepared.is_empty() {
        return None;
    }
    let before = prepared.session;
    let spliced = prepared.spliced().ok()?;
    let tokens = (prepared.plan.tokens_before, prepared.tokens_after);
    let before = Side { transcript: &before.transcript, source: &before.source, tokens: tokens.0 };
    let after = Side { transcript: &prepared.after, source: &spliced, tokens: tokens.1 };
    let counting = Counting { counter, counted: &prepared.plan.counted, fit };
    counting.quote(prices, &before, &after, now)
}

/// The price of each compaction by epitome that is in effect in a session, the oldest first. Empty
/// if there is none, or if the states of the session before and after them cannot be restored
/// exactly.
///
/// ```
/// use epitome::ops::{Compact, OpenSession, compaction_prices};
///
/// # let home = tempfile::tempdir().expect("a folder");
/// # let config = epitome::Config::from_home(home.path());
/// # let path = home.path().join("session.jsonl");
/// # std::fs::write(&path, fixtures::get("pi", "pricing").bytes()).expect("a session");
/// # let run = config.begin_run("example");
/// # let recipe = epitome::built_in("epitome").expect("a recipe");
/// # let counter = epitome_tokens::Estimate::new();
/// assert!(compaction_prices(&OpenSession::new(&config, &path), &counter)?.is_empty());
/// Compact::new(&recipe, &counter, &run).run(&OpenSession::new(&config, &path))?;
/// let prices = compaction_prices(&OpenSession::new(&config, &path), &counter)?;
/// assert_eq!(prices[0].generation, 1);
/// // No request was made since.
/// assert_eq!(prices[0].recorded, None);
/// # Ok::<(), epitome::Error>(())
/// ```
///
/// # Errors
///
/// The errors of opening and reading the session, the archive and the table of models.
pub fn compaction_prices(
    session: &OpenSession<'_>,
    counter: &dyn Counter,
) -> Result<Vec<CompactionPrice>> {
    let loaded = session.load()?;
    let prices = catalogue(session.config)?;
    let timeline = Timeline::from_session(loaded, &session.config.archive(), session.path())?;
    let found: Vec<_> = timeline.found().into_iter().filter(|it| it.own.is_some()).collect();
    let mut all = Vec::new();
    for (n, one) in found.iter().enumerate() {
        let moment = timeline.at(one);
        let (transcript, source) = &moment.before;
        let fit = fitted(transcript, source, counter);
        let counting = Counting { counter, counted: &BTreeMap::new(), fit };
        let tokens = epitome_model::weigh(transcript, source, counter).total();
        let before = Side { transcript, source, tokens };
        let (transcript, source) = &moment.after;
        let tokens = epitome_model::weigh(transcript, source, counter).total();
        let after = Side { transcript, source, tokens };
        let made = one.time.as_deref().and_then(timestamp);
        let quote = made.and_then(|made| counting.quote(&prices, &before, &after, made));
        let end = found.get(n + 1).map_or(u64::MAX, |next| next.ends.0);
        let entries = one.later.iter().filter_map(|&item| timeline.transcript.items[item].entry());
        let mut entries = entries.take_while(|entry| entry.record.span.start < end);
        let recorded = entries.find_map(|entry| RecordedRequest::from_entry(entry, &prices));
        all.push(CompactionPrice { generation: one.generation.unwrap_or(0), quote, recorded });
    }
    Ok(all)
}

impl RecordedRequest {
    fn from_entry(entry: &Entry, prices: &Catalogue) -> Option<RecordedRequest> {
        let usage = entry.usage.filter(|_| !entry.repeated)?;
        let model = entry.model.as_deref();
        let cost = usage.tokens().and_then(|used| {
            prices.cost(model?, &epitome_model::TokenUsage { output: Tokens(0), ..used })
        });
        Some(RecordedRequest {
            line: entry.record.line,
            input_tokens: Tokens(usage.input),
            cached_tokens: usage.cache.map(|it| Tokens(it.read)),
            cost,
        })
    }
}

impl Counting<'_> {
    /// The quote of a compaction that is made at `now` and turns the context `before` into `after`.
    /// `None` if the model or its price is unknown, or if the compaction changes no cost.
    fn quote(
        &self,
        prices: &Catalogue,
        before: &Side<'_>,
        after: &Side<'_>,
        now: Timestamp,
    ) -> Option<Quote> {
        let context: Vec<(usize, &Entry)> = before.transcript.context().collect();
        let newest = context.iter().rev().map(|(_, entry)| entry);
        let mut responses = newest.filter(|entry| entry.role == Role::Assistant);
        let model = responses.clone().find_map(|entry| entry.model.as_deref())?;
        let known = prices.find(model)?;
        let billed = self.fit.unwrap_or_else(|| Calibration {
            fixed: PROMPT,
            ..Calibration::for_family(family(model))
        });
        let sent = self.sent(before);
        let shared = Tokens(self.shared(before, after).0.min(sent.0));
        let request = Change {
            before: NextRequest { input: billed.apply(before.tokens), cached: billed.apply(sent) },
            after: NextRequest { input: billed.apply(after.tokens), cached: billed.apply(shared) },
        };
        let time = responses.find_map(|entry| timestamp(entry.time.as_deref()?));
        let cache = CacheState::after(time.map(|time| now.as_second() - time.as_second()));
        Quote::new(known, self.fit.is_some(), cache, request)
    }

    /// The tokens of the messages in the last request: all messages before the last response.
    fn sent(&self, before: &Side<'_>) -> Tokens {
        let mut context = before.transcript.context().rev().peekable();
        let mut behind = Tokens(0);
        while let Some((item, entry)) = context.next() {
            behind += self.tokens(before, item, entry);
            if entry.role == Role::Assistant {
                // All records of one response belong to one request.
                let goes_on = context
                    .peek()
                    .is_some_and(|(_, next)| entry.group.is_some() && next.group == entry.group);
                if !goes_on {
                    break;
                }
            }
        }
        Tokens(before.tokens.0.saturating_sub(behind.0))
    }

    /// The tokens of the blocks at the beginning of the two contexts that are the same in both.
    fn shared(&self, before: &Side<'_>, after: &Side<'_>) -> Tokens {
        let mut shared = Tokens(0);
        let entries = before.transcript.context().zip(after.transcript.context());
        for ((item, one), (_, other)) in entries {
            for (idx, block) in one.blocks.iter().enumerate() {
                let is_same = one.role == other.role
                    && other
                        .blocks
                        .get(idx)
                        .is_some_and(|it| is_same(block, before.source, it, after.source));
                if !is_same {
                    return shared;
                }
                shared += self.block_tokens(before, (item, idx), block);
            }
            if one.blocks.len() != other.blocks.len() {
                return shared;
            }
        }
        shared
    }

    fn tokens(&self, side: &Side<'_>, item: usize, entry: &Entry) -> Tokens {
        let blocks = entry.blocks.iter().enumerate();
        blocks.map(|(idx, block)| self.block_tokens(side, (item, idx), block)).sum()
    }

    fn block_tokens(&self, side: &Side<'_>, at: (usize, usize), block: &Block) -> Tokens {
        let known = self.counted.get(&at).copied();
        known.unwrap_or_else(|| block_tokens(block, side.source, self.counter))
    }
}

/// Whether two blocks, each from its own source, have the same content for a model. True for any
/// two blocks that epitome does not understand, any two repeated results, and any two blocks of
/// reasoning without a text.
fn is_same(one: &Block, one_source: &dyn Source, other: &Block, other_source: &dyn Source) -> bool {
    match (one, other) {
        (Block::Text(a), Block::Text(b)) | (Block::Summary(a), Block::Summary(b)) => {
            a.read(one_source) == b.read(other_source)
        }
        (Block::Thinking(a), Block::Thinking(b)) => match (&a.text, &b.text) {
            (Some(a), Some(b)) => a.read(one_source) == b.read(other_source),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        },
        (Block::Call(a), Block::Call(b)) => {
            a.id == b.id && one_source.at(a.arguments) == other_source.at(b.arguments)
        }
        (Block::Output(a), Block::Output(b)) => one_source.at(a.whole) == other_source.at(b.whole),
        (Block::Image(a), Block::Image(b)) => one_source.at(a.whole) == other_source.at(b.whole),
        (Block::Opaque(_), Block::Opaque(_)) | (Block::Repeated(_), Block::Repeated(_)) => true,
        _ => false,
    }
}

/// Parses a time, in RFC 3339 or as milliseconds since 1970.
pub(crate) fn timestamp(time: &str) -> Option<Timestamp> {
    match time.parse() {
        Ok(time) => Some(time),
        Err(_) => Timestamp::from_millisecond(time.parse().ok()?).ok(),
    }
}
