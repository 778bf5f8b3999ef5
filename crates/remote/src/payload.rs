//! Reads ranges of a pack in a remote archive: [`RemotePack`].

use std::borrow::Cow;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use epitome_error::{Error, ErrorKind};
use epitome_model::{ReadFailure, Source};
use epitome_store::archive::pack_store::PackBytes;
use object_store::path::Path as ObjectPath;
use object_store::{GetOptions, GetRange, ObjectStore};

use crate::connection::Connection;
use crate::failure::{Access, failed};
use crate::head::Payload;

/// The maximum number of bytes that one request asks for.
const BLOCK: u64 = 1 << 20;

/// An open pack in a remote archive. Whatever is read from it was decrypted, and decryption fails
/// if the bytes are not those that were encrypted.
pub(crate) struct RemotePack {
    len: u64,
    location: PathBuf,
    open: Mutex<Open>,
}

struct Open {
    reader: age::stream::StreamReader<Sealed>,
    failure: Option<Error>,
}

impl RemotePack {
    /// Opens the object of a pack. Checks that the first bytes of the object have the hash in the
    /// pack's head, so that no other object can be decrypted in place of this one.
    pub(crate) fn open(
        connection: &Arc<Connection>,
        payload: &Payload,
        object: ObjectPath,
        location: &Path,
    ) -> Result<RemotePack, Error> {
        let mut sealed = Sealed::new(Arc::clone(connection), object, payload.sealed, location);
        let unread = |err| Error::reading(err, "the remote archive", location);
        let mut header = Vec::new();
        let mut first = (&mut sealed).take(payload.header);
        first.read_to_end(&mut header).map_err(unread)?;
        if blake3::hash(&header).to_hex().as_str() != payload.object {
            return Err(damaged(location));
        }
        sealed.at = 0;
        let reader = connection.key.open(sealed).map_err(|err| match err {
            age::DecryptError::Io(err) => unread(err),
            err => damaged(location).because(err),
        })?;
        let open = Mutex::new(Open { reader, failure: None });
        Ok(RemotePack { len: payload.len, location: location.to_owned(), open })
    }
}

impl Open {
    fn read(&mut self, range: Range<u64>, location: &Path) -> Result<Vec<u8>, Error> {
        let want = usize::try_from(range.end - range.start).map_err(|_| damaged(location))?;
        let mut bytes = Vec::new();
        let read = self.reader.seek(SeekFrom::Start(range.start)).and_then(|_| {
            let mut from = (&mut self.reader).take(want as u64);
            from.read_to_end(&mut bytes)
        });
        match read {
            Ok(got) if got == want => Ok(bytes),
            Ok(_) => Err(damaged(location)),
            Err(err) if err.get_ref().is_some_and(|inner| inner.is::<Error>()) => {
                Err(Error::reading(err, "the remote archive", location))
            }
            // The bytes cannot be decrypted: they are not the bytes that were written.
            Err(err) => Err(damaged(location).because(err)),
        }
    }
}

fn damaged(location: &Path) -> Error {
    Error::new(ErrorKind::Archive, "a pack in the remote archive is damaged").at(location)
}

impl Source for RemotePack {
    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, range: Range<u64>) -> Cow<'_, [u8]> {
        let end = range.end.min(self.len);
        if range.start >= end {
            return Cow::Borrowed(&[]);
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        match open.read(range.start..end, &self.location) {
            Ok(bytes) => Cow::Owned(bytes),
            Err(err) => {
                open.failure.get_or_insert(err);
                Cow::Borrowed(&[])
            }
        }
    }

    fn read_failure(&self) -> Option<ReadFailure> {
        self.failure().map(|err| Arc::new(err) as ReadFailure)
    }
}

impl PackBytes for RemotePack {
    fn failure(&self) -> Option<Error> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).failure.clone()
    }
}

impl std::fmt::Debug for RemotePack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemotePack").field("location", &self.location).finish_non_exhaustive()
    }
}

/// The encrypted bytes of an object, requested block by block.
struct Sealed {
    connection: Arc<Connection>,
    object: ObjectPath,
    len: u64,
    location: PathBuf,
    at: u64,
    /// The current block: the bytes of the object from `block_at` on.
    block: Bytes,
    block_at: u64,
}

impl Sealed {
    fn new(connection: Arc<Connection>, object: ObjectPath, len: u64, location: &Path) -> Sealed {
        let location = location.to_owned();
        Sealed { connection, object, len, location, at: 0, block: Bytes::new(), block_at: 0 }
    }

    /// The bytes of the current block from the current position on; empty if this position is in
    /// another block.
    fn rest_of_block(&self) -> &[u8] {
        let skip = self.at.checked_sub(self.block_at).and_then(|skip| usize::try_from(skip).ok());
        skip.and_then(|skip| self.block.get(skip..)).unwrap_or_default()
    }

    fn request(&mut self) -> io::Result<()> {
        let range = self.at..self.len.min(self.at + BLOCK);
        let options =
            GetOptions { range: Some(GetRange::Bounded(range.clone())), ..GetOptions::default() };
        let got = self.connection.runtime.block_on(async {
            self.connection.objects.get_opts(&self.object, options).await?.bytes().await
        });
        let block = got.map_err(|err| {
            // A head whose pack is missing is damage, because the bytes of a pack are written
            // before its head.
            match failed(err, Access::Read, &self.location) {
                err if err.kind() == ErrorKind::NotFound => damaged(&self.location).because(err),
                err => err,
            }
        })?;
        if block.len() as u64 != range.end - range.start {
            return Err(damaged(&self.location).into());
        }
        self.block = block;
        self.block_at = range.start;
        Ok(())
    }
}

impl Read for Sealed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.len {
            return Ok(0);
        }
        if self.rest_of_block().is_empty() {
            self.request()?;
        }
        let rest = self.rest_of_block();
        let n = rest.len().min(into.len());
        into[..n].copy_from_slice(&rest[..n]);
        self.at += n as u64;
        Ok(n)
    }
}

impl Seek for Sealed {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let to = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.len.checked_add_signed(by),
        };
        self.at = to.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}
