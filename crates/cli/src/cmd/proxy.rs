//! `epitome proxy`: makes requests to models smaller on their way.

mod explain;
mod stats;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;
use epitome::models::catalogue;
use epitome::recipes;
use epitome::wire::ledger::Ledger;
use epitome::wire::stats::{StatsBy, report};
use epitome_model::{MicroDollars, Tokens};
use epitome_proxy::{BindError, Holdout, Options, Server, TelemetrySettings, Totals, Upstream};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use self::explain::explainer;
use crate::app::App;
use crate::failure::{Failure, Result, Status};
use crate::session;
use crate::text::{BOLD, DIM, count};

const EXAMPLES: &str = "\
Examples:
  epitome proxy                                  then: ANTHROPIC_BASE_URL=ADDRESS claude
  epitome proxy --listen 127.0.0.1:8089 --dry-run
  epitome proxy --upstream https://gateway.example/anthropic
  epitome proxy --stats --by model --since 30d
  curl -H 'x-epitome-bypass: 1' …                passes this request unchanged";

/// Make the requests of an agent to its model smaller on their way
///
/// Give the printed address to an agent as its base URL. A request that need not change is passed
/// on byte for byte; an error of epitome passes the original request on. Ctrl-C stops it. `epitome
/// wrap` starts the proxy and an agent together.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The address to listen on; port 0 means any free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,

    /// The base URL of the model service [default: the provider that the path of a request names]
    #[arg(long, value_name = "URL", value_parser = Upstream::parse)]
    pub upstream: Option<Upstream>,

    /// The first part of the path of every request; needed to listen on an address that other
    /// machines can reach
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<String>,

    #[command(flatten)]
    pub shortening: Shortening,

    #[command(flatten)]
    pub stats: Stats,
}

/// The options of a proxy that is started: none of them can be given with `--stats`.
const OF_A_RUN: [&str; 9] = [
    "listen",
    "upstream",
    "token",
    "recipe",
    "dry_run",
    "holdout",
    "explain",
    "budget",
    "websockets",
];

/// The options that show what was sent through the proxy so far.
#[derive(ClapArgs, Clone, Debug)]
pub struct Stats {
    /// Start nothing, and show what was sent through the proxy so far, and what that cost
    #[arg(long, conflicts_with_all = OF_A_RUN)]
    pub stats: bool,

    /// The rows of the table: day, model or agent
    #[arg(long, value_name = "BY", default_value = "day", value_parser = by(), requires = "stats")]
    pub by: StatsBy,

    /// Only requests of at most this age: 7d, 12h, 2w
    #[arg(long, value_name = "AGE", value_parser = session::parse_age, requires = "stats")]
    pub since: Option<Duration>,
}

fn by() -> impl clap::builder::TypedValueParser<Value = StatsBy> {
    use clap::builder::{PossibleValuesParser, TypedValueParser as _};

    PossibleValuesParser::new(StatsBy::ALL.map(StatsBy::name)).map(|name| {
        let named = StatsBy::ALL.into_iter().find(|by| by.name() == name);
        named.expect("the parser accepts no other name")
    })
}

/// How requests are shortened.
#[derive(ClapArgs, Clone, Debug)]
pub struct Shortening {
    /// A recipe by name, or a file; `epitome recipes` lists them [default: epitome]
    #[arg(long, value_name = "RECIPE")]
    pub recipe: Option<String>,

    /// Change nothing, and report what would be changed
    #[arg(long)]
    pub dry_run: bool,

    /// Per cent of the conversations that pass unchanged, so that `epitome proxy --stats` can
    /// compare the others with them
    #[arg(long, value_name = "PERCENT", value_parser = parse_holdout, default_value = "0")]
    pub holdout: Holdout,

    /// Report what was done to each block of a changed request, and why, in this file (`-` for
    /// standard error)
    #[arg(long, value_name = "FILE")]
    pub explain: Option<PathBuf>,

    /// Refuse requests once this run has cost so many dollars at list prices; those to a model
    /// without a known price, too
    #[arg(long, value_name = "DOLLARS", value_parser = parse_dollars)]
    pub budget: Option<MicroDollars>,

    /// Pass WebSockets of model APIs on, unread and uncounted [default: refuse them, so that the
    /// agent sends its requests over HTTP]
    #[arg(long, conflicts_with = "budget")]
    pub websockets: bool,
}

