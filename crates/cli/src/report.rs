//! What a compaction did, for people and for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use epitome::{Generation, Place, Planned, User, Way};
use epitome_formats::{Fault, Native};
use epitome_model::{Bytes, Source, Tokens};
use epitome_passes::{KeepRule, Kept, Trigger};
use epitome_tokens::Calibration;
use serde::Serialize;

use crate::summarise::Models;
use crate::text::{self, BOLD, DIM, GREEN, Side, Table, change, count, field};

/// A number before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Change<T> {
    pub before: T,
    pub after: T,
}

/// How the tokens that a provider bills for a request follow from those of the messages:
/// `factor × messages + fixed_tokens`.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Fitted {
    pub factor: f64,
    /// The system prompt and the tools.
    pub fixed_tokens: Tokens,
    pub requests: usize,
    /// Nine of ten requests are within it.
    pub error_percent: f64,
}

impl Fitted {
    pub fn of(calibration: &Calibration) -> Fitted {
        Fitted {
            factor: f64::from(calibration.factor) / 1_000.0,
            fixed_tokens: calibration.fixed,
            requests: calibration.points,
            error_percent: f64::from(calibration.error) / 10.0,
        }
    }
}

/// What became of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It was compacted.
    Compacted,
    /// It would be compacted.
    Planned,
    /// There is nothing to do.
    Nothing,
}

/// What is kept whole, and why.
#[derive(Clone, Debug, Serialize)]
pub struct KeptBecause {
    pub tokens: Tokens,
    pub rules: Vec<RuleKept>,
    /// The rules that together would keep everything.
    pub covered_everything: Vec<KeepRule>,
    /// The tail of tokens that is kept instead of what those rules would; none when it takes the
    /// last tokens to keep everything.
    pub instead: Option<Tokens>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct RuleKept {
    pub rule: KeepRule,
    pub entries: u64,
}

/// A record that could not be read as it should be.
#[derive(Clone, Debug, Serialize)]
pub struct FaultFound {
    pub line: u64,
    pub what: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct UserFound {
    pub pid: u32,
    pub name: String,
}

/// How a compaction is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WayTaken {
    Native,
    Rewrite,
    Summary,
}

/// What a compaction of one file came to. See `docs/json.md`.
#[derive(Clone, Debug, Serialize)]
pub struct FileReport {
    pub session: String,
    pub agent: &'static str,
    pub id: Option<String>,
    pub outcome: Outcome,
    /// How it is written, where there is a choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way: Option<WayTaken>,
    pub generation: Option<u64>,
    pub context_tokens: Change<Tokens>,
    /// The whole request as the provider bills it, where the session records enough of them.
    pub request_tokens: Option<Change<Tokens>>,
    pub calibration: Option<Fitted>,
    pub disk_bytes: Change<Bytes>,
    /// The pack in the archive that was written, or would be.
    pub archive_bytes: Bytes,
    #[serde(skip)]
    pub billed: Option<Calibration>,
    pub edits: BTreeMap<String, u64>,
    pub kept_because: KeptBecause,
    /// What the recipe waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_reached: Option<Trigger>,
    #[serde(skip)]
    pub too_little: Option<Tokens>,
    /// The target, when what is left is still more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_missed: Option<Tokens>,
    pub faults: Vec<FaultFound>,
    /// The blake3 hash of the session before, which the archive was proved to give back.
    pub restored_proof: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "crate::text::lossy_option")]
    pub backup: Option<PathBuf>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_use: Vec<UserFound>,
}

/// A session with what belongs to it.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    #[serde(flatten)]
    pub file: FileReport,
    pub recipe: String,
    pub counter: &'static str,
    pub dry_run: bool,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "crate::text::lossy_option")]
    pub out: Option<PathBuf>,
    /// The run that wrote it: see `epitome log`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Whether it was left because too little of its context would go.
    #[serde(skip)]
    pub too_little: bool,
    /// What models were asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<Models>,
    /// The files of its sub-agents.
    pub files: Vec<FileReport>,
    #[serde(skip)]
    pub diff: String,
}

