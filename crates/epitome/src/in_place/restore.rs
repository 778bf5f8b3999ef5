//! A session given back with what belongs to it.

use std::path::{Path, PathBuf};

use epitome_model::{Bytes, Ref, Source, Splice, Tokens};

use super::family::{Change, Taken, check_writable, members, replace_all};
use super::is_no_file;
use crate::archive::{About, Digest, Draft, Generation, Generations, Part, SessionKey, WayBack};
use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::find;
use crate::place::{self, Place};
use crate::restore::{
    Damage, Restoration, Restored, Target, check_original, check_stubs, restore_block, restore_from,
};
use crate::session::Loaded;
use crate::source::{FileSource, Spliced};
use crate::state;
use crate::store::write_new;

/// What is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What<'a> {
    /// The session, as far as the target says.
    Session(Target),
    /// One removed piece.
    Block(&'a Ref),
    /// What a run removed, if nothing compacted the session since.
    Run {
        /// The id of the run.
        id: &'a str,
        /// The files of the session that it compacted.
        files: &'a [PathBuf],
    },
}

/// How sessions are given back.
pub struct GivingBack<'a> {
    /// Folders and the time.
    pub config: &'a Config,
    /// What is given back.
    pub what: What<'a>,
    /// Takes sessions for those of this agent, whatever they look like.
    pub agent: Option<&'a str>,
    /// Goes on although another program has a session open.
    pub force: bool,
    /// Whether a damaged part of the archive changes nothing, or what is left is restored.
    pub damage: Damage,
}

/// A file of a session that was given back, or would be.
#[derive(Clone, Debug)]
pub struct GivenBack {
    /// The session, or what a sub-agent did.
    pub path: PathBuf,
    /// What the archive knows it by.
    pub key: SessionKey,
    /// How.
    pub outcome: Restored,
    /// Edits of the generations that were undone to the byte.
    pub edits: u64,
    /// Its length before.
    pub bytes_before: Bytes,
    /// The file afterwards.
    pub after: Digest,
    /// The generation that holds what was there before, if it was not undone to the byte.
    pub generation: Option<u64>,
    /// What of the archive is damaged or missing.
    pub damaged: Vec<Error>,
    /// Why this is no original although hashes lead to it: bytes are not in the archive.
    pub short_of: Option<Error>,
    /// The numbers of imported generations that it takes: they may put in what was never there.
    pub imported: Vec<u64>,
}

impl GivenBack {
    /// Whether there was nothing to undo.
    pub fn is_nothing(&self) -> bool {
        matches!(&self.outcome, Restored::Exact { undone } if undone.is_empty())
    }

    /// Its length afterwards.
    pub fn bytes_after(&self) -> Bytes {
        Bytes(self.after.len)
    }
}

