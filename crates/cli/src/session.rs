//! Resolves the sessions that a command works on.

use std::collections::{BTreeMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use epitome::agents::{self, FoundSessions, SessionFile, SessionMatch};
use epitome::history::ShownSource;
use epitome::keep::{VaultMatch, find};
use epitome::ops::is_run_in;
use epitome::storage::{load, writer};
use epitome::{History, Loaded, Version};
use epitome_formats::find_format;
use epitome_model::Tokens;
use epitome_passes::Target;

use crate::app::App;
use crate::failure::{Failure, Result, Status};
use crate::text::{self, DIM};

/// A session as named on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A file.
    File(PathBuf),
    /// Standard input.
    Stdin,
}

impl Input {
    /// Resolves a name: a path, an id, the prefix of an id, or `-`.
    pub fn find(app: &App, name: &OsStr) -> Result<Input> {
        if name == "-" {
            return Ok(Input::Stdin);
        }
        file(app, name).map(Input::File)
    }

    /// Resolves several names. A session that is named twice, even by different names, is returned
    /// once.
    pub fn find_all(app: &App, names: &[OsString]) -> Result<Vec<Input>> {
        let mut inputs = Vec::new();
        let mut seen = HashSet::new();
        for name in names {
            let input = Input::find(app, name)?;
            let is_new = match &input {
                Input::Stdin => seen.insert(None),
                Input::File(path) => seen.insert(Some(path.canonicalize().unwrap_or(path.clone()))),
            };
            if is_new {
                inputs.push(input);
            }
        }
        Ok(inputs)
    }

    /// Opens the session in one of its states.
    pub fn open(&self, app: &App, version: Version) -> Result<History> {
        let config = &app.config;
        Ok(match self {
            Input::Stdin => History::from_bytes(config, read_stdin()?, app.agent(), version)?,
            Input::File(path) => History::open(config, path, app.agent(), version)?,
        })
    }

    /// Reads the session as it is stored, without undoing compactions.
    pub fn load(&self, app: &App) -> Result<Loaded<ShownSource>> {
        let path = match self {
            Input::Stdin => {
                return Ok(Loaded::read(ShownSource::Memory(read_stdin()?), app.agent())?);
            }
            Input::File(path) => path,
        };
        let Loaded { format, source, transcript, faults } = load(path, app.agent())?;
        Ok(Loaded { format, source: ShownSource::File(source), transcript, faults })
    }

    /// The name of the session in reports.
    pub fn name(&self) -> String {
        match self {
            Input::File(path) => path.display().to_string(),
            Input::Stdin => "-".to_owned(),
        }
    }
}

/// Finds the file of the session that a name means.
pub fn file(app: &App, name: &OsStr) -> Result<PathBuf> {
    // An id is Unicode, so any other name is a path.
    let Some(name) = name.to_str() else { return Ok(PathBuf::from(name)) };
    check_name(name)?;
    match agents::find_session(&app.config.agents, name, app.agent()) {
        SessionMatch::File(path) => Ok(path),
        SessionMatch::AnyOf(found) => Err(ambiguous(name, &found)),
        SessionMatch::Nothing => {
            let what = format!("no session is called `{name}`");
            let failure = Failure::new(Status::Unreadable, "not-found", what)
                .hint("`epitome list` shows the sessions of this machine; a path works too");
            let failure = match is_kept(app, name) {
                true => failure.hint(format!(
                    "`epitome keep` has versions of it: `epitome history {name}` shows them, and \
                     `epitome restore {name} --at N` brings one back"
                )),
                false => failure,
            };
            let unread = agents::all(&app.config.agents, app.agent()).unread;
            Err(unread.into_iter().fold(failure, |failure, err| failure.hint(not_read(err))))
        }
    }
}

/// Whether the vault has versions of a session with this name. False if it cannot be read.
fn is_kept(app: &App, name: &str) -> bool {
    let Ok(vault) = app.config.vault() else { return false };
    match find(&app.config, &vault, name, app.agent()) {
        VaultMatch::Session(_) | VaultMatch::AnyOf(_) => true,
        VaultMatch::Nothing => false,
    }
}

/// Returns an error if the name of a session is blank, for example because it comes from an unset
/// variable of a shell. An empty name would be the beginning of every id.
pub fn check_name(name: &str) -> Result<()> {
    if name.trim().is_empty() {
        return Err(Failure::usage("the name of the session is empty"));
    }
    Ok(())
}

/// Returns the sessions of this machine, or of the agent given with `--agent`. Reports folders,
/// files and databases that could not be read on standard error.
pub fn all(app: &App) -> FoundSessions {
    let found = agents::all(&app.config.agents, app.agent());
    for err in &found.unread {
        app.note(&format!("{DIM}{}{DIM:#}", text::field(&not_read(err.clone()))));
    }
    found
}

