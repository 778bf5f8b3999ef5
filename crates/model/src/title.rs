//! The title of a session.

use crate::short;

/// Maximum length of a title in characters.
const LENGTH: usize = 80;

/// The title that a text gives: its beginning, on one line, at most 80 characters.
pub fn title(text: &str) -> Box<str> {
    short(text, LENGTH).into()
}

/// The command that the user typed, if `text` has the form in which Claude Code stores a command:
/// `<command-name>/compact</command-name> … <command-args>the tests</command-args>` gives `/compact
/// the tests`. `None` for any other text.
pub fn typed_command(text: &str) -> Option<String> {
    if !text.trim_start().starts_with("<command-") {
        return None;
    }
    let name = inside_tag(text, "command-name").filter(|name| !name.is_empty())?;
    let arguments = inside_tag(text, "command-args").filter(|arguments| !arguments.is_empty());
    Some(arguments.map_or_else(|| name.to_owned(), |arguments| format!("{name} {arguments}")))
}

fn inside_tag<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    Some(rest.split_once(&format!("</{name}>"))?.0.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_what_was_typed() {
        let of = |text| typed_command(text);
        let compact = "<command-name>/compact</command-name>\n            \
                       <command-message>compact</command-message>\n            \
                       <command-args></command-args>";
        assert_eq!(of(compact).as_deref(), Some("/compact"));
        let review = "<command-message>review</command-message>\n\
                      <command-name>/review</command-name>\n<command-args>the tests</command-args>";
        assert_eq!(of(review).as_deref(), Some("/review the tests"));
        assert_eq!(of("see <command-name>/x</command-name>"), None);
        assert_eq!(of("<command-name>/x"), None);
        assert_eq!(of("words"), None);
    }
}
