//! A campaign: runs cases of all scenarios until the time is over.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

use crate::case::Case;
use crate::damage::Archived;
use crate::subject::subjects;
use crate::task::Task;
use crate::violation::Kind;
use crate::{call, damage, disk, hostile, kill, mutant, proxy, vault, writer};

/// The settings of a campaign.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The program that is tested.
    pub program: PathBuf,
    /// How long cases are run, without the time of the preparations. The case that runs at the end
    /// is finished.
    pub time: Duration,
    /// The number of the first case of each scenario.
    pub seed: u64,
    /// If set, only this scenario runs.
    pub only: Option<Scenario>,
    /// Maximum number of cases of each scenario.
    pub cases: Option<u64>,
}

/// A kind of fault that a campaign causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// Kills at random moments.
    Kill,
    /// Kills and errors at each system call.
    Call,
    /// Full disks.
    Disk,
    /// Damaged archives.
    Archive,
    /// Damaged sessions, in the library.
    Mutant,
    /// Damaged sessions, with the program.
    Session,
    /// Agents that write to a session while a command runs.
    Writer,
    /// Hostile homes.
    Home,
    /// A proxy that is killed.
    Proxy,
    /// Processes of `epitome keep` that are killed.
    Vault,
}

impl Scenario {
    /// All scenarios, with their shares of the time.
    const ALL: [(Scenario, u32); 10] = [
        (Scenario::Kill, 20),
        (Scenario::Call, 26),
        (Scenario::Disk, 8),
        (Scenario::Archive, 8),
        (Scenario::Mutant, 12),
        (Scenario::Session, 7),
        (Scenario::Writer, 4),
        (Scenario::Home, 5),
        (Scenario::Proxy, 4),
        (Scenario::Vault, 6),
    ];

    /// The scenario's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Scenario::Kill => "kill",
            Scenario::Call => "call",
            Scenario::Disk => "disk",
            Scenario::Archive => "archive",
            Scenario::Mutant => "mutant",
            Scenario::Session => "session",
            Scenario::Writer => "writer",
            Scenario::Home => "home",
            Scenario::Proxy => "proxy",
            Scenario::Vault => "vault",
        }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Scenario::Kill => "killed at a random moment",
            Scenario::Call => "killed, or an error, at each system call",
            Scenario::Disk => "full disks",
            Scenario::Archive => "damaged archives",
            Scenario::Mutant => "damaged sessions, in the library",
            Scenario::Session => "damaged sessions, with the program",
            Scenario::Writer => "agents that write meanwhile",
            Scenario::Home => "hostile homes",
            Scenario::Proxy => "a proxy that is killed amid requests",
            Scenario::Vault => "keepers of versions, each killed 5 times",
        };
        f.write_str(what)
    }
}

impl FromStr for Scenario {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Scenario> {
        let mut scenarios = Scenario::ALL.iter().map(|(scenario, _)| *scenario);
        scenarios
            .find(|scenario| scenario.name() == text)
            .ok_or_else(|| anyhow::anyhow!("no scenario `{text}`"))
    }
}

/// The figures of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// The scenario.
    pub scenario: Scenario,
    /// Number of cases that were run.
    pub cases: u64,
    /// Number of cases in which the fault occurred before the command ended. Parts without such a
    /// moment, for example damaged archives, count every case.
    pub hits: u64,
    /// Number of cases with a violation of each kind: lost, wrong, crashed, left behind.
    pub violations: [u64; 4],
}

/// The result of a campaign.
#[derive(Clone, Debug)]
pub struct Report {
    /// The figures of each scenario.
    pub figures: Vec<Figures>,
    /// What could not be tested here, and why.
    pub left_out: Vec<(String, String)>,
    /// The number of points of the scenario `call`: after so many cases of it, each point was tried
    /// once. 0 if the scenario did not run.
    pub points: usize,
}

/// A scenario while the campaign runs: its figures, its share of the time, the time spent so far,
/// and the function that runs the case with a given number.
struct Running<'a> {
    figures: Figures,
    share: u32,
    spent: Duration,
    case: Box<dyn Fn(u64) -> anyhow::Result<Case> + 'a>,
}

