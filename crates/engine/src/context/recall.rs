//! What was removed, from the log.

use epitome_model::{Block, Image, Part, Ref, Source, decode};

use super::Context;

impl Context {
    /// What was removed under a reference, from the log: the words, or a picture as a `data:` URL.
    pub fn recall(&self, reference: &Ref) -> Option<String> {
        if let Some(messages) = self.recall_cut(reference) {
            return Some(messages);
        }
        let source = self.log.bytes();
        let matches = |span| {
            let raw = Source::at(source, span);
            Ref::of(&raw).digits().starts_with(reference.digits())
                || reference.digits().starts_with(Ref::of(&raw).digits())
        };
        let blocks = self.transcript().entries().flat_map(|(_, entry)| &entry.blocks);
        blocks.into_iter().find_map(|block| match block {
            Block::Output(output) if matches(output.whole) => Some(output.text(source)),
            Block::Output(output) => output.parts.iter().find_map(|part| match part {
                Part::Image(image) if matches(image.whole) => Some(url(image, source)),
                Part::Image(_) | Part::Text(_) | Part::Opaque(_) => None,
            }),
            Block::Image(image) if matches(image.whole) => Some(url(image, source)),
            Block::Call(call) => {
                let mut fields = call.fields.iter();
                let field = fields.find(|field| field.text.span().is_some_and(matches))?;
                Some(field.text.read(source).into_owned())
            }
            _ => None,
        })
    }

    /// Of each result that is not sent as it was said: its call, and the reference under which
    /// [`recall`](Context::recall) gives the whole, whether what is sent names it or not.
    pub fn references(&self) -> Vec<(&str, Ref)> {
        let (log, source) = (self.log.log(), self.log.bytes());
        let outputs = |item: usize| {
            let entry = self.transcript().items[item].entry();
            entry.into_iter().flat_map(|entry| &entry.blocks).filter_map(|block| match block {
                Block::Output(output) => Some(output),
                _ => None,
            })
        };
        let sent = self.transcript().context().map(|(item, _)| item);
        let pairs = sent.filter(|&item| log.as_said(item) != item).flat_map(|item| {
            let whole = outputs(log.as_said(item));
            whole.map(move |whole| (whole, outputs(item).find(|now| now.call == whole.call)))
        });
        pairs
            .filter(|(whole, now)| now.is_some_and(|it| it.text(source) != whole.text(source)))
            .map(|(whole, _)| (&*whole.call, Ref::of(&Source::at(source, whole.whole))))
            .collect()
    }
}

fn url(image: &Image, source: &dyn Source) -> String {
    format!("data:{};base64,{}", image.media, decode(&source.at(image.data)))
}
