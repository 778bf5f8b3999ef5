//! Carries out the planned compaction of one file: archives the removed bytes, proves that they can
//! be restored, and replaces the file. Each step begins only after the step before it has
//! succeeded. [`ops::Compact`](crate::ops::Compact) compacts a session of several files: it calls
//! `archive_generation` for each file, and replaces all files together.

mod size;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use epitome_model::{At, Block, Counter, Part, RepeatedOutput, Source, Span, Text};
use epitome_passes::View;
use tracing::{debug_span, info_span};

pub use epitome_engine::stored::{
    Note, PreparedCompaction, ReplacedItems, Saving, Savings, ShownEdit, Way,
};
pub use size::pack_len;

use crate::archive::{About, Archive, CompactionInfo, Digest, Draft, Generation, Hash, UndoData};
use crate::error::{Error, ErrorKind, Result};
use crate::reference::{GitObjects, Reference, blob_id};
use crate::restore::Blobs;
use crate::session::{Loaded, key_of};
use crate::source::{FileSource, Spliced, copy, if_read};
use crate::store::{self, write_new};

/// Applies a planned compaction to the session's file: archives the removed bytes, proves that they
/// can be restored, and replaces the file.
///
/// # Errors
///
/// `Invariant` if the result would violate an invariant of the format; `Refused` if the file is
/// compressed and the compaction does not only append to it; `Broken` if the archive would not
/// restore the session exactly; the errors of the archive and of replacing. The session is
/// unchanged then.
pub fn apply(
    planned: &PreparedCompaction<'_, &FileSource>,
    file: &store::LockedSession,
    archive: &Archive,
    counter: &dyn Counter,
    info: impl Into<CompactionInfo>,
) -> Result<Generation> {
    file.check_restorable(planned.spliced()?.splices())?;
    let generation = archive_generation(planned, file.path(), archive, counter, info.into())?;
    let spliced = planned.spliced()?;
    let _span = info_span!("session.replace", bytes = planned.bytes_after.0).entered();
    if let Err(err) = file.replace(|out| spliced.copy_to(out)) {
        archive.withdraw_if_unused(&generation, file.path());
        return Err(err);
    }
    archive.remove_repeated(&generation);
    Ok(generation)
}

/// Applies a planned compaction to a copy of the session at `to`. The session is unchanged.
///
/// # Errors
///
/// The errors of archiving, as for [`apply`]; `Exists` if there is a file at `to`; `Disk` or
/// `NoPermission` if the copy cannot be written.
pub fn apply_to(
    planned: &PreparedCompaction<'_, impl Source>,
    to: &Path,
    archive: &Archive,
    counter: &dyn Counter,
    info: impl Into<CompactionInfo>,
) -> Result<Generation> {
    let generation = archive_generation(planned, to, archive, counter, info.into())?;
    let spliced = planned.spliced()?;
    write_new(to, |out| spliced.copy_to(out)).inspect_err(|_| {
        // The copy is written whole or not at all. After an error there is no copy that needs the
        // generation.
        archive.withdraw(&generation);
    })?;
    Ok(generation)
}

/// The spans of the session that are no longer sent after the compaction, each with a description.
/// The fields `pass` and `reference` of the descriptions are empty.
pub fn removed_pieces<S: Source>(
    planned: &PreparedCompaction<'_, S>,
    counter: &dyn Counter,
) -> Vec<(Span, About)> {
    let Loaded { source, transcript, .. } = planned.session;
    let view = View::new(transcript, source, counter);
    let pieces = planned.unsent.iter();
    pieces.map(|(span, at)| (*span, describe(&view, *at, *span))).collect()
}

/// Writes the removed bytes to the archive and proves that they can be restored. If the session
/// cannot be read, the error of that read is returned, not an error that follows from it.
pub(crate) fn archive_generation<S: Source>(
    planned: &PreparedCompaction<'_, S>,
    path: &Path,
    archive: &Archive,
    counter: &dyn Counter,
    info: CompactionInfo,
) -> Result<Generation> {
    let references = References::from_session(planned.session);
    let done = archive_and_prove(planned, path, archive, counter, info, &references);
    if_read(&planned.session.source, done)
}

