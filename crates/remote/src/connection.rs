//! The connection to object storage, and the names in it: [`Connection`].

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use epitome_error::{Error, ErrorKind, Result};
use epitome_model::Bytes;
use epitome_store::archive::GcMode;
use futures_util::{StreamExt, TryStreamExt};
use jiff::{SignedDuration, Timestamp};
use object_store::path::Path as ObjectPath;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use tokio::runtime::Runtime;

use crate::failure::{Access, failed, is_uncertain};
use crate::head::{self, Head, Unsealed};
use crate::key::SealKey;

/// How many heads, the small objects of names, are requested at the same time, at most.
const AT_ONCE: usize = 16;
/// How many times the creation of a head is tried if its result is unknown.
const TRIES: u32 = 5;
/// A sweep deletes the bytes of a pack that no name refers to only if they are older than this,
/// because a writer stores the bytes before the name.
const ORPHANED: SignedDuration = SignedDuration::from_hours(7 * 24);

pub(crate) struct Connection {
    pub runtime: Runtime,
    pub objects: Arc<dyn ObjectStore>,
    pub prefix: ObjectPath,
    pub key: SealKey,
    /// The local folder in which a pack is written before it is uploaded.
    pub staging: PathBuf,
    /// The address, for messages.
    pub address: String,
    pub first_wait: Duration,
    pub seen: Mutex<Seen>,
}

/// What this process has learned about the names in the remote archive.
#[derive(Default)]
pub(crate) struct Seen {
    /// Names that this process has found or created. A listing may not contain them yet.
    pub names: BTreeSet<String>,
    /// The heads that were read, each by its object and the version of the object.
    pub heads: HashMap<(ObjectPath, String), Head>,
}

/// The result of creating a head.
pub(crate) enum Created {
    /// The head was created.
    Yes,
    /// The name has this other head already.
    Taken(Head),
}

/// The heads in a folder, and the errors of heads that cannot be read.
#[derive(Default)]
pub(crate) struct Listing {
    pub heads: Vec<Head>,
    pub unread: Vec<Error>,
}

