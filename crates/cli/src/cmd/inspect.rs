//! `epitome inspect`: where the bytes and tokens of a session go.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

use clap::Args as ClapArgs;
use epitome::compaction::Family;
use epitome::ops::{CompactionPrice, FaultFound, Fitted, OpenSession, compaction_prices};
use epitome::storage::{self, key_of};
use epitome::{History, Loaded, Version, agents};
use epitome_model::{
    Block, Bytes, Counter, MicroDollars, Source, Tokens, Violation, context_turns, turns, weigh,
};
use epitome_render::Changes;
use epitome_tokens::Calibration;
use serde::Serialize;

use crate::anatomy::{Amount, Anatomy, Kind, Large, Tool, anatomy};
use crate::app::App;
use crate::failure::Result;
use crate::report::{Lines, faults};
use crate::session::{Input, State, read_stdin};
use crate::table::{Side, Table};
use crate::text::{self, BOLD, DIM, RED, count, field, one_line, share};

const EXAMPLES: &str = "\
Examples:
  epitome inspect 0f3c9a52
  epitome inspect --count estimate session.jsonl
  epitome inspect --json session.jsonl | jq .kinds";

/// Show where the bytes and tokens of a session go, and whether it is valid
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A file, a session id or its prefix, or `-` for standard input
    #[arg(value_name = "SESSION")]
    pub session: OsString,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    let input = Input::find(app, &args.session)?;
    let inspected = match &input {
        Input::Stdin => {
            let bytes = read_stdin()?;
            let (config, version) = (&app.config, Version::AsItWas);
            let history = History::of_bytes(config, bytes.clone(), app.agent(), version)?;
            inspect(app, &input, &Loaded::read(bytes, app.agent())?, &history)?
        }
        Input::File(path) => {
            let session = storage::load(path, app.agent())?;
            let history = State::default().open(app, &input)?;
            let inspected = inspect(app, &input, &session, &history)?;
            if let Some(failure) = session.source.failure() {
                return Err(failure.into());
            }
            inspected
        }
    };
    if app.global.json { app.print_json(&inspected) } else { app.page(&inspected.render()) }
}

/// The number of violations printed; JSON has all.
const SHOWN: usize = 20;

/// The report of a session. See `docs/json.md`.
#[derive(Serialize)]
struct Inspected {
    session: String,
    agent: &'static str,
    id: Option<String>,
    title: Option<String>,
    cwd: Option<String>,
    version: Option<String>,
    counter: &'static str,
    context_tokens: Tokens,
    request_tokens: Option<Tokens>,
    disk_bytes: Bytes,
    lines: u64,
    entries: u64,
    sent_entries: u64,
    turns: u64,
    context_turns: u64,
    sub_agents: u64,
    family: Family,
    compactions: u64,
    compactions_in_effect: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    as_it_was: Option<AsItWas>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    prices: Vec<CompactionPrice>,
    kinds: BTreeMap<Kind, Amount>,
    tools: Vec<Tool>,
    largest: Vec<Large>,
    calibration: Option<InspectedFit>,
    #[serde(skip)]
    billed: Option<Calibration>,
    faults: Vec<FaultFound>,
    #[serde(rename = "breaches")]
    violations: Vec<Violation>,
}

/// A compacted session in its original state, with what was appended since.
#[derive(Serialize)]
struct AsItWas {
    context_tokens: Tokens,
    disk_bytes: Bytes,
    lines: u64,
    entries: u64,
    /// The numbers of lines that calls added to and removed from files.
    lines_added: u64,
    lines_removed: u64,
    /// The number of blocks of readable reasoning.
    thinking: u64,
    /// Everything that could not be put back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
}

