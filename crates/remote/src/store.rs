//! Packs in object storage: [`ObjectPackStore`].

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use epitome_error::{Error, ErrorKind, Result};
use epitome_model::{Bytes, Source};
use epitome_store::archive::GcMode;
use epitome_store::archive::pack_store::{
    FolderName, NewPack, PackBytes, PackFacts, PackReader, PackStore,
};
use epitome_store::source::FileSource;
use epitome_store::store::disk::{self, Temp};
use object_store::{ObjectMeta, ObjectStoreExt};

use crate::address::{Address, Retries};
use crate::connection::{Connection, Created, Depth, Listing, time_of};
use crate::failure::{Access, failed};
use crate::head::{self, Content, Head};
use crate::key::SealKey;
use crate::marker::Marker;
use crate::payload::RemotePack;
use crate::upload::{NotUploaded, Uploader};

/// Keeps packs in object storage, encrypted. Clones share the connection.
///
/// A pack is first written to a local folder. Then it is encrypted and uploaded. Finally a small
/// object with the pack's name is created, unless there is an object with this name already. So a
/// name exists only for a complete pack, and if two writers use one name, the first one gets it.
///
/// Methods that make requests wait for the network: [`Retries`] says for how long.
#[derive(Clone)]
pub struct ObjectPackStore {
    connection: Arc<Connection>,
}

impl ObjectPackStore {
    /// The packs at an address. `options` are variables of the environment that the service's own
    /// tools read, `staging` a local folder for packs that are being written.
    ///
    /// No request is made.
    ///
    /// # Errors
    ///
    /// `Settings` if the address or an option is invalid; the errors of creating a folder.
    pub fn new(
        address: &Address,
        options: &[(String, String)],
        retries: Retries,
        key: SealKey,
        staging: PathBuf,
    ) -> Result<ObjectPackStore> {
        let (objects, prefix) = address.connect(options, retries)?;
        let runtime = runtime()?;
        Ok(ObjectPackStore {
            connection: Arc::new(Connection {
                runtime,
                objects,
                prefix,
                key,
                staging,
                address: address.to_string(),
                first_wait: retries.first_wait,
                seen: Mutex::default(),
            }),
        })
    }

    /// The public part of the key of the packs at an address; `None` if nothing was stored at the
    /// address yet.
    ///
    /// # Errors
    ///
    /// `Settings` if the address or an option is invalid; the errors of a request; `Refused` if
    /// something else is stored at the address; `NewerFormat` if a newer version of epitome wrote
    /// it.
    pub fn recipient(
        address: &Address,
        options: &[(String, String)],
        retries: Retries,
    ) -> Result<Option<String>> {
        let (objects, prefix) = address.connect(options, retries)?;
        let location = PathBuf::from(address.to_string());
        let marker = runtime()?.block_on(Marker::read(&*objects, &prefix, &location))?;
        Ok(marker.map(|marker| marker.recipient))
    }

    /// Checks that the remote archive at the address was made with the key of this store. If
    /// nothing was stored at the address yet, it is marked as an archive with this key. If two
    /// machines do this at the same time with different keys, it fails on the second one.
    ///
    /// # Errors
    ///
    /// `Refused` if the archive was made with another key, or if something else is stored at the
    /// address; `NewerFormat` if a newer version of epitome wrote it; the errors of a request.
    pub fn join(&self) -> Result<()> {
        let connection = &*self.connection;
        let (objects, prefix) = (&*connection.objects, &connection.prefix);
        let location = self.location("");
        let own = Marker::new(connection.key.recipient());
        let marker = connection.runtime.block_on(async {
            if let Some(marker) = Marker::read(objects, prefix, &location).await? {
                return Ok(marker);
            }
            own.create(objects, prefix, &location).await?;
            Marker::read(objects, prefix, &location).await.map(|it| it.unwrap_or(own.clone()))
        })?;
        if marker == own {
            return Ok(());
        }
        Err(other_key(&marker.recipient, &own.recipient).at(&location))
    }

