//! `epitome restore`: give a session back.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use epitome::{
    Archive, Damage, Digest, FileSource, Generations, Loaded, Place, Restoration, Restored,
    SessionKey, Spliced, Store, Target, archive_way_back, check_stubs, find, restore_block,
    restore_from, write_new,
};
use epitome_model::{Bytes, Ref, Source};
use serde::Serialize;

use crate::app::App;
use crate::cmd::install::agreed;
use crate::failure::{Failure, Result, Status};
use crate::report::{Change, Lines};
use crate::session::{check_writable, file, looks_like_one};
use crate::text::{self, BOLD, DIM, bytes_change, count};

const EXAMPLES: &str = "\
Examples:
  epitome restore 0f3c9a52                      to what the agent wrote
  epitome restore 0f3c9a52 --generation 1       to what the first compaction left
  epitome restore 0f3c9a52 --block k7f3a9c2     one removed piece, all else stays
  epitome restore 0f3c9a52 --out whole.jsonl    the session stays small";

/// Give a session back, byte for byte, with what its agent appended since
///
/// If the file was changed by others since, each record that is still as it was left is given
/// back, and the others are counted.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A file, an id, or the beginning of an id
    #[arg(value_name = "SESSION")]
    pub session: OsString,

    /// Go back to what this compaction left, and not to the original
    #[arg(long, value_name = "N", conflicts_with = "block")]
    pub generation: Option<u64>,

    /// Give one removed piece back, named as its stub names it
    #[arg(long, value_name = "REF", value_parser = parse_ref)]
    pub block: Option<Ref>,

    /// Write the restored session to a new file, and leave the session as it is
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Change nothing, and print the same report
    #[arg(long)]
    pub dry_run: bool,

    /// Go on although another program has the session open
    #[arg(long)]
    pub force: bool,

    /// Restore what can be although a part of the archive is damaged or missing
    #[arg(long)]
    pub partial: bool,

    /// Use imported parts of the archive without asking
    #[arg(long)]
    pub yes: bool,
}

/// How a file was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum How {
    /// To the byte, proved by hash.
    Exact,
    /// Record by record: others changed the file since.
    ByRecord,
    /// There was nothing to undo.
    Nothing,
}

/// What became of one file. See `docs/json.md`.
#[derive(Clone, Debug, Serialize)]
struct FileReport {
    #[serde(serialize_with = "crate::text::lossy")]
    session: PathBuf,
    agent: String,
    outcome: How,
    undone: Vec<u64>,
    restored: u64,
    /// How many of them not by hash.
    #[serde(skip)]
    by_record: u64,
    missing: u64,
    disk_bytes: Change<Bytes>,
    /// The blake3 hash of what was written.
    blake3: String,
    /// The same, if it was proved to be what the archive says was there.
    restored_proof: Option<String>,
    generation: Option<u64>,
    damaged: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
struct Report {
    #[serde(flatten)]
    file: FileReport,
    dry_run: bool,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "crate::text::lossy_option")]
    out: Option<PathBuf>,
    files: Vec<FileReport>,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    let path = file(app, &args.session)?;
    let job = Job { app, args, archive: app.config.archive() };
    job.check(&path)?;
    let file = job.restore(&path)?;
    let mut files = Vec::new();
    // Sub-agents have generations of their own, which the numbers do not mean.
    if args.out.is_none() && args.generation.is_none() && args.block.is_none() {
        for companion in find::companions(&path) {
            if job.is_nothing(&companion)? {
                continue;
            }
            match job.restore(&companion) {
                Ok(report) => files.push(report),
                Err(failure) if failure.kind == "not-archived" => {}
                Err(failure) => return Err(failure),
            }
        }
    }
    let report = Report { file, dry_run: args.dry_run, out: args.out.clone(), files };
    match app.global.json {
        true => app.print_json(&report),
        false => app.print(&report.render()),
    }
}

struct Job<'a> {
    app: &'a App,
    args: &'a Args,
    archive: Archive,
}

