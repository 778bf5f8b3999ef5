//! Compacts a session together with the files that belong to it.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use epitome_engine::stored::check_holds_a_summary;
use epitome_model::{Bytes, Counter, Source, Splice, Tokens};
use epitome_passes::Recipe;

use super::open::{OpenSession, SessionPart, is_no_part};
use super::quote::quote_of;
use super::replace::{LockedFile, check_writable, replace_all};
use super::report::{CompactReport, CompactedFile, UserFound};
use super::summary::{AskedModels, ModelEvent, SummaryFrom, WouldAsk};
use crate::archive::{CompactionInfo, Generation, Part, Run};
use crate::backup::{BackupPlace, keep_backup};
use crate::billed::calibration_of_plan;
use crate::compact::{CompactionPlan, Note, Way, apply_to, archive_generation, pack_len};
use crate::config::Config;
use crate::drive::catalogue;
use crate::error::{Error, ErrorKind, Result};
use crate::redact::Screen;
use crate::session::Loaded;
use crate::settings::Settings;
use crate::source::{FileSource, if_read};
use crate::watch::Share;

/// How sessions are compacted: the recipe and the options. [`run`](Compact::run) compacts a
/// session, [`plan`](Compact::plan) only says what would be done.
///
/// ```
/// use epitome::ops::{Compact, OpenSession};
///
/// # let home = tempfile::tempdir().expect("a folder");
/// # let config = epitome::Config::of_home(home.path());
/// # let path = home.path().join("session.jsonl");
/// # std::fs::write(&path, fixtures::get("pi", "pricing").bytes()).expect("a session");
/// # let run = config.begin_run("example");
/// # let recipe = epitome::built_in("epitome").expect("a recipe");
/// # let counter = epitome_tokens::Estimate::new();
/// let compact = Compact { force: true, ..Compact::new(&recipe, &counter, &run) };
/// let report = compact.run(&OpenSession::at(&config, &path))?;
/// assert!(report.file.disk_bytes.after < report.file.disk_bytes.before);
/// # Ok::<(), epitome::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Compact<'a> {
    /// The recipe: what is removed, and what is kept.
    pub recipe: &'a Recipe,
    /// The counter of tokens, for plans and reports.
    pub counter: &'a dyn Counter,
    /// The run of the caller's program that the compaction belongs to.
    pub run: &'a Run,
    /// How the edits are written. `None`: in the agent's own way if that is the agent's default and
    /// can express all edits, otherwise into the records.
    pub way: Option<Way>,
    /// A summary that replaces the beginning of the history; `None` if there is none. With a
    /// summary, sub-agents are not compacted: the summary of a session does not say what they did.
    pub summary: Option<SummaryFrom<'a>>,
    /// Whether to continue if another process has the session open.
    pub force: bool,
    /// Where a whole copy of each file is kept before it is replaced; `None` if nowhere.
    pub backup: Option<BackupPlace>,
    /// The path of a new file for the compacted session; the session itself is then unchanged, and
    /// the files that belong to it are not copied. `None`: the session is replaced.
    pub out: Option<&'a Path>,
    /// The least share of the context that must be removed; otherwise the session is skipped.
    pub least: Option<Share>,
    /// The window, in tokens, of the model that the sessions are sent to. `None`: the window in the
    /// table of models.
    pub window: Option<Tokens>,
}

/// A locked file and the plan for it.
type Plan<'a> = (&'a LockedFile, CompactionPlan<'a, &'a FileSource>);

/// The result of archiving a file.
#[derive(Default)]
struct Written {
    generation: Option<Generation>,
    pack: Bytes,
    backup: Option<PathBuf>,
}

impl<'a> Compact<'a> {
    /// The defaults of `epitome compact SESSION`, without options and settings.
    pub fn new(recipe: &'a Recipe, counter: &'a dyn Counter, run: &'a Run) -> Compact<'a> {
        let (way, summary, backup, out) = (None, None, None, None);
        let (least, window) = (None, None);
        Compact { recipe, counter, run, way, summary, force: false, backup, out, least, window }
    }

    /// The defaults of `epitome compact SESSION`, with the user's settings.
    pub fn with_settings(
        settings: &Settings,
        recipe: &'a Recipe,
        counter: &'a dyn Counter,
        run: &'a Run,
    ) -> Compact<'a> {
        let window = settings.values.live.window.map(Tokens);
        Compact { backup: settings.backup(), window, ..Compact::new(recipe, counter, run) }
    }

