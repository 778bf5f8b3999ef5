//! `skill`: loads instructions for a kind of work from files. The engine recognises results of this
//! tool by its kind, and keeps them in every compaction.

use std::fs;
use std::path::{Path, PathBuf};

use epitome::storage::regular::{FoundFile, read_in};
use serde::Deserialize;

use epitome_model::ToolKind;

use super::{Fold, Tool, Workplace, described, parsed};
use crate::permissions::Access;

pub(super) const TOOL: Tool = Tool {
    name: "skill",
    kind: ToolKind::Skill,
    subject: |it| described(it, &["{name}"]),
    fold: Fold::Beginning,
    description: "Returns the instructions of a skill. Call it before work that a skill is about; \
                  its instructions stay in this conversation.",
    parameters: concat!(
        r#"{"type":"object","properties":{"name":{"type":"string","description":"The skill"}},"#,
        r#""required":["name"]}"#,
    ),
    access: |_, _| Ok(Access::Own),
    planned: None,
    run: |place, arguments, _, _| {
        let Arguments { name } = parsed(arguments)?;
        let skills = place.skills();
        let Some(skill) = skills.iter().find(|skill| skill.name == name) else {
            return Err(missing(&name, &skills));
        };
        let text = skill.text().map_err(|err| format!("{name}: {err}"))?;
        let folder = skill.path.parent().unwrap_or(&skill.path);
        Ok(format!(
            "Instructions of the skill {name}, whose files are in {}:\n\n{}",
            place.display(folder),
            instructions(&text)
        ))
    },
};

/// The folders in which a project keeps a folder for each skill.
const PLACES: [&str; 2] = [".claude/skills", ".agents/skills"];

/// The file with the instructions.
const FILE: &str = "SKILL.md";

/// The maximum number of bytes of a skill that are read.
const LONGEST: u64 = 64 << 10;

/// The maximum number of characters of a description.
const ABOUT: usize = 250;

#[derive(Deserialize)]
struct Arguments {
    name: String,
}

/// Instructions for a kind of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// The name of the skill, which is the name of its folder.
    pub name: String,
    /// When to use the skill, in one line.
    pub about: String,
    /// The file of the skill, without symbolic links.
    path: PathBuf,
    /// The folder that must contain the file, after links are resolved.
    inside: PathBuf,
}

impl Skill {
    /// The path of the skill's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn text(&self) -> std::io::Result<String> {
        read(&self.inside, &self.path).map(|(_, text)| text)
    }
}

impl Workplace {
    /// All skills, sorted by name. A skill of the user replaces a skill of the project with the
    /// same name.
    pub fn skills(&self) -> Vec<Skill> {
        self.skills_and_refused().0
    }

    /// The skills, and notices about the skill files of the project that were not read.
    pub(crate) fn skills_and_refused(&self) -> (Vec<Skill>, Vec<String>) {
        let mut refused = Vec::new();
        let mut all = Vec::new();
        for folder in self.skills.iter() {
            // A user may keep skills anywhere in the home folder, and link them.
            let home = self.home.as_ref().filter(|home| folder.starts_with(home));
            all.extend(found(folder, home.unwrap_or(folder), &mut |_, _| {}));
        }
        for folder in PLACES.iter().map(|place| self.root.join(place)) {
            let mut refuse = |path: &Path, why| refused.push(not_read(&self.display(path), &why));
            all.extend(found(&folder, &self.root, &mut refuse));
        }
        let mut skills: Vec<Skill> = Vec::new();
        for skill in all {
            // A skill of the user takes precedence over a skill of the project with the same name.
            if skills.iter().all(|known| known.name != skill.name) {
                skills.push(skill);
            }
        }
        skills.sort_by(|a, b| a.name.cmp(&b.name));
        refused.sort();
        (skills, refused)
    }
}

/// The skills in a folder: one for each folder in it with a file [`FILE`]. That file must be in
/// `inside` after links are resolved. `refuse` is called for each such file that is elsewhere or
/// cannot be read.
fn found(
    folder: &Path,
    inside: &Path,
    refuse: &mut dyn FnMut(&Path, std::io::Error),
) -> Vec<Skill> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut skills = Vec::new();
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = entry.path().join(FILE);
        match read(inside, &path) {
            Ok((path, text)) => {
                let about = description(&text);
                let inside = inside.to_owned();
                skills.push(Skill { name, about, path, inside });
            }
            Err(err) if path.symlink_metadata().is_ok() => refuse(&path, err),
            Err(_) => {}
        }
    }
    skills
}

/// The resolved path of a skill's file, and its text.
fn read(inside: &Path, path: &Path) -> std::io::Result<(PathBuf, String)> {
    let FoundFile { path, bytes, is_whole } = read_in(inside, path, LONGEST)?;
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if !is_whole {
        text.truncate(text.trim_end_matches('\u{fffd}').len());
        text.push_str("\n[the rest of this file is left out: read it]\n");
    }
    Ok((path, text))
}

/// The front matter of a skill's file, which is between lines of three dashes, and the text after
/// it. Without front matter, the first part is empty.
fn parts(text: &str) -> (&str, &str) {
    let head = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n"));
    let Some(head) = head else { return ("", text) };
    match head.split_once("\n---") {
        Some((head, rest)) => (head, rest.split_once('\n').map_or("", |(_, rest)| rest)),
        None => ("", text),
    }
}

fn instructions(text: &str) -> &str {
    parts(text).1.trim()
}

/// The description in the front matter. If there is none, the first line after the front matter
/// that is not blank, without `#` at its beginning.
fn description(text: &str) -> String {
    let (head, rest) = parts(text);
    let mut lines = head.lines().skip_while(|line| !line.starts_with("description:"));
    let first = lines.next().and_then(|line| line.strip_prefix("description:")).unwrap_or("");
    let first = first.trim();
    // The value may continue in indented lines.
    let is_block = first.is_empty() || first.starts_with(['>', '|']);
    let more = lines.take_while(|line| line.starts_with([' ', '\t'])).map(str::trim);
    let mut words: Vec<&str> = if is_block { Vec::new() } else { vec![first] };
    words.extend(more);
    let mut text = words.join(" ").trim_matches(['"', '\'']).trim().to_owned();
    if text.is_empty() {
        let line = rest.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        text = line.trim_start_matches('#').trim().to_owned();
    }
    epitome_model::short(&text, ABOUT)
}

fn missing(name: &str, skills: &[Skill]) -> String {
    if skills.is_empty() {
        return format!("there is no skill `{name}`, and no other");
    }
    let names: Vec<&str> = skills.iter().map(|skill| &*skill.name).collect();
    format!("there is no skill `{name}`: there are {}", names.join(", "))
}

/// A notice that a file is not read, and why.
pub(crate) fn not_read(name: &str, err: &std::io::Error) -> String {
    format!("{name} is not read: {err}")
}