/// What the archive knows of a file.
struct Known {
    key: SessionKey,
    found: Generations,
    damaged: Vec<String>,
}

impl Job<'_> {
    /// Plans what is restored with a session before anything of it is written: a damaged part of
    /// the archive, of whichever file, changes nothing.
    fn check(&self, path: &Path) -> Result<()> {
        let is_alone = self.args.generation.is_some() || self.args.block.is_some();
        if is_alone || self.args.out.is_some() || self.args.partial {
            return Ok(());
        }
        for companion in find::companions(path) {
            if self.is_nothing(&companion)? {
                continue;
            }
            let source = epitome::open(&companion)?;
            let known = match self.known(&companion, &source) {
                Ok(known) => known,
                Err(failure) if failure.kind == "not-archived" => continue,
                // What is no session was never compacted.
                Err(failure) if failure.status == Status::Unreadable => continue,
                Err(failure) => return Err(failure.about(&companion)),
            };
            self.plan(&companion, &source, &known).map_err(|failure| failure.about(&companion))?;
        }
        Ok(())
    }

    /// Asks whether imported generations may be used.
    fn ask(&self, known: &Known, restoration: &Restoration) -> Result<()> {
        let imported = known.found.imported_in(restoration);
        if imported.is_empty() {
            return Ok(());
        }
        let numbers: Vec<String> = imported.iter().map(ToString::to_string).collect();
        let question = format!(
            "{} of {} came from an import, and may put in what was never there. Use them?",
            numbers.join(", "),
            text::field(&known.key.id),
        );
        agreed(self.app, self.args.yes, &format!("Generation {question}"))
    }

    fn restore(&self, path: &Path) -> Result<FileReport> {
        let in_place = self.args.out.is_none() && !self.args.dry_run;
        let source = epitome::open(path)?;
        check_writable(self.app, &source).map_err(|failure| failure.about(path))?;
        if !in_place {
            let known = self.known(path, &source)?;
            let (report, restoration) = self.plan(path, &source, &known)?;
            if let (Some(out), false) = (&self.args.out, self.args.dry_run) {
                self.ask(&known, &restoration)?;
                let spliced = Spliced::new(&source, restoration.splices)?;
                write_new(out, |to| spliced.copy_to(to)).map_err(Failure::writing)?;
            }
            return Ok(report);
        }
        let config = &self.app.config;
        if !looks_like_one(self.app, &source) {
            self.known(path, &source)?;
        }
        let users = find::users(config, path);
        if !users.is_empty() && !self.args.force {
            return Err(Failure::in_use(path, &users));
        }
        self.app.warn(Failure::forced(&users).as_deref());
        let _held = find::hold(config, path).map_err(|users| Failure::held(path, &users))?;
        let session = Store::new(&config.home).open_for_edit(path)?;
        let known = self.known(session.path(), session.source())?;
        let (mut report, restoration) = self.plan(path, session.source(), &known)?;
        let Some(first) = restoration.splices.first() else { return Ok(report) };
        self.ask(&known, &restoration)?;
        find::check_places(path, first.span.start).map_err(Failure::writing)?;
        let spliced = Spliced::new(session.source(), restoration.splices)?;
        if report.outcome == How::ByRecord {
            let (path, source) = (session.path(), session.source());
            let generation = archive_way_back(config, &known.key, path, source, &spliced);
            report.generation = Some(generation.map_err(Failure::writing)?.number);
        }
        find::forget(config, path).map_err(Failure::writing)?;
        session.replace(|to| spliced.copy_to(to)).map_err(Failure::writing)?;
        Ok(report)
    }

    /// Whether nothing stands there, and never did: not every session has all its companions.
    fn is_nothing(&self, companion: &Path) -> Result<bool> {
        let source = epitome::open(companion)?;
        Ok(source.is_empty() && self.of_path(companion)?.is_none())
    }

    /// By the key of the session; if its id cannot be read any more, by the path of its file.
    fn known(&self, path: &Path, source: &FileSource) -> Result<Known> {
        let session = Loaded::read(source, self.app.agent());
        let has_id = session.as_ref().is_ok_and(|it| it.transcript.head.id.is_some());
        let known = match &session {
            Ok(session) => Some(self.of_key(session.key(path))?),
            Err(_) => None,
        };
        let known = match known {
            Some(known) if has_id || !known.is_empty() => known,
            by_name => match (self.of_path(path)?.or(by_name), session) {
                (Some(known), _) => known,
                (None, Err(err)) => return Err(Failure::from(err).about(path)),
                (None, Ok(session)) => self.of_key(session.key(path))?,
            },
        };
        if known.found.whole.is_empty() {
            return Err(match known.damaged.is_empty() {
                true => {
                    check_stubs(&self.archive, &known.key, &known.found, source)
                        .map_err(|err| Failure::from(err).about(path))?;
                    nothing_archived(path)
                }
                false => {
                    let what = format!("no generation can be read of: {}", path.display());
                    let mut failure = Failure::new(Status::Disk, "archive", what);
                    failure.causes = known.damaged;
                    failure.hint("`epitome archive verify` says what is damaged")
                }
            });
        }
        Ok(known)
    }

    fn of_key(&self, key: SessionKey) -> Result<Known> {
        let found = self.archive.generations(&key).map_err(Failure::writing)?;
        let damaged = found.damaged.iter().map(ToString::to_string).collect();
        Ok(Known { key, found, damaged })
    }

    fn of_path(&self, path: &Path) -> Result<Option<Known>> {
        let path = &Place::of(path).real().unwrap_or_else(|_| path.to_owned());
        for key in self.archive.sessions().map_err(Failure::writing)? {
            let known = self.of_key(key)?;
            if known.found.whole.iter().any(|generation| same_file(&generation.path, path)) {
                return Ok(Some(known));
            }
        }
        Ok(None)
    }

    fn plan(
        &self,
        path: &Path,
        source: &FileSource,
        known: &Known,
    ) -> Result<(FileReport, Restoration)> {
        let blobs = self.archive.blobs(&known.key);
        let target = self.args.generation.map_or(Target::Original, Target::Generation);
        let restoration = match &self.args.block {
            Some(reference) => restore_block(source, &known.found.whole, &blobs, reference),
            None => {
                let damage = if self.args.partial { Damage::LeaveOut } else { Damage::Refuse };
                restore_from(&self.archive, &known.key, &known.found, source, target, damage)
            }
        };
        let restoration = restoration.map_err(|err| not_there(err, known))?;
        let spliced = Spliced::new(source, restoration.splices.clone())?;
        let digest = Digest::of_source(&spliced)?;
        let before = Bytes(source.len());
        let (outcome, undone, restored, missing) = match &restoration.outcome {
            Restored::Exact { undone } if undone.is_empty() => (How::Nothing, vec![], 0, 0),
            Restored::Exact { undone } => (How::Exact, undone.clone(), edits(known, undone), 0),
            Restored::ByRecord { undone, restored, missing } => {
                (How::ByRecord, undone.clone(), edits(known, undone) + restored, *missing)
            }
        };
        let by_record = match &restoration.outcome {
            Restored::Exact { .. } => 0,
            Restored::ByRecord { restored, .. } => *restored,
        };
        let blake3 = digest.blake3.to_string();
        let report = FileReport {
            session: path.to_owned(),
            agent: known.key.agent.clone(),
            outcome,
            undone,
            restored,
            by_record,
            missing,
            disk_bytes: Change { before, after: Bytes(digest.len) },
            restored_proof: (outcome != How::ByRecord).then(|| blake3.clone()),
            blake3,
            generation: None,
            damaged: known.damaged.clone(),
        };
        Ok((report, restoration))
    }
}

