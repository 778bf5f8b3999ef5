//! Lists sessions, with what each session used and what compacting it would save.

mod row;
mod short;
mod sort;
mod usage;

use std::collections::HashMap;
use std::path::Path;
use std::time::UNIX_EPOCH;

use epitome_formats::find_format;
use epitome_llm::Catalogue;
use epitome_model::{
    Bytes, EditedTranscript, Role, Source, Tokens, Transcript, request_sizes, turns, weigh,
};
use epitome_passes::{ContextKind, Options, Recipe, plan_edits};
use epitome_tokens::{Calibration, Estimate};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::archive::{Archive, Digest, Generation, Hash, SessionKey};
use crate::config::Config;
use crate::drive::catalogue;
use crate::error::{Result, causes};
use crate::ops::Change;
use crate::place::Place;
use crate::redact::Screen;
use crate::regular;
use crate::rows::{self, SessionRow};
use crate::session::{Loaded, writer};
use crate::source::FileSource;
use crate::state::{self, PackFingerprint};
use crate::store::disk;
use epitome_agents::SessionFile;
use epitome_engine::stored::default_way_saving;

pub use row::ListedRow;
pub use short::short_ids;
pub use sort::Sort;
pub use usage::DayUsage;

/// A session in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedSession {
    /// The file of the session, or its rows in a database.
    pub file: SessionFile,
    /// What the list shows of the session, or the reason why it cannot be read.
    pub seen: std::result::Result<SessionInfo, String>,
    /// The number of the session's generations in the archive; 0 if the session was not read.
    pub compactions: u64,
}

impl ListedSession {
    /// Whether a compaction by epitome is in effect in the session.
    pub fn is_compacted(&self) -> bool {
        self.seen.as_ref().is_ok_and(|seen| seen.in_effect > 0)
    }

    /// The tokens that compacting the session would save; `None` if the session cannot be read, or
    /// if epitome never writes sessions of its agent.
    pub fn saving(&self) -> Option<Tokens> {
        let is_written = find_format(self.file.agent).is_none_or(|format| writer(format).is_ok());
        self.seen.as_ref().ok().filter(|_| is_written).map(|seen| seen.saving)
    }

    /// Whether compacting the session would save at least half of its context. False if it would
    /// save nothing.
    pub fn saves_half(&self) -> bool {
        let context = self.seen.as_ref().ok().and_then(|seen| seen.context).unwrap_or_default();
        self.saving().is_some_and(|saving| saving.0 > 0 && saving.0 * 2 >= context.0)
    }

    /// The length of the session in bytes: of its file, after decompression if the file is
    /// compressed, or of its rows in a database, written as lines. If the session was not read, the
    /// size that the system or the database reports.
    pub fn size(&self) -> Bytes {
        self.seen.as_ref().ok().and_then(|seen| seen.size).unwrap_or(self.file.size)
    }

    /// Whether the archive still contains the same packs of this session as when it was read. If
    /// not, the session may have been compacted since, even if its size and time are the same. True
    /// for a session that could not be read.
    pub fn is_current(&self, config: &Config) -> bool {
        self.seen.as_ref().map_or(true, |seen| seen.packs == packs(config, &seen.key))
    }
}

/// What a list shows of a session. Token counts are estimates, unless their description says that
/// the agent or the provider counted them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionInfo {
    /// The id of the session.
    pub id: String,
    /// The folder in which the session was run.
    pub cwd: Option<String>,
    /// The title of the session or, if it stores none, a title made of an early message of the
    /// user.
    pub title: Option<String>,
    /// The tokens that a resume would send. If the session was not read for the list, the agent's
    /// own count, if it stores one.
    pub context: Option<Tokens>,
    /// The tokens of the context that compacting the session would save.
    pub saving: Tokens,
    /// The tokens of the whole request that a resume sends, as the provider bills them; `None` if
    /// they cannot be computed from the requests that the session records. If the session was not
    /// read for the list, the agent's own count, if it stores one.
    pub request: Option<Tokens>,
    /// How the tokens of messages are converted to those of requests, if that can be computed.
    pub calibration: Option<Calibration>,
    /// How full the context was over time, in tokens as the provider counted them. At most
    /// [`COURSE`] points: the session is divided into parts, and each point is the largest request
    /// of its part. Empty if the session records no sizes.
    pub course: Vec<Tokens>,
    /// The number of turns in the session, if it was read.
    pub turns: Option<u64>,
    /// The usage of the session's requests by day and model, without those of sub-agents; `None` if
    /// the session was not read.
    pub usage: Option<Vec<DayUsage>>,
    /// The model of the last response, if it is recorded.
    pub model: Option<String>,
    /// The context window of the model of the last response, in tokens, if the table of models has
    /// it.
    pub window: Option<Tokens>,
    /// What the compactions that are in effect have saved; `None` if none is in effect, or if the
    /// archive cannot be listed.
    pub saved: Option<SavedAmounts>,
    /// The length of the session, if it was read.
    size: Option<Bytes>,
    /// The number of compactions that are in effect.
    pub in_effect: u64,
    /// Whether the session was compacted and has been restored: no compaction is in effect, and the
    /// file begins with the bytes that it had before the first one.
    pub restored: bool,
    /// The key of the session in the archive.
    key: SessionKey,
    /// The packs that the archive contained for the session when it was read.
    packs: PackFingerprint,
}

