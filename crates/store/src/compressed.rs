//! Session files that an agent keeps compressed: `rollout-….jsonl.zst` of Codex.
//!
//! Reading decompresses into an unnamed temporary file. A zstd file is a sequence of frames
//! (<https://datatracker.ietf.org/doc/html/rfc8878#section-3>), and writing keeps the frames before
//! the first change. So appended text becomes a frame of its own, and removing it again leaves the
//! file as it was, to the byte.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};

use epitome_model::{Bytes, Source};
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use crate::source::{CHUNK, FileSource, copy, each_chunk, if_read};
use epitome_error::{Error, ErrorKind, Result};

/// The first bytes of a frame.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The maximum length of the decompressed bytes. A file that exceeds it may have been made to fill
/// the disk.
pub const LIMIT: Bytes = Bytes(1 << 30);

/// The compression level: the default of zstd.
const LEVEL: i32 = 3;

/// The offset at which a frame ends, in the compressed bytes and in the plain bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Frame {
    end: u64,
    plain: u64,
}

/// The frames of a compressed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frames(Vec<Frame>);

/// Whether a file begins with the magic number of zstd.
///
/// # Errors
///
/// The error of reading the file.
pub fn is_compressed(file: &FileSource) -> Result<bool> {
    let is_magic = file.len() >= MAGIC.len() as u64 && *file.read(0..MAGIC.len() as u64) == MAGIC;
    if_read(file, Ok(is_magic))
}

/// Decompresses a file. Returns the plain bytes, in an unnamed temporary file, and the frames of
/// the compressed file.
///
/// # Errors
///
/// `Unreadable` if the file is damaged, incomplete, or longer than `limit` when decompressed;
/// `Disk` if the plain bytes cannot be written; the errors of reading the file.
pub fn open(file: &FileSource, limit: Bytes) -> Result<(FileSource, Frames)> {
    let unreadable = |what: &str| Error::new(ErrorKind::Unreadable, what).at(file.path());
    let damaged = |err: io::Error| unreadable("the compressed session is damaged").because(err);
    let failed = |err| Error::writing(err, "what is compressed", file.path());
    let mut out = BufWriter::new(tempfile::tempfile().map_err(failed)?);
    let mut decoder = Decoder::new().map_err(damaged)?;
    let mut buffer = vec![0; 1 << 17];
    let mut frames = Vec::new();
    let mut at = Frame::default();
    let mut in_frame = false;
    each_chunk(file, 0..file.len(), |bytes| {
        let mut input = InBuffer::around(bytes);
        loop {
            let read = input.pos();
            let mut output = OutBuffer::around(&mut buffer[..]);
            // Inside a frame the loop continues even without input: the decoder may still hold
            // output.
            if !in_frame && read == bytes.len() {
                return Ok(());
            }
            let hint = decoder.run(&mut input, &mut output).map_err(damaged)?;
            let plain = output.as_slice();
            at.end += (input.pos() - read) as u64;
            at.plain += plain.len() as u64;
            if at.plain > limit.0 {
                let what = format!("the compressed session holds more than {limit}");
                return Err(unreadable(&what).with_hint("no agent writes such a session"));
            }
            out.write_all(plain).map_err(failed)?;
            in_frame = hint != 0;
            if !in_frame {
                frames.push(at);
                decoder.reinit().map_err(damaged)?;
            } else if input.pos() == read && plain.is_empty() {
                // The decoder needs more input.
                return Ok(());
            }
        }
    })?;
    if in_frame {
        return Err(unreadable("the compressed session is torn: its end is missing"));
    }
    let plain = out.into_inner().map_err(|err| failed(err.into_error()))?;
    Ok((FileSource::new(plain, file.path())?, Frames(frames)))
}

/// Compresses `after`, which replaces `before`. Returns how many bytes at the beginning of the
/// compressed file are kept, and the bytes that then follow them.
///
/// # Errors
///
/// `Changed` if a source returns fewer bytes than its length; `Broken` if decompressing the result
/// does not give `after`.
pub fn compress(
    frames: &Frames,
    before: &dyn Source,
    after: &dyn Source,
) -> Result<(u64, Vec<u8>)> {
    let same = common(before, after);
    // Frames that end within the common prefix are kept, even an empty frame at the end of it.
    let kept = frames.0.iter().rfind(|frame| frame.plain <= same).copied().unwrap_or_default();
    if kept.plain == after.len() {
        return Ok((kept.end, Vec::new()));
    }
    let failed = |err: io::Error| Error::new(ErrorKind::Broken, "cannot compress").because(err);
    let mut encoder = zstd::Encoder::new(Vec::new(), LEVEL).map_err(failed)?;
    encoder.include_checksum(true).map_err(failed)?;
    copy(after, kept.plain..after.len(), &mut encoder)?;
    let added = encoder.finish().map_err(failed)?;
    let mut decoder = zstd::Decoder::new(added.as_slice()).map_err(failed)?;
    let mut plain = Vec::new();
    each_chunk(after, kept.plain..after.len(), |bytes| {
        plain.resize(bytes.len(), 0);
        decoder.read_exact(&mut plain).map_err(failed)?;
        if plain == bytes {
            Ok(())
        } else {
            Err(Error::new(ErrorKind::Broken, "what was compressed is not what it was"))
        }
    })?;
    Ok((kept.end, added))
}

/// The length of the common prefix of two sources in bytes.
fn common(one: &dyn Source, other: &dyn Source) -> u64 {
    let len = one.len().min(other.len());
    let mut at = 0;
    while at < len {
        let end = len.min(at + CHUNK);
        let one = one.read(at..end);
        let other = other.read(at..end);
        let same = one.iter().zip(other.iter()).take_while(|(one, other)| one == other).count();
        at += same as u64;
        if at < end {
            break;
        }
    }
    at
}

/// Writes the output of `write` to an unnamed temporary file. Errors name the path of `named`.
///
/// # Errors
///
/// The error of `write`; `Disk` if the file cannot be created or written.
pub fn plain(
    named: &FileSource,
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<FileSource> {
    let failed = |err| Error::writing(err, "the session", named.path());
    let mut out = BufWriter::with_capacity(1 << 18, tempfile::tempfile().map_err(failed)?);
    write(&mut out)?;
    let file: File = out.into_inner().map_err(|err| failed(err.into_error()))?;
    FileSource::new(file, named.path())
}

#[cfg(test)]
mod tests;
