//! Restores a session together with the files that belong to it.

use std::path::{Path, PathBuf};

use epitome_model::{Bytes, Ref, Source, Splice, Tokens};

use super::archived::{Known, key_in_archive};
use super::open::{OpenSession, SessionPart, is_no_file, is_no_part};
use super::replace::{FileReplacement, LockedFile, check_replaceable, check_writable, replace_all};
use super::restored::{FileRestore, RestoreReport};
use crate::archive::{About, Digest, Draft, Generation, PartGeneration, SessionKey, UndoData};
use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::place::Place;
use crate::redact::has_forgotten_texts;
use crate::restore::{
    Damage, Restoration, RestoreOutcome, RestoreTarget, check_original, check_stubs, restore_block,
    restore_from,
};
use crate::session::Loaded;
use crate::source::{FileSource, Spliced, if_read};
use crate::state;
use crate::store::write_new;

/// The hint if a part of a session cannot be restored.
const NOT_WHOLE: &str = "nothing was changed; `epitome restore SESSION --partial` restores what \
                         can be, `epitome archive verify` lists what is damaged";

/// What is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What<'a> {
    /// The whole session, to this target.
    Session(RestoreTarget),
    /// One removed text, by its reference.
    Block(&'a Ref),
    /// Everything that a run removed, if nothing has compacted the session since.
    Run {
        /// The id of the run.
        id: &'a str,
        /// The files of the session that the run compacted.
        files: &'a [PathBuf],
    },
}

/// How sessions are restored. The default restores what the agent wrote.
///
/// ```
/// use epitome::ops::{Compact, OpenSession, Restore};
///
/// # let home = tempfile::tempdir().expect("a folder");
/// # let config = epitome::Config::from_home(home.path());
/// # let path = home.path().join("session.jsonl");
/// # std::fs::write(&path, fixtures::get("pi", "pricing").bytes()).expect("a session");
/// # let run = config.begin_run("example");
/// # let recipe = epitome::built_in("epitome").expect("a recipe");
/// # let counter = epitome_tokens::Estimate::new();
/// let original = std::fs::read(&path).expect("a session");
/// Compact::new(&recipe, &counter, &run).run(&OpenSession::new(&config, &path))?;
/// let report = Restore::default().run(&OpenSession::new(&config, &path))?;
/// assert!(!report.is_nothing());
/// assert_eq!(std::fs::read(&path).expect("a session"), original);
/// # Ok::<(), epitome::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Restore<'a> {
    /// What is restored.
    pub what: What<'a>,
    /// Whether to continue if another process uses the session. If the agent holds its own lock on
    /// the session, the restore is refused all the same.
    pub force: bool,
    /// What to do if the archive is damaged: refuse, or restore what can be restored.
    pub damage: Damage,
}

/// Restores what the agent wrote, like `epitome restore SESSION` without options.
impl Default for Restore<'_> {
    fn default() -> Self {
        let what = What::Session(RestoreTarget::Original);
        Restore { what, force: false, damage: Damage::Refuse }
    }
}

/// A file of a session, its bytes, and its generations in the archive.
type Opened = (SessionPart, FileSource, Known);

