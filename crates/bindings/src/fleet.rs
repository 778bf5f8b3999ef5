//! Many sessions at once, as bytes: the rows of a table that an engine such as Spark hands over.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use epitome::archive::Run;
use epitome::ops::{Compact, CompactedBytes, Extras, restore_bytes};
use epitome::pipe::parse_options;
use epitome::redact::{finder, redact_session};
use epitome::settings::values::{Compaction, Values};
use epitome::storage::Spliced;
use epitome::{Config, Error, ErrorKind, Recipe, Result, Settings, recipes, sentence};
use epitome_formats::Loaded;
use epitome_model::{Block, Counter, Tokens, turns, weigh};
use epitome_passes::{BUILT_IN, Target};
use epitome_redact::{Finder, Found, Redactor};
use jiff::Timestamp;
use serde::Deserialize;

use crate::options::{Count, window};

/// The hint of an error that is the fault of epitome.
const BUG: &str = "this is a bug of epitome: please report it";

/// Compacts, restores, inspects and redacts batches of sessions. It reads no settings and none of
/// the user's folders, so that every machine of a cluster makes the same bytes.
///
/// The rows of a batch are worked on in parallel, at most `threads` at once, so that, in addition
/// to the batch and its result, only `threads` sessions need memory. A session that cannot be
/// worked on, for whatever reason, is a row with an error.
///
/// ```
/// use epitome_bindings::{Fleet, FleetSession};
///
/// let fleet = Fleet::new(br#"{"at": "2026-11-26T00:00:00Z"}"#)?;
/// # let original = fixtures::get("pi", "pricing").bytes();
/// let rows = [("one", original.as_slice()), ("two", b"no session")];
/// let rows = rows.map(|(id, bytes)| FleetSession { id, bytes: Some(bytes), agent: None });
/// let [one, two] = fleet.compact(&rows).try_into().expect("a result for each row");
/// let done = one.done.expect("a session");
/// assert!(done.compacted.disk_bytes.after < done.compacted.disk_bytes.before);
/// assert_eq!(two.done.expect_err("no session").kind, "unknown-format");
/// # Ok::<(), epitome::Error>(())
/// ```
pub struct Fleet {
    config: Config,
    recipe: Recipe,
    counter: &'static dyn Counter,
    window: Option<Tokens>,
    at: Timestamp,
    run: Run,
    extras: Extras,
    finder: Option<Finder>,
    threads: usize,
}

/// A session of a batch.
#[derive(Clone, Copy, Debug)]
pub struct FleetSession<'a> {
    /// The caller's name of the session. A compaction uses it if the session has no id of its own.
    pub id: &'a str,
    /// The bytes of the session, not compressed. Without bytes, the result of the row is an error.
    pub bytes: Option<&'a [u8]>,
    /// The name of the session's agent; `None` if the agent is to be recognised by the bytes.
    pub agent: Option<&'a str>,
}

/// A compacted session, and the pack from which it is restored.
#[derive(Clone, Copy, Debug)]
pub struct FleetPack<'a> {
    /// The bytes of the compacted session. Without bytes, the result of the row is an error.
    pub bytes: Option<&'a [u8]>,
    /// The pack of the compaction; `None` if the compaction removed nothing.
    pub pack: Option<&'a [u8]>,
    /// The blake3 hash of the session before the compaction, in hexadecimal; `None` if the caller
    /// does not know it.
    pub blake3: Option<&'a str>,
}

/// The result for one session of a batch.
#[derive(Clone, Debug)]
pub struct Row<T> {
    /// The result, or why there is none.
    pub done: std::result::Result<T, RowError>,
}

/// What went wrong with one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowError {
    /// The kind, as in `docs/exit-codes.md`: a word such as `unknown-format`.
    pub kind: &'static str,
    /// A sentence, with the causes.
    pub message: String,
    /// What the user can do about it, if the error says so.
    pub hint: Option<String>,
}

/// A session that was compacted.
#[derive(Clone, Debug)]
pub struct CompactedRow {
    /// The name of the agent of the session.
    pub agent: &'static str,
    /// The compaction.
    pub compacted: CompactedBytes,
    /// The compacted session without secrets, if that was requested.
    pub redacted: Option<RedactedRow>,
}

/// A session without secrets and personal data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedactedRow {
    /// The bytes of the redacted session.
    pub bytes: Vec<u8>,
    /// How many different texts each rule found, as a JSON object.
    pub found: String,
}

