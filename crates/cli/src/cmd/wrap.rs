//! `epitome wrap`: runs an agent behind the proxy.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitStatus;

use clap::Args as ClapArgs;
use clap::builder::PossibleValuesParser;
use epitome::agents::{AGENTS, Launch, LaunchFile, ModelAddress, find_agent};
use epitome_proxy::{Options, Server, Totals, Upstream};
use tempfile::NamedTempFile;
use tokio::process::{Child, Command};

use super::proxy::{Shortening, bind, failed, summary};
use crate::app::App;
use crate::failure::{Failure, Result, Status};
use crate::text::DIM;

const EXAMPLES: &str = "\
Examples:
  epitome wrap claude
  epitome wrap claude -- --continue
  epitome wrap codex --dry-run -- exec 'run the tests'";

/// The variables that name the proxies through which programs send their requests.
const PROXIES: [&str; 6] =
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
/// The variables that list hosts for which no proxy is used.
const NO_PROXY: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// Run an agent whose requests to its model are made smaller on their way
///
/// Starts the proxy on a free port, and the agent with the proxy's address as its base URL. Ends
/// with the agent, with its exit status, and leaves nothing behind in its settings. A base URL that
/// is already set is where the requests go.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(value_name = "AGENT", value_parser = agents())]
    pub agent_name: String,

    /// The arguments of the agent
    #[arg(value_name = "ARGS", last = true)]
    pub arguments: Vec<OsString>,

    /// The base URL of the model service [default: the agent's own]
    #[arg(long, value_name = "URL", value_parser = Upstream::parse)]
    pub upstream: Option<Upstream>,

    /// The agent's program, if it is not in the search path
    #[arg(long, value_name = "PATH")]
    pub program: Option<PathBuf>,

    /// Do not give the agent the tools of `epitome mcp`, with which its model reads what was
    /// shortened (Claude Code and Codex)
    #[arg(long)]
    pub no_mcp: bool,

    /// Keep the agent from compacting by itself during the run (Claude Code, Codex, OpenCode, pi);
    /// its own command for that still works
    #[arg(long)]
    pub hold_compaction: bool,

    #[command(flatten)]
    pub shortening: Shortening,
}

/// The agents that can be given a base URL.
fn agents() -> PossibleValuesParser {
    let known = AGENTS.iter().filter(|agent| agent.model_address().is_some());
    known.map(|agent| agent.name()).collect::<Vec<_>>().into()
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    let address = find_agent(&args.agent_name).and_then(|agent| agent.model_address());
    let address = address.ok_or_else(|| Failure::usage("this agent takes no base URL"))?;
    if args.hold_compaction && address.hold_compaction.is_none() {
        let name = &args.agent_name;
        let message = format!("{name} can be kept from compacting by its own settings only");
        return Err(Failure::usage(message).hint("run it without --hold-compaction"));
    }
    let (upstream, path) = upstream(app, args, &address)?;
    let options = args.shortening.options(app, Some(&args.agent_name))?;
    let options = Options { upstream, ..options };
    let server = bind(([127, 0, 0, 1], 0).into(), options)?;
    let mut launch = (address.launch)(&format!("{}{path}", server.address()));
    if let (true, Some(hold)) = (args.hold_compaction, address.hold_compaction) {
        hold(&mut launch);
    }
    let file = launch.file.as_ref().map(written).transpose()?;
    let mut command = command(args, &address, &launch, file.as_ref());
    give_recall(app, args, &address, &mut command);
    command.args(&args.arguments);
    let proxy = server.proxy();
    let status = serve_while(server, &mut command)?;
    // The file is removed here, because `exit` below drops nothing.
    drop(file);
    say(app, &proxy.totals(), args.shortening.dry_run);
    let can_hold = address.hold_compaction.is_some() && !args.hold_compaction;
    if proxy.totals().own_compactions > 0 && can_hold {
        app.note(&format!("{DIM}hint: --hold-compaction keeps the agent from compacting{DIM:#}"));
    }
    if status.success() { Ok(()) } else { std::process::exit(code(status)) }
}

/// The model service to which requests are passed on, and the path of the base URL that the agent
/// is given. `None` for the agent's usual service.
fn upstream(app: &App, args: &Args, address: &ModelAddress) -> Result<(Option<Upstream>, String)> {
    let set = address.variable.and_then(|name| app.config.agents.variables.get(name));
    let upstream = match (&args.upstream, set) {
        (Some(upstream), _) => upstream.clone(),
        (None, Some(url)) => Upstream::parse(&url.to_string_lossy()).map_err(|err| {
            let name = address.variable.unwrap_or_default();
            Failure::usage(format!("{name} is not a base URL: {err}"))
        })?,
        (None, None) => return Ok((None, address.path.to_owned())),
    };
    let (host, path) = upstream.split_path();
    Ok((Some(host), path.to_owned()))
}

