//! Stored sessions: each function does what a command of the program does. Most return the JSON
//! that the command prints.

use std::path::{Path, PathBuf};

use epitome::agents::{self, SessionMatch};
use epitome::list::list;
use epitome::ops::{Compact, Inspect, OpenSession, Restore, session_losses};
use epitome::pipe::{Size, parse_options};
use epitome::redact::{Screen, finder};
use epitome::render::{ListPrices, RenderForm, RenderOptions, RenderSource};
use epitome::settings::values::{Compaction, Detail, Values};
use epitome::simulate::{PolicyCommand, Simulate, SimulateReport};
use epitome::storage::{Damage, load};
use epitome::{Config, Error, ErrorKind, History, Result, Settings, Version, recipes};
use epitome_formats::{FORMATS, find_format};
use epitome_model::{Counter, Tokens};
use epitome_passes::Target;
use epitome_redact::{Found, Redactor};
use epitome_search::{Query, search_machine};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::answer::answer;
use crate::options::{Count, invalid_option, window};

/// Calls the function `name` with a request, and returns its result as JSON. The functions are
/// `compact`, `restore`, `inspect`, `losses`, `search`, `sessions`, `simulate`, `redact`, `render`.
pub fn call(name: &str, request: &[u8]) -> String {
    match name {
        "compact" => {
            answer(|| Machine::read()?.compact(&parse_options(request)?, parse_options(request)?))
        }
        "restore" => {
            answer(|| Machine::read()?.restore(&parse_options(request)?, parse_options(request)?))
        }
        "inspect" => answer(|| Machine::read()?.inspect(parse_options(request)?)),
        "losses" => answer(|| Machine::read()?.losses(parse_options(request)?)),
        "search" => answer(|| Machine::read()?.search(parse_options(request)?)),
        "sessions" => answer(|| Machine::read()?.sessions(parse_options(request)?)),
        "simulate" => answer(|| Machine::read()?.simulate(parse_options(request)?)),
        "redact" => answer(|| Machine::read()?.redact(parse_options(request)?)),
        "render" => {
            answer(|| Machine::read()?.render(&parse_options(request)?, parse_options(request)?))
        }
        _ => answer(|| {
            let what = format!("there is no function `{name}`");
            Err::<(), _>(Error::new(ErrorKind::Usage, what))
        }),
    }
}

/// A session, by path, by id, or by the beginning of its id. These are members of each request
/// about one session.
#[derive(Deserialize)]
struct Named {
    session: String,
    agent: Option<String>,
    count: Option<Count>,
}

#[derive(Deserialize)]
struct CompactRequest {
    recipe: Option<String>,
    target: Option<u64>,
    out: Option<PathBuf>,
    #[serde(alias = "dryRun")]
    dry_run: bool,
    force: bool,
}

#[derive(Deserialize)]
struct RestoreRequest {
    out: Option<PathBuf>,
    #[serde(alias = "dryRun")]
    dry_run: bool,
    force: bool,
    partial: bool,
}

#[derive(Deserialize)]
struct SearchRequest {
    words: String,
    agent: Option<String>,
    project: Option<PathBuf>,
    limit: usize,
}

#[derive(Deserialize)]
struct SessionsRequest {
    agent: Option<String>,
    project: Option<PathBuf>,
}

#[derive(Deserialize)]
struct SimulateRequest {
    sessions: Vec<String>,
    agent: Option<String>,
    recipes: Vec<String>,
    /// Commands for the shell. Each starts a program that decides what a context contains, in place
    /// of a recipe.
    commands: Vec<String>,
    window: Option<u64>,
    overhead: Option<u64>,
    target: Option<f64>,
    model: Option<String>,
    count: Option<Count>,
}

#[derive(Deserialize)]
struct RedactRequest {
    text: String,
    find: Vec<String>,
}

#[derive(Deserialize)]
struct RenderRequest {
    format: RenderForm,
    detail: Option<Detail>,
    #[serde(alias = "asSent")]
    as_sent: bool,
    redact: bool,
}

/// A text, and how many different texts each rule found in it.
#[derive(Serialize)]
struct RedactedText {
    text: String,
    redacted: std::collections::BTreeMap<String, u64>,
}

/// The folders and settings of this machine's user.
struct Machine {
    config: Config,
    settings: Settings,
}

impl Machine {
    fn read() -> Result<Machine> {
        let config = Config::from_env()?;
        let settings = Settings::load(&config, &[])?;
        Ok(Machine { config, settings })
    }

    /// The configuration, with the rule files for secrets that the settings name.
    fn with_rules(&self) -> Config {
        let mut config = self.config.clone();
        config.rules.extend(self.settings.values.redaction.rules.iter().flatten().cloned());
        config
    }

