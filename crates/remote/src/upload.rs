//! Encrypts a pack and stores its bytes: [`Uploader`].

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use object_store::path::Path as ObjectPath;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload};
use tokio::runtime::Runtime;

use crate::head::Payload;
use crate::key::SealKey;

/// An object of up to this length is stored by one request, a longer one in parts of this length.
/// Services require parts of at least 5 MiB, and at most 10,000 of them, so that an object has at
/// most about 80 GB.
pub(crate) const PART: usize = 8 << 20;
/// The size in bytes of the buffer for reading a pack.
const CHUNK: usize = 256 << 10;

/// Why a pack was not stored.
#[derive(Debug)]
pub(crate) enum NotUploaded {
    /// The pack could not be read or encrypted here.
    Here(io::Error),
    /// A request failed.
    There(object_store::Error),
}

impl From<io::Error> for NotUploaded {
    fn from(err: io::Error) -> NotUploaded {
        NotUploaded::Here(err)
    }
}

impl From<object_store::Error> for NotUploaded {
    fn from(err: object_store::Error) -> NotUploaded {
        NotUploaded::There(err)
    }
}

/// Encrypts packs and stores them as objects.
pub(crate) struct Uploader<'a> {
    pub runtime: &'a Runtime,
    pub objects: &'a dyn ObjectStore,
    pub key: &'a SealKey,
}

impl Uploader<'_> {
    /// Encrypts everything that `from` contains and stores it as one object. `path` returns the
    /// path of an object from its name. If this succeeds, the object is complete, but no name
    /// refers to it yet.
    pub(crate) fn upload(
        &self,
        from: &mut dyn Read,
        path: impl Fn(&str) -> ObjectPath,
    ) -> Result<Payload, NotUploaded> {
        let sealed = Pending::default();
        let mut writer = self.key.seal(sealed.clone())?;
        let (object, header) = {
            let first = sealed.bytes();
            (blake3::hash(&first).to_hex().to_string(), first.len() as u64)
        };
        let path = path(&object);
        let mut parts = Parts { uploader: self, path, upload: None, sent: 0 };
        let mut hash = blake3::Hasher::new();
        let mut len = 0;
        let mut chunk = vec![0; CHUNK];
        let finished = loop {
            match from.read(&mut chunk) {
                Ok(0) => break writer.finish().map(drop).map_err(NotUploaded::from),
                Ok(n) => {
                    hash.update(&chunk[..n]);
                    len += n as u64;
                    if let Err(err) = writer.write_all(&chunk[..n]) {
                        break Err(err.into());
                    }
                    if let Err(err) = parts.send_full(&sealed) {
                        break Err(err);
                    }
                }
                Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
                Err(err) => break Err(err.into()),
            }
        };
        if let Err(err) = finished.and_then(|()| parts.send_rest(&sealed)) {
            parts.abort();
            return Err(err);
        }
        let blake3 = hash.finalize().to_hex().to_string();
        Ok(Payload { len, blake3, object, header, sealed: parts.sent })
    }
}

/// Encrypted bytes that are not sent yet. Clones share them.
#[derive(Clone, Default)]
struct Pending(Arc<Mutex<Vec<u8>>>);

impl Pending {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Pending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The upload of an object: in parts if it is longer than [`PART`], otherwise by one request.
struct Parts<'a> {
    uploader: &'a Uploader<'a>,
    path: ObjectPath,
    upload: Option<Box<dyn MultipartUpload>>,
    /// Number of bytes that were sent.
    sent: u64,
}

impl Parts<'_> {
    /// Sends full parts while more than [`PART`] bytes are pending. The rest waits, because only
    /// the last part may be shorter.
    fn send_full(&mut self, pending: &Pending) -> Result<(), NotUploaded> {
        while pending.bytes().len() > PART {
            let rest = pending.bytes().split_off(PART);
            let part = std::mem::replace(&mut *pending.bytes(), rest);
            self.send_part(part)?;
        }
        Ok(())
    }

    /// Sends the remaining bytes, and completes the object.
    fn send_rest(&mut self, pending: &Pending) -> Result<(), NotUploaded> {
        self.send_full(pending)?;
        let rest = std::mem::take(&mut *pending.bytes());
        if self.upload.is_none() {
            self.sent = rest.len() as u64;
            let put = self.uploader.objects.put(&self.path, PutPayload::from_bytes(rest.into()));
            self.uploader.runtime.block_on(put)?;
            return Ok(());
        }
        self.send_part(rest)?;
        if let Some(upload) = &mut self.upload {
            self.uploader.runtime.block_on(upload.complete())?;
        }
        Ok(())
    }

    fn send_part(&mut self, part: Vec<u8>) -> Result<(), NotUploaded> {
        let upload = match &mut self.upload {
            Some(upload) => upload,
            none => {
                let begun = self.uploader.objects.put_multipart(&self.path);
                none.insert(self.uploader.runtime.block_on(begun)?)
            }
        };
        self.sent += part.len() as u64;
        let part = upload.put_part(PutPayload::from_bytes(Bytes::from(part)));
        self.uploader.runtime.block_on(part)?;
        Ok(())
    }

    /// Asks the service to delete the parts that were sent.
    fn abort(&mut self) {
        if let Some(upload) = &mut self.upload {
            self.uploader.runtime.block_on(upload.abort()).ok();
        }
    }
}