/// The maximum number of points in [`SessionInfo::course`].
pub const COURSE: usize = 32;

/// What the compactions that are in effect in a session saved, without those of its sub-agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedAmounts {
    /// The tokens that a resume sent before and after each compaction, in sum.
    pub context: Change<Tokens>,
    /// The length of the session before and after each compaction, in sum.
    pub disk: Change<Bytes>,
    /// The length of the session's packs in the archive.
    pub archive: Bytes,
}

/// The values that are the same for all sessions in a list.
struct ListContext<'a> {
    config: &'a Config,
    recipe: &'a Recipe,
    screen: &'a Screen,
    /// The table of prices; `None` if the user's own table cannot be read: then no price is known.
    prices: Option<Catalogue>,
}

impl<'a> ListContext<'a> {
    fn new(config: &'a Config, recipe: &'a Recipe, screen: &'a Screen) -> ListContext<'a> {
        ListContext { config, recipe, screen, prices: catalogue(config).ok() }
    }
}

/// Lists the sessions `files`, reading them on all cores, and calls `looked` after each of them.
/// The result is in the order of `files`.
///
/// A session with a [`row`](SessionFile::row) is not read. The entry of any other session is taken
/// from the cache if none of these has changed since the session was read: its file, its packs in
/// the archive, the recipe, the rules for secrets, the table of models, and the version of epitome.
///
/// ```
/// use epitome::{agents, list};
///
/// # let home = tempfile::tempdir().expect("a folder");
/// # let config = epitome::Config::from_home(home.path());
/// # let path = home.path().join("session.jsonl");
/// # std::fs::write(&path, fixtures::get("pi", "pricing").bytes()).expect("a session");
/// # let run = config.begin_run("example");
/// # let recipe = epitome::built_in("epitome").expect("a recipe");
/// # let counter = epitome_tokens::Estimate::new();
/// let listed = list::list(&config, agents::sessions_below(home.path()), &recipe, || {});
/// assert_eq!(listed.len(), 1);
/// assert!(listed[0].saving().is_some() && !listed[0].is_compacted());
/// # Ok::<(), epitome::Error>(())
/// ```
pub fn list(
    config: &Config,
    files: Vec<SessionFile>,
    recipe: &Recipe,
    looked: impl Fn() + Sync,
) -> Vec<ListedSession> {
    let path = config.list_cache();
    let screen = Screen::new(config);
    let looking = ListContext::new(config, recipe, &screen);
    let mut cache = Cache::load(&path, &looking);
    let listed: Vec<(ListedSession, Option<(String, CachedListing)>)> = files
        .into_par_iter()
        .map(|file| {
            let listed = look_unless_known(&cache, &looking, file);
            looked();
            listed
        })
        .collect();
    let mut changed = false;
    let listed = listed
        .into_iter()
        .map(|(listed, new)| {
            changed |= new.is_some();
            cache.seen.extend(new);
            listed
        })
        .collect();
    if changed {
        // Errors of the cache are ignored, because the list is correct without it.
        cache.store(&path).ok();
    }
    listed
}

/// The entries of `files` that the cache has, in the order of `files`. `None` for a session that is
/// not in the cache, or that has changed since. No session is read.
pub fn cached_entries(
    config: &Config,
    files: &[SessionFile],
    recipe: &Recipe,
) -> Vec<Option<ListedSession>> {
    let screen = Screen::new(config);
    let cache = Cache::load(&config.list_cache(), &ListContext::new(config, recipe, &screen));
    files.par_iter().map(|file| cache.look_up(config, file)).collect()
}

/// The entry of a file: made from its [`row`](SessionFile::row) if it has one, otherwise from the
/// cache, otherwise by reading the session. If the session was read, the second value is what to
/// add to the cache; otherwise it is `None`.
fn look_unless_known(
    cache: &Cache,
    looking: &ListContext<'_>,
    mut file: SessionFile,
) -> (ListedSession, Option<(String, CachedListing)>) {
    if let Some(told) = file.row.take() {
        let seen = Ok(glance(&file, told, looking.screen));
        return (ListedSession::new(file, seen), None);
    }
    if let Some(listed) = cache.look_up(looking.config, &file) {
        return (listed, None);
    }
    let stamp = Stamp::from_file(&file);
    let name = file.path.to_string_lossy().into_owned();
    let seen = look(looking, &file.path);
    let new = Some((name, CachedListing { stamp, seen: seen.clone() }));
    (ListedSession::new(file, seen), new)
}

/// The number of tokens that compacting a session would save; `None` if the session cannot be read.
pub(crate) fn saving(path: &Path, recipe: &Recipe) -> Option<Tokens> {
    let session = crate::session::load(path, None).ok()?;
    let (_, saving) = planned(&session, path, recipe);
    session.source.failure().is_none().then_some(saving)
}

fn look(looking: &ListContext<'_>, path: &Path) -> std::result::Result<SessionInfo, String> {
    let ListContext { config, screen, prices, .. } = looking;
    let session = crate::session::load(path, None).map_err(|err| reason(&err))?;
    let Loaded { source, transcript, .. } = &session;
    let (context, saving) = planned(&session, path, looking.recipe);
    if let Some(failure) = source.failure() {
        return Err(reason(&failure));
    }
    let key = crate::session::key_of(&session, path);
    let calibration = crate::billed::calibration(&session, config, path, &Estimate::new());
    // The packs are listed before the compactions are read. If a compaction is made in between, the
    // entry is outdated and the session is read again.
    let packs = packs(config, &key);
    let in_effect = match packs.count {
        0 => Vec::new(),
        _ => state::in_effect(&config.archive(), &key, source).map_err(|err| reason(&err))?,
    };
    let in_effect: Vec<_> = in_effect.iter().filter(|it| !it.is_restore()).collect();
    let restored = packs.count > 0 && in_effect.is_empty() && is_restored(config, &key, source);
    let model = last_model(transcript);
    Ok(SessionInfo {
        id: transcript.head.id.as_deref().unwrap_or(&key.id).to_owned(),
        cwd: transcript.head.cwd.as_deref().map(|cwd| screen.text(cwd).into_owned()),
        title: transcript.head.title.as_deref().map(|title| screen.text(title).into_owned()),
        context: Some(context),
        saving,
        request: calibration.map(|it| it.apply(context)),
        calibration,
        course: course(&request_sizes(transcript)),
        turns: Some(turns(transcript, source).len() as u64),
        usage: Some(usage::usage(transcript, prices.as_ref(), screen)),
        model: model.map(|model| usage::name(model, screen)),
        window: model.and_then(|model| Some(prices.as_ref()?.find(model)?.window)),
        saved: saved(&config.archive(), &key, &in_effect),
        size: Some(Bytes(Source::len(source))),
        in_effect: in_effect.len() as u64,
        restored,
        key,
        packs,
    })
}

/// The tokens of the context, and how many of them compacting would save. The second number is 0 if
/// epitome never writes this session.
fn planned(session: &Loaded, path: &Path, recipe: &Recipe) -> (Tokens, Tokens) {
    let Loaded { format, source, transcript, .. } = session;
    let counter = Estimate::new();
    let writable = session.writer().and_then(|_| Place::parse(path).check_writable());
    if writable.is_err() {
        // The session cannot be compacted: sessions of this format, or stored in this way, are
        // never written.
        return (weigh(transcript, source, &counter).total(), Tokens(0));
    }
    let options = Options {
        kind: ContextKind::Stored,
        counter: &counter,
        thinking_is_bound: format.thinking_is_bound,
        counted: &[],
    };
    let planned = plan_edits(transcript, source, recipe, &options);
    // The compacted context is counted again, because the sum of the savings of single edits is not
    // exactly the saving in the context.
    let after = EditedTranscript::new(transcript, source, &planned.edits());
    let after = weigh(&after.transcript, &after.source, &counter).total();
    let before = planned.tokens_before;
    (before, default_way_saving(format, before - after, before))
}

/// The model of the last response, if it is recorded.
fn last_model(transcript: &Transcript) -> Option<&str> {
    let written = transcript.entries().filter(|(_, entry)| entry.role == Role::Assistant);
    written.filter_map(|(_, entry)| entry.model.as_deref()).next_back()
}

/// What the compactions that are in effect saved. `None` if there are none, or if the archive
/// cannot be listed.
fn saved(archive: &Archive, key: &SessionKey, in_effect: &[&Generation]) -> Option<SavedAmounts> {
    if in_effect.is_empty() {
        return None;
    }
    let generations = in_effect.iter();
    let bytes_before = generations.clone().map(|it| Bytes(it.before.len));
    let bytes_after = generations.clone().map(|it| Bytes(it.after.len));
    Some(SavedAmounts {
        context: Change {
            before: generations.clone().map(|it| it.tokens_before).sum(),
            after: generations.map(|it| it.tokens_after).sum(),
        },
        disk: Change { before: bytes_before.sum(), after: bytes_after.sum() },
        archive: archive.sizes(key).ok()?.into_iter().map(|(_, size)| size).sum(),
    })
}

/// Whether a session begins with the bytes that it had before its first compaction. False if that
/// is unknown.
fn is_restored(config: &Config, key: &SessionKey, source: &FileSource) -> bool {
    let Ok(generations) = config.archive().generations(key) else { return false };
    let first = generations.whole.iter().find(|it| !it.is_restore()).map(|it| it.before);
    let Some(before) = first else { return false };
    Digest::from_prefixes(source, &[before.len]).is_ok_and(|found| found == [before])
}

/// The entry of a read-only session, made from its row in a database.
fn glance(file: &SessionFile, told: SessionRow, screen: &Screen) -> SessionInfo {
    let SessionRow { title, cwd, context } = told;
    let title = title.map(|title| screen.text(&title).into_owned());
    let cwd = cwd.map(|cwd| screen.text(&cwd).into_owned());
    let key = SessionKey::new(file.agent, file.id.clone());
    SessionInfo {
        id: file.id.clone(),
        cwd,
        title,
        context,
        saving: Tokens(0),
        // The agent's count includes the system prompt and the tools.
        request: context,
        calibration: None,
        course: Vec::new(),
        turns: None,
        usage: None,
        model: None,
        window: None,
        saved: None,
        size: None,
        in_effect: 0,
        restored: false,
        key,
        packs: PackFingerprint::default(),
    }
}

/// Divides the sizes into at most [`COURSE`] parts, and returns the largest size of each.
fn course(sizes: &[Tokens]) -> Vec<Tokens> {
    let points = sizes.len().min(COURSE);
    let largest = (0..points).map(|n| {
        let part = n * sizes.len() / points..(n + 1) * sizes.len() / points;
        sizes[part].iter().max().copied().unwrap_or_default()
    });
    largest.collect()
}

/// The message of the innermost cause of an error, without the path at its end. The messages around
/// it name the file, and the list shows the file anyway.
fn reason(err: &crate::error::Error) -> String {
    let deepest = causes(err).last().unwrap_or(err);
    let path = err.path().map(|path| format!(": {}", path.display())).unwrap_or_default();
    deepest.to_string().trim_end_matches(&path).to_owned()
}

fn packs(config: &Config, key: &SessionKey) -> PackFingerprint {
    PackFingerprint::list(&config.archive(), key)
}

/// The size and time of a file, by which a change is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    size: u64,
    /// Time of the last write, in nanoseconds since 1970.
    modified: u64,
}

