//! Kills `epitome keep` while agents write, and checks that every version that the keeper kept
//! comes back.
//!
//! A file's content must come back if one of these holds: it was in the file during a scan that
//! completed; a keeper reported it before the keeper was killed; the vault lists it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::case::Case;
use crate::machine::{Ended, Machine, ended};
use crate::numbers::Numbers;
use crate::subject::subjects;
use crate::violation::{Kind, Violation};

/// How many keepers are killed in a case, at least. After the last, a scan completes.
const KILLS: usize = 5;
/// The number of packs in the vault at the start: with some more, keepers merge them.
const PACKS: usize = 30;
/// How many of the versions that were in the vault at the start are restored at the end.
const OLD_VERSIONS: usize = 3;
/// The maximum life of a keeper that waits for changes.
const LIFE: Duration = Duration::from_millis(1_200);
/// The times that the program's clock shows; the choice is random, so that the clock is also set
/// back.
const TIMES: [&str; 4] = [
    "2026-11-21T12:00:00Z",
    "2026-11-21T12:00:01Z",
    "2026-11-20T09:30:00Z",
    "2026-11-22T00:00:00.5Z",
];
/// The arguments of a scan.
const SCAN: [&str; 4] = ["keep", "--all", "--once", "--json"];

/// A file in which an agent keeps a session or a part of one.
struct Place {
    agent: &'static str,
    session: String,
    /// For a sub-agent: the name of its file without the extension.
    part: Option<String>,
    /// The path of the file below the home.
    path: String,
    /// For a sub-agent: the index of the place of the session that it belongs to.
    owner: Option<usize>,
    /// What the agent writes into a new file.
    begin: Vec<u8>,
}

/// Sessions that agents write, and a machine with them and with a vault of older versions.
pub(crate) struct Vaults {
    start: Machine,
    places: Vec<Place>,
    /// A session that has many versions in the vault, and whose file is gone. No agent writes it.
    old: Place,
    /// The time of a scan of everything.
    time: Duration,
}

/// What must be restorable on a machine, and the violations found so far.
struct Expected<'a> {
    places: &'a [Place],
    /// The contents that files had during a complete scan, by index of the place and hash.
    contents: BTreeMap<(usize, String), Vec<u8>>,
    /// The index of the place, the number and the length of each version that a keeper reported.
    reported: BTreeSet<(usize, u64, u64)>,
    violations: Vec<Violation>,
}

impl Vaults {
    /// Fills a vault with versions of one session, and writes the other sessions.
    ///
    /// # Errors
    ///
    /// If a scan fails.
    pub(crate) fn new(program: &std::path::Path) -> anyhow::Result<Vaults> {
        let start = Machine::new(program)?;
        let places = places()?;
        let old = places[0].with_last_digit('0');
        let path = start.write(&old.path, &old.begin)?;
        for n in 0..PACKS {
            append(&path, format!("{{\"type\":\"x\",\"n\":{n}}}\n").as_bytes())?;
            let scan = start.run(&SCAN)?;
            ensure!(scan.code() == Some(0), "keep: {}", scan.beginning_of_output());
        }
        fs::remove_file(path)?;
        for place in &places {
            start.write(&place.path, &place.begin)?;
        }
        let time = start.like()?.run(&SCAN)?.took;
        Ok(Vaults { start, places, old, time })
    }

    /// Kills keepers while an agent changes its files, and checks that everything that was kept can
    /// be restored.
    ///
    /// # Errors
    ///
    /// If a command cannot be started, or the disk is full.
    pub(crate) fn case(&self, seed: u64) -> anyhow::Result<Case> {
        let mut numbers = Numbers::new(seed);
        let mut machine = self.start.like()?;
        let mut expected = Expected::new(&self.places);
        let mut killed = 0;
        // A keeper may end before it is killed, and then does not count.
        while killed < KILLS {
            machine.now = TIMES[numbers.below(TIMES.len())];
            killed += self.disturb(&machine, &mut numbers, &mut expected)?;
            if killed >= KILLS || numbers.once_in(3) {
                expected.scan(&machine)?;
            }
        }
        expected.check(&machine)?;
        expected.check_old(&machine, &self.old, &mut numbers)?;
        let what = format!("{killed} keepers killed");
        Ok(Case { what, hit: true, violations: expected.violations })
    }

