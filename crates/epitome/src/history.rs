//! The history of a session: everything that its agent wrote, including what compactions removed.
//!
//! Code that shows, searches or redacts the content of a session reads it through this module: the
//! archived bytes are put back into the stored bytes in memory, and nothing is written. Code that
//! needs what a resume sends (plans, compactions, how full a window is) reads the stored session.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::path::Path;

use epitome_model::{Block, Output, Part, ReadFailure, Role, Source, Span, Transcript};
use epitome_redact::Redactor;
use epitome_store::archive::Archive;
use epitome_store::original::{Original, original, stubs_left};
use epitome_store::state::PackFingerprint;
use jiff::Timestamp;
use serde::Serialize;

use crate::archive::{Generation, Hash, SessionKey};
use crate::config::Config;
use crate::error::{Error, Result, causes};
use crate::ops::archived::key_in_archive;
use crate::place::Place;
use crate::redact::{RedactedSession, Screen, SessionScreen, redact_session};
use crate::session::Loaded;
use crate::source::{FileSource, Spliced};

/// The state in which a session is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// As it was before epitome compacted it, with everything that the agent appended since.
    #[default]
    AsItWas,
    /// As it is stored now, with stubs in place of removed texts.
    AsSent,
}

/// The bytes of a session that was opened for reading.
pub enum ShownSource {
    /// What is stored, for example a file or rows of a database.
    File(FileSource),
    /// Bytes that are not a file, such as standard input.
    Memory(Vec<u8>),
    /// A file or bytes, with the removed bytes put back.
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

    /// The error of the first read that failed, if one did.
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

/// A compaction that is in effect in the stored session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PastCompaction {
    /// The number of the generation in the archive.
    pub generation: u64,
    /// The name of the recipe that the compaction was made with.
    pub recipe: String,
    /// When the compaction was made.
    pub made: Timestamp,
    /// The number of items of [`History::session`] that precede the compaction. If the session was
    /// read as it is sent, or nothing could be put back: the number of all items.
    #[serde(skip)]
    pub item: usize,
    /// Whether the archived bytes were imported from another machine: such bytes are not to be
    /// trusted.
    #[serde(skip)]
    pub is_imported: bool,
}

/// A session that was opened and read, in one of two states.
///
/// ```
/// use epitome::history::{History, Version};
/// use epitome::ops::{Compact, OpenSession};
///
/// # let home = tempfile::tempdir().expect("a folder");
/// # let config = epitome::Config::from_home(home.path());
/// # let path = home.path().join("session.jsonl");
/// # std::fs::write(&path, fixtures::get("pi", "pricing").bytes()).expect("a session");
/// # let run = config.begin_run("example");
/// # let recipe = epitome::built_in("epitome").expect("a recipe");
/// # let counter = epitome_tokens::Estimate::new();
/// Compact::new(&recipe, &counter, &run).run(&OpenSession::new(&config, &path))?;
/// let sent = History::open(&config, &path, None, Version::AsSent)?;
/// assert!(sent.is_compacted() && sent.unsent.is_empty());
/// let whole = History::open(&config, &path, None, Version::AsItWas)?;
/// assert!(whole.missing.is_empty() && !whole.unsent.is_empty());
/// # Ok::<(), epitome::Error>(())
/// ```
pub struct History {
    /// The session in the state `version`.
    pub session: Loaded<ShownSource>,
    /// The state in which the session was read.
    pub version: Version,
    /// The compactions that are in effect in the stored session, oldest first.
    pub compactions: Vec<PastCompaction>,
    /// What could not be put back from the archive, each as a sentence.
    pub missing: Vec<String>,
    /// The blocks whose text, or a part of it, a resume does not send any more, by item and block
    /// index. Empty for a session that was read as it is sent.
    pub unsent: BTreeSet<(usize, usize)>,
    /// Removed bytes that are not in `session`. A secret that occurs in them is hidden in all texts
    /// of `session`, too.
    removed: Vec<ShownSource>,
}

impl History {
    /// Opens and reads the session at an address.
    ///
    /// # Errors
    ///
    /// The errors of [`load`](crate::storage::load). A missing or damaged archive is not an error:
    /// [`missing`](History::missing) names what could not be put back.
    pub fn open(
        config: &Config,
        path: &Path,
        agent: Option<&str>,
        version: Version,
    ) -> Result<History> {
        History::open_place(config, &Place::parse(path), path, agent, version)
    }