impl Report {
    /// Whether neither the session nor its sub-agents' had anything to do.
    pub fn is_nothing(&self) -> bool {
        let mut all = std::iter::once(&self.file).chain(&self.files);
        all.all(|file| file.outcome == Outcome::Nothing)
    }
}

impl FileReport {
    pub fn of<S: Source>(name: String, planned: &Planned<'_, S>) -> FileReport {
        let session = planned.session;
        let compaction = &planned.compaction;
        let edits = compaction.by_pass();
        FileReport {
            session: name,
            agent: session.format.name,
            id: session.transcript.head.id.as_deref().map(str::to_owned),
            outcome: if planned.is_empty() { Outcome::Nothing } else { Outcome::Planned },
            way: match planned.way {
                Way::Native => Some(WayTaken::Native),
                Way::Rewrite => session.format.native.map(|_| WayTaken::Rewrite),
                Way::Summary => Some(WayTaken::Summary),
            },
            generation: None,
            context_tokens: Change {
                before: compaction.tokens_before,
                after: planned.tokens_after,
            },
            request_tokens: None,
            calibration: None,
            disk_bytes: Change { before: Bytes(session.source.len()), after: planned.bytes_after },
            archive_bytes: Bytes(0),
            billed: None,
            edits: edits.into_iter().map(|(pass, n)| (pass.to_owned(), n)).collect(),
            kept_because: KeptBecause::of(planned.kept()),
            not_reached: compaction.not_reached,
            too_little: compaction.too_little,
            target_missed: planned
                .recipe
                .target
                .map(Tokens)
                .filter(|it| planned.tokens_after > *it),
            faults: session.faults.iter().map(FaultFound::of).collect(),
            restored_proof: None,
            backup: None,
            in_use: Vec::new(),
        }
    }

    /// How an agent's own way is written.
    fn own_way(&self) -> String {
        let native = epitome_formats::named(self.agent).and_then(|format| format.native);
        match (self.way, native) {
            (Some(WayTaken::Native), Some(Native::Mark(_))) => {
                format!("by marks of {}'s own", self.agent)
            }
            (Some(_) | None, Some(_) | None) => format!("in a record of {}'s own", self.agent),
        }
    }

    /// What the provider bills, by what the session records of it.
    pub fn billed_by(&mut self, calibration: Option<Calibration>) {
        let Change { before, after } = self.context_tokens;
        self.billed = calibration;
        self.calibration = calibration.as_ref().map(Fitted::of);
        self.request_tokens =
            calibration.map(|it| Change { before: it.apply(before), after: it.apply(after) });
    }

    /// What the session and the archive take together.
    fn net(&self) -> Change<Bytes> {
        let Change { before, after } = self.disk_bytes;
        Change { before, after: after + self.archive_bytes }
    }

    /// That it was done, how it is undone, and the length of its pack in the archive.
    pub fn done(&mut self, generation: &Generation, pack: Bytes) {
        self.archive_bytes = pack;
        self.outcome = Outcome::Compacted;
        self.generation = Some(generation.number);
        self.restored_proof = Some(generation.before.blake3.to_string());
    }
}

impl KeptBecause {
    fn of(kept: &Kept) -> KeptBecause {
        let rules = kept.rules.iter().map(|&(rule, entries)| RuleKept { rule, entries });
        KeptBecause {
            tokens: kept.tokens,
            rules: rules.collect(),
            covered_everything: kept.covered_everything.clone(),
            instead: kept.instead,
        }
    }
}

impl FaultFound {
    pub fn of(fault: &Fault) -> FaultFound {
        FaultFound { line: fault.line, what: fault.what.clone() }
    }
}

impl UserFound {
    pub fn of(user: &User) -> UserFound {
        UserFound { pid: user.pid, name: user.name.clone() }
    }
}

impl Report {
    /// Messages and disk of the session with all that belongs to it, and disk with the archive.
    pub fn total(&self) -> (Change<Tokens>, Change<Bytes>, Change<Bytes>) {
        let all = || std::iter::once(&self.file).chain(&self.files);
        (
            Change {
                before: all().map(|file| file.context_tokens.before).sum(),
                after: all().map(|file| file.context_tokens.after).sum(),
            },
            Change {
                before: all().map(|file| file.disk_bytes.before).sum(),
                after: all().map(|file| file.disk_bytes.after).sum(),
            },
            Change {
                before: all().map(|file| file.net().before).sum(),
                after: all().map(|file| file.net().after).sum(),
            },
        )
    }

