//! The history of a session: what its agent wrote, whatever compactions have taken out of it since.
//!
//! Everything that shows, searches, counts or redacts a session reads it here: the stored bytes
//! with what the archive holds of them put back, in memory. Nothing is written. Where a resume is
//! meant (plans, compactions, what is left of a window), the stored session itself is read.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::path::Path;

use epitome_model::{Block, Output, Part, ReadFailure, Source, Span, Text, Transcript, plural};
use epitome_redact::Redactor;
use epitome_store::archive::Archive;
use epitome_store::original::{Original, original, stubs_left};
use epitome_store::state::Packs;
use jiff::Timestamp;
use serde::Serialize;

use crate::archive::{Generation, SessionKey};
use crate::config::Config;
use crate::error::{Error, Result, causes};
use crate::ops::archived::key_in_archive;
use crate::place::Place;
use crate::redact::{Redacted, Screen, SessionScreen, redacted};
use crate::session::Loaded;
use crate::source::{FileSource, Spliced};

/// Which state of a session is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// As it was before epitome compacted it, with what the agent appended since.
    #[default]
    AsItWas,
    /// As it is stored, with its stubs: what a resume sends.
    AsSent,
}

/// The bytes of a session that is read.
pub enum ShownSource {
    /// A file, or rows.
    File(FileSource),
    /// Bytes that came from elsewhere.
    Memory(Vec<u8>),
    /// Either of them, with what was removed put back.
    Whole(Spliced<'static>),
}

impl ShownSource {
    fn inner(&self) -> &dyn Source {
        match self {
            ShownSource::File(file) => file,
            ShownSource::Memory(bytes) => bytes,
            ShownSource::Whole(spliced) => spliced,
        }
    }

    /// The first failure to read, if there was one.
    pub fn failure(&self) -> Option<Error> {
        crate::source::failure_of(self)
    }
}

impl Source for ShownSource {
    fn len(&self) -> u64 {
        self.inner().len()
    }

    fn read(&self, range: Range<u64>) -> Cow<'_, [u8]> {
        self.inner().read(range)
    }

    fn read_failure(&self) -> Option<ReadFailure> {
        self.inner().read_failure()
    }
}

/// A compaction that is in a session as it is now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PastCompaction {
    /// Its number in the archive.
    pub generation: u64,
    /// The recipe.
    pub recipe: String,
    /// When it was made.
    pub made: Timestamp,
    /// The item of the session as it was before which it was made: the number of items, if nothing
    /// was written since.
    #[serde(skip)]
    pub item: usize,
    /// Whether its bytes came from another machine: anyone may have made them.
    #[serde(skip)]
    pub is_imported: bool,
}

/// A session, opened to be read.
pub struct History {
    /// The session.
    pub session: Loaded<ShownSource>,
    /// The state that it is in.
    pub version: Version,
    /// The compactions that are in it as it is stored, oldest first.
    pub compactions: Vec<PastCompaction>,
    /// What could not be put back, as sentences.
    pub missing: Vec<String>,
    /// The blocks of which the text is not sent any more: item and number. Empty for one that is
    /// shown as it is sent.
    pub unsent: BTreeSet<(usize, usize)>,
    /// What was removed and is not in `session`: what is secret in it is secret.
    removed: Vec<ShownSource>,
}

impl History {
    /// Opens and reads the session at an address.
    ///
    /// # Errors
    ///
    /// As [`load`](crate::storage::load). That the archive is missing or damaged is none.
    pub fn open(
        config: &Config,
        path: &Path,
        agent: Option<&str>,
        version: Version,
    ) -> Result<History> {
        History::at(config, &Place::parse(path), path, agent, version)
    }

    /// Opens and reads the session at a place that is known already; `path` is its address.
    ///
    /// # Errors
    ///
    /// As [`History::open`].
    pub fn at(
        config: &Config,
        place: &Place,
        path: &Path,
        agent: Option<&str>,
        version: Version,
    ) -> Result<History> {
        let Loaded { format, source, transcript, faults } =
            crate::session::load_at(place, path, agent)?;
        let source = ShownSource::File(source);
        let session = Loaded { format, source, transcript, faults };
        let key = key_in_archive(config, &session, path);
        History::put_back(config, session, key, version).map_err(|err| err.about(path))
    }

    /// Reads a session that is no file here.
    ///
    /// # Errors
    ///
    /// As [`Loaded::read`].
    pub fn of_bytes(
        config: &Config,
        bytes: Vec<u8>,
        agent: Option<&str>,
        version: Version,
    ) -> Result<History> {
        let session = Loaded::read(ShownSource::Memory(bytes), agent)?;
        let key = Ok(crate::session::key_of(&session, Path::new("-")));
        History::put_back(config, session, key, version)
    }

