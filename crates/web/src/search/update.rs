//! Brings the index to where the sessions are.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use epitome::find::SessionFile;
use epitome::{ErrorKind, Reading, Telling, rules};
use epitome_model::Role;
use epitome_redact::Finder;
use epitome_render::{Detail, Said, Story, said};
use rayon::prelude::*;
use tantivy::collector::{DocSetCollector, TopDocs};
use tantivy::query::TermQuery;
use tantivy::schema::{IndexRecordOption, Value as _};
use tantivy::{DocAddress, IndexWriter, Searcher, TantivyDocument, TantivyError, Term};

use super::found::own_document;
use super::shape::{Known, Place, SESSION, Shape, folder, number};
use super::{Opened, Result, Search, SearchError, TAKEN_OUT, attempt, lock};

/// Bytes that wait in memory for being written.
const MEMORY: usize = 64 << 20;
/// Threads that write.
const WRITERS: usize = 2;
/// Sessions that are read at once, and the size from which on they are read one at a time.
const READERS: usize = 4;
const LARGE: u64 = 32 << 20;
/// Bytes of sessions, and sessions, after which what was done can be found.
const STEP: (u64, usize) = (128 << 20, 2_000);

/// How far an update is, in sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Looked at.
    pub done: usize,
    /// To be looked at.
    pub of: usize,
}

/// What came of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// The index holds what the sessions say.
    Done(Updated),
    /// Another process is at it; what it has not done is not found yet.
    Elsewhere,
}

/// What an update did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Updated {
    /// Sessions that are new or changed.
    pub sessions: usize,
    /// What is said in them that was not in the index.
    pub written: usize,
    /// Sessions that are gone.
    pub gone: usize,
    /// Sessions that cannot be read.
    pub unreadable: usize,
}

impl Search {
    /// Makes the index say what these sessions say, and nothing else: all sessions of a machine are
    /// to be given. What did not change is not read.
    ///
    /// # Errors
    ///
    /// `Damaged`, `Index`, `Rules`, and those of the user's rules. What was written before stays.
    pub fn update(
        &self,
        files: &[SessionFile],
        tell: &(dyn Fn(Progress) + Sync),
    ) -> Result<Update> {
        // An empty one is as good a beginning as any.
        let looked = match self.guarded(|opened| stale(opened, files)) {
            Err(SearchError::Damaged) => self.guarded(|opened| stale(opened, files)),
            looked => looked,
        };
        if looked?.is_empty() {
            return Ok(Update::Done(Updated::default()));
        }
        let rules = rules(&self.config, &[])?.only(&TAKEN_OUT).map_err(SearchError::Rules)?;
        let finder = Finder::new(rules).map_err(SearchError::Rules)?;
        let Some(lock) = lock(&self.folder)? else { return Ok(Update::Elsewhere) };
        let done = attempt(|| self.write(&self.opened(), files, &finder, tell));
        self.of.store(0, Ordering::Relaxed);
        drop(lock);
        if let Err(SearchError::Damaged) = done {
            self.throw_away()?;
        }
        done.map(Update::Done)
    }

    fn write(
        &self,
        opened: &Opened,
        files: &[SessionFile],
        finder: &Finder,
        tell: &(dyn Fn(Progress) + Sync),
    ) -> tantivy::Result<Updated> {
        // Another process may just have done a part of it.
        let Stale { changed, gone } = stale(opened, files)?;
        self.done.store(0, Ordering::Relaxed);
        self.of.store(changed.len(), Ordering::Relaxed);
        let mut writer: IndexWriter = opened.index.writer_with_num_threads(WRITERS, MEMORY)?;
        for gone in &gone {
            writer.delete_term(Term::from_field_u64(opened.shape.session, *gone));
        }
        let work = Work {
            search: self,
            searcher: opened.searcher()?,
            shape: opened.shape,
            finder,
            tell,
            of: changed.len(),
            large: Mutex::new(()),
            written: AtomicUsize::new(0),
            unreadable: AtomicUsize::new(0),
        };
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get().min(READERS));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|err| TantivyError::SystemError(err.to_string()))?;
        for step in steps(&changed) {
            pool.install(|| step.par_iter().try_for_each(|file| work.session(&writer, file)))?;
            writer.commit()?;
        }
        if changed.is_empty() {
            writer.commit()?;
        }
        writer.wait_merging_threads()?;
        Ok(Updated {
            sessions: changed.len(),
            written: work.written.into_inner(),
            gone: gone.len(),
            unreadable: work.unreadable.into_inner(),
        })
    }
}

/// What of an index is not as the sessions are.
struct Stale<'a> {
    changed: Vec<&'a SessionFile>,
    gone: Vec<u64>,
}