impl<'a> GivingBack<'a> {
    /// To what the agent wrote, as `epitome restore SESSION` without options.
    pub fn new(config: &'a Config) -> GivingBack<'a> {
        let what = What::Session(Target::Original);
        GivingBack { config, what, agent: None, force: false, damage: Damage::Refuse }
    }

    /// The session and what belongs to it, or the session alone if more is not meant.
    fn files(&self, session: &Path) -> Vec<PathBuf> {
        match self.what {
            What::Session(Target::Original) => members(session),
            What::Run { files, .. } => files.to_vec(),
            // The numbers and names are those of this file.
            What::Session(Target::Generation(_)) | What::Block(_) => vec![session.to_owned()],
        }
    }

    /// Says what would be given back. Nothing is written.
    ///
    /// # Errors
    ///
    /// As [`give_back`](GivingBack::give_back), but that no session is in use.
    pub fn plan(&self, session: &Path) -> Result<Vec<GivenBack>> {
        let mut plans = Vec::new();
        for (path, known) in self.known(session)? {
            let source = place::open(&path)?;
            plans.push(self.plan_file(&path, &source, known)?.0);
        }
        Ok(plans)
    }

    /// Gives a session and what belongs to it back as one: everything is planned and proved, then
    /// written, and if one file cannot be written none is. Files that were never compacted are left
    /// out, the session too. `before_writing` is called when all is planned; `writing` makes an
    /// error of the caller's from one that was met later.
    ///
    /// # Errors
    ///
    /// `InUse`, `HeldByAgent` and `Locked` with who has it; `NotArchived` if the archive holds
    /// nothing of any of them; what reading, the archive and the store say. Nothing is changed
    /// then, or the error names what could not be taken back.
    pub fn give_back<E: From<Error>>(
        &self,
        session: &Path,
        before_writing: impl FnOnce(&[GivenBack]) -> Result<(), E>,
        writing: fn(Error) -> E,
    ) -> Result<Vec<GivenBack>, E> {
        let known = self.known(session)?;
        let mut taken = Vec::new();
        for (path, known) in known {
            let one = Taken::take(self.config, &path, self.force)?;
            taken.push((one, known));
        }
        let (mut done, mut changes) = (Vec::new(), Vec::new());
        for (one, known) in &taken {
            let (back, splices) = self.plan_file(&one.path, one.source(), known.clone())?;
            if !splices.is_empty() {
                let change = one.change(splices, true).map_err(writing)?;
                changes.push((done.len(), change));
            }
            done.push(back);
        }
        before_writing(&done)?;
        for (n, Change { of, becomes, .. }) in &changes {
            let back = &mut done[*n];
            if let Restored::ByRecord { .. } = back.outcome {
                let path = of.file.path();
                let generation =
                    archive_way_back(self.config, &back.key, path, of.source(), becomes);
                back.generation = Some(generation.map_err(writing)?.number);
            }
        }
        let changes: Vec<Change<'_>> = changes.into_iter().rev().map(|(_, it)| it).collect();
        replace_all(self.config, &changes).map_err(writing)?;
        Ok(done)
    }

    /// Writes the session alone as it was to a new file; the session stays.
    ///
    /// # Errors
    ///
    /// As [`plan`](GivingBack::plan); `Exists` when something has that name.
    pub fn write_copy<E: From<Error>>(
        &self,
        session: &Path,
        out: &Path,
        before_writing: impl FnOnce(&[GivenBack]) -> Result<(), E>,
        writing: fn(Error) -> E,
    ) -> Result<GivenBack, E> {
        let source = place::open(session)?;
        check_writable(&source, session, self.agent)?;
        let known = self.known_of(session, &source)?.ok_or_else(|| not_archived(session))?;
        let (back, splices) = self.plan_file(session, &source, known)?;
        before_writing(std::slice::from_ref(&back))?;
        let spliced = Spliced::new(&source, splices)?;
        write_new(out, |to| spliced.copy_to(to)).map_err(writing)?;
        Ok(back)
    }

    /// The files of a session of which the archive knows something.
    fn known(&self, session: &Path) -> Result<Vec<(PathBuf, Known)>> {
        let mut found = Vec::new();
        let mut lost = Vec::new();
        for path in self.files(session) {
            let is_session = path == session;
            let source = match place::open(&path) {
                Ok(source) => source,
                Err(err) if self.may_be_gone(&err, is_session) => continue,
                Err(err) => return Err(err),
            };
            let known = self.known_of(&path, &source);
            if is_session && !matches!(known, Ok(Some(_))) {
                check_writable(&source, &path, self.agent)?;
            }
            match known {
                Ok(Some(known)) => found.push((path, known)),
                Ok(None) => {}
                Err(err) if !is_session && err.kind() == ErrorKind::UnknownFormat => {}
                // What is left of the others is given back.
                Err(err) if self.leaves_out(&err) => lost.push(err),
                Err(err) => return Err(err),
            }
        }
        if let Some((_, known)) = found.iter().find(|(path, _)| path == session) {
            lost.extend(self.lost_parts(session, &known.found.whole)?);
        }
        if let What::Run { id, .. } = self.what {
            found.retain(|(_, known)| known.found.whole.iter().any(|it| it.is_of(id)));
        }
        match (found.first_mut(), lost.first()) {
            (Some((_, known)), Some(_)) if self.damage == Damage::LeaveOut => {
                known.found.damaged.append(&mut lost);
                Ok(found)
            }
            (_, Some(first)) if self.damage == Damage::LeaveOut => Err(first.clone()),
            (_, Some(first)) => Err(first.clone().with_hint(HALF)),
            (Some(_), None) => Ok(found),
            (None, None) => Err(not_archived(session)),
        }
    }

    fn leaves_out(&self, err: &Error) -> bool {
        self.damage == Damage::LeaveOut && err.kind() == ErrorKind::Archive
    }

    /// Whether a file that cannot be opened is left out: what is no file is no part of a session,
    /// and of what a run compacted, that is given back which is still there.
    fn may_be_gone(&self, err: &Error, is_session: bool) -> bool {
        match self.what {
            What::Run { files, .. } if is_session && files.len() < 2 => false,
            What::Run { .. } => is_no_file(err),
            What::Session(_) | What::Block(_) => !is_session && is_no_file(err),
        }
    }

    /// What was compacted with the session, is not as it was before, and is not in the archive.
    fn lost_parts(&self, session: &Path, generations: &[Generation]) -> Result<Vec<Error>> {
        let parts: Vec<&Part> = match self.what {
            What::Session(Target::Original) => {
                generations.iter().flat_map(|it| &it.parts).collect()
            }
            What::Run { id, .. } => {
                generations.iter().filter(|it| it.is_of(id)).flat_map(|it| &it.parts).collect()
            }
            What::Session(Target::Generation(_)) | What::Block(_) => return Ok(Vec::new()),
        };
        let mut lost = Vec::new();
        for part in &parts {
            let found = self.config.archive().generations(&part.key)?;
            let is_here = found.whole.iter().any(|it| it.number == part.generation);
            if is_here || found.removed.contains(&part.generation) {
                continue;
            }
            let older = generations.iter().flat_map(|it| &it.parts);
            let older = older.filter(|it| it.key == part.key && it.generation <= part.generation);
            let before: Vec<Digest> = older.map(|it| it.before).collect();
            if let Some(path) = self.file_that_needs(session, part, &before)? {
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

    /// The file of a part, if it is not what it was `before`.
    fn file_that_needs(
        &self,
        session: &Path,
        part: &Part,
        before: &[Digest],
    ) -> Result<Option<PathBuf>> {
        let lens: Vec<u64> = before.iter().map(|it| it.len).collect();
        for path in find::companions(session) {
            let Ok(source) = place::open(&path) else { continue };
            let is_it = Loaded::read(&source, self.agent).is_ok_and(|it| it.key(&path) == part.key);
            if is_it {
                let digests = Digest::of_prefixes(&source, &lens)?;
                let is_whole = before.iter().any(|it| digests.contains(it));
                return Ok((!is_whole).then_some(path));
            }
        }
        Ok(None)
    }

    /// What the archive knows of a file, by the key of the session; if it cannot be read any more,
    /// by the path of its file.
    fn known_of(&self, path: &Path, source: &FileSource) -> Result<Option<Known>> {
        let session = Loaded::read(source, self.agent);
        let has_id = session.as_ref().is_ok_and(|it| it.transcript.head.id.is_some());
        let by_key = match &session {
            Ok(session) => Some(Known::of_key(self.config, session.key(path))?),
            Err(_) => None,
        };
        let known = match by_key {
            Some(known) if has_id || !known.is_empty() => known,
            by_name => match Known::of_path(self.config, path)?.or(by_name) {
                Some(known) => known,
                None => return Err(session.err().unwrap_or_else(|| not_archived(path)).at(path)),
            },
        };
        match (known.found.whole.is_empty(), known.found.damaged.first()) {
            (false, _) => Ok(Some(known)),
            (true, None) => {
                // What was compacted here or elsewhere says so.
                check_stubs(&self.config.archive(), &known.key, &known.found, source)
                    .map_err(|err| err.at(path))?;
                Ok(None)
            }
            (true, Some(first)) => {
                let what = "no generation of this session can be read";
                Err(Error::new(ErrorKind::Archive, what).at(path).because(first.clone()))
            }
        }
    }

    fn plan_file(
        &self,
        path: &Path,
        source: &FileSource,
        known: Known,
    ) -> Result<(GivenBack, Vec<Splice>)> {
        let archive = self.config.archive();
        let Known { key, found: known } = known;
        let generations = &known.whole;
        let to = |target| restore_from(&archive, &key, &known, source, target, self.damage);
        let found = match self.what {
            What::Session(target) => to(target),
            What::Block(reference) => {
                restore_block(source, generations, &archive.blobs(&key), reference)
            }
            What::Run { id, .. } => undo_run(generations, id, to),
        };
        let restoration = found.map_err(|err| {
            if err.kind() != ErrorKind::NotFound {
                return err;
            }
            let numbers = generations.iter().map(|it| it.number.to_string());
            let numbers: Vec<String> = numbers.collect();
            let hint = format!("this session has the generations {}", numbers.join(", "));
            err.with_kind(ErrorKind::NotArchived).with_hint(hint)
        })?;
        let imported = known.imported_in(&restoration).into_iter().collect();
        let Restoration { splices, outcome } = restoration;
        let becomes = Spliced::new(source, splices.clone())?;
        let after = Digest::of_source(&becomes)?;
        let is_whole = matches!(self.what, What::Session(Target::Original))
            && matches!(outcome, Restored::Exact { .. });
        let short_of = match is_whole {
            true => check_original(&archive, &key, &known, &becomes).err(),
            false => None,
        };
        if let (Some(err), Damage::Refuse) = (&short_of, self.damage) {
            return Err(err.clone().at(path));
        }
        let undone = outcome.undone();
        let of = generations.iter().filter(|generation| undone.contains(&generation.number));
        let edits = of.map(|generation| generation.records.len() as u64).sum();
        let (path, bytes_before) = (path.to_owned(), Bytes(Source::len(source)));
        let (generation, damaged) = (None, known.damaged);
        Ok((
            GivenBack {
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

/// What to do about a session of which a part cannot be given back.
const HALF: &str = "nothing was changed; `epitome restore SESSION --partial` restores what can be, \
                    `epitome archive verify` says what is damaged";

/// Undoes what a run did to a session, which nothing else compacted since. `restored_to` gives what
/// restores it to a target.
fn undo_run(
    generations: &[Generation],
    run: &str,
    restored_to: impl Fn(Target) -> Result<Restoration>,
) -> Result<Restoration> {
    let of_run = |number: u64| {
        let it = generations.iter().find(|generation| generation.number == number);
        let is_twin = |it: &Generation| {
            generations.iter().any(|other| other.is_of(run) && other.is_twin_of(it))
        };
        it.is_some_and(|it| it.is_of(run) || is_twin(it))
    };
    let refused = |what: &str| {
        Err(Error::new(ErrorKind::Changed, what)
            .with_hint("`epitome restore SESSION` gives back what is still as it was left"))
    };
    let whole = restored_to(Target::Original)?;
    let Restored::Exact { undone } = &whole.outcome else {
        return refused("the session was changed by another program since that run");
    };
    // Newest first.
    let last = undone.iter().take_while(|&&number| of_run(number)).count();
    if undone[last..].iter().any(|&number| of_run(number)) {
        return refused("the session was compacted again since that run");
    }
    match undone.get(last) {
        // It was undone already, or never written.
        _ if last == 0 => {
            let outcome = Restored::Exact { undone: Vec::new() };
            Ok(Restoration { splices: Vec::new(), outcome })
        }
        None => Ok(whole),
        Some(&older) => restored_to(Target::Generation(older)),
    }
}

/// What the archive knows of a file.
#[derive(Clone)]
struct Known {
    key: SessionKey,
    found: Generations,
}

impl Known {
    fn of_key(config: &Config, key: SessionKey) -> Result<Known> {
        let found = config.archive().generations(&key)?;
        Ok(Known { key, found })
    }

    fn is_empty(&self) -> bool {
        self.found.whole.is_empty() && self.found.damaged.is_empty()
    }

    fn of_path(config: &Config, path: &Path) -> Result<Option<Known>> {
        let path = &Place::of(path).real().unwrap_or_else(|_| path.to_owned());
        for key in config.archive().sessions()? {
            let known = Known::of_key(config, key)?;
            if known.found.whole.iter().any(|generation| same_file(&generation.path, path)) {
                return Ok(Some(known));
            }
        }
        Ok(None)
    }
}

fn same_file(one: &Path, other: &Path) -> bool {
    one == other
        || match (one.canonicalize(), other.canonicalize()) {
            (Ok(one), Ok(other)) => one == other,
            (Err(_), _) | (_, Err(_)) => false,
        }
}

fn not_archived(session: &Path) -> Error {
    let what = "the archive holds nothing of this session";
    Error::new(ErrorKind::NotArchived, what).at(session)
}

/// Gives a session and what belongs to it back to what the agent wrote, as `epitome restore
/// SESSION` does.
///
/// # Errors
///
/// As [`GivingBack::give_back`].
pub fn restore_session(config: &Config, path: &Path) -> Result<Vec<GivenBack>> {
    let no_imported = |done: &[GivenBack]| match done.iter().find(|it| !it.imported.is_empty()) {
        None => Ok(()),
        Some(back) => {
            let what = "a part of this session's archive was imported, and may put in what was \
                        never there";
            let hint = "`epitome restore SESSION` asks before it uses that";
            Err(Error::new(ErrorKind::Refused, what).at(&back.path).with_hint(hint))
        }
    };
    GivingBack::new(config).give_back(path, no_imported, |err| err)
}

/// The generations that [`restore_session`] would undo, oldest first: those of the session, or, if
/// it has none, of the first that belongs to it. None: all is what its agent wrote, or cannot be
/// restored.
pub fn undoable(config: &Config, path: &Path) -> Vec<Generation> {
    let files = members(path).into_iter().map(|path| compactions_in(config, &path));
    files.flatten().flatten().find(|found| !found.is_empty()).unwrap_or_default()
}

/// The generations that are in a file as it is now, oldest first. None: it cannot be read.
///
/// # Errors
///
/// `NoPermission`, `Unreadable` when the archive cannot be listed: then nothing is known.
pub(crate) fn compactions_in(config: &Config, path: &Path) -> Result<Option<Vec<Generation>>> {
    let Ok(session) = Loaded::open(path, None) else { return Ok(None) };
    let mut key = session.key(path);
    // As a restore finds it: a session that lost its id is known by the path of its file.
    if session.transcript.head.id.is_none()
        && Known::of_key(config, key.clone())?.is_empty()
        && let Some(known) = Known::of_path(config, path)?
    {
        key = known.key;
    }
    state::in_effect(&config.archive(), &key, &session.source).map(Some)
}

/// Archives the present bytes of a session before `spliced` takes their place, as a generation: a
/// later restore finds the way through it.
///
/// # Errors
///
/// `Disk`, `NoPermission`; what reading the session says.
pub fn archive_way_back(
    config: &Config,
    key: &SessionKey,
    path: &Path,
    source: &FileSource,
    spliced: &Spliced<'_>,
) -> Result<Generation> {
    let way = WayBack::of(source, spliced)?;
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
