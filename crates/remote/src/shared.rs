//! Redacted sessions in object storage, for a team: [`SharedFolder`].

use std::path::PathBuf;
use std::sync::Arc;

use epitome_error::{Error, ErrorKind, Result};
use epitome_model::Bytes;
use futures_util::TryStreamExt;
use object_store::path::Path as ObjectPath;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutPayload};
use tokio::runtime::Runtime;

use crate::address::{Address, Retries};
use crate::failure::{Access, kind};
use crate::store::runtime;

/// The first part of the name of each shared object.
const AREA: &str = "sessions";

/// Files of redacted sessions in object storage. They are not encrypted: all who may read the
/// storage may read them.
///
/// ```
/// use epitome_remote::{Address, Retries, SharedFolder};
///
/// let folder = tempfile::tempdir().expect("a folder");
/// let address: Address = format!("file://{}", folder.path().display()).parse()?;
/// let shared = SharedFolder::new(&address, &[], Retries::SHORT)?;
/// shared.put("claude/0f3c9a52/session.jsonl", b"{}".to_vec())?;
/// assert_eq!(shared.list()?[0].name, "claude/0f3c9a52/session.jsonl");
/// # Ok::<(), epitome_error::Error>(())
/// ```
pub struct SharedFolder {
    runtime: Runtime,
    objects: Arc<dyn ObjectStore>,
    prefix: ObjectPath,
    address: String,
}

/// A shared file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedFile {
    /// The name of the file, with `/` between folders: `claude/0f3c9a52/session.jsonl`.
    pub name: String,
    /// A text that changes when the file is replaced: the ETag of the object or, if the service has
    /// none, the time of the last change.
    pub version: String,
    /// The length of the file.
    pub length: Bytes,
}

impl SharedFolder {
    /// The shared files at an address. No request is made. `options` are the variables of the
    /// environment that the service's own tools read, such as `AWS_ACCESS_KEY_ID`.
    ///
    /// # Errors
    ///
    /// `Settings` if the address or an option is invalid; the errors of creating a folder.
    pub fn new(
        address: &Address,
        options: &[(String, String)],
        retries: Retries,
    ) -> Result<SharedFolder> {
        let (objects, prefix) = address.connect(options, retries)?;
        let prefix = prefix.join(AREA);
        Ok(SharedFolder { runtime: runtime()?, objects, prefix, address: address.to_string() })
    }

    /// All files, in the order of their names.
    ///
    /// # Errors
    ///
    /// `NoPermission` if the service refuses access, `Unreadable` for most other failures of the
    /// request.
    pub fn list(&self) -> Result<Vec<SharedFile>> {
        let listed: std::result::Result<Vec<ObjectMeta>, _> =
            self.runtime.block_on(self.objects.list(Some(&self.prefix)).try_collect());
        let listed = listed.map_err(|err| self.failed(err, Access::Read, ""))?;
        let mut files: Vec<SharedFile> =
            listed.into_iter().filter_map(|meta| self.file(meta)).collect();
        files.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(files)
    }

    /// The content of a file.
    ///
    /// # Errors
    ///
    /// `Usage` if the name is invalid, `NotFound` if there is no such file; the errors of
    /// [`list`](SharedFolder::list).
    pub fn get(&self, name: &str) -> Result<Vec<u8>> {
        let object = self.object(name)?;
        let read = self.runtime.block_on(async { self.objects.get(&object).await?.bytes().await });
        read.map(Vec::from).map_err(|err| self.failed(err, Access::Read, name))
    }

    /// Stores a file. An existing file of that name is replaced.
    ///
    /// # Errors
    ///
    /// `Usage` if the name is invalid, `NoPermission` if the service refuses access, `Disk` for
    /// most other failures of the request.
    pub fn put(&self, name: &str, content: Vec<u8>) -> Result<()> {
        let object = self.object(name)?;
        let stored = self.runtime.block_on(self.objects.put(&object, PutPayload::from(content)));
        stored.map(drop).map_err(|err| self.failed(err, Access::Write, name))
    }

    /// Deletes a file. It is no error if there is no such file.
    ///
    /// # Errors
    ///
    /// The errors of [`put`](SharedFolder::put).
    pub fn delete(&self, name: &str) -> Result<()> {
        let object = self.object(name)?;
        match self.runtime.block_on(self.objects.delete(&object)) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(err) => Err(self.failed(err, Access::Write, name)),
        }
    }

    /// Where a file is, for messages and browsers: `s3://bucket/sessions/claude/…`.
    pub fn location(&self, name: &str) -> String {
        format!("{}/{AREA}/{name}", self.address.trim_end_matches('/'))
    }

    fn object(&self, name: &str) -> Result<ObjectPath> {
        let path = format!("{}/{name}", self.prefix);
        ObjectPath::parse(path).map_err(|err| {
            Error::new(ErrorKind::Usage, "invalid name of a shared file").because(err)
        })
    }

    /// The file of an object; `None` if its name is not in this folder.
    fn file(&self, meta: ObjectMeta) -> Option<SharedFile> {
        let parts = meta.location.prefix_match(&self.prefix)?;
        let name = parts.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>().join("/");
        let version = meta.e_tag.unwrap_or_else(|| meta.last_modified.to_rfc3339());
        Some(SharedFile { name, version, length: Bytes(meta.size) })
    }

    fn failed(&self, err: object_store::Error, access: Access, name: &str) -> Error {
        let kind = kind(&err, access);
        let what = match (kind, access) {
            (ErrorKind::NoPermission, _) => "the storage of shared sessions refuses access",
            (_, Access::Read) => "cannot read the shared sessions",
            (_, Access::Write) => "cannot share the session",
        };
        let error = Error::new(kind, what).at(&PathBuf::from(self.location(name))).because(err);
        error.with_hint("check `share.url`, the network, and the access key in the environment")
    }
}