impl Restore<'_> {
    /// Reports what would be restored. Nothing is written.
    ///
    /// ```
    /// use epitome::ops::{Compact, OpenSession, Restore};
    ///
    /// # let home = tempfile::tempdir().expect("a folder");
    /// # let config = epitome::Config::from_home(home.path());
    /// # let path = home.path().join("session.jsonl");
    /// # std::fs::write(&path, fixtures::get("pi", "pricing").bytes()).expect("a session");
    /// # let run = config.begin_run("example");
    /// # let recipe = epitome::built_in("epitome").expect("a recipe");
    /// # let counter = epitome_tokens::Estimate::new();
    /// Compact::new(&recipe, &counter, &run).run(&OpenSession::new(&config, &path))?;
    /// let compacted = std::fs::read(&path).expect("a session");
    /// let report = Restore::default().plan(&OpenSession::new(&config, &path))?;
    /// assert!(report.dry_run && report.file.undone == [1]);
    /// assert_eq!(std::fs::read(&path).expect("a session"), compacted);
    /// # Ok::<(), epitome::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`run_after`](Restore::run_after), but a session in use is not an error.
    pub fn plan(&self, session: &OpenSession<'_>) -> Result<RestoreReport> {
        let mut done = Vec::new();
        let mut places = Vec::new();
        for (part, source, known) in self.open_archived(session)? {
            let (back, splices) = self.plan_file(session.config, &part.path, &source, known)?;
            done.push(back);
            places.push((part, splices.first().map(|splice| splice.span.start)));
        }
        // If one file is changed, all are locked, so each of them must be replaceable.
        if places.iter().any(|(_, first)| first.is_some()) {
            for (part, first) in &places {
                check_replaceable(part, *first)?;
            }
        }
        RestoreReport::planned(session, done)
    }

    /// Like [`plan`](Restore::plan), but for [`write_copy`](Restore::write_copy): it is no error if
    /// the session itself cannot be replaced.
    ///
    /// # Errors
    ///
    /// The errors of reading and of the archive.
    pub fn plan_copy(&self, session: &OpenSession<'_>) -> Result<RestoreReport> {
        let mut done = Vec::new();
        for (part, source, known) in self.open_archived(session)? {
            done.push(self.plan_file(session.config, &part.path, &source, known)?.0);
        }
        RestoreReport::planned(session, done)
    }

    /// Restores a session and the files that belong to it. See [`run_after`](Restore::run_after).
    ///
    /// # Errors
    ///
    /// `Refused` if the restore would use a part of the archive that was imported: only the user
    /// can decide whether to trust it. Otherwise the errors of [`run_after`](Restore::run_after).
    ///
    /// ```
    /// use epitome::ErrorKind;
    /// use epitome::ops::{OpenSession, Restore};
    ///
    /// # let home = tempfile::tempdir().expect("a folder");
    /// # let config = epitome::Config::from_home(home.path());
    /// # let path = home.path().join("session.jsonl");
    /// # std::fs::write(&path, fixtures::get("pi", "pricing").bytes()).expect("a session");
    /// # let run = config.begin_run("example");
    /// # let recipe = epitome::built_in("epitome").expect("a recipe");
    /// # let counter = epitome_tokens::Estimate::new();
    /// // The session was never compacted.
    /// let session = OpenSession::new(&config, &path);
    /// let err = Restore::default().run(&session).expect_err("no archive");
    /// assert_eq!(err.kind(), ErrorKind::NotArchived);
    /// # Ok::<(), epitome::Error>(())
    /// ```
    pub fn run(&self, session: &OpenSession<'_>) -> Result<RestoreReport> {
        self.run_after(session, |done| match done.iter().find(|it| !it.imported.is_empty()) {
            None => Ok(()),
            Some(back) => {
                let what = "a part of this session's archive was imported, and may put in what \
                            was never there";
                let of = session.path().display();
                let hint = format!("`epitome restore {of}` in a terminal asks whether to use it");
                Err(Error::new(ErrorKind::Refused, what).at(&back.path).with_hint(hint))
            }
        })
    }

    /// Restores a session and the files that belong to it in one transaction: everything is
    /// planned, then written. If one file cannot be replaced, those replaced before it get their
    /// old content back. Files that were never compacted are skipped, even the session's own file.
    /// When everything is planned, `before_writing` is called with what would be restored, even if
    /// nothing is to be undone. If it returns an error, nothing is written.
    ///
    /// # Errors
    ///
    /// `InUse`, `HeldByAgent` or `Locked` if another process uses the session; `NotArchived` if the
    /// archive has nothing of any of the files; the errors of reading, of the archive and of
    /// replacing. After an error the session is unchanged, or the error names the files that did
    /// not get their old content back.
    pub fn run_after<E: From<Error>>(
        &self,
        session: &OpenSession<'_>,
        before_writing: impl FnOnce(&[FileRestore]) -> Result<(), E>,
    ) -> Result<RestoreReport, E> {
        let config = session.config;
        let mut locked_files = Vec::new();
        for (part, source, known) in self.open_archived(session)? {
            let rows = matches!(part.place, Place::Rows(_)).then_some(source);
            locked_files.push((LockedFile::lock(config, &part, rows, self.force)?, known));
        }
        let mut done = Vec::new();
        let mut changes = Vec::new();
        for (locked, known) in &locked_files {
            let (back, splices) =
                self.plan_file(config, &locked.path, locked.source(), known.clone())?;
            if !splices.is_empty() {
                let change = locked.change(splices, true).map_err(Error::while_writing)?;
                changes.push((done.len(), change));
            }
            done.push(back);
        }
        before_writing(&done)?;
        // The report is made now, because it can fail: after the files are written, it is too late
        // for an error.
        let report = RestoreReport::planned(session, done)?;
        let mut ways_back = Vec::new();
        for (n, FileReplacement { locked, content, .. }) in &changes {
            let back = &report.done[*n];
            if let RestoreOutcome::ByRecord { .. } = back.outcome {
                let path = locked.file.path();
                let source = locked.source();
                let generation = archive_way_back(config, &back.key, path, source, content);
                ways_back.push((*n, generation.map_err(Error::while_writing)?.number));
            }
        }
        let changes: Vec<FileReplacement<'_>> =
            changes.into_iter().rev().map(|(_, it)| it).collect();
        replace_all(config, &changes).map_err(Error::while_writing)?;
        Ok(report.written(&ways_back))
    }

    /// Writes what the session's own file would be restored to, as [`what`](Restore::what) says, to
    /// the new file `out`. The session is unchanged. `before_writing` is called as in
    /// [`run_after`](Restore::run_after).
    ///
    /// # Errors
    ///
    /// The errors of [`plan`](Restore::plan); `Exists` if `out` exists.
    pub fn write_copy<E: From<Error>>(
        &self,
        session: &OpenSession<'_>,
        out: &Path,
        before_writing: impl FnOnce(&[FileRestore]) -> Result<(), E>,
    ) -> Result<RestoreReport, E> {
        let config = session.config;
        let own = session.own();
        let source = own.open()?;
        check_writable(own, session.agent)?;
        let known =
            archived_generations(session, own, &source)?.ok_or_else(|| not_archived(&own.path))?;
        let (back, splices) = self.plan_file(config, &own.path, &source, known)?;
        before_writing(std::slice::from_ref(&back))?;
        let spliced = Spliced::new(&source, splices)?;
        let mut report = RestoreReport::planned(session, vec![back])?.written(&[]);
        write_new(out, |to| spliced.copy_to(to)).map_err(Error::while_writing)?;
        report.out = Some(out.to_owned());
        Ok(report)
    }

    /// The files to restore. For the original: the session's own file, and the files that belong to
    /// it. For a run: the files that the run compacted. For a generation or a block: only the
    /// session's own file.
    fn files(&self, session: &OpenSession<'_>) -> Result<Vec<SessionPart>> {
        let own = session.own();
        Ok(match self.what {
            What::Session(RestoreTarget::Original) => session.members()?.cloned().collect(),
            What::Run { files, .. } => {
                let parts = files.iter().map(|path| {
                    if *path == own.path { own.clone() } else { SessionPart::at(path) }
                });
                parts.collect()
            }
            // A generation's number and a reference are those of the session's own file.
            What::Session(RestoreTarget::Generation(_)) | What::Block(_) => vec![own.clone()],
        })
    }

    /// Opens those of the files to restore that have generations in the archive. A damaged or
    /// missing part of the archive is an error, unless [`damage`](Restore::damage) says to leave it
    /// out and at least one file can be restored.
    fn open_archived(&self, session: &OpenSession<'_>) -> Result<Vec<Opened>> {
        let mut found: Vec<Opened> = Vec::new();
        let mut lost = Vec::new();
        for part in self.files(session)? {
            let is_session = part.path == session.path();
            let source = match part.open() {
                Ok(source) => source,
                Err(err) if self.may_be_gone(&err, is_session) => continue,
                Err(err) => return Err(err),
            };
            let known = archived_generations(session, &part, &source);
            if is_session && !matches!(known, Ok(Some(_))) {
                check_writable(&part, session.agent)?;
            }
            match known {
                Ok(Some(known)) => found.push((part, source, known)),
                Ok(None) => {}
                Err(err) if !is_session && err.kind() == ErrorKind::UnknownFormat => {}
                // The other files are restored, although the archive of this file is damaged.
                Err(err) if self.tolerates(&err) => lost.push(err),
                Err(err) => return Err(err),
            }
        }
        let own = found.iter().find(|(part, ..)| part.path == session.path());
        if let Some((.., known)) = own {
            lost.extend(self.missing_parts(session, &known.found.whole)?);
        }
        if let What::Run { id, .. } = self.what {
            found.retain(|(.., known)| known.found.whole.iter().any(|it| it.is_of(id)));
        }
        match (found.first_mut(), lost.first()) {
            (Some((.., known)), Some(_)) if self.damage == Damage::LeaveOut => {
                known.found.damaged.append(&mut lost);
                Ok(found)
            }
            (_, Some(first)) if self.damage == Damage::LeaveOut => Err(first.clone()),
            (_, Some(first)) => Err(first.clone().with_hint(NOT_WHOLE)),
            (Some(_), None) => Ok(found),
            (None, None) => Err(not_archived(session.path())),
        }
    }

    /// Whether an error is about a damaged part of the archive that the restore leaves out.
    fn tolerates(&self, err: &Error) -> bool {
        self.damage == Damage::LeaveOut && err.kind() == ErrorKind::Archive
    }

    /// Whether a file that cannot be opened is skipped. That requires that there is no file at its
    /// path. The session's own file is skipped only if a run is undone that compacted other files,
    /// too.
    fn may_be_gone(&self, err: &Error, is_session: bool) -> bool {
        match self.what {
            What::Run { files, .. } if is_session && files.len() < 2 => false,
            What::Run { .. } => is_no_file(err),
            What::Session(_) | What::Block(_) => !is_session && is_no_file(err),
        }
    }

    /// The errors for files that were compacted with the session, do not have their original
    /// content, and whose generations are missing or damaged in the archive.
    fn missing_parts(
        &self,
        session: &OpenSession<'_>,
        generations: &[Generation],
    ) -> Result<Vec<Error>> {
        let parts: Vec<&PartGeneration> = match self.what {
            What::Session(RestoreTarget::Original) => {
                generations.iter().flat_map(|it| &it.parts).collect()
            }
            What::Run { id, .. } => {
                generations.iter().filter(|it| it.is_of(id)).flat_map(|it| &it.parts).collect()
            }
            What::Session(RestoreTarget::Generation(_)) | What::Block(_) => return Ok(Vec::new()),
        };
        let mut lost = Vec::new();
        for part in &parts {
            let found = session.config.archive().generations(&part.key)?;
            let is_here = found.whole.iter().any(|it| it.number == part.generation);
            if is_here || found.removed.contains(&part.generation) {
                continue;
            }
            let older = generations.iter().flat_map(|it| &it.parts);
            let older = older.filter(|it| it.key == part.key && it.generation <= part.generation);
            let before: Vec<Digest> = older.map(|it| it.before).collect();
            if let Some(path) = file_that_needs(session, part, &before)? {
                let what = format!(
                    "generation {} of what belongs to the session is damaged or missing in the \
                     archive",
                    part.generation
                );
                lost.push(Error::new(ErrorKind::Archive, what).at(&path));
            }
        }
        Ok(lost)
    }

    /// Computes how to restore a file. Returns the report of the file, and the splices that restore
    /// the file.
    fn plan_file(
        &self,
        config: &Config,
        path: &Path,
        source: &FileSource,
        known: Known,
    ) -> Result<(FileRestore, Vec<Splice>)> {
        if_read(source, self.plan_unchecked(config, path, source, known))
    }

    /// Like [`plan_file`](Restore::plan_file), but the result may be wrong if a read of the file
    /// failed.
    fn plan_unchecked(
        &self,
        config: &Config,
        path: &Path,
        source: &FileSource,
        known: Known,
    ) -> Result<(FileRestore, Vec<Splice>)> {
        let archive = config.archive();
        let Known { key, found } = known;
        let generations = &found.whole;
        let to = |target| restore_from(&archive, &key, &found, source, target, self.damage);
        let restoration = match self.what {
            What::Session(target) => to(target),
            What::Block(reference) => {
                restore_block(source, generations, &archive.blobs(&key), reference)
            }
            What::Run { id, .. } => undo_run(generations, id, source, to),
        };
        let restoration = restoration.map_err(|err| {
            if err.kind() != ErrorKind::NotFound {
                return err;
            }
            let numbers = generations.iter().map(|it| it.number.to_string());
            let numbers: Vec<String> = numbers.collect();
            let hint = format!("this session has the generations {}", numbers.join(", "));
            err.with_kind(ErrorKind::NotArchived).with_hint(hint)
        })?;
        let imported = found.imported_in(&restoration).into_iter().collect();
        let Restoration { splices, outcome } = restoration;
        let becomes = Spliced::new(source, splices.clone())?;
        let after = Digest::from_source(&becomes)?;
        let is_whole = matches!(self.what, What::Session(RestoreTarget::Original))
            && matches!(outcome, RestoreOutcome::Exact { .. });
        let short_of =
            if is_whole { check_original(&archive, &key, &found, &becomes).err() } else { None };
        if let (Some(err), Damage::Refuse) = (&short_of, self.damage) {
            return Err(err.clone().at(path));
        }
        let undone = outcome.undone();
        let of = generations.iter().filter(|generation| undone.contains(&generation.number));
        let edits = of.map(|generation| generation.records.len() as u64).sum();
        let path = path.to_owned();
        let bytes_before = Bytes(Source::len(source));
        let generation = None;
        let damaged = found.damaged;
        Ok((
            FileRestore {
                path,
                key,
                outcome,
                edits,
                bytes_before,
                after,
                generation,
                damaged,
                short_of,
                imported,
            },
            splices,
        ))
    }
}

