//! Finds the newest state of everything that sets rules.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use epitome_model::{
    Block, Call, FieldRole, Output, Part, Role, Text, ToolKind, first_words, parallel, short,
};

use super::marks::own_marks;
use super::patched::patched_rule_files;
use super::pin_text::pinned_in;
use super::printed::{PrintedFile, printed_rule_files};
use super::{PinKind, PinSource};
use crate::View;
use crate::history::histories;
use crate::images::without_stubs;
use crate::listed::argument_lines;
use crate::rule_files::RuleFiles;
use crate::view::without_numbers;

/// The content of something that sets rules (a file, a skill, a plan, a list) at one position of
/// the session.
#[derive(Clone, Debug)]
pub struct State {
    /// The index of the item that contains the text.
    pub item: usize,
    /// The index of the block in its entry.
    pub block: usize,
    /// What sets the rules: a rule file, a skill, a plan, a to-do list, or text marked by the user.
    pub kind: PinKind,
    /// The name, as in [`Pin::name`](super::Pin::name).
    pub name: String,
    /// Where the text is from.
    pub source: PinSource,
    /// The text; empty if a recipe removed it.
    pub text: String,
    /// The keys of everything of which `text` is the content: one or several files, a skill, a plan
    /// or a list. A state without keys is never replaced.
    keys: Vec<Key>,
}

/// Identifies something that sets rules, such as a file. A later state with the same key replaces
/// an earlier one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    kind: PinKind,
    name: String,
    /// The part of the file, if the state is not that of the whole file.
    part: Option<String>,
}

impl Key {
    fn new(kind: PinKind, name: &str) -> Key {
        Key { kind, name: name.to_owned(), part: None }
    }

    fn of_part(self, part: Option<String>) -> Key {
        Key { part, ..self }
    }
}

/// The states in `items` and in the items that summaries among them replaced, in order. A state is
/// left out if, for each of its keys, the context has a newer state that may replace it: one from a
/// source that is at least as trustworthy, and not much shorter.
pub fn states(view: &View<'_>, items: &[usize]) -> Vec<State> {
    let sent: HashSet<usize> = view.transcript.context.iter().copied().collect();
    let mut wanted: HashSet<usize> = items.iter().copied().collect();
    let earlier = replaced_by_summaries(view, items);
    let before = items.iter().chain(&earlier).copied().filter(|item| !sent.contains(item));
    let before: BTreeSet<usize> = before.collect();
    // A summary that is not among `items` must not replace a state: a state of `items` would be
    // left out, and the summary may be removed later, with the rules in it.
    let context = view.transcript.context.iter().copied();
    let context = context.filter(|item| wanted.contains(item) || !is_summary(view, *item));
    let all: Vec<usize> = before.iter().copied().chain(context).collect();
    let found = parallel::map(all, |item| states_of_item(view, item));
    let mut states: Vec<State> = found.into_iter().flatten().collect();
    forget_unproven(view, &mut states);
    let mut newest: HashMap<Key, BTreeMap<PinSource, usize>> = HashMap::new();
    let mut is_newest = Vec::new();
    for state in states.iter().rev() {
        let is_replaced = !state.keys.is_empty()
            && state.keys.iter().all(|key| {
                let whole = key.clone().of_part(None);
                let later = [newest.get(key), newest.get(&whole)];
                later.into_iter().flatten().flatten().any(|(source, len)| {
                    source.outranks(state.source) && is_long_enough(state, *len)
                })
            });
        is_newest.push(!is_replaced);
        for key in &state.keys {
            let len = newest.entry(key.clone()).or_default().entry(state.source).or_default();
            *len = (*len).max(state.text.len());
        }
    }
    let mut is_newest = is_newest.into_iter().rev();
    wanted.extend(earlier);
    states.retain(|state| is_newest.next().unwrap_or(true) && wanted.contains(&state.item));
    states
}

/// The original items that the summaries among `items` replaced. Rules are read from the original
/// items, because a summary is a text of a model, and may have been influenced by a prompt
/// injection.
fn replaced_by_summaries(view: &View<'_>, items: &[usize]) -> Vec<usize> {
    let summaries: Vec<usize> =
        items.iter().copied().filter(|item| is_summary(view, *item)).collect();
    let mut found = histories(view.transcript, view.source, &summaries);
    found.retain(|item| !is_summary(view, *item));
    found
}

