//! `epitome forget`: remove a session, or a text, from all that epitome stores.

use std::ffi::OsString;
use std::io::{IsTerminal, Read};

use clap::Args as ClapArgs;
use console::Term;
use epitome::forget::{
    ForgetAction, ForgetPlace, ForgetReport, ForgetSession, ForgetText, ForgottenCopy, FoundTexts,
    PlaceKind, SessionChoice,
};

use epitome::redact::finder;
use epitome_redact::Kind;

use crate::app::App;
use crate::cmd::archive::remote;
use crate::confirm::ask_to_continue;
use crate::failure::{Failure, Result, Status};
use crate::session::check_name;
use crate::table::{Side, Table};
use crate::text::{self, BOLD, DIM, count, one_line};

const EXAMPLES: &str = "\
Examples:
  epitome forget 0f3c9a52                  show what is stored of a session, and ask
  epitome forget 0f3c9a52 --yes            remove it
  epitome forget --secret                  type a text without echo; show where it is, and ask
  epitome forget --secret --yes < secret   remove a text that is read from a file
  epitome forget --secret --sessions       also replace it in the sessions of agents
  epitome forget 0f3c9a52 --found          remove the secrets that the rules find in a session
  epitome forget 0f3c9a52 --rule aws-access-key   only those of a rule";

/// Remove a session, or a text such as a secret, from all that epitome stores
///
/// Removes it from the vault, the archive of compactions, caches, the search index and logs, then
/// reads everything again to prove that it is gone. Shows the places first. Sessions of agents stay
/// as they are, except with --sessions.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A file, a session id, or its prefix
    #[arg(value_name = "SESSION", required_unless_present = "secret", conflicts_with = "secret")]
    pub session: Option<OsString>,

    /// Forget a text, which is typed without echo or read from standard input
    ///
    /// It is never an argument, because other users can see those. White space around it is
    /// removed.
    #[arg(long)]
    pub secret: bool,

    /// Forget the secrets that the rules find in the versions of the session, not the session
    /// itself
    ///
    /// They are removed from everything, also from other sessions. `epitome redact` says what is
    /// found in the session as it is.
    #[arg(long, requires = "session")]
    pub found: bool,

    /// As --found, for one rule or kind: `aws-access-key`, `pii`; can be repeated
    #[arg(long = "rule", value_name = "NAME", requires = "session")]
    pub rules: Vec<String>,

    /// Also replace the text in the sessions of agents
    #[arg(long)]
    pub sessions: bool,

    /// Show the places, and change nothing
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,

    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    match &args.session {
        None => forget_text(app, args, ForgetText::new(secret()?.trim())?),
        Some(name) if args.is_found() => match found_in(app, args, &name.to_string_lossy())? {
            Some(forget) => forget_text(app, args, forget),
            None => app.print("the rules find nothing in it that can be forgotten\n"),
        },
        Some(_) if args.sessions => {
            let what = "--sessions needs a text: --secret, --found or --rule";
            Err(Failure::usage(what).hint("a session is deleted with its agent"))
        }
        Some(name) => {
            let forget = session(app, &name.to_string_lossy())?;
            let plan = || forget.plan(&app.config).map_err(Failure::writing);
            let run = || forget.run(&app.config).map_err(Failure::writing);
            carry_out(app, args, plan, run)
        }
    }
}

impl Args {
    /// Whether the texts that rules find are forgotten: `--found` or `--rule` is given.
    fn is_found(&self) -> bool {
        self.found || !self.rules.is_empty()
    }

    /// Whether texts are forgotten, and not a session.
    fn is_text(&self) -> bool {
        self.secret || self.is_found()
    }
}

fn forget_text(app: &App, args: &Args, mut forget: ForgetText) -> Result<()> {
    forget.sessions = args.sessions;
    let plan = || forget.plan(&app.config).map_err(Failure::writing);
    let run = || forget.run(&app.config).map_err(Failure::writing);
    carry_out(app, args, plan, run)
}

