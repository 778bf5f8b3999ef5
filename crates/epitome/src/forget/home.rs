//! The files below the home of epitome.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use epitome_model::Bytes;
use epitome_store::forgotten::ForgottenText;

use super::Proof;
use crate::archive::{GcMode, each_piece};
use crate::backup::is_backup;
use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::regular;
use crate::store::disk;

/// The name of the database of a search index. Texts in its tables cannot be changed in place, so
/// the index is deleted and computed again.
const INDEX: &str = "index.db";
/// The bytes with which every pack begins.
const PACK: &[u8] = b"EPITPACK";

/// The files below the home of epitome, such as caches, logs and pages, except those of the
/// archive, the vault and the locks. Whole copies of sessions in the folder of the archive are
/// included.
pub(super) fn loose_files(config: &Config) -> Result<Vec<PathBuf>> {
    let mut files = files_below(&config.home)?;
    let packed = ["archive", "vault", "locks"].map(|name| config.home.join(name));
    files.retain(|file| is_backup(file) || packed.iter().all(|folder| !file.starts_with(folder)));
    Ok(files)
}

/// The temporary files that killed processes of epitome left in the folders of these files of
/// sessions. With [`GcMode::Remove`] they are removed.
pub(super) fn leftovers(files: &[PathBuf], mode: GcMode) -> Vec<PathBuf> {
    let folders: BTreeSet<&Path> = files.iter().filter_map(|file| file.parent()).collect();
    let left = folders.into_iter().flat_map(|folder| disk::sweep(folder, mode));
    left.map(|leftover| leftover.path).collect()
}

/// Returns an error if a text is where it cannot be masked: in the name of a file of the archive,
/// the vault or the locks, in the content of such a file that is not a pack, or in the bytes with
/// which every pack begins.
pub(super) fn check_records(config: &Config, text: &ForgottenText) -> Result<()> {
    for folder in ["archive", "vault", "locks"] {
        let files = files_below(&config.home.join(folder))?.into_iter();
        for file in files.filter(|file| !is_backup(file)) {
            let name = file.strip_prefix(&config.home).unwrap_or(&file).to_string_lossy();
            let bytes = read(&file)?;
            // Packs are masked in another way, so they are not checked here. A file that begins
            // like a pack but is incomplete, because its process was killed, is deleted before
            // anything is masked.
            let is_note = !bytes.starts_with(PACK);
            if text.is_in(PACK) || text.is_in(name.as_bytes()) || is_note && text.is_in(&bytes) {
                return Err(text.in_records(&name));
            }
        }
    }
    Ok(())
}

/// Whether a file is in a cache, and can be computed again.
pub(super) fn is_cache(config: &Config, file: &Path) -> bool {
    file.starts_with(config.home.join("cache"))
}

/// The folders of search indexes.
pub(super) fn search_indexes(config: &Config) -> Result<Vec<PathBuf>> {
    let files = files_below(&config.home.join("cache"))?;
    let indexes = files.iter().filter(|file| file.file_name().is_some_and(|name| name == INDEX));
    Ok(indexes.filter_map(|file| file.parent()).map(Path::to_owned).collect())
}

/// Deletes search indexes.
pub(super) fn delete_indexes(config: &Config) -> Result<()> {
    for folder in search_indexes(config)? {
        fs::remove_dir_all(&folder).map_err(|err| failed(err, &folder))?;
    }
    Ok(())
}

/// Deletes a file. It is no error if the file does not exist any more.
pub(super) fn delete(file: &Path) -> Result<()> {
    match fs::remove_file(file) {
        Err(err) if err.kind() != std::io::ErrorKind::NotFound => Err(failed(err, file)),
        _ => Ok(()),
    }
}

/// The bytes of a file. Empty if the file does not exist any more.
pub(super) fn read(file: &Path) -> Result<Vec<u8>> {
    match regular::read(file) {
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read.map_err(|err| Error::reading(err, "the file", file)),
    }
}

/// Masks a text in a file, and returns how often the text was found. The file is changed in place,
/// so that a process which appends to it can continue.
pub(super) fn mask(file: &Path, text: &ForgottenText) -> Result<u64> {
    mask_in_place(file, text).map_err(|err| failed(err, file))
}

fn mask_in_place(path: &Path, text: &ForgottenText) -> std::io::Result<u64> {
    let mut file = regular::open_with(fs::OpenOptions::new().read(true).write(true), path)?;
    file.lock()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let found = text.find(&bytes);
    let before = bytes.clone();
    for place in &found {
        place.mask_in(&mut bytes, 0);
    }
    for place in &found {
        let start = usize::try_from(place.range.start).unwrap_or(usize::MAX);
        let end = usize::try_from(place.range.end).unwrap_or(usize::MAX);
        if bytes[start..end] != before[start..end] {
            file.seek(SeekFrom::Start(place.range.start))?;
            file.write_all(&bytes[start..end])?;
        }
    }
    file.sync_all()?;
    Ok(found.len() as u64)
}

/// Reads every file below the home of epitome, except those in `skip`, and passes its bytes to
/// `is_left`. Of a pack, the decompressed texts are passed, too.
///
/// # Errors
///
/// `Archive` if `is_left` returns true: the error names the file. The errors of reading files.
pub(super) fn prove(
    config: &Config,
    skip: &[PathBuf],
    is_left: impl Fn(&Path, &[u8]) -> bool,
) -> Result<Proof> {
    let mut proof = Proof::default();
    for file in files_below(&config.home)? {
        if skip.contains(&file) {
            continue;
        }
        let bytes = read(&file)?;
        let mut found = is_left(&file, &bytes);
        proof.files += 1;
        proof.bytes += Bytes(bytes.len() as u64);
        if bytes.starts_with(PACK) {
            each_piece(&file, |piece| {
                proof.bytes += Bytes(piece.len() as u64);
                found |= is_left(&file, piece);
            })?;
        }
        if found {
            let what = "what was to be forgotten is still here";
            return Err(Error::new(ErrorKind::Archive, what).at(&file).with_hint(
                "a process may have written it again: stop `keep`, `watch`, `proxy` and `serve`, \
                 and repeat this",
            ));
        }
    }
    Ok(proof)
}

/// All files below a folder, sorted. Links are not followed.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => continue,
            listed => listed.map_err(|err| Error::reading(err, "the folder", &folder))?,
        };
        for entry in entries {
            let entry = entry.map_err(|err| Error::reading(err, "the folder", &folder))?;
            let kind = entry.file_type();
            let kind = kind.map_err(|err| Error::reading(err, "the folder", &folder))?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

fn failed(err: std::io::Error, path: &Path) -> Error {
    Error::writing(err, "the file", path)
}