    fn head(&self, name: &str) -> Result<Option<(Head, ObjectMeta)>> {
        self.connection.runtime.block_on(self.connection.head(name))
    }

    fn existing(&self, name: &str) -> Result<(Head, ObjectMeta)> {
        let missing = || Error::new(ErrorKind::NotFound, "there is no such pack");
        self.head(name)?.ok_or_else(|| missing().at(&self.location(name)))
    }

    /// The blake3 hashes of all packs below a folder, by name, and the errors of names that cannot
    /// be read.
    ///
    /// # Errors
    ///
    /// The errors of listing the folder.
    pub(crate) fn hashes(&self, folder: &str) -> Result<(BTreeMap<String, String>, Vec<Error>)> {
        let listing =
            self.connection.runtime.block_on(self.connection.below(folder, Depth::All))?;
        let hashes = listing.heads.into_iter().filter_map(|head| {
            let hash = head.payload()?.blake3.clone();
            Some((head.name, hash))
        });
        Ok((hashes.collect(), listing.unread))
    }

    /// Stores a pack under a name, unless the same pack or something else is stored under it
    /// already. Returns which was the case.
    pub(crate) fn put_pack(&self, pack: &dyn PackBytes, name: &str) -> Result<Put> {
        let connection = &*self.connection;
        let location = self.location(name);
        if let Some((head, _)) = self.head(name)? {
            connection.seen().names.insert(name.to_owned());
            return Ok(Put::existing(&head, &hash_of(pack, &location)?));
        }
        let uploader = Uploader {
            runtime: &connection.runtime,
            objects: &*connection.objects,
            key: &connection.key,
        };
        let mut reader = PackReader::new(pack);
        let payload = uploader.upload(&mut reader, |object| connection.payload_object(object));
        let payload = payload.map_err(|err| match err {
            NotUploaded::Here(err) => Error::reading(err, "a pack", &location),
            NotUploaded::There(err) => failed(err, Access::Write, &location),
        })?;
        let object = connection.payload_object(&payload.object);
        let hash = payload.blake3.clone();
        let head = Head { name: name.to_owned(), content: Content::Pack(payload) };
        match self.create(&head)? {
            Created::Yes => Ok(Put::New),
            Created::Taken(other) => {
                // No name refers to the bytes that were stored. If they cannot be deleted now, a
                // later sweep deletes them.
                connection.runtime.block_on(connection.objects.delete(&object)).ok();
                Ok(Put::existing(&other, &hash))
            }
        }
    }

    /// Deletes a name and then the bytes of its pack. Returns whether the name existed. If the
    /// process is killed in between, the bytes stay until they are [swept](PackStore::sweep).
    pub(crate) fn remove(&self, name: &str) -> Result<bool> {
        let Some((head, _)) = self.head(name)? else { return Ok(false) };
        self.delete(name)?;
        self.delete_payload(&head)?;
        Ok(true)
    }