    /// Plans the compaction of a session and of the files that belong to it. Nothing is written.
    /// `look` is called with the path and plan of each file. A plan that would violate an invariant
    /// is not an error here: [`CompactReport::check`] returns it.
    ///
    /// ```
    /// use epitome::ops::{Compact, OpenSession, Outcome};
    ///
    /// # let home = tempfile::tempdir().expect("a folder");
    /// # let config = epitome::Config::of_home(home.path());
    /// # let path = home.path().join("session.jsonl");
    /// # std::fs::write(&path, fixtures::get("pi", "pricing").bytes()).expect("a session");
    /// # let run = config.begin_run("example");
    /// # let recipe = epitome::built_in("epitome").expect("a recipe");
    /// # let counter = epitome_tokens::Estimate::new();
    /// let session = OpenSession::at(&config, &path);
    /// let mut edits = 0;
    /// let report = Compact::new(&recipe, &counter, &run)
    ///     .plan(&session, |_path, plan| edits += plan.compaction.edits.len())?;
    /// report.check()?;
    /// assert!(edits > 0 && report.dry_run);
    /// assert_eq!(report.file.outcome, Outcome::Planned);
    /// # Ok::<(), epitome::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `ReadOnly` if sessions of this format are never written; the errors of opening, reading and
    /// planning.
    pub fn plan(
        &self,
        session: &OpenSession<'_>,
        mut look: impl FnMut(&Path, &CompactionPlan<'_, FileSource>),
    ) -> Result<CompactReport> {
        let (config, path) = (session.config, session.path());
        if self.out.is_some() {
            return self.plan_loaded(config, path, session.loaded()?, look);
        }
        session.place().check_writable()?;
        let mut report = self.plan_loaded(config, path, session.loaded()?, &mut look)?;
        report.file.in_use = session.users().iter().map(UserFound::from_user).collect();
        for part in self.members(session)?.into_iter().skip(1) {
            part.place.check_writable()?;
            let loaded = match part.read(session.agent) {
                Ok(loaded) => loaded,
                Err(err) if is_no_part(&err) => continue,
                Err(err) => return Err(err),
            };
            let mut file = self.plan_loaded(config, &part.path, &loaded, &mut look)?.file;
            file.is_conversation = part.place.is_conversation();
            file.quote = None;
            report.files.push(file);
        }
        report.too_little = self.is_too_little(&report);
        Ok(report)
    }

    /// Plans the compaction of a session that was read already, without the files that belong to
    /// it. `path` is the session's name in the report; the session need not be a file.
    ///
    /// ```
    /// use epitome::Loaded;
    /// use epitome::ops::Compact;
    /// use epitome_formats::session;
    ///
    /// # let home = tempfile::tempdir().expect("a folder");
    /// # let config = epitome::Config::of_home(home.path());
    /// # let path = home.path().join("session.jsonl");
    /// # std::fs::write(&path, fixtures::get("pi", "pricing").bytes()).expect("a session");
    /// # let run = config.begin_run("example");
    /// # let recipe = epitome::built_in("epitome").expect("a recipe");
    /// # let counter = epitome_tokens::Estimate::new();
    /// let bytes = std::fs::read(&path).expect("a session");
    /// let loaded = session::Loaded::read(bytes, None)?;
    /// let compact = Compact::new(&recipe, &counter, &run);
    /// let report = compact.plan_loaded(&config, "-".as_ref(), &loaded, |_, _| {})?;
    /// assert_eq!(report.file.session, "-");
    /// assert!(report.file.context_tokens.after < report.file.context_tokens.before);
    /// # Ok::<(), epitome::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`plan`](Compact::plan).
    pub fn plan_loaded<S: Source>(
        &self,
        config: &Config,
        path: &Path,
        session: &Loaded<S>,
        mut look: impl FnMut(&Path, &CompactionPlan<'_, S>),
    ) -> Result<CompactReport> {
        let mut models = None;
        let planned = self.planned(config, path, session, &mut models)?;
        look(path, &planned);
        let mut file = self.report_of(config, path, &planned);
        file.archive_bytes = if_read(&session.source, pack_len(&planned, path, self.counter))?;
        let mut report = self.report(file, models);
        report.dry_run = true;
        report.out = self.out.map(Path::to_owned);
        report.too_little = self.is_too_little(&report);
        Ok(report)
    }

    /// Writes a compacted copy of a session that was read already to the new file `out`, without
    /// the files that belong to the session. `path` is the session's name in the report.
    ///
    /// ```
    /// use epitome::ops::Compact;
    /// use epitome_formats::Loaded;
    ///
    /// # let home = tempfile::tempdir().expect("a folder");
    /// # let config = epitome::Config::of_home(home.path());
    /// # let run = config.begin_run("example");
    /// # let recipe = epitome::built_in("epitome").expect("a recipe");
    /// # let counter = epitome_tokens::Estimate::new();
    /// # let bytes = fixtures::get("pi", "pricing").bytes();
    /// let loaded = Loaded::read(bytes, None)?;
    /// let out = home.path().join("copy.jsonl");
    /// let compact = Compact::new(&recipe, &counter, &run);
    /// let report = compact.copy_loaded(&config, "-".as_ref(), &loaded, &out)?;
    /// assert!(report.file.context_tokens.after < report.file.context_tokens.before);
    /// assert!(out.exists());
    /// // A file that exists is never replaced.
    /// let refused = compact.copy_loaded(&config, "-".as_ref(), &loaded, &out);
    /// assert_eq!(refused.unwrap_err().kind(), epitome::ErrorKind::Exists);
    /// # Ok::<(), epitome::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Invariant` if the compaction would violate one; `Exists` if `out` exists; the errors of
    /// planning, archiving and writing.
    pub fn copy_loaded<S: Source>(
        &self,
        config: &Config,
        path: &Path,
        session: &Loaded<S>,
        out: &Path,
    ) -> Result<CompactReport> {
        let mut models = None;
        let planned = self.planned(config, path, session, &mut models)?;
        planned.check_invariants(path)?;
        if out.symlink_metadata().is_ok() {
            let what = "there is something of that name already";
            return Err(Error::new(ErrorKind::Exists, what).at(out));
        }
        let archive = config.archive();
        let made =
            CompactionInfo { run: Some(self.run.clone()), ..CompactionInfo::from(config.now()) };
        let generation =
            apply_to(&planned, out, &archive, self.counter, made).map_err(Error::while_writing)?;
        let mut file = self.report_of(config, path, &planned);
        file.set_done(&generation, archive.pack_len(&generation.key(), generation.number)?);
        let mut report = self.report(file, models);
        report.run = Some(self.run.id.clone());
        report.out = Some(out.to_owned());
        Ok(report)
    }

    /// Compacts a session and the files that belong to it in one transaction: everything is
    /// planned, then archived and proved, then written. If one file cannot be written, none is. If
    /// there is nothing to do, nothing is written, and the report [says
    /// so](CompactReport::is_nothing).
    ///
    /// # Errors
    ///
    /// `InUse`, `HeldByAgent` or `Locked`, with the process that has the session; `ReadOnly` if its
    /// format is never written; `Invariant` if the compaction would violate one; the errors of
    /// planning, reading, archiving and replacing. The session is unchanged then, or the error
    /// names what could not be undone.
    ///
    /// ```
    /// use epitome::ErrorKind;
    /// use epitome::ops::{Compact, OpenSession};
    ///
    /// # let home = tempfile::tempdir().expect("a folder");
    /// # let config = epitome::Config::of_home(home.path());
    /// # let path = home.path().join("session.jsonl");
    /// # std::fs::write(&path, fixtures::get("pi", "pricing").bytes()).expect("a session");
    /// # let run = config.begin_run("example");
    /// # let recipe = epitome::built_in("epitome").expect("a recipe");
    /// # let counter = epitome_tokens::Estimate::new();
    /// let missing = OpenSession::at(&config, "no-such-session.jsonl".as_ref());
    /// let err = Compact::new(&recipe, &counter, &run).run(&missing).expect_err("no file");
    /// assert_eq!(err.kind(), ErrorKind::NotFound);
    /// # Ok::<(), epitome::Error>(())
    /// ```
    pub fn run(&self, session: &OpenSession<'_>) -> Result<CompactReport> {
        self.run_after(session, || Ok(()))
    }

    /// Like [`run`](Compact::run). When everything is planned and there is something to write,
    /// `before_writing` is called, for example to ask the user. If it returns an error, nothing is
    /// written.
    ///
    /// ```
    /// use epitome::ops::{Compact, OpenSession};
    /// use epitome::{Error, ErrorKind};
    ///
    /// # let home = tempfile::tempdir().expect("a folder");
    /// # let config = epitome::Config::of_home(home.path());
    /// # let path = home.path().join("session.jsonl");
    /// # std::fs::write(&path, fixtures::get("pi", "pricing").bytes()).expect("a session");
    /// # let run = config.begin_run("example");
    /// # let recipe = epitome::built_in("epitome").expect("a recipe");
    /// # let counter = epitome_tokens::Estimate::new();
    /// let session = OpenSession::at(&config, &path);
    /// let refused = Compact::new(&recipe, &counter, &run)
    ///     .run_after(&session, || Err(Error::new(ErrorKind::Refused, "the user said no")));
    /// assert!(refused.is_err());
    /// assert_eq!(std::fs::read(&path).expect("a file"), fixtures::get("pi", "pricing").bytes());
    /// # Ok::<(), epitome::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`run`](Compact::run), and the error of `before_writing`.
    pub fn run_after<E: From<Error>>(
        &self,
        session: &OpenSession<'_>,
        before_writing: impl FnOnce() -> Result<(), E>,
    ) -> Result<CompactReport, E> {
        if let Some(out) = self.out {
            let copied = self.copy_loaded(session.config, session.path(), session.loaded()?, out);
            return Ok(copied?);
        }
        let taken = self.take(session)?;
        let mut sessions = Vec::new();
        for (n, one) in taken.iter().enumerate() {
            match Loaded::read(one.source(), session.agent) {
                Ok(loaded) => sessions.push((one, loaded)),
                Err(err) if n > 0 && is_no_part(&err) => {}
                Err(err) => return Err(err.at(&one.path).into()),
            }
        }
        let (mut planned, mut models) = (Vec::new(), None);
        for (one, loaded) in &sessions {
            let plan = self.planned(session.config, &one.path, loaded, &mut models)?;
            plan.check_invariants(&one.path)?;
            planned.push((*one, plan));
        }
        let mut files: Vec<CompactedFile> = planned
            .iter()
            .map(|(one, plan)| CompactedFile {
                is_conversation: one.is_conversation,
                ..self.report_of(session.config, &one.path, plan)
            })
            .collect();
        let mut report = self.report(files.remove(0), models);
        files.iter_mut().for_each(|file| file.quote = None);
        report.files = files;
        report.too_little = self.is_too_little(&report);
        if report.too_little {
            return Ok(report);
        }
        let written = self.write(session.config, &planned, before_writing)?;
        let files = std::iter::once(&mut report.file).chain(&mut report.files);
        for (file, Written { generation, pack, backup }) in files.zip(written) {
            file.backup = backup;
            if let Some(generation) = generation {
                file.set_done(&generation, pack);
                report.run = Some(self.run.id.clone());
            }
        }
        Ok(report)
    }

    /// Estimates the questions that a model would be asked for a summary. Calls no model and writes
    /// nothing.
    ///
    /// # Errors
    ///
    /// `Refused` if no summary can be written into the session; the errors of choosing the model.
    pub fn forecast<S: Source>(
        &self,
        config: &Config,
        path: &Path,
        session: &Loaded<S>,
        request: &super::ModelRequest,
    ) -> Result<WouldAsk> {
        check_holds_a_summary(session, self.recipe, self.counter)
            .map_err(|err| err.with_path(path))?;
        request
            .forecast(config, self.counter, session, self.recipe, path)
            .map_err(|err| err.with_path(path))
    }

    /// Locks each file of a session against changes by other processes.
    fn take(&self, session: &OpenSession<'_>) -> Result<Vec<LockedFile>> {
        let mut taken = Vec::new();
        for (n, part) in self.members(session)?.into_iter().enumerate() {
            let one = check_writable(part, session.agent)
                .and_then(|()| LockedFile::take(session.config, part, None, self.force));
            match one {
                Ok(one) => taken.push(one),
                Err(err) if n > 0 && is_no_part(&err) => {}
                Err(err) => return Err(err),
            }
        }
        Ok(taken)
    }

    /// The files to compact, the session first.
    fn members<'s>(&self, session: &'s OpenSession<'_>) -> Result<Vec<&'s SessionPart>> {
        if self.summary.is_some() {
            return Ok(vec![session.own()]);
        }
        Ok(session.members()?.collect())
    }

    /// Plans the compaction of one file. `models` is set if models are called for it.
    fn planned<'s, S: Source>(
        &self,
        config: &Config,
        path: &Path,
        session: &'s Loaded<S>,
        models: &mut Option<AskedModels>,
    ) -> Result<CompactionPlan<'s, S>> {
        let planned = match self.summary {
            None => self.planned_by_recipe(config, session),
            Some(SummaryFrom::Text(text)) => {
                CompactionPlan::summarised(text, session, self.recipe, self.counter)
            }
            Some(SummaryFrom::Model { request, on }) => {
                let on = |event: ModelEvent| {
                    if let ModelEvent::Asked { models: asked, .. } = &event {
                        *models = Some(asked.clone());
                    }
                    on(path, event);
                };
                check_holds_a_summary(session, self.recipe, self.counter)
                    .and_then(|()| request.written(config, self.counter, session, self.recipe, on))
                    .and_then(|text| {
                        CompactionPlan::summarised(&text, session, self.recipe, self.counter)
                    })
            }
        };
        planned.map_err(|err| err.with_path(path))
    }