/// Facts about a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectedRow {
    /// The name of the session's agent.
    pub agent: &'static str,
    /// The id that the agent gave the session.
    pub id: Option<String>,
    /// The model of the last response that names one.
    pub model: Option<String>,
    /// The folder in which the session was run.
    pub cwd: Option<String>,
    /// The tokens of the messages that a resume sends.
    pub context_tokens: Tokens,
    /// The number of messages.
    pub entries: u64,
    /// The number of messages that a resume sends.
    pub sent_entries: u64,
    /// The number of turns: a turn is a message of the user and everything until the next one.
    pub turns: u64,
    /// The number of calls of tools.
    pub calls: u64,
    /// The number of records that could not be fully parsed.
    pub faults: u64,
    /// The invariants of the agent's format that the session violates, each as a sentence.
    pub violations: Vec<String>,
}

/// A session that was restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoredRow {
    /// The bytes of the restored session; `None` if they are the bytes that were given.
    pub bytes: Option<Vec<u8>>,
    /// The blake3 hash of the restored session, in hexadecimal.
    pub blake3: String,
    /// Whether it is proved that the result is the session before the compaction. With a pack, the
    /// hash in the pack must match, and the caller's hash if there is one. Without a pack, the
    /// caller's hash must match.
    pub is_proved: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    /// When the sessions are compacted. Equal options and an equal time give equal bytes.
    at: Timestamp,
    /// The name of a built-in recipe, or the path of a file with a recipe.
    recipe: Option<String>,
    /// A recipe as text, in place of a name.
    recipe_text: Option<String>,
    target: Option<u64>,
    window: Option<u64>,
    count: Option<Count>,
    #[serde(default)]
    facts: bool,
    #[serde(default)]
    price: bool,
    #[serde(default)]
    redact: bool,
    /// The names of rules, or of kinds of rules, that `redact` applies; empty for all rules.
    #[serde(default)]
    find: Vec<String>,
    /// The number of rows that are worked on at once; 0 for one per core.
    #[serde(default)]
    threads: usize,
}

impl Options {
    /// The recipe. The only names are those of the built-in recipes, because a fleet reads no
    /// folder of the user.
    fn recipe(&self, config: &Config) -> Result<Recipe> {
        if let Some(text) = &self.recipe_text {
            return Recipe::parse(text).map_err(|err| {
                Error::new(ErrorKind::Recipe, "not a recipe").because(err.into_cause())
            });
        }
        recipes::resolve(config, &Settings::default(), self.recipe.as_deref()).map_err(|err| {
            let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
            let hint = format!(
                "there are: {}\na recipe of your own is a file whose name ends with `.toml`",
                names.join(", ")
            );
            err.with_hint(hint)
        })
    }

    /// The finder of what `redact` replaces; `None` without `redact`.
    fn finder(&self, config: &Config) -> Result<Option<Finder>> {
        match (self.redact, self.find.as_slice()) {
            (true, names) => finder(config, &Settings::default(), names, &[]).map(Some),
            (false, []) => Ok(None),
            (false, names) => {
                let what = format!("`find`: {} has no effect without `redact`", names.join(", "));
                let hint = "set `redact` as well, or leave `find` out";
                Err(Error::new(ErrorKind::Usage, what).with_hint(hint))
            }
        }
    }
}

impl Fleet {
    /// A fleet with options as JSON: `at`, and optionally `recipe`, `recipe_text`, `target`,
    /// `window`, `count`, `facts`, `price`, `redact`, `find`, `threads`.
    ///
    /// # Errors
    ///
    /// `Usage` if an option is unknown or has a wrong value, if a name in `find` is unknown, or if
    /// `find` is given without `redact`; `Recipe` if there is no such recipe, or if `recipe_text`
    /// is not a recipe.
    pub fn new(options: &[u8]) -> Result<Fleet> {
        let options: Options = parse_options(options)?;
        let mut config = Config::from_home(Path::new("/nonexistent"));
        config.person.home = None;
        let recipe = options.recipe(&config)?;
        let finder = options.finder(&config)?;
        let target = options.target.map(|tokens| Target::from_tokens(Tokens(tokens)));
        let compaction = Compaction { target, ..Compaction::default() };
        let values = Values { compaction, ..Values::default() };
        Ok(Fleet {
            run: config.begin_run("compact"),
            config,
            recipe: values.apply_to(recipe, false),
            counter: options.count.unwrap_or_default().counter(),
            window: window(options.window)?,
            at: options.at,
            extras: Extras { facts: options.facts, price: options.price },
            finder,
            threads: options.threads,
        })
    }

