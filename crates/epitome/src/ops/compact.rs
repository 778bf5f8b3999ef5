//! Compacts a session together with the files that belong to it.
//!
//! [`Compact::run`] locks and reads all files, plans each, archives what will be removed and proves
//! that it can be restored, and then replaces the files. The plan of a file is a
//! [`PreparedCompaction`]: a compaction that was already carried out in memory. What remains is to
//! archive the removed bytes and to write the file. [`Compact::plan`] is a dry run: it plans all
//! files without locks, and writes nothing.
//!
//! The module `crate::compact` carries out the plan of one file. The plan is made by
//! `epitome_engine::stored`.

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
use super::window::WindowLimits;
use crate::archive::{CompactionInfo, Generation, PartGeneration, Run};
use crate::backup::{BackupPlace, keep_backup};
use crate::billed::calibration_of_plan;
use crate::compact::{Note, PreparedCompaction, Way, apply_to, archive_generation, pack_len};
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
/// # let config = epitome::Config::from_home(home.path());
/// # let path = home.path().join("session.jsonl");
/// # std::fs::write(&path, fixtures::get("pi", "pricing").bytes()).expect("a session");
/// # let run = config.begin_run("example");
/// # let recipe = epitome::built_in("epitome").expect("a recipe");
/// # let counter = epitome_tokens::Estimate::new();
/// let compact = Compact { force: true, ..Compact::new(&recipe, &counter, &run) };
/// let report = compact.run(&OpenSession::new(&config, &path))?;
/// assert!(report.file.disk_bytes.after < report.file.disk_bytes.before);
/// # Ok::<(), epitome::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Compact<'a> {
    /// The recipe: what is removed, and what is kept.
    pub recipe: &'a Recipe,
    /// The counter of tokens, for plans and reports.
    pub counter: &'a dyn Counter,
    /// The run that the compaction belongs to: one invocation of the caller's program.
    pub run: &'a Run,
    /// How the edits are written: by rewriting records, or in the agent's own way, which leaves out
    /// the edits that it cannot express. `None`: a copy ([`out`](Compact::out)) is rewritten; a
    /// session is compacted in the agent's own way if that is the agent's default and possible in
    /// this session, and rewritten otherwise. Not used with a [`summary`](Compact::summary).
    pub way: Option<Way>,
    /// A summary that replaces the beginning of the history; `None` if there is none. With a
    /// summary, only the session's own file is compacted: the summary does not say what sub-agents
    /// did.
    pub summary: Option<SummaryFrom<'a>>,
    /// Whether to continue if another process uses the session. If the agent holds its own lock on
    /// the session, the compaction is refused all the same.
    pub force: bool,
    /// Where a whole copy of each file is kept before it is replaced. `None`: no copy is kept.
    pub backup: Option<BackupPlace>,
    /// The path of a new file for the compacted session; the session itself is then unchanged, and
    /// the files that belong to it are not copied. `None`: the session is replaced.
    pub out: Option<&'a Path>,
    /// The minimum share of the context that must be removed; otherwise the session is skipped. A
    /// copy ([`out`](Compact::out)) is written in any case.
    pub least: Option<Share>,
    /// The window, in tokens, of the model that the sessions are sent to. `None`: the window in the
    /// table of models.
    pub window: Option<Tokens>,
}

/// A locked file and the plan for it.
type LockedPlan<'a> = (&'a LockedFile, PreparedCompaction<'a, &'a FileSource>);

/// The result of archiving the removed bytes of one file. It is empty for a file without edits.
#[derive(Default)]
struct ArchivedFile {
    generation: Option<Generation>,
    /// The length of the generation's pack.
    pack: Bytes,
    backup: Option<PathBuf>,
}

