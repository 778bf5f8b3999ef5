//! What fills a window, by kind.

use std::collections::BTreeMap;

use epitome_model::{Block, Role, TOKENS_AROUND, Tokens};
use serde::Serialize;

use super::Context;

/// A kind of content of a request. The order of the variants is that of a display.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// Content of every request that is not in the log, as tool definitions.
    Overhead,
    /// The system prompt.
    Prompt,
    /// Messages of the user.
    User,
    /// Texts of the model.
    Answers,
    /// Reasoning.
    Thinking,
    /// Calls, with their arguments.
    Calls,
    /// Results of calls.
    Results,
    /// Pictures.
    Images,
    /// Summaries and digests.
    Summaries,
    /// Anything else.
    Other,
}

/// The share of a request that one kind of content has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Share {
    /// The kind.
    pub content: Content,
    /// Its tokens by our count, including what an API adds around each block.
    pub tokens: Tokens,
    /// The number of its blocks.
    pub blocks: u64,
}

impl Context {
    /// The share of each kind of content that is sent. The shares add up to our count of this
    /// context, which differs from the provider's ([`usage`](Context::usage)).
    pub fn contents(&self) -> Vec<Share> {
        let transcript = self.transcript();
        let mut sums: BTreeMap<Content, (Tokens, u64)> = BTreeMap::new();
        if self.setup.overhead > Tokens(0) {
            sums.insert(Content::Overhead, (self.setup.overhead, 1));
        }
        for (item, entry) in transcript.context() {
            let is_prompt = transcript.head.prompt.contains(&item);
            let counted = self.counts.items().get(item).map_or(&[][..], Vec::as_slice);
            for (block, tokens) in entry.blocks.iter().zip(counted) {
                let content =
                    if is_prompt { Content::Prompt } else { from_block(block, entry.role) };
                let (sum, blocks) = sums.entry(content).or_default();
                *sum += *tokens + TOKENS_AROUND;
                *blocks += 1;
            }
        }
        let share = |(content, (tokens, blocks))| Share { content, tokens, blocks };
        sums.into_iter().map(share).collect()
    }
}

fn from_block(block: &Block, role: Role) -> Content {
    match block {
        Block::Text(_) if role == Role::Assistant => Content::Answers,
        Block::Text(_) if role == Role::System => Content::Prompt,
        Block::Text(_) => Content::User,
        Block::Thinking(_) => Content::Thinking,
        Block::Call(_) => Content::Calls,
        Block::Output(_) => Content::Results,
        Block::Image(_) => Content::Images,
        Block::Summary(_) => Content::Summaries,
        _ => Content::Other,
    }
}

#[cfg(test)]
mod tests {
    use epitome_formats::epitome::{Said, Speaker};
    use epitome_passes::built_in;

    use super::*;
    use crate::Setup;

    #[test]
    fn the_contents_of_a_window_add_up_to_it() {
        let setup = Setup::new(built_in("s06").expect("a recipe")).with_overhead(Tokens(100));
        let mut context = Context::in_memory(setup);
        let prompt = Speaker { role: Role::System, prompt: true, ..Speaker::default() };
        context.push(&prompt, &[Said::text("Be brief.")]).expect("memory");
        context.user("What is in a.rs?").expect("memory");
        let call = Said::call("c1", "Read", r#"{"path":"a.rs"}"#);
        context.assistant(&[Said::text("I look."), call]).expect("memory");
        context.tool(&[Said::output("c1", "fn main() {}")]).expect("memory");
        let contents = context.contents();
        let kinds: Vec<(Content, u64)> =
            contents.iter().map(|it| (it.content, it.blocks)).collect();
        let expect = [
            Content::Overhead,
            Content::Prompt,
            Content::User,
            Content::Answers,
            Content::Calls,
            Content::Results,
        ];
        assert_eq!(kinds, expect.map(|content| (content, 1)));
        let sum: Tokens = contents.iter().map(|it| it.tokens).sum();
        assert_eq!(sum, context.usage().tokens);
    }
}
