//! Converts the result of a call to text for the model.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// The maximum number of bytes of a result that are kept at its beginning, and again at its end.
const KEPT: usize = 128 << 10;

/// The text of a result.
///
/// # Errors
///
/// The text, if the tool reports a failure.
pub(super) fn text(result: &CallToolResult) -> Result<String, String> {
    let mut parts: Vec<String> = result.content.iter().map(part).collect();
    // Structured content usually repeats the text, so it is only used if the result has no other
    // content.
    if let Some(structured) = result.structured_content.as_ref().filter(|_| parts.is_empty()) {
        parts.push(structured.to_string());
    }
    let text = cut(parts.join("\n"));
    if result.is_error == Some(true) { Err(text) } else { Ok(text) }
}

fn part(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => {
            format!(
                "[a picture, {}, {} bytes: not shown]",
                image.mime_type,
                decoded_size(&image.data)
            )
        }
        ContentBlock::Audio(audio) => {
            format!("[sound, {}, {} bytes: not played]", audio.mime_type, decoded_size(&audio.data))
        }
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("{uri}:\n{text}"),
            ResourceContents::BlobResourceContents { uri, blob, .. } => {
                format!("[{uri}, {} bytes: not shown]", decoded_size(blob))
            }
            _ => "[a resource of an unknown kind]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("[{}: {}]", link.name, link.uri),
        _ => "[content of an unknown kind]".to_owned(),
    }
}

/// The size of the decoded data: base64 has four characters for three bytes.
fn decoded_size(base64: &str) -> usize {
    base64.len() / 4 * 3
}

/// Removes the middle of a text that is longer than twice [`KEPT`].
fn cut(text: String) -> String {
    if text.len() <= 2 * KEPT {
        return text;
    }
    let head = text.floor_char_boundary(KEPT);
    let tail = text.ceil_char_boundary(text.len() - KEPT);
    format!("{}\n[{} bytes left out]\n{}", &text[..head], tail - head, &text[tail..])
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(result: Value) -> Result<String, String> {
        text(&serde_json::from_value(result).unwrap())
    }

    #[test]
    fn each_kind_of_content_becomes_text() {
        let content = json!([
            {"type": "text", "text": "one"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "audio", "data": "AAAAAAAA", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "file:///a", "text": "two"}},
            {"type": "resource", "resource": {"uri": "file:///b", "blob": "AAAA"}},
            {"type": "resource_link", "uri": "file:///c", "name": "c"},
        ]);
        let expect = "one\n[a picture, image/png, 3 bytes: not shown]\n\
                      [sound, audio/wav, 6 bytes: not played]\nfile:///a:\ntwo\n\
                      [file:///b, 3 bytes: not shown]\n[c: file:///c]";
        assert_eq!(read(json!({"content": content})), Ok(expect.to_owned()));
        let failed = json!({"content": [{"type": "text", "text": "no"}], "isError": true});
        assert_eq!(read(failed), Err("no".to_owned()));
        let structured = json!({"content": [], "structuredContent": {"a": 1}});
        assert_eq!(read(structured), Ok("{\"a\":1}".to_owned()));
    }

    #[test]
    fn a_long_result_loses_its_middle() {
        let long = "é".repeat(KEPT * 2);
        let short = read(json!({"content": [{"type": "text", "text": long}]})).unwrap();
        assert!(short.contains("\n[262144 bytes left out]\n"), "{}", short.len());
        assert_eq!(short.len(), 2 * KEPT + "\n[262144 bytes left out]\n".len());
    }
}
