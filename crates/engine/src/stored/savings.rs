//! The savings of a plan, by tool and by file.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use epitome_formats::Loaded;
use epitome_model::{At, Block, Counter, Source, Tokens};
use epitome_passes::View;
use serde::Serialize;

use super::PreparedCompaction;

/// The tokens that a plan saves in the calls and results of one tool, or in those of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Saving {
    /// The name of a tool, or `thinking`, `images` or `text`; in [`Savings::files`] the path of a
    /// file.
    pub of: String,
    /// Number of edits.
    pub edits: u64,
    /// Tokens that a resume no longer sends.
    pub tokens: Tokens,
}

/// The tokens that a plan saves in the context, the largest savings first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Savings {
    /// By tool (calls and results together), and by kind for content that belongs to no tool.
    pub tools: Vec<Saving>,
    /// By path of the file that was read or changed.
    pub files: Vec<Saving>,
}

impl<S: Source> PreparedCompaction<'_, S> {
    /// The savings of the edits, without what a summary, a digest or a cut replaces.
    ///
    /// ```
    /// # use epitome_engine::stored::PreparedCompaction;
    /// # use epitome_formats::Loaded;
    /// # use epitome_tokens::Estimate;
    /// # let line = |id: usize, parent: usize, message: String| {
    /// #     let ids = format!(r#""id":"{id}","parentId":"{parent}""#);
    /// #     format!(r#"{{"type":"message",{ids},"message":{message}}}"#) + "\n"
    /// # };
    /// # let mut bytes = r#"{"type":"session","version":3,"id":"s","cwd":"/p"}"#.to_owned() + "\n";
    /// # let text = "fn main() {}\\n".repeat(300);
    /// # for n in 1..10 {
    /// #     let call = r#""type":"toolCall","name":"read","arguments":{"path":"a.rs"}"#;
    /// #     let call = format!(r#"{{"role":"assistant","content":[{{"id":"c{n}",{call}}}]}}"#);
    /// #     let content = format!(r#"[{{"type":"text","text":"{text}"}}]"#);
    /// #     let result = r#""role":"toolResult","toolName":"read","isError":false"#;
    /// #     let result = format!(r#"{{{result},"toolCallId":"c{n}","content":{content}}}"#);
    /// #     let question = r#"{"role":"user","content":"Read it."}"#.to_owned();
    /// #     bytes += &line(3 * n, 3 * n - 1, question);
    /// #     bytes += &line(3 * n + 1, 3 * n, call);
    /// #     bytes += &line(3 * n + 2, 3 * n + 1, result);
    /// # }
    /// // `bytes` is a session of pi in which a file is read nine times.
    /// let session = Loaded::read(bytes.into_bytes(), None)?;
    /// let recipe = epitome_passes::built_in("s06").expect("a built-in recipe");
    /// let counter = Estimate::new();
    /// let plan = PreparedCompaction::new(&session, &recipe, &counter)?;
    /// let savings = plan.savings(&counter);
    /// assert_eq!((&*savings.tools[0].of, &*savings.files[0].of), ("read", "a.rs"));
    /// let first = plan.describe_edits_by_saving(&counter).next().expect("an edit");
    /// assert!(first.after.len() < first.before.len());
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    pub fn savings(&self, counter: &dyn Counter) -> Savings {
        let Loaded { source, transcript, .. } = self.session;
        let view = View::new(transcript, source, counter);
        let mut tools: BTreeMap<String, (u64, Tokens)> = BTreeMap::new();
        let mut files = tools.clone();
        for edit in self.plan.edits.iter().filter(|edit| edit.tokens > Tokens(0)) {
            let call = view.call_at(edit.edit.at);
            let tool = call.map_or_else(|| kind_at(&view, edit.edit.at), |call| &call.name);
            let file = call.and_then(|call| view.file_of(call));
            let of_file = file.map(|file| files.entry(file).or_default());
            for sum in [Some(tools.entry(tool.to_owned()).or_default()), of_file] {
                let Some((edits, tokens)) = sum else { continue };
                *edits += 1;
                *tokens += edit.tokens;
            }
        }
        Savings { tools: largest_first(tools), files: largest_first(files) }
    }
}

/// The kind of content at a position; the content belongs to no tool.
fn kind_at(view: &View<'_>, at: At) -> &'static str {
    let (At::Block { item, block } | At::Field { item, block, .. } | At::Part { item, block, .. }) =
        at
    else {
        return "text";
    };
    let entry = view.transcript.items[item].entry();
    match entry.and_then(|entry| entry.blocks.get(block)) {
        Some(Block::Thinking(_)) => "thinking",
        Some(Block::Image(_)) => "images",
        _ => "text",
    }
}

fn largest_first(sums: BTreeMap<String, (u64, Tokens)>) -> Vec<Saving> {
    let savings = sums.into_iter().map(|(of, (edits, tokens))| Saving { of, edits, tokens });
    let mut all: Vec<Saving> = savings.collect();
    all.sort_by_key(|saving| Reverse(saving.tokens));
    all
}
