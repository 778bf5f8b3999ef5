//! Finds the compactions of a session, and the context before and after each.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

use epitome_formats::Format;
use epitome_model::{Block, Entry, Item, ReadFailure, Ref, Role, Source, Transcript, plural};

use super::CompactedBy;
use crate::archive::{Archive, Generation};
use crate::error::Result;
use crate::restore::{Damage, RestoreOutcome, RestoreTarget, restore_from};
use crate::session::Loaded;
use crate::source::Spliced;
use epitome_store::original::places;

/// A session as it was before all compactions by epitome, with everything appended since, and its
/// states before and after each of them.
pub(in crate::ops) struct Timeline<'a> {
    format: &'static Format,
    /// The uncompacted session.
    whole: Spliced<'a>,
    /// For each compaction by epitome, the session before and after it, with everything appended
    /// since.
    states: Vec<(Spliced<'a>, Spliced<'a>)>,
    generations: Vec<Generation>,
    /// For each compaction by epitome, the length that the uncompacted session had when the
    /// compaction was made.
    places: Vec<u64>,
    /// The transcript of the uncompacted session.
    pub transcript: Transcript,
    /// What could not be determined, as sentences.
    pub notes: Vec<String>,
}

/// A compaction that was found.
#[derive(Debug)]
pub(in crate::ops) struct Found {
    pub by: CompactedBy,
    pub generation: Option<u64>,
    pub recipe: Option<String>,
    pub time: Option<String>,
    pub line: Option<u64>,
    /// Two lengths of the uncompacted session, in bytes: up to the compaction, and up to the end of
    /// the records that an agent's compaction put in place of the history. Both are the same for a
    /// compaction by epitome.
    pub ends: (u64, u64),
    /// For a compaction by the agent: the length in bytes of the uncompacted session before the
    /// first record that belongs to the compaction. `None` if the compaction begins with the record
    /// that replaces the history.
    pub begins: Option<u64>,
    /// The text of the summary, for a compaction by the agent.
    pub summary: Option<String>,
    /// The index in [`Timeline::states`], for a compaction by epitome.
    pub own: Option<usize>,
    /// The indices of the items after the compaction, in [`Timeline::transcript`].
    pub later: Vec<usize>,
    /// The references of the texts that the compaction archived.
    pub removed: Vec<Ref>,
}

impl Default for Found {
    fn default() -> Found {
        Found {
            by: CompactedBy::Agent,
            generation: None,
            recipe: None,
            time: None,
            line: None,
            ends: (0, 0),
            begins: None,
            summary: None,
            own: None,
            later: Vec::new(),
            removed: Vec::new(),
        }
    }
}

/// The contexts before and after one compaction, each with the bytes that it was read from.
pub(in crate::ops) struct Moment<'t> {
    pub before: (Transcript, Prefix<'t>),
    pub after: (Transcript, Prefix<'t>),
}

/// The first `len` bytes of a source.
pub(in crate::ops) struct Prefix<'t> {
    source: &'t dyn Source,
    len: u64,
}

impl Source for Prefix<'_> {
    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, range: Range<u64>) -> Cow<'_, [u8]> {
        self.source.read(range.start.min(self.len)..range.end.min(self.len))
    }

    fn read_failure(&self) -> Option<ReadFailure> {
        self.source.read_failure()
    }
}