    fn delete_payload(&self, head: &Head) -> Result<()> {
        let Some(payload) = head.payload() else { return Ok(()) };
        let connection = &*self.connection;
        let object = connection.payload_object(&payload.object);
        match connection.runtime.block_on(connection.objects.delete(&object)) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(err) => Err(failed(err, Access::Write, &self.location(&head.name))),
        }
    }

    /// Deletes the packs in a [hidden folder](crate::hidden_folder) that have one of these hashes.
    /// If `hashes` is `None`, deletes everything in the folder. Returns how many names were
    /// deleted.
    ///
    /// # Errors
    ///
    /// The errors of requests. What was not deleted before the error is still stored. If a name
    /// cannot be read, the error is returned after the others were deleted.
    pub fn forget(&self, folder: &str, hashes: Option<&BTreeSet<String>>) -> Result<u64> {
        let location = self.location("");
        let mut prefix = self.connection.prefix.clone();
        for part in folder.split('/') {
            prefix = prefix.join(part);
        }
        let Listing { heads, unread } =
            self.connection.runtime.block_on(self.connection.below_object(&prefix, &location))?;
        let mut deleted = 0;
        for head in heads {
            let hash = head.payload().map(|payload| &payload.blake3);
            let is_meant = match (hashes, hash) {
                (None, _) => true,
                (Some(hashes), Some(hash)) => hashes.contains(hash),
                (Some(_), None) => false,
            };
            if is_meant && self.remove(&head.name)? {
                deleted += 1;
            }
        }
        match unread.into_iter().next() {
            None => Ok(deleted),
            Some(err) => Err(err),
        }
    }

    /// Creates the object of a name, unless there is an object already.
    fn create(&self, head: &Head) -> Result<Created> {
        let connection = &*self.connection;
        let location = self.location(&head.name);
        let sealed =
            head.seal(&connection.key).map_err(|err| Error::writing(err, "a name", &location))?;
        if sealed.len() as u64 > head::LONGEST {
            return Err(Error::new(ErrorKind::Broken, "a note is too long").at(&location));
        }
        let created = connection.runtime.block_on(connection.create(head, sealed.into()))?;
        connection.seen().names.insert(head.name.clone());
        Ok(created)
    }
}

pub(crate) fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|err| Error::new(ErrorKind::Broken, "no runtime").because(err))
}

fn other_key(there: &str, here: &str) -> Error {
    let what = format!("the remote archive is sealed with {there}, and the key here is {here}");
    Error::new(ErrorKind::Refused, what).with_hint(
        "`epitome archive key export` prints the key of the machine that has it, `epitome archive \
         key import` takes it here",
    )
}

/// The blake3 hash of a pack, as 64 digits.
pub(crate) fn hash_of(pack: &dyn PackBytes, location: &Path) -> Result<String> {
    let mut hasher = blake3::Hasher::new();
    let read = hasher.update_reader(PackReader::new(pack)).map(drop);
    read.map_err(|err| Error::reading(err, "a pack", location))?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// The result of storing a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    /// The pack was stored.
    New,
    /// The pack was stored under this name already.
    Known,
    /// Something else is stored under the name.
    Taken,
}

impl Put {
    /// The result for a pack with the hash `hash`, if its name exists already.
    fn existing(head: &Head, hash: &str) -> Put {
        match head.payload() {
            Some(payload) if payload.blake3 == hash => Put::Known,
            Some(_) | None => Put::Taken,
        }
    }
}

impl fmt::Debug for ObjectPackStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = &self.connection.address;
        f.debug_struct("ObjectPackStore").field("address", address).finish_non_exhaustive()
    }
}

impl PackStore for ObjectPackStore {
    fn list(&self, folder: &str) -> Result<Vec<FolderName>> {
        let Listing { heads, mut unread } =
            self.connection.runtime.block_on(self.connection.below(folder, Depth::Children))?;
        if let (true, Some(err)) = (heads.is_empty(), unread.pop()) {
            return Err(err);
        }
        let skip = if folder.is_empty() { 0 } else { folder.len() + 1 };
        let names = heads.iter().map(|head| match head.name[skip..].split_once('/') {
            Some((folder, _)) => FolderName::Folder(folder.to_owned()),
            None => FolderName::File(head.name[skip..].to_owned()),
        });
        Ok(names.collect::<BTreeSet<_>>().into_iter().collect())
    }

    fn begin(&self, _folder: &str) -> Result<Box<dyn NewPack>> {
        disk::private_folder(&self.connection.staging)?;
        let temp = Temp::create(&self.connection.staging)
            .map_err(|err| Error::writing(err, "a pack", &self.connection.staging))?;
        Ok(Box::new(NewObject { temp, store: self.clone() }))
    }

    fn open(&self, name: &str) -> Result<Box<dyn PackBytes>> {
        let (head, _) = self.existing(name)?;
        match head.content {
            Content::Note(bytes) => Ok(Box::new(OpenNote(bytes))),
            Content::Pack(payload) => {
                let object = self.connection.payload_object(&payload.object);
                let location = self.location(name);
                Ok(Box::new(RemotePack::open(&self.connection, &payload, object, &location)?))
            }
        }
    }

