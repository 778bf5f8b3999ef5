//! A session compacted with what belongs to it.

use std::path::{Path, PathBuf};

use epitome_model::{Bytes, Counter, Splice, Tokens};
use epitome_passes::Recipe;

use super::family::{Taken, check_writable, members, replace_all};
use super::{Compacted, is_no_part};
use crate::archive::{Generation, Made, Part, Run};
use crate::backup::{BackupPlace, keep_backup};
use crate::compact::{Planned, Way, archive_generation};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::place;
use crate::session::Loaded;
use crate::source::FileSource;
use crate::watch::Share;

/// How sessions are compacted in a run.
pub struct Compacting<'a> {
    /// Folders and the time.
    pub config: &'a Config,
    /// The run that it belongs to.
    pub run: &'a Run,
    /// How tokens are counted.
    pub counter: &'a dyn Counter,
    /// Takes sessions for those of this agent, whatever they look like.
    pub agent: Option<&'a str>,
    /// Goes on although another program has a session open.
    pub force: bool,
    /// Whether what sub-agents did is compacted with it.
    pub companions: bool,
    /// Where a whole copy of each file is kept.
    pub backup: Option<BackupPlace>,
    /// Leaves a session if less than this share of its context would go.
    pub least: Option<Share>,
}

impl<'a> Compacting<'a> {
    /// As `epitome compact SESSION` without options.
    pub fn new(config: &'a Config, run: &'a Run, counter: &'a dyn Counter) -> Compacting<'a> {
        let (agent, backup, least) = (None, None, None);
        Compacting { config, run, counter, agent, force: false, companions: true, backup, least }
    }
}

/// Who plans the compaction of each file of a session, and reports it.
pub trait Planner {
    /// What goes wrong.
    type Error: From<Error>;
    /// What is said of a file.
    type Report;

    /// Plans the compaction of a file.
    ///
    /// # Errors
    ///
    /// The planner's own. Nothing is written then.
    fn plan<'s>(
        &'s self,
        path: &Path,
        session: &'s Loaded<&'s FileSource>,
    ) -> Result<Planned<'s, &'s FileSource>, Self::Error>;

