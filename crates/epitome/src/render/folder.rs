//! Folders of rendered sessions. Such a folder contains the files of each session, a manifest, and
//! a page that links to all sessions.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use epitome_formats::FORMATS;
use epitome_redact::Found;
use epitome_render::{
    Html, Index, Listing, PageName, Story, facts_of_page, is_index_page, json, markdown,
};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::names::{Names, names};
use super::{RenderOptions, RenderSource};
use crate::archive::GcMode;
use crate::error::{Error, ErrorKind, Result};
use crate::regular;
use crate::store::{disk, write_over};

/// The name of a folder's manifest.
const MANIFEST: &str = "manifest.json";
/// The name of the page that links to all sessions.
const INDEX: &str = "index.html";
/// The names of the files in a folder of rendered sessions that belong to no single session.
pub(crate) const FOLDER_FILES: [&str; 2] = [MANIFEST, INDEX];
/// The maximum number of bytes of a page that are read to find the data about its session.
const HEAD: usize = 256 << 10;

/// A form in which a session is rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RenderForm {
    /// Pages for a browser.
    Html,
    /// Markdown.
    Markdown,
    /// JSON, for other programs and for epitome itself, which can read it again.
    Json,
    /// The records of the session as it is rendered (redacted and compacted, if the options say
    /// so), in its agent's format.
    Jsonl,
}

impl RenderForm {
    fn extension(self) -> &'static str {
        match self {
            RenderForm::Html => "html",
            RenderForm::Markdown => "md",
            RenderForm::Json => "json",
            RenderForm::Jsonl => "jsonl",
        }
    }

    fn bytes<'s>(self, story: &Story<'s>) -> Cow<'s, [u8]> {
        let text = match self {
            RenderForm::Html => Html::single_page(story, Vec::new()).page(0),
            RenderForm::Markdown => markdown(story),
            RenderForm::Json => json(story, &[]),
            RenderForm::Jsonl => {
                let source = story.session.source;
                return source.read(0..source.len());
            }
        };
        text.into_bytes().into()
    }
}

/// Renders a session and its sub-agents into a folder, in each of `formats`. Files of an earlier
/// rendering of the same session are replaced. The names of other sessions in the manifest and in
/// `earlier` are not used again; `earlier` are sessions that were rendered but are not in the
/// manifest yet. Returns the session's entry for the manifest, and what was redacted.
///
/// # Errors
///
/// `Exists` if another program wrote the folder's manifest or index; `NewerFormat` if a newer
/// epitome wrote the manifest; `Unreadable` if the manifest is damaged; the errors of reading these
/// two files; `Disk` or `NoPermission` if a file cannot be written. Files that were written before
/// the error stay.
pub fn render_into(
    folder: &Path,
    reading: &RenderSource,
    how: &RenderOptions<'_>,
    formats: &[RenderForm],
    earlier: &[Listing],
) -> Result<(Listing, Vec<Found>)> {
    let mut known = ours(folder)?;
    known.extend_from_slice(earlier);
    fs::create_dir_all(folder).map_err(|err| Error::writing(err, "the folder", folder))?;
    // Temporary files of killed runs are removed here, because `gc` does not know this folder.
    disk::sweep(folder, GcMode::Remove);
    let Names { main, parts, origin } = names(reading, &known);
    let mut listings = Vec::new();
    let mut found = Vec::new();
    for &format in formats {
        let file = |name: &PageName| format!("{}.{}", name.stem(), format.extension());
        let (written, in_this) = reading.with_stories(
            how,
            |number| file(&parts[number]),
            |stories| {
                let names = std::iter::once(&main).chain(&parts);
                stories
                    .iter()
                    .zip(names)
                    .map(|(story, name)| write(folder, story, name, format, &main))
                    .collect::<Result<Vec<_>>>()
            },
        )?;
        listings = written?;
        found = in_this;
    }
    for listing in &mut listings {
        listing.files = formats
            .iter()
            .map(|format| format!("{}.{}", listing.name, format.extension()))
            .collect();
    }
    let mut listings = listings.into_iter();
    let mut listing = listings.next().unwrap_or_default();
    listing.sub_agents = listings.collect();
    listing.origin = origin;
    Ok((listing, found))
}

