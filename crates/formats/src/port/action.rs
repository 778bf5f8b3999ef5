//! Actions: what a call does, independent of an agent's names of tools and arguments.
//!
//! Several agents have the same tools under different names. A call is translated to another
//! agent's tool only if that tool can express all that the call does; otherwise it is kept
//! unchanged.

use std::borrow::Cow;

use epitome_api::{Arguments, Conversation};
use epitome_json::{Document, Value};
use epitome_model::{Call, FieldRole, ToolKind, encode};

/// The action of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolAction {
    /// Reads a file or a part of it. `part` holds `offset` and `limit` as written, if the call has
    /// them.
    Read { path: String, part: Vec<(String, String)> },
    /// Writes a whole file.
    Write { path: String, content: String },
    /// Replaces texts in a file: pairs of old and new.
    Edit { path: String, pairs: Vec<(String, String)>, reach: Reach },
    /// Runs a command. `why` is the description in the call, if there is one.
    Shell { command: String, why: Option<String> },
    /// Applies a patch in Codex's grammar.
    Patch { patch: String },
    /// Lists files by a pattern.
    Find { pattern: String, path: Option<String> },
}

/// How many occurrences of the old text an edit replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The only occurrence.
    One,
    /// All occurrences.
    All,
}

/// Names of arguments that do not change what a call does, such as timeouts and output limits.
const MANNER: [&str; 6] =
    ["yield_time_ms", "max_output_tokens", "timeout", "timeout_ms", "login", "tty"];

/// Names of arguments for the working directory.
const FOLDER: [&str; 4] = ["workdir", "cwd", "dir_path", "directory"];

impl ToolAction {
    /// The action of a call in a session with the working directory `cwd`. `None` if no
    /// [`ToolAction`] describes exactly what the call does.
    pub fn from_call<'t>(
        call: &'t Call,
        all: &Conversation<'t>,
        cwd: Option<&str>,
    ) -> Option<ToolAction> {
        let text = match all.arguments(call) {
            Arguments::Object(text) => text,
            Arguments::Text(text) => return from_text(call, all, text),
        };
        let document = Document::parse(text.as_bytes()).ok()?;
        let mut rest = Members::from_value(&document.root);
        let target = call.target.as_ref().map(|text| all.text(text).into_owned());
        let action = match call.kind {
            ToolKind::Read => {
                let path = rest.take_text(call, &target?)?;
                let part = ["offset", "limit"].into_iter().filter_map(|key| {
                    let value = rest.take(key)?;
                    Some((key.to_owned(), String::from_utf8_lossy(value.raw()).into_owned()))
                });
                let part: Vec<(String, String)> = part.collect();
                let is_number =
                    part.iter().all(|(_, value)| value.bytes().all(|b| b.is_ascii_digit()));
                is_number.then_some(())?;
                ToolAction::Read { path, part }
            }
            ToolKind::Write => {
                let content = rest.take_field(call, FieldRole::Content)?;
                ToolAction::Write { path: rest.take_text(call, &target?)?, content }
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
                ToolAction::Edit { path, pairs, reach }
            }
            ToolKind::Shell => {
                let command = rest.take_command(call)?;
                let why = rest.take("description").and_then(Value::text).map(Cow::into_owned);
                ToolAction::Shell { command, why }
            }
            ToolKind::Patch => {
                ToolAction::Patch { patch: rest.take_field(call, FieldRole::Patch)? }
            }
            ToolKind::List => {
                let pattern = rest.take("pattern")?.text()?.into_owned();
                let path = rest.take("path").and_then(Value::text).map(Cow::into_owned);
                ToolAction::Find { pattern, path }
            }
            _ => return None,
        };
        rest.are_without_effect(cwd).then_some(action)
    }
}