impl Stamp {
    fn from_file(file: &SessionFile) -> Stamp {
        let since = file.modified.duration_since(UNIX_EPOCH).unwrap_or_default();
        let modified = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        Stamp { size: file.size.0, modified }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct CachedListing {
    #[serde(flatten)]
    stamp: Stamp,
    seen: std::result::Result<SessionInfo, String>,
}

/// The cached entries by path. They are used only if the version of epitome, the recipe, the rules
/// for secrets and the table of models are still the same.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Cache {
    epitome: String,
    recipe: String,
    /// Identifies the rules for secrets that were used; empty in a cache that an older epitome
    /// wrote.
    #[serde(default)]
    rules: String,
    /// Identifies the table of models that was used for prices; empty in a cache that an older
    /// epitome wrote.
    #[serde(default)]
    models: String,
    seen: HashMap<String, CachedListing>,
}

impl ListedSession {
    fn new(file: SessionFile, seen: std::result::Result<SessionInfo, String>) -> ListedSession {
        let compactions = seen.as_ref().map_or(0, |seen| seen.packs.count);
        ListedSession { file, seen, compactions }
    }
}

impl Cache {
    /// The cached entry of a file, if neither the file nor its packs in the archive have changed.
    /// Comparing the file is not enough: a restored file has its former size and time.
    fn look_up(&self, config: &Config, file: &SessionFile) -> Option<ListedSession> {
        let seen = self.seen.get(&*file.path.to_string_lossy())?;
        let listed = ListedSession::new(file.clone(), seen.seen.clone());
        (seen.stamp == Stamp::from_file(file) && listed.is_current(config)).then_some(listed)
    }