    /// Compacts sessions. The result has a row for each, in their order.
    pub fn compact(&self, sessions: &[FleetSession<'_>]) -> Vec<Row<CompactedRow>> {
        self.each(sessions, len, |session| self.compact_one(session))
    }

    /// Restores sessions. The result has a row for each, in their order.
    pub fn restore(&self, packs: &[FleetPack<'_>]) -> Vec<Row<RestoredRow>> {
        let len = |one: &FleetPack<'_>| one.bytes.map_or(0, <[u8]>::len);
        self.each(packs, len, restore_one)
    }

    /// Inspects sessions. The result has a row for each, in their order.
    pub fn inspect(&self, sessions: &[FleetSession<'_>]) -> Vec<Row<InspectedRow>> {
        self.each(sessions, len, |session| self.inspect_one(session))
    }

    /// Redacts sessions. The result has a row for each, in their order. If the fleet was made
    /// without the option `redact`, each row is an error.
    pub fn redact(&self, sessions: &[FleetSession<'_>]) -> Vec<Row<RedactedRow>> {
        self.each(sessions, len, |session| {
            let bytes = session.bytes.ok_or_else(no_bytes)?;
            let finder = self.finder.as_ref().ok_or_else(|| {
                Error::new(ErrorKind::Usage, "the fleet was made without the option `redact`")
            })?;
            redact(finder, bytes, session.agent)
        })
    }

    fn inspect_one(&self, session: &FleetSession<'_>) -> Result<InspectedRow> {
        let bytes = session.bytes.ok_or_else(no_bytes)?;
        let Loaded { format, source, transcript, faults } = Loaded::read(bytes, session.agent)?;
        let mut models = transcript.entries().filter_map(|(_, entry)| entry.model.as_deref());
        let blocks = transcript.entries().flat_map(|(_, entry)| &entry.blocks);
        let violations = format.invariants.check(&transcript, &source);
        Ok(InspectedRow {
            agent: format.name,
            id: transcript.head.id.as_deref().map(str::to_owned),
            model: models.next_back().map(str::to_owned),
            cwd: transcript.head.cwd.as_deref().map(str::to_owned),
            context_tokens: weigh(&transcript, &source, self.counter).total(),
            entries: transcript.entries().count() as u64,
            sent_entries: transcript.context().count() as u64,
            turns: turns(&transcript, &source).len() as u64,
            calls: blocks.filter(|block| matches!(block, Block::Call(_))).count() as u64,
            faults: faults.len() as u64,
            violations: violations.iter().map(ToString::to_string).collect(),
        })
    }

    fn compact_one(&self, session: &FleetSession<'_>) -> Result<CompactedRow> {
        let bytes = session.bytes.ok_or_else(no_bytes)?;
        let loaded = Loaded::read(bytes, session.agent)?;
        let compact =
            Compact { window: self.window, ..Compact::new(&self.recipe, self.counter, &self.run) };
        let compacted =
            compact.in_memory(&self.config, &loaded, session.id, self.at, self.extras)?;
        let agent = loaded.format.name;
        let redacted = match &self.finder {
            Some(finder) => {
                let small = compacted.bytes.as_deref().unwrap_or(bytes);
                Some(redact(finder, small, Some(agent))?)
            }
            None => None,
        };
        Ok(CompactedRow { agent, compacted, redacted })
    }

    /// Calls `work` for each item, in parallel, the largest first, so that the last items are
    /// small. When no items remain, an idle thread takes over parallel work inside of the items of
    /// other threads.
    fn each<I: Sync, T: Send>(
        &self,
        items: &[I],
        len: impl Fn(&I) -> usize,
        work: impl Fn(&I) -> Result<T> + Sync,
    ) -> Vec<Row<T>> {
        let mut order: Vec<usize> = (0..items.len()).collect();
        order.sort_by_key(|&idx| std::cmp::Reverse(len(&items[idx])));
        let rows: Vec<Mutex<Option<Row<T>>>> = items.iter().map(|_| Mutex::new(None)).collect();
        let next = AtomicUsize::new(0);
        let take_items = || {
            while let Some(&idx) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                let row = Row { done: attempt(|| work(&items[idx])) };
                *rows[idx].lock().unwrap_or_else(PoisonError::into_inner) = Some(row);
            }
        };
        // Each batch has a thread pool of its own. Threads do not survive a fork, and engines such
        // as Spark fork their processes. In a shared pool, a thread could begin other work in the
        // middle of a row.
        //
        // More threads than rows and cores would have nothing to do, and each takes time to start.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = self.threads.min(items.len().max(cores));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        match &pool {
            Ok(pool) => pool.scope(|scope| {
                for _ in 0..pool.current_num_threads() {
                    scope.spawn(|_| take_items());
                }
            }),
            // If the system gives no threads, the calling thread does the work.
            Err(_) => take_items(),
        }
        let rows = rows.into_iter().map(|row| row.into_inner());
        let rows = rows.map(|row| row.unwrap_or_else(PoisonError::into_inner));
        rows.map(|row| row.unwrap_or_else(|| Row { done: Err(no_result()) })).collect()
    }
}

fn len(session: &FleetSession<'_>) -> usize {
    session.bytes.map_or(0, <[u8]>::len)
}

fn restore_one(one: &FleetPack<'_>) -> Result<RestoredRow> {
    let bytes = one.bytes.ok_or_else(no_bytes)?;
    let Some(pack) = one.pack else {
        let blake3 = epitome::archive::Hash::compute(bytes).to_string();
        let is_proved = one.blake3.is_some_and(|known| known == blake3);
        return Ok(RestoredRow { bytes: None, blake3, is_proved });
    };
    let restored = restore_bytes(bytes, pack.to_vec())?;
    let blake3 = restored.digest.blake3.to_string();
    let is_known = one.blake3.is_none_or(|known| known == blake3);
    Ok(RestoredRow { bytes: restored.bytes, is_proved: restored.is_exact && is_known, blake3 })
}

fn redact(finder: &Finder, bytes: &[u8], agent: Option<&str>) -> Result<RedactedRow> {
    let loaded = Loaded::read(bytes, agent)?;
    let redacted = redact_session(&loaded, &mut Redactor::new(finder))?;
    let source: &Spliced<'_> = &redacted.session.source;
    let mut bytes = Vec::new();
    source.copy_to(&mut bytes)?;
    let found = serde_json::to_string(&Found::count_by_rule(&redacted.found))
        .map_err(|err| Error::new(ErrorKind::Broken, err.to_string()))?;
    Ok(RedactedRow { bytes, found })
}

/// Does the work for one row. An error or a panic becomes the result of this row, and does not
/// affect other rows.
fn attempt<T>(work: impl FnOnce() -> Result<T>) -> std::result::Result<T, RowError> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done.map_err(|err| RowError::from_error(&err)),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            let text = text.unwrap_or_else(|| "of an unknown kind".to_owned());
            Err(RowError {
                kind: ErrorKind::Broken.name(),
                message: format!("a panic: {text}"),
                hint: Some(BUG.to_owned()),
            })
        }
    }
}