/// The action of a call whose only argument is one text: a command, or a patch. `None` for any
/// other text.
fn from_text<'t>(call: &'t Call, all: &Conversation<'t>, text: String) -> Option<ToolAction> {
    match call.kind {
        ToolKind::Patch => Some(ToolAction::Patch { patch: text }),
        ToolKind::Shell => {
            let is_command = all.text(call.target.as_ref()?) == text;
            is_command.then_some(ToolAction::Shell { command: text, why: None })
        }
        _ => None,
    }
}

/// The members of a call's arguments that the translation has not used yet.
struct Members<'v, 'a>(Vec<(&'v str, &'v Value<'a>)>);

impl<'v, 'a> Members<'v, 'a> {
    fn from_value(root: &'v Value<'a>) -> Self {
        Members(root.members().iter().map(|(key, value)| (&**key, value)).collect())
    }

    fn take(&mut self, key: &str) -> Option<&'v Value<'a>> {
        let at = self.0.iter().position(|(name, _)| *name == key)?;
        Some(self.0.remove(at).1)
    }

    /// Takes the member whose value is `text`, unless it is a bulky field. `None` if there is no
    /// such member.
    fn take_text(&mut self, call: &Call, text: &str) -> Option<String> {
        let at = self.0.iter().position(|(key, value)| {
            !call.fields.iter().any(|field| *field.name == **key)
                && value.text().is_some_and(|it| it == text)
        })?;
        self.0.remove(at);
        Some(text.to_owned())
    }

    /// Takes the text of the field with this role. `None` unless there is exactly one such field,
    /// and it is a member whose value is a text.
    fn take_field(&mut self, call: &Call, role: FieldRole) -> Option<String> {
        let mut fields = call.fields.iter().filter(|field| field.role == role);
        let (field, None) = (fields.next()?, fields.next()) else { return None };
        Some(self.take(&field.name)?.text()?.into_owned())
    }

    /// Takes the old and new texts of an edit: two members, or a list of pairs. `None` if there are
    /// no such members, or if they are not texts.
    fn take_pairs(&mut self, call: &Call) -> Option<Vec<(String, String)>> {
        // In a list of pairs the paths are `edits[0].oldText` and `edits[0].newText`.
        let old = field_path(call, FieldRole::Old)?;
        let new = field_path(call, FieldRole::New)?;
        if let (Some((list, old)), Some((_, new))) = (old.split_once("[0]."), new.split_once("]."))
        {
            let list = self.take(list)?.list();
            return list.iter().map(|value| pair(value, old, new)).collect();
        }
        let old = self.take(old)?.text()?.into_owned();
        let new = self.take(new)?.text()?.into_owned();
        Some(vec![(old, new)])
    }

    /// Takes a command: a text, or a list of arguments for a shell. `None` if there is no command,
    /// or if the list does anything but run one command in a shell.
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

    /// Whether the members that are left over have no effect on what the call does.
    fn are_without_effect(&self, cwd: Option<&str>) -> bool {
        self.0.iter().all(|(key, value)| {
            let is_default = value.is_null() || value.raw() == b"false";
            is_default
                || MANNER.contains(key)
                || FOLDER.contains(key) && value.text().is_some_and(|it| Some(&*it) == cwd)
        })
    }
}

/// The path in the arguments of the first field with this role; `None` if there is no such field.
fn field_path(call: &Call, role: FieldRole) -> Option<&str> {
    call.fields.iter().find(|field| field.role == role).map(|field| &*field.name)
}

/// The texts of the members that are named `old` and `new`; `None` unless the object has exactly
/// these two.
fn pair(value: &Value<'_>, old: &str, new: &str) -> Option<(String, String)> {
    if value.members().len() != 2 {
        return None;
    }
    let old = value.get(old)?.text()?.into_owned();
    let new = value.get(new)?.text()?.into_owned();
    Some((old, new))
}

/// A JSON object of these members, whose values are JSON.
pub fn object(members: &[(&str, String)]) -> String {
    let members = members.iter().map(|(key, value)| format!("{}:{value}", encode(key)));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}
