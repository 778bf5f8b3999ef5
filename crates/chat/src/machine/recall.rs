//! The tool `recall`: returns text from the log, for example text that is not sent any more.

use epitome_engine::RecallResult;
use epitome_model::plural;
use epitome_passes::{Name, response_name};
use serde::Deserialize;

use super::Machine;

/// The number of lines of a recalled text that a call without a `limit` returns at most, and the
/// number of lines that a search in one recalled text returns at most.
const LINES: usize = 400;
/// The maximum number of lines that a search of the whole log returns.
const HITS: usize = 100;
/// The maximum number of characters of a line that a search of the whole log returns.
const WIDTH: usize = 300;

#[derive(Deserialize)]
struct Arguments {
    #[serde(rename = "ref", default)]
    reference: Option<String>,
    #[serde(default)]
    search: Option<String>,
    #[serde(default)]
    offset: Option<usize>,
    #[serde(default)]
    limit: Option<usize>,
}

impl Machine {
    /// The result of a call of `recall`, or why there is none.
    pub(super) fn recall(&self, arguments: &str) -> Result<String, String> {
        let arguments: Arguments =
            serde_json::from_str(arguments).map_err(|err| format!("bad arguments: {err}"))?;
        let reference = arguments.reference.as_ref().filter(|it| !it.trim().is_empty());
        let search = arguments.search.as_ref().filter(|it| !it.trim().is_empty());
        match (reference, search) {
            (Some(name), _) => {
                let recalled = self.find_removed(name.trim())?;
                excerpt(&recalled, &arguments)
            }
            (None, Some(search)) => self.search(search),
            (None, None) => {
                Err("bad arguments: a `ref`, a `search`, or both are needed".to_owned())
            }
        }
    }

    fn find_removed(&self, name: &str) -> Result<RecallResult, String> {
        let wanted = Name::parse(name).ok_or_else(|| {
            format!(
                "`{name}` is no reference: use one like k495d399, a call like #12, or a response \
                 of yours like @7"
            )
        })?;
        let found = self.context.recall_name(&wanted);
        found.ok_or_else(|| format!("nothing was shortened under {name}"))
    }

    /// The lines that contain a text, in all messages of the log: at most [`HITS`], followed by a
    /// line that says so if there are more. An error if no line contains the text.
    fn search(&self, search: &str) -> Result<String, String> {
        let hits = self.context.search(search, HITS + 1);
        if hits.is_empty() {
            return Err(format!("nothing that was said holds `{search}`"));
        }
        let lines = hits.iter().take(HITS).map(|it| {
            format!("{} {}: {}", it.name, it.line, epitome_model::short(&it.text, WIDTH))
        });
        let mut lines: Vec<String> = lines.collect();
        if hits.len() > HITS {
            lines.push(format!("[the first {HITS} lines: there are more]"));
        }
        Ok(lines.join("\n"))
    }
}

/// The part of a recalled text that the arguments ask for.
///
/// With `search`, these are the lines that contain it, with their numbers, at most [`LINES`]. Lines
/// of the texts that the model wrote with the call come first, and are numbered separately. If no
/// line contains it, a text says so.
///
/// Otherwise these are the lines from `offset` on, at most `limit` of them. If lines before or
/// after them are left out, a last line says which lines are returned. If `offset` is 1, the texts
/// that the model wrote with the call come before them. An error if `offset` is past the end.
fn excerpt(recalled: &RecallResult, arguments: &Arguments) -> Result<String, String> {
    let RecallResult { text, response_texts: said } = recalled;
    let lines: Vec<&str> = text.lines().collect();
    if let Some(search) = arguments.search.as_ref().filter(|it| !it.trim().is_empty()) {
        let found = |text: &str| {
            let hits = text.lines().enumerate().filter(|(_, line)| line.contains(search.as_str()));
            hits.map(|(at, line)| format!("{}: {line}", at + 1)).collect::<Vec<_>>()
        };
        let of_said = said.iter().flat_map(|it| {
            let name = response_name(it.response);
            found(&it.text).into_iter().map(move |line| format!("{name} {line}"))
        });
        let hits: Vec<String> = of_said.chain(found(text)).take(LINES).collect();
        if hits.is_empty() {
            let all = said.iter().map(|it| it.text.lines().count()).sum::<usize>() + lines.len();
            return Ok(format!("no line of {all} holds `{search}`"));
        }
        return Ok(hits.join("\n"));
    }
    let from = arguments.offset.unwrap_or(1).max(1) - 1;
    let limit = arguments.limit.unwrap_or(LINES).max(1);
    if from > 0 && from >= lines.len() {
        return Err(format!("the text has {}", plural(lines.len() as u64, "line")));
    }
    let shown: Vec<&str> = lines.iter().skip(from).take(limit).copied().collect();
    let mut excerpt = shown.join("\n");
    let end = from + shown.len();
    if from > 0 || end < lines.len() {
        excerpt.push_str(&format!("\n[lines {}-{end} of {}]", from + 1, lines.len()));
    }
    if from > 0 || said.is_empty() {
        return Ok(excerpt);
    }
    let parts =
        said.iter().map(|it| format!("[you said, {}:]\n{}", response_name(it.response), it.text));
    let mut parts: Vec<String> = parts.collect();
    if !text.is_empty() {
        parts.push(format!("[result:]\n{excerpt}"));
    }
    Ok(parts.join("\n"))
}