impl RowError {
    fn from_error(err: &Error) -> RowError {
        RowError {
            kind: err.kind().name(),
            message: sentence(err),
            hint: row_hint(err).map(str::to_owned),
        }
    }
}

/// What the owner of the rows can do about an error. The hints of most errors name commands,
/// options or folders of the program, which the rows of a table do not have.
fn row_hint(err: &Error) -> Option<&str> {
    match err.kind() {
        ErrorKind::UnknownFormat | ErrorKind::NewerFormat | ErrorKind::Usage => err.hint(),
        ErrorKind::ReadOnly => Some("sessions of this agent can be inspected and redacted"),
        ErrorKind::Archive => Some("the pack is damaged, or it is not the pack of this session"),
        ErrorKind::Invariant => {
            Some("the session is unchanged; `Inspect` says which invariants it violates already")
        }
        ErrorKind::Broken => Some(BUG),
        _ => None,
    }
}

fn no_bytes() -> Error {
    Error::new(ErrorKind::Usage, "the row has no bytes")
}

fn no_result() -> RowError {
    RowError {
        kind: ErrorKind::Broken.name(),
        message: "the row was not worked on".to_owned(),
        hint: None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::sync::atomic::AtomicUsize;

    use epitome::ops::OpenSession;
    use epitome_model::Bytes;
    use epitome_tokens::O200k;
    use rayon::prelude::*;

    use super::*;

    const AT: &str = r#""at": "2026-11-26T00:00:00Z""#;

    fn fleet(more: &str) -> Fleet {
        Fleet::new(format!("{{{AT}{more}}}").as_bytes()).expect("options")
    }

    fn compact(fleet: &Fleet, sessions: &[(String, Vec<u8>)]) -> Vec<Row<CompactedRow>> {
        let rows =
            sessions.iter().map(|(id, bytes)| FleetSession { id, bytes: Some(bytes), agent: None });
        fleet.compact(&rows.collect::<Vec<_>>())
    }

    fn recorded() -> Vec<(String, Vec<u8>)> {
        let name = |it: &fixtures::Fixture| format!("{}-{}", it.agent, it.name);
        fixtures::all().iter().map(|it| (name(it), it.bytes())).collect()
    }

    /// The content of a session's file after `epitome compact`, if the file had these bytes before
    /// it.
    fn program(id: &str, bytes: &[u8]) -> Vec<u8> {
        let home = tempfile::tempdir().expect("a folder");
        let config = Config::from_home(home.path());
        let path = home.path().join(format!("{id}.jsonl"));
        fs::write(&path, bytes).expect("a session");
        let recipe = epitome::built_in("epitome").expect("a recipe");
        let run = config.begin_run("compact");
        let session = OpenSession::new(&config, &path);
        Compact::new(&recipe, &O200k::new(), &run).run(&session).expect("it is compacted");
        fs::read(&path).expect("a session")
    }

    #[test]
    fn the_bytes_are_those_of_the_program_and_come_back() {
        let sessions = recorded();
        let rows = compact(&fleet(""), &sessions);
        for ((id, bytes), row) in sessions.iter().zip(&rows) {
            let done = &row.done.as_ref().expect("a session").compacted;
            let small = done.bytes.as_ref().unwrap_or(bytes);
            assert!(*small == program(id, bytes), "{id}");
            let blake3 = done.digest.before.blake3.to_string();
            let pack = done.pack.as_deref();
            let pack = FleetPack { bytes: Some(small), pack, blake3: Some(&blake3) };
            let restored = restore_one(&pack).expect("it is restored");
            assert!(
                restored.is_proved && restored.bytes.as_ref().unwrap_or(bytes) == bytes,
                "{id}"
            );
        }
        assert!(rows.iter().filter(|it| it.done.as_ref().is_ok_and(has_pack)).count() > 10);
    }

    fn has_pack(row: &CompactedRow) -> bool {
        row.compacted.pack.is_some()
    }

    #[test]
    fn a_second_attempt_makes_the_same_bytes_and_the_same_pack() {
        let sessions = recorded();
        let bytes = |threads: usize| {
            let rows = compact(&fleet(&format!(", \"threads\": {threads}")), &sessions);
            let done = rows.into_iter().map(|row| row.done.expect("a session").compacted);
            done.map(|it| (it.bytes, it.pack)).collect::<Vec<_>>()
        };
        assert!(bytes(1) == bytes(4));
    }

    #[test]
    fn a_poisoned_row_has_its_error_and_the_others_their_result() {
        let pricing = fixtures::get("pi", "pricing").bytes();
        let deep = [b"{\"type\":\"session\"}\n".to_vec(), b"[".repeat(1 << 20)].concat();
        let cut = &pricing[..pricing.len() / 2];
        // The bytes of a session, its agent, and the kind of the error.
        type Row<'a> = (Option<&'a [u8]>, Option<&'a str>, Option<&'a str>);
        let rows: Vec<Row<'_>> = vec![
            (Some(&pricing), None, None),
            (Some(b"not JSON\n"), None, Some("unknown-format")),
            (Some(b""), None, Some("unknown-format")),
            (Some(b"\xff\xfe\0\0"), Some("claude"), Some("unknown-format")),
            (Some(&pricing), Some("no-such-agent"), Some("unknown-format")),
            (Some(&deep), None, Some("unknown-format")),
            (None, None, Some("usage")),
            (Some(cut), None, None),
        ];
        let sessions = rows.iter().map(|&(bytes, agent, _)| FleetSession { id: "s", bytes, agent });
        let done = fleet("").compact(&sessions.collect::<Vec<_>>());
        let kinds = done.iter().map(|row| row.done.as_ref().err().map(|err| err.kind));
        let expect: Vec<Option<&str>> = rows.iter().map(|(.., kind)| *kind).collect();
        assert_eq!(kinds.collect::<Vec<_>>(), expect);
    }

    #[test]
    fn a_panic_is_an_error_of_its_row() {
        let work = |item: &u8| match item {
            2 => panic!("it broke"),
            _ => Ok(*item),
        };
        let rows = fleet("").each(&[1, 2, 3], |_| 1, work);
        let done: Vec<_> = rows.into_iter().map(|row| row.done.map_err(|err| err.kind)).collect();
        assert_eq!(done, [Ok(1), Err("bug"), Ok(3)]);
    }

    #[test]
    fn no_more_rows_are_worked_on_at_once_than_there_are_threads() {
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = |_: &u64| {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            // A thread that waits for parallel work inside of its row must not begin another row.
            let sum: u64 = (0..10_000_u64).into_par_iter().sum();
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(sum)
        };
        fleet(", \"threads\": 3").each(&[0_u64; 200], |_| 1, work);
        assert!(most.into_inner() <= 3);
    }

    #[test]
    fn as_many_rows_are_worked_on_at_once_as_there_are_threads() {
        // Each row waits for the other two rows: if fewer than three were worked on at once, this
        // test would not end.
        let meeting = std::sync::Barrier::new(3);
        let work = |_: &u8| {
            meeting.wait();
            Ok(())
        };
        let rows = fleet(", \"threads\": 3").each(&[0; 3], |_| 1, work);
        assert!(rows.iter().all(|row| row.done.is_ok()));
    }

    #[test]
    fn no_more_threads_are_started_than_there_are_rows_or_cores() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let work = |_: &u8| Ok(rayon::current_num_threads());
        let rows = fleet(", \"threads\": 300").each(&[0; 3], |_| 1, work);
        let counts: Vec<usize> = rows.into_iter().map(|row| row.done.expect("it works")).collect();
        assert_eq!(counts, [cores.max(3); 3]);
    }

    #[test]
    fn a_pack_that_is_damaged_or_of_another_session_restores_nothing() {
        let sessions = recorded();
        let rows = compact(&fleet(""), &sessions);
        let packs: BTreeMap<&str, &CompactedBytes> = sessions
            .iter()
            .zip(&rows)
            .map(|((id, _), row)| (id.as_str(), &row.done.as_ref().expect("a session").compacted))
            .collect();
        let (one, other) = (packs["pi-pricing"], packs["claude-pricing"]);
        let pack = one.pack.clone().expect("a pack");
        let mut damaged = pack.clone();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 1;
        let kind = |bytes: &CompactedBytes, pack: &[u8], blake3: Option<&str>| {
            let pack = FleetPack { bytes: bytes.bytes.as_deref(), pack: Some(pack), blake3 };
            restore_one(&pack).map(|it| it.is_proved).map_err(|err| err.kind())
        };
        assert_eq!(kind(one, &pack, None), Ok(true));
        assert_eq!(kind(one, &pack, Some("00")), Ok(false));
        assert_eq!(kind(one, &damaged, None), Err(ErrorKind::Archive));
        assert_eq!(kind(one, b"no pack", None), Err(ErrorKind::Archive));
        assert_ne!(kind(other, &pack, None), Ok(true));
    }

    #[test]
    fn secrets_facts_and_prices_are_columns_on_request() {
        let bytes = br#"{"messages":[{"role":"user","content":"Use AKIAQ3EGRXLTPN2MWVJD."}]}"#;
        let sessions = [("s".to_owned(), bytes.to_vec())];
        let all = fleet(r#", "redact": true, "facts": true, "price": true"#);
        let rows = compact(&all, &sessions);
        let row = rows[0].done.as_ref().expect("a session");
        let redacted = row.redacted.as_ref().expect("a text");
        assert_eq!(redacted.found, r#"{"aws-access-key":1}"#);
        assert!(!String::from_utf8_lossy(&redacted.bytes).contains("AKIA"));
        assert!(row.compacted.facts.is_some());
        let pi = [("s".to_owned(), fixtures::get("claude", "pricing").bytes())];
        let rows = compact(&all, &pi);
        let done = &rows[0].done.as_ref().expect("a session").compacted;
        assert!(done.facts.is_some_and(|facts| facts.gone > 0));
        assert!(done.quote.as_ref().is_some_and(|it| it.next_cost.after < it.next_cost.before));
        assert!(done.disk_bytes.after < Bytes(done.disk_bytes.before.0));
    }

    #[test]
    fn sessions_are_inspected_and_redacted() {
        let bytes = fixtures::get("claude", "pricing").bytes();
        let session = FleetSession { id: "s", bytes: Some(&bytes), agent: None };
        let rows = fleet("").inspect(&[session]);
        let row = rows[0].done.as_ref().expect("a session");
        assert_eq!((row.agent, row.faults, row.violations.len()), ("claude", 0, 0));
        assert_eq!(row.cwd.as_deref(), Some("/home/dev/project"));
        assert!(row.calls > 0 && row.turns > 0 && row.entries >= row.sent_entries);
        let compacted = compact(&fleet(""), &[("s".to_owned(), bytes.clone())]);
        let done = &compacted[0].done.as_ref().expect("a session").compacted;
        assert_eq!(row.context_tokens, done.context_tokens.before);
        let redacted = fleet(", \"redact\": true").redact(&[session]);
        let redacted = redacted[0].done.as_ref().expect("a session");
        assert!(!String::from_utf8_lossy(&redacted.bytes).contains("/home/dev"));
        let refused = fleet("").redact(&[session]);
        assert_eq!(refused[0].done.as_ref().expect_err("no finder").kind, "usage");
    }

    #[test]
    fn wrong_options_are_errors() {
        let kind = |options: &str| {
            let options = format!("{{{AT}{options}}}");
            Fleet::new(options.as_bytes()).map(drop).map_err(|err| err.kind())
        };
        assert_eq!(kind(""), Ok(()));
        assert_eq!(kind(r#", "recipe": "no-such-recipe""#), Err(ErrorKind::Recipe));
        assert_eq!(kind(r#", "recipe_text": "no recipe""#), Err(ErrorKind::Recipe));
        assert_eq!(kind(r#", "more": 1"#), Err(ErrorKind::Usage));
        assert_eq!(kind(r#", "redact": true, "find": ["secrets"]"#), Ok(()));
        assert_eq!(kind(r#", "redact": true, "find": ["no-such-rule"]"#), Err(ErrorKind::Usage));
    }

    #[test]
    fn an_option_that_would_be_ignored_is_an_error_that_names_it() {
        let message = |options: &str| {
            let options = format!("{{{AT}{options}}}");
            Fleet::new(options.as_bytes()).err().map(|err| err.to_string())
        };
        let no_window = "`window`: invalid value: 0, expected at least 1 token";
        assert_eq!(message(r#", "window": 0"#).as_deref(), Some(no_window));
        let no_counter = "`count`: unknown value `zzz`, expected `o200k` or `estimate`";
        assert_eq!(message(r#", "count": "zzz""#).as_deref(), Some(no_counter));
        let no_redact = "`find`: secrets, pii has no effect without `redact`";
        assert_eq!(message(r#", "find": ["secrets", "pii"]"#).as_deref(), Some(no_redact));
        let no_number =
            "`threads`: invalid value: integer `-1`, expected a whole number of at least 0";
        assert_eq!(message(r#", "threads": -1"#).as_deref(), Some(no_number));
    }

    /// The rows of a table have no program, no archive and no folder of the user.
    #[test]
    fn hints_name_nothing_that_a_fleet_does_not_have() {
        let sessions = recorded();
        let rows = compact(&fleet(""), &sessions);
        let row = sessions.iter().position(|(id, _)| id == "pi-pricing").expect("a session");
        let done = &rows[row].done.as_ref().expect("a session").compacted;
        let mut damaged = done.pack.clone().expect("a pack");
        let middle = damaged.len() / 2;
        damaged[middle] ^= 1;
        for pack in [damaged.as_slice(), b"no pack"] {
            let pack = FleetPack { bytes: done.bytes.as_deref(), pack: Some(pack), blake3: None };
            let [row] = <[_; 1]>::try_from(fleet("").restore(&[pack])).expect("a row");
            let hint = row.done.expect_err("a damaged pack").hint.expect("a hint");
            assert_eq!(hint, "the pack is damaged, or it is not the pack of this session");
        }
        let options = format!(r#"{{{AT}, "recipe": "no-such-recipe"}}"#);
        let err = Fleet::new(options.as_bytes()).err().expect("no recipe");
        let hint = err.hint().expect("a hint");
        assert!(hint.contains("epitome, ") && !hint.contains("/nonexistent"), "{hint}");
    }
}
