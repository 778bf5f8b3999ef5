//! `epitome render`: sessions as pages and texts.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use clap::builder::PossibleValue;
use clap::{Args as ClapArgs, ValueEnum};
use epitome::archive::Archive;
use epitome::render::{
    ListPrices, RenderForm, RenderOptions, RenderSource, render_into, sub_agent_anchor,
    update_index,
};
use epitome::settings::values as settings;
use epitome_passes::{Recipe, built_in};
use epitome_redact::Finder;
use epitome_render::{Detail, Html, Listing, Story, json, markdown, terminal};
use serde::Serialize;

use crate::app::App;
use crate::choice::one_of;
use crate::failure::{Failure, Result, Status};
use crate::redaction::{Redaction, RedactionCounts};
use crate::session::{self, Input, State, Which, note_missing, read_stdin};
use crate::text::{self, BOLD, DIM, count};

const EXAMPLES: &str = "\
Examples:
  epitome render --agent claude --file session.jsonl
  epitome render 0f3c9a52 --format html > session.html
  epitome render 0f3c9a52 --turn 21 --format markdown   one turn, to be pasted
  epitome render --project . --format html --format markdown --out pages
  epitome render --all --compact=no-thinking --format html --out pages";

/// Show sessions as pages, Markdown, or text
///
/// One session in one format is printed. Several sessions or formats need --out: a folder, into
/// which pages for each session and sub-agent, a manifest and an index are written. Secrets and
/// personal data are redacted everywhere first.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Files, session ids or their prefixes, or `-` for standard input
    #[arg(value_name = "SESSION")]
    pub sessions: Vec<OsString>,

    /// A session's file
    #[arg(long, short, value_name = "FILE")]
    pub file: Vec<PathBuf>,

    /// A session id, or its prefix
    #[arg(long, short, value_name = "ID")]
    pub session: Vec<OsString>,

    /// All sessions of a project: its folder, or its folder's name
    #[arg(long, short, value_name = "PROJECT", allow_hyphen_values = true,
          value_parser = session::project(),
          conflicts_with_all = ["sessions", "file", "session"])]
    pub project: Option<PathBuf>,

    /// All sessions on this machine
    #[arg(long, conflicts_with_all = ["sessions", "file", "session", "project"])]
    pub all: bool,

    /// Output format; may be given more than once [default: terminal]
    #[arg(long, alias = "fmt", value_name = "FORMAT", value_delimiter = ',')]
    pub format: Vec<Format>,

    /// Write to a folder, with an index
    #[arg(long, short, visible_alias = "out-dir", value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Replace results and bulky arguments by their number of lines; with `=no-thinking` also leave
    /// out the model's reasoning
    #[arg(long, short, value_name = "no-thinking", num_args = 0..=1, require_equals = true,
          default_missing_value = BARE, value_parser = compact_value)]
    pub compact: Option<Compact>,

    /// How much is shown [default: full in a terminal, steps elsewhere]
    #[arg(long, value_name = "DETAIL", value_parser = one_of::<settings::Detail>())]
    pub detail: Option<settings::Detail>,

    /// Show only this turn, or these: 12, 3..5; `epitome search` names turns. With `--format
    /// markdown` it can be pasted into an issue
    #[arg(long, value_name = "TURNS", value_parser = parse_turns, conflicts_with = "out")]
    pub turn: Option<RangeInclusive<usize>>,

    #[command(flatten)]
    pub state: State,

    #[command(flatten)]
    pub redaction: Redaction,
}

/// A value of `--compact`, which may also follow it as a separate word.
const NO_THINKING: &str = "no-thinking";

impl Args {
    /// How sessions are compacted, if `--compact` is given. If its value is a separate word, clap
    /// has parsed that word as a session.
    fn compact(&self) -> Option<Compact> {
        let is_said = self.sessions.iter().any(|name| name == NO_THINKING);
        self.compact.map(|given| if is_said { Compact::NoThinking } else { given })
    }

    /// The names of sessions, given as arguments or with `--session`.
    fn names(&self) -> impl Iterator<Item = &OsString> {
        let is_compacted = self.compact.is_some();
        let sessions =
            self.sessions.iter().filter(move |name| !(is_compacted && *name == NO_THINKING));
        sessions.chain(&self.session)
    }
}

/// The value of `--compact` if the option is given without a value. A user cannot type it.
pub const BARE: &str = "\0";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compact {
    /// The reasoning stays.
    Bare,
    NoThinking,
}

