//! What a call does, apart from the names that an agent gives it.
//!
//! Several agents have the same tools under other names. A call is said in another agent's words
//! only if nothing in it goes beyond what those words mean; otherwise it stays as it is.

use std::borrow::Cow;

use epitome_model::{Call, FieldRole, ToolKind, encode};

use crate::api::{Arguments, Conversation};
use crate::document::{Document, Value};

/// What a call does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Reads a file, or a part of it: members as they stand, `offset` and `limit`.
    Read { path: String, part: Vec<(String, String)> },
    /// Writes a whole file.
    Write { path: String, content: String },
    /// Replaces texts in a file: old and new.
    Edit { path: String, pairs: Vec<(String, String)>, reach: Reach },
    /// Runs a command; what it is for.
    Shell { command: String, why: Option<String> },
    /// Applies a patch in Codex's grammar.
    Patch { patch: String },
    /// Lists files by a pattern.
    Find { pattern: String, path: Option<String> },
}

/// Which of the places an edit changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The only one.
    One,
    /// All of them.
    All,
}

/// How long was waited, how much was shown: nothing of what was done.
const MANNER: [&str; 6] =
    ["yield_time_ms", "max_output_tokens", "timeout", "timeout_ms", "login", "tty"];

/// The folder that something was done in.
const FOLDER: [&str; 4] = ["workdir", "cwd", "dir_path", "directory"];

impl Deed {
    /// What a call of a session that was run in `cwd` does, if it is one of these and no more.
    pub fn of<'t>(call: &'t Call, all: &Conversation<'t>, cwd: Option<&str>) -> Option<Deed> {
        let text = match all.arguments(call) {
            Arguments::Object(text) => text,
            Arguments::Text(text) => return of_text(call, all, text),
        };
        let document = Document::parse(text.as_bytes()).ok()?;
        let mut rest = Members::of(&document.root);
        let target = call.target.as_ref().map(|text| all.text(text).into_owned());
        let deed = match call.kind {
            ToolKind::Read => {
                let path = rest.take_text(call, &target?)?;
                let part = ["offset", "limit"].into_iter().filter_map(|key| {
                    let value = rest.take(key)?;
                    Some((key.to_owned(), String::from_utf8_lossy(value.raw()).into_owned()))
                });
                let part: Vec<(String, String)> = part.collect();
                let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
                part.iter().all(|(_, value)| is_number(value)).then_some(())?;
                Deed::Read { path, part }
            }
            ToolKind::Write => {
                let content = rest.take_field(call, FieldRole::Content)?;
                Deed::Write { path: rest.take_text(call, &target?)?, content }
            }
            ToolKind::Edit => {
                let pairs = rest.take_pairs(call)?;
                let path = rest.take_text(call, &target?)?;
                let all = rest.take("replace_all").or_else(|| rest.take("replaceAll"));
                let reach = match all.map(Value::raw) {
                    None | Some(b"false" | b"null") => Reach::One,
                    Some(b"true") => Reach::All,
                    Some(_) => return None,
                };
                Deed::Edit { path, pairs, reach }
            }
            ToolKind::Shell => {
                let command = rest.take_command(call)?;
                let why = rest.take("description").and_then(Value::text).map(Cow::into_owned);
                Deed::Shell { command, why }
            }
            ToolKind::Patch => Deed::Patch { patch: rest.take_field(call, FieldRole::Patch)? },
            ToolKind::List => {
                let pattern = rest.take("pattern")?.text()?.into_owned();
                let path = rest.take("path").and_then(Value::text).map(Cow::into_owned);
                Deed::Find { pattern, path }
            }
            _ => return None,
        };
        rest.say_nothing_more(cwd).then_some(deed)
    }
}

/// A call whose only argument is a text: a command, or a patch.
fn of_text<'t>(call: &'t Call, all: &Conversation<'t>, text: String) -> Option<Deed> {
    match call.kind {
        ToolKind::Patch => Some(Deed::Patch { patch: text }),
        ToolKind::Shell => {
            let is_command = all.text(call.target.as_ref()?) == text;
            is_command.then_some(Deed::Shell { command: text, why: None })
        }
        _ => None,
    }
}