/// The path of the file of `part`, if its generations are needed, because the file does not begin
/// with any of its original contents. `before` are the digests of these contents. `None` if the
/// file begins with one of them, or if there is no such file.
fn file_that_needs(
    session: &OpenSession<'_>,
    part: &PartGeneration,
    before: &[Digest],
) -> Result<Option<PathBuf>> {
    let lens: Vec<u64> = before.iter().map(|it| it.len).collect();
    for file in session.parts()? {
        let source = match file.open() {
            Ok(source) => source,
            Err(err) if is_no_file(&err) => continue,
            Err(err) => return Err(err),
        };
        let loaded = match Loaded::read(&source, session.agent) {
            Ok(loaded) => loaded,
            Err(err) if is_no_part(&err) => continue,
            Err(err) => return Err(err),
        };
        if crate::session::key_of(&loaded, &file.path) == part.key {
            let digests = Digest::from_prefixes(&source, &lens)?;
            let is_whole = before.iter().any(|it| digests.contains(it));
            return Ok((!is_whole).then(|| file.path.clone()));
        }
    }
    Ok(None)
}

/// The generations of a file, found by the key of its session. They are found by the path of the
/// file if the session cannot be read any more, or if it has no id and its key has no generations.
/// `None` if there are none.
fn archived_generations(
    session: &OpenSession<'_>,
    part: &SessionPart,
    source: &FileSource,
) -> Result<Option<Known>> {
    let config = session.config;
    let path = part.path.as_path();
    let loaded = Loaded::read(source, session.agent);
    let has_id = loaded.as_ref().is_ok_and(|it| it.transcript.head.id.is_some());
    let by_key = match &loaded {
        Ok(loaded) => Some(Known::of_key(config, crate::session::key_of(loaded, path))?),
        Err(err) if err.kind() == ErrorKind::UnknownFormat => None,
        Err(err) => return Err(err.clone()),
    };
    let known = match by_key {
        Some(known) if has_id || !known.is_empty() => known,
        by_name => match Known::of_path(config, part)?.or(by_name) {
            Some(known) => known,
            None => return Err(loaded.err().unwrap_or_else(|| not_archived(path)).at(path)),
        },
    };
    match (known.found.whole.is_empty(), known.found.damaged.first()) {
        (false, _) => Ok(Some(known)),
        (true, None) => {
            // A file with stubs was compacted, here or on another machine. It is an error if the
            // archive does not have the bytes of the stubs.
            check_stubs(&config.archive(), &known.key, &known.found, source)
                .map_err(|err| err.at(path))?;
            Ok(None)
        }
        (true, Some(first)) => {
            let what = "no generation of this session can be read";
            Err(Error::new(ErrorKind::Archive, what).at(path).because(first.clone()))
        }
    }
}