/// The message for a folder, a file or a database that could not be read, on one line.
fn not_read(err: epitome::Error) -> String {
    format!("not read: {}", Failure::from(err).one_line())
}

/// Returns an error if epitome never writes sessions of an agent.
fn check_written(agent: &str) -> Result<()> {
    find_format(agent).map_or(Ok(()), |format| Ok(writer(format).map(|_| ())?))
}

/// All of standard input.
pub fn read_stdin() -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes).map_err(|err| unread_input(&err))?;
    Ok(bytes)
}

/// The failure if standard input cannot be read.
pub fn unread_input(err: &std::io::Error) -> Failure {
    Failure::new(Status::Unreadable, "unreadable", "cannot read standard input").because(err)
}

/// The state in which a compacted session is read.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct State {
    /// Read a compacted session as the model gets it now, with stubs, not as it was before it was
    /// compacted; secrets that the removed text contained are redacted as well
    #[arg(long)]
    pub as_sent: bool,
}

impl State {
    pub fn version(self) -> Version {
        if self.as_sent { Version::AsSent } else { Version::AsItWas }
    }

    /// Opens a session, and reports on standard error what could not be restored.
    pub fn open(self, app: &App, input: &Input) -> Result<History> {
        let history = input.open(app, self.version())?;
        note_missing(app, input, history.missing.iter().map(String::as_str));
        Ok(history)
    }
}

/// Reports on standard error what could not be restored in a session.
pub fn note_missing<'a>(app: &App, input: &Input, missing: impl IntoIterator<Item = &'a str>) {
    for what in missing {
        let name = text::field(&input.name());
        app.note(&format!("{DIM}note:{DIM:#} {name}: {}", text::field(what)));
    }
}

/// The option that selects sessions by the folder in which they were run.
#[derive(Args, Clone, Debug)]
pub struct Which {
    /// Only sessions that were run in this folder or below it; the end of its path is enough, as
    /// `epitome list` prints it
    #[arg(long, value_name = "DIR", allow_hyphen_values = true, value_parser = project())]
    pub project: Option<PathBuf>,
}

/// The options that select sessions by folder, age and size.
#[derive(Args, Clone, Debug)]
pub struct Filter {
    #[command(flatten)]
    pub which: Which,

    /// Only sessions last written at least this long ago: 7d, 12h, 2w
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    pub older_than: Option<Duration>,

    /// Only sessions of at least this size: 500KB, 1MB
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub larger_than: Option<u64>,
}

impl Filter {
    pub fn is_set(&self) -> bool {
        self.which.project.is_some() || self.older_than.is_some() || self.larger_than.is_some()
    }

    /// The session files that pass the filters for age and size. The filter for projects is not
    /// applied, because it needs the content of sessions. The sessions of agents whose sessions
    /// epitome never writes are left out, with one note per agent, because an agent may have
    /// thousands of sessions.
    pub fn sessions(&self, app: &App) -> Vec<SessionFile> {
        let now = SystemTime::from(app.config.now());
        let mut found = all(app).sessions;
        let mut left: BTreeMap<&str, (u64, Failure)> = BTreeMap::new();
        found.retain(|file| match check_written(file.agent) {
            Ok(()) => true,
            Err(why) => {
                left.entry(file.agent).or_insert((0, why)).0 += 1;
                false
            }
        });
        for (n, why) in left.values() {
            let sessions = text::count(*n, "session");
            app.note(&format!("{DIM}skipped:{DIM:#} {sessions}: {}", text::field(&why.one_line())));
        }
        found.retain(|file| {
            let age = now.duration_since(file.modified).unwrap_or_default();
            self.older_than.is_none_or(|least| age >= least)
                && self.larger_than.is_none_or(|least| file.size.0 >= least)
        });
        found
    }
}

impl Which {
    /// Whether a session that was run in `cwd` passes the project filter.
    pub fn takes(&self, cwd: Option<&str>) -> bool {
        self.project.as_deref().is_none_or(|project| is_run_in(project, cwd))
    }
}

/// Parses a project: a folder, or a name, which may begin with a dash. Refuses an empty text, and
/// one that begins with two dashes, which is probably an option.
pub fn project() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|given| {
        let text = given.to_string_lossy();
        if text.is_empty() {
            Err("it is empty".to_owned())
        } else if text.starts_with("--") {
            Err(format!("it looks like an option; a folder of that name is `./{text}`"))
        } else {
            Ok(PathBuf::from(given))
        }
    })
}