    fn planned_by_recipe<'s, S: Source>(
        &self,
        config: &Config,
        session: &'s Loaded<S>,
    ) -> Result<CompactionPlan<'s, S>> {
        let (recipe, note) = self.in_window(config, session)?;
        let way = match self.way {
            // A copy is made to be small, so the edits are written into the records.
            None if self.out.is_some() => Some(Way::Rewrite),
            way => way,
        };
        let mut planned = match way {
            None => CompactionPlan::as_usual(session, &recipe, self.counter)?,
            Some(way) => CompactionPlan::by(way, session, &recipe, self.counter)?,
        };
        planned.notes.extend(note);
        Ok(planned)
    }

    /// The recipe, with percentages converted for the window of the session's model if the recipe
    /// has any; and a note if that window is unknown.
    fn in_window<S: Source>(
        &self,
        config: &Config,
        session: &Loaded<S>,
    ) -> Result<(Cow<'a, Recipe>, Option<Note>)> {
        if !self.recipe.asks_for_window() {
            return Ok((Cow::Borrowed(self.recipe), None));
        }
        let mut models =
            session.transcript.entries().filter_map(|(_, entry)| entry.model.as_deref());
        let model = models.next_back();
        let window = match (self.window, model) {
            (Some(window), _) => Some(window),
            (None, Some(model)) => catalogue(config)?.named(model).map(|known| known.window),
            (None, None) => None,
        };
        Ok(match window {
            Some(window) => (Cow::Owned(self.recipe.clone().in_window(window)), None),
            None => {
                let note = Note::NoWindow { model: model.map(str::to_owned) };
                (Cow::Borrowed(self.recipe), Some(note))
            }
        })
    }

    fn report_of<S: Source>(
        &self,
        config: &Config,
        path: &Path,
        planned: &CompactionPlan<'_, S>,
    ) -> CompactedFile {
        let mut file = CompactedFile::from_plan(path, planned, self.counter);
        let fit = calibration_of_plan(planned, config, path, self.counter);
        // An error in the user's table is reported where prices are needed.
        let prices = catalogue(config).ok();
        file.quote =
            prices.and_then(|prices| quote_of(&prices, planned, fit, self.counter, config.now()));
        file.set_billed(fit);
        file.hide_secrets(&Screen::new(config));
        file
    }

    fn report(&self, file: CompactedFile, models: Option<AskedModels>) -> CompactReport {
        CompactReport {
            file,
            recipe: self.recipe.name.clone(),
            counter: self.counter.name(),
            dry_run: false,
            out: None,
            run: None,
            too_little: false,
            losses: None,
            models,
            files: Vec::new(),
        }
    }

    fn is_too_little(&self, report: &CompactReport) -> bool {
        let tokens = report.tokens();
        self.least.is_some_and(|least| !least.is_saved(tokens.before, tokens.after))
    }

    /// Archives and proves everything that is removed, then replaces the files.
    fn write<E: From<Error>>(
        &self,
        config: &Config,
        planned: &[Plan<'_>],
        before_writing: impl FnOnce() -> Result<(), E>,
    ) -> Result<Vec<Written>, E> {
        let mut changes = Vec::new();
        for (one, planned) in planned.iter().filter(|(_, planned)| !planned.is_empty()) {
            let splices: Vec<Splice> = planned.splices.iter().map(|(it, _)| it.clone()).collect();
            one.file.check_comes_back(&splices)?;
            let change = one.change(splices, planned.way == Way::Rewrite);
            changes.push(change.map_err(Error::while_writing)?);
        }
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        before_writing()?;
        let written = self.archive_all(config, planned).map_err(Error::while_writing)?;
        // The session itself is replaced last, because agents read it first.
        changes.reverse();
        if let Err(err) = replace_all(config, &changes) {
            for ((one, _), made) in planned.iter().zip(&written) {
                if let Some(generation) = &made.generation {
                    config.archive().withdraw_if_unused(generation, one.file.path());
                }
            }
            return Err(err.while_writing().into());
        }
        let made = written.iter().filter_map(|it| it.generation.as_ref());
        made.for_each(|generation| config.archive().remove_repeated(generation));
        Ok(written)
    }

    /// Archives everything that is removed. If that fails, the archive is as it was before.
    fn archive_all(&self, config: &Config, planned: &[Plan<'_>]) -> Result<Vec<Written>> {
        let whose =
            planned.first().map(|(one, it)| crate::session::key_of(it.session, one.file.path()));
        let mut written: Vec<Written> = planned.iter().map(|_| Written::default()).collect();
        let mut parts = Vec::new();
        // The other files are archived first, because the session's generation names their
        // generations.
        for (n, (one, planned)) in planned.iter().enumerate().rev() {
            if planned.is_empty() {
                continue;
            }
            let made = CompactionInfo {
                at: config.now(),
                run: Some(self.run.clone()),
                part_of: whose.clone().filter(|_| n > 0),
                parts: if n == 0 { std::mem::take(&mut parts) } else { Vec::new() },
            };
            written[n] = match self.archive_one(config, one, planned, made) {
                Ok(done) => done,
                Err(err) => {
                    let made = written.iter().filter_map(|it| it.generation.as_ref());
                    made.for_each(|generation| config.archive().withdraw(generation));
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
        &self,
        config: &Config,
        one: &LockedFile,
        planned: &CompactionPlan<'_, &FileSource>,
        made: CompactionInfo,
    ) -> Result<Written> {
        let key = crate::session::key_of(planned.session, one.file.path());
        let keep = |place| keep_backup(config, one.source(), &key, place);
        let backup = self.backup.map(keep).transpose()?;
        let archive = config.archive();
        let generation =
            archive_generation(planned, one.file.path(), &archive, self.counter, made)?;
        let pack = archive.pack_len(&key, generation.number)?;
        Ok(Written { generation: Some(generation), pack, backup })
    }
}