/// Like [`archive_generation`], for a session that is not a file on this machine. This function
/// does not look for files that contain a removed text: such files differ from machine to machine,
/// and every machine must make the same pack.
pub(crate) fn archive_elsewhere<S: Source>(
    planned: &PreparedCompaction<'_, S>,
    path: &Path,
    archive: &Archive,
    counter: &dyn Counter,
    info: CompactionInfo,
) -> Result<Generation> {
    let references = References { cwd: None, git: None };
    let done = archive_and_prove(planned, path, archive, counter, info, &references);
    if_read(&planned.session.source, done)
}

/// Like [`archive_generation`], but if the session cannot be read, the returned error may be one
/// that only follows from the failed read.
fn archive_and_prove<S: Source>(
    planned: &PreparedCompaction<'_, S>,
    path: &Path,
    archive: &Archive,
    counter: &dyn Counter,
    info: CompactionInfo,
    references: &References,
) -> Result<Generation> {
    planned.check_invariants(path)?;
    let format = planned.session.format.name;
    let _span = debug_span!("session.archive", format, edits = planned.plan.edits.len()).entered();
    let key = key_of(planned.session, path);
    let spliced = planned.spliced()?;
    let undo_data = UndoData::between(&planned.session.source, &spliced)?;
    let mut pack = archive.begin(&key)?;
    let source = &planned.session.source;
    put_all(planned, counter, references, |span, about| {
        pack.put(&source.at(span), about()).map(drop)
    })?;
    // If a read failed, the pack has other bytes than the session, and must not be kept.
    if_read(source, Ok(()))?;
    let generation = pack.commit(draft(planned, path, undo_data, info))?;
    if let Err(err) = prove(&spliced, &generation, &archive.blobs(&key)) {
        archive.withdraw(&generation);
        return Err(err);
    }
    Ok(generation)
}

/// The values from which the generation of a planned compaction is written to the archive.
fn draft<S>(
    planned: &PreparedCompaction<'_, S>,
    path: &Path,
    undo_data: UndoData,
    info: CompactionInfo,
) -> Draft {
    let by_pass = planned.plan.by_pass().into_iter();
    Draft {
        // The path must be absolute: `gc` is run in other folders, and checks whether the file
        // still exists.
        path: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
        recipe: planned.recipe.name.clone(),
        made: info.at,
        run: info.run,
        part_of: info.part_of,
        parts: info.parts,
        before: undo_data.before,
        after: undo_data.after,
        records: undo_data.records,
        tokens_before: planned.plan.tokens_before,
        tokens_after: planned.tokens_after,
        edits: by_pass.map(|(pass, n)| (pass.to_owned(), n)).collect(),
        shared: Some(undo_data.shared),
    }
}

/// Calls `put` for each range of bytes that the pack must contain, with its span and a function
/// that describes it.
fn put_all<S: Source>(
    planned: &PreparedCompaction<'_, S>,
    counter: &dyn Counter,
    references: &References,
    mut put: impl FnMut(Span, &dyn Fn() -> About) -> Result<()>,
) -> Result<()> {
    let Loaded { source, transcript, .. } = planned.session;
    let view = View::new(transcript, source, counter);
    let passes: HashMap<At, &str> =
        planned.plan.edits.iter().map(|it| (it.edit.at, it.edit.pass)).collect();
    for (span, at) in &planned.unsent {
        put(*span, &|| About {
            pass: passes.get(at).copied().unwrap_or_default().to_owned(),
            reference: references.find(&view, *at),
            ..describe(&view, *at, *span)
        })?;
    }
    // A compaction in the agent's own way, or with a summary, also appends a record to the session
    // or puts marks into records. The pack must contain the bytes that these replace: an empty span
    // at the end of the session, or an old mark.
    let end = Source::len(source);
    let added = planned
        .splices
        .iter()
        .filter(|(splice, _)| planned.way != Way::Rewrite || splice.span.start == end);
    for (splice, _) in added {
        let at_end = splice.span.start == end;
        let what = if at_end { "the end of the session" } else { "where a mark is" };
        put(splice.span, &|| About { what: what.into(), ..About::default() })?;
    }
    Ok(())
}