/// Writes the temporary file that the agent reads in this run.
fn written(file: &LaunchFile) -> Result<NamedTempFile> {
    let made = tempfile::Builder::new().prefix("epitome-").suffix(file.suffix).tempfile();
    let written = made.and_then(|mut made| {
        made.write_all(file.text.as_bytes())?;
        Ok(made)
    });
    written.map_err(|err| {
        Failure::new(Status::Disk, "disk", "cannot write the agent's file").because(&err)
    })
}

fn command(
    args: &Args,
    address: &ModelAddress,
    launch: &Launch,
    file: Option<&NamedTempFile>,
) -> Command {
    let program = args.program.clone().unwrap_or_else(|| address.program.into());
    let mut command = Command::new(program);
    command.envs(launch.variables.iter().map(|(name, value)| (name, value)));
    for (name, value) in &launch.defaults {
        if std::env::var_os(name).is_none() {
            command.env(name, value);
        }
    }
    if PROXIES.iter().any(|name| std::env::var_os(name).is_some()) {
        for name in NO_PROXY {
            command.env(name, with_this_machine(std::env::var_os(name)));
        }
    }
    command.args(&launch.arguments);
    if let (Some(file), Some(LaunchFile { option, .. })) = (file, &launch.file) {
        command.arg(option).arg(file.path());
    }
    command
}

/// Makes it possible for the agent's model to read what was shortened: adds the folder of this
/// program to the search path and, where possible and wanted, the tools of `epitome mcp` to the
/// agent. A dry run shortens nothing, so nothing is added.
fn give_recall(app: &App, args: &Args, address: &ModelAddress, command: &mut Command) {
    let Ok(program) = std::env::current_exe() else { return };
    if args.shortening.dry_run {
        return;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.extend(program.parent().map(Into::into));
    if let Ok(path) = std::env::join_paths(folders) {
        command.env("PATH", path);
    }
    let (Some(program), Some(home)) = (program.to_str(), app.config.home.to_str()) else { return };
    if let Some(mcp) = address.mcp.filter(|_| !args.no_mcp) {
        command.args(mcp(&[program, "mcp", "--home", home]));
    }
}

/// The list of hosts for which no proxy is used, with the address of this machine added.
fn with_this_machine(list: Option<OsString>) -> OsString {
    let mut list = list.unwrap_or_default();
    if !list.is_empty() {
        list.push(",");
    }
    list.push("127.0.0.1");
    list
}

/// Runs the agent, and serves its requests until it ends.
fn serve_while(server: Server, command: &mut Command) -> Result<ExitStatus> {
    let (report, reported) = std::sync::mpsc::channel();
    let program = command.as_std().get_program().to_owned();
    let run = async move {
        let ended = match command.spawn() {
            Ok(mut child) => wait(&mut child).await,
            Err(err) => Err(err),
        };
        report.send(ended).ok();
    };
    server.run_until(run).map_err(failed)?;
    let ended = reported.recv().map_err(|_| failed(std::io::ErrorKind::Interrupted.into()))?;
    ended.map_err(|err| {
        let what = format!("cannot run {}", program.display());
        Failure::new(Status::Unreadable, "not-found", what)
            .because(&err)
            .hint("--program PATH names the agent's program")
    })
}

/// Waits for the agent. Ignores Ctrl-C, because the terminal sends it to the agent too. Passes
/// SIGTERM and SIGHUP on to the agent.
#[cfg(unix)]
async fn wait(child: &mut Child) -> std::io::Result<ExitStatus> {
    use rustix::process::{Pid, Signal, kill_process};
    use tokio::signal::unix::{SignalKind, signal};

    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    loop {
        let received = tokio::select! {
            status = child.wait() => return status,
            _ = interrupt.recv() => continue,
            _ = terminate.recv() => Signal::TERM,
            _ = hang_up.recv() => Signal::HUP,
        };
        let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        if let Some(pid) = pid {
            // The agent may have ended at this very moment.
            kill_process(pid, received).ok();
        }
    }
}

#[cfg(not(unix))]
async fn wait(child: &mut Child) -> std::io::Result<ExitStatus> {
    loop {
        tokio::select! {
            status = child.wait() => return status,
            _ = tokio::signal::ctrl_c() => {}
        }
    }
}

/// The exit status of the agent, as a shell reports it.
fn code(status: ExitStatus) -> i32 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return 128 + signal;
    }
    status.code().unwrap_or(1)
}

fn say(app: &App, totals: &Totals, is_dry_run: bool) {
    if totals.requests + totals.failures + totals.websockets > 0 {
        app.note(&format!("{DIM}epitome: {}{DIM:#}", summary(totals, is_dry_run)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_to_the_proxy_go_through_no_other_one() {
        assert_eq!(with_this_machine(None), "127.0.0.1");
        assert_eq!(with_this_machine(Some("a.example".into())), "a.example,127.0.0.1");
    }
}