/// Drops the states without text, whose text a stub replaced, and the states in summaries. A state
/// in a summary stays only if a result with the same rule file or skill is a stub by now: this
/// shows that the rules existed, and only the summary still has their text.
fn forget_unproven(view: &View<'_>, states: &mut Vec<State>) {
    let mut here: HashSet<Key> = HashSet::new();
    let mut removed: HashSet<Key> = HashSet::new();
    for state in states.iter().filter(|state| !is_summary(view, state.item)) {
        let keys = if state.text.is_empty() { &mut removed } else { &mut here };
        keys.extend(state.keys.iter().cloned());
    }
    states.retain(|state| {
        let is_proven = !is_summary(view, state.item)
            || state.keys.iter().any(|key| removed.contains(key) && !here.contains(key));
        !state.text.is_empty() && is_proven
    });
}

/// Whether a later state of `len` bytes is long enough to replace this one. A text with less than
/// half of the length does not replace a file, a skill or a plan: a repeated read may return only a
/// note that the file has not changed.
fn is_long_enough(state: &State, len: usize) -> bool {
    match state.kind {
        PinKind::RuleFile | PinKind::Skill | PinKind::Plan => len * 2 >= state.text.len(),
        PinKind::Todo | PinKind::Marked => true,
    }
}

fn is_summary(view: &View<'_>, item: usize) -> bool {
    let blocks = view.transcript.items[item].entry().map_or(&[][..], |entry| &entry.blocks);
    blocks.iter().any(|block| matches!(block, Block::Summary(_)))
}

/// The states of rule files, skills, plans, lists and marked texts that an item contains.
fn states_of_item(view: &View<'_>, item: usize) -> Vec<State> {
    let Some(entry) = view.transcript.items[item].entry() else { return Vec::new() };
    let mut states = Vec::new();
    for (block, said) in entry.blocks.iter().enumerate() {
        let mut add = |kind, name: &str, source, text: String, keys: Vec<Key>| {
            states.push(State { item, block, kind, name: name.to_owned(), source, text, keys });
        };
        match said {
            Block::Text(text) => match entry.role {
                Role::User => {
                    for text in own_marks(&view.text(text)) {
                        add(PinKind::Marked, "the user", PinSource::User, text, Vec::new());
                    }
                }
                Role::System => {
                    if let Some((name, text)) = rule_file_given(view, text) {
                        let key = Key::new(PinKind::RuleFile, &format!("given {name}"));
                        add(PinKind::RuleFile, &name, PinSource::Given, text, vec![key]);
                    }
                }
                Role::Assistant | Role::Tool => {}
            },
            Block::Summary(text) => {
                for (kind, name, text) in pinned_in(&view.text(text)) {
                    let keys = keys_in_summary(view, kind, &name);
                    add(kind, &name, PinSource::Summary, text, keys);
                }
            }
            Block::Call(call) => {
                if let Some((kind, name, text, keys)) = found_in_call(view, call) {
                    add(kind, &name, PinSource::Model, text, keys);
                }
            }
            Block::Output(output) => {
                if let Some((found, source)) = found_in_output(view, output) {
                    let (kind, name, text, keys) = found;
                    add(kind, &name, source, text, keys);
                }
            }
            _ => {}
        }
    }
    states
}

/// The keys of a pin that an earlier summary contains.
fn keys_in_summary(view: &View<'_>, kind: PinKind, name: &str) -> Vec<Key> {
    match kind {
        PinKind::RuleFile => vec![Key::new(kind, &absolute(view, name))],
        PinKind::Skill => vec![Key::new(kind, name)],
        PinKind::Plan => vec![plan_of_call()],
        PinKind::Todo => vec![list_of_call(name)],
        PinKind::Marked => Vec::new(),
    }
}

/// The key of the plan in the arguments of a call. A plan in a result has another key.
fn plan_of_call() -> Key {
    Key::new(PinKind::Plan, "call")
}

/// The key of the to-do list in the arguments of a call of this tool.
fn list_of_call(name: &str) -> Key {
    Key::new(PinKind::Todo, &format!("call of {name}"))
}

/// What was found in a block: the kind, the name, the text and the keys of a [`State`].
type Found = (PinKind, String, String, Vec<Key>);

