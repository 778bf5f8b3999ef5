//! `epitome key`: API keys of model providers in the platform's keyring.

use std::io::{BufRead, IsTerminal};

use clap::{Args as ClapArgs, Subcommand};
use console::Term;
use epitome::Config;
use epitome::models::{KeyPlace, NoKeyring, key_of, keyring};
use epitome_llm::{Key, Provider};
use serde::Serialize;

use crate::app::App;
use crate::failure::{Failure, Result, Status};
use crate::table::{Side, Table};
use crate::text::{DIM, field};

const EXAMPLES: &str = "\
Examples:
  epitome key set anthropic
  pass show anthropic | epitome key set anthropic
  epitome key list";

/// Manage API keys in the system's keyring
///
/// A key is looked for in the environment first, then in the keyring. No key is ever shown.
/// docs/models.md says what models are used for.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Clone, Debug)]
pub enum Command {
    /// Store a key, typed without echo or read from standard input
    Set {
        /// The provider
        #[arg(value_parser = providers())]
        provider: String,
    },
    /// Show for each provider where its key is
    List,
    /// Delete a key from the keyring
    Remove {
        /// The provider
        #[arg(value_parser = providers())]
        provider: String,
    },
}

/// Where the key of a provider is. See `docs/json.md`.
#[derive(Serialize)]
struct KeyJson {
    provider: &'static str,
    /// `environment`, `keyring`, or `None`.
    place: Option<&'static str>,
    /// The environment variable that contains the key; if none does, the first that is read for
    /// this provider.
    variable: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    no_keyring: Option<String>,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    match &args.command {
        Command::Set { provider } => set(app, named(provider)),
        Command::List => list(app),
        Command::Remove { provider } => remove(app, named(provider)),
    }
}

/// The names of the providers that need a key.
fn providers() -> clap::builder::PossibleValuesParser {
    with_keys().map(Provider::name).collect::<Vec<_>>().into()
}

fn with_keys() -> impl Iterator<Item = Provider> {
    Provider::ALL.into_iter().filter(|it| !Config::key_variables(*it).is_empty())
}

fn named(provider: &str) -> Provider {
    Provider::find(provider).expect("the parser accepts only known providers")
}

fn set(app: &App, provider: Provider) -> Result<()> {
    let text = if std::io::stdin().is_terminal() {
        let terminal = Term::stderr();
        terminal.write_str(&format!("key of {provider}: "))?;
        terminal.read_secure_line().map_err(|err| unreadable(&err))?
    } else {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).map_err(|err| unreadable(&err))?;
        line
    };
    let key = Key::new(text).ok_or_else(|| {
        Failure::usage("not a key: a key is one line of printable ASCII without spaces")
    })?;
    keyring(&app.config).set(provider, &key).map_err(|err| no_keyring(&err))?;
    app.note(&format!("stored in the keyring: the key of {provider}"));
    if let Some(variable) = app.config.key_variable(provider) {
        app.note(&format!("{DIM}{variable} is also set, and is used instead{DIM:#}"));
    }
    Ok(())
}

fn unreadable(err: &std::io::Error) -> Failure {
    Failure::usage("cannot read the key").because(err)
}

fn remove(app: &App, provider: Provider) -> Result<()> {
    let had = keyring(&app.config).remove(provider).map_err(|err| no_keyring(&err))?;
    app.note(&if had {
        format!("deleted: the key of {provider}")
    } else {
        format!("the keyring has no key of {provider}")
    });
    Ok(())
}

fn list(app: &App) -> Result<()> {
    let ring = keyring(&app.config);
    let mut table = Table::new(&[Side::Left, Side::Left], &["provider", "key"]);
    let mut silent = None;
    for provider in with_keys() {
        let (_, place) = key_of(&app.config, provider, ring);
        let (known, variable, why) = match place {
            KeyPlace::Variable(name) => (Some("environment"), Some(name), None),
            KeyPlace::Keyring => (Some("keyring"), None, None),
            KeyPlace::Nowhere(why) => (None, None, why.map(|why| why.to_string())),
            KeyPlace::Unneeded => continue,
        };
        let first = Config::key_variables(provider).first().copied();
        if app.global.json {
            let place = known;
            let variable = variable.or(first);
            let no_keyring = why;
            let provider = provider.name();
            app.print_json(&KeyJson { provider, place, variable, no_keyring })?;
            continue;
        }
        silent = silent.or(why);
        let status = match (known, variable) {
            (_, Some(variable)) => format!("in {variable}"),
            (Some(_), None) => "in the keyring".to_owned(),
            (None, None) => "none".to_owned(),
        };
        table.row(vec![provider.name().to_owned(), status]);
    }
    if app.global.json {
        return Ok(());
    }
    app.print(&table.render())?;
    if let Some(why) = silent {
        app.note(&format!("{DIM}cannot use the keyring:{DIM:#} {}", field(&why)));
    }
    Ok(())
}

fn no_keyring(err: &NoKeyring) -> Failure {
    Failure::new(Status::Disk, "keyring", "cannot use the keyring")
        .because(err)
        .hint("an environment variable works, too: see docs/models.md")
}