    /// What belongs to the session, in words; none if nothing does.
    fn with(&self) -> Option<String> {
        if self.files.is_empty() {
            return None;
        }
        Some(match self.sub_agents() {
            0 => "with its log".to_owned(),
            n => format!("with {}", count(n, "sub-agent")),
        })
    }

    /// The whole report of one session.
    pub fn render(&self) -> String {
        let file = &self.file;
        let mut text = self.diff.clone();
        let all = || std::iter::once(file).chain(&self.files).map(|it| it.outcome);
        let verb = match all().find(|it| *it != Outcome::Nothing) {
            Some(Outcome::Compacted) => "compacted",
            Some(Outcome::Planned) => "would compact",
            Some(Outcome::Nothing) | None => "nothing to do",
        };
        let name = text::path(Path::new(&file.session));
        let _ = writeln!(text, "{BOLD}{verb}{BOLD:#}  {name}");
        let mut facts = vec![format!("{} · recipe {}", file.agent, field(&self.recipe))];
        let appended = matches!(file.way, Some(WayTaken::Native | WayTaken::Summary))
            && file.outcome != Outcome::Nothing;
        facts.extend(appended.then(|| file.own_way()));
        facts.extend(file.generation.map(|number| format!("generation {number}")));
        facts.extend(self.dry_run.then(|| "nothing was written".to_owned()));
        let _ = writeln!(text, "{DIM}{}{DIM:#}\n", facts.join(" · "));
        text.push_str(&self.numbers());
        text.push('\n');
        let mut lines = Lines::default();
        lines.add("edits", edits(file));
        lines.extend("kept", kept(file));
        lines.extend("faults", faults(&file.faults));
        lines.extend("in use", in_use(file));
        if let Some(out) = &self.out {
            lines.add("written", text::path(out));
        }
        if let Some(backup) = &file.backup {
            lines.add("backup", text::path(backup));
        }
        for file in self.files.iter().filter(|it| it.outcome != Outcome::Nothing) {
            let stem = Path::new(&file.session).file_stem().unwrap_or_default();
            let Change { before, after } = file.disk_bytes;
            let number = file.generation.map(|number| format!("  generation {number}"));
            let name = field(&stem.to_string_lossy());
            let change = text::bytes_change(before, after);
            lines.add("with", format!("{name}  {change}{}", number.unwrap_or_default()));
        }
        if let Some(hash) = &file.restored_proof {
            lines.add("proved", format!("the archive gives it back: blake3 {hash}"));
        }
        if all().any(|it| it == Outcome::Compacted) && self.out.is_none() {
            lines.add("undo", format!("epitome restore {}", shell_word(&name)));
        }
        text.push_str(&lines.render());
        text
    }

    /// Some agents keep a log beside what was said.
    fn sub_agents(&self) -> u64 {
        let files = self.files.iter().map(|file| Place::of(Path::new(&file.session)));
        files.filter(Place::is_conversation).count() as u64
    }