    /// Starts one keeper, sometimes two, and kills them while an agent writes. Returns how many
    /// were killed before they ended.
    fn disturb(
        &self,
        machine: &Machine,
        numbers: &mut Numbers,
        expected: &mut Expected<'_>,
    ) -> anyhow::Result<usize> {
        let keepers: Vec<(bool, Duration)> = (0..=usize::from(numbers.once_in(3)))
            .map(|_| {
                let is_once = numbers.once_in(2);
                let most = if is_once { self.time.mul_f64(1.5) } else { LIFE };
                (is_once, most * numbers.below(1_000) as u32 / 1_000)
            })
            .collect();
        let mut agent_numbers = Numbers::new(numbers.next());
        let is_over = AtomicBool::new(false);
        let ended_keepers = std::thread::scope(|scope| {
            let is_over = &is_over;
            let agent = scope.spawn(move || {
                // The agent makes at least one change, even if the keeper is killed at once.
                loop {
                    act(machine, &self.places, &mut agent_numbers)?;
                    if is_over.load(Ordering::Relaxed) {
                        return anyhow::Ok(());
                    }
                    let pause = agent_numbers.below(40) as u64;
                    std::thread::sleep(Duration::from_millis(pause));
                }
            });
            let started: Vec<_> = keepers
                .iter()
                .map(|&(is_once, life)| {
                    let mut command = machine.command(machine.program());
                    command.args(SCAN.iter().filter(|arg| is_once || **arg != "--once"));
                    scope.spawn(move || ended(command, Some(life)))
                })
                .collect();
            let mut all = Vec::new();
            for keeper in started {
                all.push(keeper.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a panic"))));
            }
            is_over.store(true, Ordering::Relaxed);
            agent.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a panic")))?;
            all.into_iter().collect::<anyhow::Result<Vec<Ended>>>()
        })?;
        for keeper in &ended_keepers {
            expected.note_end(keeper);
        }
        Ok(ended_keepers.iter().filter(|keeper| keeper.was_killed()).count())
    }
}

/// The places of sessions: two sessions of each of three agents, and a sub-agent.
fn places() -> anyhow::Result<Vec<Place>> {
    let mut places = Vec::new();
    let mut agents = subjects()?;
    agents.retain(|it| ["pi", "claude with a sub-agent", "codex"].contains(&it.name));
    for subject in agents {
        let agent = subject.name.split(' ').next().unwrap_or(subject.name);
        let (path, begin) = subject.files[0].clone();
        let stem = path.rsplit('/').next().unwrap_or(&path).trim_end_matches(".jsonl");
        let session = stem[stem.len() - 36..].to_owned();
        // The other session of the agent has another last digit.
        let other = format!("{}f", &session[..35]);
        let owner = places.len();
        for id in [&session, &other] {
            let path = path.replace(&session, id);
            let begin = begin.clone();
            places.push(Place { agent, session: id.clone(), part: None, path, owner: None, begin });
        }
        if let Some((path, begin)) = subject.files.get(1).cloned() {
            let name = path.rsplit('/').next().unwrap_or(&path).trim_end_matches(".jsonl");
            let (part, owner) = (Some(name.to_owned()), Some(owner));
            places.push(Place { agent, session, part, path, owner, begin });
        }
    }
    ensure!(places.len() == 7, "{} places", places.len());
    Ok(places)
}

/// Changes a file as an agent, or a program that works for it, may do.
fn act(machine: &Machine, places: &[Place], numbers: &mut Numbers) -> anyhow::Result<()> {
    let place = numbers.one_of(places);
    let path = machine.home.join(&place.path);
    let Ok(present) = fs::read(&path) else {
        fs::create_dir_all(path.parent().context("a file has a folder")?)?;
        fs::write(&path, &place.begin)?;
        return Ok(());
    };
    match numbers.below(10) {
        0..=3 => append(&path, &lines(numbers))?,
        4 => {
            let len = numbers.below(present.len()) as u64;
            fs::OpenOptions::new().write(true).open(&path)?.set_len(len)?;
        }
        5 => fs::write(&path, [lines(numbers), lines(numbers)].concat())?,
        6 => overwrite(&path, present, numbers)?,
        7 => fs::remove_file(&path)?,
        8 => {
            let new = path.with_extension("new");
            fs::write(&new, [present, lines(numbers)].concat())?;
            fs::rename(&new, &path)?;
        }
        _ => {
            let to = numbers.one_of(places);
            if to.agent == place.agent && to.part == place.part {
                fs::rename(&path, machine.home.join(&to.path))?;
            } else {
                fs::write(&path, &place.begin)?;
            }
        }
    }
    Ok(())
}

/// Changes some bytes and leaves the length. The time of the last change is set back to what it was
/// before, or to the year 1970.
fn overwrite(path: &PathBuf, mut present: Vec<u8>, numbers: &mut Numbers) -> anyhow::Result<()> {
    let modified = fs::metadata(path)?.modified()?;
    for byte in present.iter_mut().skip(numbers.below(4_000)).step_by(997) {
        *byte = byte.wrapping_add(1);
    }
    fs::write(path, present)?;
    let at: SystemTime = if numbers.once_in(2) { modified } else { SystemTime::UNIX_EPOCH };
    fs::OpenOptions::new().append(true).open(path)?.set_modified(at)?;
    Ok(())
}

/// Some records, now and then many. Each is new.
fn lines(numbers: &mut Numbers) -> Vec<u8> {
    let most = if numbers.once_in(8) { 20_000 } else { 40 };
    let mut text = String::new();
    for _ in 0..=numbers.below(most) {
        text.push_str(&format!("{{\"type\":\"x\",\"n\":\"{:016x}\"}}\n", numbers.next()));
    }
    text.into_bytes()
}

fn append(path: &PathBuf, bytes: &[u8]) -> anyhow::Result<()> {
    fs::OpenOptions::new().append(true).open(path)?.write_all(bytes)?;
    Ok(())
}

/// A version as `epitome history --json` lists it.
struct Listed {
    number: u64,
    len: u64,
    hash: String,
    is_deleted: bool,
}

/// What `restore --out` did.
struct Restored {
    ended: Ended,
    bytes: Option<Vec<u8>>,
}

impl Restored {
    /// Checks that the version was restored, to the byte.
    fn is_version(&self, version: &Listed, expected: Option<&Vec<u8>>) -> Result<(), String> {
        let is_right = self.bytes.as_ref().is_some_and(|bytes| {
            hash(bytes) == version.hash && expected.is_none_or(|expected| expected == bytes)
        });
        if is_right && self.ended.code() == Some(0) {
            return Ok(());
        }
        Err(format!("--at {}: {}", version.number, self.ended.beginning_of_output()))
    }
}

impl Place {
    /// Another session of the agent: its id has another last digit.
    fn with_last_digit(&self, digit: char) -> Place {
        let session = format!("{}{digit}", &self.session[..self.session.len() - 1]);
        Place {
            agent: self.agent,
            path: self.path.replace(&self.session, &session),
            session,
            part: None,
            owner: None,
            begin: self.begin.clone(),
        }
    }

