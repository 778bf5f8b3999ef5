//! A reproducible archive: the names are sorted, there is no owner, and the time is fixed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

/// The files of an archive, with their modes.
#[derive(Default)]
pub(super) struct Files(BTreeMap<PathBuf, (u32, Vec<u8>)>);

/// The modification time of files, in seconds since 1970: 1980-01-01, the earliest in a wheel.
const TIME: u64 = 315_532_800;

impl Files {
    /// Adds an executable file.
    pub fn program(&mut self, path: impl AsRef<Path>, bytes: Vec<u8>) {
        self.0.insert(path.as_ref().to_owned(), (0o755, bytes));
    }

    /// Adds a file that is not executable.
    pub fn text(&mut self, path: impl AsRef<Path>, bytes: Vec<u8>) {
        self.0.insert(path.as_ref().to_owned(), (0o644, bytes));
    }

    /// The bytes of the archive: `tar`, compressed with gzip.
    ///
    /// # Errors
    ///
    /// If a path is too long for an archive.
    pub fn packed(&self) -> anyhow::Result<Vec<u8>> {
        let to = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
        let mut builder = Builder::new(to);
        for (path, (mode, bytes)) in &self.0 {
            let mut header = Header::new_gnu();
            header.set_entry_type(EntryType::Regular);
            header.set_size(bytes.len() as u64);
            header.set_mode(*mode);
            header.set_mtime(TIME);
            header.set_uid(0);
            header.set_gid(0);
            builder.append_data(&mut header, path, &**bytes)?;
        }
        Ok(builder.into_inner()?.finish()?)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn the_same_files_make_the_same_archive() {
        let files = |names: [&str; 2]| {
            let mut files = Files::default();
            names.iter().for_each(|name| files.text(name, name.as_bytes().to_vec()));
            files.program("e/run", b"#!".to_vec());
            files.packed().expect("short paths")
        };
        let packed = files(["e/b", "e/a"]);
        assert_eq!(packed, files(["e/a", "e/b"]));
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&*packed));
        let mut found = Vec::new();
        for entry in archive.entries().expect("an archive") {
            let mut entry = entry.expect("an entry");
            let mut text = String::new();
            entry.read_to_string(&mut text).expect("a text");
            let header = entry.header();
            let numbers = (header.mode(), header.mtime(), header.uid(), header.gid());
            let (mode, time, user, group) = numbers;
            let known = [mode.map(u64::from), time, user, group].map(|it| it.expect("a number"));
            found.push((entry.path().expect("a path").display().to_string(), text, known));
        }
        let of =
            |name: &str, text: &str, mode| (name.to_owned(), text.to_owned(), [mode, TIME, 0, 0]);
        let expect = [of("e/a", "e/a", 0o644), of("e/b", "e/b", 0o644), of("e/run", "#!", 0o755)];
        assert_eq!(found, expect);
    }
}