    fn load(path: &Path, looking: &ListContext<'_>) -> Cache {
        let settings = serde_json::to_vec(looking.recipe).unwrap_or_default();
        let empty = Cache {
            epitome: env!("CARGO_PKG_VERSION").to_owned(),
            recipe: Hash::compute(&settings).to_string(),
            rules: looking.screen.stamp(),
            models: Hash::compute(format!("{:?}", looking.prices).as_bytes()).to_string(),
            seen: HashMap::new(),
        };
        let stored: Option<Cache> =
            regular::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let ours = stored.filter(|stored| {
            stored.epitome == empty.epitome
                && stored.recipe == empty.recipe
                && stored.rules == empty.rules
                && stored.models == empty.models
        });
        ours.unwrap_or(empty)
    }

    /// Writes the cache, without sessions that no longer exist. It is written to a temporary file
    /// and renamed: if two processes write at the same time, one of the two caches is kept whole.
    fn store(mut self, path: &Path) -> Result<()> {
        self.seen.retain(|path, _| {
            let path = Path::new(path);
            path.exists() || rows::split(path).is_some_and(|(database, _)| database.exists())
        });
        let bytes = serde_json::to_vec(&self).unwrap_or_default();
        if let Some(folder) = path.parent() {
            disk::private_folder(folder)?;
        }
        crate::store::write_over(path, |out| Ok(out.write_all(&bytes)?))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_course_has_the_largest_of_each_part() {
        let sizes = |all: &[u64]| all.iter().copied().map(Tokens).collect::<Vec<_>>();
        assert_eq!(course(&[]), []);
        assert_eq!(course(&sizes(&[3, 1])), sizes(&[3, 1]));
        let many: Vec<u64> = (0..64).rev().collect();
        let largest: Vec<u64> = (0..32).map(|n| 63 - 2 * n).collect();
        assert_eq!(course(&sizes(&many)), sizes(&largest));
    }

    #[test]
    fn what_is_only_read_has_no_saving() {
        let dir = tempfile::tempdir().expect("a folder");
        let config = Config::from_home(dir.path());
        fs::create_dir(dir.path().join("s")).expect("a folder");
        fs::write(dir.path().join("s/a.jsonl"), fixtures::get("pi", "pricing").bytes())
            .expect("a file");
        let recipe = epitome_passes::built_in("epitome").expect("a recipe");
        let files = epitome_agents::sessions_below(&dir.path().join("s"));
        let mut listed = list(&config, files, &recipe, || ()).remove(0);
        let saving = listed.seen.as_ref().expect("it is a session").saving;
        assert_eq!((listed.saving(), listed.saves_half()), (Some(saving), true));
        let read_only = epitome_formats::FORMATS.iter().find(|format| writer(format).is_err());
        listed.file.agent = read_only.expect("there is one").name;
        assert_eq!(listed.saving(), None);
        let unreadable = ListedSession { seen: Err("the file is empty".to_owned()), ..listed };
        assert_eq!((unreadable.saving(), unreadable.saves_half()), (None, false));
    }

    #[test]
    fn what_is_known_is_told_without_reading() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut config = Config::from_home(dir.path());
        config.home = dir.path().join("epitome");
        fs::create_dir(dir.path().join("s")).expect("a folder");
        let path = dir.path().join("s/a.jsonl");
        fs::write(&path, fixtures::get("pi", "pricing").bytes()).expect("a file");
        let recipe = epitome_passes::built_in("epitome").expect("a recipe");
        let files = || epitome_agents::sessions_below(&dir.path().join("s"));
        assert_eq!(cached_entries(&config, &files(), &recipe), [None]);
        let listed = list(&config, files(), &recipe, || ());
        assert_eq!(cached_entries(&config, &files(), &recipe), [Some(listed[0].clone())]);
        let found = files();
        fs::remove_file(&path).expect("it was there");
        assert_eq!(cached_entries(&config, &found, &recipe), [Some(listed[0].clone())]);
        let grown = SessionFile { size: Bytes(1), ..found[0].clone() };
        assert_eq!(cached_entries(&config, &[grown], &recipe), [None]);
    }

