//! The size of a context, which is updated with every entry.

use epitome_model::{
    Block, CHARS_AROUND, Counter, Entry, Output, Role, Source, Span, TOKENS_AROUND, Text, Tokens,
    Transcript, block_chars, block_tokens,
};

/// Tokens by item and block, and sums over what is sent.
#[derive(Clone, Default)]
pub struct Counts {
    items: Vec<Vec<Tokens>>,
    /// Characters by item, including what the API format adds.
    chars: Vec<u64>,
    total: Total,
    /// Whether the model wrote the last entry of the context; `None` if the context is empty.
    last: Option<bool>,
}

/// Sums over what is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// Tokens, including what the API format adds around blocks.
    pub tokens: Tokens,
    /// How many of `tokens` the API format adds around blocks.
    pub frames: Tokens,
    /// Bytes of the contents of blocks, as they are in the log.
    pub bytes: u64,
    /// Characters as they are in the log, including what the API format adds.
    pub chars: u64,
    /// Number of tool results.
    pub results: u64,
    /// Number of turns: every entry of the user begins one.
    pub turns: u64,
    /// Number of messages: consecutive entries of the model count as one, and so do consecutive
    /// entries of all other roles.
    pub messages: u64,
}

impl Counts {
    /// Tokens of each block, by item.
    pub fn items(&self) -> &[Vec<Tokens>] {
        &self.items
    }

    /// The sums over what is sent.
    pub fn total(&self) -> Total {
        self.total
    }

    /// The tokens of an item, including what the API format adds.
    pub fn item(&self, item: usize) -> Tokens {
        self.items.get(item).map_or(Tokens(0), |blocks| {
            blocks.iter().copied().sum::<Tokens>() + Tokens(TOKENS_AROUND.0 * blocks.len() as u64)
        })
    }

    /// For each item, whether it is sent as a message: false for the prompt, and for items that are
    /// not in the context.
    pub fn sent_flags(&self, transcript: &Transcript) -> Vec<bool> {
        let mut sent = vec![false; transcript.items.len()];
        for &item in &transcript.context {
            sent[item] = !transcript.head.prompt.contains(&item);
        }
        sent
    }

    /// Counts a new entry at the end of the context.
    pub fn add(
        &mut self,
        item: usize,
        transcript: &Transcript,
        source: &dyn Source,
        counter: &dyn Counter,
    ) {
        self.know(item, transcript, source, counter);
        self.add_to_sums(item, transcript, source);
    }

    /// In the sums, replaces the size of the item `old` by the size of its edited version, the item
    /// `new`. Both must count as the same number of blocks, messages, turns and results.
    pub fn replace(
        &mut self,
        old: usize,
        new: usize,
        transcript: &Transcript,
        source: &dyn Source,
        counter: &dyn Counter,
    ) {
        self.know(new, transcript, source, counter);
        let was = self.item(old);
        let is = self.item(new);
        self.total.tokens = self.total.tokens - was + is;
        self.total.bytes = self.total.bytes - bytes_of(transcript, old, source)
            + bytes_of(transcript, new, source);
        self.total.chars = self.total.chars - self.chars[old] + self.chars[new];
    }

    /// Counts all items of a log, including those that are not sent.
    pub fn count_all(
        &mut self,
        transcript: &Transcript,
        source: &dyn Source,
        counter: &dyn Counter,
    ) {
        (0..transcript.items.len()).for_each(|item| self.know(item, transcript, source, counter));
    }

    /// Computes the sums over the context again. Items that were not counted before are counted.
    pub fn recount(&mut self, transcript: &Transcript, source: &dyn Source, counter: &dyn Counter) {
        self.total = Total::default();
        self.last = None;
        for &item in &transcript.context {
            self.know(item, transcript, source, counter);
            self.add_to_sums(item, transcript, source);
        }
    }

    /// Counts the blocks of an item, unless that was done before.
    fn know(
        &mut self,
        item: usize,
        transcript: &Transcript,
        source: &dyn Source,
        counter: &dyn Counter,
    ) {
        if self.items.len() < transcript.items.len() {
            self.items.resize(transcript.items.len(), Vec::new());
            self.chars.resize(transcript.items.len(), 0);
        }
        let Some(entry) = transcript.items[item].entry() else { return };
        if self.items[item].len() != entry.blocks.len() {
            let blocks = entry.blocks.iter();
            self.items[item] = blocks.map(|block| block_tokens(block, source, counter)).collect();
            let chars = entry.blocks.iter().map(|it| block_chars(it, source) + CHARS_AROUND);
            self.chars[item] = chars.sum();
        }
    }

    /// Adds an item of the context to the sums. The item must have been counted.
    fn add_to_sums(&mut self, item: usize, transcript: &Transcript, source: &dyn Source) {
        let Some(entry) = transcript.items[item].entry() else { return };
        let total = &mut self.total;
        let frames = Tokens(TOKENS_AROUND.0 * entry.blocks.len() as u64);
        total.frames += frames;
        let results = entry.blocks.iter().filter(|block| matches!(block, Block::Output(_)));
        total.results += results.count() as u64;
        total.bytes += entry.blocks.iter().map(|block| size(block, source)).sum::<u64>();
        total.chars += self.chars[item];
        total.turns += u64::from(is_turn(entry));
        let speaks = entry.role == Role::Assistant;
        total.messages += u64::from(self.last != Some(speaks));
        self.last = Some(speaks);
        let tokens = self.items[item].iter().copied().sum::<Tokens>() + frames;
        self.total.tokens += tokens;
    }
}

fn is_turn(entry: &Entry) -> bool {
    entry.role == Role::User
}

fn size(block: &Block, source: &dyn Source) -> u64 {
    match block {
        Block::Text(words) | Block::Summary(words) => text_size(words, source),
        Block::Thinking(thinking) => thinking.whole.len(),
        Block::Call(call) => call.arguments.len(),
        Block::Output(output) => Output::size(output),
        Block::Image(image) => image.whole.len(),
        Block::Opaque(span) => span.len(),
        _ => 0,
    }
}

fn bytes_of(transcript: &Transcript, item: usize, source: &dyn Source) -> u64 {
    let blocks = transcript.items[item].entry().map_or(&[][..], |entry| &entry.blocks);
    blocks.iter().map(|block| size(block, source)).sum()
}

fn text_size(text: &Text, source: &dyn Source) -> u64 {
    text.span().map_or_else(|| text.read(source).len() as u64, Span::len)
}