    /// What is said of a file before it is written.
    fn report(&self, path: &Path, planned: &Planned<'_, &FileSource>) -> Self::Report;

    /// Called when all is planned and before anything is written.
    ///
    /// # Errors
    ///
    /// The planner's own: nothing is written then.
    fn before_writing(&self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// An error of the library, met while something was written.
    fn writing(err: Error) -> Self::Error {
        err.into()
    }
}

/// A file of a session that was compacted, or needed nothing.
#[derive(Clone, Debug)]
pub struct CompactedFile<R> {
    /// What the planner said of it.
    pub report: R,
    /// The generation in the archive. None: nothing was written.
    pub generation: Option<Generation>,
    /// What its pack in the archive takes.
    pub pack: Bytes,
    /// The whole copy of it.
    pub backup: Option<PathBuf>,
}

/// A session that was compacted with what belongs to it.
#[derive(Clone, Debug)]
pub struct CompactedFamily<R> {
    /// Its files, the session first.
    pub files: Vec<CompactedFile<R>>,
    /// Whether it was left because too little of its context would go.
    pub too_little: bool,
}

/// Compacts a session and what belongs to it (sub-agents, logs) as one: everything is planned,
/// then archived and proved, then written, and if one file cannot be written none is.
///
/// # Errors
///
/// `InUse`, `HeldByAgent` and `Locked` with who has it; `ReadOnly`; `Refused` if a law would break;
/// what the planner, reading, the archive and the store say. Nothing is changed then, or the error
/// names what could not be taken back.
pub fn compact_family<P: Planner>(
    how: &Compacting<'_>,
    path: &Path,
    planner: &P,
) -> Result<CompactedFamily<P::Report>, P::Error> {
    let wanted = if how.companions { members(path) } else { vec![path.to_owned()] };
    let mut taken = Vec::new();
    for (n, member) in wanted.iter().enumerate() {
        let is_writable =
            place::open(member).and_then(|source| check_writable(&source, member, how.agent));
        match is_writable.and_then(|()| Taken::take(how.config, member, how.force)) {
            Ok(one) => taken.push(one),
            Err(err) if is_no_part(&err, n == 0) => {}
            Err(err) => return Err(err.into()),
        }
    }
    let mut sessions = Vec::new();
    for (n, one) in taken.iter().enumerate() {
        match Loaded::read(one.source(), how.agent) {
            Ok(session) => sessions.push((one, session)),
            Err(err) if is_no_part(&err, n == 0) => {}
            Err(err) => return Err(err.at(&one.path).into()),
        }
    }
    let mut planned = Vec::new();
    for (one, session) in &sessions {
        planned.push((*one, planner.plan(&one.path, session)?));
    }
    let reports = planned.iter().map(|(one, it)| planner.report(&one.path, it));
    let reports: Vec<P::Report> = reports.collect();
    let before: Tokens = planned.iter().map(|(_, it)| it.compaction.tokens_before).sum();
    let after: Tokens = planned.iter().map(|(_, it)| it.tokens_after).sum();
    let too_little = how.least.is_some_and(|least| !least.is_saved(before, after));
    let plans = if too_little { &[][..] } else { &planned[..] };
    let mut written = write(how, planner, plans)?.into_iter();
    let files = reports.into_iter().map(|report| {
        let Written { generation, pack, backup } = written.next().unwrap_or_default();
        CompactedFile { report, generation, pack, backup }
    });
    Ok(CompactedFamily { files: files.collect(), too_little })
}

/// A file and what is to become of it.
type Plan<'a> = (&'a Taken, Planned<'a, &'a FileSource>);

/// What was written of a file.
#[derive(Default)]
struct Written {
    generation: Option<Generation>,
    pack: Bytes,
    backup: Option<PathBuf>,
}

/// Archives and proves all that goes, then replaces the files.
fn write<P: Planner>(
    how: &Compacting<'_>,
    planner: &P,
    planned: &[Plan<'_>],
) -> Result<Vec<Written>, P::Error> {
    let mut changes = Vec::new();
    for (one, planned) in planned.iter().filter(|(_, planned)| !planned.is_empty()) {
        planned.check_laws(&one.path)?;
        let splices: Vec<Splice> = planned.splices.iter().map(|(it, _)| it.clone()).collect();
        one.file.check_comes_back(&splices)?;
        changes.push(one.change(splices, planned.way == Way::Rewrite).map_err(P::writing)?);
    }
    if changes.is_empty() {
        return Ok(Vec::new());
    }
    planner.before_writing()?;
    let written = archive_all(how, planned).map_err(P::writing)?;
    // The session last: it is what an agent reads first.
    changes.reverse();
    if let Err(err) = replace_all(how.config, &changes) {
        for ((one, _), made) in planned.iter().zip(&written) {
            if let Some(generation) = &made.generation {
                how.config.archive().withdraw_if_unused(generation, one.file.path());
            }
        }
        return Err(P::writing(err));
    }
    Ok(written)
}

/// Archives all that goes, or leaves the archive as it was.
fn archive_all(how: &Compacting<'_>, planned: &[Plan<'_>]) -> Result<Vec<Written>> {
    let whose = planned.first().map(|(one, it)| it.session.key(one.file.path()));
    let mut written: Vec<Written> = planned.iter().map(|_| Written::default()).collect();
    let mut parts = Vec::new();
    // What belongs to the session first: the session's generation names it.
    for (n, (one, planned)) in planned.iter().enumerate().rev() {
        if planned.is_empty() {
            continue;
        }
        let made = Made {
            at: how.config.now(),
            run: Some(how.run.clone()),
            part_of: whose.clone().filter(|_| n > 0),
            parts: if n == 0 { std::mem::take(&mut parts) } else { Vec::new() },
        };
        written[n] = match archive_one(how, one, planned, made) {
            Ok(done) => done,
            Err(err) => {
                let made = written.iter().filter_map(|it| it.generation.as_ref());
                made.for_each(|generation| how.config.archive().withdraw(generation));
                return Err(err);
            }
        };
        if let (true, Some(made)) = (n > 0, &written[n].generation) {
            parts.push(Part { key: made.key(), generation: made.number, before: made.before });
        }
    }
    Ok(written)
}

fn archive_one(
    how: &Compacting<'_>,
    one: &Taken,
    planned: &Planned<'_, &FileSource>,
    made: Made,
) -> Result<Written> {
    let key = planned.session.key(one.file.path());
    let keep = |place| keep_backup(how.config, one.source(), &key, place);
    let backup = how.backup.map(keep).transpose()?;
    let archive = how.config.archive();
    let generation = archive_generation(planned, one.file.path(), &archive, how.counter, made)?;
    let pack = archive.pack_len(&key, generation.number)?;
    Ok(Written { generation: Some(generation), pack, backup })
}

/// Plans each file in the way that its agent's sessions get by default.
struct AsUsual<'a> {
    config: &'a Config,
    recipe: &'a Recipe,
    counter: &'a dyn Counter,
}

impl Planner for AsUsual<'_> {
    type Error = Error;
    type Report = Compacted;

    fn plan<'s>(
        &'s self,
        _: &Path,
        session: &'s Loaded<&'s FileSource>,
    ) -> Result<Planned<'s, &'s FileSource>> {
        Planned::as_usual(session, self.recipe, self.counter)
    }

    fn report(&self, path: &Path, planned: &Planned<'_, &FileSource>) -> Compacted {
        Compacted::of(self.config, path, planned, self.counter)
    }
}

/// Compacts a session and what belongs to it, as `epitome compact SESSION` does. The session is the
/// first of what is returned.
///
/// # Errors
///
/// As [`compact_family`].
pub fn compact_session(
    config: &Config,
    path: &Path,
    recipe: &Recipe,
    counter: &dyn Counter,
    run: &Run,
) -> Result<Vec<Compacted>> {
    let how = Compacting::new(config, run, counter);
    let done = compact_family(&how, path, &AsUsual { config, recipe, counter })?;
    let number = |file: CompactedFile<Compacted>| Compacted {
        generation: file.generation.map(|it| it.number),
        archive_bytes: file.pack,
        ..file.report
    };
    Ok(done.files.into_iter().map(number).collect())
}