impl Stale<'_> {
    fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.gone.is_empty()
    }
}

/// What tells that a session is what it was: its length, and nanoseconds since 1970.
type Stamp = (u64, u64);

fn stamp(file: &SessionFile) -> Stamp {
    let since = file.modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    (file.size.0, u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

fn key(file: &SessionFile) -> u64 {
    number(&[file.path.as_os_str().as_encoded_bytes()])
}

fn stale<'a>(opened: &Opened, files: &'a [SessionFile]) -> tantivy::Result<Stale<'a>> {
    let known = known(opened)?;
    let mut seen = HashSet::with_capacity(files.len());
    let mut changed = Vec::new();
    for file in files {
        let key = key(file);
        seen.insert(key);
        if known.get(&key) != Some(&stamp(file)) {
            changed.push(file);
        }
    }
    // The newest first: that is what people look for.
    changed.sort_by_key(|file| std::cmp::Reverse(file.modified));
    let gone = known.into_keys().filter(|key| !seen.contains(key)).collect();
    Ok(Stale { changed, gone })
}

/// Every session in the index.
fn known(opened: &Opened) -> tantivy::Result<HashMap<u64, Stamp>> {
    let searcher = opened.searcher()?;
    let role = Term::from_field_text(opened.shape.role, SESSION);
    let own = searcher.search(&TermQuery::new(role, IndexRecordOption::Basic), &DocSetCollector)?;
    let mut columns = Vec::new();
    for reader in searcher.segment_readers() {
        let fast = reader.fast_fields();
        columns.push((fast.u64("session")?, fast.u64("size")?, fast.u64("modified")?));
    }
    let known = own.into_iter().filter_map(|DocAddress { segment_ord, doc_id }| {
        let (session, size, modified) = &columns[segment_ord as usize];
        Some((session.first(doc_id)?, (size.first(doc_id)?, modified.first(doc_id)?)))
    });
    Ok(known.collect())
}

/// Parts of the sessions after each of which what was done can be found.
fn steps<'f, 'a>(files: &'f [&'a SessionFile]) -> Vec<&'f [&'a SessionFile]> {
    let mut steps = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (idx, file) in files.iter().enumerate() {
        bytes += file.size.0;
        if bytes >= STEP.0 || idx + 1 - start >= STEP.1 || idx + 1 == files.len() {
            steps.push(&files[start..=idx]);
            (start, bytes) = (idx + 1, 0);
        }
    }
    steps
}

/// An update on its way.
struct Work<'a> {
    search: &'a Search,
    searcher: Searcher,
    shape: Shape,
    finder: &'a Finder,
    tell: &'a (dyn Fn(Progress) + Sync),
    of: usize,
    large: Mutex<()>,
    written: AtomicUsize,
    unreadable: AtomicUsize,
}