/// Computes how to undo a run, and single texts that were put back after it. Returns an error if
/// another compaction or another program changed the session since, or if a text of it was
/// forgotten. `restored_to` plans a restore to a target.
fn undo_run(
    generations: &[Generation],
    run: &str,
    source: &FileSource,
    restored_to: impl Fn(RestoreTarget) -> Result<Restoration>,
) -> Result<Restoration> {
    let whole = match restored_to(RestoreTarget::Original) {
        // An older compaction cannot be undone, for example because a text was forgotten. The run
        // does not need it.
        Err(err) if err.kind() == ErrorKind::Archive => {
            let way = before_run(generations, run)
                .and_then(|before| restored_to(RestoreTarget::Generation(before)).ok());
            return way.filter(|way| undoes_only(way, generations, run)).ok_or(err);
        }
        whole => whole?,
    };
    let RestoreOutcome::Exact { undone } = &whole.outcome else {
        let is_forgotten = generations.iter().any(|it| !it.forgotten.is_empty());
        return Err(not_undone(match is_forgotten || has_forgotten_texts(source) {
            true => "a text of the session was forgotten since that run",
            false => "the session was changed by another program since that run",
        }));
    };
    // `undone` begins with the newest generation.
    let newest = undone.iter().take_while(|&&number| {
        is_of_run(generations, number, run)
            || generations.iter().any(|it| it.number == number && it.is_restore())
    });
    let newest: Vec<u64> = newest.copied().collect();
    let last = newest.iter().rposition(|&number| is_of_run(generations, number, run));
    let last = last.map_or(0, |at| at + 1);
    if undone[last..].iter().any(|&number| is_of_run(generations, number, run)) {
        return Err(not_undone("the session was compacted again since that run"));
    }
    match undone.get(last) {
        // The run was undone already, or was never written.
        _ if last == 0 => {
            let outcome = RestoreOutcome::Exact { undone: Vec::new() };
            Ok(Restoration { splices: Vec::new(), outcome })
        }
        None => Ok(whole),
        Some(&older) => restored_to(RestoreTarget::Generation(older)),
    }
}

