//! Fills the templates of questions, and checks that they fit the window.

use epitome_model::Tokens;

use super::SummaryInProgress;
use super::history::{cut, escape_tags};
use crate::ask::Ask;

const SYSTEM: &str = include_str!("../prompts/system.md");
pub(super) const WHOLE: &str = include_str!("../prompts/whole.md");
pub(super) const PART: &str = include_str!("../prompts/part.md");
pub(super) const MERGE: &str = include_str!("../prompts/merge.md");
pub(super) const JOINED: &str = include_str!("../prompts/joined.md");

/// Maximum bytes that a question contains of the topic of the user, and of the protected texts.
/// Each also has at most one byte for eight tokens of the window.
const ASIDE: usize = 4_000;

const UPDATE: &str = ", and bring the summary in <earlier> up to date with it: what still holds \
     stays, with all its names and values; what was done since is done; \
     what no longer matters goes";

const SPLIT: &str = "\n\nThe history ends in the middle of a turn: what follows it is given to the \
     agent as it is. Say what the end of this history leaves open, so that \
     the rest can be understood.";

const PROTECTED: &str =
    "\n\nThis is kept beside your text as it is. Write nothing that contradicts it:";

impl SummaryInProgress {
    /// The question made from a template; `None` if it does not fit the window.
    pub(super) fn fits(&self, template: &str, values: &[(&str, String)]) -> Option<Ask> {
        let ask = self.question(template, values);
        (self.count(&ask) <= self.room(ask.max_tokens)).then_some(ask)
    }

    pub(super) fn question(&self, template: &str, values: &[(&str, String)]) -> Ask {
        let whole = template == WHOLE || template == JOINED;
        let share = if whole { 4 } else { 6 };
        let max_tokens = self.rule.max_tokens.min(self.writer.window.0 / share).max(1);
        let prompt = fill(template, |name| match name {
            "sections" => self.headings(),
            "earlier" if !self.earlier.is_empty() => {
                let most = usize::try_from(self.writer.window.0 / 4).unwrap_or(usize::MAX);
                format!("<earlier>\n{}\n</earlier>\n\n", escape_tags(&cut(&self.earlier, most * 2)))
            }
            "update" if !self.earlier.is_empty() => UPDATE.into(),
            "split" if self.split => SPLIT.into(),
            "focus" => self.focus(),
            "protected" => self.protected(),
            name => {
                let value = values.iter().find(|(known, _)| *known == name);
                value.map(|(_, value)| value.clone()).unwrap_or_default()
            }
        });
        Ask { system: SYSTEM.trim_end().into(), prompt: prompt.trim_end().into(), max_tokens }
    }

    fn headings(&self) -> String {
        let lines = self.sections.iter().map(|section| match section.about {
            "" => format!("## {}", section.title),
            about => format!("## {} ({about})", section.title),
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn focus(&self) -> String {
        let Some(focus) = self.rule.focus.as_deref() else { return String::new() };
        let focus = escape_tags(&cut(focus.trim(), ASIDE.min(self.share()))).into_owned();
        format!("\n\nThe summary is asked to look at this above all:\n<focus>\n{focus}\n</focus>")
    }

    fn protected(&self) -> String {
        if self.rule.protected.is_empty() {
            return String::new();
        }
        let text = self.rule.protected.join("\n");
        let text = escape_tags(&cut(text.trim(), ASIDE.min(self.share()))).into_owned();
        format!("{PROTECTED}\n<protected>\n{text}\n</protected>")
    }

    fn share(&self) -> usize {
        usize::try_from(self.writer.window.0 / 8).unwrap_or(usize::MAX)
    }

    /// The maximum tokens of a question: the window, less the answer and an estimate of what the
    /// API format adds.
    pub(super) fn room(&self, max_tokens: u64) -> Tokens {
        let window = self.writer.window;
        window - Tokens(max_tokens) - Tokens(window.0 / 20 + 32)
    }

    pub(super) fn count(&self, ask: &Ask) -> Tokens {
        self.writer.counter.count(&ask.system) + self.writer.counter.count(&ask.prompt)
    }

    pub(super) fn no_room(&self) -> String {
        format!("a window of {} tokens has no room for a summary", self.writer.window)
    }
}

/// Replaces the names in braces of a template. Names in inserted values are not replaced.
fn fill(template: &str, value: impl Fn(&str) -> String) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, behind) = after.split_once('}').expect("templates close their braces");
        out.push_str(before);
        out.push_str(&value(name));
        rest = behind;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_put_in_once_and_its_braces_stay() {
        let value = |name: &str| match name {
            "a" => "{b}".to_owned(),
            "b" => "x".to_owned(),
            _ => String::new(),
        };
        assert_eq!(fill("{a} and {b}{c}.", value), "{b} and x.");
        assert_eq!(fill("plain", value), "plain");
    }
}