    /// The versions of this file that the vault lists; none if the vault does not know the session.
    fn versions(&self, machine: &Machine) -> anyhow::Result<Vec<Listed>> {
        let args = ["history", &self.session, "--agent", self.agent, "--json"];
        let history = machine.run(&args)?;
        if history.code() != Some(0) {
            let output = history.beginning_of_output();
            ensure!(output.contains("was kept"), "history of {}: {output}", self.name());
            return Ok(Vec::new());
        }
        let history: Value = serde_json::from_str(&history.out).context("history --json")?;
        let own = match &self.part {
            None => Some(&history),
            Some(part) => {
                let mut parts = history["parts"].as_array().into_iter().flatten();
                parts.find(|it| it["part"] == **part)
            }
        };
        let versions = own.and_then(|own| own["versions"].as_array()).into_iter().flatten();
        Ok(versions
            .map(|version| Listed {
                number: version["version"].as_u64().unwrap_or_default(),
                len: version["bytes"].as_u64().unwrap_or_default(),
                hash: version["blake3"].as_str().unwrap_or_default().to_owned(),
                is_deleted: version["change"] == "deleted",
            })
            .collect())
    }

    /// Restores a version to a file, reads it and removes it.
    fn restore(&self, machine: &Machine, version: &Listed) -> anyhow::Result<Restored> {
        let number = version.number.to_string();
        let args =
            ["restore", self.name(), "--agent", self.agent, "--at", &number, "--out", "version"];
        let ended = machine.run(&args)?;
        let out = machine.home.join("version");
        let bytes = fs::read(&out).ok();
        if bytes.is_some() {
            fs::remove_file(out)?;
        }
        Ok(Restored { ended, bytes })
    }

