//! The tool `recall`: what was shortened, from the log.

use epitome_model::Ref;
use epitome_passes::calls_of_name;
use serde::Deserialize;

use super::Machine;

/// Lines that one call returns unless it asks for others.
const LINES: usize = 400;

#[derive(Deserialize)]
struct Arguments {
    #[serde(rename = "ref")]
    reference: String,
    #[serde(default)]
    search: Option<String>,
    #[serde(default)]
    offset: Option<usize>,
    #[serde(default)]
    limit: Option<usize>,
}

impl Machine {
    /// What a call of `recall` returns, or why there is nothing.
    pub(super) fn recall(&self, arguments: &str) -> Result<String, String> {
        let arguments: Arguments =
            serde_json::from_str(arguments).map_err(|err| format!("bad arguments: {err}"))?;
        let text = self.find_removed(arguments.reference.trim())?;
        Ok(excerpt(&text, &arguments))
    }

    fn find_removed(&self, name: &str) -> Result<String, String> {
        let calls = match name.parse::<u64>() {
            Ok(number) => Some(number..=number),
            Err(_) => calls_of_name(name),
        };
        let found = match calls {
            Some(calls) => self.context.recall_calls(calls),
            None => {
                let reference: Ref = name.parse().map_err(|_| {
                    format!("`{name}` is no reference: use one like k495d399, or a call like #12")
                })?;
                self.context.recall(&reference)
            }
        };
        found.ok_or_else(|| format!("nothing was shortened under {name}"))
    }
}

/// The lines asked for, and how many there are.
fn excerpt(text: &str, arguments: &Arguments) -> String {
    let lines: Vec<&str> = text.lines().collect();
    if let Some(search) = &arguments.search {
        let hits = lines.iter().enumerate().filter(|(_, line)| line.contains(search.as_str()));
        let hits: Vec<String> =
            hits.take(LINES).map(|(at, line)| format!("{}: {line}", at + 1)).collect();
        if hits.is_empty() {
            return format!("no line of {} holds `{search}`", lines.len());
        }
        return hits.join("\n");
    }
    let from = arguments.offset.unwrap_or(1).max(1) - 1;
    let limit = arguments.limit.unwrap_or(LINES).max(1);
    let shown: Vec<&str> = lines.iter().skip(from).take(limit).copied().collect();
    let mut text = shown.join("\n");
    let end = from + shown.len();
    if from > 0 || end < lines.len() {
        text.push_str(&format!("\n[lines {}-{end} of {}]", from + 1, lines.len()));
    }
    text
}
