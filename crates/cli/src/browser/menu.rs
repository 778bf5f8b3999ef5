//! Menus: to which agent a session is ported, and in which form it is exported.

use super::worker::Form;

/// A list of choices, each of which has a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Menu {
    pub title: &'static str,
    /// The key, the text, and the choice.
    pub entries: Vec<(char, String, Choice)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    Port(&'static str),
    Export(Form),
}

impl Menu {
    /// The menu of the agents to which a session of `agent` can be converted.
    pub fn port(agent: &str) -> Menu {
        let others =
            epitome::agents::resumable_agents().map(|(to, _)| to.name()).filter(|to| *to != agent);
        let entries = others.zip('1'..).map(|(to, key)| (key, to.to_owned(), Choice::Port(to)));
        Menu { title: "Continue it in another agent", entries: entries.collect() }
    }

    /// The menu of the forms in which a session can be exported.
    pub fn export() -> Menu {
        let entries = Form::ALL.into_iter().zip('1'..);
        let entries =
            entries.map(|(form, key)| (key, form.describe().to_owned(), Choice::Export(form)));
        Menu { title: "Export it to this folder, without secrets", entries: entries.collect() }
    }
}