impl Connection {
    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn location(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("{}/{name}", self.address.trim_end_matches('/')))
    }

    /// The path of the object that stores a name. For a folder, the path that the objects of all
    /// names in the folder begin with. Each part of a name becomes a hash of this part and all
    /// parts before it.
    pub fn object_of(&self, name: &str) -> ObjectPath {
        let parts = hidden_parts(&self.key, name).into_iter();
        parts.fold(self.prefix.clone(), |object, part| object.join(part))
    }

    pub fn payload_object(&self, object: &str) -> ObjectPath {
        self.prefix.clone().join("p").join(object)
    }

    /// Reads and decrypts the object of a name. `None` if there is no such object.
    pub async fn head(&self, name: &str) -> Result<Option<(Head, ObjectMeta)>> {
        self.head_in(&self.object_of(name), &self.location(name)).await
    }

    /// Reads and decrypts an object; `None` if there is no such object. It is an error if the
    /// request fails, or if the object is too long, cannot be decrypted, or belongs to another
    /// name.
    async fn head_in(
        &self,
        object: &ObjectPath,
        location: &Path,
    ) -> Result<Option<(Head, ObjectMeta)>> {
        let read = async {
            let got = self.objects.get(object).await?;
            let meta = got.meta.clone();
            let bytes = if meta.size > head::LONGEST { None } else { Some(got.bytes().await?) };
            Ok((meta, bytes))
        };
        let (meta, bytes) = match read.await {
            Ok(read) => read,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(err) => return Err(failed(err, Access::Read, location)),
        };
        let bytes = bytes.ok_or_else(|| unsealed(&Unsealed::Forged, location))?;
        let head = Head::open(&bytes, &self.key).map_err(|err| unsealed(&err, location))?;
        // An object of another name may have been copied over the object of this name.
        if self.object_of(&head.name) != *object {
            return Err(unsealed(&Unsealed::Forged, location));
        }
        Ok(Some((head, meta)))
    }

    /// Creates the object of a head, unless there is an object for its name. If the response to a
    /// request was lost, the object may have been created; so the object is then read.
    pub async fn create(&self, head: &Head, sealed: PutPayload) -> Result<Created> {
        let object = self.object_of(&head.name);
        let location = self.location(&head.name);
        let mut wait = self.first_wait;
        for attempt in 1.. {
            let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
            let err = match self.objects.put_opts(&object, sealed.clone(), options).await {
                Ok(_) => return Ok(Created::Yes),
                Err(err) => err,
            };
            let exists = matches!(
                err,
                object_store::Error::AlreadyExists { .. }
                    | object_store::Error::Precondition { .. }
            );
            if !exists && !is_uncertain(&err) {
                return Err(failed(err, Access::Write, &location));
            }
            match self.head(&head.name).await {
                Ok(Some((there, _))) if there == *head => return Ok(Created::Yes),
                Ok(Some((there, _))) => return Ok(Created::Taken(there)),
                // Another writer is about to create the object, or the request was lost.
                Ok(None) if attempt < TRIES => {}
                Err(other) if exists => return Err(other),
                Ok(None) | Err(_) => return Err(failed(err, Access::Write, &location)),
            }
            tokio::time::sleep(wait).await;
            wait *= 2;
        }
        unreachable!("the last attempt returns")
    }

    /// The heads of the names in a folder: of all names or, with [`Depth::Children`], of one name
    /// for each file or folder directly in it. A head that cannot be read is an error in the
    /// listing.
    pub async fn below(&self, folder: &str, depth: Depth) -> Result<Listing> {
        let prefix = self.object_of(folder);
        let location = self.location(folder);
        let all = self.objects_below(&prefix, &location).await?;
        let metas = match depth {
            Depth::All => all,
            Depth::Children => children(&prefix, all),
        };
        let mut listing = self.heads_of(metas, &location).await;
        self.add_unlisted(folder, &mut listing).await?;
        Ok(listing)
    }

    /// The heads whose objects are below `prefix`.
    pub async fn below_object(&self, prefix: &ObjectPath, location: &Path) -> Result<Listing> {
        let metas = self.objects_below(prefix, location).await?;
        Ok(self.heads_of(metas, location).await)
    }

    async fn objects_below(&self, prefix: &ObjectPath, location: &Path) -> Result<Vec<ObjectMeta>> {
        let unlisted = |err| match failed(err, Access::Read, location) {
            err if err.kind() == ErrorKind::Unreadable => err.with_kind(ErrorKind::Archive),
            err => err,
        };
        self.objects.list(Some(prefix)).try_collect().await.map_err(unlisted)
    }

    async fn heads_of(&self, metas: Vec<ObjectMeta>, location: &Path) -> Listing {
        let requests = metas.into_iter().map(|meta| self.listed(meta, location));
        let heads: Vec<Result<Option<Head>>> =
            futures_util::stream::iter(requests).buffered(AT_ONCE).collect().await;
        let mut listing = Listing::default();
        for head in heads {
            match head {
                Ok(head) => listing.heads.extend(head),
                Err(err) => listing.unread.push(err),
            }
        }
        listing
    }

    /// The head of a listed object; `None` if the object was deleted after it was listed.
    async fn listed(&self, meta: ObjectMeta, location: &Path) -> Result<Option<Head>> {
        let version = meta.e_tag.clone().unwrap_or_else(|| meta.last_modified.to_rfc3339());
        let known = (meta.location.clone(), version);
        if let Some(head) = self.seen().heads.get(&known) {
            return Ok(Some(head.clone()));
        }
        let read = self.head_in(&meta.location, location).await?;
        Ok(read.map(|(head, _)| {
            self.seen().heads.insert(known, head.clone());
            head
        }))
    }

    /// Adds the heads of names in the folder that this process has seen and that the listing does
    /// not have yet.
    async fn add_unlisted(&self, folder: &str, listing: &mut Listing) -> Result<()> {
        let listed: BTreeSet<String> = listing.heads.iter().map(|head| head.name.clone()).collect();
        let names = self.seen().names.clone();
        for name in names.iter().filter(|name| is_below(name, folder) && !listed.contains(*name)) {
            match self.head(name).await? {
                Some((head, _)) => listing.heads.push(head),
                None => drop(self.seen().names.remove(name)),
            }
        }
        Ok(())
    }
}