fn write(
    folder: &Path,
    story: &Story<'_>,
    name: &PageName,
    format: RenderForm,
    main: &PageName,
) -> Result<Listing> {
    let put = |file: &str, bytes: &[u8]| {
        write_over(&folder.join(file), |out| {
            out.write_all(bytes).map_err(|err| Error::writing(err, "the page", folder))
        })
    };
    if format != RenderForm::Html {
        put(&format!("{}.{}", name.stem(), format.extension()), &format.bytes(story))?;
        let name = name.stem().to_owned();
        let facts = epitome_render::Facts::from_story(story);
        return Ok(Listing { name, facts, ..Listing::default() });
    }
    let up = if name == main {
        (INDEX.to_owned(), "Sessions".to_owned())
    } else {
        (main.file(0), "the session".to_owned())
    };
    let html = Html::with_pages(story, name.clone(), Some(up));
    (0..html.pages())
        .into_par_iter()
        .try_for_each(|n| put(&html.file(n), html.page(n).as_bytes()))?;
    // An earlier rendering of the session may have had more pages. These are removed.
    let mut beyond = html.pages();
    while fs::remove_file(folder.join(html.file(beyond))).is_ok() {
        beyond += 1;
    }
    let name = name.stem().to_owned();
    let facts = html.facts().clone();
    Ok(Listing { name, facts, ..Listing::default() })
}

/// Adds sessions to a folder's manifest and to the page that links to them, in place of entries
/// with the same names.
///
/// # Errors
///
/// The errors of the manifest, as for [`render_into`]; `Disk` or `NoPermission` if a file cannot be
/// written.
pub fn update_index(folder: &Path, new: Vec<Listing>) -> Result<Index> {
    let _lock = lock(folder)?;
    let mut sessions = ours(folder)?;
    sessions.extend(new);
    write_index(folder, Index::new(sessions))
}

/// Adds a session to a folder's manifest. Another program has rendered the session to `href` in the
/// folder. If the manifest has the session already, its other files that still exist and its
/// sub-agents are kept.
///
/// # Errors
///
/// `Refused` if `href` leads out of the folder; the errors of the manifest, as for [`render_into`];
/// `Disk` or `NoPermission` if the manifest cannot be written; the errors of reading the session.
pub fn upsert(
    folder: &Path,
    reading: &RenderSource,
    how: &RenderOptions<'_>,
    href: &str,
) -> Result<Listing> {
    if !is_inside(href) {
        let what = format!("`{href}` leads out of the folder");
        return Err(Error::new(ErrorKind::Refused, what).at(folder));
    }
    ours(folder)?;
    fs::create_dir_all(folder).map_err(|err| Error::writing(err, "the folder", folder))?;
    let mut listing = facts_of(reading, how)?;
    let _lock = lock(folder)?;
    let mut sessions = ours(folder)?;
    let Names { main, origin, .. } = names(reading, &sessions);
    listing.name = main.stem().to_owned();
    listing.origin = origin;
    listing.files = vec![href.to_owned()];
    if let Some(known) = sessions.iter().find(|it| it.name == listing.name) {
        let others = known.files.iter().filter(|file| *file != href);
        listing.files.extend(others.filter(|file| is_there(folder, file)).cloned());
        listing.sub_agents.clone_from(&known.sub_agents);
    }
    sessions.push(listing.clone());
    write_index(folder, Index::new(sessions))?;
    Ok(listing)
}

/// The entry of a session in a manifest, without files and sub-agents.
///
/// # Errors
///
/// The errors of [`RenderSource::with_stories`].
pub fn facts_of(reading: &RenderSource, how: &RenderOptions<'_>) -> Result<Listing> {
    let Names { main, origin, .. } = names(reading, &[]);
    let name = main.stem().to_owned();
    let (facts, _) = reading.with_stories(
        how,
        |_| String::new(),
        |stories| stories.first().map(epitome_render::Facts::from_story),
    )?;
    Ok(Listing { name, facts: facts.unwrap_or_default(), origin, ..Listing::default() })
}

/// Rebuilds a folder's manifest and index from its pages, and from those entries of the earlier
/// manifest that have files which still exist.
///
/// # Errors
///
/// `Exists` if another program wrote the folder's manifest or index; `NewerFormat` if a newer
/// epitome wrote the manifest; the errors of reading and writing the folder.
pub fn rebuild_index(folder: &Path) -> Result<Index> {
    Ok(repair(folder, &mut |_| None)?.0)
}

