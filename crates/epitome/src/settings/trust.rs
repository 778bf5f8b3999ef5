//! Finds the settings file of a project, and limits what the file may set.

use std::path::{Component, Path, PathBuf};

use toml::Value;

use super::values::Trust;
use super::{Key, PathKind, Scope, SetValue, wrong};
use crate::error::Result;
use crate::regular;

/// The names of a project's settings file. If a folder has both, the first is read.
const NAMES: [&str; 2] = [".epitome.toml", "epitome.toml"];

/// The nearest settings file of a project, in the folder `here` or above it. The root folder of a
/// repository is searched last; the user's home folder and the folders above it are not searched. A
/// link to a file outside of the project is ignored and reported in `notes`.
pub(super) fn project_file(here: &Path, home: &Path, notes: &mut Vec<String>) -> Option<PathBuf> {
    let mut folders = here.ancestors().take_while(|it| *it != home);
    let repository = folders.find(|folder| folder.join(".git").exists());
    for folder in here.ancestors() {
        if folder == home {
            return None;
        }
        for path in NAMES.iter().map(|name| folder.join(name)).filter(|path| path.is_file()) {
            match regular::find_in(repository.unwrap_or(folder), &path) {
                Ok(_) => return Some(path),
                Err(why) => notes.push(format!("{}: {why}", path.display())),
            }
        }
        if Some(folder) == repository {
            return None;
        }
    }
    None
}

/// The owner of a project's settings file: a project that the user trusts, or does not trust.
pub(super) fn scope_of(file: &Path, trust: &Trust) -> Scope {
    let folder = file.parent().unwrap_or(Path::new("/"));
    let folder = real(folder);
    let mut trusted = trust.projects.iter().flatten();
    let trusted = trusted.any(|project| folder.starts_with(real(project)));
    if trusted { Scope::TrustedProject } else { Scope::Project }
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// How paths in settings are resolved: the folder to which they are relative, the home folder that
/// `~` stands for, and the scope of the settings that contain the paths.
#[derive(Clone, Copy)]
pub(super) struct Ground<'a> {
    pub(super) folder: &'a Path,
    pub(super) home: &'a Path,
    pub(super) scope: Scope,
}

/// Makes the paths in a value absolute: a relative path begins in the folder of `ground`. Returns
/// an error if a path in the file of an untrusted project leads out of that folder, or if a list of
/// folders is empty or has an empty text (see [`check_folders`]).
pub(super) fn settle(set: &mut SetValue, key: &Key, ground: Ground<'_>) -> Result<()> {
    let Some(kind) = key.path else { return Ok(()) };
    let Ground { folder, home, scope } = ground;
    let place = set.place.clone();
    if kind == PathKind::Folders {
        check_folders(set, key)?;
    }
    let texts: Vec<&mut String> = match &mut set.value {
        Value::String(text) => vec![text],
        Value::Array(list) => list
            .iter_mut()
            .filter_map(|it| match it {
                Value::String(text) => Some(text),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    };
    for text in texts {
        if kind == PathKind::Recipe && is_name(text) {
            continue;
        }
        let path = match text.strip_prefix("~/") {
            Some(rest) => home.join(rest),
            // Such a pattern matches any folder, not only those below the folder of the settings.
            None if kind == PathKind::Folders && text == "*" => PathBuf::from("/**"),
            None if kind == PathKind::Folders && text.starts_with("**") => {
                Path::new("/").join(&*text)
            }
            None => folder.join(&*text),
        };
        if scope == Scope::Project && !is_inside(&path, folder) {
            let what = format!("{}: `{text}` is outside of the project", key.name);
            return Err(wrong(&place, &what)
                .with_hint("only your own settings, or those of projects you trust, may say so"));
        }
        *text = path.to_string_lossy().into_owned();
    }
    Ok(())
}

/// Returns an error if a list of folders is empty or has an empty text. An empty list would match
/// no folder, and an empty text would mean the folder of the settings file: neither can be what the
/// user meant.
fn check_folders(set: &SetValue, key: &Key) -> Result<()> {
    let is_blank = |value: &Value| value.as_str().is_some_and(|text| text.trim().is_empty());
    let what = match &set.value {
        Value::Array(list) if list.is_empty() => "the list is empty",
        Value::Array(list) if list.iter().any(is_blank) => "a folder in the list is empty",
        value if is_blank(value) => "the folder is empty",
        _ => return Ok(()),
    };
    Err(wrong(&set.place, &format!("{}: {what}", key.name))
        .with_hint("leave the setting out for all projects, or name at least one folder"))
}

/// Whether a text is the name of a recipe, and not a path.
pub(super) fn is_name(text: &str) -> bool {
    !text.ends_with(".toml") && Path::new(text).components().count() == 1
}

/// Whether a path, with all links resolved, leads to `folder` or below it. False for a path that
/// contains `..`.
fn is_inside(path: &Path, folder: &Path) -> bool {
    let climbs = path.components().any(|part| part == Component::ParentDir);
    let Ok(folder) = folder.canonicalize() else { return false };
    // A path that does not exist yet is judged by its nearest ancestor that exists. A dangling link
    // counts as existing, because its target may be created later.
    let there = path.ancestors().find(|it| it.symlink_metadata().is_ok());
    let there = there.and_then(|there| there.canonicalize().ok());
    !climbs && there.is_some_and(|there| there.starts_with(folder))
}