impl Work<'_> {
    fn session(&self, writer: &IndexWriter, file: &SessionFile) -> tantivy::Result<()> {
        let alone = (file.size.0 >= LARGE)
            .then(|| self.large.lock().unwrap_or_else(PoisonError::into_inner));
        match self.read(file) {
            Some(read) => self.put(writer, file, &read)?,
            None => drop(self.unreadable.fetch_add(1, Ordering::Relaxed)),
        }
        drop(alone);
        let done = self.search.done.fetch_add(1, Ordering::Relaxed) + 1;
        (self.tell)(Progress { done, of: self.of });
        Ok(())
    }

    /// What a session says; of what is no session nothing, and nothing at all when it could not be
    /// read this time.
    fn read(&self, file: &SessionFile) -> Option<Read> {
        let path = file.path.to_str()?;
        let known = |id: &str, project: Option<&str>, title: String| Known {
            path: path.to_owned(),
            agent: file.agent.to_owned(),
            id: id.to_owned(),
            project: project.map(str::to_owned),
            title,
        };
        let reading = match Reading::open(&file.path, Some(file.agent)) {
            Ok(reading) => reading,
            Err(err) if err.kind() == ErrorKind::UnknownFormat => {
                let known = known(&file.id, None, String::new());
                return Some(Read { known, folders: Vec::new(), said: Vec::new() });
            }
            Err(_) => return None,
        };
        // As it is, and as numbers only: what is shown of it is redacted.
        let cwd = reading.session.loaded.transcript.head.cwd.as_deref().map(Path::new);
        let folders: Vec<u64> = cwd.into_iter().flat_map(Path::ancestors).map(folder).collect();
        let archive = self.search.config.archive();
        let how = Telling {
            detail: Detail::Steps,
            redact: Some(self.finder),
            compact: None,
            archive: &archive,
            prices: None,
        };
        let told = reading.tell(
            &how,
            |_| String::new(),
            |stories| {
                let head = &stories[0].session.transcript.head;
                let id = head.id.as_deref().unwrap_or(&file.id);
                let known = known(id, head.cwd.as_deref(), stories[0].title());
                let said =
                    stories.iter().enumerate().flat_map(|(number, story)| pieces(story, number));
                Read { known, folders: folders.clone(), said: said.collect() }
            },
        );
        match (told, reading.failure()) {
            (Ok((read, _)), None) => Some(read),
            (Ok(_), Some(_)) | (Err(_), _) => None,
        }
    }

    /// Writes what is new of a session, and takes out what is gone.
    fn put(&self, writer: &IndexWriter, file: &SessionFile, read: &Read) -> tantivy::Result<()> {
        let (shape, session) = (&self.shape, key(file));
        let mut old = self.pieces(session)?;
        let mut pieces = Vec::with_capacity(read.said.len() * 16);
        let known = serde_json::to_string(&read.known).unwrap_or_default();
        let of_all =
            [read.known.id.as_bytes(), read.known.project.as_deref().unwrap_or("").as_bytes()];
        for (place, text) in &read.said {
            let about = serde_json::to_string(place).unwrap_or_default();
            let sub_agent = place.sub_agent.map_or(u64::MAX, |number| number as u64).to_le_bytes();
            let piece = number(&[&session.to_le_bytes(), &sub_agent, place.anchor.as_bytes()]);
            let says = number(&[about.as_bytes(), text.as_bytes(), of_all[0], of_all[1]]);
            pieces.extend(piece.to_le_bytes().into_iter().chain(says.to_le_bytes()));
            match old.remove(&piece) {
                Some(said) if said == says => continue,
                Some(_) => drop(writer.delete_term(Term::from_field_u64(shape.piece, piece))),
                None => {}
            }
            let mut document = self.document(session, read);
            document.add_u64(shape.piece, piece);
            document.add_text(shape.role, &place.role);
            document.add_text(shape.about, about);
            document.add_text(shape.text, text);
            writer.add_document(document)?;
            self.written.fetch_add(1, Ordering::Relaxed);
        }
        for gone in old.into_keys() {
            writer.delete_term(Term::from_field_u64(shape.piece, gone));
        }
        let own = number(&[&session.to_le_bytes()]);
        writer.delete_term(Term::from_field_u64(shape.piece, own));
        let mut document = self.document(session, read);
        let (size, modified) = stamp(file);
        document.add_u64(shape.piece, own);
        document.add_u64(shape.size, size);
        document.add_u64(shape.modified, modified);
        document.add_text(shape.role, SESSION);
        document.add_text(shape.about, known);
        document.add_bytes(shape.pieces, &pieces);
        writer.add_document(document)?;
        Ok(())
    }

    fn document(&self, session: u64, read: &Read) -> TantivyDocument {
        let (shape, known) = (&self.shape, &read.known);
        let mut document = TantivyDocument::default();
        document.add_u64(shape.session, session);
        document.add_text(shape.agent, &known.agent);
        document.add_text(shape.id, known.id.to_lowercase());
        if let Some(project) = &known.project {
            document.add_text(shape.project, project);
        }
        for folder in &read.folders {
            document.add_u64(shape.folder, *folder);
        }
        document
    }

    /// The pieces of a session that are in the index, each with what it says.
    fn pieces(&self, session: u64) -> tantivy::Result<HashMap<u64, u64>> {
        let top = TopDocs::with_limit(1).order_by_score();
        let found = self.searcher.search(&own_document(&self.shape, session), &top)?;
        let Some((_, address)) = found.first() else { return Ok(HashMap::new()) };
        let document: TantivyDocument = self.searcher.doc(*address)?;
        let bytes = document.get_first(self.shape.pieces).and_then(|it| it.as_bytes());
        let (pairs, _) = bytes.unwrap_or_default().as_chunks::<16>();
        let pairs = pairs.iter().map(|pair| {
            let pair = u128::from_le_bytes(*pair);
            // The first eight bytes are the piece.
            (pair as u64, (pair >> 64) as u64)
        });
        Ok(pairs.collect())
    }
}

/// What a session says.
struct Read {
    known: Known,
    folders: Vec<u64>,
    said: Vec<(Place, String)>,
}

/// What one story of a session says: the first is the session's own.
fn pieces(story: &Story<'_>, number: usize) -> impl Iterator<Item = (Place, String)> {
    said(story).map(move |said| {
        let Said { anchor, item, turn, role, kind, time, text } = said;
        let role = match role {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
            Role::System => "system",
        };
        let (role, kind) = (role.to_owned(), kind.name().to_owned());
        let sub_agent = number.checked_sub(1);
        (Place { anchor, item, turn, role, kind, time, sub_agent }, text)
    })
}