impl Known {
    fn is_empty(&self) -> bool {
        self.found.whole.is_empty() && self.damaged.is_empty()
    }
}

fn nothing_archived(path: &Path) -> Failure {
    let what = format!("the archive holds nothing of this session: {}", path.display());
    Failure::new(Status::Disk, "not-archived", what)
        .hint("`epitome archive ls` shows the sessions that were compacted on this machine")
        .hint("EPITOME_HOME says where the archive is, if it is not the usual place")
}

/// Edits of the generations that were undone.
fn edits(known: &Known, undone: &[u64]) -> u64 {
    let of = known.found.whole.iter().filter(|generation| undone.contains(&generation.number));
    of.map(|generation| generation.records.len() as u64).sum()
}

/// Nothing of that name in the archive is a matter of the archive, not of the session.
fn not_there(err: epitome::Error, known: &Known) -> Failure {
    let is_missing = err.kind() == epitome::ErrorKind::NotFound;
    let mut failure = Failure::from(err);
    if is_missing {
        failure.status = Status::Disk;
        let numbers = known.found.whole.iter().map(|it| it.number.to_string());
        let numbers: Vec<String> = numbers.collect();
        failure.hints.push(format!("this session has the generations {}", numbers.join(", ")));
    }
    failure
}

fn same_file(one: &Path, other: &Path) -> bool {
    one == other
        || match (one.canonicalize(), other.canonicalize()) {
            (Ok(one), Ok(other)) => one == other,
            (Err(_), _) | (_, Err(_)) => false,
        }
}