    fn put_back(
        config: &Config,
        stored: Loaded<ShownSource>,
        key: Result<SessionKey>,
        version: Version,
    ) -> Result<History> {
        let archive = config.archive();
        let found = key.and_then(|key| original(&archive, &key, &stored.source));
        if let Some(failure) = stored.source.failure() {
            return Err(failure);
        }
        let mut missing = Vec::new();
        let Original { splices, compactions, places, missing: gap, unplaced } =
            found.unwrap_or_else(|err| Original { missing: Some(err), ..Original::default() });
        let gap = gap.map(|err| format!("not all of it could be put back: {}", sentence(&err)));
        let mut removed: Vec<ShownSource> = unplaced.into_iter().map(ShownSource::Memory).collect();
        let mut compactions: Vec<PastCompaction> =
            compactions.iter().map(PastCompaction::made_by).collect();
        missing.extend(gap);
        let is_as_it_was = splices.is_empty();
        if is_as_it_was || version == Version::AsSent {
            let whole = Spliced::new(&stored.source, splices)?;
            // A copy in memory: the session itself is read on.
            let copy = || ShownSource::Memory(whole.read(0..Source::len(&whole)).into_owned());
            removed.extend((!is_as_it_was).then(copy));
            drop(whole);
            let mut gone = Vec::new();
            removed.extend(elsewhere(&archive, &stored, &mut gone));
            missing.extend(gone.into_iter().filter(|_| is_as_it_was));
            let items = stored.transcript.items.len();
            compactions.iter_mut().for_each(|it| it.item = items);
            let unsent = BTreeSet::new();
            return Ok(History { session: stored, version, compactions, missing, unsent, removed });
        }
        let sent = sent_records(&stored.transcript);
        let Loaded { format, source, .. } = stored;
        let whole = Spliced::owned(source, splices)?;
        let mut faults = Vec::new();
        let mut transcript = (format.read)(&whole, &mut faults);
        if let Some(failure) = crate::source::failure_of(&whole) {
            return Err(failure);
        }
        continued(&mut transcript, &whole, format, &places);
        for (compaction, place) in compactions.iter_mut().zip(&places) {
            let before = |item: &epitome_model::Item| item.record().span.start < *place;
            compaction.item = transcript.items.iter().take_while(|it| before(it)).count();
        }
        let unsent = unsent(&transcript, &whole, &sent);
        let source = ShownSource::Whole(whole);
        let session = Loaded { format, source, transcript, faults };
        removed.extend(elsewhere(&archive, &session, &mut missing));
        Ok(History { session, version, compactions, missing, unsent, removed })
    }

    /// Whether a compaction of epitome is in the session as it is stored.
    pub fn is_compacted(&self) -> bool {
        !self.compactions.is_empty()
    }

    /// The first failure to read, if there was one: what was made of the session is not to be
    /// trusted then.
    pub fn failure(&self) -> Option<Error> {
        self.session.source.failure()
    }

    /// Lets a redactor know all secrets of the session, those of what was removed as well, so that
    /// they are found in other texts.
    pub fn learn(&self, redactor: &mut Redactor<'_>) {
        self.teach(redactor);
        redactor.learn(&self.session.source);
    }

    /// Lets a redactor know the secrets of what is not in the session as it is read: what was
    /// hidden before a compaction stays hidden after it.
    pub fn teach(&self, redactor: &mut Redactor<'_>) {
        self.removed.iter().for_each(|source| redactor.learn(source));
    }

    /// What shows texts of the session: what compactions removed from it is known as well.
    pub fn screen<'s>(&self, screen: &'s Screen) -> SessionScreen<'s> {
        screen.of_learnt(|redactor| self.learn(redactor))
    }

    /// The session with placeholders in the place of what a redactor finds, or would have found
    /// before the session was compacted.
    ///
    /// # Errors
    ///
    /// As [`redacted`].
    pub fn redacted(&self, redactor: &mut Redactor<'_>) -> Result<Redacted<'_>> {
        self.teach(redactor);
        redacted(&self.session, redactor)
    }
}

impl PastCompaction {
    fn made_by(generation: &Generation) -> PastCompaction {
        PastCompaction {
            generation: generation.number,
            recipe: generation.recipe.clone(),
            made: generation.made,
            item: 0,
            is_imported: generation.imported.is_some(),
        }
    }
}

/// Tells what the archive holds of a session from what it holds later. Nothing is opened.
pub fn archive_stamp(config: &Config, agent: &str, id: &str) -> u64 {
    Packs::list(&config.archive(), &SessionKey::new(agent, id)).stamp()
}

