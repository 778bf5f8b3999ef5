//! Carries over bytes that other programs still write to a file that was replaced.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use epitome_model::{Bytes, Source};

use super::disk::Temp;
use super::{stamp_of, stamp_of_open, take_after, users};
use crate::regular;
use crate::source::{CHUNK, FileSource};
use crate::step::{DiskStep, step};
use epitome_error::{Error, Result};

/// How long to wait, at most, for a process with a replaced file open to write to it and close it.
/// A process that keeps the file open for longer had probably opened it before the check for open
/// files; the user has then overridden that check with `--force`.
const PATIENCE: Duration = Duration::from_secs(2);

/// How many times inserting bytes is tried. A try fails if another program writes to the file
/// meanwhile.
const TRIES: usize = 4;

/// The hint if bytes cannot be carried over. The usual hint, that nothing was changed, would be
/// wrong: the session was already replaced.
const WRITTEN: &str = "the session itself is written, and `epitome restore` takes that back; see \
                       whether what the agent wrote in these seconds is at its end";

/// The pause between two checks of the replaced files.
const PAUSE: Duration = Duration::from_millis(1);

/// Carries over bytes that are written to replaced files.
///
/// Agents open a session, write a record and close it. An agent that opened the session just before
/// the replacement writes to the old file, and its next record perhaps to the new one. So
/// carried-over bytes belong between what epitome wrote and what the agent has written to the new
/// file.
pub(super) struct Carry<'a> {
    path: &'a Path,
    /// The replaced files, in the order in which they were at the path.
    olds: Vec<Old<'a>>,
    carried: Bytes,
}

/// A file that was replaced.
struct Old<'a> {
    file: Held<'a>,
    /// The number of bytes of the file that are in the new file.
    seen: u64,
    /// The offset in the new file at which the next bytes of this file belong.
    at: u64,
}

/// An open file that was replaced: the session's, or one that epitome had put in its place.
enum Held<'a> {
    First(&'a FileSource),
    Later(FileSource),
}

impl Held<'_> {
    fn source(&self) -> &FileSource {
        match self {
            Held::First(source) => source,
            Held::Later(source) => source,
        }
    }
}

impl<'a> Carry<'a> {
    /// Begins after a replacement: the first `seen` bytes of `old` became a file of `len` bytes at
    /// `path`.
    pub(super) fn new(path: &'a Path, old: &'a FileSource, seen: u64, len: u64) -> Carry<'a> {
        let first = Old { file: Held::First(old), seen, at: len };
        Carry { path, olds: vec![first], carried: Bytes(0) }
    }

    /// Carries over what has been written to the replaced files so far.
    ///
    /// # Errors
    ///
    /// An error if the disk fails.
    pub(super) fn now(&mut self) -> Result<()> {
        let failed = |err| {
            let what = "what the agent appended meanwhile to the session";
            Error::writing(err, what, self.path).with_hint(WRITTEN)
        };
        for idx in 0..self.olds.len() {
            let Old { file, seen, at } = &self.olds[idx];
            let seen = *seen;
            let at = *at;
            let len = file.source().metadata().map_err(failed)?.len();
            if len <= seen {
                continue;
            }
            let late = file.source().read_now(seen..len).map_err(failed)?;
            let many = late.len() as u64;
            let options = &mut File::options();
            let mut new = regular::open_with(options.append(true), self.path).map_err(failed)?;
            let grown = new.metadata().map_err(failed)?.len() > at;
            let mut inserted = None;
            if grown {
                inserted = (0..TRIES).find_map(|_| self.insert(at, &late).ok().flatten());
            }
            match inserted {
                Some(file) => {
                    self.olds[idx..].iter_mut().for_each(|old| old.at += many);
                    let seen = file.len();
                    self.olds.push(Old { file: Held::Later(file), seen, at: seen + many });
                }
                // If no bytes follow, the late ones are appended. If inserting failed, they are
                // appended, too, because that is better than losing them.
                None => {
                    new.write_all(&late).and_then(|()| new.sync_all()).map_err(failed)?;
                    let end = new.metadata().map_err(failed)?.len();
                    self.olds[idx..].iter_mut().for_each(|old| old.at = end);
                }
            }
            self.olds[idx].seen += many;
            self.carried += Bytes(many);
        }
        Ok(())
    }

    /// Replaces the session's file by a copy of it with `late` inserted at `at`, and returns the
    /// old file. Returns `None`, and replaces nothing, if another program writes to the file while
    /// it is copied.
    fn insert(&self, at: u64, late: &[u8]) -> Result<Option<FileSource>> {
        let failed = |err| Error::writing(err, "the session", self.path);
        let was = FileSource::open(self.path)?;
        let stamp = stamp_of_open(&was)?;
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let mut temp = Temp::create(folder).map_err(failed)?;
        copy(&was, 0, at, &mut temp).map_err(failed)?;
        temp.write_all(late).map_err(failed)?;
        copy(&was, at, was.len(), &mut temp).map_err(failed)?;
        if let Some(err) = was.failure() {
            return Err(err);
        }
        take_after(&was.metadata().map_err(failed)?, temp.file()).map_err(failed)?;
        temp.flush_to_disk().map_err(failed)?;
        if was.len() != stamp.len || stamp_of(self.path)? != stamp {
            return Ok(None);
        }
        temp.place_over(self.path).map_err(failed)?;
        Ok(Some(was))
    }

    /// Carries over bytes until no process has an old file open, but for at most about two seconds,
    /// and for at least `grace`: a process that is about to open an old file cannot be seen.
    /// Returns the number of bytes that were carried over.
    ///
    /// # Errors
    ///
    /// An error if the disk fails.
    pub(super) fn until_closed(mut self, grace: Duration) -> Result<Bytes> {
        let began = Instant::now();
        loop {
            step(DiskStep::Look).ok();
            // This is checked before the files are read, so that the read finds everything that was
            // written by a process that has closed its file by now.
            let waited = began.elapsed();
            let done = waited >= PATIENCE || waited >= grace && !self.is_open();
            let olds = self.olds.len();
            self.now()?;
            // A file that `now` has just replaced was not checked for late bytes.
            if done && olds == self.olds.len() {
                return Ok(self.carried);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Whether a process has one of the old files open.
    fn is_open(&self) -> bool {
        self.olds.iter().any(|old| {
            let meta = old.file.source().metadata();
            meta.is_ok_and(|meta| !users::users_of_replaced(self.path, &meta).is_empty())
        })
    }
}

fn copy(source: &FileSource, mut from: u64, to: u64, out: &mut Temp) -> io::Result<()> {
    while from < to {
        let next = to.min(from + CHUNK);
        out.write_all(&source.read(from..next))?;
        from = next;
    }
    Ok(())
}