/// The parts of the path of a name's object, below the address: `n`, and then one hash for each
/// part of the name.
pub(crate) fn hidden_parts(key: &SealKey, name: &str) -> Vec<String> {
    let ends = name.match_indices('/').map(|(at, _)| at).chain([name.len()]);
    let hashes = ends.filter(|&end| end > 0).map(|end| key.name(&name[..end]));
    std::iter::once("n".to_owned()).chain(hashes).collect()
}

/// Which names of a folder are listed.
#[derive(Clone, Copy)]
pub(crate) enum Depth {
    /// All names in the folder and in the folders below it.
    All,
    /// One name for each file or folder that is directly in the folder.
    Children,
}

/// Of the objects below `prefix`, the first one for each file or folder directly below it.
fn children(prefix: &ObjectPath, all: Vec<ObjectMeta>) -> Vec<ObjectMeta> {
    let mut seen = BTreeSet::new();
    let is_first = |meta: &ObjectMeta| {
        let part = meta.location.prefix_match(prefix).and_then(|mut parts| parts.next());
        part.is_some_and(|part| seen.insert(part.as_ref().to_owned()))
    };
    all.into_iter().filter(is_first).collect()
}

fn is_below(name: &str, folder: &str) -> bool {
    folder.is_empty() || name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

fn unsealed(err: &Unsealed, location: &Path) -> Error {
    let (kind, what) = match err {
        Unsealed::Undecrypted(_) => {
            let what = "the remote archive is sealed with another key, or damaged";
            (ErrorKind::Archive, what)
        }
        Unsealed::Damaged(_) | Unsealed::Forged => {
            (ErrorKind::Archive, "a name in the remote archive is damaged")
        }
        Unsealed::Newer(_) => {
            (ErrorKind::NewerFormat, "a newer version of epitome wrote the remote archive")
        }
    };
    let error = Error::new(kind, what).at(location);
    match err {
        Unsealed::Undecrypted(_) => error.with_hint(
            "`epitome archive key` shows the key of this machine, `epitome archive key import` \
             takes that of another",
        ),
        _ => error,
    }
}

pub(crate) fn time_of(meta: &ObjectMeta) -> Option<Timestamp> {
    Timestamp::from_millisecond(meta.last_modified.timestamp_millis()).ok()
}

impl Connection {
    pub async fn sweep(&self, mode: GcMode) -> Result<Vec<Bytes>> {
        let location = self.location("");
        let unlisted = |err| failed(err, Access::Read, &location);
        // The bytes are listed first: a name that is created meanwhile is in the second listing.
        let prefix = self.prefix.clone().join("p");
        let all: Vec<ObjectMeta> =
            self.objects.list(Some(&prefix)).try_collect().await.map_err(unlisted)?;
        let Listing { heads, unread } = self.below("", Depth::All).await?;
        if let Some(err) = unread.into_iter().next() {
            return Err(err);
        }
        let used: BTreeSet<ObjectPath> = heads
            .iter()
            .filter_map(Head::payload)
            .map(|it| self.payload_object(&it.object))
            .collect();
        let is_old = |meta: &ObjectMeta| {
            time_of(meta).is_some_and(|time| Timestamp::now().duration_since(time) > ORPHANED)
        };
        let mut found = Vec::new();
        for meta in all.into_iter().filter(|meta| is_old(meta) && !used.contains(&meta.location)) {
            let is_gone = match mode {
                GcMode::Show => true,
                GcMode::Remove => self.objects.delete(&meta.location).await.is_ok(),
            };
            if is_gone {
                found.push(Bytes(meta.size));
            }
        }
        Ok(found)
    }
}