impl Compact {
    /// The name of the recipe.
    pub fn name(self) -> &'static str {
        match self {
            Compact::Bare => "transcript",
            Compact::NoThinking => "transcript-no-thinking",
        }
    }

    fn recipe(self) -> Recipe {
        built_in(self.name()).expect("the recipe is part of the program")
    }
}

/// Parses `12` or `3..5`; turn 0 is everything before the user's first message.
fn parse_turns(text: &str) -> std::result::Result<RangeInclusive<usize>, String> {
    let wrong = || format!("`{text}` is no number of a turn, like 12, and no range, like 3..5");
    let number = |text: &str| text.parse().map_err(|_| wrong());
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let turns = number(first)?..=number(last)?;
    if turns.is_empty() { Err(wrong()) } else { Ok(turns) }
}

/// Parses the value of `--compact`.
pub fn compact_value(text: &str) -> std::result::Result<Compact, String> {
    match text {
        BARE => Ok(Compact::Bare),
        NO_THINKING => Ok(Compact::NoThinking),
        _ => Err("write --compact, or --compact=no-thinking".to_owned()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    Terminal,
    File(RenderForm),
}

impl ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Format] {
        &[
            Format::Terminal,
            Format::File(RenderForm::Html),
            Format::File(RenderForm::Markdown),
            Format::File(RenderForm::Json),
            Format::File(RenderForm::Jsonl),
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Format::Terminal => {
                PossibleValue::new("terminal").alias("text").help("Coloured text, in a pager")
            }
            Format::File(RenderForm::Html) => {
                PossibleValue::new("html").help("Self-contained pages")
            }
            Format::File(RenderForm::Markdown) => {
                PossibleValue::new("markdown").alias("md").help("For GitHub")
            }
            Format::File(RenderForm::Json) => {
                PossibleValue::new("json").help("For programs (docs/schema/transcript.schema.json)")
            }
            Format::File(RenderForm::Jsonl) => {
                PossibleValue::new("jsonl").help("The session's own records, as its agent has them")
            }
        })
    }
}

impl From<settings::Form> for Format {
    fn from(form: settings::Form) -> Format {
        match form {
            settings::Form::Terminal => Format::Terminal,
            settings::Form::Html => Format::File(RenderForm::Html),
            settings::Form::Markdown => Format::File(RenderForm::Markdown),
            settings::Form::Json => Format::File(RenderForm::Json),
            settings::Form::Jsonl => Format::File(RenderForm::Jsonl),
        }
    }
}

fn compacted(set: settings::RenderShortening) -> Option<Compact> {
    match set {
        settings::RenderShortening::No => None,
        settings::RenderShortening::Yes => Some(Compact::Bare),
        settings::RenderShortening::NoThinking => Some(Compact::NoThinking),
    }
}

/// The report of a rendered session. See `docs/json.md`.
#[derive(Serialize)]
struct Written<'a> {
    session: String,
    #[serde(serialize_with = "epitome_model::lossy_path")]
    out: &'a Path,
    #[serde(flatten)]
    listing: &'a Listing,
    /// The number of different redacted values, by rule.
    redacted: BTreeMap<String, u64>,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    let inputs = inputs(app, args)?;
    if args.turn.is_some() && inputs.len() > 1 {
        return Err(Failure::usage("--turn shows one session"));
    }
    let set = &app.settings()?.values.render;
    let formats = formats(args, set);
    // The folder of the settings is for files. It is not used for terminal output, nor with
    // `--turn`.
    let is_files = !formats.contains(&Format::Terminal) && args.turn.is_none();
    let out = args.out.as_ref().or(set.out.as_ref().filter(|_| is_files));
    let choice = Choice {
        detail: args.detail.or(set.detail),
        finder: args.redaction.finder(app)?,
        recipe: args.compact().or(set.compact.and_then(compacted)).map(Compact::recipe),
        archive: app.config.archive(),
        prices: ListPrices::from_config(&app.config)?,
    };
    match (out, inputs.as_slice(), formats.as_slice()) {
        (Some(out), inputs, formats) => write(app, out, (inputs, args.state), formats, &choice),
        (None, _, _) if app.global.json => {
            Err(Failure::usage("--json prints a report, so the files need --out"))
        }
        (None, [input], [format]) => {
            let turns = args.turn.clone();
            let (text, taken) = in_one_text(
                &open(app, input, args.state)?,
                *format,
                &choice.options(*format),
                turns,
            )?;
            print(app, *format, &text)?;
            taken.print(app);
            Ok(())
        }
        (None, inputs, [Format::Terminal]) => {
            let mut text = String::new();
            for input in inputs {
                let how = choice.options(Format::Terminal);
                let reading = open(app, input, args.state)?;
                let (one, taken) = in_one_text(&reading, Format::Terminal, &how, None)?;
                taken.print(app);
                text.push_str(&one);
                text.push('\n');
            }
            print(app, Format::Terminal, &text)
        }
        (None, ..) => Err(Failure::usage("more than one session or format needs --out DIR")),
    }
}

