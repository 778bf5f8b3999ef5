//! Permissions of tools: allow, refuse, or ask. Rules are data; nothing is read from disk here.

use std::fmt;
use std::path::{Path, PathBuf};

use epitome::storage::regular::is_of_system;

/// What a call would access. Paths are absolute, without symbolic links and `..`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing but the agent's own state.
    Own,
    /// Reads a file, or the files in a folder.
    Read(PathBuf),
    /// Creates or changes a file.
    Write(PathBuf),
    /// Creates, changes or deletes files, in one transaction.
    Patch(Vec<PathBuf>),
    /// Runs a command line.
    Shell(String),
    /// Calls a tool of an MCP server.
    Mcp {
        /// The server.
        server: String,
        /// The name of the tool, without the prefix `mcp__SERVER__`.
        tool: String,
    },
}

impl Access {
    /// Splits a patch into one write for each file. Any other access is returned as it is.
    fn parts(&self) -> Vec<Access> {
        match self {
            Access::Patch(paths) => paths.iter().cloned().map(Access::Write).collect(),
            Access::Own
            | Access::Read(_)
            | Access::Write(_)
            | Access::Shell(_)
            | Access::Mcp { .. } => vec![self.clone()],
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Access::Own => f.write_str("nothing outside the session"),
            Access::Read(path) => write!(f, "read {}", path.display()),
            Access::Write(path) => write!(f, "write {}", path.display()),
            Access::Patch(paths) => {
                let names: Vec<String> =
                    paths.iter().map(|path| path.display().to_string()).collect();
                write!(f, "write {}", names.join(", "))
            }
            Access::Shell(command) => write!(f, "run {command}"),
            Access::Mcp { server, tool } => write!(f, "call {tool} of the MCP server {server}"),
        }
    }
}

/// The decision about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The call runs.
    Allow,
    /// The user must be asked.
    Ask,
    /// The call does not run. The text is the result that the model gets.
    Deny(String),
}

/// The user's answer about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// This call may run.
    Once,
    /// This call and similar ones may run, until the program ends.
    Always,
    /// This call may not run.
    No,
    /// Neither this call nor similar ones may run, until the program ends.
    Never,
    /// There is no user to ask.
    Unattended,
}

/// A rule: its scope, and whether it allows or refuses the calls in this scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    scope: Scope,
    allow: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Scope {
    /// Writing any file of the project, except in a `.git` folder.
    Write,
    /// Reading one path outside the project, and everything below it.
    ReadOutside(PathBuf),
    /// Writing one file.
    WriteFile(PathBuf),
    /// Writing anywhere.
    WriteAnywhere,
    /// One exact command line.
    Command(String),
    /// A single plain command that begins with these words.
    CommandPrefix(Vec<String>),
    /// Command lines that contain these words in sequence. Options may be between the words, and
    /// quotes and backslashes do not hide the words.
    CommandWords(Vec<String>),
    /// One tool of an MCP server, or all of them.
    Mcp(String, Option<String>),
}

/// The error if a text is not a rule. It holds the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRule(pub String);

impl fmt::Display for BadRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is no rule: use `write`, `shell: WORDS`, `mcp__SERVER`, or `mcp__SERVER__TOOL`",
            self.0
        )
    }
}

impl std::error::Error for BadRule {}

impl Rule {
    /// Parses a rule that allows calls. `write` allows writing inside the project, except in a
    /// `.git` folder. `shell: cargo test` allows plain commands that begin with these words.
    /// `mcp__github` allows all tools of an MCP server, and `mcp__github__search` one of them.
    ///
    /// # Errors
    ///
    /// [`BadRule`] if the text has none of these forms.
    pub fn allow(text: &str) -> Result<Rule, BadRule> {
        let scope = match Subject::parse(text)? {
            Subject::Write => Scope::Write,
            Subject::Shell(words) => Scope::CommandPrefix(words),
            Subject::Mcp(server, tool) => Scope::Mcp(server, tool),
        };
        Ok(Rule { scope, allow: true })
    }

    /// Parses a rule that refuses calls. `write` refuses every write by a built-in tool that writes
    /// files; commands and tools of MCP servers can still write. `shell: git push` refuses every
    /// command line with these words in sequence. Names of MCP servers and tools are as for
    /// [`Rule::allow`].
    ///
    /// # Errors
    ///
    /// [`BadRule`] if the text has none of these forms.
    pub fn deny(text: &str) -> Result<Rule, BadRule> {
        let scope = match Subject::parse(text)? {
            Subject::Write => Scope::WriteAnywhere,
            Subject::Shell(words) => Scope::CommandWords(words),
            Subject::Mcp(server, tool) => Scope::Mcp(server, tool),
        };
        Ok(Rule { scope, allow: false })
    }
}

/// The parsed subject of a rule.
enum Subject {
    Write,
    Shell(Vec<String>),
    Mcp(String, Option<String>),
}