impl<'a> Compact<'a> {
    /// The defaults of `epitome compact SESSION`, without options and settings.
    pub fn new(recipe: &'a Recipe, counter: &'a dyn Counter, run: &'a Run) -> Compact<'a> {
        let way = None;
        let summary = None;
        let backup = None;
        let out = None;
        let least = None;
        let window = None;
        Compact { recipe, counter, run, way, summary, force: false, backup, out, least, window }
    }

    /// The defaults of `epitome compact SESSION`, with the backup and the window of the user's
    /// settings.
    pub fn with_settings(
        settings: &Settings,
        recipe: &'a Recipe,
        counter: &'a dyn Counter,
        run: &'a Run,
    ) -> Compact<'a> {
        let window = settings.values.live.window.map(Tokens);
        Compact { backup: settings.backup(), window, ..Compact::new(recipe, counter, run) }
    }

    /// Plans the compaction of a session and of the files that belong to it; with
    /// [`out`](Compact::out) or a [`summary`](Compact::summary), of the session's own file alone.
    /// Nothing is written. `look` is called with the path and plan of each file. A plan that would
    /// violate an invariant is not an error here: [`CompactReport::check`] returns it.
    ///
    /// If a model is to write the summary, planning calls this model too;
    /// [`forecast`](Compact::forecast) calls none.
    ///
    /// ```
    /// use epitome::ops::{Compact, OpenSession, Outcome};
    ///
    /// # let home = tempfile::tempdir().expect("a folder");
    /// # let config = epitome::Config::from_home(home.path());
    /// # let path = home.path().join("session.jsonl");
    /// # std::fs::write(&path, fixtures::get("pi", "pricing").bytes()).expect("a session");
    /// # let run = config.begin_run("example");
    /// # let recipe = epitome::built_in("epitome").expect("a recipe");
    /// # let counter = epitome_tokens::Estimate::new();
    /// let session = OpenSession::new(&config, &path);
    /// let mut edits = 0;
    /// let report = Compact::new(&recipe, &counter, &run)
    ///     .plan(&session, |_path, plan| edits += plan.plan.edits.len())?;
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
        mut look: impl FnMut(&Path, &PreparedCompaction<'_, FileSource>),
    ) -> Result<CompactReport> {
        let config = session.config;
        let path = session.path();
        if self.out.is_some() {
            return self.plan_loaded(config, path, session.load()?, look);
        }
        session.place().check_writable()?;
        let loaded = rayon::in_place_scope(|scope| {
            scope.spawn(|_| self.load_vocabulary());
            session.load()
        })?;
        let mut report = self.plan_loaded(config, path, loaded, &mut look)?;
        report.file.in_use = session.users().iter().map(UserFound::from_user).collect();
        for part in self.files(session)?.into_iter().skip(1) {
            part.place.check_writable()?;
            let loaded = match part.read(session.agent) {
                Ok(loaded) => loaded,
                Err(err) if is_no_part(&err) => continue,
                Err(err) => return Err(err),
            };
            let mut file = self.plan_loaded(config, &part.path, &loaded, &mut look)?.file;
            file.is_conversation = part.place.is_conversation();
            // The quote, a predicted cost, is about the next requests of the session itself.
            file.quote = None;
            report.files.push(file);
        }
        report.is_below_minimum = self.is_too_little(&report);
        Ok(report)
    }