impl<'a> Timeline<'a> {
    pub fn from_session<S: Source>(
        session: &'a Loaded<S>,
        archive: &Archive,
        path: &Path,
    ) -> Result<Timeline<'a>> {
        let mut notes = Vec::new();
        let mut generations = epitome_store::state::compactions(session, archive, path)?;
        let mut states = Vec::new();
        match states_of(session, archive, path, &generations) {
            Ok(Some(found)) => states = found,
            Ok(None) => {
                notes.push(not_distinguished(
                    generations.len(),
                    "the file was changed by others since",
                ));
                generations.clear();
            }
            Err(err) => {
                notes.push(not_distinguished(generations.len(), &err.to_string()));
                generations.clear();
            }
        }
        let splices = states.first().map_or(&[][..], |(before, _)| before.splices()).to_vec();
        let whole = Spliced::new(&session.source, splices)?;
        let places = places(&generations);
        let transcript = if generations.is_empty() {
            session.transcript.clone()
        } else {
            (session.format.read)(&whole, &mut ())
        };
        let format = session.format;
        Ok(Timeline { format, whole, states, generations, places, transcript, notes })
    }

    /// The uncompacted session.
    pub fn whole(&self) -> &dyn Source {
        &self.whole
    }

    /// All compactions that were found, in the order in which they were made.
    pub fn found(&self) -> Vec<Found> {
        let mut found: Vec<Found> = self.by_epitome().chain(self.by_agent()).collect();
        found.sort_by_key(|it| it.ends.0);
        found
    }

    /// The compactions by epitome.
    fn by_epitome(&self) -> impl Iterator<Item = Found> {
        self.generations.iter().zip(&self.places).enumerate().map(|(n, (generation, &place))| {
            let splices = generation.records.iter().flat_map(|it| &it.splices);
            Found {
                by: CompactedBy::Epitome,
                generation: Some(generation.number),
                recipe: Some(generation.recipe.clone()),
                time: Some(generation.made.to_string()),
                ends: (place, place),
                own: Some(n),
                later: self.items_from(place),
                removed: splices.filter_map(|it| reference(&it.blob.to_string())).collect(),
                ..Found::default()
            }
        })
    }

    /// The compactions by the agent: records with a summary, or with a copy of the history.
    fn by_agent(&self) -> Vec<Found> {
        let mut found = Vec::new();
        let mut left = self.by_agent_in(&self.transcript);
        let mut known = HashSet::new();
        while let Some(mut one) = left.pop() {
            // Some agents write the whole history again, together with the earlier summary. Then
            // the compaction is the record that first contained the summary.
            if let Some(first) =
                one.summary.as_deref().and_then(|text| self.first_with_summary(text, one.ends.0))
            {
                let (before, moved) = first;
                left.extend(self.by_agent_in(&before));
                one = Found { summary: one.summary, time: None, ..moved };
            }
            if known.insert(one.ends) {
                found.push(one);
            }
        }
        found
    }

    /// Finds the record that first brought this summary into the context, in the first `end` bytes
    /// of the uncompacted session. Returns the transcript of the session before this record, and
    /// the record as a compaction. `None` if there is no such record, or no record before it.
    fn first_with_summary(&self, text: &str, end: u64) -> Option<(Transcript, Found)> {
        if !self.has_summary(text, end) {
            return None;
        }
        let records = self.transcript.items.iter().map(Item::record);
        let mut ends: Vec<(u64, u64)> =
            records.map(|it| (self.line_end(it.span.end), it.line)).collect();
        ends.sort_unstable();
        ends.dedup();
        let at = ends.partition_point(|(end, _)| !self.has_summary(text, *end));
        let before = ends.get(at.checked_sub(1)?)?.0;
        let (last, line) = *ends.get(at)?;
        let line = Some(line);
        let later = self.items_from(last);
        let found = Found { ends: (before, last), line, later, ..Found::default() };
        Some((self.read_to(before), found))
    }

    /// The transcript of the first `end` bytes of the uncompacted session.
    fn read_to(&self, end: u64) -> Transcript {
        (self.format.read)(&Prefix { source: &self.whole, len: end }, &mut ())
    }

    /// Whether the first `end` bytes of the uncompacted session have this summary in their context.
    fn has_summary(&self, text: &str, end: u64) -> bool {
        let session = self.read_to(end);
        let mut blocks = session.context().flat_map(|(_, entry)| &entry.blocks);
        blocks.any(|it| matches!(it, Block::Summary(it) if it.read(&self.whole) == text))
    }

    /// The compactions by the agent whose records are in `session`, which is the transcript of the
    /// uncompacted session or of its beginning.
    fn by_agent_in(&self, session: &Transcript) -> Vec<Found> {
        let items = &session.items;
        let mut found = Vec::new();
        let mut at = 0;
        while at < items.len() {
            let Some(entry) = items[at].entry().filter(|entry| is_compaction(entry)) else {
                at += 1;
                continue;
            };
            let before = items[..at].iter().rev().filter_map(Item::entry);
            let mut before = before.filter(|it| it.record.line < entry.record.line);
            let mut without_own_records = before.clone().filter(|it| {
                let is_of_same = it.group.is_some() && it.group == entry.group;
                it.role != Role::System && !is_of_same
            });
            let begins = without_own_records.next().map(|it| self.line_end(it.record.span.end));
            let before = before.next().map(|it| self.line_end(it.record.span.end));
            let mut last = entry.record.span.end;
            for item in items[at..].iter().take_while(|item| is_of_compaction(item)) {
                at += 1;
                last = last.max(item.record().span.end);
            }
            let last = self.line_end(last);
            if let Some(before) = before {
                found.push(Found {
                    summary: entry.blocks.iter().find_map(|it| match it {
                        Block::Summary(text) => Some(text.read(&self.whole).into_owned()),
                        _ => None,
                    }),
                    time: entry.time.as_deref().map(str::to_owned),
                    line: Some(entry.record.line),
                    ends: (before, last),
                    begins: begins.filter(|end| *end < before),
                    later: self.items_from(last),
                    ..Found::default()
                });
            }
        }
        found
    }

    /// The offset after the line that contains the byte at `end`. Prefixes of a session end at such
    /// an offset, because a line may have several entries, and some agents ignore a line without a
    /// line feed at its end.
    fn line_end(&self, mut end: u64) -> u64 {
        // Nearly all records end where their line does, and this is called for each of them.
        let mut step = 64;
        let whole = self.whole();
        while end < whole.len() {
            let here = whole.read(end..end + step);
            step = (step * 4).min(64 << 10);
            match memchr::memchr(b'\n', &here) {
                Some(at) => return end + at as u64 + 1,
                None if here.is_empty() => break,
                None => end += here.len() as u64,
            }
        }
        end
    }

    /// The indexes of the items at and after an offset.
    fn items_from(&self, place: u64) -> Vec<usize> {
        let items = self.transcript.items.iter().enumerate();
        items.filter(|(_, item)| item.record().span.start >= place).map(|(idx, _)| idx).collect()
    }

    /// The contexts before and after a compaction.
    pub fn at(&self, found: &Found) -> Moment<'_> {
        if let Some(n) = found.own {
            let (before, after) = &self.states[n];
            let generation = &self.generations[n];
            return Moment {
                before: self.prefix(before, generation.before.len),
                after: self.prefix(after, generation.after.len),
            };
        }
        let (before_len, after_len) = found.ends;
        // The contexts are read from the state after the `n` earlier compactions by epitome: what
        // these had removed was not in the context any more.
        let n = self.places.iter().filter(|place| **place <= before_len).count();
        let here = |place: u64| match n.checked_sub(1) {
            None => self.prefix(&self.whole, place),
            Some(last) => {
                let len = self.generations[last].after.len + (place - self.places[last]);
                self.prefix(&self.states[last].1, len)
            }
        };
        let mut before = here(before_len);
        if let Some(begins) = found.begins {
            let without_own_records = here(begins);
            if without_own_records.0.context.len() > before.0.context.len() {
                before = without_own_records;
            }
        }
        Moment { before, after: here(after_len) }
    }

    /// The transcript of the first `len` bytes of a state, and these bytes.
    fn prefix<'t>(&self, source: &'t Spliced<'a>, len: u64) -> (Transcript, Prefix<'t>) {
        let source = Prefix { source, len };
        ((self.format.read)(&source, &mut ()), source)
    }
}