impl AsItWas {
    fn counted(history: &History, counter: &dyn Counter) -> AsItWas {
        let Loaded { source, transcript, .. } = &history.session;
        let blocks = transcript.entries().flat_map(|(_, entry)| &entry.blocks);
        let is_thinking =
            |block: &&Block| matches!(block, Block::Thinking(it) if it.text.is_some());
        let changes = Changes::from_transcript(transcript, source);
        AsItWas {
            context_tokens: weigh(transcript, source, counter).total(),
            disk_bytes: Bytes(Source::len(source)),
            lines: transcript.items.last().map_or(0, |item| item.record().line),
            entries: transcript.entries().count() as u64,
            lines_added: changes.added,
            lines_removed: changes.removed,
            thinking: blocks.filter(is_thinking).count() as u64,
            missing: history.missing.clone(),
        }
    }

    fn render(&self) -> String {
        let mut text = format!(
            "{} tokens of messages · {} · {} · {}",
            self.context_tokens,
            self.disk_bytes,
            count(self.lines, "line"),
            count(self.entries, "entry"),
        );
        if self.lines_added + self.lines_removed > 0 {
            let _ = write!(text, " · +{} −{}", self.lines_added, self.lines_removed);
        }
        if self.thinking > 0 {
            let _ = write!(text, " · {} of thinking", count(self.thinking, "text"));
        }
        text
    }
}

/// The fit of the provider's token counts to ours, and its estimate of the next request.
#[derive(Serialize)]
struct InspectedFit {
    #[serde(flatten)]
    fit: Fitted,
    context_tokens: Tokens,
}

fn inspect<S: Source>(
    app: &App,
    input: &Input,
    session: &Loaded<S>,
    history: &History,
) -> Result<Inspected> {
    let Loaded { format, source, transcript, .. } = session;
    let counter = app.counter();
    let Anatomy { kinds, total, tools, largest } = anatomy(transcript, source, counter);
    let path = match input {
        Input::File(path) => path.as_path(),
        Input::Stdin => Path::new("-"),
    };
    let generations = app.config.archive().generations(&key_of(session, path))?;
    let compactions = (generations.whole.len() + generations.damaged.len()) as u64;
    let compactions_in_effect =
        storage::compactions(session, &app.config.archive(), path)?.len() as u64;
    let prices = match input {
        Input::File(path) if compactions_in_effect > 0 => {
            compaction_prices(&OpenSession::of_agent(&app.config, path, app.agent()), counter)?
        }
        Input::File(_) | Input::Stdin => Vec::new(),
    };
    let billed = epitome::compaction::calibration(session, &app.config, path, counter);
    let request_tokens = billed.map(|it| it.apply(total.context_tokens));
    let screen = app.screen()?;
    let mut screen = history.screen(&screen);
    let mut own = |text: &Option<Box<str>>| text.as_deref().map(|text| screen.text(text));
    let (title, cwd) = (own(&transcript.head.title), own(&transcript.head.cwd));
    let (id, version) = (own(&transcript.head.id), own(&transcript.head.version));
    let tools = tools.into_iter().map(|it| Tool { name: screen.text(&it.name), ..it }).collect();
    let largest = largest.into_iter().map(|it| Large { what: screen.text(&it.what), ..it });
    let largest = largest.collect();
    let mut faults: Vec<FaultFound> = session.faults.iter().map(FaultFound::from_fault).collect();
    faults.iter_mut().for_each(|fault| fault.what = screen.text(&fault.what));
    Ok(Inspected {
        session: input.name(),
        agent: format.name,
        id,
        title,
        cwd,
        version,
        counter: counter.name(),
        context_tokens: total.context_tokens,
        request_tokens,
        disk_bytes: total.disk_bytes,
        lines: transcript.items.last().map_or(0, |item| item.record().line),
        entries: transcript.entries().count() as u64,
        sent_entries: transcript.context().count() as u64,
        turns: turns(transcript, source).len() as u64,
        context_turns: context_turns(transcript, source),
        sub_agents: agents::sub_agents(path) as u64,
        family: Family::measure(path, total.disk_bytes),
        compactions,
        compactions_in_effect,
        as_it_was: history.is_compacted().then(|| AsItWas::counted(history, counter)),
        prices,
        kinds,
        tools,
        largest,
        calibration: billed.as_ref().zip(request_tokens).map(|(billed, context_tokens)| {
            InspectedFit { fit: Fitted::from_calibration(billed), context_tokens }
        }),
        billed,
        faults,
        violations: format.invariants.check(transcript, source),
    })
}

