//! What a tool may do: allowed, refused, or asked. Rules are data; nothing is looked up here.

use std::fmt;
use std::path::{Path, PathBuf};

/// What a call would touch. Paths are absolute and free of symbolic links and `..`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing but the agent's own state.
    Own,
    /// Reads a file, or what is in a folder.
    Read(PathBuf),
    /// Creates or changes a file.
    Write(PathBuf),
    /// Runs a command line.
    Shell(String),
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Access::Own => f.write_str("nothing outside the session"),
            Access::Read(path) => write!(f, "read {}", path.display()),
            Access::Write(path) => write!(f, "write {}", path.display()),
            Access::Shell(command) => write!(f, "run {command}"),
        }
    }
}

/// What is to be done with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It runs.
    Allow,
    /// The user is asked.
    Ask,
    /// It does not run. The text is the result that the model gets.
    Deny(String),
}

/// What the user says to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// This one may run.
    Once,
    /// This one and those like it may run, until the program ends.
    Always,
    /// This one may not run.
    No,
    /// Neither this one nor those like it, until the program ends.
    Never,
    /// There is no user to ask.
    Unattended,
}

/// A rule: what it is about, and whether that is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    scope: Scope,
    allow: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Scope {
    /// Writing anywhere inside the project.
    Write,
    /// Reading one path outside the project, and what is below it.
    ReadOutside(PathBuf),
    /// Writing one file.
    WriteFile(PathBuf),
    /// One command line, exactly.
    Command(String),
    /// Command lines of one plain command that begin with these words.
    CommandPrefix(Vec<String>),
}

/// Why a rule that a user typed is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRule(pub String);

impl fmt::Display for BadRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no rule: use `write`, or `shell: WORDS`", self.0)
    }
}

impl std::error::Error for BadRule {}

impl Rule {
    /// A rule as a user types it: `write` allows writing inside the project, `shell: cargo test`
    /// allows commands that begin with these words and are one plain command.
    ///
    /// # Errors
    ///
    /// [`BadRule`] if it is neither.
    pub fn parse(text: &str) -> Result<Rule, BadRule> {
        let bad = || BadRule(text.to_owned());
        if text.trim() == "write" {
            return Ok(Rule { scope: Scope::Write, allow: true });
        }
        let words = text.trim().strip_prefix("shell:").ok_or_else(bad)?;
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        if words.is_empty() || !is_plain(&words.join(" ")) {
            return Err(bad());
        }
        Ok(Rule { scope: Scope::CommandPrefix(words), allow: true })
    }
}

/// What tools may do.
#[derive(Clone, Debug)]
pub struct Permissions {
    root: PathBuf,
    rules: Vec<Rule>,
    /// Whether everything that would be asked is allowed.
    yes: bool,
}

impl Permissions {
    /// Those of a project: reading inside is free, writing and commands are asked. `root` is
    /// absolute and free of symbolic links.
    pub fn new(root: PathBuf) -> Permissions {
        Permissions { root, rules: Vec::new(), yes: false }
    }

    /// With rules that the user set.
    #[must_use]
    pub fn with_rules(mut self, rules: impl IntoIterator<Item = Rule>) -> Permissions {
        self.rules.extend(rules);
        self
    }

    /// With a yes to everything that would be asked.
    #[must_use]
    pub fn with_yes(mut self, yes: bool) -> Permissions {
        self.yes = yes;
        self
    }

    /// The folder of the project.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What is to be done with a call.
    pub fn judge(&self, access: &Access) -> Verdict {
        let free = match access {
            Access::Own => true,
            Access::Read(path) => path.starts_with(&self.root),
            Access::Write(_) | Access::Shell(_) => false,
        };
        if free {
            return Verdict::Allow;
        }
        // The newest rule counts: it is what the user said last.
        let rule = self.rules.iter().rev().find(|rule| rule.scope.covers(access, &self.root));
        match rule {
            Some(Rule { allow: true, .. }) => Verdict::Allow,
            Some(Rule { allow: false, .. }) => Verdict::Deny(denied(access)),
            None if self.yes => Verdict::Allow,
            None => Verdict::Ask,
        }
    }

    /// Takes the user's answer to a call that was asked about.
    pub fn answer(&mut self, access: &Access, answer: Answer) -> Verdict {
        let remember = |permissions: &mut Permissions, allow| {
            if let Some(scope) = permissions.scope(access) {
                permissions.rules.push(Rule { scope, allow });
            }
        };
        match answer {
            Answer::Once => Verdict::Allow,
            Answer::Always => {
                remember(self, true);
                Verdict::Allow
            }
            Answer::No => Verdict::Deny(denied(access)),
            Answer::Never => {
                remember(self, false);
                Verdict::Deny(denied(access))
            }
            Answer::Unattended => Verdict::Deny(format!(
                "Not permitted: to {access} needs a yes of the user, who is not here."
            )),
        }
    }

    /// What the answers "always" and "never" are about, for the user.
    pub fn scope_of(&self, access: &Access) -> String {
        match self.scope(access) {
            None => "this".to_owned(),
            Some(Scope::Write) => "writing in this project".to_owned(),
            Some(Scope::WriteFile(_)) => "writing this file".to_owned(),
            Some(Scope::ReadOutside(_)) => "reading this path".to_owned(),
            Some(Scope::Command(_) | Scope::CommandPrefix(_)) => "this command".to_owned(),
        }
    }

    /// What "always" and "never" are about.
    fn scope(&self, access: &Access) -> Option<Scope> {
        match access {
            Access::Own => None,
            Access::Read(path) => Some(Scope::ReadOutside(path.clone())),
            Access::Write(path) if is_plain_file(path, &self.root) => Some(Scope::Write),
            Access::Write(path) => Some(Scope::WriteFile(path.clone())),
            Access::Shell(command) => Some(Scope::Command(command.clone())),
        }
    }
}

impl Scope {
    fn covers(&self, access: &Access, root: &Path) -> bool {
        match (self, access) {
            (Scope::Write, Access::Write(path)) => is_plain_file(path, root),
            (Scope::WriteFile(one), Access::Write(path)) => one == path,
            (Scope::ReadOutside(one), Access::Read(path)) => path.starts_with(one),
            (Scope::Command(one), Access::Shell(command)) => one == command,
            (Scope::CommandPrefix(words), Access::Shell(command)) => {
                let said: Vec<&str> = command.split_whitespace().collect();
                is_plain(command)
                    && said.len() >= words.len()
                    && words.iter().zip(said).all(|(word, said)| word == said)
            }
            (
                Scope::Write
                | Scope::WriteFile(_)
                | Scope::ReadOutside(_)
                | Scope::Command(_)
                | Scope::CommandPrefix(_),
                Access::Own | Access::Read(_) | Access::Write(_) | Access::Shell(_),
            ) => false,
        }
    }
}

/// A file of the project that no other program executes by itself: git runs hooks, and what its
/// settings name.
fn is_plain_file(path: &Path, root: &Path) -> bool {
    path.strip_prefix(root).is_ok_and(|inside| {
        inside.components().all(|part| !part.as_os_str().eq_ignore_ascii_case(".git"))
    })
}

/// Whether a command line is one command with plain words: nothing in it starts another command,
/// expands or redirects.
fn is_plain(command: &str) -> bool {
    let special = |c: char| c.is_control() || "|&;<>()$`\\\"'*?[]#~{}!=".contains(c);
    !command.is_empty() && !command.contains(special)
}

fn denied(access: &Access) -> String {
    format!("Not permitted: the user does not allow to {access}.")
}

#[cfg(test)]
#[path = "permissions_tests.rs"]
mod tests;
