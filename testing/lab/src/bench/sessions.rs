//! The sessions for benchmarks: generated for each run, in a temporary folder.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use fixtures::grown;
use tempfile::TempDir;

/// Bytes of the one large session.
const LARGE: usize = 60_000_000;
/// The number of sessions in the home that is listed.
const MANY: usize = 300;
/// The size of these sessions together, in bytes.
const MANY_LEN: usize = 350_000_000;

/// The sessions to generate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    /// A large session, and many others.
    Full,
    /// One session of some megabytes.
    Small,
}

/// Bytes of the one session of a small run.
const SMALL: usize = 5_000_000;

pub(super) struct Sessions {
    home: TempDir,
    /// One session of Claude Code.
    pub(super) large: PathBuf,
    pub(super) large_len: u64,
    pub(super) many: usize,
    pub(super) many_len: u64,
}

struct Model {
    agent: &'static str,
    text: String,
}

impl Sessions {
    /// Generates sessions from the sessions in `folder`, or from the recorded sessions.
    pub(super) fn make(folder: Option<&Path>, size: Size) -> anyhow::Result<Sessions> {
        let models = match folder {
            Some(folder) => models(folder)?,
            None => recorded()?,
        };
        let of_claude = models.iter().filter(|model| model.agent == "claude");
        let largest = of_claude.max_by_key(|model| model.text.len());
        let largest = largest.context("there is no session of Claude Code")?;
        let home = tempfile::Builder::new().prefix("epitome-bench").tempdir()?;
        let large = home.path().join("large.jsonl");
        let text = grown::claude(&largest.text, if size == Size::Full { LARGE } else { SMALL });
        fs::write(&large, &text)?;
        let mut sessions =
            Sessions { home, large, large_len: text.len() as u64, many: 0, many_len: 0 };
        if size == Size::Full {
            sessions.fill(&models, folder.is_none())?;
        }
        Ok(sessions)
    }

    pub(super) fn folder(&self) -> &Path {
        self.home.path()
    }

    /// Writes copies of sessions, each with another id, until there are enough. Recorded sessions
    /// are small: with `grow`, only sessions of Claude Code are copied, and each is made longer.
    fn fill(&mut self, models: &[Model], grow: bool) -> anyhow::Result<()> {
        let each = if grow { MANY_LEN / MANY } else { 0 };
        let grown: Vec<Model> = (models.iter())
            .filter(|model| !grow || model.agent == "claude")
            .map(|Model { agent, text }| Model { agent, text: grown::claude(text, each) })
            .collect();
        let mut models = grown.iter().cycle();
        let wanted = |sessions: &Sessions| {
            if grow { sessions.many < MANY } else { sessions.many_len < MANY_LEN as u64 }
        };
        while wanted(self) {
            let model = models.next().context("there are no sessions")?;
            let n = self.many;
            let text = grown::renamed(&model.text, n);
            let path = self.folder().join(place(model.agent, n));
            fs::create_dir_all(path.parent().context("a file has a folder")?)?;
            fs::write(&path, &text)?;
            self.many += 1;
            self.many_len += text.len() as u64;
        }
        Ok(())
    }
}

/// The path below the home where an agent stores its session number `n`.
fn place(agent: &str, n: usize) -> PathBuf {
    let (id, project) = (format!("00000000-0000-4000-8000-{n:012x}"), n % 20);
    match agent {
        "claude" => format!(".claude/projects/-home-dev-{project}/{id}.jsonl").into(),
        _ => {
            let name = format!("2026-01-01T00-00-00-000Z_{id}.jsonl");
            format!(".pi/agent/sessions/--home-dev-{project}--/{name}").into()
        }
    }
}

fn recorded() -> anyhow::Result<Vec<Model>> {
    // Sessions that the agent has compacted itself are not used: they send little, so their times
    // would be too good.
    let whole = fixtures::all().into_iter().filter(|fixture| fixture.name == "pricing");
    whole.filter_map(|fixture| model(&fixture.bytes()).transpose()).collect()
}

fn models(folder: &Path) -> anyhow::Result<Vec<Model>> {
    let mut models = Vec::new();
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<_>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            models.extend(self::models(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "jsonl") {
            models.extend(model(&fs::read(&path)?)?);
        }
    }
    ensure!(!models.is_empty(), "no sessions in {}", folder.display());
    Ok(models)
}

fn model(bytes: &[u8]) -> anyhow::Result<Option<Model>> {
    let head = &bytes[..bytes.len().min(64 << 10)];
    let Some(format) = epitome_formats::sniff(head) else { return Ok(None) };
    let text = String::from_utf8_lossy(bytes).into_owned();
    Ok(Some(Model { agent: format.name, text }))
}