    fn compact(&self, named: &Named, request: CompactRequest) -> Result<Box<RawValue>> {
        let path = self.path(named)?;
        let target = request.target.map(|tokens| Target::from_tokens(Tokens(tokens)));
        let compaction = Compaction { target, ..Compaction::default() };
        let options = Values { compaction, ..Values::default() };
        let name = request.recipe.as_deref();
        let recipe = recipes::resolve_with(&self.config, &self.settings, name, &options, false)?;
        let run = self.config.begin_run("compact");
        let compact = Compact {
            force: request.force,
            out: request.out.as_deref(),
            ..Compact::with_settings(&self.settings, &recipe, named.counter(), &run)
        };
        let session = self.open(named, &path);
        let report = match request.dry_run {
            true => {
                let report = compact.plan(&session, |_, _| {})?;
                report.check()?;
                report
            }
            false => compact.run(&session)?,
        };
        to_json(&report)
    }

    fn restore(&self, named: &Named, request: RestoreRequest) -> Result<Box<RawValue>> {
        let path = self.path(named)?;
        let damage = if request.partial { Damage::LeaveOut } else { Damage::Refuse };
        let restore = Restore { force: request.force, damage, ..Restore::default() };
        let session = self.open(named, &path);
        let mut report = match (&request.out, request.dry_run) {
            (Some(_), true) => restore.plan_copy(&session)?,
            (None, true) => restore.plan(&session)?,
            (Some(out), false) => restore.write_copy(&session, out, |_| Ok::<(), Error>(()))?,
            (None, false) => restore.run(&session)?,
        };
        report.out = request.out;
        to_json(&report)
    }

    fn inspect(&self, named: Named) -> Result<Box<RawValue>> {
        let path = self.path(&named)?;
        let screen = Screen::new(&self.with_rules());
        let inspect = Inspect { config: &self.config, screen: &screen, counter: named.counter() };
        let session = load(&path, named.agent.as_deref())?;
        let agent = named.agent.as_deref();
        let history = History::open(&self.config, &path, agent, Version::AsItWas)?;
        let inspection = inspect.run(Some(&path), &session, &history)?;
        session.source.failure().map_or_else(|| to_json(&inspection), Err)
    }

    fn losses(&self, named: Named) -> Result<Box<RawValue>> {
        let path = self.path(&named)?;
        let session = self.open(&named, &path);
        to_json(&session_losses(&session, &self.settings, named.counter())?)
    }

    fn search(&self, request: SearchRequest) -> Result<Box<RawValue>> {
        let mut query = Query::parse(&request.words).map_err(usage)?;
        if let Some(agent) = &request.agent {
            query = query.with_agent(agent).map_err(usage)?;
        }
        if let Some(project) = &request.project {
            query = query.with_project(project);
        }
        let files = agents::sessions(&self.config.agents, None);
        let (hits, _) = search_machine(&self.with_rules(), &query, &files, request.limit, &|_| {})?;
        to_json(&hits.hits)
    }

    fn sessions(&self, request: SessionsRequest) -> Result<Box<RawValue>> {
        if let Some(agent) = &request.agent {
            check_agent(agent)?;
        }
        let recipe = recipes::resolve(&self.config, &self.settings, None)?;
        let found = agents::all(&self.config.agents, request.agent.as_deref());
        let mut listed = list(&self.with_rules(), found.sessions, &recipe, || {});
        if let Some(project) = &request.project {
            listed.retain(|listed| match &listed.seen {
                Ok(seen) => epitome::ops::is_run_in(project, seen.cwd.as_deref()),
                Err(_) => false,
            });
        }
        to_json(&listed.iter().map(|listed| listed.row()).collect::<Vec<_>>())
    }

    fn simulate(&self, request: SimulateRequest) -> Result<Box<RawValue>> {
        let mut simulate = Simulate::new(&self.config, &self.settings, &request.recipes)?;
        if let Some(share) = request.target.filter(|share| !(0.0..=1.0).contains(share)) {
            return Err(invalid_option("target", share, "a share of the context from 0 to 1"));
        }
        let window = window(request.window)?.unwrap_or(simulate.window);
        if let Some(overhead) = request.overhead {
            Size { window: window.0, overhead, ..Size::default() }.check()?;
            simulate = simulate.with_overhead(Tokens(overhead));
        }
        let simulate = Simulate {
            commands: request.commands.into_iter().map(PolicyCommand::new).collect(),
            window,
            target: request.target,
            model: request.model,
            estimate: request.count == Some(Count::Estimate),
            ..simulate
        };
        let mut simulated = Vec::new();
        for name in &request.sessions {
            let path = self.path_of(name, request.agent.as_deref())?;
            let session = load(&path, request.agent.as_deref())?;
            let done = simulate.session(name, &session);
            simulated.push(done.map_err(|err| err.with_default_path(&path))?);
            session.source.failure().map_or(Ok(()), Err)?;
        }
        to_json(&SimulateReport::from_sessions(&simulate, &simulated))
    }

    fn redact(&self, request: RedactRequest) -> Result<RedactedText> {
        let finder = finder(&self.config, &self.settings, &request.find, &[])?;
        let mut redactor = Redactor::new(&finder);
        let text = redactor.text(&request.text).into_owned();
        Ok(RedactedText { text, redacted: Found::count_by_rule(redactor.found()) })
    }