pub fn parse_ref(text: &str) -> std::result::Result<Ref, String> {
    text.parse().map_err(|_| {
        format!("`{text}` is no reference; it looks like k7f3a9c2, as stubs in a session have it")
    })
}

impl Report {
    fn render(&self) -> String {
        let file = &self.file;
        let verb = match self.dry_run {
            _ if file.restored == 0 => "nothing to do",
            true => "would restore",
            false => "restored",
        };
        let name = text::path(&file.session);
        let mut text = format!("{BOLD}{verb}{BOLD:#}  {name}\n");
        if self.dry_run {
            text.push_str(&format!("{DIM}nothing was written{DIM:#}\n"));
        }
        let mut lines = Lines::default();
        let Change { before, after } = file.disk_bytes;
        lines.add("disk", bytes_change(before, after));
        lines.extend("how", file.how());
        if let Some(out) = &self.out {
            lines.add("written", text::path(out));
        }
        if let Some(number) = file.generation {
            let before = number - 1;
            let how = format!("kept as generation {number}; --generation {before} undoes it");
            lines.add("", how);
        }
        for damaged in &file.damaged {
            lines.add("damaged", text::field(damaged));
        }
        for companion in self.files.iter().filter(|it| it.outcome != How::Nothing) {
            let Change { before, after } = companion.disk_bytes;
            let name = companion.session.file_stem().unwrap_or_default().to_string_lossy();
            let name = text::field(&name);
            lines.add("with", format!("{name}  {}", bytes_change(before, after)));
            lines.extend("", companion.how());
        }
        text.push_str(&lines.render());
        text
    }
}

impl FileReport {
    fn how(&self) -> Vec<String> {
        let numbers: Vec<String> = self.undone.iter().map(ToString::to_string).collect();
        let word = if numbers.len() == 1 { "generation" } else { "generations" };
        let exactly = count(self.restored - self.by_record, "record");
        let exactly = format!("{word} {} undone, {exactly} given back", numbers.join(", "));
        match self.outcome {
            How::Nothing => vec![format!("it is what it was: blake3 {}", self.blake3)],
            How::Exact => {
                vec![
                    format!("exact, to the byte: {exactly}"),
                    format!("proved: blake3 {}", self.blake3),
                ]
            }
            How::ByRecord => {
                let restored = count(self.by_record, "edit");
                let mut lines = vec![format!("record by record: {restored} undone")];
                if !numbers.is_empty() {
                    let since = "the file was changed by others before that";
                    lines.insert(0, format!("to the byte: {exactly}; {since}"));
                }
                if self.missing > 0 {
                    let verb = if self.missing == 1 { "is" } else { "are" };
                    lines.push(format!(
                        "{} {verb} no longer where epitome left {}: `epitome show` has the bytes",
                        self.missing,
                        if self.missing == 1 { "it" } else { "them" },
                    ));
                }
                lines
            }
        }
    }
}
