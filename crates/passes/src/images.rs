//! Replaces old images by stubs with their size.

use epitome_model::{At, Block, Bytes, Edit, Image, Part, Ref, Stub, Verb};
use serde::{Deserialize, Serialize};

use crate::{Pass, View};

/// Settings of the pass that replaces images.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Images {
    /// Images with at most this many bytes of base64 are not replaced.
    pub min_bytes: u64,
}

impl Pass for Images {
    fn name(&self) -> &'static str {
        "images"
    }

    fn plan(&self, view: &View<'_>) -> Vec<Edit> {
        let mut edits = Vec::new();
        for (item, entry) in view.entries_not_kept() {
            for (block, said) in entry.blocks.iter().enumerate() {
                match said {
                    Block::Image(image) => {
                        edits.extend(self.edit(view, At::Block { item, block }, image));
                    }
                    Block::Output(output) => {
                        for (part, piece) in output.parts.iter().enumerate() {
                            if let Part::Image(image) = piece {
                                let at = At::Part { item, block, part };
                                edits.extend(self.edit(view, at, image));
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
        edits
    }
}

impl Images {
    fn edit(&self, view: &View<'_>, at: At, image: &Image) -> Option<Edit> {
        if view.is_edited(at) || image.data.len() <= self.min_bytes {
            return None;
        }
        let reference = Ref::from_bytes(&view.source.at(image.whole));
        // Base64 has four characters for three bytes. The quotes around the data are left out of
        // the count.
        let bytes = Bytes(image.data.len().saturating_sub(2) / 4 * 3);
        let stub = Stub::new(reference).with_what(&image.media).with_size(bytes).to_string();
        // The JSON around a text that replaces an image has about 32 bytes.
        (stub.len() as u64 + 32 < image.whole.len()).then_some(Edit {
            at,
            verb: Verb::Replace(stub),
            pass: self.name(),
        })
    }
}

/// A text without the stubs of removed images at its end.
pub(crate) fn without_stubs(mut text: &str) -> &str {
    while let Some((rest, last)) = text.rsplit_once('\n')
        && Stub::parse(last).is_some()
    {
        text = rest;
    }
    text
}

#[cfg(test)]
#[path = "images_tests.rs"]
mod tests;