/// Rebuilds a folder's manifest and index like [`rebuild_index`], and adds pages of another
/// program: `session` is called with the name of each subfolder that has a page called `index` and
/// no page of epitome, and returns the entry of the session. Also returns the number of subfolders
/// that were skipped: those with neither kind of page, and those for which `session` returns
/// `None`.
///
/// # Errors
///
/// `Exists` if another program wrote the folder's manifest or index; `NewerFormat` if a newer
/// epitome wrote the manifest; the errors of reading and writing the folder.
pub fn repair(
    folder: &Path,
    session: &mut dyn FnMut(&str) -> Option<Listing>,
) -> Result<(Index, u64)> {
    let entries = fs::read_dir(folder).map_err(|err| Error::reading(err, "the folder", folder))?;
    match ours(folder) {
        // A damaged manifest is what this function repairs.
        Err(err) if err.kind() != ErrorKind::Unreadable => return Err(err),
        Ok(_) | Err(_) => {}
    }
    let _lock = lock(folder)?;
    let mut folders: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .collect();
    folders.sort();
    let mut found = still_there(folder);
    pages(folder, "", &mut found);
    let mut left_out = 0;
    for name in folders {
        let prefix = format!("{name}/");
        pages(&folder.join(&name), &prefix, &mut found);
        let mut files = found.values().flat_map(|it| &it.files);
        if files.any(|file| file.starts_with(&prefix)) {
            continue;
        }
        let page = ["html", "jsonl", "json", "md"].into_iter().find_map(|extension| {
            let file = format!("{name}/index.{extension}");
            is_there(folder, &file).then_some(file)
        });
        match page.and_then(|page| Some((page, session(&name)?))) {
            Some((page, listing)) => {
                found.insert(listing.name.clone(), Listing { files: vec![page], ..listing });
            }
            None => left_out += 1,
        }
    }
    Ok((write_index(folder, Index::new(with_parts(found)))?, left_out))
}

/// Those entries of the earlier manifest that have files which still exist, by name. A sub-agent
/// has an entry of its own here, and not in the entry of its session.
fn still_there(folder: &Path) -> BTreeMap<String, Listing> {
    let mut found = BTreeMap::new();
    let known = manifest(folder).map(|it| it.sessions).unwrap_or_default();
    for mut listing in known {
        let sub_agents = std::mem::take(&mut listing.sub_agents);
        for mut listing in sub_agents.into_iter().chain([listing]) {
            listing.files.retain(|file| is_there(folder, file));
            if !listing.files.is_empty() {
                found.insert(listing.name.clone(), listing);
            }
        }
    }
    found
}

/// Adds the sessions whose pages are in a folder to `found`. `prefix` is put in front of the names
/// of the pages' files.
fn pages(folder: &Path, prefix: &str, found: &mut BTreeMap<String, Listing>) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    files.sort();
    for file in files.iter().filter(|file| file.ends_with(".html") && *file != INDEX) {
        let Some(facts) = facts_in(&folder.join(file)) else { continue };
        let name = file.trim_end_matches(".html").to_owned();
        let listing = found.entry(name.clone()).or_default();
        let others = files.iter().filter(|other| is_of(other, &name));
        let all = std::iter::once(file).chain(others);
        listing.files = all.map(|file| format!("{prefix}{file}")).collect();
        listing.name = name;
        listing.facts = facts;
    }
}

/// Moves sub-agents into the entries of their sessions: the name of a sub-agent begins with that of
/// its session and a dot. Without an entry of its session, a sub-agent is listed as a session.
fn with_parts(found: BTreeMap<String, Listing>) -> Vec<Listing> {
    let (mut sessions, parts): (Vec<Listing>, Vec<Listing>) =
        found.into_values().partition(|listing| !listing.name.contains('.'));
    for part in parts {
        let parent = part.name.split('.').next().unwrap_or_default();
        match sessions.iter_mut().find(|session| session.name == parent) {
            Some(session) => session.sub_agents.push(part),
            None => sessions.push(part),
        }
    }
    sessions
}

/// Locks a folder's manifest against other processes, so that no update is lost. The lock is on the
/// folder itself, so that no lock file is needed.
#[cfg(unix)]
#[cfg_attr(not(test), expect(clippy::disallowed_methods, reason = "a folder is opened"))]
fn lock(folder: &Path) -> Result<fs::File> {
    let failed = |err| Error::writing(err, "the manifest", folder);
    let file = fs::File::open(folder).map_err(failed)?;
    match file.lock() {
        // The file system does not support locks.
        Err(err) if err.kind() == std::io::ErrorKind::Unsupported => Ok(file),
        locked => locked.map(|()| file).map_err(failed),
    }
}

/// Does nothing: on other systems a folder cannot be opened as a file.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "as elsewhere")]
fn lock(_: &Path) -> Result<()> {
    Ok(())
}

/// Whether an address in a manifest is a relative path that stays below the folder of the manifest.
fn is_inside(file: &str) -> bool {
    let path = Path::new(file);
    let mut parts = path.components();
    // A text with a colon may be a URL.
    !file.is_empty()
        && !file.contains([':', '"', '<', '>'])
        && parts.all(|part| matches!(part, std::path::Component::Normal(_)))
}

fn is_there(folder: &Path, file: &str) -> bool {
    is_inside(file) && folder.join(file).is_file()
}