    /// Opens and reads a session at a place that was found already. `path` is its address.
    ///
    /// # Errors
    ///
    /// The errors of [`History::open`].
    pub fn open_place(
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
        History::put_back(config, session, key, version).map_err(|err| err.with_default_path(path))
    }

    /// Reads a session from bytes that are not a file on this machine.
    ///
    /// # Errors
    ///
    /// The errors of [`Loaded::read`].
    pub fn from_bytes(
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
            // `stored.source` is moved into the result, so the uncompacted session is copied to
            // memory.
            if !is_as_it_was {
                let copy = whole.read(0..Source::len(&whole)).into_owned();
                removed.push(ShownSource::Memory(copy));
            }
            drop(whole);
            let mut gone = Vec::new();
            removed.extend(elsewhere(&archive, &stored, &mut gone));
            missing.extend(gone.into_iter().filter(|_| is_as_it_was));
            let items = stored.transcript.items.len();
            compactions.iter_mut().for_each(|it| it.item = items);
            let unsent = BTreeSet::new();
            return Ok(History { session: stored, version, compactions, missing, unsent, removed });
        }
        let sent = Sent::in_context(&stored.transcript, &stored.source);
        let Loaded { format, source, .. } = stored;
        let whole = Spliced::with_owned_base(source, splices)?;
        let mut faults = Vec::new();
        let mut transcript = (format.read)(&whole, &mut faults);
        if let Some(failure) = crate::source::failure_of(&whole) {
            return Err(failure);
        }
        continued(&mut transcript, &whole, format, &places);
        for (compaction, place) in compactions.iter_mut().zip(&places) {
            let before =
                transcript.items.iter().take_while(|item| item.record().span.start < *place);
            compaction.item = before.count();
        }
        let unsent = unsent(&transcript, &whole, &sent);
        let source = ShownSource::Whole(whole);
        let session = Loaded { format, source, transcript, faults };
        removed.extend(elsewhere(&archive, &session, &mut missing));
        Ok(History { session, version, compactions, missing, unsent, removed })
    }

    /// Whether a compaction by epitome is in effect in the stored session.
    pub fn is_compacted(&self) -> bool {
        !self.compactions.is_empty()
    }

    /// The error of the first read that failed, if one did: results computed from this session may
    /// be wrong then.
    pub fn failure(&self) -> Option<Error> {
        self.session.source.failure()
    }

    /// Teaches a redactor all secrets in the session, including those in removed bytes, so that it
    /// finds them in other texts.
    pub fn learn(&self, redactor: &mut Redactor<'_>) {
        self.teach(redactor);
        redactor.learn(&self.session.source);
    }

    /// Teaches a redactor the secrets in removed bytes. It then finds them in the session even if
    /// the text that showed them to be secrets was removed.
    pub fn teach(&self, redactor: &mut Redactor<'_>) {
        self.removed.iter().for_each(|source| redactor.learn(source));
    }

    /// A screen that hides secrets in texts of the session, also those that are known only from
    /// removed bytes.
    pub fn screen<'s>(&self, screen: &'s Screen) -> SessionScreen<'s> {
        screen.of_learnt(|redactor| self.learn(redactor))
    }

    /// The session with a placeholder for each secret that the redactor finds, or would have found
    /// before the session was compacted.
    ///
    /// # Errors
    ///
    /// The errors of [`redact_session`].
    pub fn redact(&self, redactor: &mut Redactor<'_>) -> Result<RedactedSession<'_>> {
        self.teach(redactor);
        redact_session(&self.session, redactor)
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

/// A number that is computed from the numbers, lengths and times of a session's packs in the
/// archive, so that it changes when they change. No file is opened to compute it.
pub fn archive_stamp(config: &Config, agent: &str, id: &str) -> u64 {
    PackFingerprint::list(&config.archive(), &SessionKey::new(agent, id)).stamp()
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

/// Finds the archived bytes for those stubs of this session that were not replaced by their text.
/// Such a stub was usually written in another session: a fork has the stubs of the session from
/// which it was made. Adds up to two sentences to `missing`: one about the stubs whose bytes the
/// archive has, and one about the stubs whose bytes it does not have.
fn elsewhere(
    archive: &Archive,
    session: &Loaded<ShownSource>,
    missing: &mut Vec<String>,
) -> Vec<ShownSource> {
    if session.format.keeps_originals() {
        return Vec::new();
    }
    let mut texts = Vec::new();
    let mut gone = 0_u64;
    let mut kept = 0_u64;
    let mut first = None;
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
        missing.push(match gone {
            1 => "1 stub stays: its text is not in the archive".to_owned(),
            _ => format!("{gone} stubs stay: their texts are not in the archive"),
        });
    }
    if let Some(first) = first {
        missing.push(match kept {
            1 => format!(
                "1 stub stays: its text is in the archive of another session: `epitome show \
                 {first}` prints it"
            ),
            _ => format!(
                "{kept} stubs stay: their texts are in the archive of another session: `epitome \
                 show {first}` prints the first"
            ),
        });
    }
    texts
}

/// What a resume of the stored session sends.
struct Sent {
    /// The offsets of the records.
    records: HashSet<u64>,
    /// The blocks of copies of earlier entries: a compaction may have appended them to the session.
    copies: HashSet<Hash>,
}

impl Sent {
    fn in_context(stored: &Transcript, source: &dyn Source) -> Sent {
        let records = stored.context().map(|(_, entry)| entry.record.span.start).collect();
        let copies = stored.context().filter(|(_, entry)| entry.repeated);
        let blocks = copies.flat_map(|(_, entry)| {
            entry.blocks.iter().map(move |block| block_hash(entry.role, block, source))
        });
        Sent { records, copies: blocks.collect() }
    }
}

/// A hash of a block as it is stored, by which a copy of it is found.
fn block_hash(role: Role, block: &Block, source: &dyn Source) -> Hash {
    let kind = match block {
        Block::Call(call) => format!("call {} {}", call.id, call.name),
        Block::Output(output) => format!("output {}", output.call),
        Block::Repeated(repeated) => format!("output {}", repeated.output.call),
        Block::Thinking(_) => "thinking".to_owned(),
        _ => format!("{role:?}"),
    };
    let mut bytes = kind.into_bytes();
    for span in spans(block) {
        bytes.push(0);
        bytes.extend_from_slice(&source.at(span));
    }
    Hash::compute(&bytes)
}

/// Completes the context of the uncompacted session. In the stored session, the parent of the
/// agent's next record after a compaction is the record that the compaction appended. The
/// uncompacted session does not contain this record, so its context would begin only after the
/// compaction. This function puts the context from before the compaction in front.
fn continued(
    transcript: &mut Transcript,
    whole: &Spliced<'_>,
    format: &epitome_formats::Format,
    places: &[u64],
) {
    for place in places.iter().rev().copied() {
        let is_cut = transcript
            .context
            .iter()
            .all(|item| transcript.items[*item].record().span.start >= place);
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

/// The blocks of the uncompacted session whose text, or a part of it, a resume does not send any
/// more: a compaction removed it, or took its whole record out of the context.
fn unsent(transcript: &Transcript, whole: &Spliced<'_>, sent: &Sent) -> BTreeSet<(usize, usize)> {
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
        let stored = whole.span_in_base(Span { start, end: start + 1 }).map(|span| span.start);
        if stored.is_none_or(|start| !sent.records.contains(&start)) {
            let blocks = entry.blocks.iter().enumerate();
            let gone = blocks
                .filter(|(_, block)| !sent.copies.contains(&block_hash(entry.role, block, whole)));
            unsent.extend(gone.map(|(block, _)| (item, block)));
        }
    }
    unsent
}

fn spans(block: &Block) -> Vec<Span> {
    match block {
        Block::Text(it) | Block::Summary(it) => it.span().into_iter().collect(),
        Block::Thinking(it) => vec![it.whole],
        Block::Call(it) => vec![it.arguments],
        Block::Output(it) => output_spans(it),
        Block::Repeated(it) => output_spans(&it.output),
        Block::Image(it) => vec![it.whole],
        Block::Opaque(span) => vec![*span],
        _ => Vec::new(),
    }
}

fn output_spans(output: &Output) -> Vec<Span> {
    let parts = output.parts.iter().filter_map(|part| match part {
        Part::Text(text) => text.span(),
        Part::Image(image) => Some(image.whole),
        Part::Opaque(span) => Some(*span),
    });
    std::iter::once(output.whole).chain(parts).collect()
}