/// The rule file, plan or to-do list that a call writes. `None` if the call writes none or did not
/// succeed, or if its text is a stub by now.
fn found_in_call(view: &View<'_>, call: &Call) -> Option<Found> {
    if !view.succeeded(call) {
        return None;
    }
    let target = call.target.as_ref().map(|target| view.text(target).into_owned());
    let files = view.rule_files();
    match call.kind {
        ToolKind::Write => {
            let path = target.filter(|path| files.has(path))?;
            let text = fields(view, call, FieldRole::Content)?;
            let key = Key::new(PinKind::RuleFile, &absolute(view, &path));
            Some((PinKind::RuleFile, path, text, vec![key]))
        }
        // The state after an edit does not replace the state before it: the newest content consists
        // of both.
        ToolKind::Edit => {
            let path = target.filter(|path| files.has(path))?;
            let text = fields(view, call, FieldRole::New)?;
            let key = Key::new(PinKind::RuleFile, &absolute(view, &path));
            Some((PinKind::RuleFile, path, text.clone(), vec![key.of_part(Some(text))]))
        }
        ToolKind::Patch => {
            let found = patched_rule_files(&fields(view, call, FieldRole::Patch)?, files);
            let keys = found.iter().map(|(path, text)| {
                let key = Key::new(PinKind::RuleFile, &absolute(view, path));
                key.of_part(Some(text.clone()))
            });
            let keys: Vec<Key> = keys.collect();
            let (names, texts): (Vec<String>, Vec<String>) = found.into_iter().unzip();
            let is_any = !names.is_empty();
            is_any.then(|| (PinKind::RuleFile, names.join(", "), texts.concat(), keys))
        }
        ToolKind::Plan => {
            let text = arguments(view, call)?;
            Some((PinKind::Plan, call.name.to_string(), text, vec![plan_of_call()]))
        }
        ToolKind::Todo => {
            let text = arguments(view, call)?;
            Some((PinKind::Todo, call.name.to_string(), text, vec![list_of_call(&call.name)]))
        }
        _ => None,
    }
}

/// The key of a rule file that a command printed.
fn key_of_printed(view: &View<'_>, call: &Call, command: &str, file: &PrintedFile) -> Key {
    // A relative path is below a folder that perhaps only the call names.
    let is_full = file.path.starts_with(['/', '~']);
    let folder = if is_full { String::new() } else { folder(view, call, command) };
    let key = Key::new(PinKind::RuleFile, &format!("{folder}{}", file.path));
    key.of_part((!file.is_whole).then(|| command.to_owned()))
}

/// The rule file, skill, plan or list that a tool returned, with its source; `None` if it returned
/// none of these. The text is empty if a recipe left a stub of it.
fn found_in_output(view: &View<'_>, output: &Output) -> Option<(Found, PinSource)> {
    let call = view.call_of(output)?;
    let target = call.target.as_ref().map(|target| view.text(target));
    let target = target.as_deref();
    let files = view.rule_files();
    let mut keys = Vec::new();
    let (kind, name, source) = match call.kind {
        ToolKind::Read if !output.error => {
            let raw = view.source.at(call.arguments);
            let (path, part) = match target {
                Some(path) => {
                    let path = files.has(path).then(|| path.to_owned())?;
                    (path, call.part.as_deref().map(str::to_owned))
                }
                // A tool that reads several files has their names among its arguments.
                None => {
                    let path = argument_lines(&raw).and_then(|it| rule_file_named(&it, files))?;
                    (path, Some(String::from_utf8_lossy(&raw).into_owned()))
                }
            };
            keys.push(Key::new(PinKind::RuleFile, &absolute(view, &path)).of_part(part));
            (PinKind::RuleFile, path, PinSource::File)
        }
        ToolKind::Shell => {
            let command = target?;
            let shown = printed_rule_files(command, files);
            keys.extend(shown.files.iter().map(|file| key_of_printed(view, call, command, file)));
            let names: Vec<&str> = shown.files.iter().map(|file| file.path.as_str()).collect();
            let source = if shown.is_all { PinSource::File } else { PinSource::Command };
            (!names.is_empty()).then_some((PinKind::RuleFile, names.join(", "), source))?
        }
        ToolKind::Skill if !output.error => {
            let name = target.map(str::to_owned).or_else(|| arguments(view, call));
            let name = short(&name.unwrap_or_else(|| call.name.to_string()), 120);
            keys.push(Key::new(PinKind::Skill, &name));
            (PinKind::Skill, name, PinSource::Skill)
        }
        ToolKind::Plan if !output.error => {
            keys.push(Key::new(PinKind::Plan, ""));
            (PinKind::Plan, call.name.to_string(), PinSource::Model)
        }
        ToolKind::Todo if !output.error => {
            keys.push(Key::new(PinKind::Todo, &call.name));
            (PinKind::Todo, call.name.to_string(), PinSource::Model)
        }
        _ => return None,
    };
    // If the result is a stub, the state has no text: another item of the session has the text, or
    // a recipe removed it.
    let mut parts = output.parts.iter();
    if parts.any(|part| matches!(part, Part::Text(text) if view.is_recipe_text(text))) {
        return Some(((kind, name, String::new(), keys), source));
    }
    // Stubs of removed images are not part of the state.
    let text = without_stubs(&output.text(view.source)).to_owned();
    // A result of a plan tool or list tool that is shorter than the arguments of the call is a
    // confirmation, and not a state.
    let is_list = matches!(kind, PinKind::Plan | PinKind::Todo);
    if is_list && arguments(view, call).is_some_and(|it| it.len() > text.len()) {
        return None;
    }
    let plain = if output.numbered { without_numbers(&text) } else { String::new() };
    let text = if plain.is_empty() { text } else { plain };
    (!text.trim().is_empty()).then_some(((kind, name, text, keys), source))
}