/// Parses an amount like `2.50` or `$2.50`. It must be more than zero.
fn parse_dollars(text: &str) -> std::result::Result<MicroDollars, String> {
    let wrong = || "an amount in dollars, like 2.50".to_owned();
    let amount = text.strip_prefix('$').unwrap_or(text);
    let (whole, part) = amount.split_once('.').unwrap_or((amount, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > 6 || !is_number(whole) || !is_number(part) {
        return Err(wrong());
    }
    let dollars: u64 = whole.parse().map_err(|_| wrong())?;
    let millionths: u64 = format!("{part:0<6}").parse().map_err(|_| wrong())?;
    let amount = dollars.checked_mul(1_000_000).and_then(|it| it.checked_add(millionths));
    amount.filter(|amount| *amount > 0).map(MicroDollars).ok_or_else(wrong)
}

fn parse_holdout(text: &str) -> std::result::Result<Holdout, String> {
    let percent = text.parse().ok().and_then(Holdout::from_percent);
    percent.ok_or_else(|| "a number from 0 to 100".to_owned())
}

impl Shortening {
    /// The settings of a proxy. `agent` is the agent whose requests it passes on, if that is known.
    pub fn options(&self, app: &App, agent: Option<&str>) -> Result<Options> {
        let settings = app.settings()?;
        let recipe = recipes::resolve_live(&app.config, settings, self.recipe.as_deref())?;
        let options = Options::new(recipe, app.counter(), app.config.wire_memo());
        let telemetry = TelemetrySettings::from_variables(&app.config.telemetry);
        let telemetry = telemetry.unwrap_or_else(|wrong| {
            app.note(&format!("no spans are sent: {wrong}"));
            None
        });
        Ok(Options {
            dry_run: self.dry_run,
            prices: catalogue(&app.config)?,
            agent: agent.map(str::to_owned),
            run: app.config.begin_run("proxy").id,
            holdout: self.holdout,
            budget: self.budget,
            websockets: self.websockets,
            telemetry,
            explainer: self.explain.as_deref().map(|path| explainer(app, path)).transpose()?,
            ..options
        })
    }
}

#[derive(Serialize)]
struct Address<'a> {
    address: &'a str,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    if args.stats.stats {
        return show_stats(app, &args.stats);
    }
    let options = args.shortening.options(app, None)?;
    let upstream = args.upstream.clone();
    let token = args.token.clone();
    let server = bind(args.listen, Options { upstream, token, ..options })?;
    let address = server.address();
    if app.global.json {
        app.print_json(&Address { address: &address })?;
    } else {
        app.print(&format!("{BOLD}{address}{BOLD:#}\n"))?;
    }
    app.note(&format!("{DIM}the base URL for agents; stop with Ctrl-C{DIM:#}"));
    let proxy = server.proxy();
    server.run_until(stopped()).map_err(failed)?;
    app.note(&format!("{DIM}{}{DIM:#}", summary(&proxy.totals(), args.shortening.dry_run)));
    Ok(())
}

fn show_stats(app: &App, args: &Stats) -> Result<()> {
    let since = args.since.map(|age| {
        let age = SignedDuration::try_from(age).unwrap_or(SignedDuration::MAX);
        app.config.now().saturating_sub(age).unwrap_or(Timestamp::MIN)
    });
    let read = Ledger::new(&app.config.wire_memo()).read(since)?;
    let report = report(&read, args.by);
    if app.global.json {
        return app.print_json(&report);
    }
    if report.rows.is_empty() {
        app.print("no requests\n")?;
        app.note(&format!("{DIM}`epitome wrap claude` sends some through the proxy{DIM:#}"));
        return Ok(());
    }
    app.page(&stats::render(&report, catalogue(&app.config)?.date()))
}

/// What the requests cost and what the proxy saved, on one line: `14 requests, 412.2k input tokens
/// (380.1k from a cache); about 61.0k tokens fewer; $0.42 instead of about $0.58 at list prices; 3
/// results shortened, 1 cut`.
pub fn summary(totals: &Totals, is_dry_run: bool) -> String {
    let would = if is_dry_run { "would be " } else { "" };
    let mut parts = vec![requests(totals)];
    if totals.saved > Tokens(0) {
        parts.push(format!("about {} tokens {would}fewer", totals.saved));
    }
    if totals.metered > totals.without_price {
        let cost = totals.cost.to_string();
        let unchanged = totals.unchanged_cost.to_string();
        parts.push(match cost == unchanged || is_dry_run {
            true => format!("{cost} at list prices"),
            false => format!("{cost} instead of about {unchanged} at list prices"),
        });
    }
    if totals.shortened + totals.cuts > 0 {
        let shortened = count(totals.shortened, "result");
        let cuts = count(totals.cuts, "cut");
        parts.push(format!("{shortened} {would}shortened, {cuts}"));
    }
    if totals.own_compactions > 0 {
        let compactions = count(totals.own_compactions, "compaction");
        parts.push(format!("{compactions} by the agent itself"));
    }
    if totals.without_price > 0 {
        let requests = count(totals.without_price, "request");
        parts.push(format!("{requests} of unknown price"));
    }
    if totals.websockets > 0 {
        parts.push(format!("{} passed unread", count(totals.websockets, "WebSocket")));
    }
    if totals.refused > 0 {
        let refused = count(totals.refused, "request");
        parts.push(format!("{refused} refused because of the budget"));
    }
    if totals.dropped_spans > 0 {
        let spans = count(totals.dropped_spans, "span");
        parts.push(format!("{spans} not taken by the collector"));
    }
    if totals.unwritten > 0 {
        parts.push(format!("{} not in the ledger", count(totals.unwritten, "request")));
    }
    if let Some(failure) = &totals.last_failure {
        let failures = count(totals.failures, "request");
        parts.push(format!("{failures} passed unchanged after an error: {failure}"));
    }
    parts.join("; ")
}