/// Describes removed bytes, for `epitome show`: the kind of content, its line in the session, the
/// positions of the texts in the bytes and, for an image, its media type.
fn describe(view: &View<'_>, at: At, span: Span) -> About {
    let item = &view.transcript.items[at.item()];
    let mut spans: Vec<Span> = Vec::new();
    let mut media = None;
    let block = |idx: usize| item.entry().and_then(|entry| entry.blocks.get(idx));
    match at {
        At::Block { block: idx, .. } => match block(idx) {
            Some(Block::Output(output) | Block::Repeated(RepeatedOutput { output, .. })) => {
                spans.extend(output.parts.iter().filter_map(|part| match part {
                    Part::Text(text) => text.span(),
                    Part::Image(_) | Part::Opaque(_) => None,
                }));
            }
            Some(Block::Thinking(thinking)) => {
                spans.extend(thinking.text.iter().filter_map(Text::span));
            }
            Some(Block::Image(image)) => {
                media = Some(image.media.to_string());
                spans.push(image.data);
            }
            Some(_) | None => {}
        },
        At::Field { block: idx, field, .. } => {
            if let Some(Block::Call(call)) = block(idx) {
                spans.extend(call.fields.get(field).and_then(|field| field.text.span()));
            }
        }
        At::Part { block: idx, part, .. } => {
            if let Some(Block::Output(output)) = block(idx)
                && let Some(Part::Image(image)) = output.parts.get(part)
            {
                media = Some(image.media.to_string());
                spans.push(image.data);
            }
        }
        At::Items { .. } | At::HiddenField { .. } => {}
    }
    let texts = spans
        .into_iter()
        .filter(|text| span.contains(*text))
        .filter_map(|text| {
            let start = u32::try_from(text.start - span.start).ok()?;
            Some((start, u32::try_from(text.end - span.start).ok()?))
        })
        .collect();
    let line = item.record().line;
    About { what: view.describe(at), line, texts, media, ..About::default() }
}

/// Puts the archived bytes back into the compacted session, and compares the hash of the result
/// with that of the session before the compaction.
fn prove(spliced: &Spliced<'_>, generation: &Generation, blobs: &dyn Blobs) -> Result<()> {
    let mut hasher = blake3::Hasher::new();
    let mut from = 0;
    for record in &generation.records {
        for splice in &record.splices {
            let at = record.at + splice.at;
            copy(spliced, from..at, &mut hasher)?;
            let blob = blobs.blob(generation.number, &splice.blob)?;
            hasher.update(&blob);
            from = at + splice.len;
        }
    }
    copy(spliced, from..Source::len(spliced), &mut hasher)?;
    let restored = Digest { len: hasher.count(), blake3: hasher.finalize().into() };
    if restored == generation.before {
        return Ok(());
    }
    let what = "the archive would not give the session back as it is; nothing was changed";
    Err(Error::new(ErrorKind::Broken, what))
}

/// Finds files that contain the same text as removed bytes, on disk or in the project's git
/// repository.
struct References {
    cwd: Option<PathBuf>,
    git: Option<GitObjects>,
}

impl References {
    fn from_session<S>(session: &Loaded<S>) -> References {
        let cwd = session.transcript.head.cwd.as_deref().map(PathBuf::from);
        let cwd = cwd.filter(|cwd| cwd.is_absolute() && cwd.is_dir());
        let git = cwd.as_deref().and_then(|cwd| GitObjects::around(&cwd.join("a file")));
        References { cwd, git }
    }

    fn find(&self, view: &View<'_>, at: At) -> Option<Reference> {
        // If the project's folder is unknown or not on this machine, there are no files to compare
        // with.
        let cwd = self.cwd.as_deref()?;
        let (path, text) = view.file_text(at)?;
        let path = cwd.join(path);
        Reference::find(&text, &path).or_else(|| self.in_git(&path, text))
    }

    /// A reference to a whole file in git's object store, whether the file on disk still has this
    /// text or not. Agents show files with and without the last line feed, so both are tried.
    fn in_git(&self, path: &Path, text: String) -> Option<Reference> {
        let git = self.git.as_ref()?;
        [format!("{text}\n"), text].into_iter().find_map(|text| {
            let blob = blob_id(text.as_bytes());
            git.hold(&blob).then(|| Reference {
                path: path.to_string_lossy().into_owned(),
                blob: Some(blob),
                first_line: None,
                lines: None,
                blake3: Hash::compute(text.as_bytes()),
            })
        })
    }
}
