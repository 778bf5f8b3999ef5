//! Packs of the archive: any bytes in place of a pack.

use std::fs;

use epitome::archive::{Archive, SessionKey};
use epitome_model::Ref;

/// Reads any bytes as a pack, and imports them as a tar file. The archive must read them or return
/// an error, and must not panic.
///
/// # Panics
///
/// If that does not hold, or there is no room for a temporary folder.
pub fn pack(bytes: &[u8]) {
    let home = tempfile::tempdir().expect("a temporary folder");
    let archive = Archive::new(home.path());
    let key = SessionKey::new("pi", "s");
    let folder = Archive::folder_in(home.path()).join("pi/s");
    fs::create_dir_all(&folder).expect("a folder of the archive");
    fs::write(folder.join("000001.pack"), bytes).expect("a pack");
    // Whether these calls return errors depends on the bytes; they only must not panic.
    let _ = archive.find(&Ref::from_bytes(b"removed"));
    let _ = archive.verify();
    let _ = archive.sessions();
    if let Ok(found) = archive.generations(&key) {
        for generation in &found.whole {
            let pieces = generation.records.iter().flat_map(|record| &record.splices);
            for piece in pieces {
                let _ = archive.read(&key, generation.number, &piece.blob);
            }
        }
    }
    let _ = archive.export(&key, &mut Vec::new());
    let _ = archive.import(&mut &*bytes, Default::default(), &|_| Vec::new());
}
