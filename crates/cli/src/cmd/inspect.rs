//! `epitome inspect`: where the bytes and tokens of a session go.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

use clap::Args as ClapArgs;
use epitome::anatomy::PartKind;
use epitome::compaction::Family;
use epitome::ops::{CompactionPrice, Inspect, Inspection, OriginalState};
use epitome::{History, Loaded, Version, storage};
use epitome_model::{MicroDollars, Tokens};

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
    let screen = app.screen()?;
    let inspect = Inspect { config: &app.config, screen: &screen, counter: app.counter() };
    let inspected = match &input {
        Input::Stdin => {
            let bytes = read_stdin()?;
            let config = &app.config;
            let version = Version::AsItWas;
            let history = History::from_bytes(config, bytes.clone(), app.agent(), version)?;
            inspect.run(None, &Loaded::read(bytes, app.agent())?, &history)?
        }
        Input::File(path) => {
            let session = storage::load(path, app.agent())?;
            let history = State::default().open(app, &input)?;
            let inspected = inspect.run(Some(path), &session, &history)?;
            if let Some(failure) = session.source.failure() {
                return Err(failure.into());
            }
            inspected
        }
    };
    if app.global.json { app.print_json(&inspected) } else { app.page(&report(&inspected)) }
}

/// The maximum number of violations that are printed. JSON has all of them.
const SHOWN: usize = 20;

/// The price of the first request after a compaction: as epitome estimates it, and as the session
/// records it. `None` if there is no estimate.
fn price(it: &CompactionPrice) -> Option<String> {
    let quote = it.quote.as_ref()?;
    let input = quote.input_tokens.after;
    let cached = quote.cached_tokens.after;
    let quoted = tokens_and_cost(input, Some(cached), Some(quote.next_cost.after));
    let recorded = match &it.recorded {
        Some(it) => {
            let is = tokens_and_cost(it.input_tokens, it.cached_tokens, it.cost);
            format!("recorded on line {}: {is}", it.line)
        }
        None => "no request since".to_owned(),
    };
    Some(format!("after compaction {}: quoted {quoted}; {recorded}", it.generation))
}

fn tokens_and_cost(input: Tokens, cached: Option<Tokens>, cost: Option<MicroDollars>) -> String {
    let cached = cached.map(|it| format!(", {it} of it cached")).unwrap_or_default();
    let cost = cost.map(|it| format!(", {it}")).unwrap_or_default();
    format!("{input}{cached}{cost}")
}

fn report(inspected: &Inspection) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{BOLD}{}{BOLD:#}", text::path(Path::new(&inspected.session)));
    let mut facts = vec![inspected.agent.to_owned()];
    facts.extend(inspected.id.as_deref().map(field));
    facts.extend(inspected.version.as_deref().map(|version| format!("version {}", field(version))));
    facts.extend(inspected.cwd.as_deref().map(|cwd| text::path(Path::new(cwd))));
    let _ = writeln!(text, "{DIM}{}{DIM:#}", facts.join(" · "));
    if let Some(title) = &inspected.title {
        let _ = writeln!(text, "{}", one_line(title, 100));
    }
    for table in [kinds(inspected), tools(inspected), largest(inspected)] {
        let _ = write!(text, "\n{table}");
    }
    let _ = write!(text, "\n{}", session_facts(inspected));
    text
}

fn kinds(inspected: &Inspection) -> String {
    use Side::{Left, Right};
    let heads = ["", "blocks", "messages", "", "", "disk", ""];
    let sides = [Left, Right, Right, Right, Left, Right, Right];
    let mut table = Table::new(&sides, &heads).leaves_out(&[4]);
    let context = inspected.context_tokens;
    let disk = inspected.disk_bytes;
    for kind in PartKind::ALL {
        let Some(amount) = inspected.kinds.get(&kind) else { continue };
        let sent = !matches!(kind, PartKind::Copies | PartKind::Framing);
        let tokens = amount.context_tokens;
        table.row(vec![
            kind.name().to_owned(),
            if kind == PartKind::Framing { String::new() } else { amount.blocks.to_string() },
            if sent { tokens.to_string() } else { "-".into() },
            if sent { share(tokens.0, context.0) } else { String::new() },
            if sent { text::bar(tokens.0, context.0) } else { String::new() },
            amount.disk_bytes.to_string(),
            share(amount.disk_bytes.0, disk.0),
        ]);
    }
    let blocks: u64 = inspected.kinds.values().map(|amount| amount.blocks).sum();
    let mut cells = vec!["total".to_owned(), blocks.to_string(), context.to_string()];
    cells.extend([String::new(), String::new(), disk.to_string(), String::new()]);
    table.styled(BOLD, cells);
    table.render()
}