/// The formats of the options, or else of the settings. With `--turn`, the default is the terminal,
/// whatever the settings are.
fn formats(args: &Args, set: &settings::Render) -> Vec<Format> {
    let mut formats = args.format.clone();
    if formats.is_empty() && args.turn.is_none() {
        formats.extend(set.format.iter().flatten().map(|form| Format::from(*form)));
    }
    if formats.is_empty() {
        formats.push(Format::Terminal);
    }
    formats.sort();
    formats.dedup();
    formats
}

/// The options and settings that apply to every format.
struct Choice {
    detail: Option<settings::Detail>,
    finder: Option<Finder>,
    recipe: Option<Recipe>,
    archive: Archive,
    prices: ListPrices,
}

impl Choice {
    fn options(&self, format: Format) -> RenderOptions<'_> {
        RenderOptions {
            detail: match (self.detail, format) {
                (Some(detail), _) => detail.into(),
                (None, Format::Terminal) => Detail::Full,
                (None, Format::File(_)) => Detail::Steps,
            },
            redact: self.finder.as_ref(),
            compact: self.recipe.as_ref(),
            archive: &self.archive,
            prices: Some(&self.prices),
        }
    }
}

/// The sessions that the command line names, and those that `--all` or `--project` selects.
fn inputs(app: &App, args: &Args) -> Result<Vec<Input>> {
    let mut inputs = Vec::new();
    for path in &args.file {
        inputs.push(match path.to_str() {
            Some("-") => Input::Stdin,
            Some(_) | None => Input::File(path.clone()),
        });
    }
    for name in args.names() {
        inputs.push(Input::find(app, name)?);
    }
    if args.all || args.project.is_some() {
        let all = session::all(app).sessions.into_iter().map(|file| file.path);
        inputs.extend(all.filter(|path| of_project(args, path)).map(Input::File));
        if inputs.is_empty() {
            let what = "no session matches";
            return Err(Failure::new(Status::Unreadable, "not-found", what)
                .hint("`epitome list` shows the sessions of this machine"));
        }
    }
    if inputs.is_empty() {
        return Err(Failure::usage(
            "no session named; give a file or an id, or --project or --all",
        ));
    }
    Ok(inputs)
}

fn of_project(args: &Args, path: &Path) -> bool {
    if args.project.is_none() {
        return true;
    }
    let Ok(session) = epitome::storage::load(path, None) else { return false };
    let cwd = session.transcript.head.cwd.as_deref();
    Which { project: args.project.clone() }.takes(cwd)
}

fn open(app: &App, input: &Input, state: State) -> Result<RenderSource> {
    let config = &app.config;
    let version = state.version();
    let reading = match input {
        Input::Stdin => RenderSource::from_bytes(config, read_stdin()?, app.agent(), version)?,
        Input::File(path) => RenderSource::open_version(config, path, app.agent(), version)?,
    };
    note_missing(app, input, reading.missing());
    Ok(reading)
}

/// Fails if the session could not be read as a whole. An incomplete text is then not printed, and
/// pages that were already written are not listed in the index.
fn failed(reading: &RenderSource) -> Result<()> {
    match reading.failure() {
        Some(failure) => Err(failure.into()),
        None => Ok(()),
    }
}