    fn name(&self) -> &str {
        self.part.as_deref().unwrap_or(&self.session)
    }
}

impl<'a> Expected<'a> {
    fn new(places: &'a [Place]) -> Expected<'a> {
        let (contents, reported) = (BTreeMap::new(), BTreeSet::new());
        Expected { places, contents, reported, violations: Vec::new() }
    }

    fn violation(&mut self, kind: Kind, what: String) {
        self.violations.push(Violation { kind, what });
    }

    /// Scans everything while no agent writes, and notes the present contents as what must come
    /// back.
    fn scan(&mut self, machine: &Machine) -> anyhow::Result<()> {
        let scan = machine.run(&SCAN)?;
        self.note_end(&scan);
        for (idx, place) in self.places.iter().enumerate() {
            // A sub-agent's file is found only if its session's file exists.
            let owner = place.owner.map_or(place, |owner| &self.places[owner]);
            let bytes = fs::read(machine.home.join(&place.path)).ok();
            if let Some(bytes) = bytes.filter(|_| machine.home.join(&owner.path).exists()) {
                self.contents.insert((idx, hash(&bytes)), bytes);
            }
        }
        Ok(())
    }

    /// Notes what a keeper reported, and the violation if it ended badly or printed a line that is
    /// no JSON.
    fn note_end(&mut self, keeper: &Ended) {
        if let Some(what) = keeper.misbehaved() {
            self.violation(Kind::Crash, what);
        } else if !keeper.was_killed() && keeper.code() != Some(0) {
            self.violation(Kind::Wrong, keeper.beginning_of_output());
        }
        for line in keeper.out.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let Ok(kept) = serde_json::from_str::<Value>(line) else {
                self.violation(Kind::Wrong, format!("a keeper prints {line:.100}"));
                continue;
            };
            let place = self.places.iter().position(|place| {
                kept["session"] == *place.session && kept["part"].as_str() == place.part.as_deref()
            });
            let (number, len) = (kept["version"].as_u64(), kept["bytes"].as_u64());
            if let (Some(place), Some(number), Some(len)) = (place, number, len) {
                self.reported.insert((place, number, len));
            }
        }
    }