/// Whether a restore exactly undoes generations of a run, and no others.
fn undoes_only(way: &Restoration, generations: &[Generation], run: &str) -> bool {
    matches!(&way.outcome, RestoreOutcome::Exact { undone }
        if undone.iter().all(|&number| is_of_run(generations, number, run)))
}

/// The number of the newest generation that is older than those of a run.
fn before_run(generations: &[Generation], run: &str) -> Option<u64> {
    let numbers = generations.iter().map(|generation| generation.number);
    let first = numbers.clone().filter(|&it| is_of_run(generations, it, run)).min()?;
    numbers.filter(|&it| it < first).max()
}

/// Whether a run made this generation, or the same change to a copy of the session.
fn is_of_run(generations: &[Generation], number: u64, run: &str) -> bool {
    let Some(found) = generations.iter().find(|generation| generation.number == number) else {
        return false;
    };
    found.is_of(run) || generations.iter().any(|other| other.is_of(run) && other.is_twin_of(found))
}

fn not_undone(what: &str) -> Error {
    Error::new(ErrorKind::Changed, what)
        .with_hint("`epitome restore SESSION` restores what is still as epitome left it")
}

fn not_archived(session: &Path) -> Error {
    let what = "the archive holds nothing of this session";
    Error::new(ErrorKind::NotArchived, what).at(session)
}