/// Finds the texts of a session that match the rules, and prints how many each rule found. `None`
/// if no text was found that can be forgotten.
fn found_in(app: &App, args: &Args, name: &str) -> Result<Option<ForgetText>> {
    let secrets = [Kind::Secrets.name().to_owned()];
    let names = if args.rules.is_empty() { &secrets[..] } else { &args.rules };
    let finder = finder(&app.config, app.settings()?, names, &[])?;
    let session = session(app, name)?;
    let found = FoundTexts::search(&app.config, &session, &finder)?;
    for what in &found.missing {
        app.warn(Some(&format!("not all of it was searched: {what}")));
    }
    for left in &found.left_out {
        let what = format!("a text that {} found stays: {}", left.rule, left.reason);
        app.warn(Some(&what));
    }
    if found.forget.is_some() {
        let rules = found.by_rule.iter().map(|(rule, texts)| format!("{texts} by {rule}"));
        let texts = count(found.by_rule.values().sum(), "text");
        app.note(&format!("{texts} found: {}", rules.collect::<Vec<_>>().join(", ")));
    }
    Ok(found.forget)
}

/// Without `--yes`, shows the plan, and ends with `--dry-run` or if there is nothing to forget;
/// otherwise asks. Then carries the plan out.
fn carry_out(
    app: &App,
    args: &Args,
    plan: impl FnOnce() -> Result<ForgetReport>,
    run: impl FnOnce() -> Result<ForgetReport>,
) -> Result<()> {
    let has_copies = app.settings().is_ok_and(|settings| settings.values.archive.url.is_some());
    let mut copies = Vec::new();
    if !args.yes || has_copies {
        let mut plan = plan()?;
        copies = std::mem::take(&mut plan.copies);
        if args.yes {
            return forget(app, args, &copies, run);
        }
        let is_done = plan.places.iter().all(|place| place.action == ForgetAction::Stays);
        if args.dry_run || is_done {
            return print(app, args, &plan);
        }
        print(app, args, &plan)?;
        ask_to_continue(app, false, "This cannot be undone. Forget it?")?;
    }
    forget(app, args, &copies, run)
}

/// Records that `copies`, which are in object storage, must be deleted; calls `run`, which removes
/// the session or the text; prints the report; and deletes the copies. Fails if some places could
/// not be changed.
fn forget(
    app: &App,
    args: &Args,
    copies: &[ForgottenCopy],
    run: impl FnOnce() -> Result<ForgetReport>,
) -> Result<()> {
    remote::remember_copies(app, copies)?;
    let report = run()?;
    print(app, args, &report)?;
    remote::forget_copies(app);
    unchanged_places(&report)
}

/// Returns a failure that names the places that could not be changed, if there are any.
fn unchanged_places(report: &ForgetReport) -> Result<()> {
    let mut what = String::from("these could not be changed, and may have the text:");
    let mut is_any = false;
    for place in &report.places {
        if let Some(reason) = &place.reason {
            what.push_str(&format!("\n{}: {}", text::field(&place.name), text::field(reason)));
            is_any = true;
        }
    }
    if !is_any {
        return Ok(());
    }
    let failure = Failure::new(Status::Refused, "refused", what);
    Err(match report.remaining().any(|place| place.kind == PlaceKind::Session) {
        true => failure
            .hint("all else is done: close the agent, and run the same again")
            .hint("where a session cannot be changed at all, delete it with its agent"),
        false => failure.hint("all else is done"),
    })
}

/// Returns the text to forget, typed without echo or read from standard input.
fn secret() -> Result<String> {
    if std::io::stdin().is_terminal() {
        let terminal = Term::stderr();
        terminal.write_str("text to forget: ")?;
        return terminal.read_secure_line().map_err(|err| unreadable(&err));
    }
    let mut text = String::new();
    std::io::stdin().lock().read_to_string(&mut text).map_err(|err| unreadable(&err))?;
    Ok(text)
}