    fn facts(&self, name: &str) -> Result<PackFacts> {
        let (head, meta) = self.existing(name)?;
        let len = match &head.content {
            Content::Pack(payload) => payload.len,
            Content::Note(bytes) => bytes.len() as u64,
        };
        Ok(PackFacts { len: Bytes(len), written: time_of(&meta) })
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.existing(name)?;
        let object = self.connection.object_of(name);
        let deleted = self.connection.runtime.block_on(self.connection.objects.delete(&object));
        deleted.map_err(|err| failed(err, Access::Write, &self.location(name)))?;
        let mut seen = self.connection.seen();
        seen.names.remove(name);
        seen.heads.retain(|_, head| head.name != name);
        Ok(())
    }

    fn rename(&self, name: &str, to: &str) -> Result<bool> {
        let (head, _) = self.existing(name)?;
        let renamed = Head { name: to.to_owned(), ..head };
        match self.create(&renamed)? {
            Created::Yes => {}
            // An earlier call was interrupted after it created the new name.
            Created::Taken(there) if there == renamed => {}
            Created::Taken(_) => return Ok(false),
        }
        self.delete(name)?;
        Ok(true)
    }

    fn write_note(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let head = Head { name: name.to_owned(), content: Content::Note(bytes.to_vec()) };
        let location = self.location(name);
        let connection = &*self.connection;
        let sealed =
            head.seal(&connection.key).map_err(|err| Error::writing(err, "a note", &location))?;
        let object = connection.object_of(name);
        let put = connection.runtime.block_on(connection.objects.put(&object, sealed.into()));
        put.map_err(|err| failed(err, Access::Write, &location))?;
        connection.seen().names.insert(name.to_owned());
        Ok(())
    }

    /// Does nothing: folders are parts of names.
    fn make_folder(&self, _folder: &str) -> Result<()> {
        Ok(())
    }

    /// Does nothing: what the service has confirmed survives a power cut.
    fn flush_folder(&self, _folder: &str) -> Result<()> {
        Ok(())
    }

    fn remove_if_empty(&self, _folder: &str) {}

    /// With the root as `folder`, finds the bytes of packs that no name refers to and that were
    /// written more than seven days ago; with [`GcMode::Remove`], deletes them. Returns their
    /// lengths, or none if a request fails or a name cannot be read.
    fn sweep(&self, folder: &str, mode: GcMode) -> Vec<Bytes> {
        if !folder.is_empty() {
            return Vec::new();
        }
        self.connection.runtime.block_on(self.connection.sweep(mode)).unwrap_or_default()
    }

    fn location(&self, name: &str) -> PathBuf {
        self.connection.location(name)
    }
}

/// The bytes of a note.
#[derive(Debug)]
struct OpenNote(Vec<u8>);

impl Source for OpenNote {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, range: Range<u64>) -> Cow<'_, [u8]> {
        Source::read(&self.0, range)
    }
}

impl PackBytes for OpenNote {
    fn failure(&self) -> Option<Error> {
        None
    }
}

/// A pack that is being written, in the staging folder.
struct NewObject {
    temp: Temp,
    store: ObjectPackStore,
}

impl Write for NewObject {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.temp.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.temp.flush()
    }
}

impl NewPack for NewObject {
    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.temp.truncate(len)
    }

    fn open(&self) -> Result<Box<dyn PackBytes>> {
        Ok(Box::new(FileSource::open(self.temp.path())?))
    }

    fn location(&self) -> PathBuf {
        self.temp.path().to_owned()
    }

    fn put(self: Box<Self>, name: &str) -> Result<Option<Box<dyn NewPack>>> {
        let pack = self.open()?;
        Ok(match self.store.put_pack(&*pack, name)? {
            Put::New | Put::Known => None,
            Put::Taken => Some(self),
        })
    }
}