    /// Lets the counter load its vocabulary. This is done while another core reads the session,
    /// because it takes as long as reading 20 MB of a session.
    fn load_vocabulary(&self) {
        let _ = self.counter.count("a");
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
    /// # let config = epitome::Config::from_home(home.path());
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
        mut look: impl FnMut(&Path, &PreparedCompaction<'_, S>),
    ) -> Result<CompactReport> {
        let mut models = None;
        let plan = self.plan_file(config, path, session, &mut models)?;
        look(path, &plan);
        let (mut file, pack) = rayon::join(
            || self.file_report(config, path, &plan),
            || pack_len(&plan, path, self.counter),
        );
        file.archive_bytes = if_read(&session.source, pack)?;
        let mut report = self.session_report(file, models);
        report.dry_run = true;
        report.out = self.out.map(Path::to_owned);
        report.is_below_minimum = self.is_too_little(&report);
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
    /// # let config = epitome::Config::from_home(home.path());
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
        let plan = self.plan_file(config, path, session, &mut models)?;
        plan.check_invariants(path)?;
        if out.symlink_metadata().is_ok() {
            let what = "there is something of that name already";
            return Err(Error::new(ErrorKind::Exists, what).at(out));
        }
        let archive = config.archive();
        let info =
            CompactionInfo { run: Some(self.run.clone()), ..CompactionInfo::from(config.now()) };
        let generation =
            apply_to(&plan, out, &archive, self.counter, info).map_err(Error::while_writing)?;
        let mut file = self.file_report(config, path, &plan);
        file.set_done(&generation, archive.pack_len(&generation.key(), generation.number)?);
        let mut report = self.session_report(file, models);
        report.run = Some(self.run.id.clone());
        report.out = Some(out.to_owned());
        Ok(report)
    }

    /// Compacts a session and the files that belong to it in one transaction: everything is
    /// planned, then archived and proved, then written. If one file cannot be replaced, those
    /// replaced before it get their old content back. Nothing is written if there is nothing to do
    /// ([`CompactReport::is_nothing`]), or if less than the minimum [`least`](Compact::least) would
    /// be removed ([`CompactReport::is_below_minimum`]). With [`out`](Compact::out), a copy is
    /// written instead, as [`copy_loaded`](Compact::copy_loaded) does.
    ///
    /// # Errors
    ///
    /// `InUse`, `HeldByAgent` or `Locked` if another process uses the session; `ReadOnly` if the
    /// session's format is never written; `Invariant` if the compaction would violate one; the
    /// errors of planning, reading, archiving and replacing. After an error the session is
    /// unchanged, or the error names the files that did not get their old content back.
    ///
    /// ```
    /// use epitome::ErrorKind;
    /// use epitome::ops::{Compact, OpenSession};
    ///
    /// # let home = tempfile::tempdir().expect("a folder");
    /// # let config = epitome::Config::from_home(home.path());
    /// # let path = home.path().join("session.jsonl");
    /// # std::fs::write(&path, fixtures::get("pi", "pricing").bytes()).expect("a session");
    /// # let run = config.begin_run("example");
    /// # let recipe = epitome::built_in("epitome").expect("a recipe");
    /// # let counter = epitome_tokens::Estimate::new();
    /// let missing = OpenSession::new(&config, "no-such-session.jsonl".as_ref());
    /// let err = Compact::new(&recipe, &counter, &run).run(&missing).expect_err("no file");
    /// assert_eq!(err.kind(), ErrorKind::NotFound);
    /// # Ok::<(), epitome::Error>(())
    /// ```
    pub fn run(&self, session: &OpenSession<'_>) -> Result<CompactReport> {
        self.run_after(session, || Ok(()))
    }

    /// Like [`run`](Compact::run). When everything is planned and there is something to write,
    /// `before_writing` is called, for example to ask the user. If `before_writing` returns an
    /// error, nothing is written. A copy ([`out`](Compact::out)) is written without this call,
    /// because it replaces nothing.
    ///
    /// ```
    /// use epitome::ops::{Compact, OpenSession};
    /// use epitome::{Error, ErrorKind};
    ///
    /// # let home = tempfile::tempdir().expect("a folder");
    /// # let config = epitome::Config::from_home(home.path());
    /// # let path = home.path().join("session.jsonl");
    /// # std::fs::write(&path, fixtures::get("pi", "pricing").bytes()).expect("a session");
    /// # let run = config.begin_run("example");
    /// # let recipe = epitome::built_in("epitome").expect("a recipe");
    /// # let counter = epitome_tokens::Estimate::new();
    /// let session = OpenSession::new(&config, &path);
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
            let copied = self.copy_loaded(session.config, session.path(), session.load()?, out);
            return Ok(copied?);
        }
        let locked_files = self.lock_files(session)?;
        let mut sessions = Vec::new();
        for (n, locked) in locked_files.iter().enumerate() {
            match Loaded::read(locked.source(), session.agent) {
                Ok(loaded) => sessions.push((locked, loaded)),
                Err(err) if n > 0 && is_no_part(&err) => {}
                Err(err) => return Err(err.at(&locked.path).into()),
            }
        }
        let mut plans = Vec::new();
        let mut models = None;
        for (locked, loaded) in &sessions {
            let plan = self.plan_file(session.config, &locked.path, loaded, &mut models)?;
            plan.check_invariants(&locked.path)?;
            plans.push((*locked, plan));
        }
        let mut files: Vec<CompactedFile> = plans
            .iter()
            .map(|(locked, plan)| CompactedFile {
                is_conversation: locked.is_conversation,
                ..self.file_report(session.config, &locked.path, plan)
            })
            .collect();
        let mut report = self.session_report(files.remove(0), models);
        files.iter_mut().for_each(|file| file.quote = None);
        report.files = files;
        report.is_below_minimum = self.is_too_little(&report);
        if report.is_below_minimum {
            return Ok(report);
        }
        let archived = self.write(session.config, &plans, before_writing)?;
        let files = std::iter::once(&mut report.file).chain(&mut report.files);
        for (file, ArchivedFile { generation, pack, backup }) in files.zip(archived) {
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
    /// The error that says why no summary can be written into the session, for example `Refused`;
    /// the errors of reading the session and of choosing the model.
    pub fn forecast<S: Source>(
        &self,
        config: &Config,
        path: &Path,
        session: &Loaded<S>,
        request: &super::ModelRequest,
    ) -> Result<WouldAsk> {
        check_holds_a_summary(session, self.recipe, self.counter)
            .map_err(|err| err.with_default_path(path))?;
        request
            .forecast(config, self.counter, session, self.recipe, path)
            .map_err(|err| err.with_default_path(path))
    }

    /// Locks the files to compact. A file that belongs to the session is left out if it does not
    /// exist or is no session.
    fn lock_files(&self, session: &OpenSession<'_>) -> Result<Vec<LockedFile>> {
        let mut locked_files = Vec::new();
        for (n, part) in self.files(session)?.into_iter().enumerate() {
            let locked = check_writable(part, session.agent)
                .and_then(|()| LockedFile::lock(session.config, part, None, self.force));
            match locked {
                Ok(locked) => locked_files.push(locked),
                Err(err) if n > 0 && is_no_part(&err) => {}
                Err(err) => return Err(err),
            }
        }
        Ok(locked_files)
    }

    /// The files to compact, the session's own file first. If a summary replaces the session's
    /// history, only its own file.
    fn files<'s>(&self, session: &'s OpenSession<'_>) -> Result<Vec<&'s SessionPart>> {
        if self.summary.is_some() {
            return Ok(vec![session.own()]);
        }
        Ok(session.members()?.collect())
    }

    /// Plans the compaction of one file. If models are called to write the summary, `models` is set
    /// to these calls.
    pub(super) fn plan_file<'s, S: Source>(
        &self,
        config: &Config,
        path: &Path,
        session: &'s Loaded<S>,
        models: &mut Option<AskedModels>,
    ) -> Result<PreparedCompaction<'s, S>> {
        let plan = match self.summary {
            None => self.plan_by_recipe(config, session),
            Some(SummaryFrom::Text(text)) => {
                PreparedCompaction::with_summary(text, session, self.recipe, self.counter)
            }
            Some(SummaryFrom::Model { request, on }) => {
                let on = |event: ModelEvent| {
                    if let ModelEvent::Asked { models: asked, .. } = &event {
                        *models = Some(asked.clone());
                    }
                    on(path, event);
                };
                check_holds_a_summary(session, self.recipe, self.counter)
                    .and_then(|()| request.write(config, self.counter, session, self.recipe, on))
                    .and_then(|text| {
                        PreparedCompaction::with_summary(&text, session, self.recipe, self.counter)
                    })
            }
        };
        plan.map_err(|err| err.with_default_path(path))
    }

    fn plan_by_recipe<'s, S: Source>(
        &self,
        config: &Config,
        session: &'s Loaded<S>,
    ) -> Result<PreparedCompaction<'s, S>> {
        let (recipe, note) = self.recipe_in_window(config, session)?;
        let way = match self.way {
            // A copy is made to be small, so the edits are written into the records.
            None if self.out.is_some() => Some(Way::Rewrite),
            way => way,
        };
        let mut plan = match way {
            None => PreparedCompaction::in_default_way(session, &recipe, self.counter)?,
            Some(way) => PreparedCompaction::in_way(way, session, &recipe, self.counter)?,
        };
        plan.notes.extend(note);
        Ok(plan)
    }

    /// The recipe, with its percentages of a window converted to tokens. If the window is not
    /// known, the recipe is unchanged, and the note says so.
    fn recipe_in_window<S: Source>(
        &self,
        config: &Config,
        session: &Loaded<S>,
    ) -> Result<(Cow<'a, Recipe>, Option<Note>)> {
        if !self.recipe.asks_for_window() {
            return Ok((Cow::Borrowed(self.recipe), None));
        }
        Ok(match self.window_of(config, session)? {
            Some(window) => (Cow::Owned(self.recipe.clone().with_window(window)), None),
            None => {
                let note = Note::NoWindow { model: last_model(session).map(str::to_owned) };
                (Cow::Borrowed(self.recipe), Some(note))
            }
        })
    }

    /// The window in which a session is sent: [`window`](Compact::window) or, if that is not set,
    /// the window of the session's model. `None` if neither is known.
    fn window_of<S>(&self, config: &Config, session: &Loaded<S>) -> Result<Option<Tokens>> {
        match (self.window, last_model(session)) {
            (Some(window), _) => Ok(Some(window)),
            (None, Some(model)) => Ok(catalogue(config)?.find(model).map(|known| known.window)),
            (None, None) => Ok(None),
        }
    }

    /// What the percentages of the recipe amount to in the window of a session. `None` if the
    /// recipe has none, if the window is not known, and for a summary, which has no limits.
    fn window_limits<S>(&self, config: &Config, session: &Loaded<S>) -> Option<WindowLimits> {
        if self.summary.is_some() || !self.recipe.asks_for_window() {
            return None;
        }
        let window = self.window_of(config, session).ok()??;
        WindowLimits::from_recipe(self.recipe, window)
    }

    /// The report of the plan for one file.
    fn file_report<S: Source>(
        &self,
        config: &Config,
        path: &Path,
        plan: &PreparedCompaction<'_, S>,
    ) -> CompactedFile {
        let mut file = CompactedFile::from_plan(path, plan, self.counter);
        file.window = self.window_limits(config, plan.session);
        let fit = calibration_of_plan(plan, config, path, self.counter);
        // An error in the user's table of models is not reported here, but by operations that need
        // prices.
        let prices = catalogue(config).ok();
        file.quote =
            prices.and_then(|prices| quote_of(&prices, plan, fit, self.counter, config.now()));
        file.set_billed(fit);
        file.hide_secrets(&Screen::new(config));
        file
    }

    /// The report of a session, with its own file only. The caller adds the other files.
    fn session_report(&self, file: CompactedFile, models: Option<AskedModels>) -> CompactReport {
        CompactReport {
            file,
            recipe: self.recipe.name.clone(),
            counter: self.counter.name(),
            dry_run: false,
            out: None,
            run: None,
            is_below_minimum: false,
            losses: None,
            models,
            files: Vec::new(),
        }
    }

    /// Whether less than [`least`](Compact::least) of the tokens of all files would be removed.
    /// False if there is no minimum.
    fn is_too_little(&self, report: &CompactReport) -> bool {
        let tokens = report.tokens();
        self.least.is_some_and(|least| !least.is_saved(tokens.before, tokens.after))
    }

    /// Calls `before_writing`, archives everything that is removed, proves that it can be restored,
    /// and then replaces the files. The result has one element for each plan, or is empty if there
    /// was nothing to do.
    fn write<E: From<Error>>(
        &self,
        config: &Config,
        plans: &[LockedPlan<'_>],
        before_writing: impl FnOnce() -> Result<(), E>,
    ) -> Result<Vec<ArchivedFile>, E> {
        let mut changes = Vec::new();
        for (locked, plan) in plans.iter().filter(|(_, plan)| !plan.is_empty()) {
            let splices: Vec<Splice> = plan.splices.iter().map(|(it, _)| it.clone()).collect();
            locked.file.check_restorable(&splices)?;
            // A rewrite moves bytes that are kept to other offsets in the file.
            let change = locked.change(splices, plan.way == Way::Rewrite);
            changes.push(change.map_err(Error::while_writing)?);
        }
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        before_writing()?;
        let archived = self.archive_all(config, plans).map_err(Error::while_writing)?;
        // The session's own file is replaced last, because agents read it first. Until then, they
        // find its old content.
        changes.reverse();
        if let Err(err) = replace_all(config, &changes) {
            for ((locked, _), archived) in plans.iter().zip(&archived) {
                if let Some(generation) = &archived.generation {
                    config.archive().withdraw_if_unused(generation, locked.file.path());
                }
            }
            return Err(err.while_writing().into());
        }
        for generation in archived.iter().filter_map(|it| it.generation.as_ref()) {
            config.archive().remove_repeated(generation);
        }
        Ok(archived)
    }

    /// Archives everything that is removed. If that fails, removes the packs that were written.
    fn archive_all(&self, config: &Config, plans: &[LockedPlan<'_>]) -> Result<Vec<ArchivedFile>> {
        let main_key = plans
            .first()
            .map(|(locked, plan)| crate::session::key_of(plan.session, locked.file.path()));
        let mut archived: Vec<ArchivedFile> =
            plans.iter().map(|_| ArchivedFile::default()).collect();
        let mut parts = Vec::new();
        // The other files are archived first, because the session's generation names their
        // generations.
        for (n, (locked, plan)) in plans.iter().enumerate().rev() {
            if plan.is_empty() {
                continue;
            }
            let info = CompactionInfo {
                at: config.now(),
                run: Some(self.run.clone()),
                part_of: main_key.clone().filter(|_| n > 0),
                parts: if n == 0 { std::mem::take(&mut parts) } else { Vec::new() },
            };
            archived[n] = match self.archive_one(config, locked, plan, info) {
                Ok(done) => done,
                Err(err) => {
                    for generation in archived.iter().filter_map(|it| it.generation.as_ref()) {
                        config.archive().withdraw(generation);
                    }
                    return Err(err);
                }
            };
            if let Some(generation) = archived[n].generation.as_ref().filter(|_| n > 0) {
                let Generation { number, before, .. } = *generation;
                parts.push(PartGeneration { key: generation.key(), generation: number, before });
            }
        }
        Ok(archived)
    }

    /// Copies a file if a backup is wanted, and archives what is removed from the file.
    fn archive_one(
        &self,
        config: &Config,
        locked: &LockedFile,
        plan: &PreparedCompaction<'_, &FileSource>,
        info: CompactionInfo,
    ) -> Result<ArchivedFile> {
        let key = crate::session::key_of(plan.session, locked.file.path());
        let backup = match self.backup {
            Some(place) => Some(keep_backup(config, locked.source(), &key, place)?),
            None => None,
        };
        let archive = config.archive();
        let generation =
            archive_generation(plan, locked.file.path(), &archive, self.counter, info)?;
        let pack = archive.pack_len(&key, generation.number)?;
        Ok(ArchivedFile { generation: Some(generation), pack, backup })
    }
}

/// The model that wrote the last answer of a session that names one.
fn last_model<S>(session: &Loaded<S>) -> Option<&str> {
    let mut models = session.transcript.entries().filter_map(|(_, entry)| entry.model.as_deref());
    models.next_back()
}