/// Whether a file is the session with this name in another form than HTML.
fn is_of(file: &str, name: &str) -> bool {
    let extension = file.strip_prefix(name).and_then(|rest| rest.strip_prefix('.'));
    extension.is_some_and(|extension| {
        let others = [RenderForm::Markdown, RenderForm::Json, RenderForm::Jsonl];
        others.iter().any(|other| other.extension() == extension)
    })
}

fn write_index(folder: &Path, index: Index) -> Result<Index> {
    let text = serde_json::to_string_pretty(&index).map_err(|err| {
        Error::new(ErrorKind::Broken, "the manifest cannot be written").because(err)
    })?;
    let mut text = epitome_render::inert_json(text);
    text.push('\n');
    for (name, text) in [(MANIFEST, text), (INDEX, index.page())] {
        let path = folder.join(name);
        write_over(&path, |out| {
            out.write_all(text.as_bytes()).map_err(|err| Error::writing(err, "the index", &path))
        })?;
    }
    Ok(index)
}

/// The sessions in a folder's manifest; empty if the folder has none.
///
/// # Errors
///
/// `Exists` if another program wrote the folder's manifest or index; `NewerFormat` if a newer
/// epitome wrote the manifest; `Unreadable` if the manifest is damaged; the errors of reading these
/// files.
pub(crate) fn ours(folder: &Path) -> Result<Vec<Listing>> {
    let index = folder.join(INDEX);
    let page = match regular::read(&index) {
        Ok(page) => Some(page),
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => None,
        Err(err) => return Err(Error::reading(err, "the index", &index)),
    };
    if page.is_some_and(|page| !is_index_page(&String::from_utf8_lossy(&page))) {
        return Err(foreign(&index));
    }
    let path = folder.join(MANIFEST);
    let text = match regular::read(&path) {
        Ok(text) => text,
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(err) => return Err(Error::reading(err, "the manifest", &path)),
    };
    let version = serde_json::from_slice::<serde_json::Value>(&text)
        .map(|value| value.get("epitome_manifest").map(|version| version.as_u64().unwrap_or(0)));
    let damaged = |err| {
        Error::new(ErrorKind::Unreadable, "the manifest is damaged")
            .at(&path)
            .because(err)
            .with_hint("`epitome manifest repair` rebuilds it")
    };
    match version {
        Ok(Some(1)) => Ok(serde_json::from_slice::<Index>(&text).map_err(damaged)?.sessions),
        Ok(Some(_)) => {
            Err(Error::new(ErrorKind::NewerFormat, "a newer epitome wrote the manifest").at(&path))
        }
        Ok(None) => Err(foreign(&path)),
        Err(err) => Err(damaged(err)),
    }
}

fn foreign(path: &Path) -> Error {
    Error::new(ErrorKind::Exists, "this file is not epitome's, and would be replaced")
        .at(path)
        .with_hint("choose another folder")
}

/// The files that epitome wrote in a folder: the manifest, the index, and the files whose names
/// begin with the name of a session in the manifest. It is assumed that no other program chooses
/// such names.
pub(crate) fn rendered_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(sessions) = ours(folder) else { return Vec::new() };
    let names: Vec<String> = sessions
        .iter()
        .flat_map(|session| std::iter::once(session).chain(&session.sub_agents))
        .map(|session| session.name.clone())
        .filter(|name| {
            FORMATS.iter().any(|format| {
                name.strip_prefix(format.name).is_some_and(|rest| rest.starts_with('-'))
            })
        })
        .collect();
    let is_ours = |file: &str| {
        FOLDER_FILES.contains(&file)
            || names.iter().any(|name| file.strip_prefix(name.as_str()).is_some_and(is_ending))
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .filter(|entry| entry.file_name().to_str().is_some_and(is_ours))
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files
}

/// Whether a text is what follows a session's name in the name of a file: `.html`, `-2.html`,
/// `.md`, `.json`, `.jsonl`.
fn is_ending(rest: &str) -> bool {
    let Some((number, extension)) = rest.rsplit_once('.') else { return false };
    let page = number.strip_prefix('-').unwrap_or_default();
    let is_number = !page.is_empty() && page.bytes().all(|byte| byte.is_ascii_digit());
    let is_page = is_number && extension == "html";
    is_page || number.is_empty() && ["html", "md", "json", "jsonl"].contains(&extension)
}

/// Reads the manifest of a folder. `None` if there is none, or if it cannot be read or is damaged.
pub(crate) fn manifest(folder: &Path) -> Option<Index> {
    serde_json::from_slice(&regular::read(&folder.join(MANIFEST)).ok()?).ok()
}

fn facts_in(page: &Path) -> Option<epitome_render::Facts> {
    use std::io::Read as _;

    let mut head = Vec::new();
    regular::open(page).ok()?.take(HEAD as u64).read_to_end(&mut head).ok()?;
    facts_of_page(&String::from_utf8_lossy(&head))
}