    fn numbers(&self) -> String {
        let sides = [Side::Left, Side::Right, Side::Left, Side::Right, Side::Right, Side::Left];
        let mut table = Table::new(&sides, &["", "before", "", "after", "", ""]);
        let mut row = |name: &str, (before, after), (b, a): (u64, u64), unit: &str| {
            let cells = [name.to_owned(), before, "→".into(), after, change(b, a), unit.to_owned()];
            table.row(cells.into());
        };
        let unit = format!("tokens ({})", self.counter);
        let of_tokens = |it: Change<Tokens>| (it.before.to_string(), it.after.to_string());
        let of_bytes = |it: Change<Bytes>| (it.before.to_string(), it.after.to_string());
        let file = &self.file;
        let (messages, disk, net) = (file.context_tokens, file.disk_bytes, file.net());
        row("messages", of_tokens(messages), (messages.before.0, messages.after.0), &unit);
        if let (Some(request), Some(billed)) = (file.request_tokens, &file.billed) {
            let basis = format!("as billed ({billed})");
            row("request", of_tokens(request), (request.before.0, request.after.0), &basis);
        }
        row("disk", of_bytes(disk), (disk.before.0, disk.after.0), "");
        if file.archive_bytes > Bytes(0) {
            let archive = format!("with {} in the archive", file.archive_bytes);
            row("net", of_bytes(net), (net.before.0, net.after.0), &archive);
        }
        if let Some(with) = self.with() {
            let (messages, disk, net) = self.total();
            let tokens = format!("tokens, {with}");
            row("messages", of_tokens(messages), (messages.before.0, messages.after.0), &tokens);
            row("disk", of_bytes(disk), (disk.before.0, disk.after.0), &with);
            if net != disk {
                let archive = format!("{with}, and the archive");
                row("net", of_bytes(net), (net.before.0, net.after.0), &archive);
            }
        }
        table.render()
    }
}

/// Labelled lines, the labels in a column.
#[derive(Default)]
pub struct Lines(Vec<(String, String)>);

impl Lines {
    pub fn add(&mut self, label: &str, line: impl Into<String>) {
        self.0.push((label.to_owned(), line.into()));
    }

    /// Lines under one label.
    pub fn extend(&mut self, label: &str, lines: Vec<String>) {
        for (idx, line) in lines.into_iter().enumerate() {
            self.add(if idx == 0 { label } else { "" }, line);
        }
    }

    pub fn render(&self) -> String {
        let width = self.0.iter().map(|(label, _)| label.len()).max().unwrap_or(0).max(7);
        let mut text = String::new();
        for (label, line) in &self.0 {
            let _ = writeln!(text, "{DIM}{label:width$}{DIM:#}  {line}");
        }
        text
    }
}

/// Many sessions: a line each, and all of them together.
pub fn summary(reports: &[Report]) -> String {
    use Side::{Left, Right};
    let sides = [Left, Right, Left, Right, Right, Right, Left, Right, Right, Left];
    let heads = ["session", "messages", "", "after", "", "disk", "", "after", "", ""];
    let mut table = Table::new(&sides, &heads);
    let mut add = |style, name: String, (context, disk): (Change<Tokens>, Change<Bytes>), what| {
        let mut cells = vec![name, context.before.to_string(), "→".into()];
        cells.extend([context.after.to_string(), change(context.before.0, context.after.0)]);
        cells.extend([disk.before.to_string(), "→".into(), disk.after.to_string()]);
        cells.extend([change(disk.before.0, disk.after.0), what]);
        table.styled(style, cells);
    };
    let mut all = (Change::<Tokens>::default(), Change::<Bytes>::default());
    let mut archive = Bytes(0);
    for report in reports {
        let file = &report.file;
        let what = match file.outcome {
            Outcome::Compacted | Outcome::Planned => String::new(),
            Outcome::Nothing => "nothing to do".to_owned(),
        };
        let name = Path::new(&file.session).file_stem().unwrap_or_default();
        let own = (file.context_tokens, file.disk_bytes);
        add(text::PLAIN, field(&name.to_string_lossy()), own, what);
        let (tokens, bytes, net) = report.total();
        if let Some(with) = report.with() {
            add(DIM, format!("  {with}"), (tokens, bytes), String::new());
        }
        all.0.before += tokens.before;
        all.0.after += tokens.after;
        all.1.before += bytes.before;
        all.1.after += bytes.after;
        archive += net.after - bytes.after;
    }
    if reports.len() > 1 {
        let of_what = match reports.iter().any(|report| !report.files.is_empty()) {
            true => "with what belongs to them".to_owned(),
            false => String::new(),
        };
        add(GREEN, count(reports.len() as u64, "session"), all, of_what);
    }
    let mut text = table.render();
    if archive > Bytes(0) {
        let (before, after) = (all.1.before, all.1.after + archive);
        let change = change(before.0, after.0);
        let _ = writeln!(
            text,
            "{DIM}with {archive} in the archive: {before} → {after} {change}{DIM:#}"
        );
    }
    text
}

