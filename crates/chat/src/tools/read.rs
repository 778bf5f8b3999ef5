//! `read`: returns the lines of a file.

use std::fs;

use serde::Deserialize;

use epitome_model::ToolKind;

use super::{Fold, Tool, Workplace, described, parsed, permitted};
use crate::permissions::Access;

pub(super) const TOOL: Tool = Tool {
    name: "read",
    kind: ToolKind::Read,
    subject: |it| described(it, &["{path}", " from line {offset}", ", {limit} lines"]),
    fold: Fold::Count,
    description: "Reads a text file: at most 2,000 lines or 100,000 bytes at once. Use offset and \
                  limit for other parts of a long file.",
    parameters: concat!(
        r#"{"type":"object","properties":{"path":{"type":"string","description":"The file, "#,
        r#"relative to the project"},"offset":{"type":"integer","description":"The first "#,
        r#"line, from 1"},"limit":{"type":"integer","description":"How many lines"}},"#,
        r#""required":["path"]}"#,
    ),
    access: |place, arguments| {
        let Arguments { path, .. } = parsed(arguments)?;
        place.resolve(&path).map(Access::Read)
    },
    planned: None,
    run: |place, arguments, access, _| read(place, &parsed(arguments)?, access),
};

/// The maximum number of lines that a call returns.
const LINES: usize = 2_000;
/// The maximum number of bytes that a call returns.
const BYTES: usize = 100_000;
/// The largest file in bytes that is read.
const LARGEST: u64 = 64 << 20;

#[derive(Deserialize)]
struct Arguments {
    path: String,
    #[serde(default)]
    offset: Option<usize>,
    #[serde(default)]
    limit: Option<usize>,
}

fn read(place: &Workplace, arguments: &Arguments, access: &Access) -> Result<String, String> {
    let path = permitted(access)?;
    let text = text_of(place, path)?;
    let total = text.lines().count();
    let from = arguments.offset.unwrap_or(1).max(1) - 1;
    let limit = arguments.limit.unwrap_or(LINES).clamp(1, LINES);
    if from >= total && total > 0 {
        return Err(format!("{} has {total} lines", place.display(path)));
    }
    let mut shown = String::new();
    let mut end = from;
    for line in text.lines().skip(from).take(limit) {
        if shown.len() + line.len() > BYTES {
            if end == from {
                let cut = line.floor_char_boundary(BYTES);
                shown.push_str(&line[..cut]);
                shown.push_str("\n[the rest of this line is left out]\n");
                end += 1;
            }
            break;
        }
        shown.push_str(line);
        shown.push('\n');
        end += 1;
    }
    if total == 0 {
        return Ok("[the file is empty]".to_owned());
    }
    if from > 0 || end < total {
        shown.push_str(&format!("[lines {}-{end} of {total}]", from + 1));
    }
    Ok(shown)
}

/// The text of a regular file. An error if the file is a folder or another special file, is larger
/// than [`LARGEST`], cannot be read, or is not UTF-8.
pub(super) fn text_of(place: &Workplace, path: &std::path::Path) -> Result<String, String> {
    let name = place.display(path);
    let about = fs::metadata(path).map_err(|err| format!("{name}: {err}"))?;
    if about.is_dir() {
        return Err(format!("{name} is a folder: use glob"));
    }
    if !about.is_file() {
        return Err(format!("{name} is not a file"));
    }
    if about.len() > LARGEST {
        return Err(format!("{name} has {} bytes: use grep", about.len()));
    }
    let bytes = fs::read(path).map_err(|err| format!("{name}: {err}"))?;
    String::from_utf8(bytes).map_err(|_| format!("{name} is not a text file in UTF-8"))
}
