//! A session compacted or given back where it stands, with what its sub-agents did.
//!
//! What the program does step by step, with its options, is here as one thing with none: for
//! programs that have a session and a wish.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use epitome_model::{Bytes, Counter, Source, Tokens};
use epitome_passes::Recipe;
use epitome_tokens::Calibration;

use crate::archive::{About, Draft, Generation, SessionKey, WayBack};
use crate::compact::{Planned, Way, apply};
use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::find::{self, Held};
use crate::place::{self, Place};
use crate::restore::{Damage, Restored, Target, restore_from};
use crate::session::{Loaded, format_of, writer};
use crate::source::{FileSource, Spliced};
use crate::state;
use crate::store::{self, Store, User};

/// A file of a session that was compacted, or would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compacted {
    /// The session, or what a sub-agent did.
    pub path: PathBuf,
    /// What a resume sent before.
    pub tokens_before: Tokens,
    /// What it sends afterwards, counted anew.
    pub tokens_after: Tokens,
    /// Its length before.
    pub bytes_before: Bytes,
    /// Its length afterwards.
    pub bytes_after: Bytes,
    /// What its pack in the archive takes, or would take.
    pub archive_bytes: Bytes,
    /// How what the provider bills for a request follows from the tokens of the messages, if the
    /// session records it.
    pub calibration: Option<Calibration>,
    /// Edits by the names of the passes that planned them.
    pub edits: BTreeMap<String, u64>,
    /// The generation in the archive. None: there was nothing to do, or it was only planned.
    pub generation: Option<u64>,
}

/// A file of a session that was given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenBack {
    /// The session, or what a sub-agent did.
    pub path: PathBuf,
    /// How.
    pub outcome: Restored,
    /// Its length before.
    pub bytes_before: Bytes,
    /// Its length afterwards.
    pub bytes_after: Bytes,
}

/// Plans a compaction of a session and of what its sub-agents did, the session first, and writes
/// nothing. Each plan is handed to `look`. A law that it would break is no error here: the plan
/// names it.
///
/// # Errors
///
/// `ReadOnly`, and what opening, reading and planning may say.
pub fn plan_session(
    config: &Config,
    path: &Path,
    recipe: &Recipe,
    counter: &dyn Counter,
    mut look: impl FnMut(&Path, &Planned<'_, FileSource>),
) -> Result<Vec<Compacted>> {
    let mut done = Vec::new();
    for path in std::iter::once(path.to_owned()).chain(find::companions(path)) {
        Place::of(&path).check_writable()?;
        let session = match Loaded::open(&path, None) {
            Ok(session) => session,
            Err(err) if is_no_part(&err, done.is_empty()) => continue,
            Err(err) => return Err(err),
        };
        let planned = Planned::as_usual(&session, recipe, counter)?;
        look(&path, &planned);
        let mut planned_so = Compacted::of(config, &path, &planned, counter);
        planned_so.archive_bytes = planned.pack_len(&path, counter)?;
        done.push(planned_so);
    }
    Ok(done)
}

/// Compacts a session and what its sub-agents did, as `epitome compact SESSION` does. The session
/// is the first of what is returned, and the last to be written: it is what it was when something
/// is refused before.
///
/// # Errors
///
/// `InUse` and `Locked` with who has it; `ReadOnly`; `Refused` if a law would break; what reading,
/// the archive and the store say. What was written before that stays written, and can be restored.
pub fn compact_session(
    config: &Config,
    path: &Path,
    recipe: &Recipe,
    counter: &dyn Counter,
) -> Result<Vec<Compacted>> {
    check_free(config, path)?;
    let mut done = Vec::new();
    for companion in find::companions(path) {
        match compact_one(config, &companion, recipe, counter) {
            Ok(compacted) => done.push(compacted),
            Err(err) if is_no_part(&err, false) => {}
            Err(err) => return Err(err),
        }
    }
    done.insert(0, compact_one(config, path, recipe, counter)?);
    Ok(done)
}

/// Gives a session and what its sub-agents did back to what the agent wrote, as `epitome restore
/// SESSION` does.
///
/// # Errors
///
/// `InUse` and `Locked` with who has it; `NotFound` if the archive holds nothing of the session;
/// what reading, the archive and the store say.
pub fn restore_session(config: &Config, path: &Path) -> Result<Vec<GivenBack>> {
    let mut done = vec![restore_one(config, path)?];
    for companion in find::companions(path) {
        match restore_one(config, &companion) {
            Ok(given_back) => done.push(given_back),
            // It was never compacted.
            Err(err) if matches!(err.kind(), ErrorKind::NotFound | ErrorKind::UnknownFormat) => {}
            Err(err) => return Err(err),
        }
    }
    Ok(done)
}

/// The generations that [`restore_session`] would undo, oldest first. None: the session is what its
/// agent wrote, or cannot be restored.
pub fn undoable(config: &Config, path: &Path) -> Vec<Generation> {
    let Ok(session) = Loaded::open(path, None) else { return Vec::new() };
    state::in_effect(&config.archive(), &session.key(path), &session.source)
}

/// Archives what stands in a session now, before `spliced` takes its place, as a generation of its
/// own: a state that the archive does not know of becomes one, so that a later restore finds back.
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
        before: way.before,
        after: way.after,
        records: way.records,
        tokens_before: Tokens(0),
        tokens_after: Tokens(0),
        edits: [("restore".to_owned(), records)].into(),
        shared: Some(way.shared),
    })
}

