//! What was removed, from the log.

use epitome_model::{Block, Ref};

use super::Context;

impl Context {
    /// What was removed under a reference: the words, from the log.
    pub fn recall(&self, reference: &Ref) -> Option<String> {
        if let Some(messages) = self.recall_cut(reference) {
            return Some(messages);
        }
        let source = self.log.bytes();
        let matches = |span| {
            let raw = epitome_model::Source::at(source, span);
            Ref::of(&raw).digits().starts_with(reference.digits())
                || reference.digits().starts_with(Ref::of(&raw).digits())
        };
        let blocks = self.transcript().entries().flat_map(|(_, entry)| &entry.blocks);
        blocks.into_iter().find_map(|block| match block {
            Block::Output(output) if matches(output.whole) => Some(output.text(source)),
            Block::Call(call) => {
                let mut fields = call.fields.iter();
                let field = fields.find(|field| field.text.span().is_some_and(matches))?;
                Some(field.text.read(source).into_owned())
            }
            _ => None,
        })
    }
}
