//! Converts a message of an editor to the text that the model reads.

use super::wire::ContentBlock;

/// The text of a message. A link to a resource becomes the URI of the resource; an embedded
/// resource becomes its URI and its text. A file's URI is written as a path.
pub(super) fn text(blocks: &[ContentBlock]) -> Result<String, String> {
    let mut text = String::new();
    for block in blocks {
        match block {
            ContentBlock::Text { text: block } => text.push_str(block),
            ContentBlock::ResourceLink { uri } => text.push_str(named(uri)),
            ContentBlock::Resource { resource } => {
                let Some(file) = &resource.text else {
                    return Err("a file that is no text cannot be sent".to_owned());
                };
                let name = named(&resource.uri);
                text.push_str(&format!("\n<file name={name:?}>\n{file}\n</file>\n"));
            }
            ContentBlock::Image => return Err("pictures cannot be sent".to_owned()),
            ContentBlock::Audio => return Err("sound cannot be sent".to_owned()),
            ContentBlock::Unknown => {
                return Err("a part of the message is of an unknown kind".to_owned());
            }
        }
    }
    if text.trim().is_empty() { Err("the message is empty".to_owned()) } else { Ok(text) }
}

/// A `file://` URI without its scheme, which is a path; any other URI unchanged.
fn named(uri: &str) -> &str {
    uri.strip_prefix("file://").unwrap_or(uri)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_message_is_its_texts_with_the_files_that_are_named_or_sent_along() {
        let read =
            |blocks: Value| text(&serde_json::from_value::<Vec<ContentBlock>>(blocks).unwrap());
        let file = json!({"uri": "file:///p/a.rs", "text": "fn a() {}"});
        let blocks = json!([
            {"type": "text", "text": "Look at "},
            {"type": "resource_link", "uri": "file:///p/b.rs", "name": "b.rs"},
            {"type": "resource", "resource": file},
        ]);
        let expect = "Look at /p/b.rs\n<file name=\"/p/a.rs\">\nfn a() {}\n</file>\n";
        assert_eq!(read(blocks), Ok(expect.to_owned()));
        let picture = json!([{"type": "image", "data": "", "mimeType": "image/png"}]);
        assert_eq!(read(picture), Err("pictures cannot be sent".to_owned()));
        let smell = json!([{"type": "smell"}]);
        assert_eq!(read(smell), Err("a part of the message is of an unknown kind".to_owned()));
        assert_eq!(read(json!([])), Err("the message is empty".to_owned()));
    }
}