/// The quoted price of the request after a compaction, and the recorded one.
fn price(it: &CompactionPrice) -> Option<String> {
    let quote = it.quote.as_ref()?;
    let of = |input: Tokens, cached: Option<Tokens>, cost: Option<MicroDollars>| {
        let cached = cached.map(|it| format!(", {it} of it cached")).unwrap_or_default();
        let cost = cost.map(|it| format!(", {it}")).unwrap_or_default();
        format!("{input}{cached}{cost}")
    };
    let (input, cached) = (quote.input_tokens.after, quote.cached_tokens.after);
    let quoted = of(input, Some(cached), Some(quote.next_cost.after));
    let recorded = match &it.recorded {
        Some(it) => {
            let is = of(it.input_tokens, it.cached_tokens, it.cost);
            format!("recorded on line {}: {is}", it.line)
        }
        None => "no request since".to_owned(),
    };
    Some(format!("after compaction {}: quoted {quoted}; {recorded}", it.generation))
}

impl Inspected {
    fn render(&self) -> String {
        let mut text = String::new();
        let _ = writeln!(text, "{BOLD}{}{BOLD:#}", text::path(Path::new(&self.session)));
        let mut facts = vec![self.agent.to_owned()];
        facts.extend(self.id.as_deref().map(field));
        facts.extend(self.version.as_deref().map(|version| format!("version {}", field(version))));
        facts.extend(self.cwd.as_deref().map(|cwd| text::path(Path::new(cwd))));
        let _ = writeln!(text, "{DIM}{}{DIM:#}", facts.join(" · "));
        if let Some(title) = &self.title {
            let _ = writeln!(text, "{}", one_line(title, 100));
        }
        for table in [self.kinds(), self.tools(), self.largest()] {
            let _ = write!(text, "\n{table}");
        }
        let _ = write!(text, "\n{}", self.facts());
        text
    }

    fn kinds(&self) -> String {
        use Side::{Left, Right};
        let heads = ["", "blocks", "messages", "", "", "disk", ""];
        let sides = [Left, Right, Right, Right, Left, Right, Right];
        let mut table = Table::new(&sides, &heads).leaves_out(&[4]);
        let (context, disk) = (self.context_tokens, self.disk_bytes);
        for kind in Kind::ALL {
            let Some(amount) = self.kinds.get(&kind) else { continue };
            let sent = !matches!(kind, Kind::Copies | Kind::Framing);
            let tokens = amount.context_tokens;
            table.row(vec![
                kind.name().to_owned(),
                if kind == Kind::Framing { String::new() } else { amount.blocks.to_string() },
                if sent { tokens.to_string() } else { "-".into() },
                if sent { share(tokens.0, context.0) } else { String::new() },
                if sent { text::bar(tokens.0, context.0) } else { String::new() },
                amount.disk_bytes.to_string(),
                share(amount.disk_bytes.0, disk.0),
            ]);
        }
        let blocks: u64 = self.kinds.values().map(|amount| amount.blocks).sum();
        let mut cells = vec!["total".to_owned(), blocks.to_string(), context.to_string()];
        cells.extend([String::new(), String::new(), disk.to_string(), String::new()]);
        table.styled(BOLD, cells);
        table.render()
    }

