//! Every session of this machine, and what compacting it would save.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use epitome_formats::Format;
use epitome_model::{Tokens, weigh};
use epitome_passes::{Options, Recipe, compact};
use epitome_tokens::Estimate;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::archive::{Digest, Hash, SessionKey};
use crate::config::Config;
use crate::error::Result;
use crate::find::SessionFile;
use crate::place::Place;
use crate::regular;
use crate::rows::{self, Told};
use crate::session::Loaded;
use crate::source::FileSource;
use crate::store::disk;

/// A session and what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The file.
    pub file: SessionFile,
    /// What it says, or why it cannot be read.
    pub seen: std::result::Result<Glance, String>,
    /// How often it was compacted.
    pub compactions: u64,
}

impl Listed {
    /// Whether it is compacted now.
    pub fn is_compacted(&self) -> bool {
        self.compactions > 0 && !self.seen.as_ref().is_ok_and(|seen| seen.restored)
    }
}

/// What a session says at a glance. Tokens are estimated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Glance {
    /// Its id.
    pub id: String,
    /// The folder it was run in.
    pub cwd: Option<String>,
    /// Its name, or how it begins.
    pub title: Option<String>,
    /// What a resume would send; of a session that is not read for the list, as its agent counted
    /// it, if it did.
    pub context: Option<Tokens>,
    /// What compacting would save of that.
    pub saving: Tokens,
    /// Whether it begins, to the byte, with what a compaction found: it was given back since.
    pub restored: bool,
    /// Its name in the archive.
    key: SessionKey,
}

/// Looks at `files`, on all cores. What was seen before is not read again, unless the file, the
/// recipe or epitome changed. The answer stands in the order of `files`.
pub fn list(config: &Config, files: Vec<SessionFile>, recipe: &Recipe) -> Vec<Listed> {
    let path = config.list_cache();
    let mut cache = Cache::load(&path, recipe);
    let listed: Vec<(Listed, Option<(String, Seen)>)> = files
        .into_par_iter()
        .map(|mut file| {
            if let Some(told) = file.told.take() {
                let seen = Ok(glance(&file, told));
                return (Listed { file, seen, compactions: 0 }, None);
            }
            let stamp = Stamp::of(&file);
            let name = file.path.to_string_lossy().into_owned();
            let known = cache.seen.get(&name).filter(|seen| seen.stamp == stamp);
            let (seen, new) = match known {
                Some(seen) => (seen.seen.clone(), None),
                None => {
                    let seen = look(config, &file.path, recipe);
                    (seen.clone(), Some((name, Seen { stamp, seen })))
                }
            };
            let compactions = seen.as_ref().map_or(0, |seen| compactions(config, &seen.key));
            (Listed { file, seen, compactions }, new)
        })
        .collect();
    let mut changed = false;
    let listed = listed
        .into_iter()
        .map(|(listed, new)| {
            changed |= new.is_some();
            cache.seen.extend(new);
            listed
        })
        .collect();
    if changed {
        // A list is right without its cache.
        cache.store(&path).ok();
    }
    listed
}

/// What is known of `files` without reading any of them: what was seen before of those that did not
/// change. The answer stands in the order of `files`.
pub fn known(config: &Config, files: &[SessionFile], recipe: &Recipe) -> Vec<Option<Listed>> {
    let cache = Cache::load(&config.list_cache(), recipe);
    let known = files.par_iter().map(|file| {
        let name = file.path.to_string_lossy();
        let known = cache.seen.get(&*name).filter(|seen| seen.stamp == Stamp::of(file))?;
        let seen = known.seen.clone();
        let compactions = seen.as_ref().map_or(0, |seen| compactions(config, &seen.key));
        Some(Listed { file: file.clone(), seen, compactions })
    });
    known.collect()
}

fn look(config: &Config, path: &Path, recipe: &Recipe) -> std::result::Result<Glance, String> {
    let session = Loaded::open(path, None).map_err(|err| reason(&err))?;
    let Loaded { format, source, transcript, .. } = &session;
    let counter = Estimate::new();
    let writable = session.writer().and_then(|_| Place::of(path).check_writable());
    let (context, saving) = match writable {
        Ok(()) => {
            let options =
                Options { counter: &counter, thinking_is_bound: bound_in(format), counted: &[] };
            let planned = compact(transcript, source, recipe, &options);
            (planned.tokens_before, planned.edits.iter().map(|edit| edit.tokens).sum())
        }
        // What is only read saves nothing.
        Err(_) => (weigh(transcript, source, &counter).total(), Tokens(0)),
    };
    if let Some(failure) = source.failure() {
        return Err(reason(&failure));
    }
    let key = session.key(path);
    let restored = compactions(config, &key) > 0 && is_restored(config, &key, source);
    Ok(Glance {
        id: transcript.head.id.as_deref().unwrap_or(&key.id).to_owned(),
        cwd: transcript.head.cwd.as_deref().map(str::to_owned),
        title: transcript.head.title.as_deref().map(str::to_owned),
        context: Some(context),
        saving,
        restored,
        key,
    })
}