impl Subject {
    fn parse(text: &str) -> Result<Subject, BadRule> {
        if text.trim() == "write" {
            return Ok(Subject::Write);
        }
        if let Some(name) = text.trim().strip_prefix("mcp__") {
            let (server, tool) = match name.split_once("__") {
                Some((server, tool)) => (server, Some(tool)),
                None => (name, None),
            };
            if !is_mcp_name(server) || !tool.is_none_or(is_mcp_name) {
                return Err(BadRule(text.to_owned()));
            }
            return Ok(Subject::Mcp(server.to_owned(), tool.map(str::to_owned)));
        }
        let words = text.trim().strip_prefix("shell:").ok_or_else(|| BadRule(text.to_owned()))?;
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        if words.is_empty() || !is_plain(&words.join(" ")) {
            return Err(BadRule(text.to_owned()));
        }
        Ok(Subject::Shell(words))
    }
}

fn is_mcp_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == '*')
}

/// The permissions of tools.
#[derive(Clone, Debug)]
pub struct Permissions {
    root: PathBuf,
    rules: Vec<Rule>,
    /// Whether calls are allowed that the user would otherwise be asked about.
    yes: bool,
}

impl Permissions {
    /// The permissions in a project: files inside it may be read, unless they belong to the
    /// operating system (`/proc`, `/sys`, `/dev`). The user is asked about reading other files,
    /// about writing any file, about commands, and about tools of MCP servers. `root` must be
    /// absolute and without symbolic links.
    pub fn new(root: PathBuf) -> Permissions {
        Permissions { root, rules: Vec::new(), yes: false }
    }

    /// Adds the user's rules.
    #[must_use]
    pub fn with_rules(mut self, rules: impl IntoIterator<Item = Rule>) -> Permissions {
        self.rules.extend(rules);
        self
    }

    /// Sets whether calls are allowed that the user would otherwise be asked about.
    #[must_use]
    pub fn with_yes(mut self, yes: bool) -> Permissions {
        self.yes = yes;
        self
    }

    /// The folder of the project.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Decides whether a call may run. Rules do not apply to what is always allowed: reading in the
    /// project, and the agent's own state. A patch is refused if the write of one of its files is
    /// refused, and allowed if all are allowed; otherwise the user must be asked.
    pub fn judge(&self, access: &Access) -> Verdict {
        let mut asks = false;
        for part in access.parts() {
            match self.judge_part(&part) {
                Verdict::Allow => {}
                Verdict::Ask => asks = true,
                Verdict::Deny(why) => return Verdict::Deny(why),
            }
        }
        if asks { Verdict::Ask } else { Verdict::Allow }
    }

    fn judge_part(&self, access: &Access) -> Verdict {
        let free = match access {
            Access::Own => true,
            Access::Read(path) => path.starts_with(&self.root) && !is_of_system(path),
            Access::Write(_) | Access::Patch(_) | Access::Shell(_) | Access::Mcp { .. } => false,
        };
        if free {
            return Verdict::Allow;
        }
        // The last rule that covers the access decides, because it is the newest decision of the
        // user.
        let rule = self.rules.iter().rev().find(|rule| rule.scope.covers(access, &self.root));
        match rule {
            Some(Rule { allow: true, .. }) => Verdict::Allow,
            Some(Rule { allow: false, .. }) => Verdict::Deny(denied(access)),
            None if self.yes => Verdict::Allow,
            None => Verdict::Ask,
        }
    }

    /// Applies the user's answer about a call, and returns the resulting decision.
    pub fn answer(&mut self, access: &Access, answer: Answer) -> Verdict {
        match answer {
            Answer::Once => Verdict::Allow,
            Answer::Always => {
                self.remember(access, true);
                Verdict::Allow
            }
            Answer::No => Verdict::Deny(denied(access)),
            Answer::Never => {
                self.remember(access, false);
                Verdict::Deny(denied(access))
            }
            Answer::Unattended => Verdict::Deny(format!(
                "Not permitted: to {access} needs a yes of the user, who is not here."
            )),
        }
    }

    /// Adds a rule that allows or refuses this access and similar ones. For a patch, adds one rule
    /// for each file.
    fn remember(&mut self, access: &Access, allow: bool) {
        let scopes: Vec<Scope> =
            access.parts().iter().filter_map(|part| self.scope(part)).collect();
        self.rules.extend(scopes.into_iter().map(|scope| Rule { scope, allow }));
    }

    /// A description of what the answers "always" and "never" would apply to.
    pub fn scope_of(&self, access: &Access) -> String {
        let scopes: Vec<Option<Scope>> =
            access.parts().iter().map(|part| self.scope(part)).collect();
        let words = match &scopes[..] {
            all if all.iter().all(|scope| *scope == Some(Scope::Write)) => {
                "writing in this project"
            }
            [None] => "this",
            [Some(Scope::ReadOutside(_))] => "reading this path",
            [Some(Scope::Command(_))] => "this command",
            [Some(Scope::Mcp(..))] => "this tool",
            [_] => "writing this file",
            _ => "writing these files",
        };
        words.to_owned()
    }

