//! Not written yet.

mod archive;
mod backup;
mod compact;
mod config;
mod error;
pub mod find;
mod list;
mod reference;
mod restore;
mod session;
mod source;
mod store;

pub use archive::{
    About, Archive, Collected, Digest, Draft, EditedRecord, Found, GcMode, GcReport, Generation,
    Generations, Hash, Hex, ImportReport, Imported, NoHash, PackWriter, RecordHash, SessionBlobs,
    SessionKey, UndoSplice, VerifyReport, WayBack,
};
pub use backup::{BackupPlace, keep_backup};
pub use compact::{Planned, apply, apply_to, write_file};
pub use config::Config;
pub use error::{Error, ErrorKind, Result};
pub use find::{Meant, SessionFile};
pub use list::{Glance, Listed, list};
pub use reference::{GitObjects, Reference, Standing, blob_id};
pub use restore::{Blobs, Restoration, Restored, Target, restore, restore_block};
pub use session::Loaded;
pub use source::{FileSource, Spliced};
pub use store::{Replaced, Session, Store, User, users_of, write_new};
