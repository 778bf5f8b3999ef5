//! The log of all versions of messages and parts: what can be removed from it.

use std::ops::Range;

use epitome_json::MalformedJson;
use epitome_model::{FieldRemainder, HiddenField};

use super::invariants::IN_METADATA;
use super::raw;
use crate::accounting;
use crate::place::RecordBytes;

/// The bulky values that can be removed from a logged version. What remains must be a version that
/// OpenCode can read: it reads the log again when another machine asks for it, and refuses events
/// that it does not know.
pub fn hidden_fields(
    at: &RecordBytes<'_>,
    data: &Range<usize>,
) -> Result<Vec<HiddenField>, MalformedJson> {
    let raw::Event { part, info, .. } = raw::Event::at(at.line, data)?;
    let mut hidden_fields = Vec::new();
    if let Some(part) = part {
        hidden_fields.extend(at.hidden("text", &part.text, FieldRemainder::EmptyText));
        hidden_fields.extend(at.hidden("url", &part.url, FieldRemainder::EmptyText));
        if let Some(state) = part.state {
            hidden_fields.extend(at.hidden("input", &state.input, FieldRemainder::EmptyObject));
            hidden_fields.extend(at.hidden("output", &state.output, FieldRemainder::EmptyText));
            hidden_fields.extend(at.hidden("error", &state.error, FieldRemainder::EmptyText));
            hidden_fields.extend(at.hidden(
                "attachments",
                &state.attachments.whole,
                FieldRemainder::Nothing,
            ));
            if let Some(metadata) = state.metadata {
                let metadata = ("metadata", &metadata.whole, FieldRemainder::EmptyObject);
                hidden_fields.extend(accounting::hidden_fields(at, metadata, IN_METADATA));
            }
        }
    }
    let changed = info.and_then(|info| info.summary).filter(|it| at.line[it.start] == b'{');
    hidden_fields.extend(at.hidden("summary", &changed, FieldRemainder::Nothing));
    Ok(hidden_fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_sub_agent_ran_in_stays_in_the_log() {
        // Both values are longer than the limit up to which values are kept.
        let (output, id) = ("o".repeat(80), "i".repeat(80));
        let noted =
            format!(r#"{{"sessionId":"{id}","model":{{"modelID":"{id}"}},"preview":"{output}"}}"#);
        let state = format!(
            r#"{{"status":"completed","input":{{}},"output":"{output}","metadata":{noted}}}"#
        );
        let record = format!(r#"{{"part":{{"type":"tool","state":{state}}}}}"#);
        let at = RecordBytes { line: record.as_bytes(), base: 0 };
        let hidden_fields = hidden_fields(&at, &(0..record.len())).expect("a version");
        let gone: Vec<&str> = hidden_fields
            .iter()
            .map(|copy| &record[copy.value.start as usize..copy.value.end as usize])
            .collect();
        let output = format!("\"{output}\"");
        assert_eq!(gone, ["{}", &output, &output]);
    }
}
