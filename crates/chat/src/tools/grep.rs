//! `grep`: finds lines by content, with ripgrep's libraries.

use grep_regex::RegexMatcherBuilder;
use grep_searcher::sinks::Lossy;
use grep_searcher::{BinaryDetection, SearcherBuilder};
use serde::Deserialize;

use epitome_model::ToolKind;

use super::glob::{files, matcher};
use super::{Fold, Tool, Workplace, described, parsed, permitted};
use crate::permissions::Access;
use epitome_llm::Stop;

pub(super) const TOOL: Tool = Tool {
    name: "grep",
    kind: ToolKind::Search,
    subject: |it| described(it, &["{pattern}", " in {path}", " of {include}"]),
    fold: Fold::Beginning,
    description: "Searches files for a regular expression; returns path:line:text, at most 200 \
                  lines. Files that .gitignore names and binary files are left out.",
    parameters: concat!(
        r#"{"type":"object","properties":{"pattern":{"type":"string","description":"The "#,
        r#"regular expression"},"path":{"type":"string","description":"A file or folder, "#,
        r#"relative to the project; the project by default"},"include":{"type":"string","#,
        r#""description":"Only files that match this: *.rs"},"ignore_case":{"#,
        r#""type":"boolean"}},"required":["pattern"]}"#,
    ),
    access: |place, arguments| {
        let Arguments { path, .. } = parsed(arguments)?;
        place.resolve(path.as_deref().unwrap_or(".")).map(Access::Read)
    },
    planned: None,
    run: |place, arguments, access, stop| grep(place, &parsed(arguments)?, access, stop),
};

/// The maximum number of lines that a call returns.
const LIMIT: usize = 200;
/// The maximum number of characters of a returned line.
const WIDTH: usize = 300;

#[derive(Deserialize)]
struct Arguments {
    pattern: String,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    include: Option<String>,
    #[serde(default)]
    ignore_case: bool,
}

fn grep(
    place: &Workplace,
    arguments: &Arguments,
    access: &Access,
    stop: &Stop,
) -> Result<String, String> {
    let folder = permitted(access)?;
    let regex = RegexMatcherBuilder::new()
        .case_insensitive(arguments.ignore_case)
        .build(&arguments.pattern)
        .map_err(|err| format!("bad pattern: {err}"))?;
    let include = arguments.include.as_deref().map(|include| {
        // A pattern without a slash applies in every folder.
        matcher(&if include.contains('/') { include.to_owned() } else { format!("**/{include}") })
    });
    let include = include.transpose()?;
    let mut searcher =
        SearcherBuilder::new().binary_detection(BinaryDetection::quit(0)).line_number(true).build();
    let mut found: Vec<String> = Vec::new();
    for path in files(folder)? {
        if stop.is_stopped() {
            return Err("stopped".to_owned());
        }
        let inside = path.strip_prefix(folder).unwrap_or(&path);
        if include.as_ref().is_some_and(|include| !include.is_match(inside)) {
            continue;
        }
        let name = place.display(&path);
        let sink = Lossy(|number, line| {
            let line = epitome_model::short(line.trim_end(), WIDTH);
            found.push(format!("{name}:{number}:{line}"));
            Ok(found.len() <= LIMIT)
        });
        // A file that cannot be read has no matches.
        let _unread = searcher.search_path(&regex, &path, sink);
        if found.len() > LIMIT {
            break;
        }
    }
    if found.is_empty() {
        return Ok(format!("no line matches {}", arguments.pattern));
    }
    let more = found.len() > LIMIT;
    found.truncate(LIMIT);
    if more {
        found.push(format!("[the first {LIMIT} lines: there are more]"));
    }
    Ok(found.join("\n"))
}