    fn tools(&self) -> String {
        use Side::{Left, Right};
        if self.tools.is_empty() {
            return String::new();
        }
        let heads = ["tool", "calls", "arguments", "results", "", "", "disk", ""];
        let sides = [Left, Right, Right, Right, Right, Left, Right, Right];
        let mut table = Table::new(&sides, &heads).shrinks(0, 12).leaves_out(&[5]);
        for tool in &self.tools {
            let tokens = tool.arguments.context_tokens + tool.results.context_tokens;
            let bytes = tool.arguments.disk_bytes + tool.results.disk_bytes;
            table.row(vec![
                one_line(&tool.name, 40),
                tool.arguments.blocks.to_string(),
                tool.arguments.context_tokens.to_string(),
                tool.results.context_tokens.to_string(),
                share(tokens.0, self.context_tokens.0),
                text::bar(tokens.0, self.context_tokens.0),
                bytes.to_string(),
                share(bytes.0, self.disk_bytes.0),
            ]);
        }
        table.render()
    }

    fn largest(&self) -> String {
        use Side::{Left, Right};
        let heads = ["line", "messages", "", "disk", "largest blocks", ""];
        let sides = [Right, Right, Right, Right, Left, Left];
        let mut table = Table::new(&sides, &heads).shrinks(5, 12);
        for large in &self.largest {
            table.row(vec![
                large.line.to_string(),
                large.context_tokens.map_or("-".into(), |tokens| tokens.to_string()),
                large
                    .context_tokens
                    .map_or(String::new(), |tokens| share(tokens.0, self.context_tokens.0)),
                large.disk_bytes.to_string(),
                large.kind.name().to_owned(),
                one_line(&large.what, 70),
            ]);
        }
        table.render()
    }

    fn facts(&self) -> String {
        let mut lines = Lines::default();
        let mut what = vec![
            count(self.lines, "line"),
            format!("{} of {} entries are sent", self.sent_entries, self.entries),
            if self.context_turns == self.turns {
                count(self.turns, "turn")
            } else {
                format!("{} ({} sent)", count(self.turns, "turn"), self.context_turns)
            },
        ];
        if self.sub_agents > 0 {
            what.push(count(self.sub_agents, "sub-agent"));
        }
        lines.add("session", what.join(" · "));
        let messages = format!("{} tokens, counted with {}", self.context_tokens, self.counter);
        lines.add("messages", messages);
        if let (Some(request), Some(billed)) = (self.request_tokens, &self.billed) {
            lines.add(
                "request",
                format!(
                    "{request} tokens as billed: {:.2} × messages and {} of system prompt and \
                     tools ({billed})",
                    f64::from(billed.factor) / 1_000.0,
                    billed.fixed,
                ),
            );
        }
        let Family { files, disk_bytes } = self.family;
        let mut disk = self.disk_bytes.to_string();
        if files > 1 {
            let with = match self.sub_agents {
                0 => "its log".to_owned(),
                n => count(n, "sub-agent"),
            };
            let _ = write!(disk, " · {disk_bytes} with {with}");
        }
        lines.add("disk", disk);
        if self.compactions_in_effect > 0 {
            let times = count(self.compactions_in_effect, "time");
            lines.add("state", format!("compacted {times}"));
        }
        if let Some(was) = &self.as_it_was {
            lines.add("as it was", was.render());
        }
        lines.extend("price", self.prices.iter().filter_map(price).collect());
        lines.extend("faults", faults(&self.faults));
        match self.violations.len() {
            0 if self.faults.is_empty() => {
                lines.add("valid", "yes: every record is understood, all invariants hold");
            }
            0 => lines.add("valid", "all invariants hold; what is not understood is kept as it is"),
            n => {
                let shown = self
                    .violations
                    .iter()
                    .take(SHOWN)
                    .map(|violation| field(&violation.to_string()));
                let mut shown: Vec<String> = shown.map(|it| format!("{RED}{it}{RED:#}")).collect();
                if n > SHOWN {
                    shown.push(format!("and {} more", n - SHOWN));
                }
                lines.extend("not valid", shown);
            }
        }
        lines.render()
    }
}