fn tools(inspected: &Inspection) -> String {
    use Side::{Left, Right};
    if inspected.tools.is_empty() {
        return String::new();
    }
    let heads = ["tool", "calls", "arguments", "results", "", "", "disk", ""];
    let sides = [Left, Right, Right, Right, Right, Left, Right, Right];
    let mut table = Table::new(&sides, &heads).shrinks(0, 12).leaves_out(&[5]);
    for tool in &inspected.tools {
        let tokens = tool.arguments.context_tokens + tool.results.context_tokens;
        let bytes = tool.arguments.disk_bytes + tool.results.disk_bytes;
        table.row(vec![
            one_line(&tool.name, 40),
            tool.arguments.blocks.to_string(),
            tool.arguments.context_tokens.to_string(),
            tool.results.context_tokens.to_string(),
            share(tokens.0, inspected.context_tokens.0),
            text::bar(tokens.0, inspected.context_tokens.0),
            bytes.to_string(),
            share(bytes.0, inspected.disk_bytes.0),
        ]);
    }
    table.render()
}

fn largest(inspected: &Inspection) -> String {
    use Side::{Left, Right};
    let heads = ["line", "messages", "", "disk", "largest blocks", ""];
    let sides = [Right, Right, Right, Right, Left, Left];
    let mut table = Table::new(&sides, &heads).shrinks(5, 12);
    for large in &inspected.largest {
        table.row(vec![
            large.line.to_string(),
            large.context_tokens.map_or("-".into(), |tokens| tokens.to_string()),
            large
                .context_tokens
                .map_or(String::new(), |tokens| share(tokens.0, inspected.context_tokens.0)),
            large.disk_bytes.to_string(),
            large.kind.name().to_owned(),
            one_line(&large.what, 70),
        ]);
    }
    table.render()
}

fn session_facts(inspected: &Inspection) -> String {
    let mut lines = Lines::default();
    let mut what = vec![
        count(inspected.lines, "line"),
        format!("{} of {} entries are sent", inspected.sent_entries, inspected.entries),
        if inspected.context_turns == inspected.turns {
            count(inspected.turns, "turn")
        } else {
            format!("{} ({} sent)", count(inspected.turns, "turn"), inspected.context_turns)
        },
    ];
    if inspected.sub_agents > 0 {
        what.push(count(inspected.sub_agents, "sub-agent"));
    }
    lines.add("session", what.join(" · "));
    let messages =
        format!("{} tokens, counted with {}", inspected.context_tokens, inspected.counter);
    lines.add("messages", messages);
    if let (Some(request), Some(billed)) = (inspected.request_tokens, &inspected.billed) {
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
    let Family { files, disk_bytes } = inspected.family;
    let mut disk = inspected.disk_bytes.to_string();
    if files > 1 {
        let with = match inspected.sub_agents {
            0 => "its log".to_owned(),
            n => count(n, "sub-agent"),
        };
        let _ = write!(disk, " · {disk_bytes} with {with}");
    }
    lines.add("disk", disk);
    if inspected.compactions_in_effect > 0 {
        let times = count(inspected.compactions_in_effect, "time");
        lines.add("state", format!("compacted {times}"));
    }
    if let Some(was) = &inspected.as_it_was {
        lines.add("as it was", original(was));
    }
    lines.extend("price", inspected.prices.iter().filter_map(price).collect());
    lines.extend("faults", faults(&inspected.faults));
    match inspected.violations.len() {
        0 if inspected.faults.is_empty() => {
            lines.add("valid", "yes: every record is understood, all invariants hold");
        }
        0 => lines.add("valid", "all invariants hold; what is not understood is kept as it is"),
        n => {
            let violations = inspected.violations.iter().take(SHOWN).map(|violation| {
                let violation = field(&violation.to_string());
                format!("{RED}{violation}{RED:#}")
            });
            let more = (n > SHOWN).then(|| format!("and {} more", n - SHOWN));
            lines.extend("not valid", violations.chain(more).collect());
        }
    }
    lines.render()
}

/// Describes a compacted session as it was before its compactions.
fn original(was: &OriginalState) -> String {
    let mut text = format!(
        "{} tokens of messages · {} · {} · {}",
        was.context_tokens,
        was.disk_bytes,
        count(was.lines, "line"),
        count(was.entries, "entry"),
    );
    if was.lines_added + was.lines_removed > 0 {
        let _ = write!(text, " · +{} −{}", was.lines_added, was.lines_removed);
    }
    if was.thinking > 0 {
        let _ = write!(text, " · {} of thinking", count(was.thinking, "text"));
    }
    text
}