fn unreadable(err: &std::io::Error) -> Failure {
    Failure::usage("cannot read the text").because(err)
}

fn session(app: &App, name: &str) -> Result<ForgetSession> {
    check_name(name)?;
    match ForgetSession::find(&app.config, name, app.agent())? {
        SessionChoice::One(session) => Ok(session),
        SessionChoice::AnyOf(found) => {
            let name = text::field(name);
            let mut what = format!("`{name}` is the beginning of {} session ids", found.len());
            for (agent, id) in found.iter().take(10) {
                what.push_str(&format!("\n{agent} {}", text::field(id)));
            }
            Err(Failure::new(Status::Usage, "ambiguous", what).hint("give more of the id"))
        }
        SessionChoice::Nothing => {
            let what = format!("nothing is stored of a session called `{}`", text::field(name));
            Err(Failure::new(Status::Unreadable, "not-found", what)
                .hint("`epitome list --deleted` and `epitome archive ls` list what is stored"))
        }
    }
}

fn print(app: &App, args: &Args, report: &ForgetReport) -> Result<()> {
    if app.global.json {
        return app.print_json(report);
    }
    let mut table = Table::new(&[Side::Left, Side::Left, Side::Right, Side::Left], &[]);
    for place in &report.places {
        table.row(vec![
            action(place.action, report.dry_run).to_owned(),
            kind(place.kind).to_owned(),
            amount(place, args.is_text()),
            name(place),
        ]);
    }
    let mut text = table.render();
    text.push_str(&conclusion(args, report));
    app.print(&text)?;
    note_completed(app, report);
    note_final(app, args, report);
    note_shared(app, args);
    note_remaining(app, args, report);
    Ok(())
}

/// Tells the user which compactions cannot be undone any more.
fn note_final(app: &App, args: &Args, report: &ForgetReport) {
    let (what, singular) = match &report.final_compactions[..] {
        [] => return,
        [name] => (format!("the compaction of {}", one_line(name, 80)), true),
        names => (format!("the compactions of {}", count(names.len() as u64, "session")), false),
    };
    let verb = match (report.dry_run, singular) {
        (true, true) => "becomes",
        (true, false) => "become",
        (false, _) => "became",
    };
    let lost = match args.is_text() {
        true => "the removed pieces that have the text cannot be restored",
        false => "what was removed cannot be restored",
    };
    app.note(&format!("{DIM}{what} {verb} final: {lost}{DIM:#}"));
}

/// Tells the user what may be shared with a team, which is not known without the network.
fn note_shared(app: &App, args: &Args) {
    let settings = app.settings().ok();
    let Some(url) = settings.and_then(|settings| settings.values.share.url.as_deref()) else {
        return;
    };
    let place = format!("{}/sessions", text::field(url.trim_end_matches('/')));
    let what = match args.is_text() {
        true => format!(
            "what was shared in {place} is not searched: `epitome share SESSION` again replaces \
             the page and the transcript of a session"
        ),
        false => format!(
            "if it was shared, its page and transcript stay in {place}: delete the folder of its \
             id there"
        ),
    };
    app.note(&format!("{DIM}{what}{DIM:#}"));
}

/// Tells the user which interrupted restores are completed.
fn note_completed(app: &App, report: &ForgetReport) {
    let verb = if report.dry_run { "is completed first" } else { "was completed" };
    for restore in &report.completed {
        let version = restore.version;
        app.note(&format!(
            "{DIM}a restore of it to version {version} was interrupted, and {verb}{DIM:#}"
        ));
    }
}