/// Whether a session begins with what its first compaction found. What cannot be told is no.
fn is_restored(config: &Config, key: &SessionKey, source: &FileSource) -> bool {
    let Ok(generations) = config.archive().generations(key) else { return false };
    let first = generations.whole.iter().find(|it| !it.is_way_back()).map(|it| it.before);
    let Some(before) = first else { return false };
    Digest::of_prefixes(source, &[before.len]).is_ok_and(|found| found == [before])
}

/// What a database says of a session that is only read.
fn glance(file: &SessionFile, told: Told) -> Glance {
    let Told { title, cwd, context } = told;
    let key = SessionKey::new(file.agent, file.id.clone());
    Glance { id: file.id.clone(), cwd, title, context, saving: Tokens(0), restored: false, key }
}

/// The deepest cause: the rest says which file, and that is known.
fn reason(err: &crate::error::Error) -> String {
    let mut deepest: &dyn std::error::Error = err;
    while let Some(cause) = deepest.source() {
        deepest = cause;
    }
    let path = err.path().map(|path| format!(": {}", path.display())).unwrap_or_default();
    deepest.to_string().trim_end_matches(&path).to_owned()
}

fn bound_in(format: &Format) -> fn(&str) -> bool {
    format.thinking_is_bound
}

/// The packs of a session, without opening them.
fn compactions(config: &Config, key: &SessionKey) -> u64 {
    let Ok(entries) = fs::read_dir(config.archived(key)) else { return 0 };
    let is_pack = |path: PathBuf| path.extension().is_some_and(|extension| extension == "pack");
    entries.flatten().filter(|entry| is_pack(entry.path())).count() as u64
}

/// What tells that a file is what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    size: u64,
    /// Nanoseconds since 1970.
    modified: u64,
}

impl Stamp {
    fn of(file: &SessionFile) -> Stamp {
        let since = file.modified.duration_since(UNIX_EPOCH).unwrap_or_default();
        let modified = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        Stamp { size: file.size.0, modified }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Seen {
    #[serde(flatten)]
    stamp: Stamp,
    seen: std::result::Result<Glance, String>,
}

/// What was seen, by path. Of another recipe or another epitome it says nothing.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Cache {
    epitome: String,
    recipe: String,
    seen: HashMap<String, Seen>,
}

impl Cache {
    fn load(path: &Path, recipe: &Recipe) -> Cache {
        let settings = serde_json::to_vec(recipe).unwrap_or_default();
        let (epitome, recipe) = (env!("CARGO_PKG_VERSION").to_owned(), Hash::of(&settings));
        let empty = Cache { epitome, recipe: recipe.to_string(), seen: HashMap::new() };
        let stored: Option<Cache> =
            regular::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let of_ours = |it: &Cache| it.epitome == empty.epitome && it.recipe == empty.recipe;
        stored.filter(of_ours).unwrap_or(empty)
    }

    /// Written beside and moved there: two lists at once leave one or the other.
    fn store(mut self, path: &Path) -> Result<()> {
        self.seen.retain(|path, _| {
            let path = Path::new(path);
            path.exists() || rows::split(path).is_some_and(|(database, _)| database.exists())
        });
        let bytes = serde_json::to_vec(&self).unwrap_or_default();
        if let Some(folder) = path.parent() {
            disk::private_folder(folder)?;
        }
        crate::store::write_over(path, |out| Ok(out.write_all(&bytes)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_told_without_reading() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut config = Config::of_home(dir.path());
        config.home = dir.path().join("epitome");
        fs::create_dir(dir.path().join("s")).expect("a folder");
        let path = dir.path().join("s/a.jsonl");
        fs::write(&path, fixtures::get("pi", "pricing").bytes()).expect("a file");
        let recipe = epitome_passes::built_in("epitome").expect("a recipe");
        let files = || crate::find::below(&dir.path().join("s"));
        assert_eq!(known(&config, &files(), &recipe), [None]);
        let listed = list(&config, files(), &recipe);
        assert_eq!(known(&config, &files(), &recipe), [Some(listed[0].clone())]);
        let found = files();
        fs::remove_file(&path).expect("it was there");
        assert_eq!(known(&config, &found, &recipe), [Some(listed[0].clone())]);
        let grown = SessionFile { size: epitome_model::Bytes(1), ..found[0].clone() };
        assert_eq!(known(&config, &[grown], &recipe), [None]);
    }

    #[test]
    fn what_was_seen_is_known_the_next_time() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("cache/list.json");
        let session = dir.path().join("s.jsonl");
        fs::write(&session, "x").expect("a file");
        let recipe = epitome_passes::built_in("epitome").expect("a recipe");
        let mut cache = Cache::load(&path, &recipe);
        let stamp = Stamp { size: 1, modified: u64::MAX };
        let unreadable = Err("this is no session".to_owned());
        let name = session.to_string_lossy().into_owned();
        cache.seen.insert(name.clone(), Seen { stamp, seen: unreadable.clone() });
        cache.store(&path).expect("it can be written");
        let seen = &Cache::load(&path, &recipe).seen[&name];
        assert_eq!((seen.stamp, &seen.seen), (stamp, &unreadable));
        let other = epitome_passes::built_in("gitclaw").expect("a recipe");
        assert!(Cache::load(&path, &other).seen.is_empty());
    }
}