impl OpenSession<'_> {
    /// The generations in effect, which a restore would undo, the oldest first: those of the
    /// session's own file or, if it has none, of the first other file of the session that has some.
    /// Files are skipped if they, or the archive, cannot be read.
    ///
    /// ```
    /// use epitome::ops::{Compact, OpenSession};
    ///
    /// # let home = tempfile::tempdir().expect("a folder");
    /// # let config = epitome::Config::from_home(home.path());
    /// # let path = home.path().join("session.jsonl");
    /// # std::fs::write(&path, fixtures::get("pi", "pricing").bytes()).expect("a session");
    /// # let run = config.begin_run("example");
    /// # let recipe = epitome::built_in("epitome").expect("a recipe");
    /// # let counter = epitome_tokens::Estimate::new();
    /// assert!(OpenSession::new(&config, &path).undoable().is_empty());
    /// Compact::new(&recipe, &counter, &run).run(&OpenSession::new(&config, &path))?;
    /// assert_eq!(OpenSession::new(&config, &path).undoable()[0].recipe, "epitome");
    /// # Ok::<(), epitome::Error>(())
    /// ```
    pub fn undoable(&self) -> Vec<Generation> {
        let found = self.found_members().map(|part| compactions_in(self.config, part));
        found.flatten().flatten().find(|found| !found.is_empty()).unwrap_or_default()
    }
}

