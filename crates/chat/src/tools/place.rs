//! Resolves a path: the result is absolute and has no `..`, and every symbolic link is followed,
//! whether or not the file exists.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use super::Workplace;

/// The maximum number of symbolic links on a path. A path with more is taken for a cycle.
const LINKS: usize = 40;

impl Workplace {
    /// Resolves a path that the model gave.
    ///
    /// # Errors
    ///
    /// If the path is empty or contains a NUL, or if its links form a cycle or cannot be read.
    pub(super) fn resolve(&self, path: &str) -> Result<PathBuf, String> {
        if path.is_empty() || path.contains('\0') {
            return Err(format!("`{}` is no path", path.escape_debug()));
        }
        let mut rest: Vec<OsString> = Vec::new();
        let mut found = PathBuf::new();
        push(&mut rest, &self.root.join(path), &mut found);
        let mut links = 0;
        while let Some(part) = rest.pop() {
            if part == ".." {
                found.pop();
                continue;
            }
            let next = found.join(&part);
            let is_link = next.symlink_metadata().is_ok_and(|it| it.file_type().is_symlink());
            if !is_link {
                found = next;
                continue;
            }
            links += 1;
            if links > LINKS {
                return Err(format!("{path}: too many symbolic links"));
            }
            let target = next.read_link().map_err(|err| format!("{path}: {err}"))?;
            push(&mut rest, &target, &mut found);
        }
        Ok(found)
    }

    /// A path as it is shown to the model: relative to the project's folder if the path is inside
    /// that folder.
    pub(super) fn display(&self, path: &Path) -> String {
        let inside = path.strip_prefix(&self.root).ok();
        let inside = inside.map(|path| if path == Path::new("") { Path::new(".") } else { path });
        inside.unwrap_or(path).display().to_string()
    }
}

/// Puts the components of `path` before the `rest` that is still to be resolved. An absolute path
/// resets `found`, the part that is resolved already, to the root.
fn push(rest: &mut Vec<OsString>, path: &Path, found: &mut PathBuf) {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::Prefix(_) | Component::RootDir => {
                if !found.has_root() || matches!(part, Component::RootDir) {
                    *found = path.components().take_while(is_start).collect();
                }
            }
            Component::CurDir => {}
            Component::ParentDir => parts.push(OsString::from("..")),
            Component::Normal(name) => parts.push(name.to_owned()),
        }
    }
    rest.extend(parts.into_iter().rev());
}

fn is_start(part: &Component<'_>) -> bool {
    matches!(part, Component::Prefix(_) | Component::RootDir)
}
