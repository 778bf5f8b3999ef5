//! The object that says what a remote archive is: [`Marker`].

use std::path::Path;

use epitome_error::{Error, ErrorKind, Result};
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions};
use serde::{Deserialize, Serialize};

use crate::failure::{Access, failed};

/// The format of the objects. A change that an older epitome would misread gets a new number.
const FORMAT: u32 = 1;

/// The format of a remote archive, and the public part of its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marker {
    format: u32,
    pub recipient: String,
}

impl Marker {
    pub(crate) fn new(recipient: String) -> Marker {
        Marker { format: FORMAT, recipient }
    }

    fn object(prefix: &ObjectPath) -> ObjectPath {
        prefix.clone().join("epitome.json")
    }

    /// Reads the marker. `None` if the remote archive has none yet.
    pub(crate) async fn read(
        objects: &dyn ObjectStore,
        prefix: &ObjectPath,
        location: &Path,
    ) -> Result<Option<Marker>> {
        let read = async { objects.get(&Marker::object(prefix)).await?.bytes().await };
        let bytes = match read.await {
            Ok(bytes) => bytes,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(err) => return Err(failed(err, Access::Read, location)),
        };
        let marker: Marker = serde_json::from_slice(&bytes).map_err(|err| {
            let what = "what is stored there is not a remote archive of epitome";
            Error::new(ErrorKind::Refused, what).at(location).because(err)
        })?;
        if marker.format > FORMAT {
            let what = "a newer version of epitome wrote the remote archive";
            return Err(Error::new(ErrorKind::NewerFormat, what).at(location));
        }
        Ok(Some(marker))
    }

    /// Writes the marker, unless there is a marker already.
    pub(crate) async fn create(
        &self,
        objects: &dyn ObjectStore,
        prefix: &ObjectPath,
        location: &Path,
    ) -> Result<()> {
        let json = serde_json::to_vec(self)
            .map_err(|err| Error::new(ErrorKind::Broken, "no marker").because(err))?;
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        match objects.put_opts(&Marker::object(prefix), json.into(), options).await {
            Ok(_)
            | Err(
                object_store::Error::AlreadyExists { .. }
                | object_store::Error::Precondition { .. },
            ) => Ok(()),
            Err(err) => Err(failed(err, Access::Write, location)),
        }
    }
}