    /// The scope of the rule that "always" or "never" adds; `None` if they add no rule.
    fn scope(&self, access: &Access) -> Option<Scope> {
        match access {
            Access::Own | Access::Patch(_) => None,
            Access::Read(path) => Some(Scope::ReadOutside(path.clone())),
            Access::Write(path) if is_plain_file(path, &self.root) => Some(Scope::Write),
            Access::Write(path) => Some(Scope::WriteFile(path.clone())),
            Access::Shell(command) => Some(Scope::Command(command.clone())),
            Access::Mcp { server, tool } => Some(Scope::Mcp(server.clone(), Some(tool.clone()))),
        }
    }
}

impl Scope {
    fn covers(&self, access: &Access, root: &Path) -> bool {
        match (self, access) {
            (Scope::Write, Access::Write(path)) => is_plain_file(path, root),
            (Scope::WriteFile(one), Access::Write(path)) => one == path,
            (Scope::WriteAnywhere, Access::Write(_)) => true,
            (Scope::ReadOutside(one), Access::Read(path)) => path.starts_with(one),
            (Scope::Command(one), Access::Shell(command)) => one == command,
            (Scope::Mcp(one, only), Access::Mcp { server, tool }) => {
                one == server && only.as_ref().is_none_or(|only| only == tool)
            }
            (Scope::CommandPrefix(words), Access::Shell(command)) => {
                let command_words: Vec<&str> =
                    command.split([' ', '\t']).filter(|it| !it.is_empty()).collect();
                is_plain(command)
                    && command_words.len() >= words.len()
                    && words
                        .iter()
                        .zip(command_words)
                        .all(|(word, command_words)| word == command_words)
            }
            (Scope::CommandWords(words), Access::Shell(command)) => {
                let unquoted = command.replace("\\\n", "").replace(['"', '\'', '\\'], "");
                follow_each_other(words, command) || follow_each_other(words, &unquoted)
            }
            (
                Scope::Write
                | Scope::WriteFile(_)
                | Scope::WriteAnywhere
                | Scope::ReadOutside(_)
                | Scope::Command(_)
                | Scope::CommandPrefix(_)
                | Scope::CommandWords(_)
                | Scope::Mcp(..),
                Access::Own
                | Access::Read(_)
                | Access::Write(_)
                | Access::Patch(_)
                | Access::Shell(_)
                | Access::Mcp { .. },
            ) => false,
        }
    }
}

/// Whether a path is in the project, and not in a `.git` folder. Files in such a folder can be
/// executed without a command: git runs hooks, and programs that its settings name.
fn is_plain_file(path: &Path, root: &Path) -> bool {
    path.strip_prefix(root).is_ok_and(|inside| {
        inside.components().all(|part| !part.as_os_str().eq_ignore_ascii_case(".git"))
    })
}

/// Characters with a special meaning for a shell.
const SPECIAL: &str = "|&;<>()$`\\\"'*?[]#~{}!=";

/// Whether a command line is a single command of plain words, without further commands, expansions
/// or redirections.
fn is_plain(command: &str) -> bool {
    !command.is_empty()
        && !command.contains(|c: char| match c {
            ' ' | '\t' => false,
            // For a shell, other blanks are part of a word.
            c => c.is_control() || SPECIAL.contains(c) || c.is_whitespace(),
        })
}

/// Whether a command line contains these words in sequence, each by itself or as the last component
/// of a path. Options and up to two values of each may be between them.
fn follow_each_other(words: &[String], command: &str) -> bool {
    let command_words: Vec<&str> = command.split(ends_word).filter(|it| !it.is_empty()).collect();
    (0..command_words.len()).any(|at| begins_with(words, &command_words[at..]))
}

fn begins_with(words: &[String], said: &[&str]) -> bool {
    let (Some(word), [first, rest @ ..]) = (words.first(), said) else { return words.is_empty() };
    let is_it = first == word || first.rsplit('/').next() == Some(word);
    if !is_it {
        return false;
    }
    let others = &words[1..];
    let mut rest = rest;
    loop {
        if begins_with(others, rest) {
            return true;
        }
        // Skips an option, and possibly one or two values of it.
        match rest {
            [option, more @ ..] if option.starts_with('-') => {
                if let [_, behind @ ..] = more
                    && begins_with(others, behind)
                {
                    return true;
                }
                // The `=` in `-c a=b` separates words, so that this option has two values.
                if let [_, _, behind @ ..] = more
                    && begins_with(others, behind)
                {
                    return true;
                }
                rest = more;
            }
            _ => return false,
        }
    }
}

/// Whether a character ends a word of a command.
fn ends_word(c: char) -> bool {
    c.is_whitespace() || c.is_control() || SPECIAL.contains(c)
}

fn denied(access: &Access) -> String {
    format!("Not permitted: the user does not allow to {access}.")
}

#[cfg(test)]
#[path = "permissions_tests.rs"]
mod tests;