    fn render(&self, named: &Named, request: RenderRequest) -> Result<RedactedText> {
        let path = self.path(named)?;
        let version = if request.as_sent { Version::AsSent } else { Version::AsItWas };
        let agent = named.agent.as_deref();
        let source = RenderSource::open_version(&self.config, &path, agent, version)?;
        let finder = match request.redact {
            true => Some(finder(&self.config, &self.settings, &[], &[])?),
            false => None,
        };
        let archive = self.config.archive();
        let prices = ListPrices::from_config(&self.config)?;
        let how = RenderOptions {
            detail: request.detail.unwrap_or(Detail::Steps).into(),
            redact: finder.as_ref(),
            compact: None,
            archive: &archive,
            prices: Some(&prices),
        };
        let (text, found) = source.single_text(request.format, &how)?;
        Ok(RedactedText { text, redacted: Found::count_by_rule(&found) })
    }

    fn open<'a>(&'a self, named: &'a Named, path: &'a Path) -> OpenSession<'a> {
        OpenSession::with_agent(&self.config, path, named.agent.as_deref())
    }

    fn path(&self, named: &Named) -> Result<PathBuf> {
        self.path_of(&named.session, named.agent.as_deref())
    }

    /// The file of a session that is named by path, id, or the beginning of its id.
    fn path_of(&self, name: &str, agent: Option<&str>) -> Result<PathBuf> {
        match agents::find_session(&self.config.agents, name, agent) {
            SessionMatch::File(path) => Ok(path),
            SessionMatch::AnyOf(found) => {
                let ids: Vec<&str> = found.iter().take(10).map(|file| &*file.id).collect();
                let what = format!("`{name}` is the beginning of several ids: {}", ids.join(", "));
                Err(Error::new(ErrorKind::Ambiguous, what))
            }
            SessionMatch::Nothing => {
                let what = format!("no session is called `{name}`");
                Err(Error::new(ErrorKind::NotFound, what)
                    .with_hint("`sessions()` lists them; a path works too"))
            }
        }
    }
}

impl Named {
    fn counter(&self) -> &'static dyn Counter {
        self.count.unwrap_or_default().counter()
    }
}

/// Checks the option `agent`.
///
/// # Errors
///
/// `Usage` if no agent has this name.
fn check_agent(name: &str) -> Result<()> {
    if find_format(name).is_some() {
        return Ok(());
    }
    let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    let hint = format!("there are: {}", names.join(", "));
    let err = Error::new(ErrorKind::Usage, format!("`agent`: no agent is called `{name}`"));
    Err(err.with_hint(hint))
}

fn usage(err: epitome_search::BadQuery) -> Error {
    Error::new(ErrorKind::Usage, err.to_string())
}

/// A report as JSON, its members in their order.
fn to_json(report: &impl Serialize) -> Result<Box<RawValue>> {
    to_raw_value(report).map_err(|err| Error::new(ErrorKind::Broken, err.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// The message of the error to which a request leads.
    fn message(name: &str, request: &str) -> String {
        let answer: Value = serde_json::from_str(&call(name, request.as_bytes())).expect("JSON");
        answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    #[test]
    fn an_option_that_means_nothing_is_an_error_that_names_it() {
        let simulate = |options: &str| {
            let request = r#"{"sessions": [], "recipes": [], "commands": []"#;
            message("simulate", &format!("{request}, {options}}}"))
        };
        let share = "expected a share of the context from 0 to 1";
        assert_eq!(simulate(r#""target": 7"#), format!("`target`: invalid value: 7, {share}"));
        assert_eq!(simulate(r#""target": -1"#), format!("`target`: invalid value: -1, {share}"));
        let window = "`window`: invalid value: 0, expected at least 1 token";
        assert_eq!(simulate(r#""window": 0"#), window);
        let full = "an `overhead` of 20 fills a `window` of 10";
        assert_eq!(simulate(r#""window": 10, "overhead": 20"#), full);
        let count = "`count`: unknown value `zzz`, expected `o200k` or `estimate`";
        assert_eq!(simulate(r#""count": "zzz""#), count);
        assert_eq!(message("inspect", r#"{"session": "s", "count": "zzz"}"#), count);
        let agent = "`agent`: no agent is called `zzz`";
        assert_eq!(message("sessions", r#"{"agent": "zzz"}"#), agent);
    }

    #[test]
    fn an_option_of_a_wrong_type_is_an_error_that_names_it() {
        let compact = |options: &str| {
            let request = r#"{"session": "s", "dry_run": true, "force": false"#;
            message("compact", &format!("{request}, {options}}}"))
        };
        let number = "expected a whole number of at least 0";
        let text = format!(r#"`target`: invalid type: string "x", {number}"#);
        assert_eq!(compact(r#""target": "x""#), text);
        let negative = format!("`target`: invalid value: integer `-5`, {number}");
        assert_eq!(compact(r#""target": -5"#), negative);
        let agent = "`agent`: invalid type: integer `5`, expected a string";
        assert_eq!(compact(r#""agent": 5"#), agent);
        let again = r#"{"session": "s", "dryRun": "x", "force": false}"#;
        let force = r#"`dryRun`: invalid type: string "x", expected true or false"#;
        assert_eq!(message("compact", again), force);
    }
}