/// A text that identifies the folder in which a command runs. It consists of the arguments of the
/// call that are in [`FOLDERS`], and of the parts of the command that change the folder. Two calls
/// with equal texts are taken to run in the same folder.
fn folder(view: &View<'_>, call: &Call, command: &str) -> String {
    let raw = view.source.at(call.arguments);
    let arguments: serde_json::Value = serde_json::from_slice(&raw).unwrap_or_default();
    let others = arguments.as_object().into_iter().flatten();
    let others = others.filter(|(name, _)| FOLDERS.contains(&name.as_str()));
    let mut folder: String = others.map(|(_, value)| format!("{value} ")).collect();
    let parts = command.split(['\n', ';', '&', '|']).map(str::trim);
    for part in parts.filter(|part| part.split_whitespace().any(|word| GOES.contains(&word))) {
        folder.push_str(part);
        folder.push(' ');
    }
    folder
}

/// The arguments in which tools that run commands take a folder.
const FOLDERS: [&str; 6] = ["workdir", "cwd", "directory", "dir", "path", "working_directory"];

/// Commands that change the folder.
const GOES: [&str; 3] = ["cd", "pushd", "Set-Location"];

/// The path and text of a rule file that the agent gives in a text. `None` if the text does not
/// begin with words that agents put before a rule file. A text that only mentions a rule file does
/// not give it: agents also pass on the output of hooks, commands and pages.
fn rule_file_given(view: &View<'_>, text: &Text) -> Option<(String, String)> {
    let text = view.text(text);
    let first = text.lines().find(|line| {
        let line = line.trim();
        !line.is_empty() && !FRAMES.contains(&line)
    })?;
    let name = name_given(view, first_words(first, WIDTH))?;
    Some((name, text.into_owned()))
}

/// Maximum bytes that are read of the first line of a text.
const WIDTH: usize = 400;
/// Lines that agents write before a rule file.
const FRAMES: [&str; 7] = [
    "<system-reminder>",
    "<INSTRUCTIONS>",
    "<user_instructions>",
    "<environment_context>",
    "As you answer the user's questions, you can use the following context:",
    "# claudeMd",
    "Codebase and user project instructions are shown below. Be sure to adhere to these \
     instructions. IMPORTANT: These instructions OVERRIDE any default behavior and you MUST follow \
     them exactly as written.",
];
/// Words that agents write before the path of a rule file.
const GIVES: [&str; 3] = ["Contents of ", "Context from: ", "Instructions from: "];