/// The last line of the output: what was proved, or what to do.
fn conclusion(args: &Args, report: &ForgetReport) -> String {
    let stored = || report.places.iter().filter(|place| place.action != ForgetAction::Stays);
    let is_left = report.remaining().any(|place| place.kind != PlaceKind::Session);
    let Some(proof) = &report.proof else {
        return match stored().next() {
            None if is_left => "epitome cannot mask what stays\n".to_owned(),
            None => "epitome stores nothing of it\n".to_owned(),
            Some(_) if args.dry_run => "to do this: the same with --yes\n".to_owned(),
            Some(_) => String::new(),
        };
    };
    let read = format!("{} with {} were read", count(proof.files, "file"), proof.bytes);
    if is_left {
        return format!("{BOLD}not all forgotten{BOLD:#}: {read} again, and it is in what stays\n");
    }
    if stored().next().is_none() {
        return format!("{BOLD}nothing found{BOLD:#}: epitome stores nothing of it ({read})\n");
    }
    // The search index is deleted whether it has the text or not.
    if args.is_text() && stored().all(|place| place.kind == PlaceKind::Cache) {
        let what = "nothing found except in caches, which may have had it";
        return format!("{BOLD}{what}{BOLD:#}: {read} again, and it is in none\n");
    }
    format!("{BOLD}forgotten{BOLD:#}: {read} again, and it is in none\n")
}

/// Tells the user if files of sessions, which belong to an agent, still contain what was forgotten.
fn note_remaining(app: &App, args: &Args, report: &ForgetReport) {
    let sessions = report.remaining().filter(|place| place.kind == PlaceKind::Session).count();
    if sessions > 0 && args.is_text() {
        let what = count(sessions as u64, "session file");
        let has = if sessions == 1 { "has" } else { "have" };
        let advice = match args.sessions {
            true => "",
            false => "; --sessions replaces it, except in what is signed",
        };
        app.note(&format!(
            "{DIM}{what} still {has} the text, and epitome will store it again from there{advice}\
             {DIM:#}"
        ));
        let was_archived = report.places.iter().any(|place| place.kind == PlaceKind::Archive);
        if !args.sessions && was_archived {
            app.note(&format!(
                "{DIM}pages, search and shares may show it there: what told them that it is a \
                 secret may have been in the archive{DIM:#}"
            ));
        }
    }
    if sessions > 0 && !args.is_text() {
        app.note(&format!(
            "{DIM}the session stays where its agent keeps it, and is not kept again{DIM:#}"
        ));
    }
}

fn action(action: ForgetAction, dry_run: bool) -> &'static str {
    match (action, dry_run) {
        (ForgetAction::Masked, true) => "would mask",
        (ForgetAction::Deleted, true) => "would delete",
        (ForgetAction::Masked, false) => "masked",
        (ForgetAction::Deleted, false) => "deleted",
        (ForgetAction::Stays, _) => "stays",
    }
}

fn kind(kind: PlaceKind) -> &'static str {
    match kind {
        PlaceKind::Vault => "vault",
        PlaceKind::Archive => "archive",
        PlaceKind::Cache => "cache",
        PlaceKind::File => "file",
        PlaceKind::Session => "session",
    }
}

/// Describes how much is forgotten in a place: `3 versions`.
fn amount(place: &ForgetPlace, is_secret: bool) -> String {
    let what = match (place.kind, is_secret) {
        (PlaceKind::Vault, _) => "version",
        // The text is in none of the removed pieces, but in what says where these were.
        (PlaceKind::Archive, true) if place.count == 0 => return "descriptions".to_owned(),
        (PlaceKind::Archive, true) => "piece",
        (PlaceKind::Archive, false) => "generation",
        (PlaceKind::File | PlaceKind::Session, true) => "occurrence",
        (PlaceKind::Cache, _) | (PlaceKind::File | PlaceKind::Session, false) => "file",
    };
    count(place.count, what)
}

fn name(place: &ForgetPlace) -> String {
    match place.kind {
        PlaceKind::Vault | PlaceKind::Archive => one_line(&place.name, 80),
        PlaceKind::Cache | PlaceKind::File | PlaceKind::Session => {
            text::path(std::path::Path::new(&place.name))
        }
    }
}
