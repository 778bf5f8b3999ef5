//! `todo`: the list of what is to be done.

use serde::Deserialize;

use super::{Tool, parsed};
use crate::permissions::Access;

pub(super) const TOOL: Tool = Tool {
    name: "todo",
    description: "Replaces the list of what is to be done. Use it for work of several steps, and \
                  after each step; have one item under way at a time.",
    parameters: concat!(
        r#"{"type":"object","properties":{"items":{"type":"array","items":{"type":"object","#,
        r#""properties":{"text":{"type":"string"},"state":{"type":"string","enum":["open","#,
        r#""doing","done"]}},"required":["text","state"]}}},"required":["items"]}"#,
    ),
    access: |_, _| Ok(Access::Own),
    run: |_, arguments, _, _| {
        let Arguments { items } = parsed(arguments)?;
        let lines: Vec<String> = items.iter().map(Item::line).collect();
        Ok(if lines.is_empty() { "the list is empty".to_owned() } else { lines.join("\n") })
    },
};

#[derive(Deserialize)]
struct Arguments {
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    text: String,
    state: State,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Open,
    Doing,
    Done,
}

impl Item {
    fn line(&self) -> String {
        let mark = match self.state {
            State::Open => "[ ]",
            State::Doing => "[>]",
            State::Done => "[x]",
        };
        format!("{mark} {}", self.text)
    }
}
