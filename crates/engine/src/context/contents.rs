//! How many tokens of a context each kind of content has.

use std::collections::BTreeMap;

use epitome_model::{Block, Role, TOKENS_AROUND, Tokens};
use serde::Serialize;

use super::Context;

/// A kind of content in a request. The variants are in the order in which they are displayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// Content of every request that is not in the log, such as tool definitions.
    Overhead,
    /// The system prompt, and other texts of the agent.
    Prompt,
    /// Texts of the user, and texts in messages with tool results.
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
pub struct ContentShare {
    /// The kind of content.
    pub content: Content,
    /// Tokens of this content as epitome counts them, including what an API adds around each block.
    pub tokens: Tokens,
    /// The number of blocks.
    pub blocks: u64,
}

impl Context {
    /// The size of each kind of content that is sent, in the order of [`Content`]. The sizes add up
    /// to epitome's count of this context, which may differ from the provider's (see
    /// [`usage`](Context::usage)).
    ///
    /// ```
    /// use epitome_engine::Content;
    /// # use epitome_engine::{Context, Setup};
    /// # use epitome_passes::built_in;
    /// # let recipe = built_in("epitome").expect("a recipe");
    /// # let setup = Setup::new(recipe).with_counter(epitome_tokens::Estimate::new());
    /// # let mut context = Context::in_memory(setup);
    /// assert!(context.contents().is_empty());
    /// context.user("Hello.")?;
    /// let [share] = context.contents()[..] else { panic!("one kind of content") };
    /// assert_eq!((share.content, share.blocks), (Content::User, 1));
    /// assert_eq!(share.tokens, context.usage().tokens);
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    pub fn contents(&self) -> Vec<ContentShare> {
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
        let shares = sums.into_iter();
        shares.map(|(content, (tokens, blocks))| ContentShare { content, tokens, blocks }).collect()
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
    use epitome_formats::epitome::{MessagePart, Speaker};
    use epitome_passes::built_in;

    use super::*;
    use crate::Setup;

    #[test]
    fn the_contents_of_a_window_add_up_to_it() {
        let setup = Setup::new(built_in("s06").expect("a recipe")).with_overhead(Tokens(100));
        let mut context = Context::in_memory(setup);
        let prompt = Speaker { role: Role::System, prompt: true, ..Speaker::default() };
        context.push(&prompt, &[MessagePart::text("Be brief.")]).expect("memory");
        context.user("What is in a.rs?").expect("memory");
        let call = MessagePart::call("c1", "Read", r#"{"path":"a.rs"}"#);
        context.assistant(&[MessagePart::text("I look."), call]).expect("memory");
        context.tool(&[MessagePart::output("c1", "fn main() {}")]).expect("memory");
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