/// An error and its causes in one sentence.
fn sentence(err: &Error) -> String {
    let mut text = err.to_string();
    for cause in causes(err).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// What the archive holds, as removed from other sessions, of stubs that are still in this one: a
/// fork has those of the session that it comes from. What it does not hold is said.
fn elsewhere(
    archive: &Archive,
    session: &Loaded<ShownSource>,
    missing: &mut Vec<String>,
) -> Vec<ShownSource> {
    let (mut texts, mut gone) = (Vec::new(), 0_u64);
    let (mut kept, mut first) = (0_u64, None);
    for name in stubs_left(&session.transcript, &session.source) {
        let found = archive.find(&name).unwrap_or_default();
        let mut bytes =
            found.iter().filter_map(|it| archive.read(&it.key, it.generation, &it.hash).ok());
        match bytes.next() {
            Some(bytes) => {
                texts.push(ShownSource::Memory(bytes));
                kept += 1;
                first.get_or_insert(name);
            }
            None => gone += 1,
        }
    }
    if gone > 0 {
        missing.push(format!("{} stay: their texts are not in the archive", plural(gone, "stub")));
    }
    if let Some(first) = first {
        missing.push(format!(
            "{} stay: their texts are in the archive of another session: `epitome show {first}` \
             prints the first",
            plural(kept, "stub")
        ));
    }
    texts
}

/// Where the records begin that a resume sends.
fn sent_records(stored: &Transcript) -> HashSet<u64> {
    stored.context().map(|(_, entry)| entry.record.span.start).collect()
}

/// Where a compaction had appended a record, what the agent wrote next continues that record, which
/// is not in the session as it was: it continues what precedes it there.
fn continued(
    transcript: &mut Transcript,
    whole: &Spliced<'_>,
    format: &epitome_formats::Format,
    places: &[u64],
) {
    for place in places.iter().rev().copied() {
        let start = |item: &usize| transcript.items[*item].record().span.start;
        let is_cut = transcript.context.iter().all(|item| start(item) >= place);
        let has_earlier = transcript
            .items
            .iter()
            .any(|it| it.entry().is_some() && it.record().span.start < place);
        if !is_cut || !has_earlier || transcript.context.is_empty() {
            continue;
        }
        let before = whole.read(0..place).into_owned();
        let mut context = (format.read)(&before, &mut ()).context;
        context.retain(|item| !transcript.context.contains(item));
        context.append(&mut transcript.context);
        transcript.context = context;
    }
}

/// The blocks of a session as it was of which the text is not sent any more: it was removed, or a
/// resume does not send its record, though one would have.
fn unsent(
    transcript: &Transcript,
    whole: &Spliced<'_>,
    sent: &HashSet<u64>,
) -> BTreeSet<(usize, usize)> {
    let splices = whole.splices().iter().zip(whole.starts());
    let put_back: Vec<Range<u64>> =
        splices.map(|(it, &start)| start..start + it.with.len() as u64).collect();
    let is_in = |span: Span| {
        let next = put_back.partition_point(|it| it.end <= span.start);
        put_back.get(next).is_some_and(|it| it.start < span.end)
    };
    let mut unsent = BTreeSet::new();
    for (item, entry) in transcript.entries() {
        if is_in(entry.record.span) {
            let blocks = entry.blocks.iter().enumerate();
            let gone = blocks.filter(|(_, block)| spans(block).into_iter().any(&is_in));
            unsent.extend(gone.map(|(block, _)| (item, block)));
        }
    }
    for (item, entry) in transcript.context() {
        let Span { start, .. } = entry.record.span;
        let stored = whole.in_base(Span { start, end: start + 1 }).map(|span| span.start);
        if stored.is_none_or(|start| !sent.contains(&start)) {
            unsent.extend((0..entry.blocks.len()).map(|block| (item, block)));
        }
    }
    unsent
}

/// Where the texts of a block are.
fn spans(block: &Block) -> Vec<Span> {
    let output = |output: &Output| {
        let parts = output.parts.iter().filter_map(|part| match part {
            Part::Text(text) => text.span(),
            Part::Image(image) => Some(image.whole),
            Part::Opaque(span) => Some(*span),
        });
        std::iter::once(output.whole).chain(parts).collect()
    };
    let text = |text: &Text| text.span().into_iter().collect();
    match block {
        Block::Text(it) | Block::Summary(it) => text(it),
        Block::Thinking(it) => vec![it.whole],
        Block::Call(it) => vec![it.arguments],
        Block::Output(it) => output(it),
        Block::Repeated(it) => output(&it.output),
        Block::Image(it) => vec![it.whole],
        Block::Opaque(span) => vec![*span],
        _ => Vec::new(),
    }
}