fn compact_one(
    config: &Config,
    path: &Path,
    recipe: &Recipe,
    counter: &dyn Counter,
) -> Result<Compacted> {
    let (_held, file) = take(config, path)?;
    let session = Loaded::read(file.source(), None).map_err(|err| err.at(path))?;
    let planned = Planned::as_usual(&session, recipe, counter)?;
    let mut done = Compacted::of(config, path, &planned, counter);
    if !planned.is_empty() {
        file.check_comes_back(planned.spliced()?.splices())?;
        if let (Way::Rewrite, Some((first, _))) = (planned.way, planned.splices.first()) {
            find::check_places(path, first.span.start)?;
            find::forget(config, path)?;
        }
        let generation = apply(&planned, &file, &config.archive(), counter, config.now())?;
        done.generation = Some(generation.number);
        done.archive_bytes = config.archive().pack_len(&generation.key(), generation.number)?;
    }
    Ok(done)
}

fn restore_one(config: &Config, path: &Path) -> Result<GivenBack> {
    let archive = config.archive();
    let (_held, file) = take(config, path)?;
    let source = file.source();
    let key = Loaded::read(source, None).map_err(|err| err.at(path))?.key(path);
    let found = archive.generations(&key)?;
    let restoration =
        restore_from(&archive, &key, &found, source, Target::Original, Damage::Refuse)
            .map_err(|err| err.at(path))?;
    if !found.imported_in(&restoration).is_empty() {
        let what = "a part of this session's archive was imported, and may put in what was never \
                    there";
        let hint = "`epitome restore SESSION` asks before it uses that";
        return Err(Error::new(ErrorKind::Refused, what).at(path).with_hint(hint));
    }
    let bytes_before = Bytes(Source::len(source));
    let outcome = restoration.outcome;
    let mut done =
        GivenBack { path: path.to_owned(), outcome, bytes_before, bytes_after: bytes_before };
    let Some(first) = restoration.splices.first() else { return Ok(done) };
    find::check_places(path, first.span.start)?;
    let spliced = Spliced::new(source, restoration.splices)?;
    if let Restored::ByRecord { .. } = done.outcome {
        archive_way_back(config, &key, file.path(), source, &spliced)?;
    }
    find::forget(config, path)?;
    file.replace(|to| spliced.copy_to(to))?;
    done.bytes_after = Bytes(Source::len(&spliced));
    Ok(done)
}

/// Takes a session to write it: nobody has it open, and nobody else opens it to write meanwhile.
fn take(config: &Config, path: &Path) -> Result<(Option<Held>, store::Session)> {
    check_free(config, path)?;
    let held = find::hold(config, path).map_err(|users| in_use(path, &users))?;
    Ok((held, Store::new(&config.home).open_for_edit(path)?))
}

/// Refuses what can be seen to be no session or in use, before anything is made on disk.
fn check_free(config: &Config, path: &Path) -> Result<()> {
    Place::of(path).check_writable()?;
    match format_of(&place::open(path)?) {
        Some(format) => writer(format).map(|_| ())?,
        // The error says what it is instead.
        None => Loaded::open(path, None).map(|_| ())?,
    }
    let users = find::users(config, path);
    if users.is_empty() { Ok(()) } else { Err(in_use(path, &users)) }
}

fn in_use(path: &Path, users: &[User]) -> Error {
    let who = users.iter().map(|user| match (user.name.as_str(), user.pid) {
        ("", pid) => format!("process {pid}"),
        // One that we may not see.
        (name, 0) => name.to_owned(),
        (name, pid) => format!("{name} (process {pid})"),
    });
    let who: Vec<String> = who.collect();
    let what = format!("the session is in use by {}", who.join(", "));
    Error::new(ErrorKind::InUse, what).at(path)
}

/// A file beside a session that is no session stays as it is, as in any other folder.
fn is_no_part(err: &Error, is_session: bool) -> bool {
    !is_session && err.kind() == ErrorKind::UnknownFormat
}

impl Compacted {
    fn of<S: Source>(
        config: &Config,
        path: &Path,
        planned: &Planned<'_, S>,
        counter: &dyn Counter,
    ) -> Compacted {
        let edits = planned.compaction.by_pass().into_iter();
        Compacted {
            path: path.to_owned(),
            tokens_before: planned.compaction.tokens_before,
            tokens_after: planned.tokens_after,
            bytes_before: Bytes(planned.session.source.len()),
            bytes_after: planned.bytes_after,
            archive_bytes: Bytes(0),
            calibration: planned.session.calibration(config, path, counter),
            edits: edits.map(|(pass, n)| (pass.to_owned(), n)).collect(),
            generation: None,
        }
    }
}