/// Runs a campaign. `say` is called for each violation, with the command that repeats the case.
///
/// # Errors
///
/// If the program fails without a fault, a case cannot be run, or the disk is full.
pub fn run(campaign: &Campaign, say: &mut dyn FnMut(&str)) -> anyhow::Result<Report> {
    let program = &campaign.program;
    let (tasks, undone) = prepare_tasks(campaign, say)?;
    let mut left_out: Vec<(String, String)> =
        undone.into_iter().map(|why| ("a scenario of chaos".to_owned(), why)).collect();
    let is_chosen = |scenario: Scenario| campaign.only.is_none_or(|only| only == scenario);
    let mut timed = Vec::new();
    if is_chosen(Scenario::Kill) {
        for task in &tasks {
            timed.push((task, task.time()?.min(task.time()?)));
        }
    }
    let can_mount = disk::can_mount();
    if !can_mount && is_chosen(Scenario::Disk) {
        left_out.push(("small disks".to_owned(), "none can be mounted here".to_owned()));
    }
    let mut calls = None;
    if is_chosen(Scenario::Call) && call::can_trace() {
        calls = Some(call::Calls::new(&tasks)?);
    } else if is_chosen(Scenario::Call) {
        let why = "strace is not installed, or may not look at processes here".to_owned();
        left_out.push(("faults at each system call".to_owned(), why));
    }
    let points = calls.as_ref().map_or(0, call::Calls::len);
    let mut archives = Vec::new();
    for subject in subjects()?.iter().filter(|_| is_chosen(Scenario::Archive)) {
        archives.extend(Archived::new(program, subject, 1)?);
        if subject.more != ["--keep-backup"] {
            archives.extend(Archived::new(program, subject, 2)?);
        }
    }
    let library = is_chosen(Scenario::Mutant).then(mutant::Library::new);
    let sessions = mutant::Program::new(program)?;
    let writers = writer::Writers::new(program)?;
    let homes = hostile::Homes::new(program)?;
    let conversation =
        is_chosen(Scenario::Proxy).then(|| proxy::Conversation::new(program)).transpose()?;
    let vaults = is_chosen(Scenario::Vault).then(|| vault::Vaults::new(program)).transpose()?;
    let mut running = Vec::new();
    for (scenario, share) in Scenario::ALL.into_iter().filter(|(it, _)| is_chosen(*it)) {
        let case: Box<dyn Fn(u64) -> anyhow::Result<Case> + '_> = match scenario {
            Scenario::Kill => Box::new(|seed| kill::case(&timed, seed)),
            Scenario::Call => match &calls {
                Some(calls) => Box::new(|seed| calls.case(seed)),
                None => continue,
            },
            Scenario::Disk => Box::new(|seed| disk::case(&tasks, can_mount, seed)),
            Scenario::Archive => Box::new(|seed| damage::case(&archives, seed)),
            Scenario::Mutant => match &library {
                Some(library) => Box::new(|seed| library.case(seed)),
                None => continue,
            },
            Scenario::Session => Box::new(|seed| sessions.case(seed)),
            Scenario::Writer => Box::new(|seed| writers.case(seed)),
            Scenario::Home => Box::new(|seed| homes.case(seed)),
            Scenario::Proxy => match &conversation {
                Some(conversation) => Box::new(|seed| conversation.case(seed)),
                None => continue,
            },
            Scenario::Vault => match &vaults {
                Some(vaults) => Box::new(|seed| vaults.case(seed)),
                None => continue,
            },
        };
        let figures = Figures { scenario, cases: 0, hits: 0, violations: [0; 4] };
        running.push(Running { figures, share, spent: Duration::ZERO, case });
    }
    all(campaign, &mut running, say)?;
    Ok(Report { figures: running.iter().map(|it| it.figures).collect(), left_out, points })
}

/// The tasks, and what could not be prepared; both are empty if no chosen scenario needs tasks.
fn prepare_tasks(
    campaign: &Campaign,
    say: &mut dyn FnMut(&str),
) -> anyhow::Result<(Vec<Task>, Vec<String>)> {
    let needs_tasks = [Scenario::Kill, Scenario::Call, Scenario::Disk];
    if !campaign.only.is_none_or(|only| needs_tasks.contains(&only)) {
        return Ok((Vec::new(), Vec::new()));
    }
    say("preparing: each command runs once without a fault");
    Task::all(&campaign.program)
}

/// Runs cases until the time is over or every scenario has had its maximum number of cases. The
/// next case is always of the scenario that has used the least time in proportion to its share.
fn all(
    campaign: &Campaign,
    running: &mut [Running<'_>],
    say: &mut dyn FnMut(&str),
) -> anyhow::Result<()> {
    let begin = Instant::now();
    let mut last_report = begin;
    while begin.elapsed() < campaign.time {
        let most = campaign.cases.unwrap_or(u64::MAX);
        let open = running.iter_mut().filter(|it| it.figures.cases < most);
        let Some(next) = open.min_by_key(|it| it.spent / it.share) else { break };
        let number = campaign.seed + next.figures.cases;
        let start = Instant::now();
        let case = (next.case)(number)?;
        next.spent += start.elapsed();
        next.figures.count(&case);
        if !case.violations.is_empty() {
            let name = next.figures.scenario.name();
            say(&format!("violation: {}", case.what));
            for violation in &case.violations {
                say(&format!("  {:?}: {}", violation.kind, violation.what));
            }
            say(&format!("  again: cargo lab chaos --only {name} --seed {number} --cases 1"));
        }
        if last_report.elapsed() > Duration::from_secs(30) {
            last_report = Instant::now();
            let cases: u64 = running.iter().map(|it| it.figures.cases).sum();
            say(&format!("{cases} cases after {} s", begin.elapsed().as_secs()));
        }
    }
    Ok(())
}

impl Figures {
    fn count(&mut self, case: &Case) {
        self.cases += 1;
        self.hits += u64::from(case.hit);
        let kinds = [Kind::Lost, Kind::Wrong, Kind::Crash, Kind::Left];
        for (n, kind) in self.violations.iter_mut().zip(kinds) {
            *n += u64::from(case.violations.iter().any(|it| it.kind == kind));
        }
    }
}

impl Report {
    /// Whether there was no violation.
    pub fn is_clean(&self) -> bool {
        self.figures.iter().all(|it| it.violations == [0; 4])
    }

    /// The figures as a table in Markdown.
    pub fn table(&self) -> String {
        let mut text = String::from(
            "| what | cases | fault in time | lost | wrong | crashed or hung | left behind |\n\
             |---|---:|---:|---:|---:|---:|---:|\n",
        );
        for Figures { scenario, cases, hits, violations } in &self.figures {
            let [lost, wrong, crashed, left] = violations;
            text.push_str(&format!(
                "| {scenario} | {cases} | {hits} | {lost} | {wrong} | {crashed} | {left} |\n"
            ));
        }
        text
    }
}