/// The members of arguments that have not been understood yet.
struct Members<'v, 'a>(Vec<(&'v str, &'v Value<'a>)>);

impl<'v, 'a> Members<'v, 'a> {
    fn of(root: &'v Value<'a>) -> Self {
        Members(root.members().iter().map(|(key, value)| (&**key, value)).collect())
    }

    fn take(&mut self, key: &str) -> Option<&'v Value<'a>> {
        let at = self.0.iter().position(|(name, _)| *name == key)?;
        Some(self.0.remove(at).1)
    }

    /// The member that says this text and is no bulky field.
    fn take_text(&mut self, call: &Call, text: &str) -> Option<String> {
        let is_field = |key: &str| call.fields.iter().any(|field| &*field.name == key);
        let at = self
            .0
            .iter()
            .position(|(key, value)| !is_field(key) && value.text().is_some_and(|it| it == text))?;
        self.0.remove(at);
        Some(text.to_owned())
    }

    /// The one field of this role.
    fn take_field(&mut self, call: &Call, role: FieldRole) -> Option<String> {
        let mut fields = call.fields.iter().filter(|field| field.role == role);
        let (field, None) = (fields.next()?, fields.next()) else { return None };
        Some(self.take(&field.name)?.text()?.into_owned())
    }

    /// What an edit takes away and puts in: two members, or a list of pairs.
    fn take_pairs(&mut self, call: &Call) -> Option<Vec<(String, String)>> {
        let name = |role| call.fields.iter().find(|it| it.role == role).map(|it| &*it.name);
        let (old, new) = (name(FieldRole::Old)?, name(FieldRole::New)?);
        let pair = |value: &Value<'a>, old: &str, new: &str| {
            let says = |key| Some(value.get(key)?.text()?.into_owned());
            Some((says(old)?, says(new)?))
        };
        if let (Some((list, old)), Some((_, new))) = (old.split_once("[0]."), new.split_once("]."))
        {
            let list = self.take(list)?.list();
            let whole = |value: &Value<'a>| {
                (value.members().len() == 2).then(|| pair(value, old, new)).flatten()
            };
            return list.iter().map(whole).collect();
        }
        let says = |value: &'v Value<'a>| Some(value.text()?.into_owned());
        Some(vec![(self.take(old).and_then(says)?, self.take(new).and_then(says)?)])
    }

    /// A command: a text, or one that is handed to a shell.
    fn take_command(&mut self, call: &Call) -> Option<String> {
        let commands = call.fields.iter().filter(|field| field.role == FieldRole::Command);
        let first = commands.into_iter().next()?;
        let Some((list, _)) = first.name.split_once('[') else {
            return Some(self.take(&first.name)?.text()?.into_owned());
        };
        let words: Option<Vec<Cow<'a, str>>> =
            self.take(list)?.list().iter().map(Value::text).collect();
        match &words?[..] {
            [shell, option, command] if matches!(&**option, "-c" | "-lc") => {
                let shell = shell.rsplit('/').next().unwrap_or_default();
                matches!(shell, "bash" | "sh" | "zsh").then(|| command.to_string())
            }
            _ => None,
        }
    }

    /// Whether what is left changes nothing in what is done.
    fn say_nothing_more(&self, cwd: Option<&str>) -> bool {
        self.0.iter().all(|(key, value)| {
            let here = || value.text().is_some_and(|it| Some(&*it) == cwd);
            let is_default = value.is_null() || value.raw() == b"false";
            is_default || MANNER.contains(key) || FOLDER.contains(key) && here()
        })
    }
}

/// An object of these members, of which values are JSON.
pub fn object(members: &[(&str, String)]) -> String {
    let members = members.iter().map(|(key, value)| format!("{}:{value}", encode(key)));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}