    #[test]
    fn what_was_seen_is_known_the_next_time() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("cache/list.json");
        let session = dir.path().join("s.jsonl");
        fs::write(&session, "x").expect("a file");
        let recipe = epitome_passes::built_in("epitome").expect("a recipe");
        let config = Config::from_home(dir.path());
        let screen = Screen::new(&config);
        let looking = ListContext::new(&config, &recipe, &screen);
        let mut cache = Cache::load(&path, &looking);
        let stamp = Stamp { size: 1, modified: u64::MAX };
        let unreadable = Err("not a session".to_owned());
        let name = session.to_string_lossy().into_owned();
        cache.seen.insert(name.clone(), CachedListing { stamp, seen: unreadable.clone() });
        cache.store(&path).expect("it can be written");
        let seen = &Cache::load(&path, &looking).seen[&name];
        assert_eq!((seen.stamp, &seen.seen), (stamp, &unreadable));
        let other = epitome_passes::built_in("gitclaw").expect("a recipe");
        let other = ListContext::new(&config, &other, &screen);
        assert!(Cache::load(&path, &other).seen.is_empty());
        let other = ListContext { prices: None, ..ListContext::new(&config, &recipe, &screen) };
        assert!(Cache::load(&path, &other).seen.is_empty());
        // An older version of epitome, which did not use prices, wrote the cache like this.
        let stored = fs::read_to_string(&path).expect("a cache");
        let (before, rest) = stored.split_once("\"models\":\"").expect("a stamp");
        let after = rest.split_once("\",").expect("an end").1;
        fs::write(&path, format!("{before}{after}")).expect("a file");
        assert!(Cache::load(&path, &looking).seen.is_empty());
    }