/// A session, or some of its turns, as one text.
fn in_one_text(
    reading: &RenderSource,
    format: Format,
    how: &RenderOptions<'_>,
    turns: Option<RangeInclusive<usize>>,
) -> Result<(String, RedactionCounts)> {
    if let (Format::File(form), None) = (format, &turns) {
        let (text, found) = reading.single_text(form, how)?;
        return Ok((text, RedactionCounts::count(&found)));
    }
    let address = |number: usize| format!("#{}", sub_agent_anchor(number));
    // Used with `--turn`: whether the session has one of these turns, and the number of its last
    // turn.
    let mut chosen = (true, 0);
    let (text, found) = reading.with_stories(how, address, |stories| {
        let [main, parts @ ..] = stories else { return String::new() };
        let Some(turns) = &turns else {
            let all = stories.iter().map(|story| terminal(story, text::columns()));
            return all.collect::<Vec<_>>().join("\n");
        };
        let is_there = main.turns.iter().any(|turn| turns.contains(&turn.number));
        chosen = (is_there, main.turns.last().map_or(0, |turn| turn.number));
        told_turns(&main.select_turns(turns.clone()), parts, format)
    })?;
    failed(reading)?;
    if let (Some(turns), (false, last)) = (turns, chosen) {
        let what = format!("there is no turn {}: the session has {last}", turns.start());
        return Err(Failure::usage(what));
    }
    Ok((text, RedactionCounts::count(&found)))
}

/// Renders some turns of a session. A page also contains the sub-agents that these turns started.
fn told_turns(turns: &Story<'_>, parts: &[Story<'_>], format: Format) -> String {
    match format {
        Format::Terminal => terminal(turns, text::columns()),
        Format::File(RenderForm::Html) => {
            let alone = Html::single_page(turns, Vec::new()).page(0);
            let parts = parts.iter().enumerate().map(|(n, story)| (sub_agent_anchor(n), story));
            let sent = parts.filter(|(anchor, _)| alone.contains(&format!("href=\"#{anchor}\"")));
            let parts: Vec<_> = sent.collect();
            if parts.is_empty() { alone } else { Html::single_page(turns, parts).page(0) }
        }
        Format::File(RenderForm::Markdown) => markdown(turns),
        Format::File(RenderForm::Json) => json(turns, &[]),
        Format::File(RenderForm::Jsonl) => String::from_utf8_lossy(&turns.records()).into_owned(),
    }
}

fn print(app: &App, format: Format, text: &str) -> Result<()> {
    match format {
        Format::Terminal => app.page(text),
        Format::File(_) => app.print_content(text.as_bytes()),
    }
}

fn write(
    app: &App,
    out: &Path,
    (inputs, state): (&[Input], State),
    formats: &[Format],
    choice: &Choice,
) -> Result<()> {
    let files: Vec<RenderForm> = formats
        .iter()
        .filter_map(|format| match format {
            Format::File(rendered) => Some(*rendered),
            Format::Terminal => None,
        })
        .collect();
    if files.is_empty() {
        return Err(Failure::usage("--out writes files: choose a --format for them")
            .hint("--format html, --format markdown"));
    }
    let how = choice.options(Format::File(files[0]));
    let mut listings = Vec::new();
    let mut left_out = 0;
    for input in inputs {
        let written = open(app, input, state).and_then(|reading| {
            let written = render_into(out, &reading, &how, &files, &listings);
            let written = written.map_err(Failure::writing)?;
            failed(&reading)?;
            Ok(written)
        });
        match written {
            Ok((listing, found)) => {
                let taken = RedactionCounts::count(&found);
                if app.global.json {
                    let session = input.name();
                    let redacted = taken.by_rule;
                    app.print_json(&Written { session, out, listing: &listing, redacted })?;
                } else {
                    let files = listing.files.join(", ");
                    app.print(&format!("{BOLD}{files}{BOLD:#}  {}\n", listing.facts.title))?;
                    taken.print(app);
                }
                listings.push(listing);
            }
            // If there are several inputs, one that cannot be read is reported, and the others are
            // rendered.
            Err(failure) if inputs.len() > 1 && failure.status == Status::Unreadable => {
                left_out += 1;
                app.note(&format!("{DIM}left out:{DIM:#} {}", text::field(&failure.one_line())));
            }
            Err(failure) => return Err(failure),
        }
    }
    let index = update_index(out, listings).map_err(Failure::writing)?;
    if !app.global.json {
        let sessions = count(index.sessions.len() as u64, "session");
        let without = if left_out > 0 { format!(", {left_out} left out") } else { String::new() };
        let path = text::path(&out.join("index.html"));
        app.note(&format!("{DIM}{sessions} in {path}{without}{DIM:#}"));
    }
    Ok(())
}