fn edits(file: &FileReport) -> String {
    if file.edits.is_empty() {
        return "none".to_owned();
    }
    let edits = file.edits.iter().map(|(pass, n)| format!("{pass} {n}"));
    edits.collect::<Vec<_>>().join(" · ")
}

fn kept(file: &FileReport) -> Vec<String> {
    if let Some(trigger) = file.not_reached {
        let mut waits = Vec::new();
        waits.extend(trigger.tokens.map(|least| format!("{} tokens of context", Tokens(least))));
        waits.extend(trigger.bytes.map(|least| format!("{} on disk", Bytes(least))));
        return vec![format!("everything: the recipe begins at {}", waits.join(" and "))];
    }
    if let Some(saved) = file.too_little {
        return vec![format!(
            "everything: only {saved} tokens would go, and the recipe wants more"
        )];
    }
    let kept = &file.kept_because;
    let rules: Vec<String> = kept
        .rules
        .iter()
        .map(|kept| format!("{} ({})", kept.rule, entries(kept.entries)))
        .collect();
    let mut lines = Vec::new();
    if !rules.is_empty() {
        lines.push(format!("{} tokens whole: {}", kept.tokens, rules.join(", ")));
    }
    if !kept.covered_everything.is_empty() {
        let rules: Vec<String> = kept.covered_everything.iter().map(ToString::to_string).collect();
        let one = rules.len() == 1;
        let rules = format!("the {} {}", if one { "rule" } else { "rules" }, rules.join(", "));
        lines.push(match kept.instead {
            Some(tail) => {
                format!("{rules} would keep everything; the last {tail} tokens are kept instead")
            }
            None => format!(
                "{rules} {} everything: nothing is old yet",
                if one { "keeps" } else { "keep" }
            ),
        });
    }
    if let Some(target) = file.target_missed {
        lines
            .push(format!("the target of {target} is not reached: the rest is kept, or cannot go"));
    }
    lines
}

fn entries(n: u64) -> String {
    format!("{n} {}", if n == 1 { "entry" } else { "entries" })
}

/// The first faults, and how many more.
pub fn faults(faults: &[FaultFound]) -> Vec<String> {
    let mut lines: Vec<String> = faults
        .iter()
        .take(5)
        .map(|fault| format!("line {}: {}", fault.line, field(&fault.what)))
        .collect();
    if faults.len() > 5 {
        lines.push(format!("and {} more", faults.len() - 5));
    }
    lines
}

fn in_use(file: &FileReport) -> Vec<String> {
    let users = file.in_use.iter();
    users.map(|user| format!("{} (process {})", field(&user.name), user.pid)).collect()
}

/// A word as a shell takes it.
fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./~+:@%=,".contains(c);
    if text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// What several compactions come to, for a person.
#[derive(Debug, Default)]
pub struct Sum {
    /// Sessions that are written.
    pub sessions: u64,
    tokens: Change<Tokens>,
    bytes: Change<Bytes>,
    /// Sessions of which too little of the context would go.
    pub too_little: u64,
}

impl Sum {
    pub fn add(&mut self, report: &Report) {
        let (tokens, bytes, _) = report.total();
        self.sessions += 1;
        self.tokens.before += tokens.before;
        self.tokens.after += tokens.after;
        self.bytes.before += bytes.before;
        self.bytes.after += bytes.after;
    }

    /// `verb` says what becomes of them: `compacted`, `would be compacted`.
    pub fn told(&self, verb: &str) -> String {
        let Sum { sessions, tokens, bytes, too_little } = self;
        let mut text = String::new();
        if *too_little > 0 {
            let left = count(*too_little, "session");
            text.push_str(&format!("{left} left: too little of the context would go\n"));
        }
        text.push_str(&match sessions {
            0 => "nothing to compact\n".to_owned(),
            n => format!(
                "{} {verb}: context {} → {} tokens ({}), disk {}\n",
                count(*n, "session"),
                tokens.before,
                tokens.after,
                change(tokens.before.0, tokens.after.0),
                text::bytes_change(bytes.before, bytes.after),
            ),
        });
        text
    }
}