/// Describes the number of requests, and the input tokens that the service counted.
fn requests(totals: &Totals) -> String {
    let requests = count(totals.requests, "request");
    if totals.metered == 0 {
        return format!("{requests}, without a count of tokens from the service");
    }
    let metered = match totals.metered < totals.requests {
        true => format!(" ({} counted)", totals.metered),
        false => String::new(),
    };
    let input = totals.usage.all_input();
    let cached = totals.usage.cached;
    format!("{requests}{metered}, {input} input tokens ({cached} from a cache)")
}

/// Makes a proxy that listens on an address.
pub fn bind(listen: SocketAddr, options: Options) -> Result<Server> {
    Server::bind(listen, options).map_err(|err| match err {
        BindError::NoToken(_) => Failure::usage(err.to_string()).hint("give one with --token"),
        BindError::System(_) => {
            Failure::new(Status::Refused, "port", format!("cannot listen on {listen}"))
                .because(&err)
                .hint("port 0 uses any free port")
        }
    })
}

/// The failure of a proxy whose server ended with an error.
pub fn failed(err: std::io::Error) -> Failure {
    Failure::new(Status::Disk, "disk", "the proxy failed").because(&err)
}

/// Waits for Ctrl-C, or for the signal with which a service manager ends a program.
async fn stopped() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};

        let signals = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
        if let (Ok(mut interrupt), Ok(mut terminate)) = signals {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    // Without a signal handler the proxy runs until it is killed.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use epitome_model::TokenUsage;

    use super::*;

    #[test]
    fn amounts_of_money_are_read() {
        for (text, expect) in [
            ("2", Some(2_000_000)),
            ("$2.5", Some(2_500_000)),
            ("0.000001", Some(1)),
            ("0", None),
            ("", None),
            ("$", None),
            ("2,50", None),
            ("-1", None),
            ("0.0000001", None),
            ("99999999999999999999", None),
            ("18446744073709.9", None),
        ] {
            assert_eq!(parse_dollars(text).ok(), expect.map(MicroDollars), "{text}");
        }
    }

    #[test]
    fn a_summary_says_what_was_counted_and_by_whom() {
        let usage = TokenUsage { cached: Tokens(380_100), ..TokenUsage::default() };
        let usage = TokenUsage { cache_written: Tokens(32_100), ..usage };
        let cost = MicroDollars(420_000);
        let unchanged_cost = MicroDollars(580_000);
        let requests = 14;
        let metered = 13;
        let totals = Totals { requests, metered, usage, cost, unchanged_cost, ..Totals::default() };
        let totals = Totals { saved: Tokens(61_000), shortened: 3, cuts: 1, ..totals };
        assert_eq!(
            summary(&totals, false),
            "14 requests (13 counted), 412.2k input tokens (380.1k from a cache); about 61.0k \
             tokens fewer; $0.42 instead of about $0.58 at list prices; 3 results shortened, 1 cut"
        );
        assert_eq!(
            summary(&totals, true),
            "14 requests (13 counted), 412.2k input tokens (380.1k from a cache); about 61.0k \
             tokens would be fewer; $0.42 at list prices; 3 results would be shortened, 1 cut"
        );
        let compacted = Totals { requests: 1, own_compactions: 1, ..Totals::default() };
        assert_eq!(
            summary(&compacted, false),
            "1 request, without a count of tokens from the service; 1 compaction by the agent \
             itself"
        );
        let none = Totals { requests: 1, ..Totals::default() };
        assert_eq!(summary(&none, false), "1 request, without a count of tokens from the service");
        let unread = Totals { websockets: 2, ..none };
        assert_eq!(
            summary(&unread, false),
            "1 request, without a count of tokens from the service; 2 WebSockets passed unread"
        );
    }
}