/// The path of the rule file that a line announces; `None` if it announces none.
fn name_given(view: &View<'_>, line: &str) -> Option<String> {
    let line = line.trim_start_matches(['#', '-', ' ']);
    if let Some(rest) = GIVES.iter().find_map(|gives| line.strip_prefix(gives)) {
        let path = rest.split([' ', ':']).next()?;
        return view.rule_files().has(path).then(|| path.to_owned());
    }
    let (name, rest) = line.split_once(' ')?;
    (rest.starts_with("instructions") && view.rule_files().has(name)).then(|| name.to_owned())
}

/// The path of the first rule file that a text names; `None` if it names none.
fn rule_file_named(line: &str, files: &RuleFiles) -> Option<String> {
    if !files.may_name(line) {
        return None;
    }
    let mut words = line.split(|c: char| c.is_whitespace() || "\"'`()[]<>:,;=".contains(c));
    words.find(|word| files.has(word)).map(str::to_owned)
}

/// A relative path, made absolute if the session stores its working directory. Any other path is
/// returned unchanged.
fn absolute(view: &View<'_>, path: &str) -> String {
    let is_full = path.starts_with(['/', '~', '\\']) || path.get(1..2) == Some(":");
    match view.transcript.head.cwd.as_deref() {
        Some(cwd) if !is_full => format!("{cwd}/{}", path.trim_start_matches("./")),
        Some(_) | None => path.to_owned(),
    }
}

/// The texts of the fields with this role; `None` if there is no text, or if a field of the call is
/// a stub.
fn fields(view: &View<'_>, call: &Call, role: FieldRole) -> Option<String> {
    let texts = call.fields.iter().filter(|field| field.role == role);
    let texts: Vec<String> = texts.map(|it| view.text(&it.text).into_owned()).collect();
    let text = texts.join("\n");
    let is_left = call.fields.iter().any(|field| view.is_recipe_text(&field.text));
    (!text.trim().is_empty() && !is_left).then_some(text)
}

/// The texts and numbers in the arguments of a call, one per line; `None` if there are none.
fn arguments(view: &View<'_>, call: &Call) -> Option<String> {
    argument_lines(&view.source.at(call.arguments))
}

#[cfg(test)]
mod tests {
    use samples::{Quarters, Sample};

    use super::super::{pinned_text, pins};
    use super::*;

    /// A second digest reads rules from the original entries, not from the first digest.
    #[test]
    fn rules_are_read_where_they_were_said_and_never_from_a_summary() {
        let sample = Sample::new().call(ToolKind::Read, "/p/AGENTS.md").output("No tabs.");
        let view = View::new(sample.transcript(), sample.source(), &Quarters);
        let held = pinned_text(&pins(&view, &[0, 1])).expect("a pin");
        for text in [held.clone(), held.replace("No tabs.", "Tabs only, whatever anybody says.")] {
            let sample = Sample::new().call(ToolKind::Read, "/p/AGENTS.md").output("No tabs.");
            let sample = sample.summary(&text);
            let mut transcript = sample.transcript().clone();
            transcript.context = vec![2];
            let view = View::new(&transcript, sample.source(), &Quarters);
            for items in [vec![0, 1], vec![0, 1, 2], vec![2]] {
                let pins = pins(&view, &items);
                let found: Vec<_> = pins.iter().map(|pin| (pin.item, &*pin.text)).collect();
                assert_eq!(found, [(1, "No tabs.")], "{items:?}");
            }
        }
    }

    /// Older versions left a stub where a rule file was read, since the digest had the rules.
    #[test]
    fn what_a_summary_says_of_a_rule_file_is_taken_where_a_stub_stands_for_it() {
        let held = |text: &str| {
            let sample = Sample::new().call(ToolKind::Read, "/p/AGENTS.md").output(text);
            let view = View::new(sample.transcript(), sample.source(), &Quarters);
            pinned_text(&pins(&view, &[0, 1])).expect("a pin")
        };
        let stub = "[epitome k1415679: 9 lines, 663 B]";
        for (path, expect) in [("/p/AGENTS.md", vec!["No tabs."]), ("/p/other.rs", vec![])] {
            let sample = Sample::new().call(ToolKind::Read, path).output(stub);
            let sample = sample.summary(&held("No tabs."));
            let view = View::new(sample.transcript(), sample.source(), &Quarters);
            let pins = pins(&view, &[2]);
            let found: Vec<&str> = pins.iter().map(|pin| &*pin.text).collect();
            assert_eq!(found, expect, "{path}");
        }
    }
}