/// Parses a duration: `7d`, `2w`, `12h`, `30m`.
pub fn parse_age(text: &str) -> std::result::Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration; write it like 7d, 12h or 2w");
    let span: jiff::Span = text.parse().map_err(|_| wrong())?;
    let length =
        span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).map_err(|_| wrong())?;
    Duration::try_from(length).map_err(|_| wrong())
}

/// Parses a size: `1MB` is 1,000,000 bytes and `1MiB` 1,048,576.
pub fn parse_size(text: &str) -> std::result::Result<u64, String> {
    let size: std::result::Result<bytesize::ByteSize, _> = text.parse();
    size.map(|size| size.as_u64())
        .map_err(|_| format!("`{text}` is not a size; write it like 300, 500KB or 1MB"))
}

/// Parses a number of tokens: `50k` is 50,000.
pub fn parse_tokens(text: &str) -> std::result::Result<u64, String> {
    let wrong = || format!("`{text}` is not a number of tokens; write it like 20000 or 20k");
    let (digits, unit) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1_000),
        None => match text.strip_suffix(['m', 'M']) {
            Some(digits) => (digits, 1_000_000),
            None => (text, 1),
        },
    };
    let (whole, tenths) = match digits.split_once('.') {
        Some((whole, tenths)) if unit > 1 => (whole, tenths),
        _ => (digits, "0"),
    };
    let number: u64 = whole.replace('_', "").parse().map_err(|_| wrong())?;
    // A decimal number, as reports print it: 1.5k.
    let part: u64 = tenths.parse().map_err(|_| wrong())?;
    let of = u32::try_from(tenths.len()).ok().and_then(|n| 10_u64.checked_pow(n));
    let part = part.checked_mul(unit).zip(of).map(|(part, of)| part / of).ok_or_else(wrong)?;
    number.checked_mul(unit).and_then(|it| it.checked_add(part)).ok_or_else(wrong)
}

/// Parses a target: `50k` is 50,000 tokens, `60%` is a share of the window, `80000chars` is a
/// number of characters.
pub fn parse_target(text: &str) -> std::result::Result<Target, String> {
    let tokens = parse_tokens(text).map(|tokens| Target::from_tokens(Tokens(tokens)));
    let target = tokens.or_else(|_| text.parse::<Target>());
    target.map_err(|_| match text.ends_with('%') {
        true => format!("`{text}` is no share of a window; write it like 60%, from 1% to 100%"),
        false => format!(
            "`{text}` is no target; write it like 20000, 20k, 60%, 80000chars or '80000 chars'"
        ),
    })
}

/// Parses a whole number.
pub fn parse_number(text: &str) -> std::result::Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a whole number, like 2"))
}

fn ambiguous(name: &str, found: &[SessionFile]) -> Failure {
    let mut what = format!("`{name}` is the beginning of {} session ids", found.len());
    for file in found.iter().take(10) {
        what.push_str(&format!("\n{} {}  {}", file.agent, file.id, text::path(&file.path)));
    }
    if found.len() > 10 {
        what.push_str(&format!("\nand {} more", found.len() - 10));
    }
    Failure::new(Status::Usage, "ambiguous", what).hint("give more of the id, or the path")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_with_their_unit() {
        assert_eq!(parse_age("7d"), Ok(Duration::from_secs(604_800)));
        assert_eq!(parse_age("2w"), Ok(Duration::from_secs(1_209_600)));
        assert_eq!(parse_age("90m"), Ok(Duration::from_secs(5_400)));
        assert!(parse_age("-7d").is_err());
        assert!(parse_age("7").is_err());
        assert_eq!(parse_size("1MB"), Ok(1_000_000));
        assert_eq!(parse_size("1MiB"), Ok(1_048_576));
        assert_eq!(parse_size("300"), Ok(300));
        assert!(parse_size("big").is_err());
        assert_eq!(parse_tokens("20k"), Ok(20_000));
        assert_eq!(parse_tokens("1M"), Ok(1_000_000));
        assert_eq!(parse_tokens("20_000"), Ok(20_000));
        assert_eq!(parse_tokens("1.5k"), Ok(1_500));
        assert_eq!(parse_tokens("0.0625M"), Ok(62_500));
        assert_eq!(parse_tokens("1.0000001k"), Ok(1_000));
        for wrong in ["-1", "1.5", "1.k", ".5k", "1.5.0k", "1.99999999999999999999k", "k"] {
            assert!(parse_tokens(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_number("2"), Ok(2));
        assert_eq!(parse_number("x").unwrap_err(), "`x` is not a whole number, like 2");
        assert!(parse_tokens("99999999999999999M").is_err());
    }
}