    #[test]
    fn titles_are_shown_and_stored_without_secrets() {
        let dir = tempfile::tempdir().expect("a folder");
        let config = Config::from_home(dir.path());
        let token = fixtures::planted::like("ghp_[A-Za-z0-9]{36}", 5);
        fs::create_dir(dir.path().join("s")).expect("a folder");
        let path = dir.path().join("s/a.jsonl");
        let session = serde_json::json!({
            "type": "session", "version": 3, "id": "x", "timestamp": "2026-11-20T23:11:46.249Z",
            "cwd": format!("/srv/{token}"),
        });
        let named = serde_json::json!({
            "type": "session_info", "id": "aaaaaaaa", "parentId": null,
            "timestamp": "2026-11-20T23:11:46.249Z", "name": format!("use {token} here"),
        });
        fs::write(&path, format!("{session}\n{named}\n")).expect("a file");
        let recipe = epitome_passes::built_in("epitome").expect("a recipe");
        let files = || epitome_agents::sessions_below(&dir.path().join("s"));
        let listed = list(&config, files(), &recipe, || ());
        let seen = listed[0].seen.as_ref().expect("it is a session");
        assert_eq!(seen.title.as_deref(), Some("use [REDACTED:github-pat-1] here"));
        assert_eq!(seen.cwd.as_deref(), Some("/srv/[REDACTED:github-pat-1]"));
        let stored = fs::read_to_string(config.list_cache()).expect("a cache");
        assert!(!stored.contains(&token), "{stored}");
        // After a change of the rules for secrets, the sessions are read again.
        fs::create_dir_all(&config.settings).expect("a folder");
        let rule = "[[rules]]\nid = 'here'\nregex = 'here'\nkeywords = ['here']\n";
        fs::write(config.redaction_rules(), rule).expect("a file");
        let listed = list(&config, files(), &recipe, || ());
        let seen = listed[0].seen.as_ref().expect("it is a session");
        let title = "use [REDACTED:github-pat-1] [REDACTED:here-1]";
        assert_eq!(seen.title.as_deref(), Some(title));
        fs::write(config.redaction_rules(), "no rules").expect("a file");
        let listed = list(&config, files(), &recipe, || ());
        let seen = listed[0].seen.as_ref().expect("it is a session");
        assert!(seen.title.as_deref().is_some_and(|title| title.starts_with("(hidden")));
    }
}
