//! Parses the text of a patch.

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File: ";
const DELETE: &str = "*** Delete File: ";
const UPDATE: &str = "*** Update File: ";
const MOVE: &str = "*** Move to: ";
const AT_END: &str = "*** End of File";

/// The operation of a patch on one file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FilePatch {
    path: String,
    pub(super) operation: Operation,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// Creates the file with this text.
    Add(String),
    Delete,
    Update {
        /// The new path, if the file is renamed.
        to: Option<String>,
        hunks: Vec<Hunk>,
    },
}

/// One hunk: a change in a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Hunk {
    /// The line that the hunk names after `@@`. It is somewhere above the change.
    pub(super) below: Option<String>,
    pub(super) lines: Vec<(Kind, String)>,
    /// Whether the hunk is at the end of the file.
    pub(super) at_end: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Stays,
    Goes,
    Comes,
}

impl FilePatch {
    /// The path of the file, and its new path if it is renamed.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        let to = match &self.operation {
            Operation::Update { to, .. } => to.as_deref(),
            Operation::Add(_) | Operation::Delete => None,
        };
        [Some(&*self.path), to].into_iter().flatten()
    }
}

/// Parses a patch. `*** Begin Patch` and `*** End Patch` may be missing.
pub(super) fn parse(patch: &str) -> Result<Vec<FilePatch>, String> {
    let mut files: Vec<FilePatch> = Vec::new();
    let text = patch.trim();
    let text = text.strip_prefix(BEGIN).unwrap_or(text);
    let text = text.strip_suffix(END).unwrap_or(text);
    let mut lines = text.lines().map(|line| line.strip_suffix('\r').unwrap_or(line));
    for (at, line) in lines.by_ref().enumerate() {
        if let Some(file) = headline(line) {
            files.push(file);
        } else if let Some(file) = files.last_mut() {
            take(file, line).map_err(|why| format!("line {} of the patch: {why}", at + 1))?;
        } else if !line.trim().is_empty() {
            return Err(format!("a patch begins with {BEGIN}, and {UPDATE}PATH or its like"));
        }
    }
    if files.is_empty() {
        return Err("the patch is empty".to_owned());
    }
    for FilePatch { path, operation } in &mut files {
        let Operation::Update { to, hunks } = operation else { continue };
        hunks.retain(|hunk| !hunk.lines.is_empty());
        if hunks.is_empty() && to.is_none() {
            return Err(format!("nothing is changed in {path}"));
        }
    }
    Ok(files)
}

fn headline(line: &str) -> Option<FilePatch> {
    let (path, operation) = if let Some(path) = line.strip_prefix(ADD) {
        (path, Operation::Add(String::new()))
    } else if let Some(path) = line.strip_prefix(DELETE) {
        (path, Operation::Delete)
    } else {
        (line.strip_prefix(UPDATE)?, Operation::Update { to: None, hunks: Vec::new() })
    };
    Some(FilePatch { path: path.trim().to_owned(), operation })
}

/// Parses a line of an operation on a file.
fn take(file: &mut FilePatch, line: &str) -> Result<(), String> {
    match &mut file.operation {
        Operation::Add(text) => match line.strip_prefix('+') {
            Some(line) => {
                text.push_str(line);
                text.push('\n');
                Ok(())
            }
            None if line.trim().is_empty() => Ok(()),
            None => Err("a line of a new file begins with +".to_owned()),
        },
        Operation::Delete if line.trim().is_empty() => Ok(()),
        Operation::Delete => Err("nothing comes behind a file that is deleted".to_owned()),
        Operation::Update { to, hunks } => {
            if let (Some(path), true) = (line.strip_prefix(MOVE), hunks.is_empty()) {
                *to = Some(path.trim().to_owned());
                return Ok(());
            }
            change(hunks, line)
        }
    }
}

/// Parses a line of a hunk.
fn change(hunks: &mut Vec<Hunk>, line: &str) -> Result<(), String> {
    if let Some(rest) = line.strip_prefix("@@") {
        // Hunks of the unified format begin with `@@ -1,2 +3,4 @@`. Their numbers are ignored.
        let rest = rest.trim();
        let is_numbers = rest.starts_with('-') && rest.contains("@@");
        let below = Some(rest.to_owned()).filter(|it| !it.is_empty() && !is_numbers);
        hunks.push(Hunk { below, ..Hunk::default() });
        return Ok(());
    }
    if hunks.is_empty() {
        hunks.push(Hunk::default());
    }
    let Some(hunk) = hunks.last_mut() else { return Ok(()) };
    if line == AT_END {
        hunk.at_end = true;
        return Ok(());
    }
    let kind = match line.chars().next() {
        Some(' ') => Kind::Stays,
        Some('-') => Kind::Goes,
        Some('+') => Kind::Comes,
        // An empty line of the file, without the blank that should precede it.
        None => {
            hunk.lines.push((Kind::Stays, String::new()));
            return Ok(());
        }
        Some(_) => return Err("it begins with none of blank, -, +, @@ and ***".to_owned()),
    };
    hunk.lines.push((kind, line[1..].to_owned()));
    Ok(())
}
