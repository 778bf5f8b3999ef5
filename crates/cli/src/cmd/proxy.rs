//! `epitome proxy`: makes requests to models smaller on their way.

use std::net::SocketAddr;

use clap::Args as ClapArgs;
use epitome::recipes;
use epitome_model::Tokens;
use epitome_proxy::{BindError, Options, Server, Totals, Upstream};
use serde::Serialize;

use crate::app::App;
use crate::failure::{Failure, Result, Status};
use crate::text::{BOLD, DIM, count};

const EXAMPLES: &str = "\
Examples:
  epitome proxy                                  then: ANTHROPIC_BASE_URL=ADDRESS claude
  epitome proxy --listen 127.0.0.1:8089 --dry-run
  epitome proxy --upstream https://gateway.example/anthropic
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
}

impl Shortening {
    /// The settings of a proxy.
    pub fn options(&self, app: &App) -> Result<Options> {
        let settings = app.settings()?;
        let recipe = recipes::resolve_live(&app.config, settings, self.recipe.as_deref())?;
        let options = Options::new(recipe, app.counter(), app.config.wire_memo());
        Ok(Options { dry_run: self.dry_run, ..options })
    }
}

#[derive(Serialize)]
struct Address<'a> {
    address: &'a str,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    let options = args.shortening.options(app)?;
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

/// What requests cost and what that saved, on one line: `14 requests, 412.2k input tokens (380.1k
/// from a cache); about 61.0k tokens fewer; $0.42 instead of about $0.58 at list prices; 3 results
/// shortened, 1 cut`.
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
    if let Some(failure) = &totals.last_failure {
        let failures = count(totals.failures, "request");
        parts.push(format!("{failures} passed unchanged after an error: {failure}"));
    }
    parts.join("; ")
}

/// How many requests there were, and what the service counted.
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

/// Binds an address.
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

/// The failure of a server.
pub fn failed(err: std::io::Error) -> Failure {
    Failure::new(Status::Disk, "disk", "the proxy failed").because(&err)
}

/// Waits for Ctrl-C, or for the signal of a service manager.
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
    // Without a signal handler it runs until it is killed.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use epitome_model::{MicroDollars, TokenUsage};

    use super::*;

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
        let none = Totals { requests: 1, ..Totals::default() };
        assert_eq!(summary(&none, false), "1 request, without a count of tokens from the service");
    }
}