/// The generations in effect in a file, the oldest first. `None` if the file does not exist or is
/// no session.
///
/// # Errors
///
/// The errors of reading the file and the archive, for example `NoPermission`.
pub(super) fn compactions_in(
    config: &Config,
    part: &SessionPart,
) -> Result<Option<Vec<Generation>>> {
    let session = match part.read(None) {
        Ok(session) => session,
        Err(err) if is_no_part(&err) => return Ok(None),
        Err(err) => return Err(err),
    };
    let key = key_in_archive(config, &session, &part.path)?;
    state::in_effect(&config.archive(), &key, &session.source).map(Some)
}

/// Archives the bytes that a restore is about to replace, as a generation: a later restore can then
/// first return to the state before this one. `spliced` is the restored session.
///
/// # Errors
///
/// `Disk` or `NoPermission` if the archive cannot be written; the errors of reading the session.
pub fn archive_way_back(
    config: &Config,
    key: &SessionKey,
    path: &Path,
    source: &FileSource,
    spliced: &Spliced<'_>,
) -> Result<Generation> {
    let way = UndoData::between(source, spliced)?;
    let mut pack = config.archive().begin(key)?;
    for splice in spliced.splices() {
        let what = "what stood in place of a restored piece".to_owned();
        let about = About { pass: "restore".to_owned(), what, ..About::default() };
        pack.put(&source.at(splice.span), about)?;
    }
    let records = way.records.len() as u64;
    pack.commit(Draft {
        path: path.to_owned(),
        recipe: "restore".to_owned(),
        made: config.now(),
        run: None,
        part_of: None,
        parts: Vec::new(),
        before: way.before,
        after: way.after,
        records: way.records,
        tokens_before: Tokens(0),
        tokens_after: Tokens(0),
        edits: [("restore".to_owned(), records)].into(),
        shared: Some(way.shared),
    })
}