    /// Verifies the archive, compares the vault with what is expected, restores all versions, and
    /// checks that `archive gc` leaves no temporary file.
    fn check(&mut self, machine: &Machine) -> anyhow::Result<()> {
        let verify = machine.run(&["archive", "verify"])?;
        if verify.code() != Some(0) {
            self.violation(Kind::Wrong, verify.beginning_of_output());
        }
        for (idx, place) in self.places.iter().enumerate() {
            let versions = place.versions(machine)?;
            self.compare(machine, idx, &versions)?;
            for version in versions.iter().filter(|version| !version.is_deleted) {
                let restored = place.restore(machine, version)?;
                let expected = self.contents.get(&(idx, version.hash.clone()));
                if let Err(what) = restored.is_version(version, expected) {
                    self.violation(Kind::Lost, format!("{}: {what}", place.name()));
                }
            }
        }
        machine.run(&["archive", "gc", "--yes"])?;
        for path in machine.files(".tmp") {
            self.violation(Kind::Left, format!("{} stays after gc", path.display()));
        }
        Ok(())
    }

    /// Restores some versions of the session that was kept before any keeper was killed.
    fn check_old(
        &mut self,
        machine: &Machine,
        old: &Place,
        numbers: &mut Numbers,
    ) -> anyhow::Result<()> {
        let versions = old.versions(machine)?;
        if versions.len() < PACKS {
            self.violation(Kind::Lost, format!("of {PACKS} old versions {} are", versions.len()));
            return Ok(());
        }
        for _ in 0..OLD_VERSIONS {
            let version = &versions[numbers.below(PACKS)];
            if let Err(what) = old.restore(machine, version)?.is_version(version, None) {
                self.violation(Kind::Lost, format!("{}: {what}", old.name()));
            }
        }
        Ok(())
    }

    /// Checks the listed versions of a place: the numbers are 1, 2, 3 and so on, everything that
    /// was kept is in the list, and the last version is the present content.
    fn compare(
        &mut self,
        machine: &Machine,
        idx: usize,
        versions: &[Listed],
    ) -> anyhow::Result<()> {
        let place = &self.places[idx];
        let name = place.name();
        let numbers: Vec<u64> = versions.iter().map(|version| version.number).collect();
        if !numbers.iter().copied().eq(1..=numbers.len() as u64) {
            self.violation(Kind::Wrong, format!("{name} has the versions {numbers:?}"));
        }
        let missing: Vec<String> = self
            .contents
            .keys()
            .filter(|(of, hash)| *of == idx && versions.iter().all(|it| it.hash != *hash))
            .map(|(_, hash)| format!("{name} has no version {hash:.8}, which a scan has seen"))
            .collect();
        let unlisted: Vec<String> = self
            .reported
            .iter()
            .filter(|(of, number, len)| {
                *of == idx && versions.iter().all(|it| (it.number, it.len) != (*number, *len))
            })
            .map(|(_, number, _)| format!("{name} has no version {number}, which was reported"))
            .collect();
        for what in missing.into_iter().chain(unlisted) {
            self.violation(Kind::Lost, what);
        }
        let present = fs::read(machine.home.join(&place.path)).ok().map(|bytes| hash(&bytes));
        let last = versions.last().filter(|last| !last.is_deleted).map(|last| last.hash.clone());
        // Not checked for a sub-agent: keepers do not look at its file while the session's file is
        // gone.
        if place.owner.is_none() && last != present {
            self.violation(Kind::Wrong, format!("the last version of {name} is another one"));
        }
        Ok(())
    }
}

fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_is_not_listed_is_lost() {
        let machine = Machine::new("true".as_ref()).expect("a machine");
        let places = places().expect("places");
        machine.write(&places[0].path, b"now").expect("a file");
        let mut expected = Expected::new(&places);
        expected.contents.insert((0, hash(b"then")), b"then".to_vec());
        expected.reported.extend([(0, 1, 3), (0, 2, 3), (1, 7, 1)]);
        let listed = Listed { number: 1, len: 3, hash: hash(b"now"), is_deleted: false };
        expected.compare(&machine, 0, &[listed]).expect("compared");
        let kinds: Vec<Kind> = expected.violations.iter().map(|it| it.kind).collect();
        assert_eq!(kinds, [Kind::Lost, Kind::Lost], "{:?}", expected.violations);
    }
}