/// The reference to bytes with this hash.
fn reference(hash: &str) -> Option<Ref> {
    format!("k{}", &hash[..Ref::DIGITS]).parse().ok()
}

/// For each compaction, the states before and after it; `None` if they cannot be restored exactly.
fn states_of<'a, S: Source>(
    session: &'a Loaded<S>,
    archive: &Archive,
    path: &Path,
    generations: &[Generation],
) -> Result<Option<Vec<(Spliced<'a>, Spliced<'a>)>>> {
    if generations.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let key = crate::session::key_of(session, path);
    let source = &session.source;
    let known = archive.generations(&key)?;
    let state = |target| {
        let way = restore_from(archive, &key, &known, source, target, Damage::Refuse)?;
        let is_exact = matches!(way.outcome, RestoreOutcome::Exact { .. });
        is_exact.then(|| Spliced::new(source, way.splices)).transpose()
    };
    let mut states = Vec::new();
    let mut last = RestoreTarget::Original;
    for generation in generations {
        let this = RestoreTarget::Generation(generation.number);
        let (Some(before), Some(after)) = (state(last)?, state(this)?) else { return Ok(None) };
        states.push((before, after));
        last = this;
    }
    Ok(Some(states))
}

/// The note that `n` compactions by epitome are not reported, with the reason `why`.
fn not_distinguished(n: usize, why: &str) -> String {
    let what = plural(n as u64, "compaction");
    format!("{what} of epitome cannot be told apart from the rest: {why}")
}

/// Whether an entry belongs to a record that replaces the history.
pub(crate) fn is_compaction(entry: &Entry) -> bool {
    entry.repeated || entry.blocks.iter().any(|it| matches!(it, Block::Summary(_)))
}

/// Whether an item that follows the first record of a compaction by the agent belongs to the
/// compaction, too: it replaces the history, is a system message, or is a record that no model
/// sees.
fn is_of_compaction(item: &Item) -> bool {
    match item {
        Item::Hidden(_) => true,
        Item::Entry(entry) => is_compaction(entry) || entry.role == Role::System,
    }
}
